"""Files of polygons: real ones with their oracles and counts, every format, and hostile ones.

After every refusal the list of locales must be byte for byte what it was and the daemon alive.
"""
import base64
import csv
import http.client
import json
import math
import os
import shutil
import socket
import struct
import tempfile
import threading
import time

from daemon import SLOW, Daemon, connection_to, data_path, problem
from fields import Terrain, put_locale, put_terrain, results
from mesh_oracle import NOT_SHARED, MeshLayer, World, judge_ray, obj, put_mesh, read_obj, rectangle
from oracle import f32
from tap import HANG_S, Skip, case, check, equal, fail, near, rng, run, test

daemon = Daemon()
OBJ, GLB, GLTF = "model/obj", "model/gltf-binary", "model/gltf+json"
PLY, STL, DAE, AC3D = ("model/ply", "model/stl", "model/vnd.collada+xml", "application/x-ac3d")
SQUARE = [rectangle(0, 0, 2, 2, 1)]

put_locale(daemon, "meshes")
put_mesh(daemon, "meshes", SQUARE)
put_terrain(daemon, "land", Terrain(3, 3, [[0] * 3] * 3))
TARGET = "/v1/locales/meshes/layers/mesh"
before = daemon.get("/v1/locales?layers=true").body


def unchanged():
    """Fails once where the locales changed; what comes after is held to what they are then."""
    global before
    check(daemon.is_alive(), f"the daemon died:\n{daemon.log_text()[-3000:]}")
    was, before = before, daemon.get("/v1/locales?layers=true").body
    check(before == was, "the list of locales changed")


def refuse(statuses, body, query="", words=(), media=OBJ, method="PUT", target=TARGET):
    global before
    statuses = statuses if isinstance(statuses, tuple) else (statuses,)
    answer = daemon.ask(method, target + ("?" + query if query else ""), body, media=media)
    if answer.status in (200, 201):
        before = daemon.get("/v1/locales?layers=true").body
        fail(f"expected {statuses}, but it was taken: {answer.json['import']}")
    check(answer.status in statuses, f"expected {statuses}, got {answer}")
    document = problem(answer, answer.status, *words)
    unchanged()
    return document


# ---- formats, by hand ---------------------------------------------------------------------------

# One square of 2 m at height 1 and a triangle of 1 m at height 3, in each format.
CORNERS = [(0, 0, 1), (2, 0, 1), (2, 2, 1), (0, 2, 1), (0, 0, 3), (1, 0, 3), (0, 1, 3)]
TRIANGLES = [(0, 1, 2), (0, 2, 3), (4, 5, 6)]
FACES = [(0, 1, 2, 3), (4, 5, 6)]


def ply_text():
    lines = ["ply", "format ascii 1.0", f"element vertex {len(CORNERS)}", "property float x",
             "property float y", "property float z", f"element face {len(FACES)}",
             "property list uchar int vertex_indices", "end_header"]
    lines += [" ".join(map(str, corner)) for corner in CORNERS]
    lines += [" ".join(map(str, (len(face), *face))) for face in FACES]
    return ("\n".join(lines) + "\n").encode()


def ply_binary():
    head = ply_text().decode().split("end_header")[0].replace("ascii", "binary_little_endian")
    body = b"".join(struct.pack("<3f", *corner) for corner in CORNERS)
    for face in FACES:
        body += struct.pack(f"<B{len(face)}i", len(face), *face)
    return head.encode() + b"end_header\n" + body


def stl_binary():
    body = bytes(80) + struct.pack("<I", len(TRIANGLES))
    for triangle in TRIANGLES:
        body += struct.pack("<3f", 0, 0, 1)
        body += b"".join(struct.pack("<3f", *CORNERS[i]) for i in triangle) + bytes(2)
    return body


def stl_text():
    lines = ["solid thing"]
    for triangle in TRIANGLES:
        lines += ["facet normal 0 0 1", "outer loop"]
        lines += ["vertex " + " ".join(f"{v}.0" for v in CORNERS[i]) for i in triangle]
        lines += ["endloop", "endfacet"]
    return ("\n".join(lines + ["endsolid thing"]) + "\n").encode()


def gltf_document(nodes=None, uri=None, buffers=True):
    points = b"".join(struct.pack("<3f", *corner) for corner in CORNERS)
    indices = b"".join(struct.pack("<3H", *triangle) for triangle in TRIANGLES)
    data = points + indices + bytes(-len(points + indices) % 4)
    buffer = {"byteLength": len(data)}
    if buffers:
        buffer["uri"] = uri or "data:application/octet-stream;base64," + base64.b64encode(
            data).decode()
    document = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}],
        "nodes": nodes or [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "buffers": [buffer],
        "bufferViews": [{"buffer": 0, "byteOffset": 0, "byteLength": len(points)},
                        {"buffer": 0, "byteOffset": len(points), "byteLength": len(indices)}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": len(CORNERS),
                       "type": "VEC3", "min": [0, 0, 1], "max": [2, 2, 3]},
                      {"bufferView": 1, "componentType": 5123, "count": 3 * len(TRIANGLES),
                       "type": "SCALAR"}]}
    return document, data


def gltf(**named):
    return json.dumps(gltf_document(**named)[0]).encode()


def glb(**named):
    document, data = gltf_document(buffers=False, **named)
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    chunks = (struct.pack("<I4s", len(text), b"JSON") + text
              + struct.pack("<I4s", len(data), b"BIN\0") + data)
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def ac3d():
    lines = ["AC3Db", 'MATERIAL "" rgb 1 1 1 amb 1 1 1 emis 0 0 0 spec 0 0 0 shi 0 trans 0',
             "OBJECT world", "kids 1", "OBJECT poly", 'name "thing"', f"numvert {len(CORNERS)}"]
    lines += [" ".join(map(str, corner)) for corner in CORNERS]
    lines += [f"numsurf {len(FACES)}"]
    for face in FACES:
        lines += ["SURF 0x20", "mat 0", f"refs {len(face)}"] + [f"{i} 0 0" for i in face]
    return ("\n".join(lines + ["kids 0"]) + "\n").encode()


