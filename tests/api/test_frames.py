"""frame=spherical and frame=cylindrical: planets, hollow worlds, drums and masts, from all sides."""
import json
import math
import os
import shutil
import struct
import tempfile

from daemon import F64, Daemon, problem
from fields import Terrain, put_layer, put_locale, results
from mesh_oracle import NOT_SHARED, obj, put_mesh, rectangle
from oracle import add, cross, dot, scale, sub, unit
from tap import case, check, equal, near, near_all, rng, run, test

daemon = Daemon()
RADIUS = 50.0


def at(name):
    return f"/v1/locales/{name}"


def on_sphere(theta, phi, r):
    return (r * math.cos(phi) * math.cos(theta), r * math.cos(phi) * math.sin(theta),
            r * math.sin(phi))


def sphere(name, radius=RADIUS, bumps=0.1, around=14, rings=9):
    """A closed bumpy sphere of triangles; each pole is one corner."""
    random = rng("sphere " + name)
    rows = []
    for i in range(rings + 1):
        rows.append([on_sphere(2 * math.pi * k / around, math.pi * (i / rings - 0.5),
                               radius * random.uniform(1 - bumps, 1 + bumps))
                     for k in range(around)])
    rows[0], rows[-1] = [(0, 0, -radius)] * around, [(0, 0, radius)] * around
    made = []
    for low, high in zip(rows, rows[1:]):
        for k in range(around):
            n = (k + 1) % around
            if high is not rows[-1]:
                made.append([low[k], high[n], high[k]])
            if low is not rows[0]:
                made.append([low[k], low[n], high[n]])
    return made


def tube(radius, z0, z1, around=12):
    """Flat quads around the Z axis."""
    corner = [(radius * math.cos(2 * math.pi * k / around),
               radius * math.sin(2 * math.pi * k / around)) for k in range(around + 1)]
    corner[around] = corner[0]
    return [[(*a, z0), (*b, z0), (*b, z1), (*a, z1)] for a, b in zip(corner, corner[1:])]


def away(frame, p):
    """(where the line of gravity through p begins, its direction, the distance of p on it)"""
    begin = (0.0, 0.0, p[2] if frame == "cylindrical" else 0.0)
    out = sub(p, begin)
    return begin, unit(out), math.sqrt(dot(out, out))


def meets(triangle, origin, direction):
    """(t, clear of all edges) of the endless line, or None."""
    (ax, ay, az), b, (cx, cy, cz) = triangle
    dx, dy, dz = direction
    ac = cx, cy, cz = cx - ax, cy - ay, cz - az
    hx, hy, hz = dy * cz - dz * cy, dz * cx - dx * cz, dx * cy - dy * cx
    det = (b[0] - ax) * hx + (b[1] - ay) * hy + (b[2] - az) * hz
    if abs(det) < 1e-12:
        return None
    u = ((origin[0] - ax) * hx + (origin[1] - ay) * hy + (origin[2] - az) * hz) / det
    if not -1e-9 < u < 1 + 2e-9:
        return None
    q = cross(sub(origin, triangle[0]), sub(b, triangle[0]))
    v = dot(direction, q) / det
    least = min(u, v, 1 - u - v)
    return (dot(ac, q) / det, least > 1e-9) if least > -1e-9 else None


def crossings(rings, origin, direction):
    found = []
    for ring in rings:
        for b, c in zip(ring[1:], ring[2:]):
            met = meets((ring[0], b, c), origin, direction)
            if met and met[0] >= 0:
                found.append(met)
    return sorted(found)


def contact(name, point, **named):
    return results(daemon, at(name) + "/contact", {"points": [point], **named}, 1)[0]


def judge(frame, pull, rings, p, item):
    begin, d, r = away(frame, p)
    found = [(t if pull == "in" else -t, clear) for t, clear in crossings(rings, begin, d)]
    mine = r if pull == "in" else -r
    floors = [t for t, clear in found if t <= mine + 1e-9]
    ceilings = [t for t, clear in found if t > mine + 1e-9]
    check(item["status"] in (("ok",) if floors else ("below",) if ceilings else ("hole", "outside")),
          f"status of {p}: {item}")
    for side, want in (("floor", max(floors, default=None)), ("ceiling", min(ceilings, default=None))):
        got = item[side]
        if want is None:
            equal(got, None, f"{side} of {p}")
            continue
        check(got, f"{side} of {p}: none, expected at {want}")
        near(got["distance"], abs(mine - want), f"distance to the {side} of {p}", 1e-6)
        near_all(got["point"], add(begin, scale(d, abs(want))), f"{side} of {p}", 1e-6)
        up = d if pull == "in" else scale(d, -1)
        check(dot(got["normal"], up) >= 0, f"the {side}'s normal of {p} points down")
        near(got["slope_deg"], math.degrees(math.acos(min(1, dot(got["normal"], up)))),
             f"slope of {p}", 1e-6)


