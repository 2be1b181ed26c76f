"""The status of a contact: every case by hand, and 5,000 points in all forms beside an oracle.

The oracle knows triangles only: those of the heightfield's cells, and those of the roof. It works in
double precision, along the vertical through the point, and leaves out points that are so near an
edge or a level that one rounding decides.
"""
import math
import struct
from itertools import product

from daemon import F32, F64, Daemon
from fields import CONTACT_STATUS, CONTAINS_BITS, put_layer, put_locale, results
from mesh_oracle import put_mesh, rectangle, wall
from oracle import MAIN, f32, random_terrain
from tap import case, check, equal, fail, near, rng, run, test

daemon = Daemon()
plain = Daemon("--simd", "scalar")
COLS, ROWS, SPACING, ORIGIN = 40, 30, (2.5, 2.0), (-7.0, 11.0)
COUNT = 5000
NEAR = 1e-6  # metres; nearer to an edge or a level than this the oracle does not judge


def at(name):
    return f"/v1/locales/{name}"


# ---- the oracle ---------------------------------------------------------------------------------


class Surface:
    def __init__(self, corners, is_ground):
        self.corners, self.is_ground = corners, is_ground
        self.x = min(c[0] for c in corners), max(c[0] for c in corners)
        self.y = min(c[1] for c in corners), max(c[1] for c in corners)

    def meet(self, x, y):
        """(z, is sure) of the vertical line, or None; not sure: near an edge."""
        if not (self.x[0] - NEAR <= x <= self.x[1] + NEAR and
                self.y[0] - NEAR <= y <= self.y[1] + NEAR):
            return None
        (ax, ay, az), (bx, by, bz), (cx, cy, cz) = self.corners
        area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
        u = ((x - ax) * (cy - ay) - (cx - ax) * (y - ay)) / area
        v = ((bx - ax) * (y - ay) - (x - ax) * (by - ay)) / area
        least = min(u, v, 1 - u - v)
        if least < -NEAR:
            return None
        return az + u * (bz - az) + v * (cz - az), least > NEAR


class Oracle:
    def __init__(self, surfaces, bounds):
        self.surfaces, self.bounds = surfaces, bounds
        self.squares = {}
        for surface in surfaces:
            for square in product(*(range(math.floor(low) - 1, math.floor(high) + 2)
                                    for low, high in (surface.x, surface.y))):
                self.squares.setdefault(square, []).append(surface)

    def ask(self, point, reach_up, max_distance):
        """(status, floor z, ceiling z), or None where it does not judge."""
        x, y, z = point
        lifted, ground, others = z + reach_up, [], []
        for surface in self.squares.get((math.floor(x), math.floor(y)), ()):
            met = surface.meet(x, y)
            if not met:
                continue
            if not met[1] or min(abs(met[0] - lifted), abs(z - met[0] - max_distance)) < NEAR:
                return None
            (ground if surface.is_ground else others).append(met[0])
        floor = max((h for h in ground if h <= lifted), default=None)
        ceiling = min((h for h in ground + others if h >= lifted), default=None)
        if floor is not None:
            return ("ok", floor, ceiling) if z - floor <= max_distance else ("too_far", None, ceiling)
        if ground:
            return "below", None, ceiling
        (x0, y0), (x1, y1) = self.bounds
        if min(abs(x - x0), abs(x - x1), abs(y - y0), abs(y - y1)) < NEAR:
            return None
        return "hole" if x0 < x < x1 and y0 < y < y1 else "outside", None, ceiling


def triangles_of(terrain):
    for r in range(terrain.rows - 1):
        for c in range(terrain.cols - 1):
            for triangle in (0, 1):
                corners = [terrain.at(*corner) for corner in terrain.corners(c, r, triangle)]
                if not any(math.isnan(corner[2]) for corner in corners):
                    yield Surface(corners, True)


