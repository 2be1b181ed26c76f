"""Height, profile, contact and contains on heightfields, against the brute-force oracle."""
import math

from daemon import Daemon
from fields import NAN, Terrain, near_border, put_layer, put_locale, put_shapes, put_terrain
from fields import random_point, results
from oracle import ANTI, MAIN, TRIANGULATIONS
from tap import case, check, equal, near, near_all, rng, run, test

daemon = Daemon()
shapes = put_shapes(daemon)
INTERPOLATIONS = ("triangle", "bilinear", "nearest")
QUESTIONS = 400


def at(name):
    return f"/v1/locales/{name}"


# ---- height -----------------------------------------------------------------------------------


def heights_agree(name, interp):
    terrain = shapes[name]
    random = rng(f"height {name} {interp}")
    points = [random_point(random, terrain) for _ in range(QUESTIONS)]
    got = results(daemon, at(name) + "/height",
                  {"points": points, "interp": interp, "fields": ["height", "normal", "cell"]},
                  QUESTIONS)
    judged = 0
    for point, item in zip(points, got):
        what = f"{interp} at {point!r}"
        if near_border(terrain, *point, interp):
            continue
        judged += 1
        status, height = terrain.height(*point, interp)
        equal(item.get("status"), status, f"status, {what}")
        check(set(item) >= {"height", "normal", "cell"}, f"members, {what}: {item}")
        near(item["height"], height, f"height, {what}", 1e-7)
        if status != "ok":
            equal(item["normal"], None, f"normal, {what}")
        if status == "outside":
            equal(item["cell"], None, f"cell, {what}")
            continue
        u, v = terrain.locate(*point)
        on_line = min(abs(u - round(u)), abs(v - round(v))) < 1e-6
        if not on_line:
            equal(item["cell"], list(terrain.cell_of(u, v)), f"cell, {what}")
        faces = terrain.triangles_at(*point)
        if not faces and not on_line:
            equal(item["normal"], None, f"normal, {what}")
        elif len(faces) == 1 and status == "ok":
            near_all(item["normal"], list(terrain.normal(*faces[0][0], faces[0][1])),
                     f"normal, {what}", 1e-9)
    check(judged > QUESTIONS / 2, f"only {judged} questions could be judged")


for shape in shapes:
    for way in INTERPOLATIONS:
        case(f"height {way} on {shape} is what brute force says, with normal and cell",
             heights_agree, shape, way)


@test("one by one over GET gives the very numbers of the batch")
def _():
    for name in ("small-main", "wide-alternating"):
        random = rng("get " + name)
        points = [random_point(random, shapes[name]) for _ in range(40)]
        for interp in INTERPOLATIONS:
            batch = results(daemon, at(name) + "/height", {"points": points, "interp": interp}, 40)
            for (x, y), item in zip(points, batch):
                one = daemon.ok("GET", at(name) + f"/height?x={x!r}&y={y!r}&interp={interp}")
                equal(set(item), {"status", "height"}, "members of an item without fields")
                equal({k: one.get(k) for k in ("status", "height")}, item, f"{interp} at {x},{y}")
                equal(one.get("locale"), name, "locale")
                check(isinstance(one.get("revision"), int), f"revision in {one}")


@test("the default interpolation is triangle; GET takes fields as a comma list")
def _():
    x, y = -261.25, 103.0
    plain = daemon.ok("GET", at("wide-main") + f"/height?x={x}&y={y}")
    named = daemon.ok("GET", at("wide-main") + f"/height?x={x}&y={y}&interp=triangle")
    equal(plain, named, "answers")
    more = daemon.ok("GET", at("wide-main") + f"/height?x={x}&y={y}&fields=height,normal,cell")
    equal(more["height"], plain["height"], "height")
    equal(len(more["normal"]), 3, "normal")
    equal(more["cell"], list(shapes["wide-main"].cell_of(*shapes["wide-main"].locate(x, y))),
          "cell")