def collada():
    numbers = " ".join(str(v) for corner in CORNERS for v in corner)
    return f"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="meter" meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g" name="g"><mesh>
<source id="p"><float_array id="pa" count="{3 * len(CORNERS)}">{numbers}</float_array>
<technique_common><accessor source="#pa" count="{len(CORNERS)}" stride="3">
<param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
</accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<polylist count="{len(FACES)}"><input semantic="VERTEX" source="#v" offset="0"/>
<vcount>{" ".join(str(len(face)) for face in FACES)}</vcount>
<p>{" ".join(str(i) for face in FACES for i in face)}</p></polylist>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node id="n"><instance_geometry url="#g"/></node>
</visual_scene></library_visual_scenes><scene><instance_visual_scene url="#s"/></scene>
</COLLADA>""".encode()


def obj_text():
    return obj([[CORNERS[i] for i in face] for face in FACES])


# (name, media type, body, polygons: 2 where faces stay whole, 3 where they are triangles)
FORMATS = [("OBJ", OBJ, obj_text(), 2), ("PLY as text", PLY, ply_text(), 2),
           ("binary PLY", PLY, ply_binary(), 2), ("binary STL", STL, stl_binary(), 3),
           ("STL as text", STL, stl_text(), 3), ("glTF with its data inside", GLTF, gltf(), 3),
           ("GLB", GLB, glb(), 3), ("AC3D", AC3D, ac3d(), 2), ("COLLADA", DAE, collada(), 2)]


def loads(media, body, polygons, layer="format"):
    """The file as a layer of its own locale; the PUT's answer."""
    global before
    daemon.ask("DELETE", "/v1/locales/format")
    put_locale(daemon, "format")
    answer = put_mesh(daemon, "format", body, layer, media=media)
    told = {"kept": polygons, "split": 0, "dropped": 0, **NOT_SHARED}
    if media in (AC3D, DAE):
        told["precision_m"] = 2.0 ** -22  # float32 at 3
    equal(answer["import"], told, "import")
    equal(answer["bounds"], {"min": [0, 0, 1], "max": [2, 2, 3]}, "bounds")
    points = [[1.5, 0.5, 2], [0.25, 0.5, 2], [1.5, 0.5, 9], [0.25, 0.5, 9]]
    got = results(daemon, "/v1/locales/format/contact", {"points": points}, 4)
    equal([(i["floor"]["point"][2], i["ceiling"] and i["ceiling"]["point"][2]) for i in got],
          [(1, None), (1, 3), (1, None), (3, None)], "floors and ceilings")
    equal([i["floor"]["polygon"] for i in got[2:]], [0, polygons - 1], "polygons")
    before = daemon.get("/v1/locales?layers=true").body


for name_, media_, body_, polygons_ in FORMATS:
    case(f"{name_}: polygons, bounds and floors are those of the file", loads, media_, body_,
         polygons_)

for ending_ in ("; charset=utf-8", ";charset=utf-8"):
    case(f"a media type with {ending_!r} is taken", loads, OBJ + ending_, obj_text(), 2)
case("a media type in capitals is taken", loads, "MODEL/OBJ", obj_text(), 2)


UTM = (400000.1, 5600000.2)


def utm(body, corners):
    """The text of a file, its corners moved to UTM coordinates, which float32 has not."""
    text = body.decode()
    for corner in sorted(set(corners), reverse=True):
        for number in ("{}", "{}.0"):
            old = " ".join(number.format(v) for v in corner)
            new = f"{corner[0] + UTM[0]!r} {corner[1] + UTM[1]!r} {corner[2]}"
            text = text.replace("\n" + old + "\n", "\n" + new + "\n")
            text = text.replace("vertex " + old + "\n", "vertex " + new + "\n")
    return text.encode()


def at_utm(media, body):
    global before
    daemon.ask("DELETE", "/v1/locales/format")
    put_locale(daemon, "format")
    answer = put_mesh(daemon, "format", body, media=media)
    check("precision_m" not in answer["import"], f"{answer['import']}")
    equal(answer["bounds"], {"min": [UTM[0], UTM[1], 1], "max": [UTM[0] + 2, UTM[1] + 2, 3]},
          "bounds")
    before = daemon.get("/v1/locales?layers=true").body


MOVED = {"nodes": [{"mesh": 0, "translation": [*UTM, 0]}]}
for name_, media_, body_ in (
        ("PLY as text", PLY, utm(ply_text().replace(b"float", b"double"), CORNERS)),
        ("STL as text", STL, utm(stl_text(), CORNERS)), ("glTF", GLTF, gltf(**MOVED)),
        ("GLB", GLB, glb(**MOVED))):
    case(f"{name_}: coordinates of a map are exact", at_utm, media_, body_)


def rounded(media, body):
    global before
    answer = daemon.ask("PUT", TARGET, body, media=media)
    problem(answer, 422, "0.5", pointer="precision_max_m", limit=0.01, got=0.5)
    refuse(422, body, "precision_max_m=0.4999", ("precision_max_m",), media)
    refuse(400, body, "precision_max_m=-1", ("precision_max_m",), media)
    refuse(400, body, "precision_max_m=x", ("precision_max_m",), media)
    refuse(422, body, "precision_max_m=0.01&scale=0.1", ("0.05",), media)
    daemon.ask("DELETE", "/v1/locales/format")
    put_locale(daemon, "format")
    answer = put_mesh(daemon, "format", body, media=media, query="precision_max_m=0.5")
    equal(answer["import"]["precision_m"], 0.5, "precision_m")
    before = daemon.get("/v1/locales?layers=true").body


for name_, media_, body_ in (
        ("AC3D", AC3D, utm(ac3d(), CORNERS)),
        ("COLLADA", DAE, collada().replace(b"0 0 1 2 0 1", b"0 0 1 2 5600000.2 1")),
        ("glTF that is left to assimp", GLTF,
         gltf(**MOVED).replace(b'"scene"', b'"extensionsRequired": ["KOTA_x"], "scene"', 1))):
    case(f"{name_}: what float32 rounds is refused, and told where it is taken", rounded, media_,
         body_)


