"""Polygons added to mesh layers and removed: answers against brute force, numbers, events, what is
kept, bad input."""
import math
import os
import tempfile
import threading

from daemon import JSON, Daemon, check, equal, problem
from events import Stream
from mesh_oracle import (NOT_SHARED, MeshLayer, Polygon, World, grid_rings, judge_contact, judge_ray,
                         obj, put_mesh, random_soup, rectangle, soup_place)
from tap import HANG_S, rng, run, test, wait_for

daemon = Daemon("--max-polygons", "2000")
folder = tempfile.TemporaryDirectory(prefix="kota-test-")
OBJ = "model/obj"


def path(name, layer="mesh"):
    return f"/v1/locales/{name}/layers/{layer}/polygons"


def make(name, rings, where=None, query=""):
    where = where or daemon
    where.ok("PUT", f"/v1/locales/{name}", {}, status=201)
    return put_mesh(where, name, rings, query=query)


def change(name, polygons=None, remove=None, where=None, **named):
    body = {}
    if polygons is not None:
        body["polygons"] = [[list(corner) for corner in ring] for ring in polygons]
    if remove is not None:
        body["remove"] = remove
    return (where or daemon).ok("POST", path(name), body, **named)


def floor(name, x, y, where=None, z=1000):
    answer = (where or daemon).ok("POST", f"/v1/locales/{name}/contact", {"points": [[x, y, z]]})
    return answer["results"][0]["floor"]


def world_of(rings):
    """rings: {number: ring}"""
    layer = MeshLayer([])
    layer.polygons = [Polygon(ring, number) for number, ring in rings.items()]
    return World([layer])


def judge(name, rings, random, questions=40, where=None):
    world = world_of(rings)
    where = where or daemon
    points = [soup_place(random) for _ in range(questions)]
    answer = where.ok("POST", f"/v1/locales/{name}/contact", {"points": points, "reach_up": 0})
    judged = [judge_contact(world, point, item, 0)
              for point, item in zip(points, answer["results"])]
    rays = [{"origin": soup_place(random), "direction": [random.gauss(0, 1) for _ in range(3)]}
            for _ in range(questions)]
    for ray, item in zip(rays, where.ok("POST", f"/v1/locales/{name}/ray",
                                        {"rays": rays})["results"]):
        judge_ray(world, ray, item)
    inside = where.ok("POST", f"/v1/locales/{name}/contains", {"points": points})["results"]
    for expected, item, point in zip(judged, inside, points):
        if expected is not None:
            equal(item["floor"], expected[0] is not None, f"contains at {point}")
    return sum(one is not None for one in judged)


@test("a soup that is edited sixty times answers like brute force, each polygon under its number")
def _():
    random = rng("soup")
    first = random_soup(random, 60)
    make("soup", first)
    rings = dict(enumerate(first))
    judged = 0
    for turn in range(60):
        new = random_soup(random, random.randrange(0, 5))
        gone = sorted(random.sample(sorted(rings), random.randrange(0, 4)))
        if not new and not gone:
            continue
        answer = change("soup", new, gone)
        equal(answer["removed"], gone, f"removed in turn {turn}")
        equal(len(answer["added"]), len(new), f"added in turn {turn}")
        for number in gone:
            del rings[number]
        for number, ring in zip(answer["added"], new):
            check(number is not None and number not in rings, f"number {number}: {answer}")
            rings[number] = ring
        equal(answer["polygons"], len(rings), f"polygons in turn {turn}")
        if turn % 4 == 3:
            judged += judge("soup", rings, random)
    check(judged > 300, f"only {judged} contacts were decided")