def roof_of(random, count, is_ground):
    """Slanted triangles over the field, some of them beyond its border; float32 as in a file."""
    for _ in range(count):
        x, y = random.uniform(-15, 95), random.uniform(5, 75)
        z = random.uniform(12, 30)
        yield Surface([tuple(map(f32, (x + dx, y + dy, z + random.uniform(-3, 3))))
                       for dx, dy in ((0, 0), (random.uniform(9, 25), random.uniform(-4, 4)),
                                      (random.uniform(-4, 4), random.uniform(9, 25)))], is_ground)


def scene():
    random = rng("field under a roof")
    terrain = random_terrain(random, COLS, ROWS, SPACING, ORIGIN, MAIN, holes=0.12)
    surfaces = list(triangles_of(terrain))
    roof, deck = list(roof_of(random, 9, False)), list(roof_of(random, 5, True))
    for to, name, open_sky in ((daemon, "open", True), (daemon, "closed", False),
                               (plain, "open", True)):
        put_locale(to, name, triangulation=MAIN, open_sky=open_sky)
        put_layer(to, name, terrain)
        put_mesh(to, name, [s.corners for s in roof], "roof", query="role=ceiling")
        put_mesh(to, name, [s.corners for s in deck], "deck")
    everything = surfaces + roof + deck
    x1, y1, _ = terrain.at(COLS - 1, ROWS - 1)
    low = (min([ORIGIN[0]] + [s.x[0] for s in roof + deck]),
           min([ORIGIN[1]] + [s.y[0] for s in roof + deck]))
    high = (max([x1] + [s.x[1] for s in roof + deck]), max([y1] + [s.y[1] for s in roof + deck]))
    return Oracle(everything, (low, high))


oracle = scene()


def points_of(random):
    (x0, y0), (x1, y1) = oracle.bounds
    return [[f32(random.uniform(x0 - 4, x1 + 4)), f32(random.uniform(y0 - 4, y1 + 4)),
             f32(random.uniform(-20, 40))] for _ in range(COUNT)]


def binary(target, points, kind, per_item):
    body = struct.pack(f"<{3 * len(points)}{kind}", *(v for p in points for v in p))
    answer = daemon.post(target, body, media=F64 if kind == "d" else F32)
    equal(answer.status, 200, f"{target}: {answer}")
    size = per_item * struct.calcsize(kind)
    equal(len(answer.body), size * len(points), "bytes")
    return [struct.unpack_from(f"<{per_item}{kind}", answer.body, i * size)
            for i in range(len(points))]


def flat(item):
    """The six numbers of a JSON item."""
    floor, ceiling = item["floor"], item["ceiling"]
    return ((floor["point"][2], *floor["normal"]) if floor else (math.nan,) * 4) + (
        ceiling["point"][2] if ceiling else math.nan, CONTACT_STATUS.index(item["status"]))


def judge(point, item, want):
    status, floor, ceiling = want
    equal(item["status"], status, f"status at {point}: {item}")
    for member, height in (("floor", floor), ("ceiling", ceiling)):
        equal(item[member] is None, height is None, f"{member} at {point}: {item}, expected {want}")
        if height is not None:
            near(item[member]["point"][2], height, f"{member} at {point}", 1e-9, 100)
            near(item[member]["distance"], abs(height - point[2]), f"distance at {point}", 1e-9, 100)


