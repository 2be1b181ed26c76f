"""Layers of polygons: upload and what it counts, scenes worked out by hand, statistics."""
import json
import math
import struct
import threading

from daemon import F64, Daemon, connection_to, problem
from fields import Terrain, put_layer, put_locale, results
from mesh_oracle import (CEILING, NOT_SHARED, MeshLayer, World, grid_rings, obj, put_mesh, put_world,
                         rectangle, wall)
from tap import HANG_S, case, check, equal, near, near_all, rng, run, test

daemon = Daemon()
LAYER = {"id", "kind", "role", "polygons", "frame", "bounds", "memory_bytes"}
STATS = {"nodes", "leaves", "depth", "polygons", "bytes", "average_tests"}
DOWN = [0, 0, -1]


def at(name):
    return f"/v1/locales/{name}"


def scene(name, rings, query="", **manifest):
    """A new locale with one mesh layer; the PUT's answer."""
    put_locale(daemon, name, **manifest)
    return put_mesh(daemon, name, rings, query=query)


def contact(name, point, **named):
    return results(daemon, at(name) + "/contact", {"points": [point], **named}, 1)[0]


def heights_of(item):
    """(floor z, ceiling z) of a contact item."""
    return tuple(item[member] and item[member]["point"][2] for member in ("floor", "ceiling"))


# ---- upload -------------------------------------------------------------------------------------


@test("a mesh layer is told with its kind, role, polygons and bounds; the PUT says what was kept")
def _():
    put_locale(daemon, "told")
    answer = put_mesh(daemon, "told", [rectangle(0, 0, 4, 2, 1), wall((0, 0), (4, 0), 1, 3)])
    equal(answer["import"], {"kept": 2, "split": 0, "dropped": 0, **NOT_SHARED}, "import")
    equal(answer["revision"], 2, "revision")
    equal(answer["bounds"], {"min": [0, 0, 1], "max": [4, 2, 3]}, "bounds, the wall counts")
    layer = answer["layers"][0]
    check(set(layer) >= LAYER, f"members {sorted(layer)}")
    equal((layer["id"], layer["kind"], layer["role"], layer["polygons"]),
          ("mesh", "mesh", "ground", 2), "layer")
    equal(layer["bounds"], answer["bounds"], "bounds of the layer")
    check(layer["memory_bytes"] > 100, f"memory_bytes {layer['memory_bytes']}")
    locale = daemon.ok("GET", at("told"))
    check("import" not in locale, "import belongs to the upload")
    del answer["import"]
    equal(locale, answer, "GET")
    again = put_mesh(daemon, "told", [rectangle(0, 0, 1, 1, 5)], status=200)
    equal((again["revision"], again["layers"][0]["polygons"]), (3, 1), "replaced")
    equal(again["bounds"], {"min": [0, 0, 5], "max": [1, 1, 5]}, "bounds of the new one")
    equal(daemon.ask("DELETE", at("told") + "/layers/mesh").status, 204, "DELETE")
    equal(daemon.ok("GET", at("told"))["bounds"], None, "nothing left")


L_SHAPE = [(0, 0, 0), (4, 0, 0), (4, 1, 0), (1, 1, 0), (1, 4, 0), (0, 4, 0)]
STAR = [(math.cos(i * math.pi / 5) * (4 if i % 2 else 1.5),
         math.sin(i * math.pi / 5) * (4 if i % 2 else 1.5), 2.0) for i in range(10)]
BOW_TIE = [(0, 0, 0), (2, 2, 0), (2, 0, 0), (0, 2, 0)]
SQUARE = rectangle(10, 10, 12, 12, 0)
# (sentence, rings, kept: a number or at least (n,), split, dropped)
IMPORTS = [
    ("a convex polygon is kept whole", [SQUARE], 1, 0, 0),
    ("a clockwise one as well", [SQUARE[::-1]], 1, 0, 0),
    ("two clean halves are two", [SQUARE[:3], SQUARE], 2, 0, 0),
    ("a concave one is split", [L_SHAPE], (2,), 1, 0),
    ("a concave one wound clockwise is split", [L_SHAPE[::-1]], (2,), 1, 0),
    ("a star of five points is split", [STAR], (5,), 1, 0),
    ("an upright concave one is split", [[(x, 0, y) for x, y, _ in L_SHAPE]], (2,), 1, 0),
    ("a polygon of three points on a line is dropped", [SQUARE, [(0, 0, 0), (1, 1, 1), (2, 2, 2)]],
     1, 0, 1),
    ("a polygon of one place is dropped", [SQUARE, [(5, 5, 5)] * 4], 1, 0, 1),
    ("there and back again has no area", [SQUARE, [(0, 0, 0), (3, 0, 0), (0, 0, 0)]], 1, 0, 1),
    ("a polygon that crosses itself is dropped", [SQUARE, BOW_TIE], 1, 0, 1),
    ("a corner given twice is taken once", [[*SQUARE[:2], SQUARE[1], *SQUARE[2:]]], 1, 0, 0),
    ("a corner on an edge does not make it concave",
     [[SQUARE[0], (11, 10, 0), *SQUARE[1:]]], 1, 0, 0),
    ("coincident polygons are all kept", [SQUARE] * 50, 50, 0, 0),
    ("all at once", [SQUARE, L_SHAPE, BOW_TIE, [(5, 5, 5)] * 3, STAR], (8,), 2, 2),
]


def imported(rings, kept, split, dropped):
    daemon.ask("DELETE", at("import"))
    answer = scene("import", obj(rings, share=False))
    got = answer["import"]
    why = {"reasons", "dropped_polygons"} if dropped else set()
    equal(set(got), {"kept", "split", "dropped", *NOT_SHARED} | why, "members")
    equal(sum(got.get("reasons", {}).values()), dropped, "reasons")
    equal(len(got.get("dropped_polygons", [])), dropped, "polygons with their reasons")
    if isinstance(kept, tuple):
        check(got["kept"] >= kept[0], f"kept {got['kept']}, at least {kept[0]} convex pieces")
    else:
        equal(got["kept"], kept, "kept")
    equal((got["split"], got["dropped"]), (split, dropped), f"split and dropped of {got}")
    equal(answer["layers"][0]["polygons"], got["kept"], "polygons in the layer")
    equal(daemon.ok("GET", at("import") + "/layers/mesh/stats")["polygons"], got["kept"], "stats")


