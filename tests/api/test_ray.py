"""Rays and lines of sight against Möller–Trumbore over every triangle."""
import math
import struct

from daemon import Daemon, problem
from fields import NAN, Terrain, put_layer, put_locale, put_shapes, put_terrain, results
from tap import case, check, equal, fail, near, near_all, rng, run, test

daemon = Daemon()
shapes = put_shapes(daemon)
MEMBERS = {"status", "t", "distance", "point", "normal", "layer", "cell", "triangle"}
EDGE = 1e-9


def at(name):
    return f"/v1/locales/{name}"


def box_of(terrain):
    (x0, y0, z0), (x1, y1, z1) = terrain.bounds()
    return (x0, y0, z0), (x1, y1, z1 if z1 > z0 else z0 + 1)


def random_ray(random, terrain):
    """From anywhere in or around the box, towards anywhere in it, of any length."""
    low, high = box_of(terrain)

    def around(share):
        return [a + (b - a) * random.uniform(-share, 1 + share) for a, b in zip(low, high)]
    origin, target = around(random.choice((0.0, 0.5, 3.0))), around(0.0)
    direction = [b - a for a, b in zip(origin, target)]
    kind = random.random()
    if kind < 0.08:
        direction[random.randrange(3)] = 0.0
    elif kind < 0.16:
        direction = [0.0, 0.0, random.choice((-1.0, 1.0))]
    elif kind < 0.2:
        direction = [random.choice((-1.0, 1.0)), 0.0, 0.0]
    elif kind < 0.24:
        direction = [0.0, random.choice((-1.0, 1.0)), 0.0]
    factor = 10.0 ** random.uniform(-4, 4) if random.random() < 0.3 else 1.0
    ray = {"origin": origin, "direction": [v * factor for v in direction]}
    if not any(ray["direction"]):
        ray["direction"] = [1.0, 1.0, -1.0]
    if random.random() < 0.3:
        ray["t_max"] = random.uniform(0, 2) / factor
    return ray


def judge(terrain, ray, item, mode="closest", layer="ground", status="status"):
    """Fails unless the item is one that brute force allows."""
    what = f"ray {ray}"
    origin, direction = ray["origin"], ray["direction"]
    t_max = ray.get("t_max")
    t_max = math.inf if t_max is None else t_max
    length = math.sqrt(sum(v * v for v in direction))
    reach = math.sqrt(sum(v * v for v in origin)) + 100
    wide = terrain.hits(origin, direction, t_max, EDGE)
    sure = [hit for hit in wide if hit.inner > EDGE and 0 <= hit.t <= t_max * (1 - 1e-12)
            and hit.t * length > 1e-12 * reach and hit.sine > 1e-9]
    if item[status] == "miss":
        if sure:
            fail(f"{what}: missed, but there is a hit at t {sure[0].t} in cell {sure[0].cell}")
        for member in MEMBERS - {status}:
            check(member in item and item[member] is None, f"{what}: {member} of a miss: {item}")
        return
    equal(item[status], "hit", what)
    check(set(item) >= MEMBERS, f"{what}: members {sorted(item)}")

    def slack(hit):
        return (1e-7 * abs(hit.t) + 1e-10 * reach / length) + 1e-12 * reach / (length * hit.sine)
    same = [hit for hit in wide if abs(hit.t - item["t"]) <= slack(hit)]
    check(same, f"{what}: hit at t {item['t']}, brute force has {[hit.t for hit in wide][:4]}")
    check(0 <= item["t"] <= t_max, f"{what}: t {item['t']} beyond {t_max}")
    if mode == "closest" and sure:
        check(item["t"] <= sure[0].t + slack(sure[0]),
              f"{what}: hit at t {item['t']}, nearer is {sure[0].t}")
    near_all(item["point"], [o + item["t"] * d for o, d in zip(origin, direction)],
             f"{what}: point", 1e-7, reach)
    equal(item["layer"], layer, f"{what}: layer")
    faces = [(list(hit.cell), hit.triangle) for hit in same]
    face = (item["cell"], item["triangle"])
    check(face in faces, f"{what}: face {face}, brute force has {faces}")
    hit = same[faces.index(face)]
    near_all(item["normal"], list(hit.normal), f"{what}: normal", 1e-9)


def rays_agree(name, mode):
    terrain = shapes[name]
    random = rng(f"ray {name} {mode}")
    rays = [random_ray(random, terrain) for _ in range(400)]
    got = results(daemon, at(name) + "/ray", {"rays": rays, "mode": mode}, len(rays))
    for ray, item in zip(rays, got):
        judge(terrain, ray, item, mode)
    hits = sum(item["status"] == "hit" for item in got)
    check(40 < hits < 390, f"{hits} hits of 400: the rays ask too little")