@test("nodes of a glTF move and turn what hangs on them, a mesh used twice is there twice")
def _():
    nodes = [{"children": [1, 2], "translation": [10, 0, 0]}, {"mesh": 0},
             {"mesh": 0, "translation": [0, 0, 5], "scale": [2, 2, 2]}]
    put_locale(daemon, "nodes")
    global before
    answer = put_mesh(daemon, "nodes", gltf(nodes=nodes), media=GLTF)
    equal(answer["import"]["kept"], 6, "kept")
    equal(answer["bounds"], {"min": [10, 0, 1], "max": [14, 4, 11]}, "bounds")
    before = daemon.get("/v1/locales?layers=true").body


@test("octet-stream with format= is each of the formats")
def _():
    global before
    for word, body in (("obj", obj_text()), ("ply", ply_binary()), ("stl", stl_binary()),
                       ("glb", glb()), ("gltf", gltf()), ("ac", ac3d()), ("dae", collada())):
        daemon.ask("DELETE", "/v1/locales/format")
        put_locale(daemon, "format")
        answer = put_mesh(daemon, "format", body, media="application/octet-stream",
                          query="format=" + word)
        equal(answer["bounds"], {"min": [0, 0, 1], "max": [2, 2, 3]}, word)
    before = daemon.get("/v1/locales?layers=true").body


@test("up=y and scale hold for every format")
def _():
    global before
    for name, media, body, _ in FORMATS:
        daemon.ask("DELETE", "/v1/locales/format")
        put_locale(daemon, "format")
        answer = put_mesh(daemon, "format", body, media=media, query="up=y&scale=2")
        equal(answer["bounds"], {"min": [0, -6, 0], "max": [4, -2, 4]}, name)
    before = daemon.get("/v1/locales?layers=true").body


# ---- real files ---------------------------------------------------------------------------------

# (folder, file, media, query, kept, dropped, bounds as SOURCES.md tells them: Y up, or None).
# Dropped are exactly the polygons of no area. Faces of .dae stay as they are: the box has 16.
REAL = [
    ("meshes", "recast_dungeon.obj", OBJ, "up=y", 10133, 0,
     (-25.0152, -0.0027, -90.0413), (49.3051, 40.1766, 8.8912)),
    ("meshes", "gazebo_parking_garage.obj", OBJ, "up=y", 6412, 1,
     (-30.2362, -0.0012, -20.2849), (30.2362, 45.9039, 21.2403)),
    ("meshes", "gazebo_parking_garage.dae", DAE, "up=z", 6412, 1,
     (-30.2362, -0.0012, -20.2849), (30.2362, 45.9039, 21.2403)),
    ("meshes", "sauerbraten_zdm2.obj", OBJ, "up=y", 70691, 63, (-434, 0, -304), (434, 324, 304)),
    ("meshes", "floor_is_lava_map.ply", PLY, "up=z", 15960, 0, None, None),
    ("meshes-sharealike", "torcs_g-track-2.obj", OBJ, "up=y", 13004, 0,
     (-528.124, -37.9531, -1309.67), (1732.67, 63.2915, 500)),
    ("meshes-sharealike", "torcs_g-track-2.acc", AC3D, "up=y", 13004, 0,
     (-528.124, -37.9531, -1309.67), (1732.67, 63.2915, 500)),
    ("objects", "RockA.glb", GLB, "up=y", 248, 0,
     (-2.5272, -3.9829, -3.5925), (2.6677, 3.4231, 3.54)),
    ("objects", "sphere.obj", OBJ, "up=y", 1280, 0, (-1, -1, -1), (1, 1, 1)),
    ("objects", "construction_barrel.dae", DAE, "up=z", 1184, 0,
     (-0.5099, 0, -0.5099), (0.5099, 1.55, 0.5099)),
    ("objects", "cardboard_box.dae", DAE, "up=z", 16, 0,
     (-0.1985, 0, -0.1985), (0.1985, 0.397, 0.1985)),
]


def real_file(folder, name, media, query, kept, dropped, low, high):
    """Counts, bounds and statistics."""
    with open(data_path(folder, name), "rb") as file:
        body = file.read()
    locale = "real-" + name.replace(".", "-")
    daemon.ok("PUT", f"/v1/locales/{locale}", {"title": name}, status=201)
    answer = put_mesh(daemon, locale, body, media=media, query=query)
    told = answer["import"]
    equal([told["kept"], told["split"], told["dropped"]], [kept, 0, dropped], "import")
    equal(sum(told.get("reasons", {}).values()), dropped, "reasons")
    # what assimp reads is rounded to float32, by far less than a millimetre here
    equal("precision_m" in told, media in (DAE, AC3D), "precision_m")
    check(told.get("precision_m", 0) < 1e-3, f"{told}")
    stats = daemon.ok("GET", f"/v1/locales/{locale}/layers/mesh/stats")
    equal(stats["polygons"], kept, "polygons")
    check(1 < stats["average_tests"] < 45 and stats["depth"] <= 12, f"{stats}")
    print(f"# {name}: {stats['nodes']} nodes, {stats['leaves']} leaves, depth {stats['depth']}, "
          f"{stats['bytes']} bytes, {stats['average_tests']:.2f} tests")
    if low:
        low, high = (low[0], -high[2], low[1]), (high[0], -low[2], high[1])
        for got, want in ((answer["bounds"]["min"], low), (answer["bounds"]["max"], high)):
            for a, b in zip(got, want):
                near(a, b, f"bounds {got}", 1e-3, 0.2)
    global before
    before = daemon.get("/v1/locales?layers=true").body


for row_ in REAL:
    case(f"{row_[1]}: polygons, bounds and statistics of a real file", real_file, *row_)


def needed(locale):
    if daemon.get(f"/v1/locales/{locale}").status == 404:
        raise Skip(f"{locale} is not loaded")


