"""Freezes a store of the build at KOTA_BIN_DIR, for the version of the format that it writes:

    KOTA_BIN_DIR=build/release python3 tests/stores/make.py

It fills a data folder in two lives of a daemon, one ended by SIGTERM, the other by kill -9 right
after its last answer, so that tiles and files that are behind the log are in it, too; packs it; asks
a copy; and writes data.tar.xz, answers.json.xz and their lines in SHA256SUMS, in a folder named by the
version, or VERSION.N where there is one: a folder that is there is never written again.
"""
import io
import json
import lzma
import math
import os
import random
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
sys.path.insert(0, HERE)

import frozen  # noqa: E402
import sand  # noqa: E402
from daemon import BIN_DIR, F32, JSON  # noqa: E402
from fields import put_terrain  # noqa: E402
from ground import NAN, Edit, Ground, cut_off, floats, put_ground, stored  # noqa: E402
from houses import GROUND, HOUSE, document, node  # noqa: E402
from images import png  # noqa: E402
from mesh_oracle import obj, rectangle, wall  # noqa: E402

HALF = 0.5 ** 0.5
RANDOM = random.Random(4)
KEYED = []  # writes under an Idempotency-Key, to be asked again


def write(daemon, method, target, body=None, media=None, key=None):
    if isinstance(body, (dict, list)):
        body, media = json.dumps(body).encode(), JSON
    headers = {"Idempotency-Key": key} if key else {}
    answer = daemon.ask(method, target, body, headers=headers, media=media)
    assert answer.status < 300, f"{method} {target}: {answer}"
    if key:
        KEYED.append({"method": method, "target": target, "headers": headers,
                      **({"body": body.hex(), "media": media} if body else {})})
    return answer


# ---- the world --------------------------------------------------------------------------------------


def sixteenth(value):
    """Heights that pack well."""
    return round(16 * value) / 16


def land(cols, rows, spacing, origin, holes=0):
    """Rolling ground, and a rectangle of holes."""
    heights = [sixteenth(9 * math.sin(c / 23) + 7 * math.cos(r / 17) + 3 * math.sin((c + r) / 7))
               for r in range(rows) for c in range(cols)]
    for r in range(holes):
        for c in range(holes):
            heights[(20 + r) * cols + 30 + c] = NAN
    return Ground(cols, rows, heights, spacing, origin)


def sphere(radius, rings=6, sectors=10):
    """Quads and triangles about the origin, closed."""
    def at(i, j):
        polar, azimuth = math.pi * i / rings, 2 * math.pi * (j % sectors) / sectors
        return (round(radius * math.sin(polar) * math.cos(azimuth), 3),
                round(radius * math.sin(polar) * math.sin(azimuth), 3),
                round(radius * math.cos(polar), 3))
    made = []
    for j in range(sectors):
        made.append([at(0, 0), at(1, j), at(1, j + 1)])
        made += [[at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)]
                 for i in range(1, rings - 1)]
        made.append([at(rings - 1, j), at(rings, 0), at(rings - 1, j + 1)])
    return made


def drum(radius, length, sides=12):
    corners = [(round(radius * math.cos(2 * math.pi * i / sides), 3),
                round(radius * math.sin(2 * math.pi * i / sides), 3)) for i in range(sides + 1)]
    return [[(*a, -length), (*b, -length), (*b, length), (*a, length)]
            for a, b in zip(corners, corners[1:])]


def halls(columns, rows, side=6.0):
    """Floors of two storeys with walls between, some left out."""
    made = []
    for i in range(columns):
        for j in range(rows):
            x, y = i * side, j * side
            made.append(rectangle(x, y, x + side, y + side, 0.25 * ((i + j) % 3)))
            if (i * j) % 4 != 3:
                made.append(rectangle(x, y, x + side, y + side, 4.0))
            if (i + 2 * j) % 3:
                made.append(wall((x, y), (x + side, y), 0, 4))
    return made