for sentence_, rings_, kept_, split_, dropped_ in IMPORTS:
    case(sentence_, imported, rings_, kept_, split_, dropped_)


@test("a polygon that is not flat loses nothing: it is split, or it is dropped and counted")
def _():
    answer = scene("twisted", obj([[(0, 0, 0), (4, 0, 1), (4, 4, 0), (0, 4, 1)]] + [SQUARE]))
    got = answer["import"]
    check((got["kept"], got["split"], got["dropped"]) in ((3, 1, 0), (1, 0, 1)), f"{got}")
    if got["split"]:
        item = contact("twisted", [1, 1, 9])
        check(-0.001 <= heights_of(item)[0] <= 1.001, f"{item}")
        equal(item["floor"]["polygon"], 0, "polygon")


@test("a split polygon answers everywhere as the one that was uploaded")
def _():
    random = rng("split")
    rings = [L_SHAPE, [(x + 20, y, 1 + x / 4) for x, y, _ in STAR], SQUARE]
    world = World([MeshLayer(rings)])
    put_world(daemon, "split", world)
    points = [[random.uniform(-5, 25), random.uniform(-5, 13), 9] for _ in range(600)]
    hits = 0
    for point, item in zip(points, results(daemon, at("split") + "/contact", {"points": points},
                                           600)):
        column = world.column(point, 1e-7)
        if any(m.inner < 1e-7 for m in column):
            continue
        floor, _ = world.floor_and_ceiling(column, 0)
        equal(item["floor"] and item["floor"]["polygon"], floor and floor.polygon, f"at {point}")
        hits += floor is not None
        if floor:
            near(item["floor"]["point"][2], floor.point[2], f"at {point}", 1e-9)
    check(hits > 8, f"{hits} hits")
    # The diagonals that split the ring are no gaps.
    points = [[0.5 * i / 100, 0.5 * i / 100, 9] for i in range(1, 200)]
    for point, item in zip(points, results(daemon, at("split") + "/contact", {"points": points},
                                           199)):
        equal(heights_of(item)[0], 0, f"on a diagonal, {point}")


@test("polygon is the index among the file's polygons, dropped ones counted")
def _():
    rings = [[(9, 9, 9)] * 3, rectangle(0, 0, 1, 1, 0), [(0, 0, 0), (1, 1, 1), (2, 2, 2)],
             rectangle(1, 0, 2, 1, 0)]
    scene("index", obj(rings, share=False))
    equal([contact("index", [x, 0.5, 1])["floor"]["polygon"] for x in (0.5, 1.5)], [1, 3], "index")


@test("up=y turns (x, y, z) to (x, -z, y), scale multiplies")
def _():
    # A floor at y = 3 of the file, x 0..2, z 0..5.
    rings = [[(0, 3, 0), (2, 3, 0), (2, 3, 5), (0, 3, 5)]]
    answer = scene("up-y", rings, "up=y&scale=0.5")
    equal(answer["bounds"], {"min": [0, -2.5, 1.5], "max": [1, 0, 1.5]}, "bounds")
    item = contact("up-y", [0.5, -1, 9])
    equal((heights_of(item)[0], item["floor"]["normal"]), (1.5, [0, 0, 1]), "contact")
    equal(scene("up-z", rings, "up=z")["bounds"], {"min": [0, 3, 0], "max": [2, 3, 5]}, "up=z")
    equal(scene("up-none", rings)["bounds"], {"min": [0, 3, 0], "max": [2, 3, 5]}, "z unless said")
    equal(contact("up-none", [1, 3, 9])["floor"], None, "an upright polygon is no floor")
    scene("up-cartesian", rings, "up=y&frame=cartesian")


@test("OBJ: faces with textures and normals, negative indices, comments, continued lines, CRLF")
def _():
    text = (b"# made by hand\r\no thing\r\nv 0 0 0\r\nv 2 0 0 1.0\r\nv 2 2 0\r\nv 0 2 0\r\n"
            b"vt 0 0\r\nvn 0 0 1\r\nusemtl grass\r\ns off\r\nf 1/1/1 2/1/1 3/1/1 \\\r\n4/1/1\r\n"
            b"g roof\r\nv 0 0 3\r\nv 2 0 3\r\nv 2 2 3\r\nf -3//1 -2//1 -1//1 # the last\r\n")
    put_locale(daemon, "forms")
    answer = put_mesh(daemon, "forms", text)
    equal(answer["import"], {"kept": 2, "split": 0, "dropped": 0, **NOT_SHARED}, "import")
    item = contact("forms", [1.5, 0.5, 1])
    equal(heights_of(item), (0, 3), "floor and ceiling")
    equal((item["floor"]["polygon"], item["ceiling"]["polygon"]), (0, 1), "polygons")


# ---- scenes -------------------------------------------------------------------------------------


@test("a bridge over a road: two floors at one place, the nearest below counts")
def _():
    scene("bridge", [rectangle(0, 0, 10, 4, 0), rectangle(4, -3, 6, 7, 3)])
    equal(heights_of(contact("bridge", [5, 2, 1])), (0, 3), "under it")
    equal(heights_of(contact("bridge", [5, 2, 4])), (3, None), "on it")
    equal(heights_of(contact("bridge", [5, 2, 3])), (3, None), "standing on it")
    equal(heights_of(contact("bridge", [5, 2, 2.4])), (0, 3), "deep in it")
    equal(heights_of(contact("bridge", [5, 2, 2.7])), (3, None), "a step, unless said")
    equal(heights_of(contact("bridge", [5, 2, 2.7], reach_up=0.5)), (3, None), "stepping up to it")
    equal(heights_of(contact("bridge", [5, 2, 2.7], reach_up=0.2)), (0, 3), "too high a step")
    equal(heights_of(contact("bridge", [5, 2, -1])), (None, 0), "below the road")
    equal(heights_of(contact("bridge", [5, -2, 1])), (None, 3), "beside the road, under the bridge")
    equal(contact("bridge", [5, -2, 1])["status"], "below", "no ground but the bridge above")