for shape in shapes:
    case(f"400 rays at {shape}: the closest hit of brute force, t, point, normal, face",
         rays_agree, shape, "closest")
for shape in ("small-main", "wide-anti", "wide-alternating"):
    case(f"400 rays at {shape} in mode any: a hit where there is one", rays_agree, shape, "any")


@test("one by one gives the very bits of the batch")
def _():
    random = rng("single rays")
    rays = [random_ray(random, shapes["small-anti"]) for _ in range(60)]
    batch = results(daemon, at("small-anti") + "/ray", {"rays": rays}, 60)
    for ray, item in zip(rays, batch):
        equal(results(daemon, at("small-anti") + "/ray", {"rays": [ray]}, 1)[0], item, f"{ray}")


@test("no ray at a vertex, an edge or along a grid line slips through a closed surface")
def _():
    for triangulation in ("anti", "main", "alternating"):
        random = rng("leak " + triangulation)
        field = Terrain(9, 9, [[random.uniform(0, 3) for _ in range(9)] for _ in range(9)],
                        (1.0, 1.0), (0.0, 0.0), triangulation)
        put_terrain(daemon, "leak-" + triangulation, field)
        rays = []
        for _ in range(1500):
            c, r = random.randrange(1, 8), random.randrange(1, 8)
            a = field.at(c, r)
            if random.random() < 0.5:
                i, j = random.choice(((1, 0), (0, 1), (1, 1), (1, -1)))
                b = field.at(c + i, r + j) if abs(i * j) == 0 else a
                share = random.random()
                a = tuple(p + (q - p) * share for p, q in zip(a, b))
            kind = random.random()
            if kind < 0.3:
                up = (0.0, 0.0, 1.0)
            elif kind < 0.6:
                up = random.choice(((0.3, 0.0, 1.0), (0.0, -0.4, 1.0), (0.25, 0.25, 1.0)))
            else:
                up = (random.uniform(-0.3, 0.3), random.uniform(-0.3, 0.3), 1.0)
            origin = [p + 8 * q for p, q in zip(a, up)]
            rays.append({"origin": origin, "direction": [-2 * q for q in up]})
        got = results(daemon, at("leak-" + triangulation) + "/ray", {"rays": rays}, len(rays))
        for ray, item in zip(rays, got):
            equal(item["status"], "hit", f"{triangulation}: {ray}")
            judge(field, ray, item)


@test("height by triangle equals the vertical ray")
def _():
    random = rng("vertical")
    terrain = shapes["wide-main"]
    (x0, y0, _), (x1, y1, _) = terrain.bounds()
    points = [[random.uniform(x0, x1), random.uniform(y0, y1)] for _ in range(500)]
    heights = results(daemon, at("wide-main") + "/height", {"points": points}, 500)
    for direction, start in (([0, 0, -1], 1000), ([0, 0, 1], -1000)):
        rays = [{"origin": [*p, start], "direction": direction} for p in points]
        for p, h, item in zip(points, heights,
                              results(daemon, at("wide-main") + "/ray", {"rays": rays}, 500)):
            equal(item["status"], "hit", f"at {p}")
            near(item["point"][2], h["height"], f"at {p}", 1e-9, 10)


@test("a ray from below hits from below, its normal still points up")
def _():
    put_terrain(daemon, "plane", Terrain(5, 5, [[c / 2 for c in range(5)] for _ in range(5)]))
    item = results(daemon, at("plane") + "/ray",
                   {"rays": [{"origin": [1.25, 1.5, -4], "direction": [0, 0, 2]}]}, 1)[0]
    near(item["t"], (0.625 + 4) / 2, "t counts in lengths of the direction")
    near(item["distance"], 0.625 + 4, "distance counts metres")
    near_all(item["point"], [1.25, 1.5, 0.625], "point")
    near_all(item["normal"], [-1 / math.sqrt(5), 0, 2 / math.sqrt(5)], "normal")
    equal((item["cell"], item["triangle"]), ([1, 1], 0), "face")


