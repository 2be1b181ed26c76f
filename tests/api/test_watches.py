"""Watches: standing questions, against a twin that asks everything again after each change."""
import math
import os
import re
import tempfile
import time

from daemon import Daemon, problem
from events import Stream
from fields import Terrain, put_layer, put_terrain
from mesh_oracle import put_mesh, rectangle, wall
from tap import HANG_S, Failure, case, check, equal, rest, rng, run, test

daemon = Daemon("--stream-silence-ms", "1000000")  # no comment keeps a wait for news alive
KINDS = {"height": "points", "contact": "points", "ray": "rays", "los": "segments", "lit": "points",
         "contains": "points", "sweep": "items"}


def at(name):
    return f"/v1/locales/{name}"


class Reader:
    """A stream and the answers that it has brought."""

    def __init__(self, watch, server=None):
        self.stream = Stream((server or daemon).port, watch)
        self.stream.socket.settimeout(HANG_S)
        equal(self.stream.status, 200, "status of the stream")
        self.answers, self.events, self.revision, self.repeated = {}, 0, 0, 0

    def take(self):
        event = self.stream.event()
        equal(event.name, "answers", "name of the event")
        self.events += 1
        check(event.data["revision"] >= self.revision, "the revision grows")
        self.revision = event.data["revision"]
        for one in event.data["answers"]:
            answer = one["answer"] if "problem" not in one else one["problem"]
            self.repeated += self.answers.get(one["id"]) == answer
            self.answers[one["id"]] = answer

    def until(self, twin, what):
        """Takes events until the answers are the twin's, which a layer that comes to rest changes."""
        self.stream.socket.settimeout(2)
        wanted, silences = twin(), 0
        while self.answers != wanted:
            try:
                self.take()
                for one in set(self.answers) - set(wanted):  # removed; sent before that
                    del self.answers[one]
            except Failure as failure:
                silences += 1
                wanted = twin()
                wrong = {one: (self.answers.get(one), wanted.get(one))
                         for one in {**wanted, **self.answers}
                         if self.answers.get(one) != wanted.get(one)}
                check(silences < HANG_S / 2 or not wrong,
                      f"{what}: {failure}; {len(wrong)} differ: {str(wrong)[:2000]}")

    def close(self):
        self.stream.close()


def scene(name):
    random = rng("scene " + name)
    put_terrain(daemon, name, Terrain(61, 61, [[random.uniform(0, 4) for _ in range(61)]
                                               for _ in range(61)], (2.0, 2.0), (-60.0, -60.0)))
    put_mesh(daemon, name, [rectangle(-20, -5, 20, 5, 9)], "lift")
    put_mesh(daemon, name, [wall((-30, 0), (-30, 20), 0, 12), rectangle(-40, 10, -30, 20, 12)],
             "house")


def questions(random, count, first=0):
    """{kind: body} with ids; all over the ground, and beyond it."""
    def place(low, high):
        return [random.uniform(-66, 66), random.uniform(-66, 66), random.uniform(low, high)]

    def item(kind):
        if kind == "height":
            return place(0, 0)[:2]
        if kind == "ray":
            return {"origin": place(-2, 20), "direction": [random.gauss(0, 1) for _ in "xyz"],
                    **({"t_max": random.uniform(1, 50)} if random.random() < 0.5 else {})}
        if kind in ("los", "sweep"):
            return {"from": place(-1, 15), "to": place(-1, 15)}
        return place(-2, 15)
    bodies, number = {}, first
    for kind, member in KINDS.items():
        bodies[kind] = {member: [item(kind) for _ in range(count)], "ids": []}
        for _ in range(count):
            bodies[kind]["ids"].append(number if number % 2 else f"q {number}")
            number += 1
    bodies["height"] |= {"layer": "ground", "fields": ["height", "normal", "cell"],
                         "interp": random.choice(("triangle", "nearest", "bilinear"))}
    bodies["contact"] |= {"reach_up": random.choice((0.5, 3)), "max_distance": 30}
    bodies["lit"]["light"] = random.choice(({"direction": [1, 2, -3]}, {"position": [5, 5, 40]}))
    bodies["sweep"]["sphere"] = 1.5
    if random.random() < 0.5:
        bodies["ray"] |= {"mode": "all", "hits_max": 3}
    return bodies


def twin(name, bodies):
    """What the calls themselves answer now."""
    answers = {}
    for kind, body in bodies.items():
        once = {key: value for key, value in body.items() if key != "ids"}
        answers |= zip(body["ids"], daemon.ok("POST", at(name) + "/" + kind, once)["results"])
    return answers