def put_mesh(daemon, locale, layer, rings, query="", key=None):
    write(daemon, "PUT", f"/v1/locales/{locale}/layers/{layer}{query}", obj(rings), "model/obj", key)


def edit(daemon, locale, layer, what, binary=False, key=None):
    write(daemon, *("POST", *what.request(locale, layer, binary)), key=key)


def edits(daemon, locale, layer, ground, count):
    """Of each kind in turn, over the seams of tiles now and then."""
    for i in range(count):
        w, h = RANDOM.randint(2, 9), RANDOM.randint(2, 9)
        c, r = RANDOM.randrange(ground.cols - w), RANDOM.randrange(ground.rows - h)
        if i % 3 == 0 and ground.cols > 270:
            c = 252
        heights = floats(sixteenth(RANDOM.uniform(-9, 9)) for _ in range(w * h))
        if i % 4 == 1:
            heights[0] = NAN
        kind = ("set", "add", "raise", "crater", "flatten", "smooth")[i % 6]
        if kind in ("set", "add"):
            what = Edit(kind, (c, r, w, h), heights)
        else:
            what = Edit("brush", brush={
                "shape": kind, "center": [ground.place(c, r)[0] + 0.3, ground.place(c, r)[1] + 0.1],
                "radius": 3.5 * ground.spacing[0], "amount": 1.25})
        edit(daemon, locale, layer, what, binary=bool(i % 2),
             key=f"{locale}-{count}-{i}" if i % 3 == 0 else None)


def demo(daemon):
    """Changes of the demo world."""
    for center in ([800, 900], [1500.5, 1500.25]):
        edit(daemon, "highlands", "ground", Edit("brush", brush={
            "shape": "crater", "center": center, "radius": 120, "amount": 15}))
    write(daemon, "POST", "/v1/locales/village/layers/ground/polygons", {
        "polygons": [[[3, 0, 9], [5, 0, 9], [5, 2, 9.5], [3, 2, 9.5]]], "remove": [7, 8, 9]})
    write(daemon, "PUT", "/v1/locales/garden/layers/ferry/transform",
          {"translation": [4.5, -1.25, 0.5], "rotation": [0.1, -0.1, 0.7, 0.7]})


