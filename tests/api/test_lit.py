"""Light and shadow: brute force, rays on the same question, lights that cannot be, and the cache."""
import math
import struct

from daemon import F32, F64, Daemon, problem
from fields import results
from mesh_oracle import (CEILING, MeshLayer, World, grid_rings, judge_ray, put_mesh, put_world,
                         random_soup, rectangle, soup_place, wall)
from oracle import add, dot, f32, random_terrain, scale, sub, unit
from tap import ALL, case, check, equal, fail, near, rng, run, test

daemon = Daemon()
SIZE = 40.0
NEAR = 1e-6
LIGHTS = 10000 if ALL else 2000
GRAVITIES = {"down": (0.0, 0.0, -1.0), "slanted": (0.6, 0.0, -0.8), "upward": (0.0, 0.0, 1.0)}


def at(name):
    return f"/v1/locales/{name}"


def make_worlds():
    worlds = {}
    for name, gravity in GRAVITIES.items():
        random, up = rng("lit soup " + name), scale(unit(gravity), -1)
        worlds[name] = World([MeshLayer(random_soup(random, 150, SIZE, up), name="low"),
                              MeshLayer(random_soup(random, 40, SIZE, up), CEILING, "roof")],
                             gravity=gravity)
    random = rng("lit mixed")
    field = random_terrain(random, 14, 14, (3.0, 3.0), (0.0, 0.0), "main", 0.05, 3.0)
    worlds["mixed"] = World([MeshLayer(random_soup(random, 60, SIZE), name="deck")],
                            [("ground", field)])
    field = random_terrain(random, 30, 30, (1.5, 1.5), (0.0, 0.0), "anti", 0.02, 9.0)
    worlds["field"] = World([], [("ground", field)])
    for name, world in worlds.items():
        put_world(daemon, name, world)
    return worlds


worlds = make_worlds()


def near_of(point):
    return NEAR * max(1.0, *map(abs, point))


def ray_of(light, point):
    """The question as /ray takes it, and how far from the point it begins; None at the light."""
    start = near_of(point)
    if "direction" in light:
        toward, t_max = unit(scale(light["direction"], -1)), None
    else:
        way = sub(light["position"], point)
        length = math.sqrt(dot(way, way))
        t_max = length - start - near_of(light["position"])
        if t_max < 0:
            return None, start
        toward = unit(way)
    ray = {"origin": list(add(point, scale(toward, start))), "direction": list(toward)}
    if t_max is not None:
        ray["t_max"] = t_max
    return ray, start


def light_of(random, kind, up):
    if kind == "position":
        return {"position": soup_place(random, SIZE, up, beyond=0.3)}
    if kind == "grazing":
        across = unit(sub(flat := [random.gauss(0, 1) for _ in range(3)],
                          scale(up, dot(flat, up))))
        return {"direction": list(add(across, scale(up, -0.03)))}
    return {"direction": [random.gauss(0, 1) for _ in range(3)]}


def points_of(random, world, light, count):
    """Somewhere, and on surfaces."""
    points = []
    while len(points) < count:
        point = soup_place(random, SIZE, scale(world.gravity, -1))
        if random.random() < 0.5:
            met = world.meetings(point, [random.gauss(0, 1) for _ in range(3)])
            if met and met[0].inner > 1e-3:
                point = list(met[0].point)
        points.append(point)
    return points


def as_ray_item(item, start):
    if item["lit"]:
        equal(item["occluder"], None, "occluder of a lit point")
        return {"status": "miss", **dict.fromkeys(("t", "distance", "point", "normal", "layer",
                                                   "cell", "triangle", "polygon"))}
    return {"status": "hit", **item["occluder"],
            "t": max(0.0, item["occluder"]["distance"] - start)}


def agree_with_brute_force(name, kind):
    world, random, shadows = worlds[name], rng(f"lit {name} {kind}"), 0
    count = 300 if ALL else 100
    for _ in range(3):
        light = light_of(random, kind, scale(world.gravity, -1))
        points = points_of(random, world, light, count)
        for point, item in zip(points, results(daemon, at(name) + "/lit",
                                               {"points": points, "light": light}, len(points))):
            ray, start = ray_of(light, point)
            shadows += not item["lit"]
            judge_ray(world, ray, as_ray_item(item, start))
    asked = 3 * count
    check(0.04 * asked < shadows < 0.96 * asked, f"{shadows} of {asked} points in shadow")


for name in worlds:
    for kind in ("direction", "grazing", "position"):
        case(f"brute force agrees: {name}, {kind}", agree_with_brute_force, name, kind)