@test("the dungeon's floors and ceilings are the oracle's, line by line, from above and below")
def _():
    needed("real-recast_dungeon-obj")
    with open(data_path("meshes", "recast_dungeon.oracle.csv")) as file:
        rows = [row for row in csv.DictReader(file) if row["stable"] == "1"]
    check(len(rows) > 200, f"{len(rows)} rows")
    points, want = [], []
    for row in rows:
        heights = [float(part.split(":")[0]) for part in row["heights_high_to_low"].split(";")
                   if part]
        x, y = float(row["x"]), -float(row["z"])
        edges = [100.0, *heights, -100.0]
        for high, low in zip(edges, edges[1:]):
            if high - low < 1e-3:
                continue
            points.append([x, y, (high + low) / 2])
            want.append((low if low > -100 else None, high if high < 100 else None))
    many = 0
    for i in range(0, len(points), 5000):
        got = results(daemon, "/v1/locales/real-recast_dungeon-obj/contact",
                      {"points": points[i:i + 5000], "reach_up": 0}, len(points[i:i + 5000]))
        for point, (floor, ceiling), item in zip(points[i:], want[i:], got):
            for member, height in (("floor", floor), ("ceiling", ceiling)):
                z = item[member] and item[member]["point"][2]
                near(z, height, f"{member} at {point}", 1e-5)
                many += height is not None
    check(many > 600, f"{many} surfaces compared")
    tops = [[float(row["x"]), -float(row["z"])] for row in rows]
    got = results(daemon, "/v1/locales/real-recast_dungeon-obj/height", {"points": tops},
                  len(tops))
    for row, point, item in zip(rows, tops, got):
        text = row["heights_high_to_low"]
        near(item["height"], float(text.split(":")[0]) if text else None, f"height at {point}",
             1e-5)


@test("rays through the dungeon are those of brute force")
def _():
    needed("real-recast_dungeon-obj")
    with open(data_path("meshes", "recast_dungeon.obj")) as file:
        rings = read_obj(file.read(), up_y=True)
    world = World([MeshLayer(thick(rings))])
    index = [i for i, ring in enumerate(rings) if is_thick(ring)]
    random = rng("dungeon rays")
    low, high = world.bounds()
    rays = []
    for _ in range(60 if SLOW == 1 else 15):
        a, b = ([p + (q - p) * random.random() for p, q in zip(low, high)] for _ in range(2))
        rays.append({"origin": a, "direction": [q - p for p, q in zip(a, b)]})
    got = results(daemon, "/v1/locales/real-recast_dungeon-obj/ray", {"rays": rays}, len(rays))
    hits = 0
    for ray, item in zip(rays, got):
        if item["polygon"] is not None:
            item = {**item, "polygon": index.index(item["polygon"])}
        hits += judge_ray(world, ray, item)
    check(hits > len(rays) // 8, f"{hits} hits of {len(rays)}")


def is_thick(ring):
    a, b, c = ring[:3]
    u, v = [q - p for p, q in zip(a, b)], [q - p for p, q in zip(a, c)]
    n = (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])
    return math.hypot(*n) > 1e-9


def thick(rings):
    return [ring for ring in rings if is_thick(ring)]


@test("a .dae and the .obj made of it have floors at the same heights")
def _():
    needed("real-gazebo_parking_garage-obj")
    needed("real-gazebo_parking_garage-dae")
    box = daemon.ok("GET", "/v1/locales/real-gazebo_parking_garage-obj")["bounds"]
    random = rng("garage")
    points = [[p + (q - p) * random.random() for p, q in zip(box["min"], box["max"])]
              for _ in range(400)]
    pair = [results(daemon, f"/v1/locales/real-gazebo_parking_garage-{kind}/contact",
                    {"points": points}, 400) for kind in ("obj", "dae")]
    differing = sum(
        abs((x["floor"]["point"][2] if x["floor"] else -1e9)
            - (y["floor"]["point"][2] if y["floor"] else -1e9)) > 1e-3 for x, y in zip(*pair))
    check(differing <= 4, f"{differing} of 400 floors differ")


# ---- refusals: queries and media types ----------------------------------------------------------

GOOD = obj(SQUARE)
for query_, status_, words_ in (
        ("role=foo", 400, ("role", "foo")), ("role=", 400, ("role",)), ("up=w", 400, ("up", "w")),
        ("up=x", 400, ("up",)), ("scale=0", 400, ("scale", "0")),
        ("scale=-1", 400, ("scale", "-1")), ("scale=nan", 400, ("scale",)),
        ("scale=inf", 400, ("scale",)), ("scale=big", 400, ("scale", "big")),
        ("scale=1e308", 400, ()), ("gravity=in", 422, ("gravity=in", "cartesian")),
        ("frame=round", 400, ("frame", "round")), ("colour=red", 400, ("colour",)),
        ("spacing=1,1", 400, ("spacing",)), ("cols=3", 400, ("cols",)),
        ("flip_y=true", 400, ("flip_y",)), ("role=ground&role=ceiling", 400, ("role",))):
    case(f"?{query_} is {status_} and named", refuse, status_,
         obj([rectangle(0, 0, 20, 20, 100)]) if query_ == "scale=1e308" else GOOD, query_, words_)

for query_ in ("role=ceiling", "up=y", "scale=2", "frame=cartesian"):
    case(f"a heightfield does not take ?{query_}", refuse, (400, 422),
         struct.pack("<4f", 0, 0, 0, 0), "cols=2&rows=2&spacing=1,1&" + query_,
         (query_.split("=")[0],), "application/vnd.kota.f32",
         target="/v1/locales/land/layers/ground")

for media_ in ("model/vrml", "text/html", "model/", "application/json", "image/jpeg"):
    case(f"{media_} is 415 and named", refuse, 415, GOOD, "", (media_,), media_)
case("an unknown locale is 404", refuse, 404, GOOD, "", ("atlantis",),
     target="/v1/locales/atlantis/layers/mesh")
case("a bad layer id is 400", refuse, (400, 404), GOOD, "", (),
     target="/v1/locales/meshes/layers/a.b")

# ---- refusals: OBJ ------------------------------------------------------------------------------

