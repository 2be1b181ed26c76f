"""kill -9 of a daemon, SIGSTOP of one beyond its lease, kill of the primary and promotion: in rounds.

Two nodes, two senders on each. Each round one fault strikes at a random moment. Afterwards every
request that got no answer is sent again under its key, on either node: all requests must have one
revision each, without a gap, and both nodes the ground of the replay. How long that took is measured
from the end of the fault (the daemon started again, SIGCONT, the promotion done) until both nodes have
everything that was acknowledged meanwhile and take writes.

The primary is killed with all of its processes, as if its machine had gone, and the synchronous
standby promoted; a new standby is copied from it before the next round.

usage: kills.py [daemon] [pause] [primary]     all without one

KOTA_CLUSTER_ROUNDS  (30) of each
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "torture")]
from table import IS_SHORT, finish, percentile, row, setting  # noqa: E402
from nodes import (CATCH_UP_S, LEASE_MS, Sender, catch_up, end_all, first_ground, fleet,  # noqa: E402
                   same_order, settle, wait_until)
from postgres import Pair  # noqa: E402

from daemon import SLOW  # noqa: E402
from tap import Failure, Skip, rng  # noqa: E402

ROUNDS = setting("KOTA_CLUSTER_ROUNDS", 30)


class Round:
    """What a fault does to nodes under senders; `ready` is when it was over."""

    def __init__(self, pair, nodes, senders, random, name):
        self.pair, self.nodes, self.senders, self.random, self.name = pair, nodes, senders, random, name
        self.ready = None

    def begin(self):
        for sender in self.senders:
            sender.start()
        time.sleep(self.random.uniform(0.05, 0.6) * SLOW ** 0.5)

    def daemon(self):
        """One node is killed and starts again, while the other goes on."""
        victim = self.random.choice(self.nodes)
        victim.kill()
        time.sleep(self.random.uniform(0, 0.5))
        victim.start()
        self.ready = time.monotonic()
        catch_up(victim, max(node.revision() for node in self.nodes), self.name)

    def pause(self):
        """One node stands still for longer than its lease; the other must go on meanwhile."""
        victim = self.random.choice(self.nodes)
        other = next(node for node in self.nodes if node is not victim)
        victim.pause()
        try:
            time.sleep(self.random.uniform(1.1, 1.6) * LEASE_MS / 1000)
            before = other.revision()
            wait_until(lambda: other.revision() > before, f"{self.name}: writes beside a paused node")
        finally:
            victim.resume()
        self.ready = time.monotonic()
        catch_up(victim, other.revision(), self.name)

    def primary(self):
        """The engine's machine is gone; its synchronous standby takes over."""
        self.pair.primary.kill()
        time.sleep(self.random.uniform(0, 0.5))
        self.pair.promote()
        self.ready = time.monotonic()
        for sender in self.senders:
            wait_until(lambda sender=sender: sender.last_answer > self.ready or sender.error,
                       f"{self.name}: a write through {sender.node.name}")

    def settle(self, ground, known, sent):
        """The last revision, and how long everything took to be everywhere."""
        end_all(self.senders)
        acknowledged = max([request.revision for request in sent if request.revision], default=known)
        for node in self.nodes:
            catch_up(node, acknowledged, self.name)
        took = time.monotonic() - self.ready
        return settle(self.nodes, ground, known, sent, self.name, self.random), took


def rounds(fault, count, pair, nodes, ground, known, random):
    """(the last revision, edits, of them without an answer, seconds of each catch-up)"""
    edits = cut = 0
    times = []
    for number in range(count):
        name = f"{fault} {number}"
        if pair.standby is None:
            pair.add_standby()
        senders = [Sender(node, ground.copy(), random.random(), f"{fault}-{number}-{node.name}{i}",
                          pause_s=0.05 if IS_SHORT and fault == "pause" else 0.01)
                   for node in nodes for i in range(2)]
        now = Round(pair, nodes, senders, random, name)
        try:
            now.begin()
            getattr(now, fault)()
        finally:
            for sender in senders:
                sender.is_over.set()
        for sender in senders:
            sender.join()
        sent = [request for sender in senders for request in sender.sent]
        cut += sum(request.revision is None for request in sent)
        before, (known, took) = known, now.settle(ground, known, sent)
        same_order(nodes, before, known, sent, name)
        edits += len(sent)
        times.append(took)
    return known, edits, cut, times


WORDS = {"daemon": "kill -9 of a daemon", "pause": "SIGSTOP of a daemon beyond its lease",
         "primary": "kill of the primary, promotion of the synchronous standby"}


def main():
    chosen = sys.argv[1:] or list(WORDS)
    must = f"no acknowledged edit lost, none twice; caught up within {CATCH_UP_S} s"
    done = []
    try:
        random = rng("cluster kills")
        with Pair() as pair, fleet(pair.conninfo()) as nodes:
            ground, known = first_ground(nodes[0], random)
            catch_up(nodes[1], known, "the first ground")
            for fault in chosen:
                done.append(fault)
                known, edits, cut, times = rounds(fault, ROUNDS, pair, nodes, ground, known, random)
                row(WORDS[fault], f"{ROUNDS} rounds", must,
                    f"{edits} edits, {cut} without an answer sent again; caught up in "
                    f"{percentile(times, 0.5):.1f} s (median), {max(times):.1f} s (longest)",
                    edits > ROUNDS and (IS_SHORT or max(times) <= CATCH_UP_S))
    except Skip as reason:
        for fault in chosen:
            row(WORDS[fault], f"{ROUNDS} rounds", must, str(reason), None)
    except Failure as failure:
        row(WORDS[done[-1]] if done else "the first ground", f"{ROUNDS} rounds", must,
            str(failure)[:400], False)


if __name__ == "__main__":
    main()
    finish()