def forms_agree(reach_up, max_distance):
    points = points_of(rng(f"points {reach_up} {max_distance}"))
    options = {"reach_up": reach_up, "max_distance": max_distance}
    options = {name: value for name, value in options.items() if value is not None}
    query = "&".join(f"{name}={value}" for name, value in options.items())
    items = results(daemon, at("open") + "/contact", {"points": points, **options}, COUNT)
    judged, seen = 0, dict.fromkeys(CONTACT_STATUS, 0)
    for kind in "df":
        for point, item, got in zip(points, items,
                                    binary(f"{at('open')}/contact?{query}", points, kind, 6)):
            if struct.pack(f"<6{kind}", *got) != struct.pack(f"<6{kind}", *flat(item)):
                fail(f"at {point}: binary {got}, JSON {item}")
    for point, item in zip(points, items):
        want = oracle.ask(point, 0.5 if reach_up is None else reach_up,
                          math.inf if max_distance is None else max_distance)
        if want:
            judge(point, item, want)
            judged += 1
            seen[want[0]] += 1
    check(judged > 0.98 * COUNT, f"{judged} of {COUNT} judged")
    check(all(n > 100 for word, n in seen.items() if word != "too_far" or max_distance), f"{seen}")
    print(f"# {judged} of {COUNT} judged: {seen}")


for reach_, distance_ in ((None, None), (0, None), (5, 8.0)):
    case(f"{COUNT} contacts, reach_up {reach_}, max_distance {distance_}: JSON, float64, float32 and "
         "the oracle agree", forms_agree, reach_, distance_)


def contains_agrees(name, open_sky):
    points = points_of(rng("contains " + name))
    items = results(daemon, at(name) + "/contains", {"points": points}, COUNT)
    contacts = results(daemon, at(name) + "/contact", {"points": points, "reach_up": 0}, COUNT)
    seen = dict.fromkeys(CONTAINS_BITS, 0)
    body = daemon.post(at(name) + "/contains",
                       struct.pack(f"<{3 * COUNT}d", *(v for p in points for v in p)), media=F64).body
    for point, item, contact, byte in zip(points, items, contacts, body):
        status = contact["status"]
        if status == "ok":
            status = "inside" if open_sky or contact["ceiling"] else "outside"
        equal(item, {"status": status, "floor": contact["floor"] is not None,
                     "ceiling": contact["ceiling"] is not None}, f"at {point}: {contact}")
        equal(byte, CONTAINS_BITS[status] | item["floor"] << 1 | item["ceiling"] << 2, f"at {point}")
        want = oracle.ask(point, 0, math.inf)
        if want:
            equal(contact["status"], want[0], f"at {point}")
        seen[status] += 1
    check(all(count > 100 for count in seen.values()), f"{seen}")


for name_, sky_ in (("open", True), ("closed", False)):
    case(f"{COUNT} points of the {name_} locale: contains agrees with contact and the oracle",
         contains_agrees, name_, sky_)


@test("without vector instructions the bytes are the same")
def _():
    points = points_of(rng("levels"))
    for call, width in (("contact?max_distance=9", 3), ("contains", 3), ("height?status=true", 2)):
        for kind, media in (("f", F32), ("d", F64)):
            body = struct.pack(f"<{width * COUNT}{kind}", *(v for p in points for v in p[:width]))
            got, want = (one.post(f"{at('open')}/{call}", body, media=media)
                         for one in (daemon, plain))
            equal((got.status, want.status), (200, 200), f"{call}: {got}")
            check(got.body == want.body, f"{call}, {kind}: the bytes differ")


# ---- by hand ------------------------------------------------------------------------------------


def put_house():
    """A slab with a hole in it, a house of ground with a flat roof over a part of the hole."""
    put_locale(daemon, "house")
    put_mesh(daemon, "house", [rectangle(0, 0, 10, 4, 0), rectangle(0, 6, 10, 10, 0)], "slab")
    put_mesh(daemon, "house", [rectangle(0, 4, 4, 6, 3), wall((4, 4), (4, 6), 0, 3)], "house")
    put_mesh(daemon, "house", [rectangle(6, 4, 8, 6, 2)], "canopy", query="role=ceiling")