POLES = [(0, 1e-30, 80), (0, 1e-30, -80), (0, 1e-30, 20), (1e-9, 0, 55)]
SEAM = [(-80, 0.0, 0), (-80, -0.0, 3), (-80, 1e-13, -40), (-20, -1e-13, 7), (-60, 0, 30)]


def places(random, count):
    for _ in range(count):
        yield on_sphere(random.uniform(-math.pi, math.pi), random.uniform(-1.57, 1.57),
                        random.uniform(10, 90))


def agrees(frame, pull):
    name = f"{frame}-{pull}"
    rings = sphere(name) + sphere(name + " inner", RADIUS / 2)
    put_locale(daemon, name)
    told = put_mesh(daemon, name, rings, query=f"frame={frame}&gravity={pull}")
    layer = told["layers"][0]
    equal((layer["frame"], layer["gravity"], layer["kind"]), (frame, pull, "mesh"), "layer")
    # what the axis passes through has a corner on it: it touches, nothing is dropped
    equal(told["import"], {"kept": len(rings), "split": 0, "dropped": 0, **NOT_SHARED}, "import")
    points = [p for p in POLES + SEAM + list(places(rng(name), 300))
              if frame == "spherical" or abs(p[2]) < 24 or math.hypot(p[0], p[1]) > 1]
    for p, item in zip(points, results(daemon, at(name) + "/contact",
                                       {"points": [list(p) for p in points], "reach_up": 0},
                                       len(points))):
        judge(frame, pull, rings, p, item)
    each = [contact(name, list(p)) for p in points[:20]]
    equal(results(daemon, at(name) + "/contact", {"points": [list(p) for p in points[:20]]}, 20),
          each, "a batch")


for kind in ("spherical", "cylindrical"):
    for direction in ("in", "out"):
        case(f"contact is brute force's, poles and seam included: {kind}, gravity {direction}",
             agrees, kind, direction)


# ---- a planet and a drum by hand ----------------------------------------------------------------

CUBE = [rectangle(-10, -10, 10, 10, z) for z in (-10, 10)] + [
    [(x, -10, -10), (x, 10, -10), (x, 10, 10), (x, -10, 10)] for x in (-10, 10)] + [
    [(-10, y, -10), (10, y, -10), (10, y, 10), (-10, y, 10)] for y in (-10, 10)]


def planet(name="planet", **manifest):
    put_locale(daemon, name, **manifest)
    return put_mesh(daemon, name, CUBE, query="frame=spherical")


@test("a planet: gravity is inward unless said; contact, placed, reach_up, contains, footprint")
def _():
    told = planet(gravity=[1, 0, 0])
    equal((told["layers"][0]["frame"], told["layers"][0]["gravity"]), ("spherical", "in"), "layer")
    under = contact("planet", [0, -13, 0])["floor"]
    equal((under["point"], under["distance"], under["normal"], under["slope_deg"]),
          ([0, -10, 0], 3, [0, -1, 0], 0), "the far side's floor")
    corner = contact("planet", [20, 20, 20])["floor"]
    near_all(corner["point"], [10, 10, 10], "corner")
    near(corner["slope_deg"], math.degrees(math.acos(1 / math.sqrt(3))), "slope at the corner")
    inside = contact("planet", [0, 0, -4])
    equal((inside["status"], inside["floor"], inside["ceiling"]["distance"]), ("below", None, 6),
          "inside")
    equal(contact("planet", [0, 0, -4], reach_up=7)["floor"]["point"], [0, 0, -10], "reach_up")
    equal(contact("planet", [0, 0, -4], clearance=2)["placed"], [0, 0, -12], "placed")
    equal(contact("planet", [0, 40, 0], clearance=2, clearance_mode="exact")["placed"],
          [0, 12, 0], "placed exactly")
    middle = contact("planet", [0, 0, 0])
    equal((middle["status"], middle["floor"], middle["ceiling"]), ("hole", None, None),
          "at the centre nothing pulls")
    answers = results(daemon, at("planet") + "/contains",
                      {"points": [[0, 0, 11], [0, 0, 9], [-1e6, 0, 0]]}, 3)
    equal([item["status"] for item in answers], ["inside", "below", "inside"], "contains")
    wheels = [[-12, 1, 1], [-12, -1, 1], [-12, 0, -1]]
    foot = results(daemon, at("planet") + "/contact", {"footprints": [wheels]}, 1)[0]
    near_all(foot["plane"]["normal"], [-1, 0, 0], "the plane's normal is against gravity there")
    near(foot["plane"]["d"], -10, "d")


