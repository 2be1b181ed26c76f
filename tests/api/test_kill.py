"""kill -9 at any moment: what was acknowledged is there, once, and nothing is there by halves.

Each round: two connections send edits, each under a key of its own; the daemon is killed; it
starts again on its directory. Then every request that got no answer is sent again under the same
key, and from the revisions that all requests were given a replay in Python must give the samples
that the daemon has, both right after the restart and after the repeats.
"""
import os
import shutil
import tempfile
import threading
import time

from daemon import F32, SLOW, Daemon
from ground import (CUT, Client, check_is_good, cut_off, floats, from_bytes, hills, put_ground,
                    read_ground, replay, stored, to_bytes)
from killing import Sender, settle_round
from tap import ALL, Failure, case, check, equal, rng, run, test

folder = tempfile.TemporaryDirectory(prefix="kota-test-")
ROUNDS = 30 if SLOW > 1 else 100 if ALL else 20
IMPORTS = 4 if SLOW > 1 else 12 if ALL else 6


def rounds(cols, rows, count, most, longest_s, end=cut_off):
    random = rng(f"kill {cols} {end.__name__}")
    data = os.path.join(folder.name, f"edits{cols}{end.__name__}")
    ground = hills(random, cols, rows, (2.0, 2.0), (-30.0, 7.0))
    daemon = stored(data)
    daemon.ok("PUT", "/v1/locales/land", {}, status=201)
    known = put_ground(daemon, ground)["revision"]
    edits, found, lost = 0, 0, 0
    try:
        for number in range(count):
            name = f"round {number}"
            senders = [Sender(daemon.port, ground.copy(), random.random(), f"{cols}-{number}-{i}",
                              most) for i in range(2)]
            for sender in senders:
                sender.start()
            time.sleep(random.uniform(0, longest_s) * SLOW ** 0.5)
            end(daemon)
            for sender in senders:
                sender.join()
                if sender.error:
                    raise sender.error
            daemon = stored(data)
            sent = [request for sender in senders for request in sender.sent]
            open_ones = [request for request in sent if request.revision is None]
            start = daemon.ok("GET", "/v1/locales/land")["revision"]
            known = settle_round(daemon, ground, known, sent, name)
            edits += len(sent)
            found += sum(request.revision <= start for request in open_ones)
            lost += sum(request.revision > start for request in open_ones)
        print(f"# {cols}x{rows}: {edits} edits in {count} rounds; of the requests without an answer"
              f" {found} were there, {lost} were not")
        check(edits > count, f"{edits} edits in {count} rounds")
        daemon.stop()
        check_is_good(data)
    except BaseException:
        daemon.kill()
        raise


case(f"{ROUNDS} kills under edits of 64x48 samples from two connections", rounds, 64, 48, ROUNDS,
     12, 0.12)
