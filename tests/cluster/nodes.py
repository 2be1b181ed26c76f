"""Daemons of one shared log, senders whose requests a fault may cut off, and what must be there after.

Every request has a key of its own. A sender repeats what was refused (503) or cut off, under the same
key, on whichever node is there; so each request has one revision in the end. From the revisions of all
requests a replay in Python gives the samples that every node must have, to the bit: only `set` and
`add` are sent, which are exact in float32.
"""
import atexit
import contextlib
import os
import random as random_module
import shutil
import signal
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from daemon import SLOW, Daemon  # noqa: E402
from ground import (CUT, Client, check_is_good, hills, put_ground, random_edit, read_ground,  # noqa: E402
                    replay)
from tap import HANG_S, Failure, check, equal  # noqa: E402

LOCALE = "land"
COLS, ROWS = 300, 280  # four tiles, so that edits cross seams
CATCH_UP_S = 10 * SLOW  # of the long form, where the machine is quiet
LEASE_MS = 2000


class Node:
    """One daemon of the fleet, with its data; the daemon may come and go."""

    def __init__(self, conninfo, name, *args):
        self.name, self.conninfo, self.args = name, conninfo, args
        self.folder = tempfile.mkdtemp(prefix="kota-test-")
        self.data = os.path.join(self.folder, "data")
        self.daemon = None
        atexit.register(self.remove)

    def start(self, *more, wait=True):
        self.daemon = Daemon("--data", self.data, "--cluster", self.conninfo, "--node", self.name,
                             "--loops", "2", "--lease-ms", str(LEASE_MS), *self.args, *more, wait=wait)
        return self

    @property
    def port(self):
        return self.daemon.port

    @property
    def is_there(self):
        return self.daemon is not None and self.daemon.is_alive()

    def kill(self):
        """kill -9; nothing that it said before was a complaint."""
        self.daemon.process.kill()
        self.daemon.process.wait()
        log = self.daemon.log_text()
        self.daemon.kill()
        check("Sanitizer" not in log and "CHECK failed" not in log, f"{self.name}: {log[-3000:]}")

    def pause(self):
        self.daemon.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.daemon.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.daemon.stop()
        check_is_good(self.data)

    def remove(self):
        if self.is_there:
            self.daemon.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def client(self, **named):
        return Client(self.port, **named)

    def get(self, target):
        with self.client() as client:
            return client.get(target)

    def revision(self, locale=LOCALE):
        answer = self.get(f"/v1/locales/{locale}")
        check(answer.status == 200, f"{self.name}: {answer}")
        return answer.json["revision"]

    def stats(self):
        """What /v1/stats says of the cluster."""
        answer = self.get("/v1/stats")
        check(answer.status == 200, f"{self.name}: {answer}")
        return answer.json["cluster"]

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None and self.is_there:
                self.stop()
        finally:
            self.remove()