def first_life(daemon, hills, coast):
    demo(daemon)
    write(daemon, "PUT", "/v1/locales/hills", {
        "title": "H\u00fcgel \u2603 \"q\"", "triangulation": "alternating",
        "geo": {"lat": 47.2692, "lng": 11.4041},
        "placement": {"translation": [1000.125, -2e6, 0.1], "rotation": [0, 0, HALF, HALF]}},
        key="hills")
    write(daemon, "PUT", f"/v1/locales/hills/layers/ground?{hills.query()}", hills.body(), F32,
          key="hills-ground")
    put_ground(daemon, hills, "hills", "second")
    write(daemon, "PUT", "/v1/locales/coast", {"triangulation": "main", "crs": "EPSG:25832"})
    put_ground(daemon, coast, "coast")
    codes = [[(97 * c + 31 * r) % 4001 for c in range(40)] for r in range(30)]
    write(daemon, "PUT", "/v1/locales/coast/layers/relief?spacing=0.3,1.7&origin=-3.1,5.7"
          "&height_scale=0.001&height_offset=-12.5&flip_y=true&nodata=7", png(codes), "image/png")
    edits(daemon, "hills", "ground", hills, 18)
    edits(daemon, "coast", "ground", coast, 12)
    noise = random.Random(11)
    for _ in range(2):  # the second one's samples before are long: in history_data
        write(daemon, "POST", "/v1/locales/coast/edits", {
            "layer": "relief", "rect": [0, 0, 40, 30], "op": "set",
            "heights": [noise.uniform(-9, 9) for _ in range(40 * 30)]})

    write(daemon, "PUT", "/v1/locales/halls", {"title": "halls", "open_sky": False,
                                               "placement": {"translation": [500, 0, -40]}})
    put_mesh(daemon, "halls", "rooms", halls(14, 11), key="rooms")
    for name in ("houses", "altered"):
        nodes = [node(0, 15.0 * i, 0.25 * i, 12.0 + i, 0.5 * i) for i in range(9)] + [node(1)]
        write(daemon, "PUT", f"/v1/locales/halls/layers/{name}?up=y",
              document(nodes, [HOUSE, GROUND]), "model/gltf-binary")
    write(daemon, "POST", "/v1/locales/halls/layers/altered/polygons", {"remove": [4, 40]})
    put_mesh(daemon, "halls", "roof", [rectangle(-1, -1, 85, 67, 9)], "?role=ceiling")
    put_mesh(daemon, "halls", "lift", [rectangle(-1.5, -1.5, 1.5, 1.5, 0.5), wall((1.5, -1.5),
             (1.5, 1.5), 0.5, 3)])
    for i in range(6):
        write(daemon, "POST", "/v1/locales/halls/layers/rooms/polygons",
              {"polygons": [[list(corner) for corner in rectangle(7 * i, 3, 7 * i + 4, 8, 1.5)]],
               "remove": [5 * i]}, key=f"rooms-{i}" if i < 2 else None)
    write(daemon, "PUT", "/v1/locales/tilted?note=uphill", {"gravity": [0.6, 0, -0.8]})
    put_mesh(daemon, "tilted", "plates", [rectangle(i, i % 3, i + 3, i % 3 + 3, 0.125 * i)
                                          for i in range(60)], "?up=y&scale=0.5")
    write(daemon, "PUT", "/v1/locales/moon", {"placement": {"translation": [0, 9000, 0]}})
    put_mesh(daemon, "moon", "ground", sphere(60), "?frame=spherical")
    put_mesh(daemon, "moon", "sky", sphere(200, 4, 5), "?frame=spherical&role=ceiling")
    write(daemon, "PUT", "/v1/locales/drum", {})
    put_mesh(daemon, "drum", "floor", drum(50, 20), "?frame=cylindrical")

    for name in ("gone", "again"):
        write(daemon, "PUT", f"/v1/locales/{name}", {"title": name}, key=name)
        put_ground(daemon, land(20, 10, (1, 1), (0, 0)), name)
        write(daemon, "DELETE", f"/v1/locales/{name}", key=f"{name}-deleted")
    write(daemon, "PUT", "/v1/models/box", sand.box(0.4), "model/obj")
    write(daemon, "PUT", "/v1/models/old", sand.box(1.5), "model/obj")
    write(daemon, "DELETE", "/v1/models/old")
    write(daemon, "PUT", "/v1/models/box", sand.box(0.7), "model/obj")


def patch(daemon):
    """Ground that a body has dented: an edit whose source is patch, and a shell of the model."""
    put_terrain(daemon, "beach", sand.land())
    place = sand.make(daemon, "beach", bodies=[sand.body()])
    sand.until(daemon, place, "written")


