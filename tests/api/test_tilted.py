"""Layers in any rotation, beside a twin whose file has the same polygons turned in double precision.

Contact, contains, rays, sight, picking, heights, sweeps and moves must be the twin's; poses are in
the document, the feeds and the store; bad poses are refused.
"""
import math
import tempfile
import time

from daemon import Daemon, equal
from events import Stream
from frames import POSE, FrameStream
from mesh_oracle import put_mesh, rectangle, wall
from oracle import add, cross, dot, scale, sub, unit
from tap import check, fail, near, near_all, rng, run, test

daemon = Daemon()
random = rng("tilted")
OFF_M = 1e-7
TRANSLATION = (40.0, -7.5, 12.25)


def at(name, below=""):
    return f"/v1/locales/{name}{below}"


def turned(q, v):
    """q v q*, for a unit quaternion x y z w."""
    u, w = q[:3], q[3]
    t = scale(cross(u, v), 2)
    return add(v, add(scale(t, w), cross(u, t)))


def any_rotation():
    q = [random.gauss(0, 1) for _ in range(4)]
    length = math.sqrt(sum(v * v for v in q))
    return [v / length for v in q]


def house():
    """A floor, a roof over half of it, a wall, and a ramp."""
    return [rectangle(-8, -6, 8, 6, 0), rectangle(-8, -6, 0, 6, 3), wall((0, -6), (0, 6), 0, 3),
            [(0, -6, 0), (8, -6, 4), (8, 0, 4), (0, 0, 0)]]


def standing(q, translation=TRANSLATION):
    return [[add(turned(q, corner), translation) for corner in ring] for ring in house()]


def put_pose(name, layer="house", status=200, **pose):
    return daemon.ok("PUT", at(name, f"/layers/{layer}/transform"), pose, status=status)


def make(name, q):
    """The locale `name` with the layer in a pose, and its twin."""
    for locale, rings in ((name, house()), (name + "-twin", standing(q))):
        daemon.ok("PUT", at(locale), {}, status=201)
        put_mesh(daemon, locale, rings, "house")
    return put_pose(name, translation=TRANSLATION, rotation=q)


def place(size=9.0):
    return [c + random.uniform(-size, size) for c in TRANSLATION]


def is_like(got, want, what):
    """The same, numbers within OFF_M; a velocity is of what was moved only."""
    if isinstance(want, dict):
        equal(sorted(k for k in got if k != "velocity"), sorted(want), what)
        for key in want:
            if key not in ("revision", "tests"):
                is_like(got[key], want[key], f"{what}, {key}")
    elif isinstance(want, list):
        equal(len(got), len(want), what)
        for a, b in zip(got, want):
            is_like(a, b, what)
    elif isinstance(want, float) or isinstance(got, float):
        check(want is not None and got is not None and abs(got - want) <= OFF_M * max(1, abs(want)),
              f"{what}: {got} and {want}")
    elif got != want and {got, want} != {"hole", "outside"}:  # the box of a turned box is larger
        fail(f"{what}: {got} and {want}")


def both(name, call, body):
    got = daemon.ok("POST", at(name, call), body)
    want = daemon.ok("POST", at(name + "-twin", call), body)
    return got, want


