"""Daemons of one shared log: how soon an edit is seen on the other node, and what a second node adds.

Delay: an edit of 16 x 16 samples is sent to one node; one thread polls that connection and a stream of
events of the other node, and notes when the answer and when the event are there (an event is sent after
its revision is published, so that who asks then sees it). Beside it, on the same server and in turns,
peer_postgres.c: a bare append of as many bytes, in the same shape of transaction, with NOTIFY, and a
follower that reads the row. PostgreSQL's data is on a disk, with fsync, without a standby.

Reads: through HAProxy, by turns before one node and before two. They are such as cost a daemon more than
the way there: tiles that it encodes anew each time (no cache), batches of contacts. Each daemon is pinned
to a processor of its own, as if it were a machine; HAProxy and the generator take what is left, so that
on a machine of two processors the pair cannot reach 2. Where it is allowed all of them run before other
work (SCHED_RR): a balancer waits for the slower of two processors, which else is the one that others use.
HAProxy's configuration is the one of deploy/docker/haproxy-cluster.cfg with other addresses.

Called by `make bench-all`. Skipped where there is no PostgreSQL, no HAProxy or one processor only.
"""
import array
import json
import math
import os
import select
import socket
import statistics
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "api"), os.path.join(HERE, "..", "cluster"),
                os.path.join(HERE, "..", "torture")]
from rows import row, row_most  # noqa: E402

from background import program  # noqa: E402
from balancer import Balancer  # noqa: E402
from daemon import BIN_DIR, F32  # noqa: E402
from nodes import catch_up, fleet  # noqa: E402
from postgres import Server  # noqa: E402
from table import go_first, go_like_others  # noqa: E402
from tap import Skip  # noqa: E402

SECTION = "Cluster"
SIDE, EDIT = 1024, 16
ROUNDS, EDITS = 5, 120
READ_ROUNDS, READ_SECONDS, CONNECTIONS = 7, 0.7, 8
FLAGS = ("--loops", "1", "--workers", "1", "--tile-cache", "0", "--max-queue-ms", "60000")
PEER = os.path.join(BIN_DIR, "bench", "peer_postgres")
CORES = sorted(os.sched_getaffinity(0))


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


# ---- delay ------------------------------------------------------------------------------------------


class Events:
    """A stream of events on a plain socket, for poll()."""

    def __init__(self, port, locale):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall(f"GET /v1/locales/{locale}/events HTTP/1.1\r\nHost: kota\r\n\r\n".encode())
        self.text = b""
        while b": kota" not in self.text:
            self.read()

    def read(self):
        more = self.socket.recv(1 << 16)
        if not more:
            raise SystemExit(f"bench_cluster: the stream ended: {self.text[-500:]!r}")
        self.text += more

    def has(self, revision):
        return b"\nid: %d\n" % revision in self.text


def one_edit(connection, events, n, revision):
    """(until it was acknowledged, from then until the other node's event) in microseconds"""
    column, line = (n * 397) % (SIDE - EDIT), (n * 211) % (SIDE - EDIT)
    body = struct.pack("<f", 0.25) * (EDIT * EDIT)
    head = (f"POST /v1/locales/a/edits?rect={column},{line},{EDIT},{EDIT}&op=add HTTP/1.1\r\n"
            f"Host: kota\r\nContent-Type: {F32}\r\nContent-Length: {len(body)}\r\n\r\n")
    start = time.perf_counter()
    connection.sendall(head.encode() + body)
    acknowledged = seen = None
    while acknowledged is None or seen is None:
        ready = select.select([connection, events.socket], [], [], 10)[0]
        if not ready:
            raise SystemExit("bench_cluster: neither answer nor event for 10 s")
        if connection in ready:
            answer = connection.recv(1 << 16)
            acknowledged = time.perf_counter()
            if not answer.startswith(b"HTTP/1.1 200 ") or b'"revision":%d,' % revision not in answer:
                raise SystemExit(f"bench_cluster: an edit of revision {revision}: {answer!r}")
        if events.socket in ready:
            events.read()
            if events.has(revision):
                seen, events.text = time.perf_counter(), b"\n"
    return (acknowledged - start) * 1e6, (seen - acknowledged) * 1e6


