#!/usr/bin/env python3
"""Pins, forks, history and reverts where daemons share a log in a real PostgreSQL: what is made on one node is
on the others, to the bit, on one that joins later, and after a kill -9.
"""
import array
import os
import random as random_module
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "cluster"))
from daemon import F32
from ground import CUT, check_is_good
from mesh_oracle import obj, rectangle
from nodes import Node, wait_until
from postgres import Server
from tap import ALL, check, equal, rng, run, test, wait_for

SIDE = 300  # four tiles
engine = Server().__enter__()
random = rng("cluster past")
folder = tempfile.TemporaryDirectory(prefix="kota-test-")
TOKENS = os.path.join(folder.name, "tokens")
with open(TOKENS, "w", encoding="ascii") as file:
    file.writelines(f"edit token-of-{name} name={name}\n" for name in ("ann", "bob"))
os.chmod(TOKENS, 0o600)


def node(name, *args):
    return Node(engine.conninfo(), name, "--gpu", "off", "--token-file", TOKENS, *args).start()


def ask(on, method, path, body=None, by="ann", **named):
    headers = {"Authorization": f"Bearer token-of-{by}", **named.pop("headers", {})}
    return on.daemon.ask(method, f"/v1/locales/{path}".rstrip("/"), body, headers=headers, **named)


def ok(on, method, path, body=None, status=200, **named):
    allowed = status if isinstance(status, tuple) else (status,)

    def is_ready():
        """None while the node takes the locale from the log."""
        answer = ask(on, method, path, body, **named)
        return None if answer.status == 503 and answer.json.get("code") == "not_ready" else answer

    answer = wait_for(f"{on.name}: {method} {path}", is_ready)
    check(answer.status in allowed, f"{on.name}: {method} {path}: {answer}")
    return answer.json if answer.body else None


def edit(on, rect, heights, locale="land", by="ann", note="", **named):
    body = {"rect": rect, "op": "set", "heights": heights}
    return ok(on, "POST", f"{locale}/edits" + (f"?note={note}" if note else ""), body, by=by, **named)


def pins(on, locale="land"):
    return [(pin["name"], pin["revision"]) for pin in ok(on, "GET", f"{locale}/pins")["pins"]]


def samples(on, at="", locale="land"):
    answer = ask(on, "GET", f"{locale}/layers/ground/samples" + (f"?at={at}" if at else ""))
    check(answer.status == 200, f"{on.name}: samples at {at}: {answer}")
    return answer.body, answer.headers["kota-revision"]


def document(on, at="", locale="land"):
    """The locale without what each node counts by itself."""
    told = ok(on, "GET", locale + (f"?at={at}" if at else ""))
    for key in ("staleness_s", "transform_seq", "memory_bytes"):
        told.pop(key, None)
    for layer in told["layers"]:
        layer.pop("transform_seq", None)
        layer.pop("memory_bytes", None)
        (layer.get("transform") or {}).pop("transform_seq", None)
    return told


def history(on, locale="land"):
    held_since, entries, page = None, [], f"/v1/locales/{locale}/history?limit=1000"
    while page:
        told = on.daemon.ok("GET", page)
        held_since = told["held_since"] if held_since is None else held_since
        entries += told["history"]
        page = told["next"]
    return held_since, entries


def folder_bytes(on):
    return sum(os.path.getsize(os.path.join(folder, name))
               for folder, _, names in os.walk(on.data) for name in names)


def catch_up(on, other, locale="land"):
    wait_until(lambda: ok(on, "GET", locale)["revision"] == ok(other, "GET", locale)["revision"] and
               pins(on, locale) == pins(other, locale), f"{on.name} is as {other.name}")


def same(one, other, locale="land"):
    catch_up(one, other, locale)
    wait_until(lambda: document(one, locale=locale) == document(other, locale=locale),
               "the locale, with poses that are on their way")
    equal(samples(one, locale=locale), samples(other, locale=locale), "its samples")
    for name, revision in pins(one, locale):
        equal(document(one, name, locale), document(other, name, locale), f"the locale at {name}")
        equal(samples(one, name, locale), samples(other, name, locale), f"samples at {name}")
        equal(samples(one, name, locale)[1], str(revision), "at= names the pin's revision")
    equal(history(one, locale), history(other, locale), "held_since and the history")


