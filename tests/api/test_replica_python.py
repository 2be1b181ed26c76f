"""kota.Replica of client/python: a copy of ground beside its daemon, answers compared bit for bit, by
ctypes on the built libkota-ground.

The arrays are asked with numpy (skipped without) and without it.
"""
import math
import os
import random
import sys
import tempfile
import threading
import time

from daemon import ROOT, Daemon
from tap import ALL, HANG_S, Skip, check, equal, run, test

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "client", "python"))
import kota  # noqa: E402
from kota import arrays  # noqa: E402

BUILD = os.path.join(ROOT, os.environ.get("KOTA_BIN_DIR", "build/release"))
LIBRARY = os.path.join(BUILD, "lib", "libkota-ground.so.0")
SANITIZED = any(word in BUILD for word in ("asan", "tsan"))
NUMPY = arrays.numpy
SIDE, SPACING = 280, 2.0
TIMEOUT_S = HANG_S
rng = random.Random(int(os.environ.get("KOTA_TEST_SEED", "20171107")))
folder = tempfile.TemporaryDirectory(prefix="kota-replica-")
daemon = Daemon("--data", os.path.join(folder.name, "data"))


def need_library():
    if SANITIZED:
        raise Skip("a sanitizer's library cannot be loaded into this Python")
    check(os.path.exists(LIBRARY), f"{LIBRARY} is not built")


def client(url=None):
    return kota.Client(url or daemon.url, timeout_s=TIMEOUT_S)


def replica(locale, **options):
    return kota.Replica(client(), locale, library=LIBRARY, **options)


def plate(size=8.0):
    x, y, z, a, b = (rng.uniform(0, 90), rng.uniform(0, 90), rng.uniform(0, 10), rng.uniform(-.2, .2),
                     rng.uniform(-.2, .2))
    return [[x + size * u, y + size * v, z + size * (a * u + b * v)]
            for u, v in ((0, 0), (1, 0), (1, 1), (0, 1))]


def obj(polygons):
    lines, at = [f"v {x} {y} {z}" for polygon in polygons for x, y, z in polygon], 1
    for polygon in polygons:
        lines.append("f " + " ".join(str(at + i) for i in range(len(polygon))))
        at += len(polygon)
    return "\n".join(lines) + "\n"


def make_world():
    world = client()
    world.put_locale("hills", {"triangulation": "main", "open_sky": True})
    world.put_layer("hills", "ground",
                    [[math.nan if rng.random() < 0.002 else 20 * math.sin(.05 * r) * math.cos(.03 * c)
                      for c in range(SIDE)] for r in range(SIDE)], spacing=SPACING)
    world.put_locale("town", {})
    world.put_layer("town", "ground", obj([plate() for _ in range(50)]), "model/obj")
    world.put_layer("town", "lift", obj([plate()]), "model/obj")


def change(world, locale):
    if locale == "hills":
        rect = (rng.randrange(SIDE - 30), rng.randrange(SIDE - 30), rng.randint(1, 30), rng.randint(1, 30))
        return world.edit(locale, rect, [[None if rng.random() < .01 else rng.uniform(-30, 30)
                                          for _ in range(rect[2])] for _ in range(rect[3])])
    if rng.random() < 0.2:
        return world.put_transform(locale, "lift", [rng.uniform(-9, 80), rng.uniform(-9, 80), 3],
                                   rotation=[0.6, 0, 0, 0.8])
    if rng.random() < 0.5:
        return world.put_transform(locale, "lift", [rng.uniform(-9, 80), rng.uniform(-9, 80), 3],
                                   yaw_deg=rng.uniform(-400, 400))
    return world.polygons(locale, "ground", polygons=[plate()])


def catch_up(world, ground):
    end = time.monotonic() + TIMEOUT_S
    while True:
        now = world.locale(ground.locale)
        if (ground.revision, ground.transform_seq) == (now["revision"], now.get("transform_seq", 0)):
            return
        check(time.monotonic() < end, f"{ground.revision}, {ground.transform_seq}: {now}")
        time.sleep(0.02)