@test("distances are at least 0 on either side, the point tells which")
def _():
    item = contact("bridge", [5, 2, 1])
    equal((item["floor"]["distance"], item["ceiling"]["distance"]), (1, 2), "distances")
    item = contact("bridge", [5, 2, 2.75], reach_up=1)
    equal((item["floor"]["distance"], item["floor"]["point"]), (0.25, [5, 2, 3]), "a step up")
    equal(item["floor"]["polygon"], 1, "polygon")
    equal((item["floor"]["layer"], item["floor"]["cell"]), ("mesh", None), "layer, cell")
    check("triangle" not in item["floor"] or item["floor"]["triangle"] is None, "triangle")


@test("a hole inside the bounds is a hole, beyond them is outside")
def _():
    scene("holed", grid_rings(8, 8, hole=lambda c, r: 3 <= c < 5 and 2 <= r < 6))
    points = [[4, 4, 1], [0.5, 0.4, 1], [9, 4, 1], [-0.1, 4, 1], [3.01, 2.01, 1], [2.9, 2.2, 1]]
    got = results(daemon, at("holed") + "/contact", {"points": points}, 6)
    equal([item["status"] for item in got], ["hole", "ok", "outside", "outside", "hole", "ok"],
          "status")
    for item in (got[0], got[2]):
        equal(heights_of(item), (None, None), "neither")
    got = results(daemon, at("holed") + "/contains", {"points": points}, 6)
    equal([item["status"] for item in got],
          ["hole", "inside", "outside", "outside", "hole", "inside"], "contains")
    equal([item["floor"] for item in got], [False, True, False, False, False, True], "floor")


@test("contains: a floor below, and under a closed sky a ceiling above")
def _():
    floors = MeshLayer([rectangle(0, 0, 8, 8, 0)], name="floor")
    roof = MeshLayer([rectangle(0, 0, 4, 8, 3)], CEILING, "roof")
    for name, sky in (("room-open", True), ("room-closed", False)):
        put_world(daemon, name, World([floors, roof], open_sky=sky))
        points = [[2, 2, 1], [6, 2, 1], [2, 2, 5], [2, 2, -1], [2, 2, 0], [2, 2, 3], [9, 2, 1]]
        got = results(daemon, at(name) + "/contains", {"points": points}, 7)
        equal([(item["floor"], item["ceiling"]) for item in got],
              [(True, True), (True, False), (True, False), (False, True), (True, True),
               (True, True), (False, False)], f"floor and ceiling, {name}")
        inside = [item["status"] == "inside" for item in got]
        equal(inside, [True, sky, sky, False, True, True, False], f"inside, {name}")


@test("a ceiling is no floor, whichever side it is seen from; ground is a ceiling from below")
def _():
    scene("roof", [rectangle(0, 0, 4, 4, 3)], "role=ceiling")
    equal(daemon.ok("GET", at("roof"))["layers"][0]["role"], "ceiling", "role")
    equal(heights_of(contact("roof", [1, 1, 5])), (None, None), "above it")
    equal(contact("roof", [1, 1, 5])["status"], "hole", "no floor, no ceiling, inside the bounds")
    equal(heights_of(contact("roof", [1, 1, 1])), (None, 3), "below it")
    put_mesh(daemon, "roof", [rectangle(0, 0, 4, 4, 0), rectangle(0, 0, 4, 4, 2)], "ground")
    equal(heights_of(contact("roof", [1, 1, 1])), (0, 2), "the storey comes first")
    equal(heights_of(contact("roof", [1, 1, 2.5])), (2, 3), "then the roof")


@test("walls are no floor but stop rays and sight")
def _():
    scene("wall", [rectangle(0, 0, 10, 10, 0), wall((5, 0), (5, 10), 0, 4)])
    equal(heights_of(contact("wall", [5, 5, 9])), (0, None), "above the wall is the floor below it")
    rays = [{"origin": [0, 5, 2], "direction": [2, 0, 0]}, {"origin": [9, 5, 2],
                                                            "direction": [-1, 0, 0]},
            {"origin": [0, 5, 4.5], "direction": [1, 0, 0]},
            {"origin": [0, 5, 2], "direction": [1, 0, 0], "t_max": 4.9}]
    got = results(daemon, at("wall") + "/ray", {"rays": rays}, 4)
    equal([item["t"] for item in got], [2.5, 4, None, None], "t")
    equal([item["polygon"] for item in got], [1, 1, None, None], "polygon")
    near_all(got[0]["normal"], [-1, 0, 0], "normal against the ray from the west")
    near_all(got[1]["normal"], [1, 0, 0], "normal against the ray from the east")
    equal((got[0]["cell"], got[0]["triangle"], got[0]["layer"]), (None, None, "mesh"), "members")
    segments = [{"from": [1, 5, 1], "to": [9, 5, 1]}, {"from": [1, 5, 5], "to": [9, 5, 5]},
                {"from": [1, 5, 1], "to": [5, 5, 1]}, {"from": [5, 5, 1], "to": [9, 5, 1]},
                {"from": [1, 5, 0], "to": [4, 5, 3]}]
    got = results(daemon, at("wall") + "/los", {"segments": segments}, 5)
    equal([item["visible"] for item in got], [False, True, True, True, True],
          "a line that only touches at its ends is visible")
    equal((got[0]["fraction"], got[0]["point"]), (0.5, [5, 5, 1]), "where it is blocked")