@test("fields choose the members beside status and height: what was not asked for is not told")
def _():
    for fields, wanted in ((["normal"], "normal"), (["cell"], "cell"),
                           (["height", "cell"], "cell")):
        got = results(daemon, at("tiny") + "/height", {"points": [[0.2, 0.3]], "fields": fields}, 1)
        equal(set(got[0]), {"status", "height", wanted}, f"members by fields {fields} of {got}")


@test("all four edges belong to the field, one float further is outside")
def _():
    terrain = Terrain(4, 3, [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]], (2.0, 4.0), (8.0, -8.0))
    put_terrain(daemon, "edges", terrain)
    inside = [([8, -8], 1), ([14, -8], 4), ([8, 0], 9), ([14, 0], 12), ([14, -4], 8),
              ([11, 0], 10.5), ([8, -6], 3)]
    for interp in ("triangle", "bilinear"):
        got = results(daemon, at("edges") + "/height",
                      {"points": [p for p, _ in inside], "interp": interp, "fields":
                       ["height", "cell"]}, len(inside))
        for (point, height), item in zip(inside, got):
            equal((item["status"], item["height"]), ("ok", height), f"{interp} at {point}")
        equal([item["cell"] for item in got[:5]], [[0, 0], [2, 0], [0, 1], [2, 1], [2, 1]],
              "the upper edges belong to the last cell")
    outside = [[math.nextafter(8, 0), -8], [math.nextafter(14, 99), -8],
               [8, math.nextafter(-8, -99)], [8, math.ulp(0)], [1e300, -1e300], [-1e308, 0]]
    for interp in INTERPOLATIONS:
        got = results(daemon, at("edges") + "/height", {"points": outside, "interp": interp},
                      len(outside))
        for point, item in zip(outside, got):
            equal((item["status"], item["height"]), ("outside", None), f"{interp} at {point}")


@test("outside and hole are different answers; a closed triangle owns its edges")
def _():
    for triangulation, middle in ((ANTI, "ok"), (MAIN, "hole")):
        terrain = Terrain(2, 2, [[NAN, 2], [3, 8]], triangulation=triangulation)
        put_terrain(daemon, "corner-" + triangulation, terrain)
        got = results(daemon, at("corner-" + triangulation) + "/height",
                      {"points": [[0.1, 0.1], [0.5, 0.5], [-1, 0], [0.75, 0.75]]}, 4)
        equal([item["status"] for item in got],
              ["hole", middle, "outside", "ok" if triangulation == ANTI else "hole"],
              triangulation)


@test("without a height there is no normal, though a triangle is there; GET says the same")
def _():
    put_terrain(daemon, "beside", Terrain(2, 2, [[NAN, 2], [3, 8]], triangulation=ANTI))
    for interp, status in (("nearest", "ok"), ("bilinear", "hole"), ("triangle", "ok")):
        asked = {"interp": interp, "fields": ["normal"]}
        single = f"interp={interp}&fields=normal"
        for x, y, want in ((0.75, 0.75, status), (0.25, 0.25, "hole")):
            item = results(daemon, at("beside") + "/height", {"points": [[x, y]], **asked}, 1)[0]
            got = daemon.ok("GET", f"{at('beside')}/height?x={x}&y={y}&{single}")
            equal(item["status"], want, f"{interp} at {x},{y}")
            equal(item["normal"] is None, want != "ok", f"{interp} at {x},{y}: no normal")
            equal({name: got[name] for name in item}, item, f"{interp} at {x},{y}: GET")


@test("a locale's triangulation can be changed by its manifest, and answers follow")
def _():
    put_terrain(daemon, "turned", Terrain(2, 2, [[0, 0], [0, 8]]))
    for triangulation, height in (("anti", 0.0), ("main", 4.0), ("alternating", 0.0),
                                  ("main", 4.0)):
        locale = put_locale(daemon, "turned", status=200, triangulation=triangulation)
        equal(locale["triangulation"], triangulation, "triangulation")
        got = daemon.ok("GET", at("turned") + "/height?x=0.5&y=0.5")
        equal(got["height"], height, triangulation)
        equal(got["revision"], locale["revision"], "revision")