TRIANGLE = b"v 0 0 0\nv 1 0 0\nv 0 1 0\n"
for what_, body_, status_, words_ in (
        ("no bytes", b"", (400, 422), ()),
        ("garbage", b"hello world\n" * 50, (400, 422), ("polygon",)),
        ("vertices alone", TRIANGLE, (400, 422), ("polygon",)),
        ("a NaN", TRIANGLE.replace(b"1 0 0", b"1 nan 0") + b"f 1 2 3\n", 400, ("line 2",)),
        ("an infinity", TRIANGLE.replace(b"1 0 0", b"1 inf 0") + b"f 1 2 3\n", 400, ("line 2",)),
        ("1e999", TRIANGLE.replace(b"1 0 0", b"1 1e999 0") + b"f 1 2 3\n", 400, ("line 2",)),
        ("a vertex of two numbers", b"v 0 0\n" + TRIANGLE + b"f 1 2 3\n", 400, ("line 1",)),
        ("a word for a number", b"v 0 x 0\n" + TRIANGLE + b"f 2 3 4\n", 400, ("line 1",)),
        ("an index beyond the vertices", TRIANGLE + b"f 1 2 4\n", 400, ("line 4", "4")),
        ("index 0", TRIANGLE + b"f 0 1 2\n", 400, ("line 4",)),
        ("an index back beyond the first", TRIANGLE + b"f -1 -2 -4\n", 400, ("line 4",)),
        ("an index of 2^40", TRIANGLE + b"f 1 2 1099511627776\n", 400, ("line 4",)),
        ("an index of half", TRIANGLE + b"f 1 2 2.5\n", 400, ("line 4",)),
        ("a face of two corners", TRIANGLE + b"f 1 2\n", (400, 422), ()),
        ("a face of no corners", TRIANGLE + b"f\nf 1 2 3\n", 400, ("line 4",)),
        ("nothing but degenerate polygons", TRIANGLE + b"f 1 1 1\nf 1 2 1\n", 422, ("polygon",)),
        ("vertices too far away to be told apart", b"v 0 0 0\nv 1e300 0 0\nv 0 1e300 0\nf 1 2 3\n",
         (400, 422), ())):
    case(f"an OBJ of {what_} is refused", refuse, status_, body_, "", words_)


@test("an import tells which polygons it dropped and why; a strict one is refused, and changes nothing")
def _():
    global before
    daemon.ok("PUT", "/v1/locales/dropped", {}, status=201)
    target = "/v1/locales/dropped/layers/mesh"
    body = (TRIANGLE + b"v 1 1 0\nv 1 1 0.5\n" +
            b"f 1 2 3\nf 1 2 1\nf 1 4 2 3\nf 1 5 2 3\nf 1 2 2\n")
    refused = daemon.put(target + "?strict=true", body, media=OBJ)
    problem(refused, 422, "3 polygons", "polygon 1", "corners", pointer="strict")
    equal(daemon.get(target).status, 404, "the layer after that")
    put = daemon.ok("PUT", target, body, status=201, media=OBJ)
    equal(put["import"], {
        "kept": 3, "split": 1, "dropped": 3, **NOT_SHARED,
        "reasons": {"few_corners": 2, "crosses_itself": 1},
        "dropped_polygons": [{"polygon": 1, "reason": "few_corners"},
                             {"polygon": 2, "reason": "crosses_itself"},
                             {"polygon": 4, "reason": "few_corners"}]}, "import")
    change = {"polygons": [[[0, 0, 9], [1, 0, 9], [0, 1, 9]], [[0, 0, 9], [1, 1, 9]]]}
    problem(daemon.post(target + "/polygons", {**change, "strict": True}), 422, "1 polygons",
            "polygon 1", pointer="/strict")
    changed = daemon.ok("POST", target + "/polygons", change)
    equal((changed["import"]["dropped_polygons"], changed["added"]),
          ([{"polygon": 1, "reason": "few_corners"}], [5, None]), "of the change")
    before = daemon.get("/v1/locales?layers=true").body


@test("an import that takes too long is 413 with the limit, and the next one is taken")
def _():
    with Daemon("--max-import-ms", "1") as slow:
        slow.ok("PUT", "/v1/locales/a", {}, status=201)
        body = TRIANGLE + b"f 1 2 3\n" * 400_000
        problem(slow.put("/v1/locales/a/layers/mesh", body, media=OBJ), 413, "1 ms", limit=1)
        slow.ok("GET", "/v1/locales/a")
        equal(slow.ok("GET", "/v1/limits")["import_ms_max"], 1, "import_ms_max")


def stars(count, corners):
    """OBJ of one concave ring, as many times: each takes milliseconds to split."""
    lines = []
    for i in range(corners):
        turn, far = 2 * math.pi * i / corners, 50 if i % 2 else 100
        lines.append(f"v {far * math.cos(turn):.6f} {far * math.sin(turn):.6f} 0")
    face = "f " + " ".join(str(i) for i in range(1, corners + 1))
    return "\n".join(lines + [face] * count).encode()


def upload_of(path, body, port):
    one = socket.create_connection(("127.0.0.1", port), timeout=HANG_S)
    one.sendall(f"PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {OBJ}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return one


def client_goes(linger):
    with Daemon() as some:
        some.ok("PUT", "/v1/locales/a", {}, status=201)
        body, path = stars(400, 4095), "/v1/locales/a/layers/mesh"
        with upload_of(path, body, some.port) as gone:
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", *linger))
            until = time.monotonic() + HANG_S
            while not json.loads(some.get("/v1/stats").body)["http"]["workers_busy"]:
                check(time.monotonic() < until, "no worker took the import")
        until = time.monotonic() + HANG_S
        while f"PUT {path} 503" not in some.log_text():
            check(time.monotonic() < until, f"the import went on: {some.log_text()[-500:]}")
            time.sleep(0.05)
        equal(some.get(path).status, 404, "the layer")


for how_, linger_ in (("by a reset", (1, 0)), ("as clients end", (0, 0))):
    case(f"an import whose client has gone, {how_}, ends without a layer", client_goes, linger_)


@test("a client that has sent its end and waits gets the answer of a long import")
def _():
    with Daemon() as some:
        some.ok("PUT", "/v1/locales/a", {}, status=201)
        with upload_of("/v1/locales/a/layers/mesh", stars(400, 1023), some.port) as one:
            one.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: one.recv(65536), b""))
        interim = b"HTTP/1.1 100 Continue\r\n\r\n"
        check(answer.removeprefix(interim).startswith(b"HTTP/1.1 201 "), f"{answer[:300]}")
        equal(json.loads(answer.rpartition(b"\r\n\r\n")[2])["import"]["split"], 400, "split")


