"""Random soups of polygons against brute force: contact, rays, sight, containment, picking.

Overlaps, holes, slivers, walls and shared edges, several layers, ceilings, a heightfield among
them, under straight and slanted gravity. Binary batches must have the bits of single answers.
"""
import math
import struct

from daemon import F32, F64, Daemon
from fields import CONTACT_STATUS, CONTAINS_BITS, results
from mesh_oracle import (CEILING, MeshLayer, World, contact_status, judge_contact, judge_ray, put_world,
                         random_soup, soup_place)
from oracle import camera_ray, f32, random_terrain, scale, unit
from tap import case, check, equal, fail, near_all, rest, rng, run, test

daemon = Daemon()
SIZE = 40.0
FAR = (4.0e6, -7.0e6, 3.0e3)
GRAVITIES = {"down": (0.0, 0.0, -1.0), "slanted": (0.6, 0.0, -0.8), "odd": (-0.48, 0.64, -0.6),
             "sideways": (1.0, 0.0, 0.0), "upward": (0.0, 0.0, 1.0),
             "nearly-down": (1e-9, -2e-9, -1.0)}


turns = {}  # function: how often it was registered, from where it begins


def some(sentence, function, *args):
    """As case(); a third of each function's in make test, not the same soups for all, else in test-all."""
    turns[function] = turns.get(function, len(turns)) + 1
    if turns[function] % 3 == 1:
        case(sentence, function, *args)
    else:
        rest(sentence)(lambda: function(*args))


def at(name):
    return f"/v1/locales/{name}"


def make_worlds():
    """{name: World}; each is on the daemon under its name."""
    worlds = {}
    for name, gravity in GRAVITIES.items():
        random = rng("soup " + name)
        gravity = unit(gravity)
        up = scale(gravity, -1)
        worlds[name] = World([MeshLayer(random_soup(random, 120, SIZE, up), name="low"),
                              MeshLayer(random_soup(random, 40, SIZE, up), name="high"),
                              MeshLayer(random_soup(random, 50, SIZE, up), CEILING, "roof")],
                             gravity=gravity, open_sky=name != "odd")
    random = rng("soup mixed")
    for name, gravity in (("mixed", (0.0, 0.0, -1.0)), ("mixed-slanted", (0.28, -0.1, -0.9))):
        field = random_terrain(random, 14, 14, (3.0, 3.0), (-39.0, 0.0), "main", 0.05, 3.0)
        worlds[name] = World([MeshLayer(random_soup(random, 80, SIZE), name="deck"),
                              MeshLayer(random_soup(random, 50, SIZE), CEILING, "roof")],
                             [("ground", field)], gravity=gravity, open_sky=False)
    random = rng("soup far")
    rings = [[tuple(a + b for a, b in zip(corner, FAR)) for corner in ring]
             for ring in random_soup(random, 150, SIZE)]
    worlds["far"] = World([MeshLayer(rings, name="low")])
    for name, world in worlds.items():
        put_world(daemon, name, world)
    return worlds


worlds = make_worlds()


def random_place(random, world, beyond=0.1):
    """Somewhere in the soup, or (seldom) anywhere in its bounds."""
    if world is worlds["far"]:
        return [a + b for a, b in zip(soup_place(random, SIZE, beyond=beyond), FAR)]
    if random.random() < 0.9:
        up = (0.0, 0.0, 1.0) if world.heightfields else scale(world.gravity, -1)
        return soup_place(random, SIZE, up, beyond=beyond)
    low, high = world.bounds()
    return [a + (b - a) * random.uniform(-beyond, 1 + beyond) for a, b in zip(low, high)]


# ---- contact ------------------------------------------------------------------------------------


def contacts_agree(name, reach):
    world = worlds[name]
    random = rng(f"contact {name} {reach}")
    points = [random_place(random, world) for _ in range(400)]
    body = {"points": points, "reach_up": reach}
    unsure = floors = ceilings = 0
    for point, item in zip(points, results(daemon, at(name) + "/contact", body, 400)):
        judged = judge_contact(world, point, item, reach)
        if judged is None:
            unsure += 1
            continue
        floors += judged[0] is not None
        ceilings += judged[1] is not None
    check(unsure < 40, f"{unsure} of 400 on an edge: the points ask too little")
    check(floors > 25 and ceilings > 8, f"{floors} floors, {ceilings} ceilings of 400")