@test("heights keep float32's precision: a sample comes back bit for bit")
def _():
    random = rng("bits")
    heights = [[random.uniform(-9000, 9000) for _ in range(12)] for _ in range(5)]
    terrain = Terrain(12, 5, heights)
    put_terrain(daemon, "bits", terrain)
    points = [[c, r] for r in range(5) for c in range(12)]
    for interp in INTERPOLATIONS:
        got = results(daemon, at("bits") + "/height", {"points": points, "interp": interp}, 60)
        for (c, r), item in zip(points, got):
            equal(item["height"], terrain.h[r][c], f"{interp}, sample {c},{r}")


@test("several tiles: heights across the seams of 1025 x 700 agree")
def _():
    cols, rows = 1025, 700
    along, up = [20 * math.sin(c / 37) for c in range(cols)], [15 * math.cos(r / 29) for r in range(rows)]
    heights = [[x + y + (c * 7919 + r * 104729) % 13 for c, x in enumerate(along)] for r, y in enumerate(up)]
    for r, c in ((256, 256), (255, 512), (511, 768), (512, 100)):
        heights[r][c] = NAN
    terrain = Terrain(cols, rows, heights, (2.0, 2.0), (0.0, 0.0), "alternating")
    put_terrain(daemon, "seams", terrain)
    random = rng("seams")
    points = []
    for _ in range(600):
        c = random.choice((256, 512, 768, 1024, random.randrange(1025)))
        r = random.choice((256, 512, 699, random.randrange(700)))
        points.append([2 * min(max(c + random.uniform(-1, 1), 0), 1024),
                       2 * min(max(r + random.uniform(-1, 1), 0), 699)])
    for interp in INTERPOLATIONS:
        got = results(daemon, at("seams") + "/height", {"points": points, "interp": interp}, 600)
        for point, item in zip(points, got):
            if near_border(terrain, *point, interp):
                continue
            status, height = terrain.height(*point, interp)
            equal(item["status"], status, f"status at {point}")
            near(item["height"], height, f"{interp} at {point}", 1e-7)


# ---- profile ------------------------------------------------------------------------------------


def along(path, distance):
    for a, b in zip(path, path[1:]):
        length = math.dist(a, b)
        if distance <= length or b is path[-1]:
            share = min(distance / length, 1) if length else 0
            return [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share]
        distance -= length


def profile_agrees(name, body, distances):
    terrain, path = shapes[name], body["path"]
    got = results(daemon, at(name) + "/profile", body, len(distances))
    for item, distance in zip(got, distances):
        what = f"at {distance} of {path}"
        near(item["distance"], distance, f"distance, {what}", 1e-9)
        x, y = along(path, distance)
        check(isinstance(item["point"], list) and len(item["point"]) == 3, f"point, {what}: {item}")
        near_all(item["point"][:2], [x, y], f"point, {what}", 1e-9, 100)
        if near_border(terrain, x, y, "triangle"):
            continue
        status, height = terrain.height(x, y)
        equal(item["status"], status, f"status, {what}")
        near(item["point"][2], height, f"height, {what}", 1e-6)


def random_path(random, terrain, corners):
    return [random_point(random, terrain, 0.05) for _ in range(corners)]


def profiles_by_samples(name):
    random = rng("profile " + name)
    for corners, samples in ((2, 2), (2, 33), (3, 17), (6, 101)):
        path = random_path(random, shapes[name], corners)
        length = sum(math.dist(a, b) for a, b in zip(path, path[1:]))
        profile_agrees(name, {"path": path, "samples": samples},
                       [length * i / (samples - 1) for i in range(samples)])


