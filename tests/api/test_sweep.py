"""Sweeps and moves over the wire: true answers by hand, binary as JSON bit by bit, layers, moved
layers, planets, and each error by its status and place."""
import math
import struct

import tap
from daemon import F32, F64, Daemon, problem
from tap import check, rng, run, test

daemon = Daemon()


def equal(got, want):
    tap.equal(got, want, "the answer")


def near(got, want, off):
    check(abs(got - want) <= off, f"{got} is not within {off} of {want}")


def at(name):
    return f"/v1/locales/{name}"


def put(locale, layer, obj, query=""):
    daemon.ok("PUT", f"{at(locale)}/layers/{layer}{query}", obj, status=201, media="model/obj")


def square(x0, y0, x1, y1, z):
    return "".join(f"v {x} {y} {z}\n" for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1)))


daemon.ok("PUT", at("room"), {}, status=201)
heights = struct.pack("<441f", *[0.0] * 441)
daemon.ok("PUT", at("room") + "/layers/ground?cols=21&rows=21&spacing=1,1", heights, status=201,
          media=F32)
put("room", "lift", square(5, 5, 9, 9, 0.4) + "f 1 2 3 4\n")
put("room", "roof", square(0, 0, 20, 20, 4) + "f 1 2 3 4\n", "?role=ceiling")
daemon.ok("PUT", at("planet"), {}, status=201)
ball = []
for side, (a, b, c) in enumerate(((0, 1, 2), (1, 2, 0), (2, 0, 1))):
    for sign in (-10, 10):
        for u, v in ((-10, -10), (10, -10), (10, 10), (-10, 10)):
            p = [0, 0, 0]
            p[a], p[b], p[c] = u, v, sign
            ball.append(p)
put("planet", "cube", "".join(f"v {x} {y} {z}\n" for x, y, z in ball) +
    "".join(f"f {4 * i + 1} {4 * i + 2} {4 * i + 3} {4 * i + 4}\n" for i in range(6)),
    "?frame=spherical&gravity=in")


def ask(name, call, items, status=200, **options):
    return daemon.ok("POST", f"{at(name)}/{call}", {"items": items, **options}, status=status)


def sweep(items, name="room", **options):
    return ask(name, "sweep", items, **options)["results"]


def move(items, name="room", **options):
    return ask(name, "move", items, **options)["results"]


@test("shapes touch the ground, the lift and the roof where they should")
def _():
    shapes = {"sphere": 0.5}, {"capsule": [0.25, 1]}, {"box": [0.5, 0.25, 0.5, 30]}
    for shape in shapes:
        down = {"shape": shape, "from": [2.5, 2.5, 2.5], "to": [2.5, 2.5, -1.5]}
        ground, lift, roof, none = sweep([
            down,
            {"shape": shape, "from": [7, 7, 2.5], "to": [7, 7, -1.5]},
            {"shape": shape, "from": [7, 7, 2.5], "to": [7, 7, 4.5]},
            {"shape": shape, "from": [7, 7, 2.5], "to": [8, 7, 2.5]}])
        near(ground["fraction"], 0.5, 1e-15)
        equal((ground["layer"], ground["polygon"], ground["normal"], ground["starts_inside"]),
              ("ground", None, [0, 0, 1], False))
        check(ground["cell"] is not None and ground["triangle"] in (0, 1), ground)
        near(lift["fraction"], (2.5 - 0.9) / 4, 1e-15)
        equal((lift["layer"], lift["cell"], lift["polygon"]), ("lift", None, 0))
        near(roof["fraction"], 0.5, 1e-15)
        equal((roof["layer"], roof["normal"]), ("roof", [0, 0, -1]))
        equal(none, {"fraction": None, "starts_inside": False, "point": None, "normal": None,
                     "layer": None, "cell": None, "triangle": None, "polygon": None})
        only = sweep([down], layer="roof")[0]
        equal(only["fraction"], None)


@test("a shape that begins in the ground says so")
def _():
    inside = sweep([{"shape": {"sphere": 1}, "from": [3, 3, 0.25], "to": [3, 3, 9]}])[0]
    equal((inside["fraction"], inside["starts_inside"], inside["point"]), (0, True, [3, 3, 0]))
    moved = move([{"shape": {"sphere": 1}, "from": [3, 3, 0.25], "velocity": [1, 0, 0], "dt": 1}])[0]
    equal((moved["to"], moved["starts_inside"], moved["grounded"], moved["floor"]),
          ([3, 3, 0.25], True, False, None))


