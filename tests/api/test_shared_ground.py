"""Many who share ground that changes: every answer is the one of the revision that it names.

Readers ask heights, rays and contacts, one by one, in JSON batches and in binary ones, and tiles,
while a writer commits hundreds of edits. What they got is judged afterwards against the samples of
exactly the revision named. The field has a seam of tiles in its middle, and edits cross it.
"""
import json
import math
import os
import tempfile
import threading

from daemon import Daemon, parse_answers, problem
from fields import Terrain, put_layer, put_terrain
from ground import (NAN, Client, Edit, Stream, changed, floats, hills, put_ground, random_edit,
                    read_ground, replay, stored)
from mesh_oracle import obj, rectangle
from sharing import BASE, COLS, ROWS, Reader, Writer, judge
from tap import HANG_S, case, check, equal, fail, rest, rng, run, test

folder = tempfile.TemporaryDirectory(prefix="kota-test-")


def hammer(args, count):
    with args() as daemon:
        daemon.ok("PUT", BASE, {}, status=201)
        ground = hills(rng("shared"), COLS, ROWS)
        revision = put_ground(daemon, ground)["revision"]
        writer = Writer(daemon.port, ground, revision, count, "shared edits")
        readers = [Reader(writer, daemon.port, f"reader {i}") for i in range(4)]
        for thread in (*readers, writer):
            thread.start()
        for thread in (writer, *readers):
            thread.join()
        for thread in (writer, *readers):
            if thread.error:
                raise thread.error
        seen, asked = set(), 0
        for reader in readers:
            judge(reader, writer.versions)
            seen |= {entry[0] for entry in reader.got}
            asked += reader.asked
        print(f"# {asked} answers, {len(seen)} of {count} revisions seen")
        check(len(seen) > count / 10, f"{asked} answers of {len(seen)} revisions alone")
        last = writer.versions[writer.acknowledged]
        last.compare(read_ground(daemon, last), "the end")


case("in memory: readers under 200 edits get the answers of the revision that each names",
     hammer, lambda: Daemon("--loops", "2"), 200)
case("with --data: readers under 60 edits get the answers of the revision that each names",
     hammer, lambda: stored(os.path.join(folder.name, "hammer")), 60)


@rest("in memory: the same under 1000 edits")
def _():
    hammer(lambda: Daemon("--loops", "2"), 1000)


@rest("with --data: the same under 2000 edits")
def _():
    hammer(lambda: stored(os.path.join(folder.name, "long")), 2000)


# ---- two editors -----------------------------------------------------------------------------------------