def same_as_rays(name, kind):
    """Bit by bit what /ray answers, on trees and without them; one by one, too; and in binary."""
    random, world = rng(f"rays {name} {kind}"), worlds[name]
    light = light_of(random, kind, scale(world.gravity, -1))
    points = points_of(random, world, light, 600)
    body = {"points": points, "light": light}
    alone = [results(daemon, at(name) + "/lit", {"points": [p], "light": light}, 1)[0]
             for p in points[:40]]
    together = results(daemon, at(name) + "/lit", body, len(points))
    equal(together[:40], alone, "one by one")
    equal(results(daemon, at(name) + "/lit", body, len(points)), together, "asked again")
    asked = [ray_of(light, p) for p in points]
    hits = results(daemon, at(name) + "/ray", {"rays": [ray for ray, _ in asked]}, len(points))
    anys = results(daemon, at(name) + "/ray", {"rays": [r for r, _ in asked], "mode": "any"},
                   len(points))
    for item, hit, some, (_, start) in zip(together, hits, anys, asked):
        equal(item["lit"], hit["status"] == "miss", f"lit, {hit}")
        equal(item["lit"], some["status"] == "miss", f"lit, {some}")
        if not item["lit"]:
            near(item["occluder"]["distance"], hit["t"] + start, "distance", 1e-12)
            for member in ("layer", "polygon", "cell", "triangle"):
                equal(item["occluder"][member], hit[member], member)
            for a, b in zip(item["occluder"]["point"], hit["point"]):
                near(a, b, "point", 1e-12)
    where, vector = next(iter(light.items()))
    target = f"{at(name)}/lit?{where}=" + ",".join(map(repr, vector))
    flat = [v for p in points for v in p]
    answer = daemon.post(target, struct.pack(f"<{len(flat)}d", *flat), media=F64)
    equal((answer.status, list(answer.body)), (200, [int(i["lit"]) for i in together]), "f64")
    flat = [f32(v) for v in flat]
    answer = daemon.post(target, struct.pack(f"<{len(flat)}f", *flat), media=F32)
    body["points"] = [flat[i:i + 3] for i in range(0, len(flat), 3)]
    equal(list(answer.body), [int(i["lit"]) for i in results(daemon, at(name) + "/lit", body,
                                                             len(points))], "f32")


for name in worlds:
    for kind in ("direction", "position"):
        case(f"as rays answer: {name}, {kind}", same_as_rays, name, kind)


@test("by hand: below a bridge, on it, beside it; a lamp below it and one in its middle")
def _():
    daemon.ok("PUT", at("bridge"), {}, status=201)
    put_mesh(daemon, "bridge", [rectangle(0, 0, 40, 10, 0), rectangle(18, 0, 22, 10, 5),
                                wall((5, 0), (5, 10), 0, 3)], status=201)
    points = [[20, 5, 0], [20, 5, 5], [10, 5, 0], [20, 5, 4.999], [20, 5, 9]]

    def lit(light, some=points):
        return results(daemon, at("bridge") + "/lit", {"points": some, "light": light}, len(some))
    noon = lit({"direction": [0, 0, -7]})
    equal([i["lit"] for i in noon], [False, True, True, False, True], "noon")
    equal(noon[0]["occluder"]["polygon"], 1, "the bridge")
    near(noon[0]["occluder"]["distance"], 5, "distance", 1e-12)
    for direction in ([-1, 0, -1], [-1000, 0, -1000], [-1e-300, 0, -1e-300], [-1e300, 0, -1e300]):
        slanted = lit({"direction": direction}, [[15, 5, 0], [12, 5, 0], [4, 5, 0], [1, 5, 0]])
        equal([i["lit"] for i in slanted], [False, True, False, True], f"{direction}")
        near(slanted[0]["occluder"]["distance"], 5 * math.sqrt(2), "distance", 1e-12)
        equal(slanted[2]["occluder"]["polygon"], 2, "the wall")
    # from below: the ground is in the way, its own polygon is not
    equal([i["lit"] for i in lit({"direction": [0, 0, 1]})], [True, False, True, False, False], "below")
    lamp = lit({"position": [20, 5, 3]}, [[20, 5, 0], [20, 5, 5], [20, 5, 6], [1, 5, 0], [20, 5, 3]])
    equal([i["lit"] for i in lamp], [True, True, False, False, True], "lamp")
    # on the bridge, in its middle and at its corner: what it hangs on casts no shadow
    for place in ([20, 5, 5], [18, 0, 5]):
        hung = lit({"position": place}, [[20, 5, 0], [20, 5, 9], [10, 5, 0], place])
        equal([i["lit"] for i in hung], [True] * 4, f"{place}")