@test("t_max bounds the ray, its end included; absent or null it is unbounded")
def _():
    ray = {"origin": [1.25, 1.5, 10.625], "direction": [0, 0, -1]}
    for t_max, status in ((9.999, "miss"), (10, "hit"), (1e300, "hit"), (None, "hit"), (0, "miss")):
        item = results(daemon, at("plane") + "/ray", {"rays": [{**ray, "t_max": t_max}]}, 1)[0]
        equal(item["status"], status, f"t_max {t_max}")
    equal(results(daemon, at("plane") + "/ray", {"rays": [ray]}, 1)[0]["status"], "hit", "absent")
    start = {"origin": [1.25, 1.5, 0.625], "direction": [0, 0, -1], "t_max": 0}
    item = results(daemon, at("plane") + "/ray", {"rays": [start]}, 1)[0]
    equal((item["status"], item["t"]), ("hit", 0), "on the surface, t_max 0")


@test("an impossible ray is an item of its own, the others are answered")
def _():
    good = {"origin": [1.25, 1.5, 4], "direction": [0, 0, -1]}
    bad = [{**good, "direction": [0, 0, 0]}, {**good, "t_max": -1}]
    got = results(daemon, at("plane") + "/ray", {"rays": [good, *bad, good]}, 4)
    equal([item["status"] for item in got], ["hit", "invalid", "invalid", "hit"], "statuses")
    for item, word in ((got[1], "direction"), (got[2], "t_max")):
        check(word in item["detail"], f"the detail names {word}: {item}")
        for member in MEMBERS - {"status"}:
            check(member in item and item[member] is None, f"{member} of {item}")


@test("tiny and huge directions and origins far away do not change what is hit")
def _():
    for factor in (1e-200, 1e-30, 1.0, 1e30, 1e150):
        ray = {"origin": [1.25, 1.5, 4.625], "direction": [0, 0, -factor]}
        item = results(daemon, at("plane") + "/ray", {"rays": [ray]}, 1)[0]
        equal(item["status"], "hit", f"factor {factor}")
        near(item["t"] * factor, 4.0, f"factor {factor}", 1e-9)
        near(item["distance"], 4.0, f"factor {factor}, metres", 1e-9)
    far = {"origin": [1.25 + 1e7, 1.5, 0.625 + 1e7], "direction": [-1, 0, -1]}
    item = results(daemon, at("plane") + "/ray", {"rays": [far]}, 1)[0]
    near(item["t"], 1e7, "from far away", 1e-8)


@test("rays along flat ground and grid lines answer and do not hang")
def _():
    put_terrain(daemon, "flat", Terrain(300, 300, [[0] * 300] * 300))
    rays = [{"origin": [-5, 10, 0], "direction": [1, 0, 0]},
            {"origin": [-5, 10.5, 0], "direction": [1, 0, 0]},
            {"origin": [-5, -5, 0], "direction": [1, 1, 0]},
            {"origin": [-5, 10, 1], "direction": [1, 0, 0]},
            {"origin": [-5, 10, 1], "direction": [1, 0, -1e-3]},
            {"origin": [0, 0, 1], "direction": [1, 1, 0]}]
    got = results(daemon, at("flat") + "/ray", {"rays": rays}, len(rays))
    equal(got[3]["status"], "miss", "a metre above")
    equal(got[5]["status"], "miss", "a metre above, along the diagonal")
    equal(got[4]["status"], "miss", "the slow descent meets the ground 995 m past the start")


@test("a ray that passes every triangle of a hole goes through")
def _():
    heights = [[1.0] * 5 for _ in range(5)]
    heights[2][2] = NAN
    put_terrain(daemon, "holed", Terrain(5, 5, heights))
    rays = [{"origin": [2.1, 2.1, 5], "direction": [0, 0, -1]},
            {"origin": [2.9, 2.9, 5], "direction": [0, 0, -1]},
            {"origin": [2.2, 2.2, 5], "direction": [0, 0, 1]}]
    got = results(daemon, at("holed") + "/ray", {"rays": rays}, 3)
    equal([item["status"] for item in got], ["miss", "hit", "miss"], "statuses")


@test("trace tells the boxes and cells that one ray visited")
def _():
    terrain = shapes["wide-main"]
    (x0, y0, z0), (x1, y1, z1) = terrain.bounds()
    ray = {"origin": [x0 - 5, y0 - 5, z1 + 1], "direction": [x1 - x0, y1 - y0, z0 - z1]}
    for body in ({"rays": [ray], "trace": True}, {"rays": [{**ray, "trace": True}]}):
        item = results(daemon, at("wide-main") + "/ray", body, 1)[0]
        judge(terrain, ray, item)
        trace = item["trace"]
        equal(set(trace), {"boxes", "cells", "meshes", "truncated"}, "members")
        equal(trace["meshes"], [], "meshes")
        equal(trace["truncated"], False, "truncated")
        check(0 < len(trace["boxes"]) <= 4096 and 0 < len(trace["cells"]) <= 4096, "bounded")
        for box in trace["boxes"]:
            check(set(box) >= {"level", "column", "row", "bounds", "entered"}, f"{box}")
            check(all(a <= b for a, b in zip(box["bounds"]["min"], box["bounds"]["max"])), f"{box}")
        equal(trace["cells"][-1], item["cell"], "the walk ends in the cell that was hit")
        for a, b in zip(trace["cells"], trace["cells"][1:]):
            check(all(isinstance(v, int) for v in b), f"{b}")
    plain = results(daemon, at("wide-main") + "/ray", {"rays": [ray]}, 1)[0]
    check("trace" not in plain, "trace unasked")
    problem(daemon.post(at("wide-main") + "/ray", {"rays": [ray, ray], "trace": True}), 400,
            "trace")


