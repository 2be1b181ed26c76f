"""Pins and earlier revisions: PUT, GET, DELETE, at=, restore; against what was answered at the time."""
import concurrent.futures
import json
import os
import random as random_module
import sqlite3
import tempfile
import threading
import urllib.parse

from changes import World, differences, questions, wait_for_poses, without_moves
from daemon import F32, Daemon, problem
from fields import put_layer, put_locale
from ground import Client, Ground, Stream, check_is_good, damage, from_bytes, hills, random_edit, restarts, run_check, stored
from oracle import ANTI, random_terrain
from tap import check, equal, fail, rng, run, test

daemon = Daemon()

ROUNDS = int(os.environ.get("KOTA_PIN_ROUNDS", "4"))
CHANGES = int(os.environ.get("KOTA_PIN_CHANGES", "40"))


def at(name, what=""):
    return f"/v1/locales/{name}{what}"


def earlier(target, value):
    return f"{target}{'&' if '?' in target else '?'}at={value}"


def portrait(client, locale, value=None):
    """question -> (status, ETag, revision, body); of an earlier value where one is named."""
    random, seen = random_module.Random(locale), {}
    target = at(locale)
    document = client.ask("GET", earlier(target, value) if value else target).json
    for method, target, body in questions(random, document):
        if "/diff" in target:
            continue
        answer = client.ask(method, earlier(target, value) if value else target, body)
        check(answer.status < 500, f"{method} {target} at {value}: {answer}")
        seen[f"{method} {target}"] = {
            "status": answer.status, "etag": answer.headers.get("etag"),
            "revision": answer.headers.get("kota-revision"),
            "body": answer.json if "json" in answer.media_type else answer.body.hex()}
    return seen


def forget_motion(seen):
    """A layer that was moved lately has a velocity, which an earlier value has not."""
    if isinstance(seen, dict):
        return {name: forget_motion(seen[name]) for name in seen if "velocity" not in name}
    return [forget_motion(one) for one in seen] if isinstance(seen, list) else seen


def must_agree(before, after, what):
    found = list(differences(forget_motion(without_moves(before)),
                             forget_motion(without_moves(after))))
    if found:
        fail(f"{what}: {len(found)} answers differ: " + "; ".join(found[:6]))


class Pinned(World):
    """A world whose locales are pinned, restored and unpinned, too; with what was answered then."""

    def __init__(self, seed):
        super().__init__(seed)
        self.pins = {}  # (locale, name) -> (portrait, layers then)

    def drop_locale(self, client):
        gone = set(self.locales)
        super().drop_locale(client)
        for locale in gone - set(self.locales):
            self.pins = {key: kept for key, kept in self.pins.items() if key[0] != locale}

    def step(self, client):
        kind = self.random.random()
        if kind < 0.15 and self.locales:
            locale, name = self.random.choice(list(self.locales)), self.random.choice("pqrs")
            revision = client.ask("GET", at(locale)).json["revision"]
            answer = client.ask("PUT", at(locale, f"/pins/{name}"))
            equal(answer.status, 200 if (locale, name) in self.pins else 201, "PUT of a pin")
            equal(answer.json["revision"], revision, "the pin's revision")
            layers = {id: layer.copy() if isinstance(layer, Ground) else layer
                      for id, layer in self.locales[locale].items()}
            self.pins[locale, name] = portrait(client, locale), layers
        elif kind < 0.2 and self.pins:
            locale, name = self.random.choice(list(self.pins))
            equal(client.ask("DELETE", at(locale, f"/pins/{name}")).status, 204, "DELETE of a pin")
            del self.pins[locale, name]
        elif kind < 0.28 and self.pins:
            locale, name = self.random.choice(list(self.pins))
            before = client.ask("GET", at(locale)).json["revision"]
            answer = client.ask("POST", at(locale, f"/pins/{name}/restore"))
            equal(answer.status, 200, f"restore: {answer}")
            equal(answer.json["revision"], before + 1, "a restore is one revision")
            self.locales[locale] = {id: layer.copy() if isinstance(layer, Ground) else layer
                                    for id, layer in self.pins[locale, name][1].items()}
        else:
            self.change(client)

    def verify(self, client, what):
        for (locale, name), (seen, _) in self.pins.items():
            must_agree(seen, portrait(client, locale, name), f"{what}: {locale} at={name}")
        for locale in self.locales:
            listed = client.ask("GET", at(locale, "/pins")).json["pins"]
            equal([pin["name"] for pin in listed],
                  sorted(name for other, name in self.pins if other == locale), "the list of pins")


