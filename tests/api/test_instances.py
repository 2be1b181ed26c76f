"""glTF instances: what is shared and what is copied, answers against brute force over copies, numbers
of polygons, edits, restarts, forks, pins, replicas, and bad files."""
import json
import math
import os
import struct
import sys
import tempfile

from daemon import ROOT, Daemon
from houses import EMPTY, GROUND, HOUSE, document, instanced, node
from mesh_oracle import MeshLayer, Polygon, World, judge_contact, judge_ray
from tap import HANG_S, Skip, check, equal, near, rng, run, test

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "client", "python"))
import kota  # noqa: E402

folder = tempfile.TemporaryDirectory(prefix="kota-test-")
FLAGS = ("--data", os.path.join(folder.name, "data"))
daemon = Daemon(*FLAGS)
GLB = "model/gltf-binary"
LIBRARY = os.path.join(ROOT, os.environ.get("KOTA_BIN_DIR", "build/release"), "lib",
                       "libkota-ground.so.0")

def placed(at, point):
    """A node's point in the locale, by the formula of glTF's quaternions; Z up."""
    x, y, z, w = at["rotation"]
    p = [a * b for a, b in zip(point, at.get("scale", (1, 1, 1)))]
    rows = ((1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
            (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
            (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)))
    a, b, c = (sum(r * v for r, v in zip(row, p)) + t for row, t in zip(rows, at["translation"]))
    return (a, -c, b)


def rings_of(nodes, meshes):
    """{number: ring} of copies, in the order of the nodes."""
    rings = []
    for at in nodes:
        points, triangles = meshes[at["mesh"]]
        rings += [[placed(at, points[i]) for i in triangle] for triangle in triangles]
    return dict(enumerate(rings))


def make_town(random, count, tilted=0):
    nodes = [node(0, random.uniform(-80, 80), random.uniform(0, 3), random.uniform(-80, 80),
                  random.uniform(-4, 4)) for _ in range(count)]
    nodes.insert(count // 2, node(1))
    for i in range(tilted):
        nodes.insert(3 * i, node(0, 10.0 * i, 8, 0, 1.0, 0.1 + 0.2 * i))
    return nodes


def put(name, body, where=None, query="up=y", status=201, media=GLB, layer="town", manifest=None):
    where = where or daemon
    where.ok("PUT", f"/v1/locales/{name}", manifest or {}, status=201)
    return where.put(f"/v1/locales/{name}/layers/{layer}?{query}", body, media=media)


def imported(answer):
    equal(answer.status, 201, f"the put: {answer}")
    return answer.json["import"]


def place(random):
    return [random.uniform(-95, 95), random.uniform(-95, 95), random.uniform(-3, 15)]


def judge(name, rings, random, questions=60, where=None):
    layer = MeshLayer([], name="town")
    layer.polygons = [Polygon(ring, number) for number, ring in rings.items()]
    world, where = World([layer]), where or daemon
    points = [place(random) for _ in range(questions)]
    answer = where.ok("POST", f"/v1/locales/{name}/contact", {"points": points})
    known = [judge_contact(world, point, item)
             for point, item in zip(points, answer["results"])]
    rays = [{"origin": place(random), "direction": [random.gauss(0, 1) for _ in range(3)]}
            for _ in range(questions)]
    hits = [judge_ray(world, ray, item) for ray, item in
            zip(rays, where.ok("POST", f"/v1/locales/{name}/ray", {"rays": rays})["results"])]
    check(sum(item is not None for item in known) > questions // 2 and any(hits),
          f"{name}: all but nothing was asked")


def asked(name, where=None, at=None):
    """Some answers, for comparison."""
    random, where = rng("the same questions"), where or daemon
    points = [place(random) for _ in range(40)]
    rays = [{"origin": p, "direction": [random.gauss(0, 1) for _ in range(3)]} for p in points]
    base, query = f"/v1/locales/{name}", f"?at={at}" if at else ""
    got = [where.ok("POST", f"{base}/contact{query}", {"points": points})["results"],
           where.ok("POST", f"{base}/ray{query}", {"rays": rays, "mode": "all"})["results"]]
    if not at:
        got += [where.ok("POST", f"{base}/sweep", {"items": [
            {"shape": {"sphere": 1}, "from": p, "to": q}
            for p, q in zip(points, points[1:])]})["results"]]
    return got


@test("a scene of one mesh: instances are shared, and a polygon's number is instance x polygons + index")
def one_mesh():
    random = rng("one mesh")
    nodes = [node(0, 12.0 * (i % 10), 0, 12.0 * (i // 10), random.uniform(-4, 4))
             for i in range(100)]
    told = imported(put("one", document(nodes, [HOUSE])))
    equal((told["instances_shared"], told["instances_copied"]), (100, 0), "instances")
    equal((told["kept"], told["dropped"]), (1200, 0), "polygons kept and dropped")
    for i in (0, 7, 99):
        spot = placed(nodes[i], (0.5, 0, 0.5))
        floor = daemon.ok("POST", "/v1/locales/one/contact",
                          {"points": [[spot[0], spot[1], 50]]})["results"][0]["floor"]
        equal(floor["polygon"] // 12, i, f"the instance of polygon {floor['polygon']}")
        check(floor["polygon"] % 12 in (10, 11), f"{floor['polygon']} is of no roof on this side")
        near(floor["point"][2], 4.5, "the roof", 1e-9)
    judge("one", rings_of(nodes, [HOUSE]), random)


@test("EXT_mesh_gpu_instancing: instances are shared and copied as nodes are, in the order of elements")
def gpu_instancing():
    random = rng("gpu instancing")
    town = instanced([node(0, random.uniform(-80, 80), random.uniform(0, 3),
                           random.uniform(-80, 80), random.uniform(-4, 4)) for _ in range(40)])
    town["places"][3]["scale"] = [2, 2, 2]
    town["places"][7]["rotation"] = node(0, tilt=0.5, turn=1.0)["rotation"]
    for at in town["places"]:  # the daemon makes rotations unit, float32 does not
        length = math.sqrt(sum(v * v for v in at["rotation"]))
        at["unit"] = {**at, "rotation": [v / length for v in at["rotation"]]}
    nodes = [node(1), town, node(0, 5, 9, 5)]
    told = imported(put("gpu", document(nodes, [HOUSE, GROUND])))
    equal((told["instances_shared"], told["instances_copied"]), (39, 2), "instances")
    rings = rings_of([nodes[0]] + [at["unit"] for at in town["places"]] + [nodes[2]],
                     [HOUSE, GROUND])
    equal((told["kept"], told["dropped"]), (len(rings), 0), "polygons kept and dropped")
    judge("gpu", rings, random, 120)


@test("EXT_mesh_gpu_instancing beside a node's own place; what it cannot be is refused")
def gpu_bad():
    shifts = instanced([node(0, 10.0 * i) for i in range(3)], ["TRANSLATION"],
                       translation=[0, 0, 20.0], rotation=node(0, turn=1.0)["rotation"])
    told = imported(put("gpu-node", document([shifts], [HOUSE])))
    equal((told["instances_shared"], told["instances_copied"]), (3, 0), "instances of one node")
    spot = [20 * math.cos(1), 0, 20 - 20 * math.sin(1)]
    floor = daemon.ok("POST", "/v1/locales/gpu-node/contact", {"points": [
        [spot[0], -spot[2], 50]]})["results"][0]["floor"]
    equal(floor["polygon"] // 12, 2, "the third house")
    both = document([instanced([node(0), node(0, 9)])], [HOUSE])
    for old, new, reason in (
            (b'"type": "VEC4", "count": 2', b'"type": "VEC4", "count": 1',
             "has 2 of TRANSLATION and 1 of ROTATION"),
            (b'"type": "VEC4"', b'"type": "VEC3"', "ROTATION of EXT_mesh_gpu_instancing"),
            (b'5126, "type": "VEC4"', b'5120, "type": "VEC4"', "normalized int8"),
            (b'"TRANSLATION": 2', b'"TRANSLATION": 9', "TRANSLATION of EXT_mesh_gpu_instancing"),
            (b'"TRANSLATION": 2, "ROTATION": 3, "SCALE": 4',
             b'"_ID": 2', "has no TRANSLATION, ROTATION or"),
            (b'"version": "2.0"', b'"version": "1.0"', "is not read together with"),
            (struct.pack("<4f", 0, 0, -0.0, 1), bytes(16), "is no quaternion")):
        check(old in both, f"{old} is not in the file")
        answer = daemon.put("/v1/locales/gpu-node/layers/town?up=y",
                            both.replace(old, new.ljust(len(old))), media=GLB)
        equal(answer.status, 400, f"{reason}: {answer}")
        check(reason in answer.json["detail"], f"{reason}: {answer.json}")


@test("others are copied: tilted, mirrored, of another size; numbers stay those of the file")
def mixed():
    random = rng("mixed")
    nodes = make_town(random, 60, tilted=3)
    nodes.append(node(0, 40, 0, 40, scale=[1.5, 1.5, 1.5]))
    nodes.append(node(0, -40, 0, 40, scale=[1, 1, -1]))
    told = imported(put("mixed", document(nodes, [HOUSE, GROUND])))
    equal((told["instances_shared"], told["instances_copied"]), (60, 5), "instances")
    judge("mixed", rings_of(nodes, [HOUSE, GROUND]), random, 120)


@test("a turned parent and nested nodes, quaternions of float32")
def nested():
    random = rng("nested")
    f32 = [struct.unpack("<f", struct.pack("<f", v))[0] for v in
           (math.sin(0.4), math.cos(0.4))]
    nodes = [{"children": [1, 2, 3], "rotation": [-0.5 ** 0.5, 0, 0, 0.5 ** 0.5]}] + [
        {"mesh": 0, "translation": [9.0 * i, random.uniform(-2, 2), 0], "rotation":
         [0, 0, f32[0] * (i > 0), f32[1] if i else 1]} for i in range(3)]
    told = imported(put("nested", document(nodes, [HOUSE], [0])))
    equal((told["instances_shared"], told["instances_copied"]), (3, 0), "instances")


@test("other formats, planets and other gravity have none")
def none_shared():
    nodes = make_town(rng("planet"), 5)
    told = imported(put("text", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", query="", media="model/obj"))
    equal((told["instances_shared"], told["instances_copied"]), (0, 0), "of an OBJ")
    told = imported(put("planet", document(nodes, [HOUSE, GROUND]), query="up=y&frame=spherical"))
    equal((told["instances_shared"], told["instances_copied"]), (0, 5), "of a planet")
    told = imported(put("slope", document(nodes, [HOUSE, GROUND]),
                        manifest={"gravity": [0, 0.6, -0.8]}))
    equal((told["instances_shared"], told["instances_copied"]), (0, 5), "under another gravity")
    daemon.ok("PUT", "/v1/locales/mixed-gravity", {}, status=201)
    answer = daemon.put("/v1/locales/mixed-gravity/layers/town?up=y",
                        document(nodes, [HOUSE, GROUND]), media=GLB)
    equal(imported(answer)["instances_shared"], 5, "before gravity changes")
    before = daemon.ok("POST", "/v1/locales/mixed-gravity/ray",
                       {"rays": [{"origin": [3, 4, 60], "direction": [0, 0, -1]}]})["results"][0]
    daemon.ok("PUT", "/v1/locales/mixed-gravity", {"gravity": [0, 0.6, -0.8]})
    after = daemon.ok("POST", "/v1/locales/mixed-gravity/ray",
                      {"rays": [{"origin": [3, 4, 60], "direction": [0, 0, -1]}]})["results"][0]
    equal(after["polygon"], before["polygon"], "the polygon under another gravity")
    near(after["t"], before["t"], "the ray under another gravity")


@test("a town costs the memory of a house; bytes_by_structure adds up; the files hold the copies")
def memory():
    nodes = make_town(rng("memory"), 3000)
    shared = put("large", document(nodes, [HOUSE, GROUND]))
    equal(imported(shared)["instances_shared"], 3000, "instances")
    stats = daemon.ok("GET", "/v1/locales/large/layers/town/stats")
    equal(sum(stats["bytes_by_structure"].values()), stats["bytes"], "bytes")
    equal(stats["polygons"], 3000 * 12 + 2, "polygons")
    text = daemon.get("/v1/locales/large/layers/town?format=obj")
    equal(text.status, 200, "the OBJ")
    rings = rings_of(nodes, [HOUSE, GROUND])
    equal(text.body.count(b"\nf "), len(rings), "faces of the OBJ")
    copies = put("copies", text.body, query="", media="model/obj")
    equal(copies.status, 201, "the copies")
    small, large = (daemon.ok("GET", f"/v1/locales/{name}")["memory_bytes"]
                    for name in ("large", "copies"))
    check(10 * small < large, f"{small} bytes shared, {large} copied")
    equal(daemon.get("/v1/locales/large/3dtiles/town.glb").status, 200, "the GLB")


@test("a layer of instances moves, is lit, and sees")
def moved():
    random = rng("moved")
    nodes = make_town(random, 40)
    put("moved", document(nodes, [HOUSE, GROUND]))
    before = asked("moved")
    daemon.ok("PUT", "/v1/locales/moved/layers/town/transform",
              {"translation": [100, 0, 5], "yaw_deg": 90})
    points = [place(random) for _ in range(60)]
    there = [[100 - p[1], p[0], p[2] + 5] for p in points]
    got = daemon.ok("POST", "/v1/locales/moved/contact", {"points": there})["results"]
    daemon.ok("PUT", "/v1/locales/moved/layers/town/transform",
              {"translation": [0, 0, 0], "yaw_deg": 0})
    want = daemon.ok("POST", "/v1/locales/moved/contact", {"points": points})["results"]
    for a, b in zip(got, want):
        equal(a["status"], b["status"], "status")
        if b["floor"]:
            equal(a["floor"]["polygon"], b["floor"]["polygon"], "polygon")
            near(a["floor"]["point"][2], b["floor"]["point"][2] + 5, "height", 1e-9, 100)
    equal(len(before[0]), len(points) - 20, "questions")
    sun = {"points": points, "light": {"direction": [0.3, 0.2, -0.9]}}
    lit = daemon.ok("POST", "/v1/locales/moved/lit", sun)["results"]
    rays = [{"origin": p, "direction": [-0.3, -0.2, 0.9]} for p in points]
    hits = daemon.ok("POST", "/v1/locales/moved/ray", {"rays": rays})["results"]
    equal([item["lit"] for item in lit], [hit["status"] == "miss" for hit in hits], "lit")


@test("the same bits after a restart, after kill -9, of a fork and of a pin; --check is content")
def kept():
    global daemon
    nodes = make_town(rng("kept"), 80, tilted=2)
    put("kept", document(nodes, [HOUSE, GROUND]))
    want = asked("kept")
    daemon.ok("PUT", "/v1/locales/kept/pins/first", {}, status=201)
    daemon.ok("POST", "/v1/locales", {"id": "fork", "from": "kept"}, status=201)
    equal(asked("fork"), want, "the fork")
    daemon.stop()
    daemon = Daemon(*FLAGS)
    equal(asked("kept"), want, "after a restart")
    equal(asked("fork"), want, "the fork after a restart")
    daemon.ok("POST", "/v1/locales/kept/layers/town/polygons", {"remove": [1]})
    daemon.kill()
    daemon = Daemon(*FLAGS)
    equal(asked("kept", at="first"), want[:2], "the pin")
    equal(asked("fork"), want, "the fork of what was edited")
    daemon.stop()
    checked = Daemon(*FLAGS, "--check", wait=False)
    equal(checked.process.wait(HANG_S), 0, "--check")
    daemon = Daemon(*FLAGS)


@test("an edit makes copies, and says how many; numbers stay, and it is kept")
def edited():
    global daemon
    random = rng("edited")
    nodes = make_town(random, 30, tilted=1)
    rings = rings_of(nodes, [HOUSE, GROUND])
    put("edited", document(nodes, [HOUSE, GROUND]))
    ring = [[0, 0, 9], [5, 0, 9], [0, 5, 9]]
    answer = daemon.ok("POST", "/v1/locales/edited/layers/town/polygons",
                       {"polygons": [ring], "remove": [15, 200]})
    equal(answer["import"]["instances_copied"], 30, "instances copied by the edit")
    equal(answer["added"], [len(rings)], "the number of the new polygon")
    rings[len(rings)] = ring
    del rings[15], rings[200]
    equal(answer["polygons"], len(rings), "polygons")
    judge("edited", rings, random)
    want = asked("edited")
    answer = daemon.ok("POST", "/v1/locales/edited/layers/town/polygons", {"remove": [16]})
    equal(answer["import"]["instances_copied"], 0, "instances copied by another edit")
    del rings[16]
    judge("edited", rings, random)
    want = asked("edited")
    daemon.kill()
    daemon = Daemon(*FLAGS)
    equal(asked("edited"), want, "after kill -9")
    answer = daemon.post("/v1/locales/edited/layers/town/polygons",
                         json.dumps({"remove": [100000]}).encode(), media="application/json")
    equal(answer.status, 422, "a polygon that is not there")


@test("a replica has the daemon's bits, before and after an edit")
def replica():
    if any(word in LIBRARY for word in ("asan", "tsan")):
        raise Skip("a sanitizer's library cannot be loaded into this Python")
    random = rng("replica")
    nodes = make_town(random, 50, tilted=1)
    put("copied", document(nodes, [HOUSE, GROUND]))
    world = kota.Client(daemon.url, timeout_s=HANG_S)
    with kota.Replica(world, "copied", library=LIBRARY) as ground:
        for edit in (None, {"remove": [5]}):
            if edit:
                answer = daemon.ok("POST", "/v1/locales/copied/layers/town/polygons", edit)
                ground.wait(answer["revision"], HANG_S)
            points = [place(random) for _ in range(100)]
            for point, want in zip(points, world.contact("copied", points)["results"]):
                equal(ground.contact(point), want, f"contact at {point}")
            rays = [{"origin": p, "direction": [random.gauss(0, 1) for _ in range(3)]}
                    for p in points]
            for ray, want in zip(rays, world.ray("copied", rays)["results"]):
                equal(ground.ray(**ray), want, f"{ray}")


@test("bad files: empty meshes, numbers that are not, too many polygons in all")
def bad():
    answer = put("bad", document([node(0), node(0, 5)], [EMPTY]))
    equal(answer.status, 422, f"instances of nothing: {answer}")
    daemon.ask("DELETE", "/v1/locales/bad")
    nodes = [node(0), node(0, 9), node(1), node(1, 7)]
    told = imported(put("bad", document(nodes, [HOUSE, EMPTY])))
    equal((told["instances_shared"], told["instances_copied"]), (2, 0), "beside instances of nothing")
    nodes[1]["translation"] = ["huge", 0, 0]
    for bad_node in (nodes[1], {"mesh": 0, "matrix": ["huge"] * 16}):
        answer = daemon.put("/v1/locales/bad/layers/town?up=y",
                            document([node(0), bad_node, node(0, 3)], [HOUSE]), media=GLB)
        equal(answer.status, 400, f"a matrix that is not finite: {answer}")
    answer = daemon.put("/v1/locales/bad/layers/town?up=y",
                        document([node(0), node(0, 1e13)], [HOUSE]), media=GLB)
    equal(answer.status, 400, f"a house too far away: {answer}")
    level = HOUSE[0], HOUSE[1] * 400  # 4,800 polygons in 998,001 places
    nodes = [{"children": [1] * 999}, {"children": [2] * 999}, {"mesh": 0}]
    answer = daemon.put("/v1/locales/bad/layers/town?up=y", document(nodes, [level], [0]), media=GLB)
    equal(answer.status, 413, f"more polygons than there are numbers: {answer}")
    equal(answer.json["limit"], 2 ** 32 - 2, "the limit")
    equal(answer.json["got"], 4800 * 998001, "what was got")


run(lambda: daemon.stop())
