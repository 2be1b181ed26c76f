"""Forks: POST /v1/locales {"id","from"}; parent and forks against a model of each."""
import os
import random as random_module
import sqlite3
import tempfile
import threading

from changes import wait_for_poses
from daemon import F32, Daemon, problem
from fields import put_layer
from ground import (Client, cut_off, check_is_good, from_bytes, hills, random_edit, restarts, run_check,
                    stored)
from mesh_oracle import obj, random_soup
from oracle import ANTI, random_terrain
from tap import ALL, check, equal, rng, run, test

daemon = Daemon()

ROUNDS = int(os.environ.get("KOTA_FORK_ROUNDS", "20" if ALL else "4"))
CHANGES = int(os.environ.get("KOTA_FORK_CHANGES", "120" if ALL else "40"))
NAMES = [f"l{i}" for i in range(9)]


def at(name, what=""):
    return f"/v1/locales/{name}{what}"


def fork(client, name, source, status=201, **more):
    answer = client.ask("POST", "/v1/locales", {"id": name, "from": source, **more})
    equal(answer.status, status, f"a fork {name} of {source}: {answer}")
    return answer


class Model:
    """id -> the ground of each locale, of its pins, and of its last revisions."""

    def __init__(self, seed):
        self.random = random_module.Random(seed)
        self.now, self.pins, self.past, self.origin = {}, {}, {}, {}
        self.forks = 0

    def some(self, of):
        return self.random.choice(sorted(of)) if of else None

    def free(self):
        return self.some(set(NAMES) - set(self.now))

    def revision(self, client, name):
        return client.ask("GET", at(name)).json["revision"]

    def note(self, client, name):
        self.past.setdefault(name, {})[self.revision(client, name)] = self.now[name].copy()
        while len(self.past[name]) > 30:
            del self.past[name][min(self.past[name])]

    def put(self, client):
        name = self.free() if self.random.random() < 0.6 else self.some(self.now)
        if not name:
            return
        if name not in self.now:
            equal(client.ask("PUT", at(name), {}).status, 201, "PUT of a locale")
            self.pins[name], self.past[name], self.origin[name] = {}, {}, None
        ground = hills(self.random, self.random.choice((300, 300, 270)), 270, (1.0, 1.0), (0.0, 0.0), 0.01)
        answer = client.ask("PUT", at(name, f"/layers/ground?{ground.query()}"), ground.body(), media=F32)
        check(answer.status in (200, 201), f"PUT of a layer: {answer}")
        self.now[name] = ground
        self.note(client, name)

    def edit(self, client):
        name = self.some(self.now)
        if name:
            edit = random_edit(self.random, self.now[name], self.random.choice((1, 4, 60)), shapes=())
            equal(client.edit(edit, name, "ground", binary=True).status, 200, "an edit")
            self.now[name].apply(edit)
            self.note(client, name)

    def fork(self, client):
        name, source = self.free(), self.some(self.now)
        if not name or not source:
            return
        text, ground = source, self.now[source]
        revision = self.revision(client, source)
        kind = self.random.random()
        if kind < 0.35 and self.pins[source]:
            pin = self.some(self.pins[source])
            text, (revision, ground) = f"{source}@{pin}", self.pins[source][pin]
        elif kind < 0.6:
            revision = self.some(self.past[source])
            held = client.ask("GET", at(source, f"/height?x=0&y=0&at={revision}")).status
            if held == 410:  # not after a restart
                fork(client, name, f"{source}@{revision}", 410)
                return
            text, ground = f"{source}@{revision}", self.past[source][revision]
        answer = fork(client, name, text)
        equal((answer.json["from"], answer.json["from_revision"]), (text, revision), "from")
        self.now[name], self.origin[name] = ground.copy(), (text, revision)
        self.pins[name], self.past[name] = {}, {}
        self.note(client, name)
        self.forks += 1

    def pin(self, client):
        name = self.some(self.now)
        if name:
            pin = self.random.choice("pq")
            check(client.ask("PUT", at(name, f"/pins/{pin}")).status in (200, 201), "a pin")
            self.pins[name][pin] = (self.revision(client, name), self.now[name].copy())

    def unpin(self, client):
        name = self.some([name for name in self.now if self.pins[name]])
        if name:
            pin = self.some(self.pins[name])
            equal(client.ask("DELETE", at(name, f"/pins/{pin}")).status, 204, "DELETE of a pin")
            del self.pins[name][pin]

    def restore(self, client):
        name = self.some([name for name in self.now if self.pins[name]])
        if name:
            pin = self.some(self.pins[name])
            equal(client.ask("POST", at(name, f"/pins/{pin}/restore")).status, 200, "restore")
            self.now[name] = self.pins[name][pin][1].copy()
            self.note(client, name)

    def manifest(self, client):
        name = self.some(self.now)
        if name:
            equal(client.ask("PUT", at(name), {"title": "t", "triangulation": self.random.choice(
                ("anti", "main"))}).status, 200, "PUT of a manifest")
            self.note(client, name)

    def delete(self, client):
        name = self.some(self.now)
        if name:
            equal(client.ask("DELETE", at(name)).status, 204, "DELETE of a locale")
            for of in (self.now, self.pins, self.past, self.origin):
                del of[name]

    def step(self, client):
        kinds = (self.put, self.edit, self.fork, self.pin, self.unpin, self.restore, self.manifest,
                 self.delete)
        self.random.choices(kinds, (2, 10, 6, 3, 1.5, 1.5, 1, 2.5))[0](client)

    def verify(self, client, what):
        listed = [one["id"] for one in client.ask("GET", "/v1/locales").json["locales"]]
        equal(listed, sorted(self.now), f"{what}: the locales")
        for name, ground in self.now.items():
            for value, wanted in [(None, ground), *((pin, kept[1]) for pin, kept in
                                                   self.pins[name].items())]:
                document = client.ask("GET", at(name, f"?at={value}" if value else "")).json
                equal((document.get("from"), document.get("from_revision")),
                      self.origin[name] or (None, None), f"{what}: from of {name} at {value}")
                answer = client.ask("GET", at(name, "/layers/ground/samples"
                                              + (f"?at={value}" if value else "")))
                equal(answer.status, 200, f"{what}: {name} at {value}")
                wanted.compare(from_bytes(answer.body), f"{what}: {name} at {value}, "
                                                        f"from {self.origin[name]}")