def is_same(a, b):
    """To the bit; None is NaN."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(is_same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, float) and isinstance(b, (int, float)) and not isinstance(b, bool):
        return a == b and math.copysign(1, a) == math.copysign(1, b) or math.isnan(a) and math.isnan(b)
    return a == b


def differences(world, ground, count):
    box, locale = world.locale(ground.locale)["bounds"], ground.locale
    spots = [[rng.uniform(low - 3, high + 3) for low, high in zip(box["min"], box["max"])]
             for _ in range(count)]
    found = []

    def compare(kind, asked, got, wanted):
        if not is_same(got, wanted):
            found.append(f"{kind} {asked}: {got}, not {wanted}")
    flat = [spot[:2] for spot in spots]
    many = ground.heights(flat)
    for at, item, one in zip(flat, world.height(locale, flat)["results"], many):
        wanted = math.nan if item["height"] is None else item["height"]
        compare("height", at, ground.height(*at), wanted)
        compare("heights", at, float(one), float(wanted))
    rays = [{"origin": spot, "direction": [rng.uniform(-1, 1) for _ in range(3)],
             "t_max": rng.uniform(-5, 200)} for spot in spots]
    rows = ground.rays([[*ray["origin"], *ray["direction"], ray["t_max"]] for ray in rays])
    for i, (ray, item) in enumerate(zip(rays, world.ray(locale, rays)["results"])):
        compare("ray", ray, ground.ray(**ray), item)
        compare("rays", ray, float(rows.t[i]), math.nan if item["t"] is None else float(item["t"]))
    rows = ground.contacts(spots, reach_up=2)
    for i, (spot, item) in enumerate(zip(spots, world.contact(locale, spots, reach_up=2)["results"])):
        compare("contact", spot, ground.contact(spot, reach_up=2), item)
        floor = list(map(float, rows.floor[i] if NUMPY else rows.floor[3 * i:3 * i + 3]))
        compare("contacts", spot, floor, [float(v) for v in item["floor"]["point"]] if item["floor"]
                else [math.nan] * 3)
    segments = [{"from": a, "to": b} for a, b in zip(spots, spots[1:])]
    for line, item in zip(segments, world.los(locale, segments)["results"]):
        compare("los", line, ground.los(line["from"], line["to"]), item)
    shapes = [{"sphere": 0.5}, {"capsule": [0.4, 1.8]}, {"box": [0.5, 1, 1.5, 30]}]
    ways = [{"shape": shapes[i % 3], **line} for i, line in enumerate(segments)]
    for way, item in zip(ways, world.sweep(locale, ways)["results"]):
        compare("sweep", way, ground.sweep(way["shape"], way["from"], way["to"]), item)
    moves = [{"shape": way["shape"], "from": way["from"], "dt": 0.4, "claimed": way["to"],
              "velocity": [b - a for a, b in zip(way["from"], way["to"])]} for way in ways]
    for move, item in zip(moves, world.move(locale, moves)["results"]):
        compare("move", move, ground.move(move["shape"], move["from"], move["velocity"], move["dt"],
                                          claimed=move["claimed"]), item)
    return found


def is_equal(world, ground, count):
    """A layer comes to rest without a new number of its pose: then its velocity is another."""
    for _ in range(20):
        catch_up(world, ground)
        found = differences(world, ground, count)
        if not found or not all("velocity" in one for one in found):
            break
        time.sleep(0.2)
    equal(found[:3], [], "differences")


def follows(numpy):
    need_library()
    arrays.numpy = numpy
    world = client()
    try:
        for locale in ("hills", "town"):
            with replica(locale) as ground:
                is_equal(world, ground, 200)
                for _ in range(20 if ALL else 4):
                    for _ in range(20 if ALL else 6):
                        change(world, locale)
                    is_equal(world, ground, 1000 if ALL else 200)
                check(ground.staleness < HANG_S, f"{ground.staleness} s")
    finally:
        arrays.numpy = NUMPY


@test("answers are the daemon's after edits, edits of polygons and moves")
def _():
    global NUMPY
    kept, NUMPY = NUMPY, None
    try:
        follows(None)
    finally:
        NUMPY = arrays.numpy = kept


@test("the same with numpy's arrays")
def _():
    if NUMPY is None:
        raise Skip("no numpy")
    follows(NUMPY)
    with replica("hills") as ground:
        found = ground.contacts(NUMPY.array([[10, 10, 50], [20, 20, 50]]))
        equal(found.floor.shape, (2, 3), "shape")
        equal(ground.heights(NUMPY.zeros((4, 2))).shape, (4,), "shape")


@test("within its bounds a replica is the daemon's ground; beyond it says absent")
def _():
    need_library()
    world = client()
    with replica("hills", bounds=(100, 100, 200, 200)) as ground:
        change(world, "hills")
        edited = world.edit("hills", (60, 60, 1, 1), [[99]])
        ground.wait(edited.revision, TIMEOUT_S)
        equal(ground.height(120, 120), 99.0, "height")
        check(math.isnan(ground.height(500, 500)), "beyond")
        equal(ground.contact([500, 500, 90])["status"], "absent", "contact beyond")
        for _ in range(100):
            at = [rng.uniform(100, 200), rng.uniform(100, 200)]
            wanted = world.get_height("hills", *at)["height"]
            check(is_same(ground.height(*at), math.nan if wanted is None else wanted), f"{at}")


@test("it goes on answering without the daemon, and follows the next one")
def _():
    need_library()
    global daemon
    with replica("hills") as ground:
        catch_up(client(), ground)
        before, port = ground.height(31, 33), daemon.port
        daemon.kill()
        time.sleep(0.5)
        check(is_same(ground.height(31, 33), before), "the same answer")
        check(ground.staleness >= 0.4, f"{ground.staleness} s")
        daemon = Daemon("--data", os.path.join(folder.name, "data"), "--listen", f"127.0.0.1:{port}")
        edited = client().edit("hills", (10, 10, 1, 1), [[55]])
        ground.wait(edited.revision, TIMEOUT_S)
        equal(ground.height(20, 20), 55.0, "height")
        is_equal(client(), ground, 200)


@test("threads ask while changes are applied, and each answer is of one revision")
def _():
    need_library()
    world, wrong, stop = client(), [], threading.Event()
    with replica("hills") as ground:
        levels = [0.0] * 2

        def ask():
            at = [[2 * c + 1, 2 * r + 1] for c in range(100, 110) for r in range(100, 110)]
            while not stop.is_set():
                found = {float(v) for v in ground.heights(at)}
                if len(found) != 1:
                    wrong.append(found)
        world.edit("hills", (100, 100, 12, 12), [[levels[0]] * 12] * 12)
        catch_up(world, ground)
        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for level in range(30):
            last = world.edit("hills", (100, 100, 12, 12), [[float(level)] * 12] * 12)
        ground.wait(last.revision, TIMEOUT_S)
        stop.set()
        for thread in threads:
            thread.join()
        equal(wrong[:2], [], "mixed revisions")


@test("refusals: no locale, a wrong library, bad numbers, a closed replica")
def _():
    need_library()

    def fails(call, kind, *words):
        try:
            call()
        except kind as error:
            check(all(word in str(error) for word in words), f"{error}")
            return error
        check(False, f"no {kind.__name__}")
        return None
    equal(fails(lambda: replica("atlantis"), kota.Error, "atlantis").status, 404, "status")
    fails(lambda: kota.Replica(client(), "hills", library="/nowhere.so"), OSError, "libkota-ground")
    ground = replica("hills")
    fails(lambda: ground.heights([[1, 2, 3]]), ValueError, "(1, 3)")
    fails(lambda: ground.contacts([[1, 2, math.nan]]), ValueError)
    fails(lambda: ground.wait(10 ** 6, 0.1), kota.Timeout)
    ground.close()
    fails(lambda: ground.ray([0, 0, 9], [0, 0, -1]), kota.Error, "closed")
    check(math.isnan(ground.height(10, 10)) and ground.revision == 0, "closed")


make_world()
run()