@test("a sphere of radius 0 is a ray, bit by bit")
def _():
    random = rng("points")
    ways = [([random.uniform(-2, 22) for _ in range(2)] + [random.uniform(-3, 6)],
             [random.uniform(-2, 22) for _ in range(2)] + [random.uniform(-3, 6)])
            for _ in range(500)]
    rays = daemon.ok("POST", at("room") + "/ray", {"rays": [
        {"origin": a, "direction": [y - x for x, y in zip(a, b)], "t_max": 1} for a, b in ways]})
    touches = sweep([{"shape": {"sphere": 0}, "from": a, "to": b} for a, b in ways])
    equal([t["fraction"] for t in touches], [r["t"] for r in rays["results"]])


@test("binary batches give the bits of single items")
def _():
    random = rng("binary")
    shapes = ({"sphere": 0.4}, "sphere=0.4"), ({"capsule": [0.3, 1.7]}, "capsule=0.3,1.7"), \
        ({"box": [0.3, 0.2, 0.9, 25]}, "box=0.3,0.2,0.9,25")
    for shape, query in shapes:
        items = [[random.uniform(1, 19), random.uniform(1, 19), random.uniform(0, 3)] +
                 [random.uniform(-9, 9) for _ in range(3)] for _ in range(300)]
        sent = struct.pack(f"<{6 * len(items)}d", *sum(items, []))
        answer = daemon.post(f"{at('room')}/sweep?{query}", sent, media=F64).body
        numbers = list(struct.iter_unpack("<4d", answer))
        batch = sweep([{"shape": shape, "from": i[:3], "to": i[3:]} for i in items])
        alone = [sweep([{"shape": shape, "from": i[:3], "to": i[3:]}])[0] for i in items[:40]]
        equal(batch[:40], alone)
        for wanted, got in zip(batch, numbers):
            if wanted["fraction"] is None:
                check(all(math.isnan(n) for n in got), got)
            else:
                equal(list(got), [wanted["fraction"]] + wanted["normal"])
        answer = daemon.post(f"{at('room')}/move?{query}&dt=0.5&step_up=0.3", sent, media=F64).body
        batch = move([{"from": i[:3], "velocity": i[3:]} for i in items], dt=0.5, step_up=0.3,
                     **shape)
        for wanted, got in zip(batch, struct.iter_unpack("<4d", answer)):
            equal(list(got), wanted["to"] + [1 if wanted["grounded"] else 0])


@test("a walk: along the ground, onto the lift, off it, under the roof")
def _():
    body = {"shape": {"capsule": [0.3, 1.8]}, "dt": 1}
    on, over, high, jump = move([
        {**body, "from": [2, 7, 0.9], "velocity": [2, 0, 0]},
        {**body, "from": [2, 7, 0.9], "velocity": [5, 0, 0]},
        {**body, "from": [2, 7, 0.9], "velocity": [5, 0, 0], "step_up": 0.3},
        {**body, "from": [2, 7, 0.9], "velocity": [0, 0, 9]}])
    near(on["to"][0], 4, 1e-3), near(on["to"][2], 0.9, 1e-3)
    equal((on["grounded"], on["floor"]["layer"], on["floor"]["slope_deg"], on["hits"]),
          (True, "ground", 0, []))
    near(over["to"][2], 1.3, 1e-3)
    equal((over["floor"]["layer"], over["floor"]["polygon"]), ("lift", 0))
    check(over["to"][0] > 6.9, over)
    near(high["to"][2], 0.9, 1e-3)
    check(high["to"][0] < 4.8 and high["hits"], high)
    near(jump["to"][2], 4 - 0.9, 1e-3)
    equal((jump["grounded"], jump["hits"][0]["layer"]), (False, "roof"))


@test("claims are judged")
def _():
    body = {"shape": {"capsule": [0.3, 1.8]}, "dt": 1, "from": [2, 7, 0.9], "velocity": [2, 0, 0]}
    claims = {(4, 7, 0.9): True, (3, 7, 0.9): True, (4, 7, 2): False, (6, 7, 0.9): False}
    answers = move([{**body, "claimed": list(claim)} for claim in claims])
    equal([a["reachable"] for a in answers], list(claims.values()))
    check("reachable" not in move([body])[0], "reachable without a claim")