@test("2,000,001 polygons are 413 with limit and got")
def _():
    document = refuse(413, TRIANGLE + b"f 1 2 3\n" * 2_000_001)
    equal((document["limit"], document["got"]), (2_000_000, 2_000_001), "limit and got")


@test("the limit of polygons is among the limits that the daemon tells")
def _():
    limits = json.dumps(daemon.ok("GET", "/v1/limits"))
    check("2000000" in limits and "polygon" in limits, f"limits: {limits}")


@test("a polygon of 100,000 corners is answered or refused in bounded time")
def _():
    count = 100_000
    ring = [(math.cos(i * 2 * math.pi / count), math.sin(i * 2 * math.pi / count), 0.0)
            for i in range(count)]
    comb = [(float(i), float(i % 2), 0.0) for i in range(20000)] + [(2e4, -5.0, 0.0),
                                                                   (-1.0, -5.0, 0.0)]
    global before
    for body in (obj([ring] + SQUARE), obj([comb] + SQUARE)):
        daemon.ask("DELETE", "/v1/locales/corners")
        put_locale(daemon, "corners")
        answer = daemon.put("/v1/locales/corners/layers/mesh", body, media=OBJ)
        check(answer.status in (201, 400, 413, 422), f"{answer}")
        if answer.status == 201:
            check(answer.json["import"]["kept"] >= 1, f"{answer}")
    before = daemon.get("/v1/locales?layers=true").body


# ---- refusals: the others -----------------------------------------------------------------------


def broken(media, body, status=(400, 413, 422), words=()):
    refuse(status, body, "", words, media)


def bad_ply(old, new):
    return ply_text().replace(old, new)


CYCLE = [{"children": [1]}, {"children": [2], "mesh": 0}, {"children": [0]}]
SELF = [{"mesh": 0, "children": [0]}]
for what_, media_, body_ in (
        ("PLY with a NaN", PLY, bad_ply(b"2 0 1", b"nan 0 1")),
        ("binary PLY with a NaN", PLY, ply_binary().replace(struct.pack("<f", 3.0),
                                                            struct.pack("<f", math.nan))),
        ("binary STL with an infinity", STL, stl_binary().replace(struct.pack("<f", 3.0),
                                                                  struct.pack("<f", math.inf))),
        ("PLY with an index out of range", PLY, bad_ply(b"3 4 5 6", b"3 4 5 99")),
        ("PLY with a negative index", PLY, bad_ply(b"3 4 5 6", b"3 4 5 -1")),
        ("PLY that promises 10^9 faces", PLY, bad_ply(b"element face 2", b"element face 1000000000")
         ),
        ("PLY without faces", PLY, bad_ply(b"element face 2", b"element face 0")),
        ("STL that promises 10^9 triangles", STL, stl_binary()[:80] + struct.pack("<I", 10 ** 9)
         + stl_binary()[84:]),
        ("STL of no triangles", STL, bytes(80) + struct.pack("<I", 0)),
        ("glTF that refers to a file", GLTF, gltf(uri="mesh.bin")),
        ("glTF that refers to /etc/passwd", GLTF, gltf(uri="/etc/passwd")),
        ("glTF that refers to file:///etc/passwd", GLTF, gltf(uri="file:///etc/passwd")),
        ("glTF that refers to ../../secret", GLTF, gltf(uri="../../secret.bin")),
        ("glTF that refers to http://127.0.0.1/", GLTF, gltf(uri="http://127.0.0.1/x.bin")),
        ("glTF whose nodes go in a circle", GLTF, gltf(nodes=CYCLE)),
        ("glTF whose node is its own child", GLTF, gltf(nodes=SELF)),
        ("GLB whose nodes go in a circle", GLB, glb(nodes=CYCLE)),
        ("glTF with an index out of range", GLTF, gltf().replace(b'"count": 7', b'"count": 5')),
        ("glTF with an accessor beyond its buffer", GLTF,
         gltf().replace(b'"count": 9', b'"count": 900')),
        ("glTF of no mesh", GLTF, b'{"asset":{"version":"2.0"}}'),
        ("glTF that is no JSON", GLTF, b'{"asset":'),
        ("GLB that is a glTF", GLB, gltf()), ("glTF that is a GLB", GLTF, glb()),
        ("GLB of version 7", GLB, glb()[:4] + struct.pack("<I", 7) + glb()[8:]),
        ("GLB longer than it is", GLB, glb()[:8] + struct.pack("<I", 10 ** 9) + glb()[12:]),
        ("AC3D with an index out of range", AC3D, ac3d().replace(b"6 0 0", b"66 0 0")),
        ("AC3D of nothing", AC3D, b"AC3Db\n"),
        ("COLLADA that is no XML", DAE, b"<COLLADA><asset>"),
        ("COLLADA with an index out of range", DAE, collada().replace(b"4 5 6</p>", b"4 5 66</p>")),
        ("COLLADA with an entity bomb", DAE, collada().replace(
            b'<?xml version="1.0"?>', b'<?xml version="1.0"?><!DOCTYPE z [<!ENTITY a "aaaaaaaaaa">'
            + b"".join(b'<!ENTITY %c "%s">' % (98 + i, (b"&%c;" % (97 + i)) * 10)
                       for i in range(12)) + b"]>").replace(b"4 5 6</p>", b"4 5 &m;</p>"))):
    case(f"{what_} is refused", broken, media_, body_)


@test("a glTF that refers to a file says which one, and what must be inside")
def _():
    document = refuse((400, 422), gltf(uri="mesh.bin"), media=GLTF)
    check("mesh.bin" in document["detail"] or "file" in document["detail"]
          or "buffer" in document["detail"], f"{document['detail']}")