for name_ in worlds:
    for reach_ in (0, 2.5):
        if name_ != "far":
            some(f"400 contacts in soup {name_} with reach_up {reach_}: floors and ceilings of "
                 "brute force", contacts_agree, name_, reach_)


@test("far from the origin contacts agree to the precision of the coordinates")
def _():
    world = worlds["far"]
    random = rng("far contact")
    points = [random_place(random, world, 0.0) for _ in range(300)]
    found = 0
    for point, item in zip(points, results(daemon, at("far") + "/contact",
                                           {"points": points, "reach_up": 0}, 300)):
        column = world.column(point, 1e-5)
        if any(m.inner < 1e-5 or abs(m.t) < 1e-5 for m in column):
            continue
        floor, ceiling = world.floor_and_ceiling(column, 0)
        for member, want in (("floor", floor), ("ceiling", ceiling)):
            got = item[member]
            equal(got is None, want is None, f"{member} at {point}: {item}, expected {want}")
            if want:
                slope = 1 / max(want.sine, 1e-3)
                near_all(got["point"], list(want.point), f"{member} at {point}", 1e-8 * slope, 1)
                found += 1
    check(found > 40, f"{found} surfaces found")


def clearance_agrees(name, mode):
    world = worlds[name]
    random = rng(f"clearance {name} {mode}")
    points = [random_place(random, world) for _ in range(200)]
    up = scale(world.gravity, -1)
    for reach in (None, 1.5):
        body = {"points": points, "clearance": 1.25, "clearance_mode": mode}
        if reach is not None:
            body["reach_up"] = reach
        raised = 0
        for point, item in zip(points, results(daemon, at(name) + "/contact", body, 200)):
            column = world.column(point, 1e-7)
            if any(m.inner < 1e-7 or reach is not None and abs(m.t - reach) < 1e-6
                   for m in column):
                continue
            floor, _ = world.floor_and_ceiling(column, math.inf if reach is None else reach)
            what = f"{mode} at {point}, reach_up {reach}"
            if floor is None:
                equal(item["placed"], None, what)
                continue
            height = floor.t + 1.25
            if mode == "at_least":
                height = max(0.0, height)
            near_all(item["placed"], [p + height * u for p, u in zip(point, up)], what, 1e-7)
            raised += height > 0
        check(raised > 4, f"{raised} raised")


for name_ in ("down", "slanted", "mixed"):
    for mode_ in ("at_least", "exact"):
        some(f"clearance {mode_} in soup {name_}: above the floor against gravity",
             clearance_agrees, name_, mode_)


def footprints_agree(name):
    world = worlds[name]
    random = rng(f"footprints {name}")
    feet = []
    for _ in range(150):
        middle = random_place(random, world, 0.0)
        feet.append([[m + random.uniform(-0.4, 0.4) for m in middle]
                     for _ in range(random.choice((3, 3, 4, 6)))])
    planes = 0
    got = results(daemon, at(name) + "/contact", {"footprints": feet, "reach_up": 1.0}, 150)
    for foot, item in zip(feet, got):
        columns = [world.column(p, 1e-7) for p in foot]
        if any(m.inner < 1e-7 or abs(m.t - 1.0) < 1e-6 for column in columns for m in column):
            continue
        floors = [world.floor_and_ceiling(column, 1.0)[0] for column in columns]
        for point, floor in zip(item["points"], floors):
            near_all(point, floor and list(floor.point), f"point of {foot}", 1e-6)
        if None in floors:
            first = floors.index(None)
            want = contact_status(columns[first], None, world.is_over(foot[first], 1e-6))
            check(want is None or item["status"] == want, f"status {want}: {item}")
            equal(item["plane"], None, f"plane of {foot}")
            continue
        if item["plane"] is None:
            continue  # all feet in one line
        planes += 1
        n, d = item["plane"]["normal"], item["plane"]["d"]
        check(abs(math.hypot(*n) - 1) < 1e-9, f"unit normal: {n}")
        check(-sum(a * b for a, b in zip(n, world.gravity)) > 0, f"against gravity: {n}")
        off = [sum(a * b for a, b in zip(n, p)) + d for p in item["points"]]
        if len(foot) == 3:
            check(max(map(abs, off)) < 1e-6, f"through the three points: {off}, {foot}")
        else:
            middle = [sum(p[i] for p in item["points"]) / len(foot) for i in range(3)]
            at_middle = sum(a * b for a, b in zip(n, middle)) + d
            check(abs(at_middle) < 1e-6, f"through the mean: {at_middle}, {foot}")
    check(planes > 8, f"{planes} planes of 150")