@test("a sight line that only touches at its ends is visible, whichever side they are seen from")
def _():
    segments = [{"from": [5, 2, 3], "to": [5, 2, 0]}, {"from": [5, 2, 0], "to": [5, 2, 3]},
                {"from": [5, 2, 3], "to": [5, 2, 9]}, {"from": [4.2, 2, 3], "to": [5.8, 2, 3]},
                {"from": [5, 2, 4], "to": [5, 2, 0]}, {"from": [5, 2, 1], "to": [5, 2, 4]}]
    got = results(daemon, at("bridge") + "/los", {"segments": segments}, 6)
    equal([item["visible"] for item in got], [True] * 4 + [False] * 2, "between road and bridge")


@test("two feet on either side of a hill do not see each other through it")
def _():
    scene("ridge", [[(0, 0, 0), (4, 0, 4), (4, 8, 4), (0, 8, 0)],
                    [(4, 0, 4), (8, 0, 0), (8, 8, 0), (4, 8, 4)]])
    segments = [{"from": [2, 4, 2], "to": [6, 4, 2]}, {"from": [6, 4, 2], "to": [3, 5, 3]},
                {"from": [1, 4, 1], "to": [3, 4, 3]}, {"from": [2, 4, 2], "to": [2, 4, 9]},
                {"from": [4, 4, 4], "to": [6, 4, 2]}, {"from": [2, 4, 5], "to": [6, 4, 5]}]
    got = results(daemon, at("ridge") + "/los", {"segments": segments}, 6)
    equal([item["visible"] for item in got], [False] * 2 + [True] * 4, "over the ridge")


@test("the same ground as a heightfield and as a mesh gives the same heights, hits and sights")
def _():
    random = rng("twins")
    field = Terrain(13, 13, [[3 * math.sin(c * 0.8) * math.cos(r * 0.6) for c in range(13)]
                             for r in range(13)])
    rings = [[field.at(*corner) for corner in field.corners(c, r, k)]
             for r in range(12) for c in range(12) for k in (0, 1)]
    put_locale(daemon, "twin-field")
    put_layer(daemon, "twin-field", field)
    scene("twin-mesh", rings)
    places = [[random.uniform(0.1, 11.9), random.uniform(0.1, 11.9)] for _ in range(600)]

    def both(call, body, count):
        return zip(*(results(daemon, at(name) + call, body, count)
                     for name in ("twin-field", "twin-mesh")))
    heights = []
    for place, (a, b) in zip(places, both("/height", {"points": places}, 600)):
        near(b["height"], a["height"], f"height at {place}", 1e-9)
        heights.append(a["height"])
    feet = [[*place, height] for place, height in zip(places, heights)]
    segments = [{"from": a, "to": b} for a, b in zip(feet[:300], feet[300:])]
    segments += [{"from": a, "to": [b[0], b[1], b[2] + 1.7]} for a, b in zip(feet[300:], feet)]
    seen = 0
    for segment, (a, b) in zip(segments, both("/los", {"segments": segments}, 600)):
        equal(b["visible"], a["visible"], f"{segment}: as a heightfield {a}, as a mesh {b}")
        seen += a["visible"]
    check(60 < seen < 540, f"{seen} of 600 in sight")
    rays = [{"origin": [a[0], a[1], a[2] + random.uniform(-4, 9)],
             "direction": [q - p for p, q in zip(a, b)]} for a, b in zip(feet[:300], feet[300:])]
    for ray, (a, b) in zip(rays, both("/ray", {"rays": rays}, 300)):
        equal(b["status"], a["status"], f"{ray}")
        near(b["t"], a["t"], f"t of {ray}", 1e-7)


@test("points on shared edges and corners always have a floor, at the edges' height")
def _():
    def height(x, y):
        return math.sin(x * 1.3) + math.cos(y * 0.7)
    random = rng("edges")
    for name, gravity in (("edges", DOWN), ("edges-slanted", [0.36, 0.48, -0.8])):
        scene(name, grid_rings(12, 12, 0.75, height), gravity=gravity)
        points, want = [], []
        for _ in range(600):
            c, r = random.randrange(1, 11), random.randrange(1, 11)
            i, j = random.choice(((1, 0), (0, 1), (1, -1), (0, 0)))
            share = random.random()
            a, b = ([(c + k * i) * 0.75, (r + k * j) * 0.75] for k in (0, 1))
            p = [a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])]
            z = height(*a) + share * (height(*b) - height(*a))
            lift = random.uniform(0, 2)
            points.append([*(v - lift * g for v, g in zip((*p, z), gravity))])
            want.append([*p, z])
        got = results(daemon, at(name) + "/contact", {"points": points, "reach_up": 0.5}, 600)
        for point, at_edge, item in zip(points, want, got):
            check(item["floor"], f"{name}: no floor at {point}")
        for point, at_edge, item in zip(points, want, got):
            if gravity is DOWN:
                near_all(item["floor"]["point"], at_edge, f"at {point}", 1e-9, 10)
        rays = [{"origin": p, "direction": [3 * (b - a) for a, b in zip(p, w)]}
                for p, w in zip(points, want) if math.dist(p, w) > 0.01]
        for ray, item in zip(rays, results(daemon, at(name) + "/ray", {"rays": rays}, len(rays))):
            equal(item["status"], "hit", f"{name}: {ray}")


@test("slivers and steep faces: heights of the plane, not of the box")
def _():
    rings = [[(0, 0, 0), (100, 0, 0), (100, 0.001, 0)], [(0, 2, 0), (1, 2, 100), (0, 3, 0)]]
    scene("sliver", rings)
    item = contact("sliver", [50, 0.0004, 5])
    equal((heights_of(item)[0], item["floor"]["polygon"]), (0, 0), "in the sliver")
    equal(contact("sliver", [50, 0.0006, 5])["floor"], None, "beside it")
    item = contact("sliver", [0.25, 2.25, 200])
    near(heights_of(item)[0], 25, "on the steep face", 1e-9)
    near(item["floor"]["slope_deg"], math.degrees(math.atan(100)), "slope", 1e-6)


