"""Layers that move: poses against brute force, velocity, events, what is kept, bad input."""
import json
import math
import os
import sqlite3
import struct
import tempfile
import threading
import time

from daemon import F64, JSON, Daemon, check, connect, equal, problem
from events import Stream
from mesh_oracle import obj, rectangle
from oracle import add, cross, dot, scale, sub, unit
from tap import HANG_S, near, near_all, rng, run, test

daemon = Daemon()
folder = tempfile.TemporaryDirectory(prefix="kota-test-")


class Second(Daemon):
    """Another connection to the daemon, for another thread."""

    def __init__(self, port):
        self.port = port
        self.connection = self.front = None

    def __exit__(self, *_):
        self.connection.close()


def locale(name):
    return f"/v1/locales/{name}"


def put_locale(name, manifest=None, where=None):
    (where or daemon).ok("PUT", locale(name), manifest or {}, status=201)


def put_mesh(name, layer, rings, role="ground", where=None, status=201):
    return (where or daemon).ok("PUT", f"{locale(name)}/layers/{layer}?role={role}", obj(rings),
                                status=status, media="model/obj")


def move(name, layer, translation, yaw_deg=0, where=None):
    return (where or daemon).ok("PUT", f"{locale(name)}/layers/{layer}/transform",
                                {"translation": list(translation), "yaw_deg": yaw_deg})


def contact(name, points, where=None, **options):
    answer = (where or daemon).ok("POST", locale(name) + "/contact",
                                  {"points": [list(p) for p in points], **options})
    return answer["results"]


def layer_of(document, layer):
    return next(one for one in document["layers"] if one["id"] == layer)


# ---- brute force -----------------------------------------------------------------------------------


def turned(up, yaw_deg, v):
    """v turned about up, by a matrix."""
    c, s = math.cos(math.radians(yaw_deg)), math.sin(math.radians(yaw_deg))
    k = 1 - c
    x, y, z = up
    rows = ((c + x * x * k, x * y * k - z * s, x * z * k + y * s),
            (y * x * k + z * s, c + y * y * k, y * z * k - x * s),
            (z * x * k - y * s, z * y * k + x * s, c + z * z * k))
    return tuple(dot(row, v) for row in rows)


def placed(up, translation, yaw_deg, ring):
    return [add(turned(up, yaw_deg, corner), translation) for corner in ring]


def heights_over(point, up, triangles, margin):
    """Levels over the point of the triangles above and below it; None when an edge is too near."""
    found = []
    for a, b, c in triangles:
        normal = cross(sub(b, a), sub(c, a))
        rise = dot(normal, up)
        t = dot(sub(a, point), normal) / rise
        at = add(point, scale(up, t))
        sides = []
        for p, q in ((a, b), (b, c), (c, a)):
            edge = sub(q, p)
            sides.append(dot(cross(edge, sub(at, p)), normal)
                         / (math.sqrt(dot(normal, normal)) * math.sqrt(dot(edge, edge))))
        if abs(min(sides)) < margin:
            return None
        if min(sides) > 0:
            found.append(t)
    return found


def random_triangles(random, up, count, size):
    """Triangles that are no walls."""
    made = []
    while len(made) < count:
        corners = [tuple(random.uniform(-size, size) for _ in range(3)) for _ in range(3)]
        normal = cross(sub(corners[1], corners[0]), sub(corners[2], corners[0]))
        if abs(dot(unit(normal), up)) > 0.1:
            made.append(corners)
    return made