@test("the answer is the locale with what became of each polygon")
def _():
    make("answer", [rectangle(0, 0, 10, 10, 0)])
    answer = daemon.post(path("answer"), {"polygons": [
        [[1, 1, 5], [4, 1, 5], [4, 4, 5], [2.5, 2, 5], [1, 4, 5]],  # dented
        [[0, 0, 1], [1, 1, 1], [2, 2, 1]], [], [[0, 0, 1]],  # nothing is left of these
        [[0, 0, 0], [0, 5, 0], [0, 5, 5]],  # upright
        [[12, 0, 1], [14, 0, 1], [14, 2, 1]]]})
    equal(answer.status, 200, "status")
    said = answer.json
    equal(said["import"], {
        "kept": 5, "split": 1, "dropped": 3, **NOT_SHARED,
        "reasons": {"few_corners": 2, "no_area": 1},
        "dropped_polygons": [{"polygon": 1, "reason": "no_area"},
                             {"polygon": 2, "reason": "few_corners"},
                             {"polygon": 3, "reason": "few_corners"}]}, "import")
    equal(said["added"], [1, None, None, None, 5, 6], "added")
    equal((said["id"], said["layer"], said["revision"], said["removed"], said["polygons"]),
          ("answer", "mesh", 3, [], 4), "the rest")
    equal(said["bounds"], {"min": [0, 0, 0], "max": [14, 10, 5]}, "bounds")
    equal(answer.headers["kota-revision"], "3", "Kota-Revision")
    equal(answer.headers["etag"], '"3"', "ETag")
    equal(floor("answer", 2, 1.5)["polygon"], 1, "on the dented one")
    equal(floor("answer", 2.5, 3.5)["polygon"], 0, "in the dent")
    equal(floor("answer", 13.5, 0.5)["polygon"], 6, "beyond the border")
    ray = {"origin": [-1, 2, 1], "direction": [1, 0, 0]}
    hit = daemon.ok("POST", "/v1/locales/answer/ray", {"rays": [ray]})["results"][0]
    equal((hit["status"], hit["polygon"]), ("hit", 5), "the wall")
    daemon.get("/v1/locales/answer/layers/mesh").body.decode()
    problem(daemon.post(path("answer"), {"remove": [2]}), 422, "polygon 2", pointer="/remove")


@test("a removed polygon leaves a gap that is not filled, also in the file")
def _():
    make("gap", [rectangle(0, 0, 1, 1, 0), rectangle(2, 0, 3, 1, 0)])
    change("gap", remove=[0])
    equal(floor("gap", 0.5, 0.5), None, "nothing there")
    equal(floor("gap", 2.5, 0.5)["polygon"], 1, "the other keeps its number")
    equal(change("gap", [rectangle(0, 0, 1, 1, 4)])["added"], [2], "the next number")
    lines = daemon.get("/v1/locales/gap/layers/mesh").body.decode().splitlines()
    faces = [line for line in lines if not line.startswith("v ")]
    equal([line[0] for line in faces], ["#", "f", "f"], "lines behind the vertices")
    stats = daemon.ok("GET", "/v1/locales/gap/layers/mesh/stats")
    equal(stats["polygons"], 2, "pieces")


@test("an OBJ file is added, with up, scale and remove in the query")
def _():
    make("file", [rectangle(0, 0, 1, 1, 0), rectangle(2, 0, 3, 1, 0)])
    answer = daemon.ok("POST", path("file") + "?remove=1&up=y&scale=2", obj([[[2, 1, 0], [3, 1, 0],
                                                                            [3, 1, -1]]]), media=OBJ)
    equal((answer["added"], answer["removed"]), ([2], [1]), "numbers")
    equal(floor("file", 5.9, 0.5)["point"], [5.9, 0.5, 2], "turned and scaled")


@test("footprints, locate and height see it, and a layer under another gravity and a planet, too")
def _():
    make("parts", grid_rings(6, 6))
    change("parts", [rectangle(1, 1, 4, 4, 2)])
    feet = daemon.ok("POST", "/v1/locales/parts/contact",
                     {"footprints": [[[1.5, 1.5, 9], [3, 1.5, 9], [1.5, 3, 9]]]})["results"][0]
    equal([foot[2] for foot in feet["points"]], [2, 2, 2], "under the feet")
    equal(daemon.ok("GET", "/v1/locales/parts/height?x=2&y=2")["height"], 2, "height")
    daemon.ok("PUT", "/v1/locales/parts", {"gravity": [0, 0, 1]})
    change("parts", [rectangle(1, 1, 4, 4, -3)])
    below = floor("parts", 2, 2, z=-50)
    equal((below["point"][2], below["polygon"]), (-3, 73), "under gravity that pulls up")
    daemon.ok("PUT", "/v1/locales/far", {"placement": {"translation": [5000, 0, 0]}}, status=201)
    put_mesh(daemon, "far", [rectangle(0, 0, 5, 5, 0)])
    change("far", [rectangle(20, 0, 25, 5, 0)])
    found = daemon.ok("POST", "/v1/locate", {"points": [[5022, 2, 1]]})["results"][0]
    equal(found["locale"], "far", "locate")
    cube = [[(s, y, z) for y, z in ((-1, -1), (1, -1), (1, 1), (-1, 1))] for s in (-1, 1)]
    cube += [[(x, s, z) for x, z in ((-1, -1), (1, -1), (1, 1), (-1, 1))] for s in (-1, 1)]
    cube += [[(x, y, s) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))] for s in (-1, 1)]
    daemon.ok("PUT", "/v1/locales/planet", {}, status=201)
    put_mesh(daemon, "planet", cube, query="frame=spherical")
    answer = change("planet", [[(2, -1, -1), (2, 1, -1), (2, 0, 1)],
                               [(0, -1, -1), (0, 1, -1), (0, 0, 1)]], [1])
    equal((answer["added"], answer["import"]["dropped"]), ([6, None], 1), "one through the centre")
    on = daemon.ok("POST", "/v1/locales/planet/contact", {"points": [[5, 0, 0]]})["results"][0]
    equal((on["floor"]["point"], on["floor"]["polygon"]), ([2, 0, 0], 6), "on the planet")