@test("parents and forks are their models, whatever is edited, pinned, deleted, restarted or killed")
def _():
    seed = int(os.environ.get("KOTA_FORK_SEED") or rng("forks").randrange(1 << 30))
    print(f"# {ROUNDS} rounds, seed {seed}", flush=True)
    model, random = Model(seed), random_module.Random(seed + 1)
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        data = os.path.join(folder, "data")
        own = restarts(data, model, random, ROUNDS, CHANGES)
        check(model.forks > ROUNDS, f"only {model.forks} forks were made")
        with Client(own.port) as client:
            while model.now:
                model.delete(client)
        own.stop()
        check_is_good(data)
        with sqlite3.connect(os.path.join(data, "kota.db")) as store:
            for table in ("tile", "kept_tile", "layer", "pin", "pin_layer"):
                equal(store.execute(f"SELECT count(*) FROM {table}").fetchone()[0], 0,
                      f"nothing is named any more: rows of {table}")


@test("a fork: what it answers, what it takes over, what is refused")
def _():
    random = rng("fork calls")
    terrain = random_terrain(random, 40, 30, (1.0, 1.0), (0.0, 0.0), ANTI)
    daemon.ok("PUT", at("arena"), {"title": "Arena", "open_sky": False,
                                   "placement": {"translation": [1, 2, 3]}}, status=201)
    put_layer(daemon, "arena", terrain)
    first = daemon.get(at("arena")).json["revision"]
    daemon.ok("PUT", at("arena", "/pins/start"), status=201)
    daemon.ok("POST", at("arena", "/edits"), {"rect": [3, 4, 1, 1], "op": "set", "heights": [77]})
    for name, source, revision, height in (("m1", "arena", first + 1, 77),
                                           ("m2", "arena@start", first, terrain.h[4][3]),
                                           ("m3", f"arena@{first}", first, terrain.h[4][3]),
                                           ("m4", f"arena@{first + 1}", first + 1, 77),
                                           ("m5", "m2", 1, terrain.h[4][3])):
        answer = fork(daemon, name, source)
        equal(answer.headers["location"], at(name), "Location")
        document = daemon.get(at(name)).json
        equal(answer.json, document, "the answer is the locale")
        equal((document["from"], document["from_revision"], document["revision"]),
              (source, revision, 1), name)
        equal((document["title"], document["open_sky"], document["placement"]["translation"]),
              ("Arena", False, [1, 2, 3]), "the manifest")
        equal(daemon.get(at(name, "/height?x=3&y=4&interp=nearest")).json["height"], height, name)
        equal(daemon.get(at(name, "/layers/ground/samples")).headers["etag"],
              daemon.get(at("arena", f"/layers/ground/samples?at={document['from_revision']}"
                            if name != "m5" else f"/layers/ground/samples?at={first}")).headers["etag"],
              "the same samples have the same tag")
        check("from" in next(one for one in daemon.get("/v1/locales").json["locales"]
                             if one["id"] == name), "listed")
    fork(daemon, "m6", "arena", title="Six", placement={"translation": [100, 0, 0]})
    document = daemon.get(at("m6")).json
    equal((document["title"], document["placement"]["translation"]), ("Six", [100, 0, 0]), "its own")
    daemon.ok("PUT", at("m6"), {"title": "Seven"})
    equal(daemon.get(at("m6")).json["from"], "arena", "a PUT of the manifest keeps it")
    check("from" not in daemon.get(at("arena")).json, "the other one is no fork")
    # edits of one are not the other's
    daemon.ok("POST", at("m1", "/edits"), {"rect": [3, 4, 1, 1], "op": "set", "heights": [-5]})
    equal([daemon.get(at(name, "/height?x=3&y=4&interp=nearest")).json["height"]
           for name in ("arena", "m1", "m4")], [77, -5, 77], "heights")
    # a key makes it once
    for is_repeat in (False, True):
        answer = daemon.ask("POST", "/v1/locales", {"id": "once", "from": "arena"},
                            {"Idempotency-Key": "fork-once"})
        equal(answer.status, 201, f"{answer}")
        equal(answer.headers.get("idempotency-replayed"), "true" if is_repeat else None, "a repeat")
    for body, status, pointer in (
            ({"id": "m1", "from": "arena"}, 409, "/id"), ({"id": "x"}, 400, "/from"),
            ({"from": "arena"}, 400, "/id"), ({"id": "a b", "from": "arena"}, 400, "/id"),
            ({"id": 7, "from": "arena"}, 400, "/id"), ({"id": "x", "from": "a b"}, 400, "/from"),
            ({"id": "x", "from": "arena@"}, 400, "/from"), ({"id": "x", "from": "@start"}, 400, "/from"),
            ({"id": "x", "from": "arena@start@start"}, 400, "/from"), ({"id": "x", "from": 1}, 400, "/from"),
            ({"id": "x", "from": "arena@0"}, 400, "/from"), ({"id": "x", "from": "y" * 65}, 400, "/from"),
            ({"id": "x", "from": "nowhere"}, 404, "/from"), ({"id": "x", "from": "arena@none"}, 404, "/from"),
            ({"id": "x", "from": "arena@999"}, 410, "/from"),
            ({"id": "x", "from": "arena", "title": 5}, 400, "/title"),
            ({"id": "x", "from": "arena", "placement": {"rotation": [2, 0, 0, 0]}}, 422, "/placement/rotation"),
            ({"id": "x", "from": "arena", "gravity": [0, 0, -1]}, 400, "/gravity")):
        problem(daemon.ask("POST", "/v1/locales", body), status, pointer=pointer)
    equal(daemon.get(at("x")).status, 404, "nothing was made")
    # the other one goes, and comes again as a fork of its fork
    daemon.ok("DELETE", at("arena"), status=204)
    equal(daemon.get(at("m2", "/height?x=3&y=4&interp=nearest")).json["height"], terrain.h[4][3],
          "without the other one")
    fork(daemon, "arena", "m1")
    equal(daemon.get(at("arena", "/height?x=3&y=4&interp=nearest")).json["height"], -5, "again")