@test("ground is not shadowed by itself: points of contact answers, suns down to the horizon")
def _():
    rings = grid_rings(24, 24, 2.0, lambda x, y: 300 + 0.37 * x - 0.21 * y)
    put = {"plane": rings}
    for name, some in put.items():
        daemon.ok("PUT", at(name), {}, status=201)
        put_mesh(daemon, name, some, status=201)
    random = rng("own ground")
    above = [[random.uniform(0.1, 47.9), random.uniform(0.1, 47.9), 400] for _ in range(700)]
    floors = [i["floor"] for i in results(daemon, at("plane") + "/contact", {"points": above}, 700)]
    points = [floor["point"] for floor in floors]
    normal = floors[0]["normal"]
    for sine in (1, 0.1, 1e-2, 1e-3, 1e-5, 1e-7):
        for yaw in range(8):
            flat = (math.cos(yaw), math.sin(yaw), 0.0)
            across = unit(sub(flat, scale(normal, dot(flat, normal))))
            toward = add(scale(across, math.sqrt(1 - sine * sine)), scale(normal, sine))
            got = results(daemon, at("plane") + "/lit",
                          {"points": points, "light": {"direction": list(scale(toward, -1))}}, 700)
            wrong = [p for p, i in zip(points, got) if not i["lit"]]
            check(not wrong, f"sine {sine}, yaw {yaw}: {len(wrong)} shadowed, {wrong[:1]}")


@test("lights that cannot be: the member and the reason")
def _():
    def ask(light, **more):
        return daemon.post(at("down") + "/lit", {"points": [[1, 2, 3]], "light": light, **more})
    problem(ask({"direction": [0, 0, 0]}), 400, "zero", pointer="/light/direction")
    problem(ask({"direction": [0, 0]}), 400, pointer="/light/direction")
    problem(ask({"direction": "down"}), 400, pointer="/light/direction")
    problem(ask({"direction": [0, 0, "1"]}), 400)
    problem(ask({"position": [0, 2e12, 0]}), 400, "1e+12", pointer="/light/position", limit=1e12,
            got=2e12)
    problem(ask({}), 400, "direction", pointer="/light")
    problem(ask({"direction": [0, 0, 1], "position": [0, 0, 1]}), 400, pointer="/light")
    problem(ask({"direction": [0, 0, 1], "colour": 3}), 400, "colour", pointer="/light/colour")
    problem(ask(None), 400, "light", pointer="/light")
    problem(ask([0, 0, -1]), 400)
    problem(ask({"direction": [0, 0, 1]}, mode="any"), 400, pointer="/mode")
    problem(ask({"direction": [0, 0, 1]}, layer="none"), 422, pointer="/layer")
    problem(daemon.post(at("down") + "/lit", {"light": {"direction": [0, 0, 1]}}), 400,
            pointer="/points")
    problem(daemon.post(at("down") + "/lit", {"points": [[0, 0, 0]]}), 400, pointer="/light")
    for raw in (b'{"points":[[0,0,0]],"light":{"direction":[0,0,NaN]}}',
                b'{"points":[[0,0,0]],"light":{"direction":[0,0,1e999]}}',
                b'{"points":[[0,0,1e999]],"light":{"direction":[0,0,1]}}'):
        problem(daemon.post(at("down") + "/lit", raw, media="application/json"), 400)
    point = struct.pack("<3d", 1, 2, 3)
    for query, name in (("direction=0,0,0", "direction"), ("direction=0,0,nan", "direction"),
                        ("position=1e13,0,0", "position"), ("", "direction"),
                        ("direction=0,0,1&position=0,0,1", "direction"), ("light=0,0,1", "light")):
        problem(daemon.post(f"{at('down')}/lit?{query}", point, media=F64), 400, pointer=name)
    problem(daemon.post(at("down") + "/lit?direction=0,0,1", struct.pack("<3d", 0, 0, math.nan),
                        media=F64), 400)
    problem(daemon.post(at("down") + "/lit?direction=0,0,1", point[:-1], media=F64), 400)


@test("places as far as numbers go are answered")
def _():
    points = [[s * v for v in (a, b, c)] for s in (1, -1) for a, b, c in
              ((5e306, 5e306, 5e306), (1e306, 0, 0), (5e-324, 0, 0), (1e12, 1e12, 1e12))]
    for light in ({"direction": [1, 2, -3]}, {"direction": [5e-324, 0, 0]}, {"position": [1, 2, 9]},
                  {"position": [1e12, -1e12, 1e12]}, {"direction": [1.7e308, -1.7e308, 1.7e308]}):
        for item in results(daemon, at("mixed") + "/lit", {"points": points, "light": light}, 8):
            check(item["lit"] in (True, False), f"{item}")


def lights(some):
    return some.ok("GET", "/v1/stats")["light_cache"]