def second_life(daemon, hills, coast):
    patch(daemon)
    write(daemon, "PUT", "/v1/locales/again", {"title": "again"}, key="again-once-more")
    write(daemon, "DELETE", "/v1/locales/hills/layers/second", key="second-deleted")
    write(daemon, "PUT", "/v1/locales/tilted", {"gravity": [0, 0.6, -0.8], "title": "otherwise"})
    put_mesh(daemon, "halls", "porch", [rectangle(-6, 0, 0, 12, 1), [
        (-6, 20, 1), (0, 20, 1), (0, 26, 2), (-6, 26, 1)]])  # the other is not flat
    for i in range(5):
        write(daemon, "PUT", "/v1/locales/halls/layers/lift/transform",
              {"translation": [9.5, 7.25, 0.5 * i], "yaw_deg": 12.5 * i})
    for name in ("hills", "coast", "halls", "moon"):
        write(daemon, "PUT", f"/v1/locales/{name}/pins/start")
    time.sleep(2)  # poses are written within a second
    # What follows is in the log alone when the daemon ends.
    write(daemon, "POST", "/v1/locales/moon/layers/ground/polygons", {
        "polygons": [[[70, 0, 0], [70, 9, 0], [70, 0, 9]]], "remove": [3]})
    write(daemon, "POST", "/v1/locales/halls/layers/rooms/polygons", {"polygons": [
        [[0, 0, 6], [9, 0, 6], [9, 4, 6], [4, 4, 6], [4, 8, 6], [0, 8, 6]],  # an L
        [[0, 20, 6], [5, 20, 6], [5, 25, 7], [0, 25, 6]],                    # not flat
        [[0, 30, 6], [0, 30, 6], [1, 30, 6]]]}, key="rooms-last")           # no area
    edits(daemon, "coast", "ground", coast, 6)
    write(daemon, "PUT", "/v1/locales/coast/pins/late")
    edits(daemon, "hills", "ground", hills, 8)
    for name, source, x in (("hills-fork", "hills@start", 5000), ("halls-fork", "halls", 6000),
                            ("fork-of-fork", "hills-fork", 7000)):
        write(daemon, "POST", "/v1/locales", {"id": name, "from": source, "title": name,
                                              "placement": {"translation": [x, 0, 0]}})
    write(daemon, "PUT", "/v1/locales/halls-fork", {"title": "on its own"})
    edits(daemon, "hills-fork", "ground", hills, 3)
    edits(daemon, "fork-of-fork", "ground", hills, 2)
    write(daemon, "PUT", "/v1/locales/fork-of-fork/pins/start")


# ---- the questions ------------------------------------------------------------------------------------


def places(box, count, up_m=4.0, inside=False):
    """Points in a box and, unless they are to be inside, about it; coordinates with few digits."""
    margin = 0 if inside else 1
    return [[round(RANDOM.uniform(low - margin, high + (up_m if i == 2 and margin else margin)), 3)
             for i, (low, high) in enumerate(zip(box["min"], box["max"]))] for _ in range(count)]


def post(target, body):
    return {"method": "POST", "target": target, "media": JSON, "body": json.dumps(body).encode().hex()}


def get(target):
    return {"method": "GET", "target": target}


def of_layer(base, layer):
    name = layer["id"]
    yield get(f"{base}/layers/{name}/stats")
    yield get(f"{base}/layers/{name}?format=obj")
    if layer["kind"] != "heightfield":
        return
    yield get(f"{base}/layers/{name}?format=f32")
    yield get(f"{base}/layers/{name}?format=png16")
    for place in ("0/0/0", "0/1/0", "0/1/1", "1/0/0"):
        for kind in ("sampled", "max"):
            yield get(f"{base}/tiles/{place}?format=f32&layer={name}&kind={kind}")
    for since in (1, 3, 9):
        yield get(f"{base}/diff?since={since}&layer={name}")
    yield post(f"{base}/profile", {"path": [p[:2] for p in places(layer["bounds"], 7)],
                                   "samples": 200, "layer": name})
    for interp in ("triangle", "bilinear", "nearest"):
        yield post(f"{base}/height", {"points": [p[:2] for p in places(layer["bounds"], 120)],
                                      "interp": interp, "layer": name,
                                      "fields": ["height", "normal", "cell"]})


def of_locale(document, pins):
    base = f"/v1/locales/{document['id']}"
    yield get(base)
    yield {"target": f"{base}/events", "after": 1, "until": document["revision"]}
    yield get(f"{base}/history?limit=1000")
    if not document["layers"]:
        return
    # Rays begin inside the bounds.
    about, inside = places(document["bounds"], 120), places(document["bounds"], 90, inside=True)
    pairs = list(zip(inside, inside[1:]))
    rays = [{"origin": a, "direction": [round(q - p, 3) for p, q in zip(a, b)]} for a, b in pairs]
    yield post(base + "/contact", {"points": about})
    yield post(base + "/contact", {"points": about, "reach_up": 3})
    yield post(base + "/contact", {"footprints": [about[i:i + 4] for i in range(0, 60, 4)]})
    yield post(base + "/contains", {"points": about})
    yield post(base + "/ray", {"rays": rays})
    yield post(base + "/los", {"segments": [{"from": a, "to": b} for a, b in pairs]})
    yield post(base + "/lit", {"points": inside, "light": {"direction": [0.3, -0.2, -1]}})
    yield post(base + "/pick", {"viewport": [640, 480], "pixel": [300, 200], "camera": {
        "eye": inside[0], "target": inside[1], "up": [0, 0, 1], "fov_y_deg": 50}})
    for layer in document["layers"]:
        yield from of_layer(base, layer)
    for pin in pins:
        yield post(f"{base}/contact?at={pin['name']}", {"points": about})
        yield post(f"{base}/ray?at={pin['name']}", {"rays": rays})
        yield get(f"{base}?at={pin['name']}")