@test("clearance and its modes over two storeys")
def _():
    def placed(z, **named):
        return contact("bridge", [5, 2, z], **named)["placed"]
    equal(placed(1, clearance=0.5), [5, 2, 3.5], "reach_up is unbounded: onto the bridge")
    equal(placed(1, clearance=0.5, reach_up=0), [5, 2, 1], "high enough above the road")
    equal(placed(0.25, clearance=0.5, reach_up=0), [5, 2, 0.5], "raised above the road")
    equal(placed(1, clearance=0.5, reach_up=0, clearance_mode="exact"), [5, 2, 0.5], "exact")
    equal(placed(2.75, clearance=0.5, reach_up=0.5), [5, 2, 3.5], "a step onto the bridge")
    equal(contact("bridge", [5, 9, 2], clearance=1)["placed"], None, "nothing to stand on")


@test("a footprint on a mesh: the plane through its contacts, on the storey that is near")
def _():
    rings = [[(0, 0, 0), (8, 0, 4), (8, 8, 4), (0, 8, 0)], rectangle(0, 0, 8, 8, 9)]
    scene("ramp", rings)
    feet = [[[1, 1, 6], [3, 1, 6], [2, 3, 6]], [[1, 1, 10], [3, 1, 10], [3, 3, 10], [1, 3, 10]],
            [[1, 1, 6], [3, 1, 6], [9, 1, 6]]]
    got = results(daemon, at("ramp") + "/contact", {"footprints": feet}, 3)
    length = math.sqrt(1.25)
    near_all(got[0]["plane"]["normal"], [-0.5 / length, 0, 1 / length], "on the ramp", 1e-9)
    near(got[0]["plane"]["d"], 0, "through the origin", 1e-9)
    equal(got[0]["points"], [[1, 1, 0.5], [3, 1, 1.5], [2, 3, 1]], "points")
    near_all(got[1]["plane"]["normal"], [0, 0, 1], "upstairs", 1e-9)
    near(got[1]["plane"]["d"], -9, "upstairs, d", 1e-9)
    equal((got[2]["status"], got[2]["plane"]), ("outside", None), "a foot outside")


@test("gravity in any direction: floors are turned with it")
def _():
    # A box of 4 m around the origin; whatever wall gravity points at is the floor.
    faces = {(axis, sign): [tuple(sign * 2.0 if k == axis else p[(k - axis) % 3 - 1]
                                  for k in range(3))
                            for p in ((-2, -2), (2, -2), (2, 2), (-2, 2))]
             for axis in range(3) for sign in (-1, 1)}
    rings = list(faces.values())
    for number, (axis, sign) in enumerate(faces):
        gravity = [sign if k == axis else 0 for k in range(3)]
        name = f"box-{axis}-{sign + 1}"
        scene(name, rings, gravity=gravity)
        point = [0.5, 0.25, -0.75]
        item = contact(name, point)
        equal(item["status"], "ok", f"status, gravity {gravity}")
        equal(item["floor"]["polygon"], number, f"floor, gravity {gravity}")
        want = [sign * 2.0 if k == axis else v for k, v in enumerate(point)]
        near_all(item["floor"]["point"], want, f"floor, gravity {gravity}", 1e-12)
        near_all(item["floor"]["normal"], [-g for g in gravity], f"normal, gravity {gravity}")
        near(item["floor"]["slope_deg"], 0, "slope", 1e-6)
        equal(item["ceiling"]["polygon"], number + (1 if sign < 0 else -1), "ceiling")
        near(item["floor"]["distance"] + item["ceiling"]["distance"], 4, "the box is 4 m high")
        inside = results(daemon, at(name) + "/contains",
                         {"points": [point, [3 * v for v in gravity], [9, 9, 9]]}, 3)
        equal([i["status"] for i in inside], ["inside", "below", "outside"], "contains")


@test("a locale whose gravity is changed turns the meshes it has")
def _():
    rings = grid_rings(6, 6, 1.0, lambda x, y: (x + 2 * y) / 8)
    scene("turned", [*rings, wall((0, 0), (6, 0), 0, 4)])
    scene("turned-from-the-start", [*rings, wall((0, 0), (6, 0), 0, 4)], gravity=[0, -0.6, -0.8])
    before = contact("turned", [2.25, 3.5, 5])
    got = put_locale(daemon, "turned", status=200, gravity=[0, -0.6, -0.8])
    equal((got["revision"], got["layers"][0]["polygons"]), (3, 73), "revision, polygons")
    random = rng("turned")
    points = [[random.uniform(0, 6), random.uniform(0, 9), random.uniform(0, 6)]
              for _ in range(100)]
    a, b = (results(daemon, at(name) + "/contact", {"points": points}, 100)
            for name in ("turned", "turned-from-the-start"))
    equal(a, b, "as if it had always been so")
    check(any(item["floor"] and item["floor"]["polygon"] == 72 for item in a),
          "the wall has become a floor")
    put_locale(daemon, "turned", status=200)
    equal(contact("turned", [2.25, 3.5, 5]), before, "and back")