def change(name, random, added):
    kind = random.random()
    if kind < 0.5:
        daemon.ok("POST", at(name) + "/edits", {"layer": "ground", "brush": {
            "shape": random.choice(("raise", "crater", "smooth")), "radius": random.uniform(2, 20),
            "center": [random.uniform(-60, 60), random.uniform(-60, 60)], "amount": random.choice(
                (0.5, 1))}})
    elif kind < 0.6:
        column, row = random.randrange(56), random.randrange(56)
        daemon.ok("POST", at(name) + "/edits", {
            "layer": "ground", "op": "set", "rect": [column, row, 4, 4],
            "heights": [random.choice((None, random.uniform(0, 9))) for _ in range(16)]})
    elif kind < 0.85:
        daemon.ok("PUT", at(name) + "/layers/lift/transform", {
            "translation": [random.uniform(-30, 30), random.uniform(-30, 30), random.uniform(-4, 4)],
            "yaw_deg": random.choice((0, 90, 33))})
    elif kind < 0.98 or added:
        x, y = random.uniform(-50, 50), random.uniform(-50, 50)
        corners = [list(corner) for corner in rectangle(x, y, x + 9, y + 9, random.uniform(2, 9))]
        body = {"polygons": [corners]}
        if added and random.random() < 0.5:
            body["remove"] = [added.pop()]
        added.append(daemon.ok("POST", at(name) + "/layers/house/polygons", body)["added"][0])
    else:
        daemon.ok("PUT", at(name), {"title": str(random.random())})


def agrees(name, rounds, changes):
    """After some random changes each, the stream has what the twin has."""
    scene(name)
    random = rng("changes " + name)
    bodies = questions(random, 40)
    watch = daemon.ask("POST", at(name) + "/watches", bodies)
    equal(watch.status, 201, f"{watch}")
    equal(watch.json["items"], 40 * len(KINDS), "items")
    reader, added, other = Reader(watch.headers["location"]), [], {}
    reader.until(lambda: twin(name, bodies), "at the beginning")
    for turn in range(rounds):
        for _ in range(random.randint(1, changes)):
            change(name, random, added)
        if random.random() < 0.1:
            removed = [one for body in other.values() for one in body["ids"]]
            other = questions(random, 3, 100000 + 100 * turn)
            daemon.ok("PATCH", watch.headers["location"], {"add": other, "remove": removed})
            for one in removed:
                reader.answers.pop(one, None)
        reader.until(lambda: {**twin(name, bodies), **twin(name, other)}, f"turn {turn}")
    reader.close()
    daemon.ok("DELETE", watch.headers["location"], status=204)


case("answers are those of the calls, after random edits, moves and polygons", agrees, "short", 60, 3)


@rest("the same after 10,000 changes")
def _():
    agrees("long", 1700, 11)


def asks_little(name, count, edits):
    put_terrain(daemon, name, Terrain(401, 401, [[0] * 401 for _ in range(401)], (5.0, 5.0),
                                      (0.0, 0.0)))
    random = rng("little " + name)
    points = [[random.uniform(0, 2000), random.uniform(0, 2000), 50] for _ in range(count)]
    reader, watch = None, None
    for first in range(0, count, 10000):
        body = {"contact": {"points": points[first:first + 10000],
                            "ids": list(range(first, min(first + 10000, count)))}}
        if watch:
            daemon.ok("PATCH", watch, {"add": body})
        else:
            watch = daemon.ask("POST", at(name) + "/watches", body).headers["location"]
    reader = Reader(watch)
    while len(reader.answers) < count:
        reader.take()
    feed = Stream(daemon.port, at(name) + "/events")
    for _ in range(edits):
        before = daemon.ok("GET", "/v1/stats")["watches"]
        x, y = random.uniform(50, 1950), random.uniform(50, 1950)
        daemon.ok("POST", at(name) + "/edits",
                  {"brush": {"shape": "raise", "center": [x, y], "radius": 20, "amount": 1}})
        bounds = feed.event().data["bounds"]
        low, high = bounds["min"], bounds["max"]
        met = sum(low[0] <= px <= high[0] and low[1] <= py <= high[1] for px, py, _ in points)
        changed = sum(math.dist((px, py), (x, y)) < 19 for px, py, _ in points)
        seen = dict(reader.answers)
        while sum(seen[i] != reader.answers[i] for i in seen) < changed:
            reader.take()
        deadline, after, asked = time.monotonic() + HANG_S, before, 0
        while asked < met and time.monotonic() < deadline:  # those that are asked again need not change
            after = daemon.ok("GET", "/v1/stats")["watches"]
            asked = after["asked"] - before["asked"]
        check(met <= asked <= max(met * 1.05, met + 1), f"{asked} were asked, {met} are met")
        check(after["changed"] - before["changed"] <= asked, "no more change than are asked")
        equal(reader.repeated, 0, "answers that were sent again with the same bits")
    feed.close()
    reader.close()
    daemon.ok("DELETE", watch, status=204)