@test("two editors with the same If-Match: one of each pair wins, 100 times")
def _():
    with stored(os.path.join(folder.name, "pairs")) as daemon:
        daemon.ok("PUT", BASE, {}, status=201)
        ground = hills(rng("pairs"), 64, 48)
        first = put_ground(daemon, ground)["revision"]
        barrier = threading.Barrier(2)
        answers = [[], []]
        errors = []

        def edit(side):
            try:
                with Client(daemon.port) as client:
                    for number in range(100):
                        barrier.wait(HANG_S)
                        made = Edit("set", (side, number % 48, 2, 1), floats([number + side / 2] * 2))
                        answer = client.edit(made, headers={"If-Match": f'"{first + number}"'})
                        answers[side].append((answer, made))
            except BaseException as error:
                errors.append(error)
                barrier.abort()
        threads = [threading.Thread(target=edit, args=(side,)) for side in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        won = [0, 0]
        for number, pair in enumerate(zip(*answers)):
            statuses = sorted(answer.status for answer, _ in pair)
            equal(statuses, [200, 412], f"round {number}")
            for side, (answer, made) in enumerate(pair):
                if answer.status == 200:
                    equal(answer.json["revision"], first + number + 1, "revision")
                    ground.apply(made)
                    won[side] += 1
                else:
                    problem(answer, 412)
        print(f"# won: {won}")
        ground.compare(read_ground(daemon, ground), "what the winners have written")


@test("If-Match on every write of a locale: the revision, * for any, 412 for another")
def _():
    with Daemon() as daemon:
        ground = hills(rng("if-match"), 8, 8)
        put = f"{BASE}/layers/ground?{ground.query()}"
        edit = {"rect": [0, 0, 1, 1], "op": "set", "heights": [3]}
        problem(daemon.put(BASE, {}, headers={"If-Match": "*"}), 412)
        problem(daemon.put(BASE, {}, headers={"If-Match": '"1"'}), 412)
        equal(daemon.get(BASE).status, 404, "nothing was made")
        daemon.ok("PUT", BASE, {}, status=201)
        revision = 1
        for method, target, body, media, status in (
                ("PUT", put, ground.body(), "application/vnd.kota.f32", 201),
                ("POST", BASE + "/edits", edit, None, 200), ("PUT", BASE, {"title": "a"}, None, 200),
                ("DELETE", BASE + "/layers/ground", None, None, 204),
                ("PUT", put, ground.body(), "application/vnd.kota.f32", 201),
                ("DELETE", BASE, None, None, 204)):
            for other in (revision - 1, revision + 1, 10 ** 18):
                answer = daemon.ask(method, target, body, media=media,
                                    headers={"If-Match": f'"{other}"'})
                problem(answer, 412)
            equal(daemon.ok("GET", BASE)["revision"], revision, f"after refused {method} {target}")
            if status == 201:  # of what is not there yet: no * but the locale's revision
                problem(daemon.ask(method, target, body, media=media, headers={"If-Match": "*"}),
                        412)
            right = "*" if revision % 2 and status != 201 else f'"{revision}"'
            answer = daemon.ask(method, target, body, media=media, headers={"If-Match": right})
            equal(answer.status, status, f"{method} {target} If-Match {right}: {answer}")
            revision += 1
        for bad in ("1", '"x"', '"1', "W/x", '"-1"'):
            daemon.ask("PUT", BASE, {})
            answer = daemon.put(BASE, {}, headers={"If-Match": bad})
            check(answer.status in (400, 412), f"If-Match {bad}: {answer}")


# ---- several who write --------------------------------------------------------------------------------


def together(*works):
    """Runs functions on threads of their own, and raises the first error of any."""
    errors = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@test("manifests, layers and edits at the same time: no change swallows another")
def _():
    data, count = os.path.join(folder.name, "mixed"), 150
    with stored(data) as daemon:
        daemon.ok("PUT", BASE, {}, status=201)
        ground = hills(rng("mixed"), 300, 60)
        first = put_ground(daemon, ground)["revision"] + 1
        plates = obj([rectangle(i, i % 7, i + 3, i % 7 + 3, 60 + 0.1 * i) for i in range(400)])
        daemon.ok("PUT", BASE + "/layers/plates", plates, status=201, media="model/obj")
        revisions, edits, manifests = [], [], []

        def kept(answer, statuses=(200, 201)):
            check(answer.status in statuses, str(answer))
            if answer.status != 204:
                revisions.append(answer.json["revision"])
            return answer

        def edit_all():
            random, now = rng("mixed edits"), ground.copy()
            with Client(daemon.port) as client:
                for _ in range(count):
                    edit = random_edit(random, now, 20)
                    answer = kept(client.edit(edit, layer="ground"))
                    now.apply(edit)
                    edits.append((answer.json["revision"], edit))

        def manifest_all():
            with Client(daemon.port) as client:
                for number in range(count):
                    slant = number % 3 / 10
                    made = {"title": f"manifest {number}", "open_sky": number % 2 == 0,
                            "triangulation": ("anti", "main", "alternating")[number % 3],
                            "gravity": [slant, 0, -math.sqrt(1 - slant * slant)]}
                    manifests.append((kept(client.ask("PUT", BASE, made)).json["revision"], made))

        def layer_all():
            with Client(daemon.port) as client:
                for _ in range(count // 3):
                    kept(client.ask("PUT", BASE + "/layers/guest", plates,
                                    media="model/obj"))
                    kept(client.ask("PUT", BASE + "/layers/plates", plates,
                                    media="model/obj"))
                    kept(client.ask("DELETE", BASE + "/layers/guest"), (204,))
        together(edit_all, manifest_all, layer_all)
        last = first + count * 3
        document = daemon.ok("GET", BASE)
        equal(document["revision"], last, "revision: one for each change")
        equal(len(set(revisions)), len(revisions), "revisions, each given once")
        equal(sorted(layer["id"] for layer in document["layers"]), ["ground", "plates"], "layers")
        for name, value in max(manifests, key=lambda entry: entry[0])[1].items():
            equal(document[name], value, name)
        for _, edit in sorted(edits, key=lambda entry: entry[0]):
            ground.apply(edit)
        ground.compare(read_ground(daemon, ground, layer="ground"), "all edits")
        events = replay(daemon.port, BASE + "/events", first, last)
        equal([int(e[0]) for e in events], list(range(first + 1, last + 1)), "events")
    with stored(data) as daemon:
        ground.compare(read_ground(daemon, ground, layer="ground"), "after a restart")
        again = daemon.ok("GET", BASE)
        for name in ("revision", "title", "gravity", "triangulation", "bounds"):
            equal(again[name], document[name], f"{name} after a restart")


@test("the same key from two connections at once: one change, one answer, 100 times")
def _():
    with stored(os.path.join(folder.name, "twins")) as daemon:
        daemon.ok("PUT", BASE, {}, status=201)
        ground = hills(rng("twins"), 16, 16)
        first = put_ground(daemon, ground)["revision"]
        barrier, answers = threading.Barrier(2), [[], []]
        edit = Edit("add", (3, 4, 2, 2), floats([1, 0.5, 0.25, 2]))

        def ask(side):
            try:
                with Client(daemon.port) as client:
                    for number in range(100):
                        barrier.wait(HANG_S)
                        answers[side].append(client.edit(
                            edit, headers={"Idempotency-Key": f"twin-{number}"}))
            except BaseException:
                barrier.abort()
                raise
        together(lambda: ask(0), lambda: ask(1))
        for number, (one, other) in enumerate(zip(*answers)):
            equal((one.status, one.json["revision"]), (200, first + number + 1), f"{number}: {one}")
            equal(other.body, one.body, f"round {number}")
            equal(sorted(a.headers.get("idempotency-replayed", "") for a in (one, other)),
                  ["", "true"], f"round {number}: Idempotency-Replayed")
            ground.apply(edit)
        ground.compare(read_ground(daemon, ground), "the sum")


@test("pipelined edits and reads on one connection keep their order")
def _():
    with stored(os.path.join(folder.name, "pipeline")) as daemon:
        land(daemon)
        pieces, count = [], 200
        for number in range(count):
            body = json.dumps({"rect": [2, 2, 1, 1], "op": "set", "heights": [number]})
            pieces.append(f"POST {BASE}/edits HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                          f"{daemon.token_line}Content-Length: {len(body)}\r\n\r\n{body}"
                          f"GET {BASE}/height?x=2&y=2&interp=nearest HTTP/1.1\r\nHost: x\r\n"
                          + ("Connection: close\r\n" if number == count - 1 else "") + "\r\n")
        answers = parse_answers(daemon.raw("".join(pieces).encode()))
        equal(len(answers), 2 * count, "answers")
        for number in range(count):
            edit, read = answers[2 * number], answers[2 * number + 1]
            equal((edit.status, edit.json["revision"]), (200, number + 3), f"edit {number}")
            equal((read.json["revision"], read.json["height"]), (number + 3, number), f"{number}")


# ---- who may ------------------------------------------------------------------------------------------------

EDIT_BODY = {"rect": [0, 0, 1, 1], "op": "set", "heights": [3]}


def land(daemon, headers=None):
    with Client(daemon.port, headers) as client:
        equal(client.ask("PUT", BASE, {}).status, 201, "PUT")
        put_ground(client, hills(rng("rights"), 8, 8))


def statuses(daemon, headers):
    """Of an edit, the events of a locale, of all, and a diff."""
    with Client(daemon.port, headers) as client:
        made = [client.ask("POST", BASE + "/edits", EDIT_BODY).status]
    for target in (BASE + "/events", "/v1/events"):
        stream = Stream(daemon.port, target, headers=headers)
        made.append(stream.status)
        stream.close()
    with Client(daemon.port, headers) as client:
        made.append(client.get(BASE + "/diff?since=1").status)
    return made


@test("without tokens loopback may edit; a foreign Origin and a proxy may follow, not edit")
def _():
    with Daemon() as daemon:
        land(daemon)
        equal(statuses(daemon, {}), [200] * 4, "loopback")
        equal(statuses(daemon, {"Origin": f"http://127.0.0.1:{daemon.port}"}), [200] * 4, "own page")
        for name, value in (("Origin", "http://evil.example"), ("Origin", "null"),
                            ("X-Forwarded-For", "10.0.0.1"), ("X-Forwarded-Host", "x"),
                            ("X-Forwarded-Proto", "https")):
            equal(statuses(daemon, {name: value}), [403, 200, 200, 200], f"{name}: {value}")
        equal(daemon.ok("GET", BASE)["revision"], 4, "two edits were let through")


@test("with tokens: edits need an edit line, events and diff a read line where there is one")
def _():
    for lines, without, read in (("edit e", [401, 200, 200, 200], None),
                                 ("read r\nedit e", [401] * 4, [403, 200, 200, 200])):
        path = os.path.join(folder.name, "tokens")
        with open(path, "w") as file:
            file.write(lines + "\n")
        os.chmod(path, 0o600)
        with Daemon("--token-file", path) as daemon:
            land(daemon, {"Authorization": "Bearer e"})
            equal(statuses(daemon, {}), without, f"{lines!r} without a token")
            equal(statuses(daemon, {"Authorization": "Bearer e"}), [200] * 4, f"{lines!r} edit")
            equal(statuses(daemon, {"Authorization": "Bearer e", "Origin": "http://a.example",
                                    "X-Forwarded-For": "10.1.1.1"}), [200] * 4, "edit by a page")
            equal(statuses(daemon, {"Authorization": "Bearer x"})[0], 401, "unknown")
            if read:
                equal(statuses(daemon, {"Authorization": "Bearer r"}), read, f"{lines!r} read")
                equal(statuses(daemon, {"Authorization": "Bearer x"}), [401] * 4, "unknown")


# ---- followers ------------------------------------------------------------------------------------------------


def follows(args):
    with args() as daemon:
        daemon.ok("PUT", BASE, {}, status=201)
        ground = hills(rng("follow"), 300, 40)
        first = put_ground(daemon, ground)["revision"]
        streams = {f"locale {i}": Stream(daemon.port, BASE + "/events") for i in range(4)}
        streams["world"] = Stream(daemon.port, "/v1/events")
        with Client(daemon.port) as client:
            random = rng("follow edits")
            edits, versions = {}, {first: ground}
            for number in range(300):
                now = versions[first + number].copy()
                edit = random_edit(random, now, 16)
                answer = client.edit(edit, binary=random.random() < 0.5)
                check(answer.status == 200, str(answer))
                now.apply(edit)
                revision = answer.json["revision"]
                equal(revision, first + number + 1, "revision")
                edits[revision], versions[revision] = (edit, answer.json["rect"]), now
                if number == 150:
                    streams["late"] = Stream(daemon.port, BASE + "/events", first + 20)
        last = first + 300
        feed = {}
        for name, stream in streams.items():
            events = stream.until(last, name)
            start = {"late": first + 21}.get(name, first + 1)
            equal([int(e[0]) for e in events], list(range(start, last + 1)), f"ids of {name}")
            equal({e[1] for e in events}, {"edit"}, f"names in {name}")
            for _, _, data in events:
                feed.setdefault(data["revision"], data)
                equal(data, feed[data["revision"]], f"an event of {name}")
            stream.close()
        for revision, (edit, rect) in edits.items():
            look_at_event(feed[revision], edit, rect, versions[revision - 1], versions[revision])
        look_at_diffs(daemon, versions, first, last)


def look_at_event(event, edit, rect, before, after):
    what = f"event of revision {event['revision']}"
    equal(event["locale"], "land", what)
    equal(event["rect"], rect, f"{what}: rect")
    equal(event["source"], edit.source, f"{what}: source")
    c0, r0, w, h = rect
    low, high = event["bounds"]["min"], event["bounds"]["max"]
    different = changed(before, after)
    for index in different:
        r, c = divmod(index, before.cols)
        if not (c0 <= c < c0 + w and r0 <= r < r0 + h):
            fail(f"{what}: sample ({c},{r}) has changed outside {rect}")
        for value in (before.h[index], after.h[index]):
            point = (*before.place(c, r), value)
            if value == value and not all(a - 0.01 <= p <= b + 0.01
                                          for a, p, b in zip(low, point, high)):
                fail(f"{what}: {point} lies outside the bounds {event['bounds']}")


def look_at_diffs(daemon, versions, first, last):
    for since in (first, first + 1, (first + last) // 2, last - 1, last):
        answer = daemon.ok("GET", f"{BASE}/diff?since={since}")
        equal(answer["revision"], last, "revision of a diff")
        cols = versions[last].cols
        covered = {r * cols + c for x, y, w, h in answer["rects"]
                   for r in range(y, y + h) for c in range(x, x + w)}
        lost = set(changed(versions[since], versions[last])) - covered
        check(not lost, f"diff since {since}: samples {sorted(lost)[:9]}, by rows of {cols}, are in "
                        f"none of {answer['rects'][:20]}")
        if since == last:
            equal(answer["rects"], [], "rects since the last")
    problem(daemon.get(f"{BASE}/diff"), 400)
    problem(daemon.get(f"{BASE}/diff?since=x"), 400)
    answer = daemon.get(f"{BASE}/diff?since={last + 1}")
    check(answer.status in (400, 410, 422), f"diff since the future: {answer}")


case("in memory: followers get every edit once and in order, with a rect that covers it", follows,
     lambda: Daemon("--loops", "2"))
case("with --data: followers get every edit once and in order, with a rect that covers it", follows,
     lambda: stored(os.path.join(folder.name, "follow")))


@test("a follower of one locale hears nothing of the others, nor of its own past")
def _():
    with Daemon("--loops", "2") as daemon:
        for name in ("land", "other"):
            daemon.ok("PUT", f"/v1/locales/{name}", {}, status=201)
            put_ground(daemon, hills(rng("two"), 8, 8), name)
        land_stream, all_stream = Stream(daemon.port, BASE + "/events"), \
            Stream(daemon.port, "/v1/events")
        edit = Edit("set", (0, 0, 1, 1), floats([NAN]))
        with Client(daemon.port) as client:
            for name in ("other", "land", "other", "land", "other"):
                equal(client.edit(edit, name).status, 200, name)
        equal([e[2]["locale"] for e in all_stream.until(9)],
              ["other", "land", "other", "land", "other"], "all")
        equal([(e[0], e[2]["locale"]) for e in land_stream.until(4)],
              [("3", "land"), ("4", "land")], "land")
        for stream in (land_stream, all_stream):
            stream.close()


@test("Last-Event-ID: one that cannot be is 400 or resync, a future one is resync")
def _():
    with Daemon() as daemon:
        land(daemon)
        equal([int(e[0]) for e in replay(daemon.port, BASE + "/events", 1, 2)], [2], "replayed")
        stream = Stream(daemon.port, BASE + "/events", 99)
        if stream.status == 200:
            events = stream.wait(lambda got: got, "resync")
            equal(events[0][1], "resync", "the first event")
        stream.close()
        stream = Stream(daemon.port, BASE + "/events", "x")
        check(stream.status in (200, 400), f"a word: {stream.status}")
        if stream.status == 200:
            equal(stream.wait(lambda got: got, "resync")[0][1], "resync", "the first event")
        stream.close()
        stream = Stream(daemon.port, "/v1/locales/none/events")
        equal(stream.status, 404, "an unknown locale")


@test("a deleted locale's followers are told")
def _():
    with Daemon() as daemon:
        land(daemon)
        stream = Stream(daemon.port, BASE + "/events")
        equal(daemon.ask("DELETE", BASE).status, 204, "DELETE")
        events = stream.until(3)
        equal((events[-1][0], events[-1][2]["source"]), ("3", "delete"), "the last event")
        stream.close()


@rest("beyond what is kept: the feed says resync, diff 410, and both go on from there")
def _():
    count = 16500
    with Daemon() as daemon:
        land(daemon)
        put_terrain(daemon, "still", Terrain(2, 2, [[0, 0], [0, 0]]))
        body = b'{"rect":[0,0,1,1],"op":"add","heights":[1]}'
        request = (f"POST {BASE}/edits HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                   f"{daemon.token_line}Content-Length: {len(body)}\r\n\r\n").encode() + body
        daemon.pipeline(request, count)
        revision = daemon.ok("GET", BASE)["revision"]
        equal(revision, count + 2, "revision")
        for since in (2, revision - 5):
            answer = daemon.get(f"{BASE}/diff?since={since}")
            if answer.status == 200:
                equal((answer.json["revision"], [0, 0, 1, 1] in answer.json["rects"]),
                      (revision, True), f"diff since {since}: {answer}")
            else:
                problem(answer, 410 if since == 2 else 200)
        still = "/v1/locales/still/diff?since="  # where nothing has changed
        problem(daemon.get(still + "1"), 410)
        equal(daemon.ok("GET", still + "2"), {"locale": "still", "revision": 2, "rects": []},
              "what is now is not too old")
        put_layer(daemon, "still", Terrain(3, 2, [[0] * 3] * 2), status=200)
        equal(daemon.ok("GET", still + "2")["rects"], [[0, 0, 3, 2]], "what came after")
        problem(daemon.get(still + "1"), 410)
        for target, others in ((BASE + "/events", 0), ("/v1/events", 3)):  # changes of `still`
            stream = Stream(daemon.port, target, 2)
            first = stream.wait(lambda got: got, "resync")[0]
            equal(first[1], "resync", f"the first event of {target}")
            daemon.ok("POST", BASE + "/edits", EDIT_BODY)
            revision += 1
            events = stream.until(revision + others)
            equal([(int(e[0]), e[1]) for e in events[1:]], [(revision + others, "edit")], "what follows")
            stream.close()


run(folder.cleanup, "the folder is removed")