for name_ in ("down", "odd"):
    case(f"150 footprints in soup {name_}: the plane through their floors", footprints_agree, name_)


# ---- rays ---------------------------------------------------------------------------------------


def random_ray(random, world):
    origin, target = random_place(random, world, random.choice((0.0, 0.5, 3.0))), random_place(
        random, world, 0.0)
    direction = [b - a for a, b in zip(origin, target)]
    kind = random.random()
    if kind < 0.15:  # along gravity, through something
        origin = [t - g * random.uniform(-20, 20) for t, g in zip(target, world.gravity)]
        direction = list(scale(world.gravity, random.choice((1.0, -1.0, 0.5))))
    elif kind < 0.25:  # level
        origin = random_place(random, world, 0.0)
        direction = [random.gauss(0, 1) for _ in range(3)]
        along = sum(a * b for a, b in zip(direction, world.gravity))
        direction = [d - along * g for d, g in zip(direction, world.gravity)]
    elif kind < 0.3:
        direction = [0.0, 0.0, 0.0]
        direction[random.randrange(3)] = random.choice((-1.0, 1.0))
    factor = 10.0 ** random.uniform(-3, 3) if random.random() < 0.2 else 1.0
    ray = {"origin": origin, "direction": [d * factor for d in direction]}
    if random.random() < 0.25:
        ray["t_max"] = random.uniform(0, 1.5) / factor
    return ray


def rays_agree(name, mode):
    world = worlds[name]
    random = rng(f"ray {name} {mode}")
    rays = [random_ray(random, world) for _ in range(400)]
    got = results(daemon, at(name) + "/ray", {"rays": rays, "mode": mode}, 400)
    hits = sum(judge_ray(world, ray, item, mode) for ray, item in zip(rays, got))
    check(50 < hits < 400, f"{hits} hits of 400")
    kinds = {item["layer"] for item in got}
    check(kinds >= {layer.name for layer in world.layers}, f"layers hit: {kinds}")


for name_ in worlds:
    if name_ != "far":
        some(f"400 rays in soup {name_}: t, point, normal, layer and polygon of the closest hit",
             rays_agree, name_, "closest")
for name_ in ("down", "odd", "mixed"):
    some(f"400 rays in soup {name_} in mode any: a hit where there is one", rays_agree, name_,
         "any")


@test("contact and the ray along gravity agree with each other")
def _():
    for name in ("down", "odd", "mixed"):
        world = worlds[name]
        random = rng("column " + name)
        points = [random_place(random, world, 0.0) for _ in range(300)]
        got = results(daemon, at(name) + "/contact", {"points": points, "reach_up": 0}, 300)
        for direction, member in ((world.gravity, "floor"), (scale(world.gravity, -1), "ceiling")):
            rays = [{"origin": p, "direction": list(direction)} for p in points]
            for point, item, ray in zip(points, got, results(daemon, at(name) + "/ray",
                                                             {"rays": rays}, 300)):
                if item[member] is None:
                    check(ray["status"] == "miss" or ray["layer"] == "roof",
                          f"{name}: {member} at {point}: none, but the ray has {ray}")
                elif ray["layer"] != "roof" or member == "ceiling":
                    near_all(ray["point"], item[member]["point"], f"{name}: {member} at {point}",
                             1e-9, 100)