@test("whatever is changed, restarted or killed, a pin answers what was answered when it was made")
def _():
    seed = rng("pins").randrange(1 << 30)
    print(f"# {ROUNDS} rounds, seed {seed}", flush=True)
    world, random = Pinned(seed), random_module.Random(seed + 1)
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        data = os.path.join(folder, "data")
        restarts(data, world, random, ROUNDS, CHANGES, wait_for_poses).stop()
        check_is_good(data)


@test("a pin: made, replaced, listed, read, deleted; no revision is counted")
def _():
    random = rng("pin calls")
    terrain = random_terrain(random, 40, 30, (1.0, 1.0), (0.0, 0.0), ANTI)
    put_locale(daemon, "calls")
    put_layer(daemon, "calls", terrain)
    revision = daemon.get(at("calls")).json["revision"]
    answer = daemon.put(at("calls", "/pins/start"), None)
    equal(answer.status, 201, "PUT")
    equal(answer.headers["location"], at("calls", "/pins/start"), "Location")
    equal({name: answer.json[name] for name in ("locale", "name", "revision")},
          {"locale": "calls", "name": "start", "revision": revision}, "a pin")
    equal(daemon.get(at("calls")).json["revision"], revision, "the locale's revision")
    daemon.ok("POST", at("calls", "/edits"), {"rect": [3, 4, 1, 1], "op": "set", "heights": [77]})
    equal(daemon.get(at("calls", "/pins/start")).json["revision"], revision, "revision")
    equal(daemon.get(at("calls", "/height?x=3&y=4&interp=nearest")).json["height"], 77, "now")
    for value in ("start", revision):
        answer = daemon.get(at("calls", f"/height?x=3&y=4&interp=nearest&at={value}"))
        equal(answer.json["height"], terrain.h[4][3], f"at={value}")
        equal(answer.json["revision"], revision, "an answer at=R names R")
        equal(answer.headers["kota-revision"], str(revision), "and its header")
    # conditions
    answer = daemon.ask("PUT", at("calls", "/pins/start"), None, {"If-None-Match": "*"})
    problem(answer, 412, "pin")
    answer = daemon.ask("PUT", at("calls", "/pins/other"), None, {"If-None-Match": "*"})
    equal(answer.status, 201, "a new one")
    answer = daemon.ask("PUT", at("calls", "/pins/other"), None, {"If-Match": f'"{revision}"'})
    problem(answer, 412)
    equal(daemon.put(at("calls", "/pins/start"), None).status, 200, "replaced")
    equal(daemon.get(at("calls", "/pins/start")).json["revision"], revision + 1, "replaced")
    equal([(p["name"], p["revision"]) for p in daemon.get(at("calls", "/pins")).json["pins"]],
          [("other", revision + 1), ("start", revision + 1)], "the list")
    equal(daemon.ask("DELETE", at("calls", "/pins/start")).status, 204, "DELETE")
    for method, target in (("GET", "/pins/start"), ("DELETE", "/pins/start"),
                           ("POST", "/pins/start/restore"), ("GET", "/height?x=1&y=1&at=start")):
        problem(daemon.ask(method, at("calls", target)), 404, "pin")
    daemon.ok("DELETE", at("calls"), status=204)