@test("a drum: gravity is outward unless said; walls, ends and the axis")
def _():
    put_locale(daemon, "drum", open_sky=False)
    caps = [[(x, y, z) for x, y, _ in (q[0] for q in tube(20, 0, 1))] for z in (-30, 30)]
    told = put_mesh(daemon, "drum", tube(20, -30, 30) + tube(5, -30, 30) + caps,
                    query="frame=cylindrical")
    equal(told["layers"][0]["gravity"], "out", "gravity")
    equal(told["import"], {"kept": 26, "split": 0, "dropped": 0, **NOT_SHARED},
          "caps across the axis are walls")
    edge = 20 * math.cos(math.pi / 12)  # where the middle of a quad is
    there = on_sphere(math.pi / 12, 0, 12)
    item = contact("drum", [there[0], there[1], 4])
    near(item["floor"]["distance"], edge - 12, "floor")
    near(item["ceiling"]["distance"], 12 - 5 * math.cos(math.pi / 12), "ceiling")
    near_all(item["floor"]["normal"], scale(unit(there), -1), "the normal points to the axis")
    near(item["floor"]["point"][2], 4, "the line of gravity is level")
    status = results(daemon, at("drum") + "/contains",
                     {"points": [[12, 0, 0], [2, 0, 0], [12, 0, 31], [-12, 0, -29], [0, 0, 5]]}, 5)
    equal([item["status"] for item in status],
          ["inside", "outside", "outside", "inside", "hole"], "contains")
    equal(contact("drum", [0, 0, 5])["status"], "hole", "on the axis")
    equal(contact("drum", [12, 0, 99])["status"], "outside", "beyond the ends")
    equal(contact("drum", [30, 0, 0], reach_up=100)["floor"]["point"][0], 5, "reach_up to the axis")
    rays = [{"origin": [10, 0, 0], "direction": [0, 0, 2]}, {"origin": [3, 0, 0], "direction": [1, 0, 0]},
            {"origin": [10, 0, 0], "direction": [0, 0, -1], "t_max": 29}]
    hits = results(daemon, at("drum") + "/ray", {"rays": rays}, 3)
    equal((hits[0]["t"], hits[0]["normal"], hits[0]["polygon"]), (15, [0, 0, -1], 25), "the cap")
    near(hits[1]["t"], 2, "the inner tube's edge")
    check(hits[1]["normal"][0] < 0, "normal against gravity")
    equal(hits[2]["status"], "miss", "t_max")


@test("rays, sight and picking around a planet")
def _():
    planet("seen")
    random = rng("rays")
    rings = CUBE
    rays = [{"origin": [random.uniform(-30, 30) for _ in range(3)],
             "direction": [random.uniform(-1, 1) for _ in range(3)]} for _ in range(300)]
    for ray, item in zip(rays, results(daemon, at("seen") + "/ray", {"rays": rays}, 300)):
        found = crossings(rings, tuple(ray["origin"]), tuple(ray["direction"]))
        equal(item["status"], "hit" if found else "miss", f"{ray}")
        if found:
            near(item["t"], found[0][0], f"t of {ray}", 1e-9)
            up = unit(tuple(item["point"]))
            check(dot(item["normal"], up) > 0, f"normal of {ray}")
    # two who stand on opposite sides do not see each other; on one side they do
    sights = [{"from": [0, 0, 10], "to": [0, 0, -10]}, {"from": [0, 0, 10], "to": [9, 5, 10]},
              {"from": [0, 0, 12], "to": [12, 0, 0]}, {"from": [0, 0, 20], "to": [20, 0, 0.5]}]
    equal([item["visible"] for item in results(daemon, at("seen") + "/los", {"segments": sights}, 4)],
          [False, True, False, True], "sight")
    picked = daemon.ok("POST", at("seen") + "/pick",
                       {"camera": {"eye": [0, -40, 0], "target": [0, 0, 0], "up": [0, 0, 1],
                                   "fov_y_deg": 60}, "viewport": [100, 100], "pixel": [50, 50]})
    near_all(picked["hit"]["point"], [0, -10, 0], "picked")
    near_all(picked["hit"]["normal"], [0, -1, 0], "its normal")
    equal(picked["tile"], None, "a mesh has no tiles")