@contextlib.contextmanager
def fleet(conninfo, names=("a", "b"), args=()):
    """Nodes that are ready, and stopped cleanly at the end unless something failed."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Node(conninfo, name, *args).start()) for name in names]


def wait_until(true, what, seconds=HANG_S):
    """Seconds until true() is, a tenth more at most: psql takes 50 ms for a question. OSError counts as not yet."""
    start = time.monotonic()
    while True:
        with contextlib.suppress(*CUT):
            if true():
                return time.monotonic() - start
        if time.monotonic() - start > seconds:
            raise Failure(f"{what}: not within {seconds} s")
        time.sleep(min(max(0.01, 0.1 * (time.monotonic() - start)), 0.1))


def catch_up(node, revision, what, seconds=HANG_S, locale=LOCALE):
    """Seconds until a node has this revision."""
    def has_it():
        answer = node.get(f"/v1/locales/{locale}")
        if answer.status in (404, 503):  # it has not heard of it yet, or is just taking it
            return False
        check(answer.status == 200, f"{node.name}: {answer}")
        return answer.json["revision"] >= revision
    return wait_until(has_it, f"{what}: {node.name} at revision {revision} of {locale}", seconds)


def first_ground(node, random, locale=LOCALE, cols=COLS, rows=ROWS):
    """A locale with one heightfield of samples that the model knows; (model, revision)."""
    with node.client() as client:
        answer = client.ask("PUT", f"/v1/locales/{locale}", {})
        check(answer.status == 201, f"PUT of {locale}: {answer}")
        ground = hills(random, cols, rows)
        return ground, put_ground(client, ground, locale)["revision"]


# ---- senders ----------------------------------------------------------------------------------------


class Request:
    """An edit under its key; the revision that it was answered with, or None."""

    def __init__(self, key, edit, binary):
        self.key, self.edit, self.binary, self.revision = key, edit, binary, None

    def ask(self, client, locale=LOCALE):
        """True: it has its revision. False: refused for now."""
        answer = client.edit(self.edit, locale=locale, binary=self.binary,
                             headers={"Idempotency-Key": self.key})
        if answer.status == 503:
            check("retry-after" in answer.headers, f"503 without Retry-After: {answer}")
            return False
        check(answer.status == 200, f"an edit under {self.key}: {answer}")
        self.revision = answer.json["revision"]
        return True


class Sender(threading.Thread):
    """Sends edits to one node until it is told to stop, or the node is gone; repeats what is refused."""

    def __init__(self, node, ground, seed, label, locale=LOCALE, most=8, pause_s=0.0, count=None):
        super().__init__(daemon=True)
        self.node, self.port, self.ground, self.label = node, node.port, ground, label
        self.locale, self.most, self.pause_s, self.count = locale, most, pause_s, count
        self.random = random_module.Random(seed)
        self.is_over = threading.Event()
        self.sent, self.refused, self.error = [], 0, None
        self.last_answer = time.monotonic()

    def run(self):
        try:
            with Client(self.port) as client:
                while not self.is_over.is_set() and (not self.count or len(self.sent) < self.count):
                    edit = random_edit(self.random, self.ground, self.most, (), 0)
                    request = Request(f"{self.label}-{len(self.sent)}", edit,
                                      self.random.random() < 0.5)
                    self.sent.append(request)
                    while not request.ask(client, self.locale):
                        self.refused += 1
                        if self.is_over.wait(0.05):
                            return
                    self.last_answer = time.monotonic()
                    if self.pause_s:
                        self.is_over.wait(self.random.uniform(0, 2 * self.pause_s))
        except CUT:
            pass
        except BaseException as error:
            self.error = error

    def end(self):
        self.is_over.set()
        self.join()
        if self.error:
            raise self.error


def end_all(threads):
    for thread in threads:
        thread.is_over.set()
    for thread in threads:
        thread.join()
    for thread in threads:
        if thread.error:
            raise thread.error


def settle(nodes, ground, known, sent, what, random, locale=LOCALE):
    """Repeats what got no answer, on any node; then all nodes have the replay. The last revision."""
    open_ones = [request for request in sent if request.revision is None]
    for request in open_ones:
        with random.choice(nodes).client() as client:
            wait_until(lambda: request.ask(client, locale), f"{what}: the repeat of {request.key}")
    total = known + len(sent)
    equal(sorted(request.revision for request in sent), list(range(known + 1, total + 1)),
          f"{what}: the revisions of all requests, each once")
    sent.sort(key=lambda request: request.revision)
    for request in sent:
        ground.apply(request.edit)
    for node in nodes:
        catch_up(node, total, what, locale=locale)
        equal(node.revision(locale), total, f"{what}: the revision of {node.name}")
        with node.client() as client:
            ground.compare(read_ground(client, ground, locale), f"{what}: {node.name} at {total}")
    return total


def same_order(nodes, known, total, sent, what, locale=LOCALE):
    """Each node's feed tells every revision once, in order, with the rectangle of its request."""
    for node in nodes:
        events = replay(node.port, f"/v1/locales/{locale}/events", known, total, f"{what}: events")
        equal([int(event[0]) for event in events], list(range(known + 1, total + 1)),
              f"{what}: ids of the events of {node.name}")
        for (_, kind, data), request in zip(events, sent):
            equal((kind, data["revision"], data["rect"]),
                  ("edit", request.revision, list(request.edit.rect)), f"{what}: {node.name}")