@test("a layer that was moved is edited where it stands, and its event has the box there")
def _():
    make("moved", [rectangle(0, 0, 2, 2, 0)])
    daemon.ok("PUT", "/v1/locales/moved/layers/mesh/transform", {"translation": [100, 0, 10]})
    with Stream(daemon.port, "/v1/locales/moved/events") as stream:
        change("moved", [rectangle(0, 0, 1, 1, 3)])
        event = next(e for e in iter(stream.event, None) if e.name == "edit")
        equal(event.data, {"locale": "moved", "revision": 3, "rect": None, "layer": "mesh",
                           "source": "polygons",
                           "bounds": {"min": [100, 0, 13], "max": [101, 1, 13]}}, "the event")
        change("moved", remove=[0])
        event = next(e for e in iter(stream.event, None) if e.name == "edit")
        equal(event.data["bounds"], {"min": [100, 0, 10], "max": [102, 2, 10]}, "what went")
    equal(floor("moved", 100.5, 0.5)["point"][2], 13, "where it stands")
    pose = daemon.ok("GET", "/v1/locales/moved")["layers"][0]["transform"]
    equal(pose["translation"], [100, 0, 10], "the pose")


# ---- bad input ----------------------------------------------------------------------------------

make("bad", [rectangle(0, 0, 1, 1, 0), rectangle(2, 0, 3, 1, 0)])
daemon.ok("PUT", "/v1/locales/bad/layers/field?spacing=1,1&cols=2&rows=2", bytes(16), status=201,
          media="application/vnd.kota.f32")
GOOD = rectangle(0, 0, 1, 1, 5)


@test("each malformed body is refused by name and nothing is changed")
def _():
    before = daemon.ok("GET", "/v1/locales/bad")["revision"]
    for body, status, pointer, words in (
            ({}, 400, "/polygons", "nothing to do"),
            ({"polygons": [], "remove": []}, 400, "/polygons", "nothing to do"),
            ({"polygons": None, "remove": None}, 400, "/polygons", "nothing to do"),
            ({"polygons": 7}, 400, "/polygons", "must be an array"),
            ({"polygons": [7]}, 400, "/polygons/0", "must be an array"),
            ({"polygons": [GOOD, {"vertices": GOOD}]}, 400, "/polygons/1", "must be an array"),
            ({"polygons": [GOOD, [[0, 0, 0], [1, 0]]]}, 400, "/polygons/1/1", "3"),
            ({"polygons": [[[0, 0, 0], [1, 0, "x"], [1, 1, 1]]]}, 400, "/polygons/0/1", "number"),
            ({"polygons": [[[0, 0, 0], [1, 0, None], [1, 1, 1]]]}, 400, "/polygons/0/1", "number"),
            ({"polygons": [[[0, 0, 0], [2e12, 0, 0], [1, 1, 1]]]}, 400, "/polygons/0/1", "within"),
            ({"remove": "1"}, 400, "/remove", "must be an array"),
            ({"remove": [0.5]}, 400, "/remove/0", "whole"),
            ({"remove": [-1]}, 400, "/remove/0", ""),
            ({"remove": [0, 4294967295]}, 400, "/remove/1", ""),
            ({"remove": [1, 0, 1]}, 400, "/remove", "twice"),
            ({"remove": [2]}, 422, "/remove", "polygon 2"),
            ({"remove": [0, 1]}, 422, "/remove", "no polygon would be left"),
            ({"polygons": [[[0, 0, 0], [1, 1, 1], [2, 2, 2]]]}, 422, "/polygons", "no polygon"),
            ({"polygons": [GOOD], "layer": "mesh"}, 400, "/layer", ""),
            ({"add": [GOOD]}, 400, "/add", "")):
        problem(daemon.post(path("bad"), body), status, words, pointer=pointer)
    for text in ('{"polygons":[[[0,0,0],[1,0,NaN],[1,1,1]]]}', '{"remove":[1e999]}', "[]", "",
                 '{"polygons":[[[0,0,0]', '{"remove":[0],"remove":[1]}'):
        problem(daemon.post(path("bad"), text, media=JSON), 400)
    problem(daemon.post(path("bad"), b"x", media="image/png"), 415)
    problem(daemon.post(path("bad"), b"x", media="model/stl"), 415, "model/obj")
    problem(daemon.post(path("bad") + "?remove=0", {"polygons": [GOOD]}), 400, pointer="remove")
    for query in ("remove=", "remove=1,", "remove=x", "remove=1,,0", "remove=-1", "scale=0",
                  "scale=nan", "up=x", "frame=spherical", "remove=0,0"):
        problem(daemon.post(path("bad") + "?" + query, obj([GOOD]), media=OBJ), 400)
    problem(daemon.post(path("bad") + "?remove=9", obj([GOOD]), media=OBJ), 422, "polygon 9")
    problem(daemon.post(path("bad"), b"v 0 0 0\nv 1 0 0\nf 1 2 9\n", media=OBJ), 400, "line 3")
    problem(daemon.post(path("bad"), b"v 0 0 0\n", media=OBJ), 422)
    equal(daemon.ok("GET", "/v1/locales/bad")["revision"], before, "the revision")