@test("contacts on moved layers are those of their vertices moved by hand, whatever gravity is")
def _():
    random = rng("moved contact")
    for k in range(12):
        up = (0.0, 0.0, 1.0) if k % 3 == 0 else unit(tuple(random.gauss(0, 1) for _ in range(3)))
        name = f"brute{k}"
        put_locale(name, {"gravity": [-v for v in up]})
        all_of = []
        for layer in range(3):
            rings = random_triangles(random, up, 8, 10)
            shift = tuple(random.uniform(-8, 8) for _ in range(3))
            yaw = random.choice((0, 90, -450, random.uniform(-360, 360)))
            put_mesh(name, f"l{layer}", rings)
            move(name, f"l{layer}", (1, 2, 3), 45)
            move(name, f"l{layer}", shift, yaw)
            all_of += [placed(up, shift, yaw, ring) for ring in rings]
        points = [tuple(random.uniform(-12, 12) for _ in range(3)) for _ in range(150)]
        decided = 0
        for point, got in zip(points, contact(name, points, reach_up=0)):
            levels = heights_over(point, up, all_of, 1e-6)
            if levels is None or any(abs(t) < 1e-6 for t in levels):
                continue
            decided += 1
            floor = max((t for t in levels if t <= 0), default=None)
            ceiling = min((t for t in levels if t > 0), default=None)
            for what, want in (("floor", floor), ("ceiling", ceiling)):
                equal(got[what] is None, want is None, f"{what} at {point}")
                if want is None:
                    continue
                near(got[what]["distance"], abs(want), f"distance of the {what}")
                near_all(got[what]["point"], list(add(point, scale(up, want))), what)
                check(dot(got[what]["normal"], up) > 0, "the normal points up")
                check("velocity" in got[what], "no velocity")
        check(decided > 100, f"{decided} points decided anything")
        daemon.ok("DELETE", locale(name), status=204)


@test("every question sees the layer where it stands")
def _():
    put_locale("all", {"open_sky": False})
    put_mesh("all", "deck", [rectangle(-5, -2, 5, 2, 0)])
    put_mesh("all", "roof", [rectangle(-5, -2, 5, 2, 4)], "ceiling")
    for layer in ("deck", "roof"):
        answer = move("all", layer, (100, 50, 10), 90)
    equal(answer["transform_seq"], 2, "transform_seq")
    equal(answer["revision"], 3, "revision")
    equal(layer_of(answer, "roof")["transform"], {"translation": [100, 50, 10], "yaw_deg": 90},
          "transform")
    equal(answer["bounds"], {"min": [98, 45, 10], "max": [102, 55, 14]}, "bounds")
    at, was = [101, 54, 11], [4, 1, 1]
    ask = daemon.ok
    path = locale("all")
    equal([r["status"] for r in ask("POST", path + "/contains", {"points": [at, was]})["results"]],
          ["inside", "outside"], "contains")
    equal(ask("GET", path + "/height?x=101&y=54")["height"], 10, "height")
    equal(ask("GET", path + "/height?x=4&y=1")["status"], "outside", "height where it was")
    heights = ask("POST", path + "/height", {"points": [[101, 54], [4, 1]]})
    equal([r["status"] for r in heights["results"]], ["ok", "outside"], "heights")
    ray = ask("POST", path + "/ray", {"rays": [
        {"origin": [101, 54, 100], "direction": [0, 0, -1]},
        {"origin": [0, 54, 14 - 1e-3], "direction": [1, 0, 1e-5]}]})["results"]
    equal(ray[0]["point"], [101, 54, 14], "ray from above")
    equal(ray[0]["layer"], "roof", "layer")
    near_all(ray[1]["point"], [100, 54, 14], "ray from the side", rel=1e-6)
    sight = ask("POST", path + "/los", {"segments": [
        {"from": [101, 54, 11], "to": [101, 54, 20]}, {"from": [4, 1, 1], "to": [4, 1, 20]},
        {"from": [99, 46, 10], "to": [101, 54, 10]}]})["results"]
    equal([s["visible"] for s in sight], [False, True, True], "sight")
    near(sight[0]["fraction"], 1 / 3, "t of what blocks")
    pick = ask("POST", path + "/pick", {
        "camera": {"eye": [101, 54, 30], "target": [101, 54, 0], "up": [0, 1, 0], "fov_y_deg": 60},
        "viewport": [100, 100], "pixel": [50, 50]})
    near_all(pick["hit"]["point"], [101, 54, 14], "pick")
    foot = ask("POST", path + "/contact", {"footprints": [
        [[99, 46, 11], [101, 46, 11], [100, 54, 11]]]})["results"][0]
    equal(foot["plane"], {"normal": [0, 0, 1], "d": -10}, "footprint")
    for _ in range(2):  # a light that is asked again may have a tree
        lit = ask("POST", path + "/lit", {"points": [at, was, [101, 54, 20]],
                                          "light": {"direction": [0.1, 0, -1]}})["results"]
        equal([r["lit"] for r in lit], [False, True, True], "lit")
    where = ask("POST", "/v1/locate", {"points": [at, was]})["results"]
    equal([r["locale"] for r in where], ["all", None], "locate")
    binary = daemon.ask("POST", path + "/contact", struct.pack("<3d", *at), media=F64)
    equal(struct.unpack("<6d", binary.body), (10, 0, 0, 1, 14, 0), "binary contact")
    daemon.ok("DELETE", path, status=204)