@test("the trace of a vertical ray holds the cell under it, whether that is hit or not")
def _():
    for direction, status in (([0, 0, -1], "hit"), ([0, 0, 1], "miss")):
        ray = {"origin": [2.9, 2.9, 5], "direction": direction}
        item = results(daemon, at("holed") + "/ray", {"rays": [ray], "trace": True}, 1)[0]
        equal(item["status"], status, f"status of {item}")
        equal(item["trace"]["cells"], [[2, 2]], f"cells of {item}")
        equal([(b["bounds"]["min"][:2], b["bounds"]["max"][:2]) for b in item["trace"]["boxes"]],
              [([0, 0], [4, 4])], f"the field's own box in {item}")


@test("a trace is cut at 4096 boxes and 4096 cells and says so")
def _():
    cols = 3000
    put_terrain(daemon, "long", Terrain(cols, 3, [[(c % 2) * 2.0 for c in range(cols)]] * 3))
    # Just above the valleys' floor no ridge may stop it: one at height 2 every other sample, so
    # the ray runs a hair above the ridges and every cell's box has to be looked at.
    ray = {"origin": [0.5, 0.3, 2.0000001], "direction": [1, 1e-7, -1e-12]}
    item = results(daemon, at("long") + "/ray", {"rays": [ray], "trace": True}, 1)[0]
    trace = item["trace"]
    check(len(trace["boxes"]) <= 4096 and len(trace["cells"]) <= 4096, "bounded")
    check(isinstance(trace["truncated"], bool), "truncated")


@test("rays look at all layers, or at the one named")
def _():
    put_locale(daemon, "stack")
    put_layer(daemon, "stack", Terrain(3, 3, [[1] * 3] * 3), "low")
    put_layer(daemon, "stack", Terrain(3, 3, [[7] * 3] * 3), "high")
    down = {"rays": [{"origin": [1.2, 1.3, 9], "direction": [0, 0, -1]},
                     {"origin": [1.2, 1.3, 5], "direction": [0, 0, -1]},
                     {"origin": [1.2, 1.3, 0], "direction": [0, 0, 1]}]}
    got = results(daemon, at("stack") + "/ray", down, 3)
    equal([(item["layer"], item["t"]) for item in got], [("high", 2), ("low", 4), ("low", 1)],
          "closest of all layers")
    got = results(daemon, at("stack") + "/ray", {**down, "layer": "low"}, 3)
    equal([(item["layer"], item["t"]) for item in got], [("low", 8), ("low", 4), ("low", 1)],
          "layer in the body")
    got = results(daemon, at("stack") + "/ray?layer=high", down, 3)
    equal([item["status"] for item in got], ["hit", "miss", "hit"], "layer in the query")


@test("under another gravity normals point against it")
def _():
    put_terrain(daemon, "upside", Terrain(3, 3, [[1] * 3] * 3), gravity=[0, 0, 1])
    item = results(daemon, at("upside") + "/ray",
                   {"rays": [{"origin": [1.2, 1.3, 9], "direction": [0, 0, -1]}]}, 1)[0]
    near_all(item["normal"], [0, 0, -1], "normal")


# ---- line of sight -------------------------------------------------------------------------------