@test("what is not held, unknown or contradictory is refused")
def _():
    put_locale(daemon, "refused")
    put_layer(daemon, "refused", random_terrain(rng("refused"), 9, 7, (1.0, 1.0), (0.0, 0.0), ANTI))
    revision = daemon.get(at("refused")).json["revision"]
    for value in (revision + 1, 10 ** 15, 0):
        problem(daemon.get(at("refused", f"/height?x=1&y=1&at={value}")), 410, pointer="at")
    problem(daemon.get(at("refused", "/height?x=1&y=1&at=none")), 404, pointer="at")
    for value in ("", "a/b", "a b", "x" * 65, "1" * 30):
        problem(daemon.get(at("refused", "/height?x=1&y=1&at=" + urllib.parse.quote(value, safe=""))),
                400, pointer="at")
    for live in ("true", "here"):
        problem(daemon.get(at("refused", f"/height?x=1&y=1&at={revision}&live={live}")), 400,
                pointer="at")
    problem(daemon.get(at("refused", f"/height?x=1&y=1&at={revision}&at={revision}")), 400)
    edit = {"rect": [1, 1, 1, 1], "op": "set", "heights": [1]}
    for method, target, body in (
            ("POST", "/edits", edit), ("PUT", "", {}), ("DELETE", "", None), ("PUT", "/pins/a", None),
            ("DELETE", "/layers/ground", None), ("POST", "/pins/a/restore", None),
            ("GET", "/events", None), ("GET", "/pins", None), ("GET", "/patches", None),
            ("PUT", "/layers/x/transform", {"translation": [0, 0, 0]})):
        answer = daemon.ask(method, earlier(at("refused", target), revision), body)
        problem(answer, 400, pointer="at")
    equal(daemon.get(at("refused")).json["revision"], revision, "nothing was written")
    for name in ("7", "a.b", "x" * 65):
        problem(daemon.put(at("refused", f"/pins/{name}"), None), 400, pointer="pin")
    problem(daemon.put(at("nowhere", "/pins/a"), None), 404)
    most = daemon.get("/v1/limits").json["pins_max"]
    for i in range(most):
        daemon.ok("PUT", at("refused", f"/pins/p{i}"), status=201)
    problem(daemon.put(at("refused", "/pins/one-more"), None), 413, limit=most, got=most + 1)
    daemon.ok("PUT", at("refused", "/pins/p0"), status=200)
    daemon.ok("DELETE", at("refused"), status=204)


@test("each of the last 64 revisions answers as its model, while edits go on")
def _():
    random = rng("past")
    ground = hills(random, 300, 270, (1.0, 1.0), (0.0, 0.0), 0.01)
    daemon.ok("PUT", at("past"), {}, status=201)
    daemon.ok("PUT", at("past", f"/layers/ground?{ground.query()}"), ground.body(), status=201,
              media=F32)
    first = daemon.get(at("past")).json["revision"]
    models, lock, asked = {first: ground.copy()}, threading.Lock(), [0]
    over = threading.Event()

    def read(number):
        own = random_module.Random(number)
        with Client(daemon.port) as client:
            while not over.is_set():
                with lock:
                    revision = own.choice(sorted(models)[-60:])
                    model = models[revision]
                cells = [(own.randrange(300), own.randrange(270)) for _ in range(200)]
                answer = client.ask("POST", at("past", f"/height?at={revision}&interp=nearest"),
                                    {"points": [[float(c), float(r)] for c, r in cells]})
                if answer.status == 410:  # as many edits have come since
                    continue
                equal(answer.json["revision"], revision, "revision")
                for (c, r), got in zip(cells, answer.json["results"]):
                    want, got = model.h[r * 300 + c], got["height"]
                    check(got == want or got is None and want != want,
                          f"at={revision}: sample ({c},{r}) is {got}, not {want}")
                asked[0] += len(cells)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read, i) for i in range(2)]
        try:
            with Client(daemon.port) as client:
                for i in range(200):
                    edit = random_edit(random, ground, 40, shapes=(), holes=0.02)
                    answer = client.edit(edit, "past", "ground", binary=True)
                    equal(answer.status, 200, "an edit")
                    ground.apply(edit)
                    with lock:
                        models[first + i + 1] = ground.copy()
        finally:
            over.set()
        for reader in readers:
            reader.result()
    check(asked[0] > 1000, f"only {asked[0]} answers were compared")
    last = max(models)
    for revision in range(last - 64, last + 1):
        answer = daemon.get(at("past", f"/layers/ground/samples?at={revision}"))
        equal(answer.status, 200, f"at={revision}")
        models[revision].compare(from_bytes(answer.body), f"at={revision}")
    problem(daemon.get(at("past", f"/layers/ground/samples?at={last - 65}")), 410, pointer="at")
    daemon.ok("DELETE", at("past"), status=204)


