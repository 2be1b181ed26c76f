"""How long until a standing question has its new answer: 100,000 points, edits of 40 m.

One stream reads the watch, another connection edits: a brush of 40 m across over some of the points.
Measured is the time from the answer to the edit until the event with its revision has come whole.
The editor waits for it, then makes the next edit.

    python3 tests/bench/bench_watches.py [POINTS [EDITS]]
"""
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from daemon import Daemon  # noqa: E402
from events import Stream  # noqa: E402
from fields import put_terrain  # noqa: E402
from oracle import Terrain  # noqa: E402
from rows import row_most  # noqa: E402

POINTS, EDITS, SIDE, SPACING = 100000, 1000, 401, 5.0
ASKED_MS = 10.0


def fill(daemon, count):
    """(a watch of so many contacts on flat ground of 2 km, some of their places)"""
    put_terrain(daemon, "wide", Terrain(SIDE, SIDE, [[0] * SIDE for _ in range(SIDE)],
                                        (SPACING, SPACING), (0.0, 0.0)))
    watch, places = None, []
    for first in range(0, count, 10000):
        ids = list(range(first, min(first + 10000, count)))
        points = [[random.uniform(0, 2000), random.uniform(0, 2000), 50] for _ in ids]
        places += points[:1000]
        body = {"contact": {"points": points, "ids": ids}}
        if watch:
            daemon.ok("PATCH", watch, {"add": body})
        else:
            watch = daemon.ask("POST", "/v1/locales/wide/watches", body).headers["location"]
    return watch, places


def main():
    count, edits = (int(value) for value in (sys.argv[1:] + [POINTS, EDITS][len(sys.argv) - 1:]))
    daemon = Daemon()
    come, news = {}, threading.Condition()
    try:
        watch, places = fill(daemon, count)
        stream = Stream(daemon.port, watch)
        seen = 0
        while seen < count:
            seen += len(stream.event().data["answers"])

        def read():
            while len(come) < edits:
                event = stream.event()
                with news:
                    come[event.data["revision"]] = time.perf_counter()
                    news.notify()

        reader = threading.Thread(target=read)
        reader.start()
        times = []
        for _ in range(edits):
            center = random.choice(places)[:2]
            edit = daemon.ok("POST", "/v1/locales/wide/edits", {"brush": {
                "shape": "raise", "center": center, "radius": 20, "amount": 1}})
            acknowledged = time.perf_counter()
            with news:
                news.wait_for(lambda: edit["revision"] in come)
            times.append(max(0.0, come[edit["revision"]] - acknowledged))
        reader.join()
        stream.close()
    finally:
        daemon.kill()
    times.sort()
    p50, p99 = (1e3 * times[len(times) * part // 100] for part in (50, 99))
    print(f"  {count} points, {edits} edits: pushed after {p50:.2f} ms, p99 {p99:.2f} ms")
    row_most("Watches", f"{count} contacts, p99 until pushed", "1 ms", p99, ASKED_MS)


main()
