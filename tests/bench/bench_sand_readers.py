"""Readers while a patch of sand runs: height calls beside a simulation by the C engine.

One client asks for a height 1,000 times a second over one connection, at even times, far below what
the daemon can do: what is measured is how long an answer takes, not who gets the cores. Rounds in
which a patch of some 18,000 particles settles (as fast as the device goes, all granules awake) are
interleaved with rounds in which no patch is there; the last patch goes on until its body falls, which
is thrown up again for each round, and is measured then as well, also by a client that asks with
live=true. The medians of the rounds' 99th percentiles are compared. The simulation
takes every cycle that nobody else wants, so on few cores this is a test of priorities.

Called by `make bench`.
"""
import os
import socket
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from rows import row_most  # noqa: E402
from sand import RESTING, body, start, until, wanted  # noqa: E402

RATE, ROUND_SECONDS, ROUNDS, ACTIVE_ROUNDS = 1000, 1.5, 7, 3
ASKED = 1.5
SECTION = "Sand"


def ask(daemon, seconds=ROUND_SECONDS, more=""):
    """(median, 99th percentile) of the times of the answers, seconds."""
    request = f"GET /v1/locales/land/height?x=7.25&y=9.75{more} HTTP/1.1\r\nHost: kota\r\n\r\n".encode()
    times, due = [], time.perf_counter()
    with socket.create_connection(("127.0.0.1", daemon.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(int(seconds * RATE)):
            due += 1 / RATE
            time.sleep(max(0.0, due - time.perf_counter()))
            before = time.perf_counter()
            connection.sendall(request)
            answer = connection.recv(1 << 16)
            times.append(time.perf_counter() - before)
            if not answer.startswith(b"HTTP/1.1 200 ") or b'"ok"' not in answer:
                raise SystemExit(f"bench_sand_readers: no height: {answer[:300]!r}")
    times.sort()
    return times[len(times) // 2], times[len(times) * 99 // 100]


def patch(daemon, seed):
    answer = daemon.post("/v1/locales/land/patches", wanted(
        size=[8, 8], scale="medium", bodies=[body()], seed=seed))
    if answer.status != 201:
        raise SystemExit(f"bench_sand_readers: no patch: {answer}")
    return answer.headers["location"], answer.json["particles"]


def busy(daemon, place, state, more=""):
    """One round in which the patch is in this state, and is stepped."""
    before = until(daemon, place, state)
    while before["steps"] == 0:  # the first patch has the renderer compile its programs
        time.sleep(0.01)
        before = until(daemon, place, state)
    times = ask(daemon, more=more)
    after = daemon.ok("GET", place)
    if after["state"] != state or after["steps"] <= before["steps"]:
        raise SystemExit(f"bench_sand_readers: the patch did not run: {after}")
    return times


def measure(daemon):
    quiet, settling, active, live = [], [], [], []
    ask(daemon, 0.5)
    for i in range(ROUNDS):
        quiet.append(ask(daemon))
        place, particles = patch(daemon, i)
        settling.append(busy(daemon, place, "settling"))
        if i + 1 < ROUNDS:
            daemon.ok("DELETE", place + "?discard=true")
    while len(active) < ACTIVE_ROUNDS:
        until(daemon, place, "active", "resting")
        daemon.ok("PATCH", place + "/bodies/0", {"velocity": [0, 0, 8]})
        active.append(busy(daemon, place, "active"))
        until(daemon, place, "active", "resting")
        daemon.ok("PATCH", place + "/bodies/0", {"velocity": [0, 0, 8]})
        live.append(busy(daemon, place, "active", "&live=true"))
    daemon.ok("DELETE", place + "?discard=true")
    quiet += [ask(daemon) for _ in range(ACTIVE_ROUNDS)]
    print(f"\nHeights beside a patch of {particles} particles on "
          f"{daemon.ok('GET', '/v1/stats')['patches']['device']['name']} ({RATE} requests/s)")
    for name, rounds in (("quiet", quiet), ("settling", settling), ("active", active), ("live=true", live)):
        p50, p99 = (statistics.median(column) * 1e6 for column in zip(*rounds))
        print(f"  {name:10} median {p50:6.0f} us, p99 {p99:6.0f} us  ({len(rounds)} rounds)")
    base = statistics.median(q[1] for q in quiet)
    for name, rounds in (("a height while a patch settles", settling),
                         ("a height while a patch is active", active),
                         ("a live height while a patch is active", live)):
        row_most(SECTION, f"p99 of {name}", "without a patch",
                 statistics.median(b[1] for b in rounds) / base, ASKED,
                 f"{particles} particles, C engine; {RATE} requests/s")


def main():
    with start("--gpu", "cpu", *RESTING) as daemon:
        measure(daemon)


if __name__ == "__main__":
    main()