@test("memory: what forks, their pins and their earlier revisions share is counted once")
def _():
    with Daemon() as own:
        own.ok("PUT", at("a"), {}, status=201)
        put_layer(own, "a", random_terrain(rng("fork memory"), 257, 257, (1.0, 1.0), (0.0, 0.0), ANTI))
        tile = own.get("/v1/stats").json["world"]["memory_bytes"]
        for count in range(1, 6):
            name = f"m{count}"
            fork(own, name, "a")
            own.ok("PUT", at(name, "/pins/p"), status=201)
            own.ok("POST", at(name, "/edits"), {"rect": [3, 4, 1, 1], "op": "set", "heights": [count]})
            world = own.get("/v1/stats").json["world"]
            # of an edit of one sample a quarter of a tile, and the bounds of all of it
            check(0.3 < (world["memory_bytes"] / tile - 1) / count < 0.4, f"{count} forks: {world}")
            check(world["earlier_bytes"] < tile / 2, f"the locales themselves hold all of it: {world}")


@test("meshes and poses are taken over, and each lives by itself after a restart")
def _():
    random = rng("fork meshes")
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        data = os.path.join(folder, "data")
        own = stored(data)
        with Client(own.port) as client:
            client.ask("PUT", at("a"), {})
            client.ask("PUT", at("a", "/layers/roof"), obj(random_soup(random, 200)), media="model/obj")
            client.ask("PUT", at("a", "/layers/bridge"), obj(random_soup(random, 30)), media="model/obj")
            client.ask("PUT", at("a", "/layers/bridge/transform"), {"translation": [3, 2, 1]})
            body = {"polygons": random_soup(random, 5), "remove": [1, 2, 3]}
            equal(client.ask("POST", at("a", "/layers/roof/polygons"), body).status, 200, "polygons")
            fork(client, "b", "a")
            client.ask("PUT", at("a", "/pins/p"))
            client.ask("PUT", at("b", "/layers/bridge/transform"), {"translation": [9, 9, 9]})
            client.ask("POST", at("b", "/layers/roof/polygons"), {"polygons": [], "remove": [7]})
            fork(client, "c", "a@p")
            client.ask("DELETE", at("a", "/layers/roof"))

            def seen():
                return {name: {layer["id"]: (client.ask("GET", at(name, f"/layers/{layer['id']}")).body,
                                             layer.get("transform", {}).get("translation"))
                               for layer in client.ask("GET", at(name)).json["layers"]}
                        for name in "abc"}
            before = seen()
            equal([before[name]["bridge"][1] for name in "abc"], [[3, 2, 1], [9, 9, 9], [3, 2, 1]], "poses")
            check(before["b"]["roof"] != before["c"]["roof"], "an edit of a fork is its own")
        wait_for_poses(own, data)
        cut_off(own)
        check_is_good(data)
        own = stored(data)
        with Client(own.port) as client:
            equal(seen(), before, "after kill -9")
        own.stop()
        check_is_good(data)