@test("shadows on a planet are those of rays, however often the light is asked")
def _():
    planet("lit")
    points = [[0, 0, 10], [0, 0, -10], [0, 0, -12], [30, 0, 0], [0, 10, 3], [10, 3, 3]]

    def towards(light, p):
        if "direction" in light:
            return scale(unit(tuple(light["direction"])), -1)
        return unit(sub(tuple(light["position"]), tuple(p)))

    for light in ({"direction": [0, 0, -1]}, {"direction": [-1, 0.1, 0.2]},
                  {"position": [0, 0, 40]}):
        rays = [{"origin": add(p, scale(towards(light, p), 1e-6)), "direction": towards(light, p)}
                for p in points]
        want = [item["status"] == "miss"
                for item in results(daemon, at("lit") + "/ray", {"rays": rays}, 6)]
        check(True in want and False in want, f"{light} shows nothing: {want}")
        for _ in range(4):
            got = results(daemon, at("lit") + "/lit", {"points": points, "light": light}, 6)
            equal([item["lit"] for item in got], want, f"{light}")


@test("several layers under one gravity answer together: the highest floor, the lowest ceiling")
def _():
    planet("layers", open_sky=False)
    shell = [[scale(corner, 2) for corner in ring] for ring in CUBE]
    put_mesh(daemon, "layers", shell, layer="sky", query="frame=spherical&role=ceiling")
    hut = [[(-1, -1, 12), (1, -1, 12), (1, 1, 12), (-1, 1, 12)]]
    told = put_mesh(daemon, "layers", hut, layer="hut", query="frame=spherical&gravity=in")
    equal([layer["frame"] for layer in told["layers"]], ["spherical"] * 3, "frames")
    item = contact("layers", [0, 0, 15])
    equal((item["floor"]["layer"], item["ceiling"]["layer"]), ("hut", "sky"), "over the hut")
    item = contact("layers", [0, 0, 11])
    equal((item["floor"]["layer"], item["ceiling"]["layer"]), ("mesh", "hut"), "in the hut")
    item = contact("layers", [0, 0, 30])
    equal((item["floor"]["layer"], item["ceiling"]), ("hut", None), "a ceiling is no floor")
    inside = results(daemon, at("layers") + "/contains", {"points": [[0, 0, 15], [0, 0, 30]]}, 2)
    equal([(entry["status"], entry["ceiling"]) for entry in inside],
          [("inside", True), ("outside", False)], "contains")
    equal(contact("layers", [0, 0, 15], layer="mesh")["floor"]["layer"], "mesh", "one layer")
    equal(daemon.ask("DELETE", at("layers") + "/layers/hut").status, 204, "DELETE")
    equal(contact("layers", [0, 0, 15])["floor"]["layer"], "mesh", "without the hut")


@test("binary contact tells distances from the centre or the axis, with the bits of the single one")
def _():
    planet("bytes")
    points = list(places(rng("bytes"), 50)) + [(0.0, 0.0, 0.0)]
    body = b"".join(struct.pack("<3d", *p) for p in points)
    answer = daemon.post(at("bytes") + "/contact", body, media=F64)
    equal((answer.status, len(answer.body)), (200, 48 * len(points)), "answer")
    for i, p in enumerate(points):
        got = struct.unpack_from("<6d", answer.body, 48 * i)
        item = contact("bytes", list(p))
        for side, value in (("floor", got[0]), ("ceiling", got[4])):
            if item[side] is None:
                check(math.isnan(value), f"{side} of {p}: {value}")
            else:
                near(value, math.sqrt(dot(item[side]["point"], item[side]["point"])), side, 1e-15)
        if item["floor"]:
            equal(list(got[1:4]), item["floor"]["normal"], "normal")


# ---- the world ----------------------------------------------------------------------------------