def ground(random):
    return grid_rings(16, 16, 2.0, lambda x, y: 3 * math.sin(x / 4) + math.cos(y / 3))


@test("a tree is made when it pays, kept, and counted; its bytes stay below --light-cache")
def _():
    random = rng("cache")
    with Daemon("--light-cache", "400000") as little, Daemon("--light-cache", "0") as none:
        for some in (little, none):
            equal(some.ok("GET", "/v1/limits")["light_cache_bytes_max"], 400000 if some is little
                  else 0, "limit")
            some.ok("PUT", at("a"), {}, status=201)
            put_mesh(some, "a", ground(random), status=201)
        points = [[random.uniform(1, 31), random.uniform(1, 31), random.uniform(-4, 4)]
                  for _ in range(200)]

        def ask(some, light, count=200):
            return results(some, at("a") + "/lit", {"points": points[:count], "light": light}, count)
        sun = {"direction": [1, 0.3, -0.5]}
        first = [ask(little, sun) for _ in range(4)]
        equal(first[1:], first[:-1], "before the tree and with it")
        equal((lights(little)["builds"], lights(little)["trees"]), (1, 1), "512 polygons, 800 points")
        counted = lights(little)  # one that goes on on a worker is counted twice
        check(counted["misses"] >= 1 and counted["hits"] >= 2, f"rays, then the tree: {counted}")
        for i in range(30):
            light = {"direction": [math.cos(i), math.sin(i), -0.5]}
            for _ in range(4):
                equal(ask(little, light), ask(none, light), "with a cache and without")
            check(lights(little)["bytes"] <= 400000, f"bytes: {lights(little)}")
        stats = lights(little)
        equal((stats["builds"], stats["lights"]), (31, 31), f"{stats}")
        check(stats["evicted"] > 10 and stats["trees"] == 31 - stats["evicted"], f"{stats}")
        for i in range(4):  # lights at positions have no tree
            light = {"position": [3 + 8 * i, 16, 2 + 3 * i]}
            want = ask(none, light)
            for _ in range(9):
                equal(ask(little, light), want, "a lamp, with a cache and without")
        equal(lights(little), stats, "counted as before the lamps")
        equal((lights(none)["builds"], lights(none)["trees"], lights(none)["bytes"]), (0, 0, 0), "0")
        metrics = little.get("/metrics").body.decode()
        for name in ("hits_total", "misses_total", "builds_total", "refused_total",
                     "evicted_total", "lights", "trees", "bytes"):
            check(f"\nkota_light_cache_{name} " in metrics, f"no kota_light_cache_{name}")


@test(f"{LIGHTS} lights, each once: rays, no tree, a thousand remembered")
def _():
    random = rng("many lights")
    with Daemon() as some:
        some.ok("PUT", at("a"), {}, status=201)
        put_mesh(some, "a", ground(random), status=201)
        before = some.memory_kib()
        body = struct.pack("<3d", 10, 10, 0)
        for i in range(LIGHTS):
            where = f"position={i % 32},{i / 320},6" if i % 4 == 3 else f"direction={i + 1},1,-3"
            answer = some.post(f"{at('a')}/lit?{where}", body, media=F64)
            equal((answer.status, len(answer.body)), (200, 1), f"light {i}")
        stats = lights(some)
        equal((stats["builds"], stats["trees"], stats["lights"], stats["misses"]),
              (0, 0, 1024, LIGHTS * 3 // 4), f"{stats}")
        check(some.memory_kib() < before + 8192, f"{before} KiB before, {some.memory_kib()} after")


@test("a mesh that is replaced is asked anew; the same one again finds its tree")
def _():
    with Daemon() as some:
        some.ok("PUT", at("a"), {}, status=201)
        under = {"points": [[20, 5, 1]] * 300, "light": {"direction": [0.1, 0, -1]}}
        bridge = [rectangle(0, 0, 40, 10, 0), rectangle(18, 0, 22, 10, 5)]
        put_mesh(some, "a", bridge, status=201)
        equal(results(some, at("a") + "/lit", under, 300)[0]["lit"], False, "under the bridge")
        equal(lights(some)["builds"], 1, "300 points")
        put_mesh(some, "a", bridge[:1], status=200)
        equal({i["lit"] for i in results(some, at("a") + "/lit", under, 300)}, {True}, "no bridge")
        put_mesh(some, "a", bridge, status=200)
        equal(results(some, at("a") + "/lit", under, 300)[0]["lit"], False, "the bridge again")
        # one tree of the mesh with the bridge, which was found again, and one of the flat ground
        equal(lights(some)["builds"], 2, "after the bridge came back")


run(daemon.stop)