def sights_agree(name):
    world = worlds[name]
    random = rng(f"los {name}")
    segments = [{"from": random_place(random, world), "to": random_place(random, world)}
                for _ in range(300)]
    blocked = 0
    for segment, item in zip(segments, results(daemon, at(name) + "/los",
                                               {"segments": segments}, 300)):
        what = f"{segment}"
        direction = [b - a for a, b in zip(segment["from"], segment["to"])]
        end = 1e-4 / max(math.hypot(*direction), 1e-4)
        hits = world.meetings(segment["from"], direction, 0.0, 1.0, 1e-7)
        sure = [m for m in hits if m.inner > 1e-7 and m.sine > 1e-7 and end < m.t < 1 - end]
        check(isinstance(item["visible"], bool), f"{what}: {item}")
        if item["visible"]:
            check(not sure, f"{what}: visible, but blocked by {sure[:2]}")
            equal((item["fraction"], item["point"]), (None, None), what)
            continue
        blocked += 1
        same = [m for m in hits if abs(m.t - item["fraction"]) < 1e-7 + 1e-10 / m.sine]
        check(same, f"{what}: blocked at {item['fraction']}, brute force {hits[:4]}")
        if sure:
            check(item["fraction"] < sure[0].t + 1e-7 + 1e-10 / sure[0].sine,
                  f"{what}: at {item['fraction']}, nearest {sure[0]}")
        near_all(item["point"], [a + item["fraction"] * d for a, d in zip(segment["from"], direction)],
                 f"point of {what}", 1e-7, 100)
    check(20 < blocked < 295, f"{blocked} of 300 blocked")


for name_ in ("down", "slanted", "upward", "mixed"):
    some(f"300 lines of sight through soup {name_} agree with brute force", sights_agree, name_)


def hits_in_sight(name):
    world = worlds[name]
    random = rng(f"sight of hits {name}")
    rays = [random_ray(random, world) for _ in range(500)]
    segments, below = [], 0
    for ray, item in zip(rays, results(daemon, at(name) + "/ray", {"rays": rays}, 500)):
        if item["status"] == "miss":
            continue
        d, n = ray["direction"], item["normal"]
        sine = sum(a * b for a, b in zip(d, n)) / math.hypot(*d)
        if abs(sine) < 1e-2 or math.dist(ray["origin"], item["point"]) < 1e-2:
            continue
        near_t = item["t"] + 1e-3 / math.hypot(*d)
        if len(world.meetings(ray["origin"], d, 0.0, near_t, 1e-4)) != 1:
            continue  # another surface is so near that it may count as touched, too
        if item["layer"] == "ground":
            continue  # a heightfield is solid, but for its holes: test_ray.py asks about it
        below += sine > 0
        segments.append({"from": ray["origin"], "to": item["point"]})
        segments.append({"from": item["point"], "to": ray["origin"]})
    check(below > 8 and len(segments) > 50, f"{len(segments)} segments, {below} from below")
    for segment, item in zip(segments, results(daemon, at(name) + "/los",
                                               {"segments": segments}, len(segments))):
        equal(item["visible"], True, f"{segment}: {item}")


for name_ in ("down", "slanted", "upward", "mixed"):
    some(f"what a ray hits first in soup {name_} is in sight of its origin, from either side",
         hits_in_sight, name_)


def picks_agree(name):
    world = worlds[name]
    random = rng(f"pick {name}")
    hits = tiles = 0
    for _ in range(80):
        eye = soup_place(random, SIZE, beyond=0.5)
        eye[2] = random.uniform(13, 40)
        target = random_place(random, world, 0.0)
        viewport = random.choice(([1280, 720], [300, 500]))
        pixel = [w * random.random() for w in viewport]
        body = {"camera": {"eye": eye, "target": target, "up": [0, 0, 1], "fov_y_deg": 50},
                "viewport": viewport, "pixel": pixel}
        answer = daemon.ok("POST", at(name) + "/pick", body)
        origin, direction = camera_ray(eye, target, (0, 0, 1), 50, viewport, pixel)
        item = answer["hit"] or {"status": "miss", **dict.fromkeys(
            ("t", "distance", "point", "normal", "layer", "cell", "triangle", "polygon"))}
        equal(answer["status"], item.get("status", "hit"), "status")
        ray = {"origin": list(origin), "direction": list(direction)}
        t = item["distance"] and item["distance"] / math.hypot(*direction)
        hit = judge_ray(world, ray, {"status": "hit", "t": t, **item})
        hits += hit
        on_field = hit and item["layer"] == "ground"
        equal(answer["tile"] is not None, on_field, f"tile of {answer}")
        tiles += on_field
    check(hits > 10 and (name != "mixed" or 2 < tiles < hits), f"{hits} hits, {tiles} tiles of 80")