def edits(nodes, count):
    """Two lists of microseconds."""
    revision = nodes[0].revision("a")
    catch_up(nodes[1], revision, "the last round", locale="a")
    events = Events(nodes[1].port, "a")
    with socket.create_connection(("127.0.0.1", nodes[0].port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = [one_edit(connection, events, revision + n, revision + n + 1) for n in range(count)]
    events.socket.close()
    return zip(*times)


def appends(server, count):
    done = subprocess.run([PEER, server.conninfo(), str(4 * EDIT * EDIT), str(count)], check=True,
                          capture_output=True, text=True)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def delay(server, nodes):
    all_times = {"kotad": ([], []), "bare": ([], [])}
    for number in range(ROUNDS + 1):
        for name, (took, later) in (("kotad", edits(nodes, EDITS)), ("bare", appends(server, EDITS))):
            if number:  # the first round warms up
                all_times[name][0].extend(took)
                all_times[name][1].extend(later)
    print(f"\nAn edit of {EDIT}x{EDIT} samples on one node until it is seen on the other "
          f"({ROUNDS} rounds of {EDITS}; PostgreSQL on a disk, fsync on)")
    figures = {}
    for name, (took, later) in all_times.items():
        whole = [a + b for a, b in zip(took, later)]
        figures[name] = {what: (percentile(values, 0.5), percentile(values, 0.99)) for what, values in
                         (("acknowledged", took), ("seen after that", later), ("both", whole))}
        print(f"  {name:6} " + ", ".join(f"{what} p50 {low / 1e3:.2f} ms p99 {high / 1e3:.2f} ms"
                                         for what, (low, high) in figures[name].items()))
    ours, bare = figures["kotad"], figures["bare"]
    for what, work in (("seen after that", "from acknowledgement to visibility on the other node"),
                       ("both", "from sending an edit to visibility on the other node")):
        for i, label in enumerate(("p50", "p99")):
            row_most(SECTION, f"{work}, {label}", "bare PostgreSQL append + NOTIFY",
                     ours[what][i] / bare[what][i] if bare[what][i] > 0 else 0.0, 0,
                     f"{ours[what][i] / 1e3:.2f} ms beside {bare[what][i] / 1e3:.2f} ms")


# ---- reads ------------------------------------------------------------------------------------------


def tasks(node):
    return [int(task) for task in os.listdir(f"/proc/{node.daemon.process.pid}/task")]


def pin(node, core):
    for task in tasks(node):
        os.sched_setaffinity(task, [core])


def rate(balancer, what):
    """Answers a second; none may fail."""
    done = subprocess.run([os.path.join(BIN_DIR, "kota"), "bench", *what, "--connections", str(CONNECTIONS),
                           "--seconds", str(READ_SECONDS), "--warm-up", "0.2", "--url",
                           f"http://127.0.0.1:{balancer.port}"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench_cluster: kota bench: {done.stderr}")
    document = json.loads(done.stdout)
    if document["failed"]:
        raise SystemExit(f"bench_cluster: some answers were errors: {document}")
    return document["requests_per_s"]


READS = {
    "tiles as PNG": [f"/v1/locales/a/tiles/0/{column}/{line}?format=png16"
                     for column in range(SIDE // 256) for line in range(SIDE // 256)],
    "1,000 contacts, JSON": ["a", "--ask", "contact"],
}


def reads(nodes):
    if len(CORES) < 2:
        print("reads of two daemons: skipped, there is one processor only")
        return
    among = go_first()  # HAProxy and the generator, too, which this process starts
    for node, core in zip(nodes, CORES):
        pin(node, core)
        for task in tasks(node) if not among else ():
            os.sched_setscheduler(task, os.SCHED_RR, os.sched_param(1))
    print(f"\nReads through HAProxy, a second{among}")
    with Balancer([nodes[0].port], 1) as one, Balancer([node.port for node in nodes], 1) as two:
        for name, what in READS.items():
            rounds = [(rate(one, what), rate(two, what)) for _ in range(READ_ROUNDS + 1)][1:]
            ratio = statistics.median(both / alone for alone, both in rounds)
            alone, both = (statistics.median(column) for column in zip(*rounds))
            print(f"  {name:22} one daemon {alone:8.0f}, two {both:8.0f}")
            row(SECTION, f"reads of two daemons behind HAProxy: {name}", "one daemon behind HAProxy", ratio, 0,
                f"a processor for each daemon, {len(CORES)} for them, HAProxy and the generator{among}")
    go_like_others()


def heights():
    """A body of float32 that PNG cannot make small."""
    values = array.array("f", (900 * abs(math.sin(0.013 * (n % SIDE)) * math.cos(0.017 * (n // SIDE)))
                               + n * 7919 % 97 / 10 for n in range(SIDE * SIDE)))
    return values.tobytes()


def main():
    try:
        program("haproxy")
        with Server(on_disk=True) as server, fleet(server.conninfo(), args=FLAGS) as nodes:
            with nodes[0].client() as client:
                for answer in (client.ask("PUT", "/v1/locales/a", {}), client.ask(
                        "PUT", f"/v1/locales/a/layers/ground?spacing=1,1&cols={SIDE}&rows={SIDE}",
                        heights(), media=F32)):
                    if answer.status != 201:
                        raise SystemExit(f"bench_cluster: {answer}")
            catch_up(nodes[1], 2, "the ground", locale="a")
            delay(server, nodes)
            reads(nodes)
    except Skip as reason:
        print(f"cluster: skipped: {reason}")


if __name__ == "__main__":
    main()