@test("a contact and a hit tell how fast the layer goes there, in the world's frame on /v1 calls")
def _():
    half = math.sqrt(0.5)
    put_locale("fast", {"placement": {"translation": [0, -70000, 0],
                                      "rotation": [0, 0, half, half]}})
    put_mesh("fast", "disc", [rectangle(-5, -5, 5, 5, 0)])
    plain = contact("fast", [(2, 0, 1)])[0]["floor"]
    check("velocity" not in plain, "a layer that never moved has a velocity")
    move("fast", "disc", (0, 0, 0), 0)
    equal(contact("fast", [(2, 0, 1)])[0]["floor"]["velocity"], [0, 0, 0], "after the first pose")
    for attempt in range(50):
        time.sleep(0.02)
        move("fast", "disc", (attempt + 1, 0, 0), 10 * (attempt + 1))
        x = attempt + 1
        floor = contact("fast", [(x, 0, 1), (x + 2, 0, 1)])
        speeds = [f["floor"]["velocity"] for f in floor]
        if speeds[0] != [0, 0, 0] and speeds[1] != [0, 0, 0]:
            break
    check(speeds[0][0] > 0, f"the origin goes east: {speeds}")
    # what is 2 m east of the origin goes round it, as often as the origin goes on
    spin = speeds[0][0] * math.radians(10)
    near_all(speeds[1], [speeds[0][0], 2 * spin, 0], "beside the origin")
    world = (0 - 0.0, -70000 + x, 5)  # the locale's x is the world's y
    for _ in range(20):
        move("fast", "disc", (x, 0, 0), 0)
        time.sleep(0.01)
        x += 1
        move("fast", "disc", (x, 0, 0), 0)
        hit = daemon.ok("POST", "/v1/ray", {"rays": [
            {"origin": [0, -70000 + x, 5], "direction": [0, 0, -1]}]})["results"][0]
        floor = daemon.ok("POST", "/v1/contact", {"points": [[0, -70000 + x, 5]]})["results"][0]
        if hit["velocity"][1] > 0 and floor["floor"]["velocity"][1] > 0:
            break
    near_all(hit["velocity"][:1] + hit["velocity"][2:], [0, 0], "world hit", floor=1e3)
    check(floor["floor"]["velocity"][1] > 0, f"world contact: {floor}")
    deadline = time.monotonic() + HANG_S
    while contact("fast", [(x, 0, 1)])[0]["floor"]["velocity"] != [0, 0, 0]:
        check(time.monotonic() < deadline, "it never comes to rest")
        time.sleep(0.05)
    equal(daemon.ok("GET", locale("fast"))["revision"], 2, "moves counted revisions")


# ---- events, tags -----------------------------------------------------------------------------------