def profiles_by_step(name):
    random = rng("step " + name)
    for corners in (2, 4):
        path = random_path(random, shapes[name], corners)
        length = sum(math.dist(a, b) for a, b in zip(path, path[1:]))
        for step in (length / 7.3, length / 40.6, length * 2):
            count = math.ceil(length / step)
            profile_agrees(name, {"path": path, "step": step},
                           [i * step for i in range(count)] + [length])


for shape in ("tiny", "small-anti", "small-main", "wide-alternating", "wide-anti"):
    case(f"a profile by samples over {shape} is evenly spaced and on the surface",
         profiles_by_samples, shape)
    case(f"a profile by step over {shape} ends at the far end", profiles_by_step, shape)


@test("a step that divides the length gives the far end once")
def _():
    put_terrain(daemon, "line", Terrain(9, 2, [[c * c for c in range(9)]] * 2))
    got = results(daemon, at("line") + "/profile", {"path": [[0, 0.5], [8, 0.5]], "step": 2}, 5)
    equal([item["distance"] for item in got], [0, 2, 4, 6, 8], "distances")
    equal([item["point"][2] for item in got], [0, 4, 16, 36, 64], "heights")
    got = results(daemon, at("line") + "/profile", {"path": [[0, 0], [8, 0], [8, 1]], "step": 3}, 4)
    equal([item["distance"] for item in got], [0, 3, 6, 9], "distances")
    equal(got[3]["point"], [8, 1, 64], "both ends are in it")


@test("a path of no length gives its one point as often as asked")
def _():
    got = results(daemon, at("line") + "/profile", {"path": [[2, 0], [2, 0]], "samples": 3}, 3)
    equal([item["distance"] for item in got], [0, 0, 0], "distances")
    equal(got[1]["point"], [2, 0, 4], "point")


# ---- contact ---------------------------------------------------------------------------------------


def contact_expected(terrain, point, reach_up=0.0):
    """(status, floor height, ceiling height) under straight gravity."""
    status, height = terrain.height(point[0], point[1])
    if status != "ok":
        return status, None, None
    if height <= point[2] + reach_up:
        return "ok", height, None
    return "below", None, height


def check_contact(item, terrain, point, height, layer, what):
    x, y, z = point
    near_all(item["point"], [x, y, height], f"point, {what}", 1e-7, 10)
    near(item["distance"], abs(z - height), f"distance, {what}", 1e-6, 10)
    equal(item["layer"], layer, f"layer, {what}")
    faces = terrain.triangles_at(x, y)
    if len(faces) == 1:
        normal = terrain.normal(*faces[0][0], faces[0][1])
        near_all(item["normal"], list(normal), f"normal, {what}", 1e-9)
        near(item["slope_deg"], math.degrees(math.acos(normal[2])), f"slope, {what}", 1e-6)
        equal(item["cell"], list(faces[0][0]), f"cell, {what}")


def contacts_agree(name, reach_up):
    terrain = shapes[name]
    random = rng(f"contact {name} {reach_up}")
    points = [[*random_point(random, terrain), random.uniform(-40, 40)] for _ in range(300)]
    body = {"points": points, "reach_up": reach_up}
    for point, item in zip(points, results(daemon, at(name) + "/contact", body, len(points))):
        what = f"at {point}, reach_up {reach_up}"
        if near_border(terrain, point[0], point[1], "triangle"):
            continue
        status, floor, ceiling = contact_expected(terrain, point, reach_up)
        equal(item["status"], status, f"status, {what}")
        check("floor" in item and "ceiling" in item, f"members, {what}: {item}")
        for member, height in (("floor", floor), ("ceiling", ceiling)):
            if height is None:
                equal(item[member], None, f"{member}, {what}")
            else:
                check(item[member] is not None, f"no {member}, {what}: {item}")
                check_contact(item[member], terrain, point, height, "ground", what)


for shape in ("tiny", "small-anti", "small-main", "small-alternating", "wide-anti", "wide-main"):
    for reach in (0, 15):
        case(f"contact over {shape} with reach_up {reach}: floor below, ceiling above",
             contacts_agree, shape, reach)


