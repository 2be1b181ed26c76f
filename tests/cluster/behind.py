"""A node that was away for many edits, and comes back when the log is trimmed past it.

The other node takes the edits meanwhile, makes snapshots and trims the log, so that the one that
comes back must take a snapshot and the tail behind it; and more edits come while it does. From its
first answer on, what it serves of the locale must be no older than what was acknowledged before it
started, and equal to the replay. Then the same with a node that has never been there.

KOTA_CLUSTER_BEHIND  (10000) edits
"""
import contextlib
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "torture")]
from table import attempt, finish, setting  # noqa: E402
from nodes import LOCALE, Node, Sender, catch_up, end_all, first_ground, settle, wait_until  # noqa: E402
from postgres import Server  # noqa: E402

from daemon import ask_once  # noqa: E402
from ground import CUT, settle as until_it_listens  # noqa: E402
from tap import check, rng  # noqa: E402

EDITS = setting("KOTA_CLUSTER_BEHIND", 10000)
EVERY, KEEP = max(50, EDITS // 20), max(20, EDITS // 50)
SENDERS = 4


class Watcher(threading.Thread):
    """Asks a node that is starting for the locale's revision; keeps the lowest that it answered."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.daemon_, self.is_over, self.error = daemon, threading.Event(), None
        self.lowest, self.answers, self.refused = None, 0, 0

    def run(self):
        try:
            until_it_listens(self.daemon_)
            while not self.is_over.is_set():
                with contextlib.suppress(*CUT):
                    answer = ask_once(self.daemon_.port, f"/v1/locales/{LOCALE}")
                    if answer.status == 200:
                        revision = answer.json["revision"]
                        self.answers += 1
                        self.lowest = min(revision, self.lowest or revision)
                    else:
                        self.refused += 1
                        check(answer.status in (404, 503), f"a starting node: {answer}")
                time.sleep(0.005)
        except BaseException as error:
            self.error = error


def send(node, ground, random, label, count, pause_s=0.0):
    return [Sender(node, ground.copy(), random.random(), f"{label}{i}", count=count, pause_s=pause_s)
            for i in range(SENDERS)]


def first_of_log(server):
    return int(server.value(f"SELECT min(rev) FROM kota.edit WHERE locale = '{LOCALE}'"))


def come_back(server, node, other, ground, known, random, what):
    """(the last revision, seconds until it was ready, its counters)"""
    acknowledged = known
    tail = send(other, ground, random, f"tail-{node.name}-", None, 0.04)
    for sender in tail:
        sender.start()
    start = time.monotonic()
    node.start(wait=False)
    watcher = Watcher(node.daemon)
    watcher.start()
    try:
        node.daemon.wait_until_ready()
        took = time.monotonic() - start
        catch_up(node, acknowledged, what)
        time.sleep(0.5)
    finally:
        for sender in tail:
            sender.is_over.set()
        watcher.is_over.set()
        watcher.join()
    end_all([*tail, watcher])
    check(watcher.answers > 0, f"{what}: no answer")
    check(watcher.lowest >= acknowledged,
          f"{what}: it served revision {watcher.lowest}; {acknowledged} was acknowledged before it started")
    known = settle([other, node], ground, known, [r for s in tail for r in s.sent], what, random)
    return known, took, node.stats()


def session(server, nodes, edits):
    random = rng("cluster behind")
    here, away, late = nodes
    ground, known = first_ground(here, random)
    catch_up(away, known, "the first ground")
    had = known
    away.stop()
    senders = send(here, ground, random, "long-", edits // SENDERS)
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    end_all(senders)
    known = settle([here], ground, known, [r for s in senders for r in s.sent], "alone", random)
    wait_until(lambda: first_of_log(server) > had + 1, f"a log that is trimmed past revision {had}")
    first = first_of_log(server)
    found = []
    for node, what in ((away, "back again"), (late, "for the first time")):
        known, took, stats = come_back(server, node, here, ground, known, random, what)
        check(stats["snapshots_read"] >= 1, f"{what}: no snapshot was read: {stats}")
        found.append((took, stats["entries_read"]))
    return known - had, first - had, found


def main():
    what, amount = "a node that was away, log trimmed past it", f"{EDITS} edits"
    must = "catches up by snapshot and tail; serves only when equal"
    args = ("--snapshot-every", str(EVERY), "--keep-entries", str(KEEP))
    with attempt(what, amount, must) as tell:
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(Server())
            nodes = [stack.enter_context(Node(server.conninfo(), name, *args)) for name in "abc"]
            for node in nodes[:2]:
                node.start()
            edits, trimmed, found = session(server, nodes, EDITS)
        (took, entries), (took_new, entries_new) = found
        tell(f"{edits} edits, {trimmed} revisions trimmed; ready after {took:.1f} s with "
             f"a snapshot and {entries} entries, a new node after {took_new:.1f} s with {entries_new}", True)


if __name__ == "__main__":
    main()
    finish()