case(f"{ROUNDS // 4} kills under edits of 600x520 samples across the seams of tiles", rounds, 600,
     520, ROUNDS // 4, 60, 0.2)


case(f"{ROUNDS // 5} times SIGTERM under edits: the daemon exits 0 and nothing is lost", rounds, 64, 48,
     ROUNDS // 5, 12, 0.1, Daemon.stop)


@test("a kill right after the restart, and again, before anything is repeated")
def _():
    random, data = rng("kill twice"), os.path.join(folder.name, "twice")
    ground = hills(random, 64, 48)
    daemon = stored(data)
    daemon.ok("PUT", "/v1/locales/land", {}, status=201)
    known = put_ground(daemon, ground)["revision"]
    try:
        for number in range(ROUNDS // 5):
            sender = Sender(daemon.port, ground.copy(), random.random(), f"t{number}", 30)
            sender.start()
            time.sleep(random.uniform(0, 0.1) * SLOW ** 0.5)
            cut_off(daemon)
            sender.join()
            if sender.error:
                raise sender.error
            for _ in range(2):
                early = stored(data, wait=False)
                time.sleep(random.uniform(0, 0.03) * SLOW ** 0.5)
                cut_off(early)
            daemon = stored(data)
            known = settle_round(daemon, ground, known, sender.sent, f"round {number}")
        daemon.stop()
    except BaseException:
        daemon.kill()
        raise


# ---- imports ------------------------------------------------------------------------------------------

SIDE = 1024


def import_body(number):
    """1024×1024 samples that tell which import they belong to, in every sample."""
    lines = [to_bytes(floats(number * 1000 + (r * 7 + c) % 97 for c in range(SIDE)))
             for r in range(97)]
    return b"".join(lines[r % 97] for r in range(SIDE))


class Shape:
    cols = rows = SIDE


@test(f"{IMPORTS} kills while a layer of 1024x1024 samples is replaced: the old one or the new one")
def _():
    random, data = rng("kill imports"), os.path.join(folder.name, "imports")
    bodies = [import_body(n) for n in range(IMPORTS + 1)]
    target = f"/v1/locales/land/layers/ground?cols={SIDE}&rows={SIDE}&spacing=1,1"
    daemon = stored(data)
    daemon.ok("PUT", "/v1/locales/land", {}, status=201)
    start = time.monotonic()
    revision = daemon.ok("PUT", target, bodies[0], status=201, media=F32)["revision"]
    usual_s, now = time.monotonic() - start, 0
    old = new = 0
    try:
        for number in range(1, IMPORTS + 1):
            answers, key = [], {"Idempotency-Key": f"import-{number}"}

            def send(port, body=bodies[number]):
                try:
                    with Client(port) as client:
                        answers.append(client.ask("PUT", target, body, key, F32))
                except CUT:
                    pass
            thread = threading.Thread(target=send, args=(daemon.port,))
            thread.start()
            time.sleep(random.uniform(0, 1.3 * usual_s))
            cut_off(daemon)
            thread.join()
            daemon = stored(data)
            document = daemon.ok("GET", "/v1/locales/land")
            got = read_ground(daemon, Shape).tobytes()
            is_new = document["revision"] == revision + 1
            check(is_new or document["revision"] == revision, f"revision {document['revision']}")
            check(is_new or not answers, f"import {number} was acknowledged and is lost")
            for answer in answers:
                equal((answer.status, answer.json["revision"]), (200, revision + 1), "answer")
            if got != bodies[number if is_new else now]:
                raise Failure(f"round {number}: the layer is neither the old one nor the new one, "
                              f"or not the one of revision {document['revision']}")
            old, new = old + (not is_new), new + is_new
            answer = daemon.ask("PUT", target, bodies[number], key, F32)
            equal((answer.status, answer.json["revision"]), (200, revision + 1), "the repeat")
            equal(answer.headers.get("idempotency-replayed") == "true", is_new, "replayed")
            equal(read_ground(daemon, Shape).tobytes(), bodies[number], "samples after the repeat")
            revision, now = revision + 1, number
        print(f"# {old} times the old layer, {new} times the new one")
        daemon.stop()
    except BaseException:
        daemon.kill()
        raise
    check_is_good(data)


@test("a first import that is killed leaves a locale with the layer or without it, never part")
def _():
    random = rng("kill first import")
    body, target = import_body(3), f"/v1/locales/land/layers/ground?cols={SIDE}&rows={SIDE}" \
        "&spacing=1,1"
    for number in range(max(3, IMPORTS // 3)):
        data = os.path.join(folder.name, f"first{number}")
        daemon = stored(data)
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)

        def send(port=daemon.port):
            try:
                with Client(port) as client:
                    client.ask("PUT", target, body, media=F32)
            except CUT:
                pass
        thread = threading.Thread(target=send)
        thread.start()
        time.sleep(random.uniform(0, 0.15) * SLOW ** 0.5)
        cut_off(daemon)
        thread.join()
        with stored(data) as daemon:
            document = daemon.ok("GET", "/v1/locales/land")
            equal(document["revision"], 1 + len(document["layers"]), "revision")
            if document["layers"]:
                equal(read_ground(daemon, Shape).tobytes(), body, "samples")
        shutil.rmtree(data)


# ---- locales that come and go ---------------------------------------------------------------------


class Life:
    """One locale's changes, one after another for ever; its state after each is known."""

    STEPS = 7

    def __init__(self, name):
        self.name, self.base, self.done = name, f"/v1/locales/{name}", 0

    def request(self, number):
        """(method, target, body, media type) of change number 0, 1, …"""
        layer = f"{self.base}/layers/%s?cols=4&rows=3&spacing=1,1"
        edit = {"rect": [1, 1, 2, 1], "op": "add", "heights": [0.5, 0.25]}
        return (("PUT", self.base, {"title": f"change {number}"}, None),
                ("PUT", layer % "a", to_bytes(floats([number] * 12)), F32),
                ("POST", self.base + "/edits", edit, None),
                ("PUT", layer % "b", to_bytes(floats([-number] * 12)), F32),
                ("DELETE", f"{self.base}/layers/a", None, None),
                ("POST", self.base + "/edits", {"layer": "b", **edit}, None),
                ("DELETE", self.base, None, None))[number % self.STEPS]

    def state(self, count):
        """(revision, title, {layer: its 12 samples}) after `count` changes; None: no locale."""
        step, last = count % self.STEPS, count - 1
        if step == 0:
            return None
        first, layers = count - step, {}
        for number in range(first + 1, count):
            kind = number % self.STEPS
            if kind in (1, 3):
                layers["a" if kind == 1 else "b"] = [number if kind == 1 else -number] * 12
            elif kind in (2, 5):
                name = "a" if kind == 2 else "b"
                layers[name] = list(layers[name])
                layers[name][5] += 0.5
                layers[name][6] += 0.25
            else:
                del layers["a"]
        return last + 1, f"change {first}", layers

    def ask(self, client, number):
        method, target, body, media = self.request(number)
        answer = client.ask(method, target, body, {"Idempotency-Key": f"{self.name}-{number}"},
                            media)
        check(answer.status in (200, 201, 204), f"change {number} of {self.name}: {answer}")
        return answer

    def run(self, port, errors):
        try:
            with Client(port) as client:
                while True:
                    self.ask(client, self.done)
                    self.done += 1
        except CUT:
            pass
        except BaseException as error:
            errors.append(error)

    def look(self, client):
        """What is there, in the words of state()."""
        answer = client.get(self.base)
        if answer.status == 404:
            return None
        document, layers = answer.json, {}
        for layer in document["layers"]:
            points = floats(v for r in range(3) for c in range(4) for v in (c, r))
            heights = client.ask("POST", f"{self.base}/height?interp=nearest&layer={layer['id']}",
                                 to_bytes(points), media=F32)
            layers[layer["id"]] = list(from_bytes(heights.body))
        return document["revision"], document["title"], layers


@test(f"{ROUNDS // 2} kills while locales and layers come and go: each change whole, in its place")
def _():
    random, data = rng("kill lives"), os.path.join(folder.name, "lives")
    lives, there, total = [Life(f"life-{i}") for i in range(3)], 0, 0
    daemon = stored(data)
    try:
        for number in range(ROUNDS // 2):
            errors = []
            threads = [threading.Thread(target=life.run, args=(daemon.port, errors))
                       for life in lives]
            for thread in threads:
                thread.start()
            time.sleep(random.uniform(0, 0.1) * SLOW ** 0.5)
            cut_off(daemon)
            for thread in threads:
                thread.join()
            if errors:
                raise errors[0]
            daemon = stored(data)
            with Client(daemon.port) as client:
                for life in lives:
                    got, what = life.look(client), f"round {number}, {life.name}"
                    before, after = life.state(life.done), life.state(life.done + 1)
                    check(got in (before, after), f"{what}: {got}, neither {before} nor {after}")
                    answer = life.ask(client, life.done)
                    is_there = answer.headers.get("idempotency-replayed") == "true"
                    equal(is_there, got == after, f"{what}: Idempotency-Replayed")
                    life.done += 1
                    equal(life.look(client), after, f"{what}: after the repeat")
                    there += is_there
            total = sum(life.done for life in lives)
            since = max(0, total - 2000)
            events = replay(daemon.port, "/v1/events", since, total, f"round {number}: events")
            equal([int(e[0]) for e in events], list(range(since + 1, total + 1)), "sequences")
        print(f"# {total} changes, {there} without an answer were there")
        daemon.stop()
    except BaseException:
        daemon.kill()
        raise
    check_is_good(data)


run(folder.cleanup, "the folder is removed")