@test("a point on the ground stands on it at distance 0")
def _():
    put_terrain(daemon, "table", Terrain(3, 3, [[5] * 3] * 3))
    item = results(daemon, at("table") + "/contact", {"points": [[1, 1.5, 5]]}, 1)[0]
    equal(item["status"], "ok", "status")
    equal(item["floor"]["distance"], 0, "distance")
    equal(item["floor"]["point"], [1, 1.5, 5], "point")
    equal(item["floor"]["normal"], [0, 0, 1], "normal")
    equal(item["floor"]["slope_deg"], 0, "slope")
    equal(item["ceiling"], None, "ceiling")
    check("placed" not in item, "placed without clearance")


@test("clearance raises a camera that is too low, whatever is above it, and no other")
def _():
    points = [[1, 1, 5.5], [1, 1, -100], [1, 1, 20], [9, 9, 0]]
    got = results(daemon, at("table") + "/contact", {"points": points, "clearance": 2}, 4)
    equal([item["placed"] for item in got[:3]], [[1, 1, 7], [1, 1, 7], [1, 1, 20]], "at least")
    equal(got[3]["placed"], None, "nothing to stand on outside")
    equal(got[1]["floor"]["distance"], 105, "distance of the point below")
    got = results(daemon, at("table") + "/contact",
                  {"points": points, "clearance": 2, "clearance_mode": "exact"}, 4)
    equal([item["placed"] for item in got[:3]], [[1, 1, 7]] * 3, "exact")
    got = results(daemon, at("table") + "/contact",
                  {"points": points, "clearance": 2, "reach_up": 1}, 4)
    equal(got[1]["placed"], None, "reach_up 1 does not lift a point from -100 above the ground")
    equal(got[1]["ceiling"]["point"], [1, 1, 5], "the ground is its ceiling")


@test("under slanted gravity contact on a heightfield is a ray along gravity")
def _():
    terrain = Terrain(33, 33, [[2 * math.sin(c / 3) + math.cos(r / 4) for c in range(33)]
                               for r in range(33)])
    put_terrain(daemon, "slanted", terrain, gravity=[0.6, 0, -0.8])
    locale = daemon.ok("GET", at("slanted"))
    near_all(locale["gravity"], [0.6, 0, -0.8], "gravity")
    random = rng("slanted")
    points = [[random.uniform(8, 22), random.uniform(8, 22), random.uniform(-6, 6)]
              for _ in range(200)]
    for point, item in zip(points, results(daemon, at("slanted") + "/contact",
                                           {"points": points, "reach_up": 0}, 200)):
        down = terrain.hits(point, (0.6, 0, -0.8))
        up = terrain.hits(point, (-0.6, 0, 0.8))
        what = f"at {point}"
        equal(item["status"], "ok" if down else "below", f"status, {what}")
        for member, hits in (("floor", down), ("ceiling", up)):
            if not hits:
                equal(item[member], None, f"{member}, {what}")
                continue
            if hits[0].inner < 1e-9 or hits[0].t < 1e-9:
                continue
            check(item[member] is not None, f"no {member}, {what}: {item}")
            near_all(item[member]["point"], list(hits[0].point), f"{member}, {what}", 1e-7, 10)
            near(item[member]["distance"], hits[0].t, f"{member} distance, {what}", 1e-6, 10)
            n, sign = hits[0].normal, 1
            against = n[0] * -0.6 + n[2] * 0.8
            sign = 1 if against >= 0 else -1
            near_all(item[member]["normal"], [sign * v for v in n], f"{member} normal, {what}")
            near(item[member]["slope_deg"], math.degrees(math.acos(min(1, abs(against)))),
                 f"{member} slope, {what}", 1e-6)