def questions(daemon):
    told = daemon.ok("GET", "/v1/locales")["locales"]
    total = 3 + sum(entry["revision"] for entry in told)  # 3 of the locale that is gone
    made = [get("/v1/locales?layers=true"), get("/v1/models"), get("/v1/models/box"), get("/v1/models/old"),
            get("/v1/locales/gone"), get("/v1/compat/elevation?locations=47.2692,11.4041|47.27,11.405"),
            {"target": "/v1/events", "after": 0, "until": total}]
    world = []
    for entry in told:
        document = daemon.ok("GET", f"/v1/locales/{entry['id']}")
        made += of_locale(document, daemon.ok("GET", f"/v1/locales/{entry['id']}/pins")["pins"])
        if document["bounds"]:
            shift = document["placement"]["translation"]
            world += [[a + b for a, b in zip(p, shift)] for p in places(document["bounds"], 20)]
    made.append(post("/v1/locate", {"points": world}))
    made.append(post("/v1/contact", {"points": world}))
    return made + KEYED


# ---- packing --------------------------------------------------------------------------------------------


def pack(data):
    """The folder without what only a running daemon needs; nothing of this machine in the archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz", preset=9) as archive:
        for where, _, names in sorted(os.walk(data)):
            for name in sorted(names):
                if name in ("lock", "kota.db-shm"):
                    continue
                path = os.path.join(where, name)
                info = tarfile.TarInfo(os.path.relpath(path, data))
                info.size, info.mode = os.path.getsize(path), 0o644
                with open(path, "rb") as file:
                    archive.addfile(info, file)
    return out.getvalue()


def main():
    hills = land(300, 280, (2.0, 2.0), (-100.5, 40.25), holes=5)
    coast = land(90, 270, (0.5, 0.25), (-4.25, 3.5), holes=3)
    with tempfile.TemporaryDirectory() as folder:
        data, world = os.path.join(folder, "data"), os.path.join(folder, "world")
        subprocess.run([os.path.join(BIN_DIR, "kota-worldgen"), "demo", world, "--size", "256"], check=True)
        with stored(data, "--world", world) as daemon:
            first_life(daemon, hills, coast)
        daemon = stored(data, *sand.CPU, *sand.QUICK)
        second_life(daemon, hills, coast)
        cut_off(daemon)
        archive = pack(data)
        with sqlite3.connect(os.path.join(data, "kota.db")) as database:
            version = str(database.execute("PRAGMA user_version").fetchone()[0])
        database.close()
        with stored(data) as daemon:
            entries = questions(daemon)
            for entry in entries:
                entry["answer"] = frozen.ask(daemon, entry)
    schema, number = version, 0
    while version in frozen.versions():
        number += 1
        version = f"{schema}.{number}"
    os.mkdir(os.path.join(HERE, version))
    answers = lzma.compress(json.dumps(entries).encode(), preset=9)
    with open(frozen.SUMS, "a") as sums:
        for name, content in (("data.tar.xz", archive), ("answers.json.xz", answers)):
            path = frozen.path_of(version, name)
            with open(path, "wb") as file:
                file.write(content)
            print(f"{frozen.sha256(path)}  {version}/{name}", file=sums)
            print(f"{version}/{name}: {len(content)} bytes, {len(entries)} answers")


main()