for name_ in ("down", "mixed"):
    case(f"80 picks in soup {name_}: the hit of brute force, a tile on the heightfield alone",
         picks_agree, name_)


# ---- containment and height ---------------------------------------------------------------------


def containment_agrees(name):
    world = worlds[name]
    random = rng(f"contains {name}")
    points = [random_place(random, world) for _ in range(400)]
    inside = unsure = 0
    for point, item in zip(points, results(daemon, at(name) + "/contains", {"points": points},
                                           400)):
        column = world.column(point, 1e-7)
        if any(m.inner < 1e-7 or abs(m.t) < 1e-6 for m in column):
            unsure += 1
            continue
        floor, ceiling = world.floor_and_ceiling(column, 0)
        want = contact_status(column, floor, world.is_over(point, 1e-6))
        if want == "ok":
            want = "inside" if world.open_sky or ceiling else "outside"
        equal((item["status"], item["floor"], item["ceiling"]),
              (want or item["status"], floor is not None, ceiling is not None),
              f"at {point}: {column}")
        inside += want == "inside"
    check(unsure < 40 and 1 < inside < 395, f"{inside} inside, {unsure} unsure of 400")


for name_ in worlds:
    if name_ != "far":
        some(f"400 points in soup {name_}: inside where there is a floor"
             + ("" if worlds[name_].open_sky else " and a ceiling"), containment_agrees, name_)


@test("heights over a soup are the topmost ground, by GET, by POST and by contact from above")
def _():
    world = worlds["down"]
    random = rng("height soup")
    points = [random_place(random, world)[:2] for _ in range(400)]
    body = {"points": points, "fields": ["height", "normal"]}
    got = results(daemon, at("down") + "/height", body, 400)
    ok = 0
    for point, item in zip(points, got):
        column = world.column((*point, 0.0), 1e-7)
        if any(m.inner < 1e-7 for m in column):
            continue
        ground = [m for m in column if m.role != CEILING]
        if not ground:
            check(item["status"] in ("hole", "outside") and item["height"] is None, f"{item}")
            continue
        ok += 1
        equal(item["status"], "ok", f"at {point}")
        check(abs(item["height"] - ground[-1].t) < 1e-6, f"at {point}: {item}, {ground[-1]}")
        near_all(item["normal"], list(ground[-1].normal), f"normal at {point}", 1e-7)
    check(ok > 40, f"{ok} of 400")
    for point, item in zip(points[:40], got):
        x, y = point
        one = daemon.ok("GET", at("down") + f"/height?x={x!r}&y={y!r}")
        equal((one["status"], one["height"]), (item["status"], item["height"]), f"GET at {point}")
    high = results(daemon, at("down") + "/contact",
                   {"points": [[*p, 0] for p in points], "clearance": 0}, 400)
    for point, item, foot in zip(points, got, high):
        equal(foot["floor"] and foot["floor"]["point"][2], item["height"], f"contact at {point}")


# ---- the same bits ------------------------------------------------------------------------------

MEDIA = {"f": F32, "d": F64}


def pack(value, kind):
    value = math.nan if value is None else value
    data = struct.pack("<" + kind, value)
    return b"NaN" if math.isnan(struct.unpack("<" + kind, data)[0]) else data


def ask_binary(target, kind, rows, per_item):
    values = [v for row in rows for v in row]
    answer = daemon.post(target, struct.pack(f"<{len(values)}{kind}", *values), media=MEDIA[kind])
    check(answer.status == 200, f"{target}: {answer}")
    if per_item is None:
        equal(len(answer.body), len(rows), "one byte an item")
        return answer.body
    size = struct.calcsize(kind) * per_item
    equal(len(answer.body), len(rows) * size, "bytes")
    return [struct.unpack_from(f"<{per_item}{kind}", answer.body, i * size)
            for i in range(len(rows))]