@test("what is not there, or no mesh, or over a limit is refused")
def _():
    problem(daemon.post(path("nowhere"), {"remove": [0]}), 404, "nowhere")
    problem(daemon.post(path("bad", "none"), {"remove": [0]}), 404, "none")
    problem(daemon.post(path("bad", "a%20b"), {"remove": [0]}), 404)
    problem(daemon.post(path("bad", "field"), {"remove": [0]}), 422, "heightfield")
    answer = daemon.get(path("bad"))
    equal((answer.status, answer.headers["allow"].split(", ")), (405, ["POST", "OPTIONS"]), "GET")
    many = [[[i, 0, 0], [i + 1, 0, 0], [i, 1, 0]] for i in range(2001)]
    problem(daemon.post(path("bad"), {"polygons": many}), 413, "2001", limit=2000)
    problem(daemon.post(path("bad"), {"polygons": many[:1999]}), 413, "2001", limit=2000, got=2001)
    problem(daemon.post(path("bad"), {"remove": list(range(10001))}), 413, limit=10000, got=10001)
    wide = [[math.cos(0.001 * i), math.sin(0.001 * i), 0] for i in range(5000)]
    answer = change("bad", [wide, GOOD])
    equal(answer["added"][0], None, "5000 corners are too many for a polygon")
    change("bad", remove=[answer["added"][1]])


@test("numbers are bounded: a layer that has given out its last one must be put again")
def _():
    with Daemon("--max-polygons", "3") as own:
        make("few", [rectangle(0, 0, 1, 1, 0), rectangle(2, 0, 3, 1, 0)], where=own)
        last = 1
        for _ in range(22):
            last = change("few", [GOOD], [last], where=own)["added"][0]
        equal(last, 23, "the last number")
        problem(own.post(path("few"), {"polygons": [GOOD], "remove": [last]}), 413, "put it again", limit=24)
        put_mesh(own, "few", [GOOD], status=200)
        equal(change("few", [GOOD], where=own)["added"], [1], "numbers begin again")


@test("If-Match, Idempotency-Key and rights are those of any write")
def _():
    make("keys", grid_rings(3, 3))
    problem(daemon.post(path("keys"), {"remove": [0]}, headers={"If-Match": '"1"'}), 412, "If-Match")
    problem(daemon.post(path("keys"), {"remove": [0]}, headers={"If-None-Match": "*"}), 400)
    equal(daemon.post(path("keys"), {"remove": [0]}, headers={"If-Match": '"2"'}).status, 200, "2")
    key = {"Idempotency-Key": "once"}
    first = daemon.post(path("keys"), {"polygons": [GOOD], "remove": [1]}, headers=key)
    again = daemon.post(path("keys"), {"polygons": [GOOD], "remove": [1]}, headers=key)
    equal((first.status, again.status, again.body), (200, 200, first.body), "the first answer")
    equal(again.headers["idempotency-replayed"], "true", "told as such")
    problem(daemon.post(path("keys"), {"remove": [2]}, headers=key), 422, "key")
    equal(daemon.ok("GET", "/v1/locales/keys")["revision"], 4, "once")
    tokens = os.path.join(folder.name, "tokens")
    with open(tokens, "w") as file:
        file.write("edit editor-0123456789abcdef\nread reader-0123456789abcdef\n")
    with Daemon("--token-file", tokens) as own:
        body = {"remove": [0]}
        equal(own.post(path("keys"), body).status, 401, "no token")
        equal(own.post(path("keys"), body,
                       headers={"Authorization": "Bearer reader-0123456789abcdef"}).status, 403,
              "another scope")
        equal(own.post(path("keys"), body,
                       headers={"Authorization": "Bearer editor-0123456789abcdef"}).status, 404,
              "the right one: no locale")