@test("streams tell where each moved layer stands, then each newest pose, without an id")
def _():
    put_locale("told")
    put_mesh("told", "a", [rectangle(0, 0, 1, 1, 0)])
    put_mesh("told", "b", [rectangle(0, 0, 1, 1, 0)])
    move("told", "a", (1, 2, 3), 4)
    with Stream(daemon.port, locale("told") + "/events") as stream:
        first = stream.event()
        equal((first.name, first.id), ("transform", None), "name and id")
        equal(first.data, {"locale": "told", "layer": "a", "transform_seq": 1,
                           "translation": [1, 2, 3], "yaw_deg": 4}, "data")
        move("told", "b", (5, 6, 7), -8)
        equal(stream.event().data, {"locale": "told", "layer": "b", "transform_seq": 2,
                                    "translation": [5, 6, 7], "yaw_deg": -8}, "the next")
        put_mesh("told", "a", [rectangle(0, 0, 2, 2, 0)], status=200)
        edit = stream.event()
        equal((edit.name, edit.id), ("edit", 4), "an edit keeps its id")
    with Stream(daemon.port, locale("told") + "/events", {"Last-Event-ID": "3"}) as stream:
        names = [(e.name, e.data["layer"]) for e in (stream.event(), stream.event())]
        equal(names, [("edit", "a"), ("transform", "b")], "a was put anew and has no pose any more")
    for k in range(300):
        move("told", "b", (k, 0, 0))
    with Stream(daemon.port, "/v1/events?since=999999999999") as stream:
        equal(stream.event().name, "resync", "first")
        while True:
            event = stream.event()
            equal(event.name, "transform", "then poses alone")
            if event.data["locale"] == "told":
                equal(event.data["translation"], [299, 0, 0], "the newest one alone")
                break


@test("the ETag of a locale tells its moves; If-Match speaks of revisions")
def _():
    put_locale("tags")
    put_mesh("tags", "a", [rectangle(0, 0, 1, 1, 0)])
    path = locale("tags")

    def get(tag):
        return daemon.get(path, headers={"If-None-Match": tag}).status
    equal(daemon.get(path).headers["etag"], '"2"', "before")
    equal(get('"2"'), 304, "before, by its tag")
    move("tags", "a", (1, 0, 0))
    equal(daemon.get(path).headers["etag"], '"2.1"', "after")
    equal([get(t) for t in ('"2"', '"2.1"', '"7", W/"2.1"', '"2.2"', "*", '"2.1', "")],
          [200, 304, 304, 200, 304, 200, 200], "by tags")
    body = {"translation": [2, 0, 0]}

    def put(tag):
        return daemon.put(f"{path}/layers/a/transform", body, headers={"If-Match": tag}).status
    equal([put(t) for t in ('"2"', '"2.1"', '"2.77"', "*", '"1"', '"3"', '"2.x"', '"x"')],
          [200, 200, 200, 200, 412, 412, 412, 412], "If-Match")
    equal(daemon.ok("GET", path)["transform_seq"], 5, "what was refused counted nothing")
    answer = daemon.put(f"{path}/layers/a/transform", body, headers={"Idempotency-Key": "k1"})
    equal(answer.status, 200, "a key")
    answer = daemon.put(f"{path}/layers/a/transform", {"translation": [3, 0, 0]},
                        headers={"Idempotency-Key": "k1"})
    equal(answer.json["layers"][0]["transform"]["translation"], [3, 0, 0], "is not looked at")


# ---- bad input ---------------------------------------------------------------------------------------