def put_land(on, locale="land"):
    ok(on, "PUT", locale, {}, status=201)
    heights = array.array("f", (i % 97 / 7 for i in range(SIDE * SIDE)))
    ok(on, "PUT", f"{locale}/layers/ground?cols={SIDE}&rows={SIDE}&spacing=1,1", heights.tobytes(),
       status=201, media=F32)
    ok(on, "PUT", f"{locale}/layers/roof?role=ceiling", obj([rectangle(1, 1, 9, 9, 20)]),
       status=201, media="model/obj")


EVERY = ("--snapshot-every", "40", "--keep-entries", "20")
a, b = node("a", *EVERY), node("b", *EVERY)
put_land(a)
wait_until(lambda: ask(b, "GET", "land").status == 200 and len(document(b)["layers"]) == 2, "b has it")


@test("pins of one node are on the other: listed, read with at=, replaced, deleted, restored")
def _():
    before = samples(a)
    told = ok(a, "PUT", "land/pins/start", status=201)
    equal((told["name"], told["revision"]), ("start", 3), "a pin counts no revision")
    ok(a, "PUT", "land/layers/roof/transform", {"translation": [5, 0, 0], "yaw_deg": 30})
    ok(a, "PUT", "land/pins/moved", status=201)
    edit(a, [250, 250, 10, 1], list(range(10)))  # all four tiles
    ok(a, "PUT", "land/pins/later", status=201)
    catch_up(b, a)
    equal(pins(b), [("later", 4), ("moved", 3), ("start", 3)], "the list")
    equal(samples(b, "start"), before, "samples at the pin")
    same(b, a)
    check("transform" not in {layer["id"]: layer for layer in document(b, "start")["layers"]}["roof"],
          "a pin has the poses of its moment")
    equal(ok(b, "POST", "land/pins/start/restore")["revision"], 5, "a restore is a revision")
    equal(samples(b)[0], before[0], "restored")
    same(a, b)
    ok(b, "PUT", "land/pins/start")  # replaced
    wait_until(lambda: ("start", 5) in pins(a), "a has the new one")
    equal(ask(a, "DELETE", "land/pins/later").status, 204, "deleted")
    wait_until(lambda: ask(b, "GET", "land/pins/later").status == 404, "gone")
    same(a, b)


@test("refusals are of the log's state: conditions, pins that are not there, numbers as names")
def _():
    ok(a, "PUT", "land/pins/once", status=201)
    equal(ask(b, "PUT", "land/pins/once", headers={"If-None-Match": "*"}).status, 412, "it is there")
    equal(ask(b, "DELETE", "land/pins/once").status, 204, "deleted where it may not be yet")
    equal(ask(a, "DELETE", "land/pins/once").status, 404, "deleted on the other node")
    answer = ask(a, "POST", "land/pins/never/restore")
    equal((answer.status, answer.json["code"]), (404, "pin_unknown"), "restored")
    equal(ask(a, "PUT", "land/pins/12").status, 400, "a number")
    equal(ask(b, "GET", "land?at=1000").status, 410, "a revision that is not held")