@test("a restore is one change: its event, its key, its conditions; a window of it is the pin's")
def _():
    random = rng("restore")
    terrain = random_terrain(random, 300, 20, (1.0, 1.0), (0.0, 0.0), ANTI, 0.02)
    put_locale(daemon, "back")
    put_layer(daemon, "back", terrain)
    daemon.ok("PUT", at("back", "/pins/start"), status=201)
    first = daemon.get(at("back")).json["revision"]
    tag = daemon.get(at("back", "/layers/ground/samples")).headers["etag"]
    for c, r in ((7, 3), (280, 15)):
        daemon.ok("POST", at("back", "/edits"), {"rect": [c, r, 1, 1], "op": "set",
                                                 "heights": [5000]})
    answer = daemon.ask("POST", at("back", "/pins/start/restore"), None, {"If-Match": f'"{first}"'})
    problem(answer, 412)
    headers = {"Idempotency-Key": "once", "If-Match": f'"{first + 2}"'}
    for is_repeat in (False, True):
        answer = daemon.ask("POST", at("back", "/pins/start/restore"), None, headers)
        equal(answer.status, 200, f"restore: {answer}")
        equal(answer.json["revision"], first + 3, "revision")
        equal(answer.headers.get("idempotency-replayed"), "true" if is_repeat else None, "a repeat")
    equal(daemon.get(at("back")).json["revision"], first + 3, "made once")
    equal(daemon.get(at("back", "/layers/ground/samples")).headers["etag"], tag,
          "the same samples have the same tag")
    stream = Stream(daemon.port, at("back", "/events"), first)
    try:
        got = stream.wait(lambda got: any(e[0] and int(e[0]) >= first + 3 for e in got), "the events")
    finally:
        stream.close()
    event = next(e for e in got if e[0] == str(first + 3))
    text = json.dumps(event)
    check("restore" in text and "[7, 3, 274, 13]" in text.replace('\\', ''), f"the event: {event}")
    equal(daemon.get(at("back", f"/diff?since={first + 2}")).json["rects"], [[7, 3, 274, 13]], "diff")
    # a layer that came is a resync
    put_layer(daemon, "back", terrain, "more")
    stream = Stream(daemon.port, at("back", "/events"), first + 4)
    try:
        daemon.ok("POST", at("back", "/pins/start/restore"))
        got = stream.wait(lambda got: any(e[0] == str(first + 5) for e in got), "the resync")
    finally:
        stream.close()
    equal([e[1] for e in got if e[0] == str(first + 5)], ["resync"], "its event")
    equal([layer["id"] for layer in daemon.get(at("back")).json["layers"]], ["ground"], "layers")
    problem(daemon.get(at("back", f"/diff?since={first + 4}")), 410)
    daemon.ok("DELETE", at("back"), status=204)


@test("--check finds flipped bytes of a pin's rows; a pin whose tile is gone is named")
def _():
    random = rng("flipped")
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        data = os.path.join(folder, "data")
        own = stored(data)
        ground = hills(random, 300, 270, (1.0, 1.0), (0.0, 0.0), 0)
        own.ok("PUT", at("a"), {}, status=201)
        own.ok("PUT", at("a", f"/layers/ground?{ground.query()}"), ground.body(), status=201,
               media=F32)
        for name in "pq":
            own.ok("PUT", at("a", f"/pins/{name}"), status=201)
            own.ok("POST", at("a", "/edits"), {"rect": [2, 2, 1, 1], "op": "add", "heights": [1]})
        own.stop()
        check_is_good(data)
        path = os.path.join(data, "kota.db")
        with open(path, "rb") as file:
            intact = file.read()
        kept = sqlite3.connect(path)
        kept_count = kept.execute("SELECT count(*) FROM kept_tile").fetchone()[0]
        kept.close()
        check(kept_count >= 1, "a pin keeps the tile that was edited")
        for sql in ("UPDATE pin SET rev = rev - 1 WHERE name = 'p'", "DELETE FROM pin_layer",
                    "DELETE FROM pin WHERE name = 'q'", "DELETE FROM kept_tile",
                    "UPDATE kept_tile SET data = zeroblob(length(data))",
                    "UPDATE kept_tile SET rev = 9 WHERE rev = 3", "UPDATE pin_layer SET rows = rows - 1",
                    "UPDATE pinned SET pins = 1"):
            damage(path, intact, sql)
            check_is_bad(data, sql)



def check_is_bad(data, what):
    status, text = run_check(data)
    check(status != 0 and "locale a" in text or "pins" in text or "kept_tile" in text,
          f"--check after {what}: {status}, {text}")


if __name__ == "__main__":
    run()