case("an edit asks again only the points that it meets", asks_little, "field", 10000, 10)


@rest("the same of 100,000 points")
def _():
    asks_little("wide", 100000, 10)


def small(name="yard", server=None, **more):
    (server or daemon).ok("PUT", at(name), {}, status=201)
    put_layer(server or daemon, name, Terrain(9, 9, [[0] * 9 for _ in range(9)], (1.0, 1.0),
                                              (0.0, 0.0)))
    body = {"height": {"points": [[1, 1], [5, 5]], "ids": ["a", "b"]}, **more}
    return (server or daemon).ask("POST", at(name) + "/watches", body).headers["location"]


def raise_ground(name="yard", server=None, center=(1, 1), amount=1):
    (server or daemon).ok("POST", at(name) + "/edits", {"brush": {
        "shape": "raise", "center": list(center), "radius": 1.5, "amount": amount}})


@test("PATCH removes, adds and replaces; all of it or nothing")
def _():
    watch = small()
    reader = Reader(watch)
    reader.take()
    equal(set(reader.answers), {"a", "b"}, "at first")
    answer = daemon.ok("PATCH", watch, {"remove": ["a", "no such"], "add": {
        "contact": {"points": [[2, 2, 5]], "ids": ["b"]}, "contains": {"points": [[2, 2, 5]],
                                                                       "ids": [3]}}})
    equal(answer["items"], 2, "items")
    reader.take()
    check("floor" in reader.answers["b"], "b is a contact now")
    equal(reader.answers[3]["status"], "inside", "3")
    problem(daemon.ask("PATCH", watch, {"remove": [3], "add": {
        "height": {"points": [[1, 1], [2]], "ids": [8, 9]}}}), 400, pointer="/add/height/points/1")
    raise_ground(center=(2, 2))
    reader.take()
    equal(set(reader.answers), {"a", "b", 3}, "nothing was added")
    equal(daemon.ok("PATCH", watch, {})["items"], 2, "nothing was removed")
    later = Reader(watch)
    later.take()
    equal(set(later.answers), {"b", 3}, "a reader that comes later")
    later.close()
    reader.close()


@test("a layer that is gone makes the answers problems; when it is back they are answers again")
def _():
    watch = small("gone")
    reader = Reader(watch)
    reader.take()
    was = dict(reader.answers)
    daemon.ok("DELETE", at("gone") + "/layers/ground", status=204)
    reader.take()
    equal({one["code"] for one in reader.answers.values()}, {"no_heightfield"}, "problems")
    put_layer(daemon, "gone", Terrain(9, 9, [[0] * 9 for _ in range(9)], (1.0, 1.0), (0.0, 0.0)))
    reader.take()
    equal(reader.answers, was, "answers")
    daemon.ok("DELETE", at("gone"), status=204)
    equal(reader.stream.rest(), [], "the stream ends with the locale")
    problem(daemon.get(watch), 404, pointer="watch")


@test("DELETE ends the streams; then there is no such watch")
def _():
    watch = small("ended")
    reader = Reader(watch)
    reader.take()
    equal(daemon.ask("DELETE", watch).status, 204, "DELETE")
    equal(reader.stream.rest(), [], "the end")
    for method in ("GET", "DELETE"):
        equal(problem(daemon.ask(method, watch), 404, pointer="watch")["code"], "watch_unknown", method)
    problem(daemon.ask("PATCH", watch, {}), 404, pointer="watch")


