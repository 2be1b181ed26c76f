"""The engine is away: reads go on and say how old they may be, writes are refused, then all is equal.

Rounds differ in how it goes: ended by its operator, killed, or standing still (SIGSTOP: no connection
is refused, no answer comes, as behind a network that drops packets). While it is away readers on both
nodes ask without a pause; each answer must be 200, with the height of the last revision, and once the
node has noticed with Kota-Staleness. A write must be refused with 503 and Retry-After, in bounded time,
and does not keep the node busy until the engine is back.
/readyz turns 503 when the staleness passes --max-staleness, /livez never does. After the return writes
work and both nodes are equal.

KOTA_CLUSTER_AWAY_ROUNDS   (5)
KOTA_CLUSTER_AWAY_SECONDS  (60)
"""
import os
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "torture")]
from table import IS_SHORT, attempt, finish, percentile, setting  # noqa: E402
from nodes import (CATCH_UP_S, LOCALE, Request, Sender, catch_up, end_all, first_ground, fleet,  # noqa: E402
                   settle, wait_until)
from postgres import Server  # noqa: E402

from daemon import SLOW  # noqa: E402
from ground import Client, random_edit  # noqa: E402
from tap import HANG_S, check, equal, near, rng  # noqa: E402

ROUNDS = setting("KOTA_CLUSTER_AWAY_ROUNDS", 5)
SECONDS = setting("KOTA_CLUSTER_AWAY_SECONDS", 60.0)
MAX_STALENESS_S = max(2, round(SECONDS / 4))
NOTICE_S = HANG_S if IS_SHORT else 15 * SLOW      # until a node knows that an engine which says nothing is away
WRITE_S = HANG_S if IS_SHORT else 12 * SLOW       # a write is refused by then
KINDS = ("kill", "pause", "stop")


class Asker(threading.Thread):
    """Heights at one sample again and again; each must be that of the model."""

    def __init__(self, node, ground, c, r):
        super().__init__(daemon=True)
        self.port, self.name_, self.want = node.port, node.name, ground.h[r * ground.cols + c]
        self.target = f"/v1/locales/{LOCALE}/height?interp=nearest&x={c}&y={r}"
        self.is_over, self.error, self.count, self.stale, self.oldest = threading.Event(), None, 0, 0, 0.0

    def run(self):
        try:
            with Client(self.port, timeout=HANG_S) as client:
                while not self.is_over.wait(0.02 if IS_SHORT else 0.005):
                    answer = client.get(self.target)
                    check(answer.status == 200, f"a read on {self.name_}: {answer}")
                    near(answer.json["height"], self.want, f"the height on {self.name_}", rel=0)
                    self.count += 1
                    if "kota-staleness" in answer.headers:
                        self.stale += 1
                        self.oldest = max(self.oldest, float(answer.headers["kota-staleness"]))
        except BaseException as error:
            self.error = error


def refused_write(node, request):
    """Seconds that a refused write took; one whose commit was on its way may have no answer yet."""
    with node.client(timeout=HANG_S) as client:
        start = time.monotonic()
        check(not request.ask(client), f"a write on {node.name} was taken without an engine")
        return time.monotonic() - start


def go(server, kind):
    {"kill": server.kill, "pause": server.pause, "stop": server.stop}[kind]()


def come_back(server, kind):
    if kind == "pause":
        server.pause(signal.SIGCONT)
    else:
        server.start()


def probe(node, path):
    return node.get(path).status


def processor_s(node):
    with open(f"/proc/{node.daemon.process.pid}/stat", encoding="ascii") as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def one_round(server, nodes, ground, known, random, number):
    """(the last revision, reads, slowest refusal, seconds until equal, staleness told at most)"""
    kind, name = KINDS[number % len(KINDS)], f"round {number}"
    senders = [Sender(node, ground.copy(), random.random(), f"away-{number}-{node.name}", count=20)
               for node in nodes]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    end_all(senders)
    known = settle(nodes, ground, known, [request for s in senders for request in s.sent], name, random)
    askers = [Asker(node, ground, random.randrange(ground.cols), random.randrange(ground.rows))
              for node in nodes for _ in range(2)]
    go(server, kind)
    gone, busy = time.monotonic(), [processor_s(node) for node in nodes]
    for asker in askers:
        asker.start()
    waiting, slowest = [], 0.0
    for node in nodes:
        for n in range(2):
            waiting.append(Request(f"away-{number}-w{node.name}{n}", random_edit(
                random, ground, 8, (), 0), n == 0))
            slowest = max(slowest, refused_write(node, waiting[-1]))
    check(slowest <= WRITE_S, f"{name}: a write was refused after {slowest:.1f} s")
    for node in nodes:
        wait_until(lambda node=node: probe(node, "/readyz") == 503, f"{name}: /readyz of {node.name}",
                   MAX_STALENESS_S + NOTICE_S)
        equal(probe(node, "/livez"), 200, f"{name}: /livez of {node.name}")
        stale = node.get(f"/v1/locales/{LOCALE}").json["staleness_s"]
        check(stale >= MAX_STALENESS_S, f"{name}: {node.name} says that it is {stale} s old")
        check(node.stats()["staleness_s"] >= MAX_STALENESS_S, f"{name}: staleness in /v1/stats")
    time.sleep(max(0.0, gone + SECONDS * SLOW ** 0.5 - time.monotonic()))
    for node, before in zip(nodes, busy):
        took, of = processor_s(node) - before, time.monotonic() - gone
        check(took < of / 2, f"{name}: {node.name} was busy for {took} of {of:.1f} s without an engine")
    come_back(server, kind)
    back = time.monotonic()
    end_all(askers)
    for asker in askers:
        check(asker.count > SECONDS and asker.stale > 0, f"{name}: {asker.count} reads, "
              f"{asker.stale} of them with Kota-Staleness")
    for node in nodes:
        wait_until(lambda node=node: probe(node, "/readyz") == 200, f"{name}: {node.name} ready again")
    known = settle(nodes, ground, known, waiting, name, random)
    for node in nodes:
        answer = node.get(f"/v1/locales/{LOCALE}")
        equal(answer.headers.get("kota-staleness"), None, f"{name}: Kota-Staleness of {node.name}")
        equal(answer.json["staleness_s"], 0, f"{name}: staleness_s of {node.name}")
    return (known, sum(asker.count for asker in askers), slowest, time.monotonic() - back,
            max(asker.oldest for asker in askers))


def main():
    what, amount = "engine away (killed, standing still, stopped)", f"{ROUNDS} times {SECONDS:g} s"
    must = "reads never fail; writes 503; then equal again"
    with attempt(what, amount, must) as tell:
        random = rng("cluster away")
        with Server() as server, fleet(server.conninfo(), args=(
                "--max-staleness", str(MAX_STALENESS_S))) as nodes:
            ground, known = first_ground(nodes[0], random)
            catch_up(nodes[1], known, "the first ground")
            told = []
            for number in range(ROUNDS):
                known, *figures = one_round(server, nodes, ground, known, random, number)
                told.append(figures)
        reads, refusals, times, ages = zip(*told)
        tell(f"{sum(reads)} reads, none failed, {max(ages):.0f} s old at most; writes "
             f"refused within {max(refusals):.1f} s; equal {percentile(times, 0.5):.1f} s (median), {max(times):.1f} s "
             "(longest) after its return", IS_SHORT or max(times) <= CATCH_UP_S)


if __name__ == "__main__":
    main()
    finish()
