"""Edits that a kill may cut off, and what must be there when the daemon has started again.

Every request has a key of its own. After the restart those without an answer are sent again under
it; from the revisions that all were given a replay in Python must give the samples that the daemon
has, both right after the restart and after the repeats.
"""
import random as random_module
import threading

from ground import CUT, Client, random_edit, read_ground, replay
from tap import check, equal

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
