"""kill -9 at any moment: what was acknowledged is there, once, and nothing is there by halves.

Each round: two connections send edits, each under a key of its own; the daemon is killed; it
starts again on its directory. Then every request that got no answer is sent again under the same
key, and from the revisions that all requests were given a replay in Python must give the samples
that the daemon has, both right after the restart and after the repeats.
"""
import os
import random as random_module
import shutil
import tempfile
import threading
import time

from daemon import F32, SLOW
from ground import (CUT, Client, cut_off, floats, hills, put_ground, random_edit, read_ground,
                    replay, run_check, stored, to_bytes)
from tap import Failure, case, check, equal, rng, run, test

folder = tempfile.TemporaryDirectory(prefix="kota-test-")
ROUNDS = 100 if SLOW == 1 else 30
IMPORTS = 12 if SLOW == 1 else 4
SHAPES = ("raise", "crater", "smooth")  # flatten may be impossible where the other digs a hole


class Sent:
    """A request under its key, and the revision that it was answered with, if it was."""

    def __init__(self, key, edit, binary):
        self.key, self.edit, self.binary, self.revision = key, edit, binary, None

    def ask(self, client):
        """True when this answer was a repeat of an earlier one."""
        answer = client.edit(self.edit, binary=self.binary,
                             headers={"Idempotency-Key": self.key})
        check(answer.status == 200, f"an edit under {self.key}: {answer}")
        self.revision = answer.json["revision"]
        return answer.headers.get("idempotency-replayed") == "true"


class Sender(threading.Thread):
    """Sends edits one after another until the daemon is gone."""

    def __init__(self, port, ground, seed, name, most):
        super().__init__()
        self.port, self.ground, self.label, self.most = port, ground, name, most
        self.random = random_module.Random(seed)
        self.sent, self.error = [], None

    def run(self):
        try:
            with Client(self.port) as client:
                while True:
                    edit = random_edit(self.random, self.ground, self.most, SHAPES)
                    self.sent.append(Sent(f"{self.label}-{len(self.sent)}", edit,
                                          self.random.random() < 0.5))
                    self.sent[-1].ask(client)
        except CUT:
            pass
        except BaseException as error:
            self.error = error


def settle_round(daemon, ground, known, sent, name):
    """After a restart: repeats what got no answer and compares the ground before and after."""
    at_start = daemon.ok("GET", "/v1/locales/land")["revision"]
    samples = read_ground(daemon, ground)
    acknowledged = max([s.revision for s in sent if s.revision], default=known)
    check(at_start >= acknowledged,
          f"{name}: revision {at_start} after the restart, {acknowledged} was acknowledged")
    open_ones = [s for s in sent if s.revision is None]
    check(at_start <= known + len(sent), f"{name}: revision {at_start} of {len(sent)} requests")
    with Client(daemon.port) as client:
        for request in open_ones:
            repeated = request.ask(client)
            equal(repeated, request.revision <= at_start, f"{name}: Idempotency-Replayed of "
                  f"{request.key} with revision {request.revision}, {at_start} at the start")
    total = daemon.ok("GET", "/v1/locales/land")["revision"]
    equal(sorted(s.revision for s in sent), list(range(known + 1, total + 1)),
          f"{name}: revisions of all requests")
    sent.sort(key=lambda s: s.revision)
    compared = False
    for request in sent:
        if request.revision > at_start and not compared:
            ground.compare(samples, f"{name}: after the restart at {at_start}")
            compared = True
        ground.apply(request.edit)
    now = read_ground(daemon, ground)
    if not compared:
        ground.compare(samples, f"{name}: after the restart at {at_start}")
    ground.compare(now, f"{name}: after the repeats at {total}")
    ground.adopt(now)
    look_at_feed(daemon, known, total, sent, name)
    return total


def look_at_feed(daemon, known, total, sent, name):
    events = replay(daemon.port, "/v1/locales/land/events", known, total, f"{name}: events")
    equal([int(e[0]) for e in events], list(range(known + 1, total + 1)), f"{name}: ids")
    for (_, kind, data), request in zip(events, sent):
        equal((kind, data["revision"]), ("edit", request.revision), f"{name}: event")
        if request.edit.rect:
            equal(data["rect"], list(request.edit.rect), f"{name}: rect of {request.revision}")
    answer = daemon.ok("GET", f"/v1/locales/land/diff?since={known}")
    equal(answer["revision"], total, f"{name}: revision of the diff")
    if total == known:
        equal(answer["rects"], [], f"{name}: an empty diff")


def rounds(cols, rows, count, most, longest_s):
    random, data = rng(f"kill {cols}"), os.path.join(folder.name, f"edits{cols}")
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
            cut_off(daemon)
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
        status, text = run_check(data)
        equal(status, 0, f"--check after the last round: {text}")
    except BaseException:
        daemon.kill()
        raise


case(f"{ROUNDS} kills under edits of 64x48 samples from two connections", rounds, 64, 48, ROUNDS,
     12, 0.12)
case(f"{ROUNDS // 4} kills under edits of 600x520 samples across the seams of tiles", rounds, 600,
     520, ROUNDS // 4, 60, 0.2)


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
    status, text = run_check(data)
    equal(status, 0, f"--check: {text}")


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


run(folder.cleanup, "the folder is removed")