def sights_agree(name):
    terrain = shapes[name]
    random = rng("los " + name)
    low, high = box_of(terrain)
    segments = []
    for _ in range(400):
        a = [p + (q - p) * random.uniform(-0.1, 1.1) for p, q in zip(low, high)]
        b = [p + (q - p) * random.uniform(-0.1, 1.1) for p, q in zip(low, high)]
        if random.random() < 0.1:
            b[:2] = a[:2]
        segments.append({"from": a, "to": b})
    got = results(daemon, at(name) + "/los", {"segments": segments}, 400)
    blocked = 0
    for segment, item in zip(segments, got):
        what = f"{segment}"
        a, b = segment["from"], segment["to"]
        direction = [q - p for p, q in zip(a, b)]
        length = math.sqrt(sum(v * v for v in direction))
        hits = terrain.hits(a, direction, 1.0, EDGE)
        end = 1e-4 / max(length, 1e-4)
        sure = [h for h in hits if h.inner > EDGE and end < h.t < 1 - end]
        unsure = [h for h in hits if h not in sure]
        check(set(item) >= {"visible", "fraction", "point"}, f"{what}: {item}")
        check(isinstance(item["visible"], bool), f"{what}: {item}")
        if item["visible"]:
            check(not sure, f"{what}: visible, but blocked at t {[h.t for h in sure][:3]}")
            equal((item["fraction"], item["point"]), (None, None), what)
            continue
        blocked += 1
        near_any = [h for h in hits if abs(h.t - item["fraction"]) < 1e-7 + 1e-9 / h.sine]
        check(near_any, f"{what}: blocked at {item['fraction']}, brute force {[h.t for h in hits][:4]}")
        if sure and not unsure:
            near(item["fraction"], sure[0].t, f"t of {what}", 1e-7)
        near_all(item["point"], [p + item["fraction"] * d for p, d in zip(a, direction)],
                 f"point of {what}", 1e-7, 1000)
    check(20 < blocked < 395, f"{blocked} of 400 blocked: the segments ask too little")


for shape in ("small-anti", "small-main", "small-alternating", "wide-anti", "wide-main",
              "wide-alternating"):
    case(f"400 lines of sight over {shape} agree with brute force", sights_agree, shape)


@test("a sight line that only touches at its end points is visible")
def _():
    put_terrain(daemon, "hill", Terrain(5, 5, [[0, 0, 4, 0, 0]] * 5))
    segments = [{"from": [2, 1.5, 4], "to": [2, 1.5, 50]},       # from the ground up
                {"from": [2, 1.5, 4], "to": [0, 1.5, 4]},        # from the ridge, level
                {"from": [2, 1.5, 50], "to": [0.25, 1.5, 0]},    # down to the ground
                {"from": [0, 1.5, 1], "to": [4, 1.5, 1]},        # through the hill
                {"from": [0.5, 1.5, -1], "to": [0.5, 1.5, 1]}]   # from below the ground
    got = results(daemon, at("hill") + "/los", {"segments": segments}, 5)
    equal([item["visible"] for item in got], [True, True, True, False, False], "visible")
    near(got[3]["fraction"], 1.25 / 4, "fraction")
    near_all(got[3]["point"], [1.25, 1.5, 1], "point")
    near(got[4]["fraction"], 0.5, "fraction")


@test("at 8 km an end may be off by a rounding to float32, and not by more")
def _():
    put_terrain(daemon, "high", Terrain(9, 9, [[8000 + 0.1 * c + 0.07 * r for c in range(9)]
                                               for r in range(9)]))
    random = rng("high ends")
    points = [[random.uniform(0.5, 7.5), random.uniform(0.5, 7.5)] for _ in range(200)]
    heights = [item["height"] for item in
               results(daemon, at("high") + "/height", {"points": points}, 200)]
    rounded = [struct.unpack("<f", struct.pack("<f", z))[0] for z in heights]
    for ends, visible in ((heights, True), (rounded, True), ([z - 0.003 for z in heights], False)):
        segments = [{"from": [*p, z], "to": [p[0] + 0.1, p[1], z + 50]}
                    for p, z in zip(points, ends)]
        got = results(daemon, at("high") + "/los", {"segments": segments}, 200)
        equal([item["visible"] for item in got], [visible] * 200, f"visible, {visible}")


@test("two points read from height see each other unless ground is between")
def _():
    terrain = shapes["wide-main"]
    random = rng("ground to ground")
    points = []
    (x0, y0, _), (x1, y1, _) = terrain.bounds()
    for _ in range(200):
        points.append([random.uniform(x0, x1), random.uniform(y0, y1)])
    heights = results(daemon, at("wide-main") + "/height", {"points": points}, 200)
    ends = [[*p, item["height"]] for p, item in zip(points, heights)]
    segments = [{"from": a, "to": [a[0], a[1], a[2] + 100]} for a in ends]
    got = results(daemon, at("wide-main") + "/los", {"segments": segments}, 200)
    equal([item["visible"] for item in got], [True] * 200, "straight up")
    got = results(daemon, at("wide-main") + "/los",
                  {"segments": [{"from": s["to"], "to": s["from"]} for s in segments]}, 200)
    equal([item["visible"] for item in got], [True] * 200, "straight down")


run(daemon.stop)