@test("two nodes pin one name at once, and a deletion races with a pin: one order")
def _():
    told = []

    def work(on, number):
        own = on.client()
        own.headers = {"Authorization": "Bearer token-of-ann"}
        for i in range(12):
            what = (number + i) % 3
            headers = {"Authorization": "Bearer token-of-ann"}
            if what == 0:
                headers["If-None-Match"] = "*"
            method = "DELETE" if what == 2 else "PUT"
            told.append((method, own.ask(method, "/v1/locales/land/pins/race", headers=headers).status))
        own.close()
    threads = [threading.Thread(target=work, args=(on, i)) for i, on in enumerate((a, b, a, b))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check({status for _, status in told} <= {200, 201, 204, 404, 412}, f"answers: {told}")
    made = sum(status == 201 for _, status in told)
    gone = sum(status == 204 for _, status in told)
    catch_up(a, b)
    check(made - gone == ("race" in dict(pins(a))), f"{made} made, {gone} deleted, {pins(a)}")
    same(a, b)


@test("history is the same on both nodes; a revert on one takes back what was made on both")
def _():
    base = array.array("f", samples(a)[0])
    for i in range(20):
        on, by = random.choice((a, b)), random.choice(("ann", "bob"))
        column, row = random.randrange(SIDE - 3), 2 * i + 40 * (by == "bob")
        heights = [random.randrange(100) for _ in range(3)]
        edit(on, [column, row, 3, 1], heights, by=by, note=f"hole-{i}")
        if by == "bob":
            base[row * SIDE + column:row * SIDE + column + 3] = array.array("f", heights)
    ok(b, "POST", "land/edits", {"brush": {"shape": "crater", "center": [200, 200], "radius": 9,
                                           "amount": 5}})
    same(a, b)
    rows = history(a)[1]
    equal({row["note"] for row in rows if row["note"]}, {f"hole-{i}" for i in range(20)}, "notes")
    told = ok(b, "POST", "land/revert", {"author": "ann", "since": 5, "layer": "ground"}, by="bob",
              headers={"Idempotency-Key": "back"})
    equal(told["conflicts"], [], "conflicts")
    equal(samples(b)[0], base.tobytes(), "a replay without ann's edits")
    same(a, b)
    again = ok(a, "POST", "land/revert", {"author": "ann", "since": 5, "layer": "ground"}, by="bob",
               headers={"Idempotency-Key": "back"})
    equal(again, told, "the same answer under its key, from the other node")
    told = ok(a, "POST", "land/revert", {"since": told["revision"] - 1, "layer": "ground"})
    same(b, a)
    rows = history(b)[1]
    equal((rows[-1]["source"], rows[-1]["revision"]), ("revert", told["revision"]), "its row")


@test("a third node that joins later, and one that was away, have the same pins")
def _():
    same(b, a)
    ground, start = samples(a)[0], ok(a, "GET", "land")["revision"]
    for i in range(90):
        edit(random.choice((a, b)), [i, 10, 2, 2], [i, 1, 2, 3])
        if i % 30 == 0:
            ok(a, "PUT", f"land/pins/p{i}", status=201)
    wait_until(lambda: a.stats()["snapshots_made"] + b.stats()["snapshots_made"] > 0, "a snapshot")
    catch_up(b, a)
    with node("c") as c:
        wait_until(lambda: ask(c, "GET", "land").status == 200, "c has the locale")
        same(c, a)
        check(c.stats()["snapshots_taken"] > 0, "c took a snapshot")
        shared = [on.daemon.ask("GET", "/v1/locales/land", headers={
            "Authorization": "Bearer token-of-ann"}).json["memory_bytes"] for on in (a, c)]
        equal(shared[1], shared[0], "memory")
        c.daemon.stop()
        c.start()
        same(c, a)
        told = ok(c, "POST", "land/revert", {"to_revision": start, "layer": "ground"})
        equal((told["conflicts"], samples(c)[0] == ground), ([], True),
              "reverted by the rows that came with the snapshot")
        same(a, c)
        edit(c, [1, 1, 1, 1], [77])
        equal(ok(c, "POST", "land/pins/p30/restore")["revision"], ok(c, "GET", "land")["revision"],
              "restored where it came by a snapshot")
        same(a, c)
        same(b, a)
    b.daemon.stop()
    ok(a, "PUT", "land/pins/alone", status=201)
    ok(a, "POST", "land/pins/start/restore")
    b.start()
    same(b, a)


def all_locales(on):
    answer = on.daemon.ask("GET", "/v1/locales?limit=1000",
                           headers={"Authorization": "Bearer token-of-ann"})
    return [locale["id"] for locale in answer.json["locales"]]


def memory(on):
    return on.daemon.ask("GET", "/v1/stats", headers={
        "Authorization": "Bearer token-of-ann"}).json["world"]["memory_bytes"]


def fork(on, name, of, **named):
    headers = named.pop("headers", {})
    return ok(on, "POST", "", {"id": name, "from": of, **named}, status=201, headers=headers)


@test("a fork of a pin, of a revision, of a fork: the same on each node, and on one that joins")
def _():
    ok(a, "PUT", "arena", {}, status=201)
    ok(a, "PUT", f"arena/layers/ground?cols={SIDE}&rows={SIDE}&spacing=1,1",
       bytes(4 * SIDE * SIDE), status=201, media=F32)
    ok(a, "PUT", "arena/layers/roof?role=ceiling", obj([rectangle(1, 1, 9, 9, 20)]), status=201,
       media="model/obj")
    ok(a, "PUT", "arena/layers/roof/transform", {"translation": [7, 0, 0]})
    edit(a, [1, 1, 1, 1], [5], "arena")
    ok(a, "PUT", "arena/pins/start", status=201)
    edit(b, [280, 280, 1, 1], [6], "arena")
    told = fork(b, "z-match", "arena@start", title="Match", headers={"Idempotency-Key": "match"})
    equal((told["revision"], told["from"], told["from_revision"]), (1, "arena@start", 4), "a fork")
    again = fork(a, "z-match", "arena@start", title="Match", headers={"Idempotency-Key": "match"})
    equal(again, told, "the same answer under its key, from the other node")
    fork(a, "a-match", "arena")  # of what b has acknowledged
    equal(samples(a, locale="a-match")[0], samples(b, locale="arena")[0], "the ground")
    edit(b, [3, 3, 1, 1], [9], "a-match")
    fork(b, "b-match", "a-match@1")
    ok(a, "PUT", "b-match/pins/own", status=201)
    edit(a, [4, 4, 1, 1], [11], "b-match")
    ok(a, "DELETE", "arena/pins/start", status=204)
    for name in ("arena", "a-match", "b-match", "z-match"):
        same(a, b, name)
    equal(ask(b, "POST", "", {"id": "a-match", "from": "arena"}).status, 409, "it is there")
    answer = ask(b, "POST", "", {"id": "x", "from": "arena@start"})
    equal((answer.status, answer.json["code"]), (404, "pin_unknown"), "a pin that the other removed")
    equal(ask(b, "POST", "", {"id": "x", "from": "nowhere"}).status, 404, "of nothing")
    equal(ask(a, "POST", "", {"id": "x", "from": "arena@2000"}).status, 410, "of no revision")
    with node("d") as d:
        for name in ("arena", "a-match", "b-match", "z-match"):
            same(d, a, name)


@test("many forks share the ground, in memory and on the disk, also where they came by snapshots")
def _():
    side, count = (1024, 40) if ALL else (800, 12)
    others, others_on_disk = memory(a), folder_bytes(a)
    ok(a, "PUT", "y-big", {}, status=201)
    ok(a, "PUT", f"y-big/layers/ground?cols={side}&rows={side}&spacing=1,1",
       array.array("f", (i % 8191 for i in range(side * side))).tobytes(), status=201, media=F32)
    for i in range(count):
        fork(random.choice((a, b)), f"m{i}", "y-big")
    biggest = int(engine.value("SELECT max(octet_length(data)) FROM kota.edit WHERE kind = 13"))
    check(biggest < 2000, f"an entry of a fork takes {biggest} bytes")
    with node("e", *EVERY) as e:
        for i in range(count):
            same(e, a, f"m{i}")
            same(b, a, f"m{i}")
        whole = 4 * side * side * count
        check(memory(e) < others + whole / 2, f"{memory(e)} bytes in memory, {others} of other "
              f"locales, {whole} of all forks")
        for i in range(count):  # past a snapshot of some
            for k in range(42 if i < 3 else 1):
                edit(random.choice((a, b, e)), [i, k, 1, 1], [i + k], f"m{i}")
    for _ in range(2):
        with node("f", *EVERY) as f:
            for turn in range(2):
                for i in range(count):
                    same(f, a, f"m{i}")
                check(folder_bytes(f) < others_on_disk + whole / 2, f"{folder_bytes(f)} bytes on disk, "
                      f"{others_on_disk} of other locales")
                check(memory(f) < whole / 2 or turn == 0, f"{memory(f)} bytes in memory")
                f.daemon.stop()
                check_is_good(f.data)
                f.start()
        ok(a, "DELETE", "y-big", status=(204, 404))


def some_work(on, seed, told, is_over):
    """Pins, restores, edits and reverts; what was acknowledged is told."""
    choose = random_module.Random(seed)
    headers = {"Authorization": "Bearer token-of-ann"}
    try:
        with on.client() as client:
            while not is_over.is_set():
                name = f"n{choose.randrange(4)}"
                path, method, body = f"/v1/locales/land/pins/{name}", "PUT", None
                what = choose.randrange(8)
                if what == 1:
                    method = "DELETE"
                elif what == 2:
                    method, path = "POST", path + "/restore"
                elif what == 3:
                    revision = client.ask("GET", "/v1/locales/land", headers=headers).json["revision"]
                    method, path = "POST", "/v1/locales/land/revert"
                    body = {"since": max(revision - 2, 0), "layer": "ground"}
                elif what == 4:
                    method, path = "POST", "/v1/locales"
                    body = {"id": f"f{choose.randrange(3)}", "from": choose.choice(("land", "land@n1"))}
                elif what == 5:
                    method, path = "DELETE", f"/v1/locales/f{choose.randrange(3)}"
                elif what > 5:
                    method, path = "POST", "/v1/locales/land/edits"
                    body = {"rect": [choose.randrange(SIDE), choose.randrange(SIDE), 1, 1],
                            "op": "set", "heights": [choose.randrange(50)]}
                answer = client.ask(method, path, body, headers=headers)
                check(answer.status in (200, 201, 204, 404, 409, 410, 503), f"{method} {path}: {answer}")
                if answer.status == 200 and method == "POST" and "land" in path:
                    told.append(answer.json["revision"])
    except CUT:
        pass


@test("a node that was away takes a locale again, and the forks that share its tiles with it")
def _():
    for on in (a, b):
        fork(on, f"of-{on.name}", "land@start")
    edit(b, [100, 100, 1, 1], [1], "of-a")
    ok(b, "PUT", "of-a/pins/own", status=201)
    fork(b, "of-of-a", "of-a@own")
    for name in ("of-a", "of-b", "of-of-a"):
        same(b, a, name)
    b.daemon.stop()
    for i in range(110):
        edit(a, [i, i, 3, 3], [i] * 9)
        if i == 50:
            ok(a, "PUT", "land/pins/meanwhile", status=201)
    wait_until(lambda: int(engine.value("SELECT rev - first FROM kota.locale WHERE id = 'land'")) < 90,
               "the log is trimmed")
    b.start()
    same(b, a)
    check(b.stats()["snapshots_taken"] > 0, "a snapshot was taken")
    for turn in range(2):
        for name in ("of-a", "of-b", "of-of-a"):
            same(b, a, name)
        b.daemon.stop()
        check_is_good(b.data)
        b.start()


@test("kill -9 while a node takes a locale again, at any moment: it catches up and is like the other")
def _():
    for turn in range(10 if ALL else 2):
        b.daemon.stop()
        for i in range(100):
            edit(a, [random.randrange(SIDE - 3), random.randrange(SIDE - 3), 3, 3], [turn + i] * 9)
        ok(a, "PUT", f"land/pins/k{turn % 3}", status=(200, 201))
        wait_until(lambda: int(engine.value("SELECT rev - first FROM kota.locale WHERE id = 'land'")) < 90,
                   "the log is trimmed")
        for _ in range(4 if ALL else 2):  # from its start to after the snapshot
            b.start(wait=False)
            time.sleep(random.uniform(0, 0.5) ** 2 * 2)
            b.kill()
        b.start()
        for name in ("land", "of-a", "of-b", "of-of-a"):
            same(b, a, name)
        b.daemon.stop()
        check_is_good(b.data)
        b.start()
        same(b, a)


@test("kill -9 while pinning, restoring, reverting and editing: all nodes are equal again")
def _():
    for turn in range(12 if ALL else 2):
        told, is_over = [], threading.Event()
        threads = [threading.Thread(target=some_work, args=(on, 10 * turn + i, told, is_over))
                   for i, on in enumerate((a, b, b))]
        for thread in threads:
            thread.start()
        wait_until(lambda told=told: len(told) > 15, "some work")
        b.kill()
        is_over.set()
        for thread in threads:
            thread.join()
        b.start()
        same(b, a)
        wait_until(lambda: all_locales(b) == all_locales(a), "the same locales")
        for name in all_locales(a):
            if name.startswith("f"):
                same(b, a, name)
        check(ok(a, "GET", "land")["revision"] >= max(told), "an acknowledged revision is there")
        held, rows = history(a)
        equal([row["revision"] for row in rows], list(range(held + 1, held + 1 + len(rows))), "rows")
        check(set(told) <= set(range(held + 1)) | {row["revision"] for row in rows}, "each has a row")


@test("both nodes stop, and their folders are good")
def _():
    a.stop()
    b.stop()


run()