def same(got, want, kind, what):
    if [pack(v, kind) for v in got] != [pack(v, kind) for v in want]:
        fail(f"{what}: binary {got}, JSON {want}")


def binary_agrees(name, kind):
    world = worlds[name]
    random = rng(f"binary {name} {kind}")
    narrow = f32 if kind == "f" else float
    points = [[narrow(v) for v in random_place(random, world)] for _ in range(400)]
    for reach in (0, 3.25):
        items = results(daemon, at(name) + "/contact", {"points": points, "reach_up": reach}, 400)
        got = ask_binary(f"{at(name)}/contact?reach_up={reach}", kind, points, 6)
        for point, item, row in zip(points, items, got):
            floor, ceiling = item["floor"], item["ceiling"]
            want = [floor["point"][2], *floor["normal"]] if floor else [None] * 4
            want += [ceiling and ceiling["point"][2], CONTACT_STATUS.index(item["status"])]
            same(row, want, kind, f"contact at {point}")
    items = results(daemon, at(name) + "/contains", {"points": points}, 400)
    for point, item, byte in zip(points, items, ask_binary(at(name) + "/contains", kind, points,
                                                           None)):
        want = CONTAINS_BITS[item["status"]] | item["floor"] << 1 | item["ceiling"] << 2
        equal(byte, want, f"contains at {point}")
    rays = []
    for _ in range(400):
        ray = random_ray(random, world)
        t_max = ray.get("t_max", math.inf)
        rays.append([narrow(v) for v in (*ray["origin"], *ray["direction"], t_max)])
    body = {"rays": [{"origin": r[:3], "direction": r[3:6],
                      "t_max": None if math.isinf(r[6]) else r[6]} for r in rays]}
    items = results(daemon, at(name) + "/ray", body, 400)
    for ray, item, row in zip(rays, items, ask_binary(at(name) + "/ray", kind, rays, 4)):
        want = ([math.inf] + [None] * 3 if item["status"] == "miss"
                else [item["t"], *item["normal"]])
        same(row, want, kind, f"ray {ray}")
    if name == "down":
        items = results(daemon, at(name) + "/height", {"points": [p[:2] for p in points]}, 400)
        got = ask_binary(at(name) + "/height", kind, [p[:2] for p in points], 1)
        for point, item, row in zip(points, items, got):
            same(row, [item["height"]], kind, f"height at {point}")


for name_ in ("down", "odd", "mixed", "far"):
    for kind_, word_ in (("f", "f32"), ("d", "f64")):
        some(f"binary batches over soup {name_} as {word_} have the bits of the JSON answers",
             binary_agrees, name_, kind_)


@test("one by one gives the very bits of the batch")
def _():
    for name in ("down", "odd", "mixed"):
        world = worlds[name]
        random = rng("single " + name)
        points = [random_place(random, world) for _ in range(40)]
        rays = [random_ray(random, world) for _ in range(40)]
        for call, member, asked in (("contact", "points", points), ("ray", "rays", rays),
                                    ("contains", "points", points)):
            batch = results(daemon, f"{at(name)}/{call}", {member: asked}, 40)
            for one, item in zip(asked, batch):
                equal(results(daemon, f"{at(name)}/{call}", {member: [one]}, 1)[0], item,
                      f"{call} {one}")


@test("with base a binary batch is relative to it, far from the origin as well")
def _():
    base, random = FAR, rng("base")
    local = [[f32(v) for v in soup_place(random, SIZE, beyond=0.0)] for _ in range(300)]
    where = "base=" + ",".join(map(repr, base))
    items = results(daemon, at("far") + "/contact",
                    {"points": [[b + v for b, v in zip(base, p)] for p in local]}, 300)
    floors = 0
    for point, item, row in zip(local, items, ask_binary(f"{at('far')}/contact?{where}", "f",
                                                         local, 6)):
        floor = item["floor"]
        floors += floor is not None
        same(row[:1], [floor and floor["point"][2] - base[2]], "f", f"contact at {point}")
    check(floors > 20, f"{floors} floors")


run(daemon.stop)