@test("locate and the world's calls find a turned planet, beside a flat locale")
def _():
    with Daemon() as other:
        def ask(method, target, body=None, **named):
            return other.ok(method, target, body, **named)

        half = math.sqrt(0.5)
        ask("PUT", at("moon"), {"placement": {"translation": [1000, 0, 0],
                                               "rotation": [half, 0, 0, half]}}, status=201)
        put_mesh(other, "moon", CUBE, query="frame=spherical")
        ask("PUT", at("flat"), {}, status=201)
        put_mesh(other, "flat", [rectangle(-5, -5, 5, 5, 0)])
        found = ask("POST", "/v1/locate", {"points": [[1000, 0, -12], [0, 0, 1], [1000, 12, 0]],
                                           "hints": ["moon", None, "moon"]})["results"]
        equal([item["locale"] for item in found], ["moon", "flat", "moon"], "locate")
        near_all(found[0]["point"], [0, -12, 0], "its place on the moon", 1e-9)
        item = ask("POST", "/v1/contact", {"points": [[1000, 0, -13]], "hints": ["moon"],
                                           "clearance": 5})["results"][0]
        near_all(item["floor"]["point"], [1000, 0, -10], "floor", 1e-9)
        near_all(item["floor"]["normal"], [0, 0, -1], "normal in the world", 1e-9)
        near_all(item["placed"], [1000, 0, -15], "placed in the world", 1e-9)
        hit = ask("POST", "/v1/ray", {"rays": [{"origin": [0, 1, 2], "direction": [1, 0, 0]}]})
        near(hit["results"][0]["t"], 990, "a ray from the flat locale to the moon", 1e-9)
        foot = ask("POST", "/v1/contact", {"footprints": [[[999, 1, -12], [1001, 1, -12],
                                                           [1000, -1, -12]]], "hints": ["moon"]})
        near_all(foot["results"][0]["plane"]["normal"], [0, 0, -1], "footprint", 1e-9)


# ---- what cannot be -----------------------------------------------------------------------------


@test("heights, profiles and rasters: 422 with the reason")
def _():
    planet("no-height")
    put_locale(daemon, "no-height-drum")
    put_mesh(daemon, "no-height-drum", tube(5, 0, 9), query="frame=cylindrical")
    problem(daemon.get(at("no-height") + "/height?x=0&y=0"), 422, "origin", "spherical", "contact")
    problem(daemon.post(at("no-height") + "/height", {"points": [[0, 0]]}), 422, "contact", pointer="locale")
    problem(daemon.post(at("no-height") + "/height", struct.pack("<2d", 0, 0), media=F64), 422)
    problem(daemon.get(at("no-height") + "/height?x=0&y=0&layer=mesh"), 422, "spherical")
    problem(daemon.get(at("no-height-drum") + "/height?x=0&y=0"), 422, "Z axis", "cylindrical")
    problem(daemon.post(at("no-height") + "/profile", {"path": [[0, 0], [1, 1]], "samples": 3}),
            422)
    terrain = Terrain(2, 2, [[0, 0], [0, 0]])
    for frame in ("spherical", "cylindrical"):
        problem(daemon.put(f"{at('no-height')}/layers/g?{terrain.query()}&frame={frame}",
                           terrain.body(), media="application/vnd.kota.f32"), 422, frame,
                "heightfield", pointer="frame")


@test("bad frames and gravities are named")
def _():
    put_locale(daemon, "bad")
    for query, status, word in (("frame=toroidal", 400, "frame"), ("gravity=in", 422, "gravity"),
                                ("frame=cartesian&gravity=out", 422, "gravity"),
                                ("frame=spherical&gravity=up", 400, "gravity"),
                                ("frame=spherical&gravity=", 400, "gravity")):
        problem(daemon.put(f"{at('bad')}/layers/m?{query}", obj(CUBE), media="model/obj"), status,
                word)
    equal(daemon.ok("GET", at("bad"))["layers"], [], "nothing came of it")


@test("one locale has one gravity: mixed frames are 422, the only layer may change its own")
def _():
    planet("mixed")
    terrain = Terrain(2, 2, [[0, 0], [0, 0]])
    problem(daemon.put(f"{at('mixed')}/layers/g?{terrain.query()}", terrain.body(),
                       media="application/vnd.kota.f32"), 422, "one gravity", "spherical")
    for query in ("", "frame=cylindrical", "frame=spherical&gravity=out"):
        problem(daemon.put(f"{at('mixed')}/layers/m2?{query}", obj(CUBE), media="model/obj"), 422,
                "one gravity", "mesh", pointer="frame")
    equal(daemon.ok("GET", at("mixed"))["revision"], 2, "nothing was changed")
    for query in ("frame=cylindrical&gravity=in", "", "frame=spherical"):
        put_mesh(daemon, "mixed", CUBE, query=query, status=200)
    put_locale(daemon, "mixed", status=200, gravity=[0, -1, 0])
    equal(contact("mixed", [13, 0, 0])["floor"]["distance"], 3, "a manifest does not bend it")
    put_mesh(daemon, "mixed", CUBE, query="", status=200)
    equal(contact("mixed", [0, 13, 0])["floor"]["point"], [0, 10, 0], "cartesian again")