# ---- balance ------------------------------------------------------------------------------------

def metric(name, where=None):
    for line in (where or daemon).get("/metrics").body.decode().splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise AssertionError(name)


def rebuilt(before):
    wait_for("another tree", lambda: metric("kota_mesh_rebuilds_total") > before)


@test("rays from outside keep their bits when the tree is built anew")
def _():
    rings = []
    for i in range(40 * 40):  # hills that stand askew
        corners = [(a / 10, b / 20) for a, b in ((i % 40, i // 40), (i % 40 + 1, i // 40),
                                                 (i % 40, i // 40 + 1))]
        rings.append([(0.8 * a - 0.6 * b, 0.6 * a + 0.8 * b, math.sin(a + b))
                      for a, b in corners])
    outlier = [(90, 90, 50), (91, 90, 50), (90, 91, 50)]
    random = rng("outside")
    rays = []
    for _ in range(400):
        origin = [random.uniform(-20, 40), random.uniform(-30, 0), random.uniform(17, 19)]
        target = [random.uniform(0, 2), random.uniform(1, 3), 0]
        rays.append({"origin": origin, "direction": [b - a for a, b in zip(origin, target)]})
    for name, gravity in (("level", [0, 0, -1]), ("tilted", [0.6, 0, -0.8])):
        daemon.ok("PUT", f"/v1/locales/{name}", {"gravity": gravity}, status=201)
        put_mesh(daemon, name, rings + [outlier])
        before = metric("kota_mesh_rebuilds_total")
        change(name, remove=[len(rings)] + list(range(500)))
        asked = [(f"/v1/locales/{name}/ray", {"rays": rays}),
                 (f"/v1/locales/{name}/los",
                  {"segments": [{"from": ray["origin"],
                                "to": [a + 1.01 * b for a, b in zip(*ray.values())]}
                               for ray in rays]})]
        first = [daemon.ok("POST", where, body) for where, body in asked]
        rebuilt(before)
        for (where, body), answer in zip(asked, first):
            equal(daemon.ok("POST", where, body), answer, where)
        hits = sum(item["status"] == "hit" for item in first[0]["results"])
        check(hits > 60, f"{hits} rays hit")


@test("a tree that many edits have unbalanced is built anew, and nobody can tell")
def _():
    make("busy", grid_rings(12, 12))
    before = metric("kota_mesh_rebuilds_total")
    rings = dict(enumerate(grid_rings(12, 12)))
    random = rng("busy")
    for i in range(130):
        x, y = random.uniform(0, 11), random.uniform(0, 11)
        ring = rectangle(x, y, x + 0.5, y + 0.5, 0.08 * (i + 1))
        rings[change("busy", [ring])["added"][0]] = ring
    rebuilt(before)
    equal(daemon.ok("GET", "/v1/locales/busy")["revision"], 132, "revisions")
    world = world_of(rings)
    for _ in range(200):
        point = [random.uniform(0, 12), random.uniform(0, 12), random.uniform(0, 12)]
        answer = daemon.ok("POST", "/v1/locales/busy/contact", {"points": [point]})
        judge_contact(world, point, answer["results"][0])


@test("readers see a whole revision each while polygons come and go")
def _():
    make("whole", grid_rings(8, 8))
    failures, over = [], threading.Event()

    def read():
        own = Daemon.__new__(Daemon)
        own.port, own.connection, own.front = daemon.port, None, None
        while not over.is_set():
            answer = own.ok("POST", "/v1/locales/whole/contact", {"points": [[4.5, 4.5, 1000]]})
            got = answer["results"][0]["floor"]
            if got["point"][2] != answer["revision"] - 2:
                failures.append(answer)
        own.connection.close()

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    last = None
    for k in range(1, 150):
        answer = change("whole", [rectangle(4, 4, 5, 5, k)], [last] if last is not None else [])
        last = answer["added"][0]
    over.set()
    for thread in threads:
        thread.join()
    equal(failures, [], "answers that are of no revision")


# ---- what is kept -------------------------------------------------------------------------------

@test("kill -9 after an answer loses nothing, and a clean end leaves files that hold it all")
def _():
    data = os.path.join(folder.name, "data")
    random = rng("kept")
    first = random_soup(random, 40)
    rings = dict(enumerate(first))
    own = Daemon("--data", data)
    make("kept", first, where=own)
    for turn in range(24):
        new = random_soup(random, 3)
        gone = sorted(random.sample(sorted(rings), 2))
        answer = change("kept", new, gone, where=own)
        for number in gone:
            del rings[number]
        rings.update(zip(answer["added"], new))
        if turn % 6 == 5:
            revision = own.ok("GET", "/v1/locales/kept")["revision"]
            if turn % 12 == 5:
                own.kill()
            else:
                own.stop()
            own = Daemon("--data", data)
            equal(own.ok("GET", "/v1/locales/kept")["revision"], revision, "the revision")
            judge("kept", rings, random, where=own)
            problem(own.post(path("kept"), {"remove": [gone[0]]}), 422, "any more")
    own.stop()
    files = os.listdir(os.path.join(data, "meshes"))
    with Daemon("--data", data) as last:
        judge("kept", rings, random, where=last)
    equal(len(files), len(set(files)), "files")
    with Daemon("--check", "--data", data, wait=False) as check_only:
        equal(check_only.process.wait(HANG_S), 0, "kotad --check")


@test("files of a mesh that could not be written are written later")
def _():
    data = os.path.join(folder.name, "late")
    meshes = os.path.join(data, "meshes")
    own = Daemon("--data", data)
    make("late", grid_rings(3, 3), where=own)
    change("late", grid_rings(1, 1), where=own)
    own.kill()
    before = set(os.listdir(meshes))
    with Daemon("--data", data) as own:  # a second after the start it writes what only the log has
        os.rename(meshes, meshes + "-away")
        wait_for("a warning", lambda: "layer mesh of late" in own.log_text())
        os.rename(meshes + "-away", meshes)
        wait_for("new files", lambda: set(os.listdir(meshes)) != before)


@test("answers keep their bits after kill -9, also where an edit lies farther out than the mesh was exact")
def _():
    data = os.path.join(folder.name, "bits")
    random = rng("bits")
    points = [soup_place(random) for _ in range(200)]
    rays = [{"origin": soup_place(random), "direction": [random.gauss(0, 1) for _ in range(3)]}
            for _ in range(200)]

    def answers():
        return [own.ok("POST", f"/v1/locales/bits/{question}", body)["results"] for question, body in (
            ("contact", {"points": points, "reach_up": 0}), ("ray", {"rays": rays}))]

    own = Daemon("--data", data)
    make("bits", random_soup(random, 40), where=own)
    for turn, far in enumerate((0, 40, 0, 900, 0, 0)):
        new = [[[c + far for c in corner] for corner in ring] for ring in random_soup(random, 3)]
        if turn == 4:  # one that has no area: it is dropped, wherever it lies
            new.append([[4000.0 * i, 4000.0 * i, 4000.0 * i] for i in range(3)])
        added = change("bits", new, where=own)["added"]
        if far == 900:
            change("bits", random_soup(random, 2), added, where=own)
        before = answers()
        own.kill()
        own = Daemon("--data", data)
        check(before == answers(), f"answers differ after turn {turn}")
    own.stop()


@test("one polygon of a large mesh is written as one polygon")
def _():
    data = os.path.join(folder.name, "large")
    with Daemon("--data", data) as own:
        make("large", grid_rings(200, 200), where=own)
        before = sum(os.path.getsize(os.path.join(data, "meshes", name))
                     for name in os.listdir(os.path.join(data, "meshes")))
        wal = os.path.getsize(os.path.join(data, "kota.db-wal"))
        for i in range(20):
            change("large", [rectangle(i, i, i + 1, i + 1, 5)], where=own)
        after = sum(os.path.getsize(os.path.join(data, "meshes", name))
                    for name in os.listdir(os.path.join(data, "meshes")))
        grown = os.path.getsize(os.path.join(data, "kota.db-wal")) - wal
        equal(after, before, "bytes in meshes/")
        check(grown < 20 * 128 * 1024, f"the WAL grew by {grown} bytes for 20 polygons")


run(daemon.stop)