@test("a heightfield and a mesh in one locale: the nearest of both")
def _():
    put_locale(daemon, "both")
    put_layer(daemon, "both", Terrain(9, 9, [[1.0] * 9] * 9))
    put_mesh(daemon, "both", [rectangle(2, 2, 6, 6, 3), rectangle(2, 2, 6, 6, -1)], "deck")
    names = [(layer["id"], layer["kind"]) for layer in daemon.ok("GET", at("both"))["layers"]]
    equal(sorted(names), [("deck", "mesh"), ("ground", "heightfield")], "layers")
    item = contact("both", [4.2, 4.3, 2])
    equal([(item[m]["layer"], item[m]["point"][2]) for m in ("floor", "ceiling")],
          [("ground", 1), ("deck", 3)], "between")
    check(item["floor"]["cell"] == [4, 4] and item["floor"]["polygon"] is None, f"{item['floor']}")
    check(item["ceiling"]["cell"] is None and item["ceiling"]["polygon"] == 0, f"{item}")
    equal(contact("both", [4.2, 4.3, 0])["floor"]["polygon"], 1, "in the cellar")
    equal(contact("both", [4.2, 4.3, 0])["ceiling"]["layer"], "ground", "its ceiling")
    equal(contact("both", [4.2, 4.3, 9], layer="ground")["floor"]["layer"], "ground", "layer")
    equal(contact("both", [4.2, 4.3, 9], layer="deck")["floor"]["layer"], "deck", "layer")
    down = {"rays": [{"origin": [4.2, 4.3, z], "direction": [0, 0, d]}
                     for z, d in ((9, -1), (2, -1), (0, -1), (-9, 1), (0, 1), (2, 1))]}
    got = results(daemon, at("both") + "/ray", down, 6)
    equal([(item["layer"], item["point"][2]) for item in got],
          [("deck", 3), ("ground", 1), ("deck", -1), ("deck", -1), ("ground", 1), ("deck", 3)],
          "rays")
    got = daemon.ok("GET", at("both") + "/height?x=4.2&y=4.3")
    equal((got["status"], got["height"]), ("ok", 1), "height is the heightfield's")
    segments = [{"from": [4.2, 4.3, 2], "to": [4.2, 4.3, 9]},
                {"from": [0.5, 4.3, 2], "to": [0.5, 4.3, 9]}]
    got = results(daemon, at("both") + "/los", {"segments": segments}, 2)
    equal([item["visible"] for item in got], [False, True], "sight")


# ---- height -------------------------------------------------------------------------------------


@test("height in a locale of meshes alone is the topmost ground")
def _():
    put_world(daemon, "storeys", World([
        MeshLayer([rectangle(0, 0, 8, 8, 0), rectangle(2, 2, 6, 6, 3)], name="low"),
        MeshLayer([rectangle(4, 4, 8, 8, 5)], name="high"),
        MeshLayer([rectangle(0, 0, 8, 4, 9)], CEILING, "roof")]))
    points = [[1, 1], [3, 3], [5, 5], [7, 7], [9, 9]]
    got = results(daemon, at("storeys") + "/height", {"points": points}, 5)
    equal([(item["status"], item["height"]) for item in got],
          [("ok", 0), ("ok", 3), ("ok", 5), ("ok", 5), ("outside", None)], "heights")
    got = results(daemon, at("storeys") + "/height",
                  {"points": points[:2], "fields": ["height", "normal", "cell"]}, 2)
    equal([(item["normal"], item["cell"]) for item in got], [([0, 0, 1], None)] * 2, "fields")
    equal(daemon.ok("GET", at("storeys") + "/height?x=5&y=5")["height"], 5, "GET")
    got = results(daemon, at("holed") + "/height", {"points": [[4, 4], [0.5, 0.4], [9, 9]]}, 3)
    equal([item["status"] for item in got], ["hole", "ok", "outside"], "status")


@test("height under another gravity and meshes alone is 422 and says why")
def _():
    scene("tilted", [rectangle(0, 0, 4, 4, 0)], gravity=[0.6, 0, -0.8])
    problem(daemon.post(at("tilted") + "/height", {"points": [[1, 1]]}), 422, "gravity")
    problem(daemon.get(at("tilted") + "/height?x=1&y=1"), 422, "gravity")


@test("what only heightfields have is refused on meshes, and named")
def _():
    for target in ("/profile", "/height"):
        body = ({"path": [[0, 0], [1, 1]], "samples": 2} if target == "/profile"
                else {"points": [[1, 1]]})
        put_locale(daemon, "none", status=201 if target == "/profile" else 200)
        problem(daemon.post(at("none") + target, body), 422, "heightfield")
    answer = daemon.get(at("storeys") + "/tiles/0/0/0?format=f32")
    problem(answer, answer.status)
    check(answer.status in (404, 422), f"tiles of a mesh: {answer}")
    answer = daemon.post(at("storeys") + "/profile", {"path": [[0, 0], [1, 1]], "samples": 2})
    check(answer.status in (200, 422), f"profile over meshes: {answer}")
    problem(daemon.post(at("two") + "/height", {"points": [[1, 1]]}), 404)
    put_locale(daemon, "two")
    for name in ("a", "b"):
        put_layer(daemon, "two", Terrain(3, 3, [[1] * 3] * 3), name)
    put_mesh(daemon, "two", [rectangle(0, 0, 2, 2, 5)], "deck")
    problem(daemon.post(at("two") + "/height", {"points": [[1, 1]]}), 422, "layer")


# ---- picking ------------------------------------------------------------------------------------


@test("a pick that hits a mesh has no tile; on the heightfield beside it there is one")
def _():
    def pick(x):
        return daemon.ok("POST", at("both") + "/pick", {
            "camera": {"eye": [x, 4.3, 20], "target": [x, 4.3, 0], "up": [0, 1, 0],
                       "fov_y_deg": 40}, "viewport": [200, 100], "pixel": [100, 50]})
    got = pick(4.2)
    equal((got["status"], got["tile"]), ("hit", None), "on the deck")
    equal((got["hit"]["layer"], got["hit"]["polygon"], got["hit"]["cell"]), ("deck", 0, None),
          "hit")
    near(got["hit"]["distance"], 17, "metres", 1e-9)
    got = pick(0.6)
    equal((got["hit"]["layer"], got["hit"]["polygon"], got["hit"]["cell"]), ("ground", None,
                                                                            [0, 4]), "ground")
    equal((got["tile"]["column"], got["tile"]["row"]), (0, 4), "tile")


# ---- statistics ---------------------------------------------------------------------------------