@test("a fork that is made, deleted and made again, all within one commit")
def within_a_commit():
    def work(client, number):
        for step in range(100):
            if (step + number) % 2:
                seen.add(client.ask("DELETE", "/v1/locales/brief").status)
            else:
                seen.add(client.ask("POST", "/v1/locales", {"id": "brief", "from": "moved"}).status)

    seen = set()
    daemon.ok("PUT", "/v1/locales/moved", {}, status=201)
    daemon.ask("PUT", "/v1/locales/moved/layers/deck", obj(random_soup(random_module.Random(8), 8)), media="model/obj")
    daemon.ok("PUT", "/v1/locales/moved/layers/deck/transform", {"translation": [1, 2, 3]})
    threads = [threading.Thread(target=work, args=(Client(daemon.port), i)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(seen, {201, 204, 404, 409}, "answers")


@test("--check finds flipped bytes of a fork's rows, and names a base that is gone")
def _():
    random = rng("fork flipped")
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        data = os.path.join(folder, "data")
        own = stored(data)
        with Client(own.port) as client:
            ground = hills(random, 300, 270)
            client.ask("PUT", at("a"), {})
            client.ask("PUT", at("a", f"/layers/ground?{ground.query()}"), ground.body(), media=F32)
            fork(client, "b", "a")
            client.edit(random_edit(random, ground, 200, shapes=()), "a", "ground", binary=True)
        own.stop()
        check_is_good(data)
        path = os.path.join(data, "kota.db")
        for table, column, where in (("layer", "base_rev", "locale = 'b'"), ("layer", "since", "locale = 'b'"),
                                     ("locale", "origin", "id = 'b'"), ("kept_tile", "rev", "1"),
                                     ("pin_layer", "since", "pin LIKE '/%'")):
            with sqlite3.connect(path) as store:
                count, old = store.execute(f"SELECT count(*), {column} FROM {table} WHERE {where}").fetchone()
                check(count >= 1, f"{table} has a row of the fork")
                store.execute(f"UPDATE {table} SET {column} = ifnull({column}, 0) + 1 WHERE {where}")
            check(run_check(data)[0] != 0, f"{table}.{column} was changed, and --check is content")
            with sqlite3.connect(path) as store:
                store.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (old,))
            check_is_good(data)
        with sqlite3.connect(path) as store:
            store.execute("DELETE FROM kept_tile")
        check("locale b" in run_check(data)[1], "the fork is named")


run(daemon.stop)