@test("a slow reader gets the newest answers, each once, and holds nothing up")
def _():
    points = [[x / 8, y / 8] for x in range(64) for y in range(64)]
    watch = small("slow", height={"points": points, "ids": list(range(len(points))),
                                  "fields": ["height", "normal", "cell"]})
    slow, quick = Reader(watch), Reader(watch)
    while len(quick.answers) < len(points):
        quick.take()
    for turn in range(40):
        daemon.ok("POST", at("slow") + "/edits", {"brush": {
            "shape": "raise", "center": [4, 4], "radius": 40, "amount": 1 + turn % 3}})
    body = {"points": points, "fields": ["height", "normal", "cell"]}

    def wanted():
        return dict(enumerate(daemon.ok("POST", at("slow") + "/height", body)["results"]))
    quick.until(wanted, "the quick one")
    slow.until(wanted, "the slow one")
    check(slow.events <= quick.events, f"{slow.events} events, the quick one had {quick.events}")
    slow.close()
    quick.close()


@test("a watch ends after its last reader, and when none has come")
def _():
    with Daemon("--watch-linger-ms", "300") as own:
        watch = small("short", own)
        reader = Reader(watch, own)
        reader.take()
        lonely = own.ask("POST", at("short") + "/watches",
                         {"height": {"points": [[1, 1]], "ids": [1]}}).headers["location"]

        def until_gone(one):
            while own.ask("PATCH", one, {}).status != 404:
                time.sleep(0.05)
        until_gone(lonely)
        raise_ground("short", own)
        reader.take()
        equal(own.ask("PATCH", watch, {}).status, 200, "one with a reader stays")
        reader.close()
        until_gone(watch)
        equal(own.ok("GET", "/v1/stats")["watches"]["watches"], 0, "watches")


@test("an idle watch costs nothing: its thread sleeps, also when other locales change")
def _():
    with Daemon() as own:
        reader = Reader(small("idle", own), own)
        reader.take()
        small("busy", own)

        def turns():
            one = [task for task, name in own.threads("comm").items() if name == "watches\n"]
            return one and re.findall(".*ctxt_switches.*", own.threads("status")[one[0]])
        deadline, before = time.monotonic() + HANG_S, None
        while (now := turns()) != before or not now:  # the answers of the start have been sent
            check(time.monotonic() < deadline, f"its turns: {now}")
            before = now
            time.sleep(0.7)
        asked = own.ok("GET", "/v1/stats")["watches"]["asked"]
        raise_ground("busy", own)
        own.ok("PUT", "/v1/locales/more", {}, status=201)
        reader.stream.socket.settimeout(0.5)
        equal(own.ok("GET", "/v1/stats")["watches"]["asked"] - asked <= 2, True, "asked of idle")
        reader.close()