@test("under slanted gravity reach_up lifts along gravity, clearance places against it")
def _():
    # The plane z = 1; up is (-0.6, 0, 0.8), so the line through (x, y, z) meets it at distance
    # (z - 1) / 0.8 below.
    put_terrain(daemon, "lifted", Terrain(41, 41, [[1] * 41] * 41), gravity=[0.6, 0, -0.8])
    points = [[20, 20, -3], [20, 20, 5]]
    for reach, floors in ((0, (None, 5)), (4.9, (None, 5)), (5.1, (5, 5)), (1000, (5, 5))):
        got = results(daemon, at("lifted") + "/contact", {"points": points, "reach_up": reach}, 2)
        for item, distance, point in zip(got, floors, ([17, 20, 1], [23, 20, 1])):
            if distance is None:
                equal(item["floor"], None, f"floor, reach_up {reach}")
                near_all(item["ceiling"]["point"], point, "ceiling", 1e-9)
                continue
            near_all(item["floor"]["point"], point, f"floor, reach_up {reach}", 1e-9)
            near(item["floor"]["distance"], distance, f"distance, reach_up {reach}", 1e-9)
            equal(item["ceiling"], None, f"ceiling, reach_up {reach}")
    got = results(daemon, at("lifted") + "/contact", {"points": points, "clearance": 10}, 2)
    for item, floor in zip(got, ([17, 20, 1], [23, 20, 1])):
        near_all(item["placed"], [floor[0] - 6, 20, floor[2] + 8], "placed", 1e-9)
    got = results(daemon, at("lifted") + "/contact", {"points": points, "clearance": 2}, 2)
    near_all(got[1]["placed"], [20, 20, 5], "a point that is high enough stays", 1e-9)


@test("a footprint of three gives the exact plane through its contact points, of four the best one")
def _():
    # z = 1 + x/4 + y/2: the plane's normal is (-1/4, -1/2, 1) / |…|.
    put_terrain(daemon, "ramp", Terrain(5, 5, [[1 + c / 4 + r / 2 for c in range(5)]
                                               for r in range(5)]))
    length = math.sqrt(1 / 16 + 1 / 4 + 1)
    feet = [[[1, 1, 9], [3, 1, 9], [2, 3, 9]], [[0.5, 0.5, 9], [3.5, 0.5, 9], [3.5, 3.5, 9],
                                                [0.5, 3.5, 9]]]
    got = results(daemon, at("ramp") + "/contact", {"footprints": feet}, 2)
    for foot, item in zip(feet, got):
        equal(item["status"], "ok", "status")
        near_all(item["plane"]["normal"], [-0.25 / length, -0.5 / length, 1 / length], "normal",
                 1e-6)
        equal(len(item["points"]), len(foot), "points")
        for asked, point in zip(foot, item["points"]):
            near_all(point, [asked[0], asked[1], 1 + asked[0] / 4 + asked[1] / 2], "point", 1e-6)
        near(sum(a * b for a, b in zip(item["plane"]["normal"], item["points"][0])),
             -item["plane"]["d"], "normal · point + d = 0 (text Q)", 1e-6)


@test("a footprint over a bump gets the least-squares plane")
def _():
    # Heights 0, 0, 0 and 4 at the corners of a square of side 2: z = 1 + (x - 1) + (y - 1).
    put_terrain(daemon, "bump", Terrain(3, 3, [[0, 0, 0], [0, 0, 0], [0, 0, 4]]))
    foot = [[0, 0, 9], [2, 0, 9], [2, 2, 9], [0, 2, 9]]
    item = results(daemon, at("bump") + "/contact", {"footprints": [foot]}, 1)[0]
    n = item["plane"]["normal"]
    # Vertical and perpendicular least squares differ; by symmetry both have x = y and pass
    # through the mean (1, 1, 1).
    near(n[0], n[1], "symmetry", 1e-9)
    check(n[2] > 0 and n[0] < 0, f"the plane rises towards the bump: {n}")
    near(sum(n), -item["plane"]["d"], "it passes through the mean of the points", 1e-9)
    near(sum(v * v for v in n), 1, "unit", 1e-9)