BY_HAND = (  # what, point, options, status, floor z, ceiling z
    ("over the slab", [5, 2, 1], {}, "ok", 0, None),
    ("on it", [5, 2, 0], {}, "ok", 0, None),
    ("half a metre under it", [5, 2, -0.5], {}, "ok", 0, None),
    ("a hair farther down", [5, 2, -0.500001], {}, "below", None, 0),
    ("a centimetre under it, without a reach", [5, 2, -0.01], {"reach_up": 0}, "below", None, 0),
    ("deep under it, with a reach", [5, 2, -90], {"reach_up": 90}, "ok", 0, None),
    ("deep under it, with a clearance", [5, 2, -90], {"clearance": 1}, "ok", 0, None),
    ("the same with a reach", [5, 2, -90], {"clearance": 1, "reach_up": 2}, "below", None, 0),
    ("in the hole", [5, 5, 1], {}, "hole", None, None),
    ("in the house: no ground but its roof", [2, 5, 1], {}, "below", None, 3),
    ("on its roof", [2, 5, 3.2], {}, "ok", 3, None),
    ("over the hole, under the canopy", [7, 5, 1], {}, "hole", None, 2),
    ("on the canopy", [7, 5, 2.5], {}, "hole", None, None),
    ("beside everything", [11, 5, 1], {}, "outside", None, None),
    ("just near enough", [5, 2, 7], {"max_distance": 7}, "ok", 0, None),
    ("too far", [5, 2, 7.001], {"max_distance": 7}, "too_far", None, None),
    ("max_distance is no reach up", [5, 2, -0.4], {"max_distance": 0}, "ok", 0, None),
    ("too far, nothing placed", [5, 2, 9], {"max_distance": 1, "clearance": 2}, "too_far", None, None),
)


def by_hand(what, point, options, status, floor, ceiling):
    items = results(daemon, at("house") + "/contact", {"points": [point], **options}, 1)
    item = items[0]
    got = tuple(item[member] and item[member]["point"][2] for member in ("floor", "ceiling"))
    equal((item["status"], *got), (status, floor, ceiling), what)
    equal("placed" in item, "clearance" in options, "placed")
    if "clearance" in options:
        equal(item["placed"] is None, floor is None, "placed where there is a floor")
    else:
        query = "&".join(f"{name}={value}" for name, value in options.items())
        equal(binary(f"{at('house')}/contact?{query}", [point], "d", 6)[0][5],
              CONTACT_STATUS.index(status), "binary status")


put_house()
for what_, *case_ in BY_HAND:
    case(f"{what_}: {case_[2]}", by_hand, what_, *case_)


def radial(frame, pull):
    """Two plates with a gap between them, 10 m from the origin or the axis."""
    name, inward = f"{frame}-{pull}", pull == "in"
    put_locale(daemon, name)
    plates = ([rectangle(-3, -3, -1, 3, 10), rectangle(1, -3, 3, 3, 10)] if frame == "spherical" else
              [[(10, y, -5), (10, y + 2, -5), (10, y + 2, 5), (10, y, 5)] for y in (-3, 1)])
    put_mesh(daemon, name, plates, query=f"frame={frame}&gravity={pull}")
    asked = [((4, 20), {}, "ok" if inward else "below"), ((1, 5), {}, "below" if inward else "ok"),
             ((0, 20), {}, "hole"), ((0, 5), {}, "hole"), ((20, 0.5), {}, "outside"),
             ((3.2, 9.7), {}, "outside"), ((1.95, 9.7), {}, "ok"), ((1.95, 10.3), {}, "ok"),
             ((1.8, 9), {}, "below" if inward else "ok"),
             ((4, 20), {"max_distance": 9}, "too_far" if inward else "below"),
             ((1, 5), {"max_distance": 5}, "below" if inward else "too_far")]
    for (aside, out), options, status in asked:
        point = [aside, 0, out] if frame == "spherical" else [out, aside, 0]
        item = results(daemon, at(name) + "/contact", {"points": [point], **options}, 1)[0]
        equal((item["status"], item["floor"] is not None), (status, status == "ok"), f"{point}")
        query = "&".join(f"{option}={value}" for option, value in options.items())
        equal(binary(f"{at(name)}/contact?{query}", [point], "d", 6)[0][5],
              CONTACT_STATUS.index(status), f"binary, {point}")