@test("contact, contains, rays, sight and heights are those of the turned polygons, alone and in batches")
def _():
    for number in range(6):
        name, q = f"turned-{number}", any_rotation() if number else [0, 0.6, 0, 0.8]
        make(name, q)
        points = [place() for _ in range(300)]
        rays = [{"origin": place(14), "direction": unit(sub(place(4), place(14)))} for _ in range(300)]
        pairs = [{"from": place(), "to": place()} for _ in range(200)]
        for call, body in (("/contact", {"points": points, "max_distance": 50}),
                           ("/contains", {"points": points}), ("/ray", {"rays": rays}),
                           ("/ray", {"rays": rays[:50], "mode": "all"}), ("/los", {"segments": pairs}),
                           ("/height", {"points": [p[:2] for p in points]}),
                           ("/sweep", {"items": [{"shape": {"sphere": 0.3}, "from": p["from"],
                                                  "to": p["to"]} for p in pairs]})):
            got, want = both(name, call, body)
            key = "results" if "results" in want else "heights"
            decided = 0
            for i, (a, b) in enumerate(zip(got[key], want[key])):
                is_like(a, b, f"{name} {call} {i}")
                decided += b is not None
            check(decided >= len(want[key]) // 10, f"{call} decides {decided}")
        one = [daemon.ok("POST", at(name, "/contact"), {"points": [p], "max_distance": 50})["results"][0]
               for p in points[:40]]
        all_of = daemon.ok("POST", at(name, "/contact"), {"points": points, "max_distance": 50})["results"]
        equal(all_of[:40], one, "a batch has the bits of its items")


@test("a wall is a floor once it lies, and a floor that stands is none")
def _():
    quarter = [0, math.sqrt(0.5), 0, math.sqrt(0.5)]  # about y: x down, z to x
    daemon.ok("PUT", at("lying"), {}, status=201)
    put_mesh(daemon, "lying", [wall((2, -3), (2, 3), 0, 4), rectangle(-9, -9, -5, 9, 0)], "door")
    put_pose("lying", "door", translation=[0, 0, 10], rotation=quarter)
    found = daemon.ok("POST", at("lying", "/contact"), {"points": [[1, 0, 9]], "max_distance": 50})["results"][0]
    equal((found["status"], found["floor"]["polygon"]), ("ok", 0), "the wall lies")
    near(found["floor"]["point"][2], 8, "height")
    near_all(found["floor"]["normal"], (0, 0, 1), "normal")
    beside = daemon.ok("POST", at("lying", "/contact"), {"points": [[0, 0, 30]], "max_distance": 50})["results"][0]
    check((beside["floor"] or {}).get("polygon") != 1, f"the floor stands: {beside}")


@test("a walker stands on a tilted deck, and slides down where it is too steep")
def _():
    for degrees, stands in ((20, True), (60, False)):
        name, half = f"deck-{degrees}", math.radians(degrees) / 2
        daemon.ok("PUT", at(name), {}, status=201)
        put_mesh(daemon, name, [rectangle(-30, -30, 30, 30, 0)], "deck")
        put_pose(name, "deck", translation=[0, 0, 5], rotation=[math.sin(half), 0, 0, math.cos(half)])
        item = {"shape": {"capsule": [0.3, 1.8]}, "from": [0, 0, 6.4], "velocity": [0, 0, -5], "dt": 0.5}
        moved = daemon.ok("POST", at(name, "/move"), {"items": [item]})["results"][0]
        equal(moved["grounded"], stands, f"{degrees} degrees")


@test("the velocity of a layer that tilts is that of its material")
def _():
    daemon.ok("PUT", at("bridge"), {}, status=201)
    put_mesh(daemon, "bridge", [rectangle(0, -2, 10, 2, 0)], "span")
    put_pose("bridge", "span", translation=[0, 0, 0], rotation=[0, 0, 0, 1])
    speeds = []
    for degrees in (2, 4):
        half = math.radians(-degrees) / 2
        time.sleep(0.02)  # poses in less than 2 ms count as one
        put_pose("bridge", "span", translation=[0, 0, 0], rotation=[0, math.sin(half), 0, math.cos(half)])
        speeds.append([daemon.ok("POST", at("bridge", "/contact"), {"points": [[x, 0, 9]], "max_distance": 20})
                       ["results"][0]["floor"]["velocity"] for x in (4.0, 8.0)])
    near_, far = speeds[-1]
    check(near_[2] > 0 and abs(far[2] / near_[2] - 2) < 1e-6, f"{near_}, {far}")


@test("documents and feeds have the rotation as it was put; a yaw has none")
def _():
    told = make("told", [0.5, 0.5, 0.5, 0.5])
    equal(told["layers"][0]["transform"], {"translation": list(TRANSLATION), "rotation": [0.5, 0.5, 0.5, 0.5]},
          "the pose")
    feed = at("told", "/events")
    with Stream(daemon.port, feed) as events, FrameStream(daemon.port, feed) as frames:
        equal((events.event().data["rotation"], frames.frame().numbers[4:8]),
              ([0.5, 0.5, 0.5, 0.5], (0.5, 0.5, 0.5, 0.5)), "a stream begins with the poses")
        put_pose("told", translation=[1, 2, 3], rotation=[0, 0, 0.6005, 0.8])
        frame = frames.edit()
        length = math.hypot(0.6005, 0.8)
        equal((frame.kind, frame.numbers[:4]), (POSE, (1.0, 2.0, 3.0, 0.0)), "the frame")
        near_all(list(frame.numbers[4:8]), (0, 0, 0.6005 / length, 0.8 / length), "rotation")
        event = events.event().data
        equal(tuple(event["rotation"]), frame.numbers[4:8], "the event")
        check("yaw_deg" not in event, str(event))
        put_pose("told", translation=[1, 2, 3], yaw_deg=90)
    equal(daemon.ok("GET", at("told"))["layers"][0]["transform"], {"translation": [1, 2, 3], "yaw_deg": 90}, "a yaw")


@test("bad rotations are refused by name, and nothing is moved")
def _():
    daemon.ok("PUT", at("bad"), {}, status=201)
    put_mesh(daemon, "bad", house(), "house")
    before = daemon.ok("GET", at("bad"))
    for pose, status in (({"rotation": [0, 0, 0, 1.01]}, 422), ({"rotation": [0, 0, 0, 0]}, 422),
                         ({"rotation": [0, 0, 0, 1], "yaw_deg": 0}, 400), ({"rotation": [0, 0, 1]}, 400),
                         ({"rotation": "up"}, 400), ({"rotation": [0, 0, 0, None]}, 400)):
        answer = daemon.put(at("bad", "/layers/house/transform"), {"translation": [0, 0, 0], **pose})
        equal(answer.status, status, f"{pose}: {answer}")
        check(answer.json["errors"][0]["pointer"].startswith("/rotation"), f"{pose}: {answer}")
    equal(daemon.ok("GET", at("bad")), before, "nothing has moved")


@test("a rotation outlives a kill -9 and a clean end, to the bit")
def _():
    for kills in (True, False):
        with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
            first = Daemon("--data", folder)
            first.ok("PUT", at("kept"), {}, status=201)
            put_mesh(first, "kept", house(), "house")
            told = first.ok("PUT", at("kept", "/layers/house/transform"),
                            {"translation": [1, 2, 3], "rotation": any_rotation()})["layers"][0]["transform"]
            if kills:
                time.sleep(2)  # poses are written within about a second
                first.kill()
            else:
                first.stop()
            with Daemon("--data", folder) as second:
                equal(second.ok("GET", at("kept"))["layers"][0]["transform"], told, "after a restart")


run(daemon.stop)
