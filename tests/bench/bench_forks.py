"""A thousand forks of a large locale, one edit each: memory, disk, and what a fork and a pin cost.

The locale is a field of 4096 x 4096 samples, made through the API and kept in a store. Each fork has one
sample changed at a place of its own. Memory is what the daemon has resident beside what it had with the
locale only; the disk is the data folder after an end, beside the same. A pin, a fork and an edit of one
sample are asked one at a time, in turns.

    python3 tests/bench/bench_forks.py [FORKS]       (default 1000)
"""
import array
import hashlib
import http.client
import json
import os
import random
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from daemon import Daemon  # noqa: E402
from rows import row_most  # noqa: E402

SIDE, ASKS = 4096, 30
SECTION = "Forks"
ASKED_MB, ASKED_DISK_MB, ASKED_CALL = 200, 100, 2.0


def ask(connection, method, path, body=b"", media="application/json"):
    """Seconds, and the answer."""
    begin = time.perf_counter()
    connection.request(method, path, body, {"Content-Type": media})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status not in (200, 201):
        raise SystemExit(f"bench_forks: {method} {path} is answered by {answer.status}: {content[:200]}")
    return time.perf_counter() - begin, content


def edit(connection, locale, column, row):
    body = json.dumps({"rect": [column, row, 1, 1], "op": "set", "heights": [random.uniform(-9, 9)]})
    return ask(connection, "POST", f"/v1/locales/{locale}/edits", body)[0]


def fork(connection, name):
    return ask(connection, "POST", "/v1/locales", json.dumps({"id": name, "from": "arena"}))[0]


def samples_of(connection):
    return hashlib.sha256(ask(connection, "GET", "/v1/locales/arena/layers/ground/samples")[1]).hexdigest()


def disk_mb(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder)
               for name in names) / 1e6


def fill(folder):
    """The disk in MB, and the hash of the samples, of the locale only."""
    heights = array.array("f", (random.uniform(-5, 5) for _ in range(SIDE))) * SIDE
    with Daemon("--data", folder) as daemon:
        connection = http.client.HTTPConnection("127.0.0.1", daemon.port)
        ask(connection, "PUT", "/v1/locales/arena", "{}")
        ask(connection, "PUT", f"/v1/locales/arena/layers/ground?cols={SIDE}&rows={SIDE}&spacing=1,1",
            heights.tobytes(), "application/vnd.kota.f32")
        digest = samples_of(connection)
    return disk_mb(folder), digest


def costs(daemon):
    """Medians of an edit, a fork and a pin, in seconds, in turns."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port)
    times = {"edit": [], "fork": [], "pin": []}
    for number in range(ASKS):
        place = random.randrange(SIDE), random.randrange(SIDE)
        times["edit"].append(edit(connection, "arena", *place))
        times["fork"].append(fork(connection, f"cost{number}"))
        times["pin"].append(ask(connection, "PUT", f"/v1/locales/arena/pins/cost{number % 16}")[0])
    return {kind: statistics.median(each) for kind, each in times.items()}


def run(forks):
    random.seed(forks)
    with tempfile.TemporaryDirectory() as folder:
        base_disk_mb, digest = fill(folder)
        with Daemon("--data", folder) as daemon:
            connection = http.client.HTTPConnection("127.0.0.1", daemon.port)
            base_mb = daemon.memory_kib() * 1.024e-3
            for number in range(forks):
                fork(connection, f"match{number}")
            forked_mb = daemon.memory_kib() * 1.024e-3
            for number in range(forks):
                edit(connection, f"match{number}", random.randrange(SIDE), random.randrange(SIDE))
            own_mb = daemon.memory_kib() * 1.024e-3
            if samples_of(connection) != digest:
                raise SystemExit("bench_forks: the locale of the forks has changed")
        own_disk_mb = disk_mb(folder)
        row_most(SECTION, f"memory of {forks} forks of {SIDE} x {SIDE}, one edit each", "MB",
                 own_mb - base_mb, ASKED_MB, f"{(forked_mb - base_mb) * 1e3 / forks:.1f} KB a fork, "
                 f"{(own_mb - forked_mb) * 1e3 / forks:.1f} KB an edit; {base_mb:.0f} MB before")
        row_most(SECTION, f"disk of {forks} forks, one edit each", "MB", own_disk_mb - base_disk_mb,
                 ASKED_DISK_MB, f"{base_disk_mb:.0f} MB before")
        begin = time.perf_counter()
        with Daemon("--data", folder) as daemon:
            row_most(SECTION, f"start with {forks} forks", "s", time.perf_counter() - begin)
            row_most(SECTION, f"memory of {forks} forks after a start", "MB",
                     daemon.memory_kib() * 1.024e-3 - base_mb, ASKED_MB)
            each = costs(daemon)
            for kind in ("fork", "pin"):
                row_most(SECTION, f"{kind} of {SIDE} x {SIDE}", "an edit of a sample", each[kind] / each["edit"],
                         ASKED_CALL, f"{each[kind] * 1e3:.2f} and {each['edit'] * 1e3:.2f} ms")


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