for frame_ in ("spherical", "cylindrical"):
    for pull_ in ("in", "out"):
        case(f"each status under {frame_} gravity, {pull_}", radial, frame_, pull_)


@test("under slanted gravity a hole of one chosen layer is within that layer's bounds")
def _():
    put_locale(daemon, "slanted", gravity=[0.6, 0, -0.8])
    put_mesh(daemon, "slanted", [rectangle(0, 0, 4, 9, 0), rectangle(6, 0, 9, 9, 0)], "gap")
    put_mesh(daemon, "slanted", [rectangle(50, 0, 59, 9, 0)], "east")
    for point, layer, status in (([2, 5, 0.1], None, "ok"), ([5, 5, 0], None, "hole"),
                                 ([2, 5, 4], None, "hole"), ([2, 5, 4], "gap", "hole"),
                                 ([30, 5, 0], None, "hole"), ([30, 5, 0], "gap", "outside"),
                                 ([2, 5, -2], None, "below"), ([5, 5, 4], "east", "outside"),
                                 ([50, -1, 4], None, "outside"), ([47.5, 5, 4], "east", "ok")):
        more = {"layer": layer} if layer else {}
        item = results(daemon, at("slanted") + "/contact", {"points": [point], **more}, 1)[0]
        equal(item["status"], status, f"{point} {layer}")


@test("a layer that was moved takes its status along")
def _():
    put_locale(daemon, "ferry")
    put_mesh(daemon, "ferry", [rectangle(0, 0, 9, 9, 0)], "quay")
    put_mesh(daemon, "ferry", [rectangle(0, 0, 4, 2, 5)], "deck")
    daemon.ok("PUT", at("ferry") + "/layers/deck/transform",
              {"translation": [20, 0, 1], "yaw_deg": 90})
    for point, status, floor in (([19, 1, 7], "ok", 6), ([19, 1, 5.5], "ok", 6),
                                 ([19, 1, 5.4], "below", None), ([2, 1, 7], "ok", 0),
                                 ([14, 1, 7], "hole", None), ([21, 1, 7], "outside", None)):
        item = results(daemon, at("ferry") + "/contact", {"points": [point]}, 1)[0]
        equal((item["status"], item["floor"] and item["floor"]["point"][2]), (status, floor),
              f"{point}")


@test("contains of the same: inside, below, hole, outside")
def _():
    points = [[5, 2, 1], [5, 2, -0.01], [5, 5, 1], [2, 5, 1], [7, 5, 1], [11, 5, 1]]
    equal([item["status"] for item in results(daemon, at("house") + "/contains", {"points": points},
                                              6)],
          ["inside", "below", "hole", "below", "hole", "outside"], "status")


@test("a footprint has the status of its first point without a floor")
def _():
    firm, low, over = [5, 2, 1], [5, 2, -3], [5, 5, 1]
    feet = [[firm, [6, 2, 1], [6, 3, 1]], [firm, low, over], [firm, over, low],
            [firm, [11, 5, 1], over], [firm, [6, 2, 1], [7, 2, 1]]]
    got = results(daemon, at("house") + "/contact", {"footprints": feet}, 5)
    equal([item["status"] for item in got], ["ok", "below", "hole", "outside", "hole"], "status")
    equal([item["plane"] is None for item in got], [False, True, True, True, True], "plane")
    equal(got[1]["points"], [[5, 2, 0], None, None], "points")
    far = results(daemon, at("house") + "/contact",
                  {"footprints": feet[:1], "max_distance": 0.5}, 1)[0]
    equal((far["status"], far["points"]), ("too_far", [None, None, None]), "too far")


def finish():
    plain.stop()
    daemon.stop()


run(finish)