def truncated(media, body, is_text):
    """Cuts at the beginning, in the middle, at the end; each refused, or a part of the whole."""
    global before
    cuts = sorted({0, 1, 4, 11, 40, len(body) // 4, len(body) // 2, len(body) * 3 // 4,
                   len(body) - 8, len(body) - 1})
    refused = 0
    for cut in cuts:
        answer = daemon.put("/v1/locales/meshes/layers/cut", body[:cut], media=media)
        what = f"cut at {cut} of {len(body)}"
        check(daemon.is_alive(), f"the daemon died: {what}")
        if answer.status in (200, 201):
            daemon.ask("DELETE", "/v1/locales/meshes/layers/cut")
            before = daemon.get("/v1/locales?layers=true").body
            check(is_text, f"{what} was taken: {answer}")
            check(answer.json["import"]["kept"] <= 3, f"{what}: {answer}")
            continue
        refused += 1
        check(answer.status in (400, 422), f"{what}: {answer}")
        problem(answer, answer.status)
        unchanged()
    check(refused >= 5, f"{refused} of {len(cuts)} refused")


for name_, media_, body_, _ in FORMATS:
    case(f"{name_} cut short anywhere is refused, or a part of the whole", truncated, media_, body_,
         name_ in ("OBJ", "PLY as text", "STL as text", "AC3D"))


@test("one format under another's media type is refused")
def _():
    for name, media, _, _ in FORMATS:
        for _, its_own, body, _ in FORMATS:
            if media in (OBJ, its_own) or SLOW > 1 and name[0] != "G":
                continue
            refuse((400, 422), body, media=media)


@test("random bytes and flipped bits of each format never end the daemon")
def _():
    global before
    random = rng("flips")
    for _, media, body, _ in FORMATS:
        for _ in range(8 if SLOW == 1 else 2):
            bad = bytearray(body)
            for _ in range(random.randrange(1, 6)):
                bad[random.randrange(len(bad))] = random.randrange(256)
            answer = daemon.put("/v1/locales/meshes/layers/flip", bytes(bad), media=media)
            check(answer.status in (200, 201, 400, 413, 422), f"{media}: {answer}")
            check(daemon.is_alive(), "the daemon died")
    daemon.ask("DELETE", "/v1/locales/meshes/layers/flip")
    before = daemon.get("/v1/locales?layers=true").body


@test("questions are answered while a hostile upload is judged")
def _():
    item = results(daemon, "/v1/locales/meshes/contact", {"points": [[1, 1, 5]]}, 1)[0]
    equal(item["floor"]["point"], [1, 1, 1], "the mesh is what it was")
    got = daemon.ok("GET", "/v1/locales/meshes")
    equal([layer["id"] for layer in got["layers"]], ["mesh"], "layers")


@test("other questions are answered while a large upload is built, also with one loop")
def _():
    with Daemon("--loops", "1") as single:
        put_locale(single, "big")
        put_mesh(single, "big", SQUARE, "small")
        body = TRIANGLE + b"f 1 2 3\n" * (400_000 if SLOW == 1 else 40_000)
        answers = []

        def upload():
            connection = connection_to(single.port, timeout=HANG_S)
            connection.request("PUT", "/v1/locales/big/layers/heap", body=body,
                               headers={"Content-Type": OBJ})
            answer = connection.getresponse()
            answers.append((answer.status, answer.read()))
            connection.close()
        thread = threading.Thread(target=upload)
        thread.start()
        answered = 0
        while thread.is_alive():
            item = results(single, "/v1/locales/big/contact", {"points": [[1.5, 1.5, 5]]}, 1)[0]
            equal(item["floor"]["point"], [1.5, 1.5, 1], "the small mesh")
            answered += 1
        thread.join()
        equal(answers[0][0], 201, f"{answers[0][1][:300]}")
        equal(json.loads(answers[0][1])["import"]["kept"], body.count(b"f"), "kept")
        check(answered >= 20, f"{answered} questions answered meanwhile")


def children(daemon):
    """Processes that this one has started and not yet waited for."""
    found = daemon.threads("children")
    if not found:
        raise Skip("no /proc/…/children here")
    return "".join(found.values()).split()