def stats(name, layer="mesh"):
    got = daemon.ok("GET", at(name) + f"/layers/{layer}/stats")
    check(set(got) >= STATS, f"members {sorted(got)}")
    inner = got["nodes"] - got["leaves"]
    # of four children each, but for the root's levels, whose side may be any number
    check(1 <= got["leaves"] - 3 * inner <= 3, f"nodes: {got}")
    check(4 ** got["depth"] >= got["leaves"] and got["depth"] <= inner, f"depth: {got}")
    check(0 <= got["average_tests"] <= got["polygons"], f"average_tests: {got}")
    equal(sum(got["bytes_by_structure"].values()), got["bytes"], f"bytes by structure: {got}")
    equal((sum(got["depths"]), len(got["depths"])), (got["leaves"], got["depth"] + 1),
          f"depths: {got}")
    return got


def in_locale(frame, point):
    return [frame["origin"][i] + sum(point[k] * frame["axes"][k][i] for k in range(3))
            for i in range(3)]


def in_frame(frame, point):
    away = [p - o for p, o in zip(point, frame["origin"])]
    return [sum(a * b for a, b in zip(away, axis)) for axis in frame["axes"]]


@test("the quadtree's leaves tile its root, where the layer is; bounds choose among them")
def _():
    rings = grid_rings(40, 40, 0.5, lambda x, y: math.sin(x) + math.cos(y))
    put_locale(daemon, "leaves")
    put_mesh(daemon, "leaves", rings, query="max_polygons=8")
    path = at("leaves") + "/layers/mesh/stats"
    plain = daemon.ok("GET", path)
    check("quadtree" not in plain, "a quadtree unasked")
    tree = daemon.ok("GET", path + "?quadtree=true")["quadtree"]
    equal((len(tree["leaves"]), tree["truncated"]), (plain["leaves"], False), "leaves")
    depths = [leaf["depth"] for leaf in tree["leaves"]]
    equal([depths.count(i) for i in range(plain["depth"] + 1)], plain["depths"], "depths")
    daemon.ok("PUT", at("leaves") + "/layers/mesh/transform",
              {"translation": [100, 50, 3], "yaw_deg": 30})
    point = daemon.ok("GET", at("leaves") + "/contact?x=103&y=57&z=99")["floor"]["point"]
    part = daemon.ok("GET", path + "?quadtree=true&bounds=103,57,103,57")["quadtree"]
    x, y, _ = in_frame(part["frame"], point)
    over = [leaf for leaf in part["leaves"] if leaf["bounds"][0] <= x <= leaf["bounds"][2]
            and leaf["bounds"][1] <= y <= leaf["bounds"][3]]
    check(over and len(part["leaves"]) < 9 and over[0]["polygons"] > 0, f"leaves: {part}")
    equal(daemon.ok("GET", path + "?quadtree=true&bounds=0,0,9,9")["quadtree"]["leaves"], [], "beside")
    problem(daemon.get(path + "?quadtree=2"), 400, "quadtree")
    problem(daemon.get(path + "?quadtree=true&bounds=3,0,2,9"), 400, "bounds")
    problem(daemon.get(path + "?quadtree=true&bounds=3,0,2"), 400, "bounds")


@test("a trace has the boxes and polygons that a ray tests in meshes, also in moved and tilted ones")
def _():
    rings = grid_rings(30, 30, 0.5, lambda x, y: math.sin(x) + math.cos(y))
    half = math.sqrt(0.5)
    for name, pose in (("traced", None), ("traced-yaw", {"yaw_deg": 40}),
                       ("traced-tilted", {"rotation": [half, 0, 0, half]})):
        put_locale(daemon, name)
        put_mesh(daemon, name, rings)
        if pose:
            daemon.ok("PUT", at(name) + "/layers/mesh/transform", {"translation": [1, 2, 3], **pose})
        bounds = daemon.ok("GET", at(name))["layers"][0]["bounds"]
        middle = [(a + b) / 2 for a, b in zip(bounds["min"], bounds["max"])]
        r, hits = rng(name), 0
        for _ in range(40):
            ray = {"origin": [m + r.uniform(-30, 30) for m in middle]}
            ray["direction"] = [m + r.uniform(-5, 5) - o for m, o in zip(middle, ray["origin"])]
            item = daemon.ok("POST", at(name) + "/ray", {"rays": [ray], "trace": True})["results"][0]
            [trace] = item["trace"]["meshes"]
            equal((trace["layer"], item["trace"]["boxes"]), ("mesh", []), "members")
            if item["status"] != "hit":
                continue
            hits += 1
            check(item["polygon"] in trace["polygons"], f"{item['polygon']} of {trace['polygons']}")
            here = in_frame(trace["frame"], item["point"])
            inside = [box for box in trace["boxes"] if box["entered"] and all(
                low - 1e-3 <= v <= high + 1e-3
                for low, v, high in zip(box["bounds"]["min"], here, box["bounds"]["max"]))]
            levels = {box["level"] for box in inside}
            equal(levels, set(range(max(levels) + 1)), "the boxes around the hit")
            near_all(in_locale(trace["frame"], here), item["point"], "there and back", rel=1e-9)
        check(hits > 10, f"{hits} hits")


@test("max_polygons and max_depth: fewer tests in more leaves, the same answers, also after an edit")
def _():
    rings = grid_rings(60, 60, 0.5, lambda x, y: math.sin(x) + math.cos(y))
    got = {}
    for name, query in (("small", "max_polygons=6"), ("large", "max_polygons=400&max_depth=4"),
                        ("flat", "max_polygons=6&max_depth=2")):
        put_locale(daemon, name)
        put_mesh(daemon, name, rings, query=query)
        got[name] = stats(name)
    check(got["small"]["average_tests"] < got["large"]["average_tests"] / 4, f"{got}")
    check(got["small"]["leaves"] > 4 * got["large"]["leaves"], f"{got}")
    check(got["large"]["depth"] <= 4 and got["flat"]["depth"] == 2, f"{got}")
    contacts = [daemon.ok("POST", at(name) + "/contact",
                          {"points": [[0.37 * i, 0.41 * i, 20] for i in range(60)],
                           "max_distance": 100})["results"] for name in got]
    check(contacts[0] == contacts[1] == contacts[2], "contacts")
    for query, name in (("max_polygons=0", "max_polygons"), ("max_depth=33", "max_depth"),
                        ("max_depth=x", "max_depth")):
        answer = daemon.ask("PUT", at("small") + "/layers/mesh?" + query, obj(rings),
                            media="model/obj")
        check(answer.status == 400 and name in answer.body.decode(), f"{query}: {answer}")