@test("what is no pose names itself, and moves nothing")
def _():
    put_locale("bad")
    put_mesh("bad", "m", [rectangle(0, 0, 1, 1, 0)])
    path = locale("bad") + "/layers/m/transform"
    move("bad", "m", (1, 1, 1), 1)
    cases = (
        ({}, "/translation"), ({"translation": None}, "/translation"),
        ({"translation": [0, 0]}, "/translation"), ({"translation": [0, 0, 0, 0]}, "/translation"),
        ({"translation": "0,0,0"}, "/translation"), ({"yaw_deg": 3}, "/translation"),
        ({"translation": [0, "1", 0]}, "/translation"),
        ({"translation": [0, None, 0]}, "/translation"),
        ({"translation": [0, 0, 0], "yaw_deg": "90"}, "/yaw_deg"),
        ({"translation": [0, 0, 0], "yaw_deg": [1]}, "/yaw_deg"),
        ({"translation": [0, 0, 0], "scale": 2}, "/scale"),
        ([], None), ([0, 0, 0], None), (1, None), (None, None))
    for body, pointer in cases:
        answer = daemon.ask("PUT", path, json.dumps(body), media=JSON)
        equal(answer.status, 400, f"{body}: {answer}")
        if pointer:
            check(answer.json["errors"][0]["pointer"].startswith(pointer), f"{body}: {answer}")
    problem(daemon.put(path, {"translation": [0, 0, -1.5e9]}), 400, pointer="/translation/2",
            limit=1e9, got=-1.5e9)
    problem(daemon.put(path, {"translation": [0, 0, 0], "yaw_deg": 1e7}), 400, pointer="/yaw_deg",
            limit=1e6, got=1e7)
    for text in ('{"translation":[NaN,0,0]}', '{"translation":[1e999,0,0]}',
                 '{"translation":[0,0,0],"yaw_deg":Infinity}', '{"translation":[0,0,0]',
                 '{"translation":[0,0,0],"translation":[1,1,1]}', "", "\x00"):
        equal(daemon.ask("PUT", path, text, media=JSON).status, 400, text)
    equal(daemon.ask("PUT", path, b"x" * 5000, media=JSON).status, 413, "a large body")
    equal(daemon.ask("PUT", path, "{}", media="model/obj").status, 415, "media type")
    equal(daemon.put(path + "?yaw=1", {"translation": [0, 0, 0]}).status, 400, "query")
    for where in ("/v1/locales/none/layers/m", "/v1/locales/bad/layers/none",
                  "/v1/locales/bad/layers/a%20b"):
        problem(daemon.put(where + "/transform", {"translation": [0, 0, 0]}), 404)
    equal(daemon.get(path).status, 405, "GET")
    put_locale("moon", {"placement": {"translation": [0, 0, 9e6]}})
    daemon.ok("PUT", locale("moon") + "/layers/m?frame=spherical",
              obj([[(-1, -1, 5), (1, -1, 5), (1, 1, 5)]]), status=201, media="model/obj")
    problem(daemon.put(locale("moon") + "/layers/m/transform", {"translation": [0, 0, 0]}), 422,
            "gravity of its own")
    document = daemon.ok("GET", locale("bad"))
    equal((document["transform_seq"], document["revision"]), (1, 2), "moved")
    equal(layer_of(document, "m")["transform"], {"translation": [1, 1, 1], "yaw_deg": 1}, "pose")
    far = move("bad", "m", (1e9, -1e9, 1e9), 1e6)
    equal(layer_of(far, "m")["transform"]["yaw_deg"], 1e6, "the limits themselves are taken")


@test("moving needs the right to edit")
def _():
    tokens = os.path.join(folder.name, "tokens")
    with open(tokens, "w") as file:
        file.write("read reader\nedit editor\n")
    os.chmod(tokens, 0o600)
    with Daemon("--token-file", tokens) as guarded:
        path = locale("x") + "/layers/m/transform"
        for token, status in ((None, 401), ("wrong", 401), ("reader", 403), ("editor", 404)):
            headers = {"Authorization": f"Bearer {token}"} if token else None
            equal(guarded.put(path, {"translation": [0, 0, 0]}, headers=headers).status, status,
                  f"token {token}")


# ---- kept ---------------------------------------------------------------------------------------------


def settled(name, directory, wanted):
    """Waits until a pose is in the store: what a crash would leave."""
    deadline = time.monotonic() + HANG_S
    while True:
        with sqlite3.connect(f"file:{directory}/kota.db?mode=ro", uri=True) as store:
            rows = store.execute("SELECT pose FROM pose WHERE locale = ? AND layer = 'm'",
                                 (name,)).fetchall()
        store.close()
        if rows and struct.unpack("<4d", rows[0][0]) == wanted:
            return
        check(time.monotonic() < deadline, f"never kept: {rows}")
        time.sleep(0.05)