@test("a moved layer is swept where it is")
def _():
    daemon.ok("PUT", at("room") + "/layers/lift/transform",
              {"translation": [0, 0, 1], "yaw_deg": 0})
    touch = sweep([{"shape": {"sphere": 0.5}, "from": [7, 7, 2.9], "to": [7, 7, 0.9]}])[0]
    near(touch["fraction"], 0.5, 1e-12)
    equal(touch["layer"], "lift")
    check("velocity" in touch, touch)
    daemon.ok("PUT", at("room") + "/layers/lift/transform",
              {"translation": [0, 0, 0], "yaw_deg": 0})


@test("on a planet up is away from its centre")
def _():
    for direction in ([1, 0, 0], [0, -1, 0], [0, 0, 1]):
        place = [14 * d + (0 if d else 0.5) for d in direction]
        to = [0 if d else 0.5 for d in direction]
        touch = sweep([{"shape": {"capsule": [0.3, 2]}, "from": place, "to": to}], "planet")[0]
        check(0.1 < touch["fraction"] < 0.3, touch)
        near(sum(a * b for a, b in zip(touch["normal"], direction)), 1, 1e-2)
        stand = [11.02 * d + (0 if d else 0.01) for d in direction]
        moved = move([{"shape": {"capsule": [0.3, 2]}, "from": stand, "velocity": [0, 0, 0],
                       "dt": 0.1}], "planet")[0]
        check(moved["grounded"], moved)


@test("what cannot be asked is refused, with its place")
def _():
    good = {"shape": {"sphere": 1}, "from": [1, 1, 3], "to": [1, 1, 0]}
    step = {"shape": {"sphere": 1}, "from": [1, 1, 3], "velocity": [1, 1, 0], "dt": 1}

    def refused(call, items, code, pointer, status=400, **options):
        answer = daemon.post(f"{at('room')}/{call}", {"items": items, **options})
        problem(answer, status, pointer=pointer)
        equal(answer.json["code"], code)

    def without(item, name):
        return {key: value for key, value in item.items() if key != name}

    refused("sweep", [good, without(good, "shape")], "missing", "/items/1/shape")
    refused("sweep", [without(good, "to")], "missing", "/items/0/to")
    refused("sweep", [{**good, "shape": {}}], "missing", "/items/0/shape")
    refused("sweep", [{**good, "shape": {"cone": 1}}], "unknown_member", "/items/0/shape/cone")
    refused("sweep", [{**good, "shape": {"sphere": 1, "box": [1, 1, 1, 0]}}], "bad_input",
            "/items/0/shape")
    for shape, name in (({"sphere": -1}, "sphere"), ({"sphere": 1001}, "sphere"),
                        ({"sphere": [1]}, "sphere"), ({"capsule": [1, 1.9]}, "capsule"),
                        ({"capsule": 1}, "capsule"), ({"box": [1, 1, -1, 0]}, "box"),
                        ({"box": [1, 1, 1]}, "box"), ({"box": [1, 1, 1, 1e9]}, "box")):
        refused("sweep", [{**good, "shape": shape}], "bad_input", f"/items/0/shape/{name}")
    for shape, limit, got in (({"sphere": 1001}, 1000, 1001), ({"capsule": [1, 1.9]}, 2, 1.9),
                              ({"box": [1, 2, 3, 2e6]}, 1e6, 2e6)):
        problem(daemon.post(at("room") + "/sweep", {"items": [{**good, "shape": shape}]}), 400,
                limit=limit, got=got)
    refused("sweep", [{**good, "from": [1e13, 0, 0]}], "bad_input", "/items/0/from")
    refused("sweep", [{**good, "way": 1}], "unknown_member", "/items/0/way")
    refused("sweep", [], "bad_input", "/items")
    refused("sweep", [good], "layer_unknown", "/layer", 422, layer="nowhere")
    refused("move", [without(step, "dt")], "missing", "/items/0/dt")
    refused("move", [without(step, "velocity")], "missing", "/items/0/velocity")
    for name, value in (("dt", -1), ("dt", 61), ("slope_max_deg", 91), ("step_up", -0.1),
                        ("snap_down", 1e4), ("velocity", [1e10, 0, 0]), ("claimed", [0, 0])):
        refused("move", [{**step, name: value}], "bad_input", f"/items/0/{name}")
    for query, pointer in (("/sweep", "sphere"), ("/move?sphere=1", "dt")):
        answer = daemon.post(at("room") + query, struct.pack("<6d", *[1] * 6), media=F64)
        problem(answer, 400, pointer=pointer)
        equal(answer.json["code"], "missing")


run(daemon.stop)