@test("uploads at the same time are each answered, and leave no process behind")
def _():
    global before
    put_locale(daemon, "crowd")
    statuses = []

    def upload(number):
        _, media, body, _ = FORMATS[number % len(FORMATS)]
        if number % 3 == 2:
            body = body[:len(body) // 2]
        connection = connection_to(daemon.port, timeout=HANG_S)
        connection.request("PUT", f"/v1/locales/crowd/layers/m{number}", body=body,
                           headers={"Content-Type": media})
        answer = connection.getresponse()
        answer.read()
        statuses.append((number, answer.status))
        connection.close()
    threads = [threading.Thread(target=upload, args=(number,)) for number in range(18)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, status in sorted(statuses):
        name, cut = FORMATS[number % len(FORMATS)][0], number % 3 == 2
        check(status in ((201, 400, 422) if cut else (201,)), f"{name}, cut {cut}: {status}")
    equal(len(statuses), 18, "answers")
    equal(children(daemon), [], "processes left")
    daemon.ok("DELETE", "/v1/locales/crowd", status=204)
    before = daemon.get("/v1/locales?layers=true").body


@test("hundreds of uploads, taken and refused, leave memory where it was")
def _():
    global before
    put_locale(daemon, "again")
    body = obj([[(x + i, y, z) for x, y, z in ring] for i in range(300) for ring in SQUARE])

    def upload(count):
        for i in range(count):
            answer = daemon.put("/v1/locales/again/layers/m", body, media=OBJ)
            check(answer.status in (200, 201), f"{answer}")
            bad = body[:-20] + b"f 1 2 999999\n" if i % 2 else TRIANGLE + b"f 1 1 1\n"
            problem(daemon.put("/v1/locales/again/layers/m", bad, media=OBJ), 400 if i % 2 else 422)
    upload(60)
    start = daemon.memory_kib()
    upload(300 if SLOW == 1 else 60)
    grown = daemon.memory_kib() - start
    check(grown < 16 * 1024 * SLOW, f"{grown} KiB more")
    daemon.ok("DELETE", "/v1/locales/again", status=204)
    before = daemon.get("/v1/locales?layers=true").body


@test("SIGTERM during an upload ends the daemon in order, and its reader of files with it")
def _():
    faces = b"".join(struct.pack("<B3i", 3, i, i + 1, i + 2) for i in range(200_000))
    corners = b"".join(struct.pack("<3f", i % 400, i // 400, i % 3) for i in range(200_002))
    head = ply_binary().split(b"end_header")[0].replace(b"vertex 7", b"vertex 200002")
    body = head.replace(b"face 2", b"face 200000") + b"end_header\n" + corners + faces
    single = Daemon()
    answers, left = [], []
    try:
        put_locale(single, "big")

        def upload():
            connection = connection_to(single.port, timeout=HANG_S)
            try:
                connection.request("PUT", "/v1/locales/big/layers/m", body=body,
                                   headers={"Content-Type": PLY})
                answers.append(connection.getresponse().status)
            except (OSError, http.client.HTTPException) as error:
                answers.append(repr(error))
            connection.close()
        thread = threading.Thread(target=upload)
        thread.start()
        deadline = time.monotonic() + HANG_S
        while not left and thread.is_alive() and time.monotonic() < deadline:
            left = children(single)
    finally:
        single.stop()
    thread.join()
    for pid in left:
        check(not os.path.exists(f"/proc/{pid}"), f"process {pid} is left; {answers}")


# ---- world folders ------------------------------------------------------------------------------


def world_folder(layers, files, manifest=None):
    folder = tempfile.mkdtemp(prefix="kota-test-")
    folders.append(folder)
    os.mkdir(os.path.join(folder, "town"))
    for name, body in {**files, "locale.json": json.dumps({**(manifest or {}), "layers": layers}
                                                         ).encode()}.items():
        with open(os.path.join(folder, "town", name), "wb") as file:
            file.write(body)
    return folder


folders = []


@test("--world loads mesh layers of each ending, with role, up and scale")
def _():
    names = {"a.obj": obj_text(), "b.ply": ply_binary(), "c.stl": stl_text(), "d.glb": glb(),
             "e.gltf": gltf(), "f.ac": ac3d(), "g.dae": collada(), "H.OBJ": obj_text()}
    layers = [{"id": name.split(".")[0], "file": name} for name in names]
    layers.append({"id": "roof", "file": "a.obj", "role": "ceiling", "up": "y", "scale": 2})
    with Daemon("--world", world_folder(layers, names, {"open_sky": False})) as town:
        locale = town.ok("GET", "/v1/locales/town")
        equal({layer["id"] for layer in locale["layers"]}, {layer["id"] for layer in layers},
              "layers")
        for layer in locale["layers"]:
            roof = layer["id"] == "roof"
            equal((layer["kind"], layer["role"]), ("mesh", "ceiling" if roof else "ground"),
                  layer["id"])
            equal(layer["bounds"], {"min": [0, -6, 0], "max": [4, -2, 4]} if roof else
                  {"min": [0, 0, 1], "max": [2, 2, 3]}, layer["id"])


@test("a mesh file on the command line takes the query of PUT; the layer is ground")
def _():
    folder = world_folder([], {"square.obj": obj_text()})
    path = os.path.join(folder, "town", "square.obj")
    with Daemon(path + "?up=y&scale=2") as town:
        locale = town.ok("GET", "/v1/locales/square")
        equal([(layer["id"], layer["kind"]) for layer in locale["layers"]], [("ground", "mesh")],
              "layers")
        equal(locale["bounds"], {"min": [0, -6, 0], "max": [4, -2, 4]}, "bounds")


def bad_world(layer, words):
    folder = world_folder([{"id": "m", "file": "m.obj", **layer}],
                          {"m.obj": obj_text(), "cut.glb": glb()[:100],
                           "nan.obj": b"v 0 0 nan\nf 1 1 1\n", "none.obj": b"v 1 2 3\n"})
    started = Daemon("--world", folder, wait=False)
    try:
        status = started.process.wait(timeout=HANG_S)
        log = started.log_text()
        check(status != 0, f"it ended with 0: {log}")
        for word in ("town", *words):
            check(word in log, f"{word!r} is not named: {log}")
    finally:
        started.kill()


for what_, layer_, words_ in (
        ("an unknown role", {"role": "foo"}, ("role",)), ("an unknown axis", {"up": "w"}, ("up",)),
        ("scale 0", {"scale": 0}, ("scale",)), ("a spacing", {"spacing": [1, 1]}, ("spacing",)),
        ("a file that is cut", {"file": "cut.glb"}, ("cut.glb",)),
        ("a vertex that is NaN", {"file": "nan.obj"}, ("nan.obj", "line 1")),
        ("a file of no polygons", {"file": "none.obj"}, ("none.obj", "polygon")),
        ("no such file", {"file": "away.obj"}, ("away.obj",)),
        ("a file outside", {"file": "../m.obj"}, ("../m.obj",))):
    case(f"a world whose mesh has {what_} is refused, and named", bad_world, layer_, words_)


@test("a file keeps its numbers to the bit: float32 of binary ones, the digits of a text")
def _():
    global before
    text = ply_text().replace(b"0 3\n", b"0 0.1\n").replace(b"1 3\n", b"1 0.1\n")
    binary = ply_binary().replace(struct.pack("<f", 3), struct.pack("<f", 0.1))
    put_locale(daemon, "bits")
    for body, height in ((binary, f32(0.1)), (text, 0.1)):
        daemon.ask("DELETE", "/v1/locales/bits/layers/mesh")
        put_mesh(daemon, "bits", body, media=PLY)
        item = results(daemon, "/v1/locales/bits/contact", {"points": [[0.25, 0.25, 0.5]], "reach_up": 0},
                       1)[0]
        equal(item["floor"]["point"][2], height, "0.1")
    before = daemon.get("/v1/locales?layers=true").body


def finish():
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    daemon.stop()


run(finish)