@test("poses survive a clean end and, a second later, a crash; transform_seq never goes back")
def _():
    directory = os.path.join(folder.name, "data")
    with Daemon("--data", directory) as kept:
        put_locale("k", where=kept)
        put_mesh("k", "m", [rectangle(-1, -1, 1, 1, 0)], where=kept)
        put_mesh("k", "anew", [rectangle(-1, -1, 1, 1, 0)], where=kept)
        put_mesh("k", "gone", [rectangle(-1, -1, 1, 1, 0)], where=kept)
        for layer in ("m", "anew", "gone"):
            move("k", layer, (0.1, -2e6, 3), 33, where=kept)
        settled("k", directory, (0.1, -2e6, 3.0, 33.0))
        put_mesh("k", "anew", [rectangle(-1, -1, 1, 1, 0)], status=200, where=kept)
        kept.ok("DELETE", locale("k") + "/layers/gone", status=204)
        before = move("k", "m", (7, 8, 9.5), -12.25, where=kept)
    kept = Daemon("--data", directory)
    try:
        after = kept.ok("GET", locale("k"))
        equal(after, before, "after a clean end")
        check("transform" not in layer_of(after, "anew"), "what was put anew has a pose")
        equal(contact("k", [(7, 8, 20)], where=kept)[0]["floor"]["velocity"], [0, 0, 0], "at rest")
        with Stream(kept.port, locale("k") + "/events") as stream:
            equal(stream.event().data["translation"], [7, 8, 9.5], "told to who comes")
        for k in range(20):
            last = move("k", "m", (1, 2, k), k, where=kept)["transform_seq"]
        equal(last, before["transform_seq"] + 20, "transform_seq")
        settled("k", directory, (1.0, 2.0, 19.0, 19.0))
    finally:
        kept.kill()
    with Daemon("--data", directory) as kept:
        after = kept.ok("GET", locale("k"))
        equal(layer_of(after, "m")["transform"], {"translation": [1, 2, 19], "yaw_deg": 19}, "pose")
        check(after["transform_seq"] > last, f"{after['transform_seq']} after {last}")
        kept.ok("PUT", locale("k"), {"gravity": [0, 0.6, -0.8]})
        turned_about = kept.ok("GET", locale("k"))
        equal(layer_of(turned_about, "m")["transform"]["yaw_deg"], 19, "under another gravity")
        kept.ok("DELETE", locale("k"), status=204)
        put_locale("k", where=kept)
        check("transform_seq" not in kept.ok("GET", locale("k")), "a new locale has moves")


@test("a damaged pose is named, and its locale not served")
def _():
    directory = os.path.join(folder.name, "damaged")
    with Daemon("--data", directory) as kept:
        for name in ("good", "poor"):
            put_locale(name, where=kept)
            put_mesh(name, "m", [rectangle(-1, -1, 1, 1, 0)], where=kept)
            move(name, "m", (1, 2, 3), where=kept)
    store = sqlite3.connect(f"{directory}/kota.db")
    store.execute("UPDATE pose SET pose = zeroblob(32) WHERE locale = 'poor' AND layer = 'm'")
    store.commit()
    store.close()
    with Daemon("--data", directory, wait=False) as kept:
        deadline = time.monotonic() + HANG_S
        while "damaged data" not in kept.log_text():
            check(time.monotonic() < deadline, "nothing was said")
            time.sleep(0.05)
        check("poor, layer m: its pose" in kept.log_text(), kept.log_text()[-500:])


# ---- sixty layers, sixty times a second --------------------------------------------------------------

LAYERS, FRAMES = 60, 45


