"""Worlds of many small locales: what they hold, how long a start takes, what a world call costs.

Each locale is a field of 33 x 33 samples in a row of its own place, made through the API and kept in a
store. A start is from the process to /readyz. Calls are asked one at a time over one connection, at the
same places of the first locale and of others, in turns with the daemon of 100 locales.

    python3 tests/bench/bench_locales.py [LOCALES ...]       (default 10000 100000)
"""
import concurrent.futures
import http.client
import json
import math
import os
import random
import statistics
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from daemon import Daemon  # noqa: E402
from rows import row_most  # noqa: E402

SIDE, FEW, WRITERS, ROUNDS, ASKS = 33, 100, 16, 5, 400
SECTION = "Many locales"
ASKED = {10000: (300, 1.5), 100000: (None, 15)}  # MB, seconds of a start
ASKED_CALL = 1.5


def place(number, count):
    across = math.isqrt(count - 1) + 1
    return [40.0 * (number % across), 40.0 * (number // across), 0.0]


def make(port, first, count, locales):
    """Locales first, first + WRITERS, ... of a world of `locales`."""
    random.seed(first)
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for number in range(first, count, WRITERS):
        heights = struct.pack(f"<{SIDE * SIDE}f", *(random.uniform(-1, 1) for _ in range(SIDE * SIDE)))
        manifest = json.dumps({"placement": {"translation": place(number, locales),
                                             "rotation": [0, 0, 0, 1]}})
        for path, media, body in ((f"/v1/locales/l{number:06d}", "application/json", manifest),
                                  (f"/v1/locales/l{number:06d}/layers/g?cols={SIDE}&rows={SIDE}&spacing=1,1",
                                   "application/vnd.kota.f32", heights)):
            connection.request("PUT", path, body, {"Content-Type": media})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 201:
                raise SystemExit(f"bench_locales: PUT {path} is answered by {answer.status}")


def fill(folder, locales):
    """Seconds that it takes to make them."""
    with Daemon("--data", folder) as daemon:
        begin = time.perf_counter()
        with concurrent.futures.ProcessPoolExecutor(WRITERS) as pool:
            for done in [pool.submit(make, daemon.port, first, locales, locales) for first in range(WRITERS)]:
                done.result()
        return time.perf_counter() - begin


def started(folder):
    begin = time.perf_counter()
    daemon = Daemon("--data", folder)
    return daemon, time.perf_counter() - begin


def ask(connection, path, body):
    begin = time.perf_counter()
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise SystemExit(f"bench_locales: POST {path} is answered by {answer.status}")
    return time.perf_counter() - begin


def calls(locales):
    """Bodies of single questions at random locales."""
    random.seed(locales)
    points = [[x + random.uniform(1, 31), y + random.uniform(1, 31), 5.0]
              for x, y, _ in (place(random.randrange(locales), locales) for _ in range(ASKS))]
    return {"/v1/locate": [json.dumps({"points": [p]}) for p in points],
            "/v1/ray": [json.dumps({"rays": [{"origin": p, "direction": [0.1, 0.2, -1]}]}) for p in points],
            "/v1/contact": [json.dumps({"points": [p]}) for p in points]}


def measure(few, many, locales):
    bodies = {FEW: calls(FEW), locales: calls(locales)}
    times = {}
    connections = {FEW: http.client.HTTPConnection("127.0.0.1", few.port),
                   locales: http.client.HTTPConnection("127.0.0.1", many.port)}
    for _ in range(ROUNDS):
        for path in bodies[FEW]:
            for count, connection in connections.items():
                each = [ask(connection, path, body) for body in bodies[count][path]]
                times.setdefault((path, count), []).append(statistics.median(each))
    for path in bodies[FEW]:
        base, own = (min(times[path, count]) for count in (FEW, locales))
        row_most(SECTION, f"{path}, {locales} locales", f"of {FEW}", own / base, ASKED_CALL,
                 f"{base * 1e6:.0f} us, {own * 1e6:.0f} us")


def run(locales):
    most_mb, most_s = ASKED.get(locales, (None, None))
    with tempfile.TemporaryDirectory() as few_folder, tempfile.TemporaryDirectory() as folder:
        fill(few_folder, FEW)
        made_s = fill(folder, locales)
        with Daemon() as empty:
            empty_mb = empty.memory_kib() / 1e3
        few, _ = started(few_folder)
        many, start_s = started(folder)
        with few, many:
            own_mb = many.memory_kib() / 1e3
            row_most(SECTION, f"memory of {locales} locales of {SIDE} x {SIDE}", "MB", own_mb, most_mb or 0,
                     f"{(own_mb - empty_mb) * 1e3 / locales:.1f} KB a locale")
            row_most(SECTION, f"start with {locales} locales", "s", start_s, most_s or 0)
            row_most(SECTION, f"making {locales} locales", "ms each", made_s * 1e3 / locales)
            measure(few, many, locales)


if __name__ == "__main__":
    for wanted in [int(a) for a in sys.argv[1:]] or [10000, 100000]:
        run(wanted)