@test("a daemon that ends while watches are asked ends cleanly")
def _():
    points = [[1 + i % 50 * 0.1, 1 + i // 50 * 0.1] for i in range(2500)]
    for delay in range(4):
        with Daemon() as own:
            small("busy", own, contact={"points": [[*point, 9] for point in points], "ids": list(range(2500))})
            raise_ground("busy", own, (4, 4))
            time.sleep(delay * 5e-4)  # its end meets the thread of watches at another place


@test("limits: watches, items of all of them, and items of mode all")
def _():
    with Daemon("--max-watches", "1", "--max-watch-items", "10") as own:
        small("one", own)
        body = {"height": {"points": [[1, 1]], "ids": [1]}}
        problem(own.ask("POST", at("one") + "/watches", body), 503, limit=1, got=2)
        many = {"height": {"points": [[1, 1]] * 9, "ids": list(range(9))}}
        problem(own.ask("POST", at("one") + "/watches", many), 413, pointer="/height", limit=8, got=9)
        ray = {"rays": [{"origin": [1, 1, 9], "direction": [0, 0, -1]}], "ids": [1], "mode": "all",
               "hits_max": 9}
        problem(own.ask("POST", at("one") + "/watches", {"ray": ray}), 413, pointer="/ray")


@test("a token sees the watches of its locales only, and a restart ends them")
def _():
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        path = os.path.join(folder, "tokens")
        with open(path, "w", encoding="ascii") as file:
            file.write("edit boss\nread guest locales=open-*\n")
        os.chmod(path, 0o600)
        own = Daemon("--token-file", path)
        boss, guest = ({"Authorization": f"Bearer {name}"} for name in ("boss", "guest"))
        body = {"height": {"points": [[1, 1]], "ids": [1]}}
        where = {}
        for name in ("open-1", "shut"):
            own.ask("PUT", at(name), {}, headers=boss)
            terrain = Terrain(9, 9, [[0] * 9 for _ in range(9)], (1.0, 1.0), (0.0, 0.0))
            own.ask("PUT", f"{at(name)}/layers/ground?{terrain.query()}", terrain.body(),
                    media="application/vnd.kota.f32", headers=boss)
            where[name] = own.ask("POST", at(name) + "/watches", body, headers=boss).headers["location"]
        equal(own.ask("PATCH", where["open-1"], {}, headers=guest).status, 200, "its own")
        equal(own.ask("PATCH", where["shut"], {}, headers=guest).status, 404, "another")
        equal(own.ask("GET", where["shut"], headers=guest).status, 404, "another's stream")
        check(own.ask("POST", at("shut") + "/watches", body, headers=guest).status in (403, 404), "POST")
        equal(own.ask("PATCH", where["shut"], {}).status, 401, "without a token")
        own.stop()
    with Daemon() as fresh:
        problem(fresh.get(where["shut"]), 404, pointer="watch")


RAY = {"origin": [1, 1, 9], "direction": [0, 0, -1]}
WRONG = [
    ("an unknown call", {"hight": {"points": [[1, 1]], "ids": [1]}}, 400, "/hight"),
    ("a call that is no object", {"height": [1]}, 400, "/height"),
    ("no items", {"height": {"ids": [1]}}, 400, "/height/points"),
    ("an empty list", {"height": {"points": [], "ids": []}}, 400, "/height/points"),
    ("no ids", {"height": {"points": [[1, 1]]}}, 400, "/height/ids"),
    ("too few ids", {"height": {"points": [[1, 1], [2, 2]], "ids": [1]}}, 400, "/height/ids"),
    ("an id twice", {"height": {"points": [[1, 1], [2, 2]], "ids": [1, 1]}}, 400, "/height/ids"),
    ("an id in two calls", {"height": {"points": [[1, 1]], "ids": [1]},
                            "contains": {"points": [[1, 1, 1]], "ids": [1]}}, 400, "/contains/ids"),
    ("an id that is no id", {"height": {"points": [[1, 1]], "ids": [1.5]}}, 400, "/height/ids/0"),
    ("a negative id", {"height": {"points": [[1, 1]], "ids": [-1]}}, 400, "/height/ids/0"),
    ("an id with an escape", {"height": {"points": [[1, 1]], "ids": ["a\"b"]}}, 400, "/height/ids/0"),
    ("an id of 65 letters", {"height": {"points": [[1, 1]], "ids": ["x" * 65]}}, 400, "/height/ids/0"),
    ("a point of one", {"height": {"points": [[1, 1]] * 200 + [[1]], "ids": list(range(201))}}, 400,
     "/height/points/200"),
    ("an unknown option", {"height": {"points": [[1, 1]], "ids": [1], "mode": "x"}}, 400, "/height/mode"),
    ("an unknown layer", {"height": {"points": [[1, 1]], "ids": [1], "layer": "no"}}, 422,
     "/height/layer"),
    ("a trace", {"ray": {"rays": [RAY], "ids": [1], "trace": True}}, 400, "/ray/trace"),
    ("a trace of a ray", {"ray": {"rays": [{**RAY, "trace": True}], "ids": [1]}}, 400,
     "/ray/rays/0/trace"),
    ("too many hits", {"ray": {"rays": [RAY], "ids": [1], "mode": "all", "hits_max": 200}}, 400,
     "/ray/hits_max"),
    ("a light of none", {"lit": {"points": [[1, 1, 1]], "ids": [1]}}, 400, "/lit/light"),
    ("a shape of none", {"sweep": {"items": [{"from": [1, 1, 1], "to": [2, 2, 2]}], "ids": [1]}}, 400,
     "/sweep/items/0/shape"),
]


def wrong(body, status, pointer):
    problem(daemon.ask("POST", at("yard") + "/watches", body), status, pointer=pointer)


for sentence, body_, status_, pointer_ in WRONG:
    case(f"a wrong watch is {status_}: {sentence}", wrong, body_, status_, pointer_)


@test("PATCH of what cannot be is refused")
def _():
    watch = small("patched")
    for body, pointer in (({"remove": 7}, "/remove"), ({"remove": [None]}, "/remove/0"),
                          ({"add": 7}, "/add"), ({"add": {"pick": {}}}, "/add/pick"),
                          ({"more": {}}, "/more")):
        problem(daemon.ask("PATCH", watch, body), 400, pointer=pointer)
    problem(daemon.ask("POST", at("nowhere") + "/watches", {}), 404)
    equal(daemon.ask("POST", at("patched") + "/watches", {}).json["items"], 0, "an empty watch")


run(daemon.stop)