@test("polygons that gravity has no way around are dropped and counted; nothing left is 422")
def _():
    put_locale(daemon, "dropped")
    through = [(-9, -9, -9), (9, -9, -9), (9, 9, 9), (-9, 9, 9)]
    around = {"kept": 6, "split": 0, "dropped": 1, **NOT_SHARED, "reasons": {"around_centre": 1},
              "dropped_polygons": [{"polygon": 6, "reason": "around_centre"}]}
    told = put_mesh(daemon, "dropped", CUBE + [through], query="frame=spherical")
    equal(told["import"], around, "through the centre")
    told = put_mesh(daemon, "dropped", CUBE + [through], query="frame=cylindrical", status=200)
    equal(told["import"], around, "through the axis")
    problem(daemon.put(at("dropped") + "/layers/mesh?frame=spherical", obj([through]),
                       media="model/obj"), 422, "origin", "1")
    problem(daemon.put(at("dropped") + "/layers/mesh?frame=cylindrical", obj([through]),
                       media="model/obj"), 422, "Z axis")
    problem(daemon.put(at("dropped") + "/layers/mesh?frame=spherical",
                       obj([[(1e13, 0, 0), (1e13, 1, 0), (1e13, 0, 1)]]), media="model/obj"), 400,
            "1e+12")
    check(daemon.put(at("dropped") + "/layers/mesh?frame=spherical",
                     "v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", media="model/obj").status in
          (400, 422), "NaN")
    # an edge of nearly half of the circle, and a triangle that is most of the sky
    wide = [(-1e6, 1, 0.001), (1e6, 1, 0.001), (0, 1, 1e6)]
    put_mesh(daemon, "dropped", [wide], query="frame=spherical", status=200)
    near_all(contact("dropped", [0, 5, 5])["floor"]["point"], [0, 1, 1], "under the wide one")
    near_all(contact("dropped", [-900, 5, 5])["floor"]["point"], [-180, 1, 1], "far along it")
    equal(contact("dropped", [0, 5, -5])["floor"], None, "beside it")


# ---- to keep ------------------------------------------------------------------------------------


@test("a database keeps the frame; --world and FILE?frame= take it; stats and export tell the mesh")
def _():
    folder = tempfile.mkdtemp(prefix="kota-frames-")
    try:
        rings, points = sphere("kept"), [list(p) for p in places(rng("kept"), 100)]
        world = os.path.join(folder, "world", "asteroid")
        os.makedirs(world)
        for name, entry in (("rock.obj", obj(rings)), ("locale.json", json.dumps(
                {"layers": [{"id": "rock", "file": "rock.obj", "frame": "spherical",
                             "gravity": "out"}]}).encode())):
            with open(os.path.join(world, name), "wb") as file:
                file.write(entry if isinstance(entry, bytes) else entry.encode())
        data, seen = os.path.join(folder, "data"), None
        for end in (Daemon.stop, Daemon.kill, Daemon.stop):
            one = Daemon("--data", data, "--world", os.path.join(folder, "world"))
            if seen is None:
                one.ok("PUT", at("kept"), {}, status=201)
                put_mesh(one, "kept", rings, query="frame=cylindrical&gravity=in")
            got = [one.ok("GET", at("kept"))["layers"], one.ok("GET", at("asteroid"))["layers"],
                   one.ok("POST", at("kept") + "/contact", {"points": points}),
                   one.ok("POST", at("asteroid") + "/contact", {"points": points}),
                   one.ok("GET", at("kept") + "/layers/mesh/stats")]
            equal((got[0][0]["frame"], got[0][0]["gravity"]), ("cylindrical", "in"), "kept")
            equal((got[1][0]["frame"], got[1][0]["gravity"]), ("spherical", "out"), "asteroid")
            equal(got[4]["polygons"], len(rings), "polygons")
            check(got[4]["leaves"] > 10 and got[4]["depth"] > 1, f"stats {got[4]}")
            equal(seen or got, got, "after a restart")
            seen = got
            exported = one.get(at("kept") + "/layers/mesh")
            equal((exported.status, exported.body.count(b"\nf ")), (200, len(rings)), "export")
            end(one)
    finally:
        shutil.rmtree(folder)


run(daemon.stop)