def pose_at(layer, frame):
    random = rng(f"pose {layer} {frame}")
    return ((50.0 * layer + random.uniform(-3, 3), random.uniform(-3, 3), random.uniform(0, 100)),
            random.uniform(-180, 180))


def slope_at(pose, x, y):
    """Height and normal of the plane z = x/4, moved."""
    (tx, ty, tz), yaw = pose
    c, s = math.cos(math.radians(yaw)), math.sin(math.radians(yaw))
    along = (x - tx) * c + (y - ty) * s
    n = 1 / math.hypot(1, 0.25)
    return tz + along / 4, (-0.25 * n * c, -0.25 * n * s, n)


@test("while sixty layers move sixty times a second, each answer is of one of two published poses")
def _():
    put_locale("ferries", {"placement": {"translation": [0, 90000, 0]}})
    ramp = [(-10, -10, -2.5), (10, -10, 2.5), (10, 10, 2.5), (-10, 10, -2.5)]
    for layer in range(LAYERS):
        put_mesh("ferries", f"l{layer}", [ramp])
    poses = [[pose_at(layer, frame) for layer in range(LAYERS)] for frame in range(FRAMES)]
    state = {"started": 0, "finished": 0, "over": False}
    faults, reads = [], [0, 0]
    for layer in range(LAYERS):
        move("ferries", f"l{layer}", *poses[0][layer])

    def ask(reader):
        random = rng(f"ferries {reader}")
        with Second(daemon.port) as own:
            while not state["over"] and not faults:
                layers = [random.randrange(LAYERS) for _ in range(20)]
                points = [(50.0 * k + random.uniform(-4, 4), random.uniform(-4, 4), 0)
                          for k in layers]
                first = state["finished"]
                got = contact("ferries", points, where=own, reach_up=1e6)
                last = state["started"]
                for k, point, item in zip(layers, points, got):
                    floor = item["floor"]
                    like = [floor and abs(floor["point"][2] - z) < 1e-9
                            and max(abs(a - b) for a, b in zip(floor["normal"], n)) < 1e-9
                            for z, n in (slope_at(poses[f][k], *point[:2])
                                         for f in range(first, last + 1))]
                    if not any(like):
                        faults.append((k, point, floor, first, last))
                    reads[reader] += 1

    threads = [threading.Thread(target=ask, args=(reader,)) for reader in range(2)]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    try:
        for frame in range(1, FRAMES):
            state["started"] = frame
            request = b"".join(one_move(layer, poses[frame][layer]) for layer in range(LAYERS))
            pipeline(request, LAYERS)
            state["finished"] = frame
            time.sleep(max(0, began + frame / 60 - time.monotonic()))
    finally:
        state["over"] = True
        for thread in threads:
            thread.join()
    equal(faults[:1], [], "neither pose")
    check(min(reads) > 0, f"{reads} contacts")
    document = daemon.ok("GET", locale("ferries"))
    equal(document["transform_seq"], LAYERS * FRAMES, "every move was made")
    equal(document["revision"], LAYERS + 1, "revisions")
    daemon.ok("DELETE", locale("ferries"), status=204)


def one_move(layer, pose):
    body = json.dumps({"translation": pose[0], "yaw_deg": pose[1]}).encode()
    return (f"PUT {locale('ferries')}/layers/l{layer}/transform HTTP/1.1\r\nHost: kota\r\n"
            f"{daemon.token_line}Content-Type: {JSON}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


movers = []


def pipeline(request, count):
    """Sends many moves at once and takes their answers."""
    if not movers:
        movers.append(connect(daemon.port, timeout=HANG_S))
    movers[0].sendall(request)
    left, received = count, b""
    while left:
        head, end, rest = received.partition(b"\r\n\r\n")
        length = None
        if end:
            check(head.startswith(b"HTTP/1.1 200"), head)
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if length is not None and len(rest) >= length:
            received = rest[length:]
            left -= 1
            continue
        got = movers[0].recv(1 << 20)
        check(got, "the daemon closed")
        received += got


run(daemon.stop)