@test("a footprint with a foot outside says so and has no plane")
def _():
    item = results(daemon, at("ramp") + "/contact",
                   {"footprints": [[[1, 1, 9], [3, 1, 9], [2, 99, 9]]]}, 1)[0]
    check(item["status"] in ("outside", "hole"), f"status {item['status']}")
    equal(item["plane"], None, "plane")


# ---- contains ----------------------------------------------------------------------------------------


def contains_agrees(name, open_sky):
    terrain = shapes[name]
    locale = f"{name}-{'open' if open_sky else 'closed'}"
    put_terrain(daemon, locale, terrain, open_sky=open_sky)
    equal(daemon.ok("GET", at(locale))["open_sky"], open_sky, "open_sky")
    random = rng("contains " + name)
    points = [[*random_point(random, terrain), random.uniform(-40, 40)] for _ in range(300)]
    for point, item in zip(points, results(daemon, at(locale) + "/contains", {"points": points},
                                           300)):
        if near_border(terrain, point[0], point[1], "triangle"):
            continue
        status, floor, ceiling = contact_expected(terrain, point)
        if status == "ok":
            status = "inside" if open_sky else "outside"
        equal((item["status"], item["floor"], item["ceiling"]),
              (status, floor is not None, ceiling is not None),
              f"at {point}, open_sky {open_sky}")


for shape in ("small-anti", "wide-main"):
    for sky in (True, False):
        case(f"contains over {shape}, {'open sky' if sky else 'no open sky'}", contains_agrees,
             shape, sky)


# ---- layers ------------------------------------------------------------------------------------------


@test("with several heightfields the layer must be named, in the query or in the body")
def _():
    put_locale(daemon, "two")
    low = Terrain(3, 3, [[1] * 3] * 3)
    high = Terrain(3, 3, [[7] * 3] * 3)
    put_layer(daemon, "two", low, "low")
    put_layer(daemon, "two", high, "high")
    for layer, height in (("low", 1.0), ("high", 7.0)):
        got = daemon.ok("GET", at("two") + f"/height?x=1&y=1&layer={layer}")
        equal(got["height"], height, f"GET, {layer}")
        got = results(daemon, at("two") + "/height", {"points": [[1, 1]], "layer": layer}, 1)
        equal(got[0]["height"], height, f"POST, {layer}")
        got = daemon.ok("POST", at("two") + f"/profile?layer={layer}",
                        {"path": [[0, 0], [2, 2]], "samples": 3})
        equal(got["results"][1]["point"], [1, 1, height], f"profile, {layer}")
    item = results(daemon, at("two") + "/contact", {"points": [[1, 1, 3]]}, 1)[0]
    equal((item["floor"]["layer"], item["floor"]["point"]), ("low", [1, 1, 1]), "floor")
    equal((item["ceiling"]["layer"], item["ceiling"]["point"]), ("high", [1, 1, 7]), "ceiling")
    item = results(daemon, at("two") + "/contact", {"points": [[1, 1, 9]]}, 1)[0]
    equal((item["floor"]["layer"], item["ceiling"]), ("high", None), "above both")
    item = results(daemon, at("two") + "/contact", {"points": [[1, 1, 9]], "layer": "low"}, 1)[0]
    equal((item["floor"]["layer"], item["ceiling"]), ("low", None), "one layer alone")
    item = results(daemon, at("two") + "/contains", {"points": [[1, 1, 3]]}, 1)[0]
    equal((item["status"], item["floor"], item["ceiling"]), ("inside", True, True), "between")


@test("triangulations are told in the locale and in no layer of their own")
def _():
    for name, terrain in shapes.items():
        locale = daemon.ok("GET", at(name))
        check(locale["triangulation"] in TRIANGULATIONS, f"{locale['triangulation']}")
        equal(locale["triangulation"], terrain.triangulation, name)


run(daemon.stop)