@test("the upload of a mesh says how long its structures took")
def _():
    put_locale(daemon, "timed")
    rings = grid_rings(20, 20, 1.0, lambda x, y: x * y / 40)
    answer = daemon.ask("PUT", at("timed") + "/layers/mesh", obj(rings), media="model/obj")
    timing = dict(part.strip().split(";dur=") for part in answer.headers["server-timing"].split(","))
    check(0 < float(timing["build"]) < float(timing["total"]), f"{timing}")
    answer = daemon.ask("GET", at("timed"))
    check("build" not in answer.headers["server-timing"], f"{answer.headers}")


@test("stats of one polygon: one leaf, one test at most")
def _():
    scene("one", [rectangle(0, 0, 1, 1, 0)])
    got = stats("one")
    equal((got["polygons"], got["nodes"], got["leaves"], got["depth"]), (1, 1, 1, 0), f"{got}")
    near(got["average_tests"], 1, "average_tests")


@test("stats of a fine grid: a deep tree, few tests, memory as the layer says")
def _():
    answer = scene("fine", grid_rings(60, 60, 0.5, lambda x, y: math.sin(x) + math.cos(y)))
    got = stats("fine")
    equal(got["polygons"], 7200, "polygons")
    check(3 <= got["depth"] <= 12, f"depth {got['depth']}")
    check(0.5 < got["average_tests"] <= 24, f"average_tests {got['average_tests']}")
    check(got["leaves"] >= 7200 / 24, f"leaves {got['leaves']}")
    check(7200 * 40 < got["bytes"] < 7200 * 210, f"bytes {got['bytes']}")
    memory = answer["layers"][0]["memory_bytes"]
    check(got["bytes"] <= memory <= 2 * got["bytes"] + 65536,
          f"bytes {got['bytes']}, memory {memory}")
    check(memory <= answer["memory_bytes"], "the locale holds the layer")


@test("the same bytes give the same tree, whatever was there before")
def _():
    rings = grid_rings(20, 20, 1.0, lambda x, y: x * y / 40)
    put_locale(daemon, "same")
    put_mesh(daemon, "same", rings, "a")
    put_mesh(daemon, "same", grid_rings(3, 3), "b")
    put_mesh(daemon, "same", rings, "b", status=200)
    a, b = stats("same", "a"), stats("same", "b")
    equal({k: a[k] for k in STATS}, {k: b[k] for k in STATS}, "stats")


@test("polygons that no depth can separate end at a bounded depth")
def _():
    answer = scene("heap", obj([rectangle(0, 0, 1, 1, i * 0.001) for i in range(3000)]))
    equal(answer["import"]["kept"], 3000, "kept")
    got = stats("heap")
    check(got["depth"] <= 12 and got["bytes"] < 3000 * 4000, f"{got}")
    found = heights_of(contact("heap", [0.5, 0.5, 1.4567], reach_up=0))
    near(found[0], 1.456, "the floor below", 1e-9)
    near(found[1], 1.457, "the ceiling above", 1e-9)


@test("stats of what is not there are 404 or 422, of a heightfield its own")
def _():
    problem(daemon.get(at("atlantis") + "/layers/mesh/stats"), 404, "atlantis")
    answer = daemon.get(at("one") + "/layers/cellar/stats")
    problem(answer, answer.status, "cellar")
    check(answer.status in (404, 422), f"{answer}")
    problem(daemon.get(at("one") + "/layers/mesh/stats?colour=1"), 400, "colour")
    got = daemon.ok("GET", at("both") + "/layers/ground/stats")
    equal(got["samples"], 81, f"samples of a heightfield: {got}")
    check(set(got) >= {"tiles", "samples", "bytes", "levels"}, f"{got}")


# ---- while it changes ---------------------------------------------------------------------------


@test("a batch is answered at one revision, while the mesh is replaced under it")
def _():
    first = scene("flux", grid_rings(8, 8, 1.0, lambda x, y: 1.0))["revision"]
    bodies = [obj(grid_rings(8, 8, 1.0, lambda x, y, z=z: z)) for z in (1.0, 2.0)]
    failures, revisions = [], set()

    def replace():
        connection = connection_to(daemon.port, timeout=HANG_S)
        for i in range(1, 61):
            connection.request("PUT", at("flux") + "/layers/mesh", body=bodies[i % 2],
                               headers={"Content-Type": "model/obj"})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200 or json.loads(body)["revision"] != first + i:
                failures.append(body)
        connection.close()
    thread = threading.Thread(target=replace)
    thread.start()
    points = [[i % 8 + 0.3, i // 8 % 8 + 0.4, 9] for i in range(500)]
    while thread.is_alive():
        answer = daemon.ok("POST", at("flux") + "/contact", {"points": points})
        heights = {item["floor"]["point"][2] for item in answer["results"]}
        revisions.add(answer["revision"])
        equal(heights, {1.0 + (answer["revision"] - first) % 2}, f"at {answer['revision']}")
    thread.join()
    equal(failures, [], "replacements that failed")
    check(len(revisions) > 3, f"revisions seen: {revisions}")


# ---- binary -------------------------------------------------------------------------------------


@test("a binary contact on a mesh: NaN where there is none, and the status")
def _():
    answer = daemon.post(at("bridge") + "/contact", struct.pack("<6d", 5, 2, 1, 5, -2, 1),
                         media=F64)
    equal(answer.status, 200, f"{answer}")
    got = struct.unpack("<12d", answer.body)
    equal(got[:6], (0, 0, 0, 1, 3, 0), "under the bridge")
    check(all(math.isnan(v) for v in got[6:10]), f"beside the road: {got[6:]}")
    equal(got[10:], (3, 1), "beside the road: the ceiling, below")


run(daemon.stop)
