"""Two loops for twenty minutes: reads, edits, followers and uploads, every answer judged.

The readers of sharing.py ask in every way while a writer commits edits; an answer is judged at
once against the samples of the revision that it names, of which the last few hundred are kept.
Followers must be told every edit, in order. An uploader replaces a layer and a mesh of another
locale and reads back what it wrote. From the third minute on neither memory nor files may grow.

KOTA_SOAK_SECONDS  (1200)
"""
import collections
import math
import os
import statistics
import tempfile
import threading
import time

from table import fds_of, finish, row, setting

from daemon import F32, SLOW, Daemon
from events import Stream
from ground import Client, Ground, floats, from_bytes, hills, put_ground, read_ground, to_bytes
from sharing import BASE, COLS, ROWS, Reader, Writer, judge
from mesh_oracle import obj, rectangle
from tap import check, equal, rng

SECONDS = setting("KOTA_SOAK_SECONDS", 1200)
SETTLE_S = min(180.0, SECONDS / 3)
GROWTH_MAX = 0.02
EDIT_PAUSE_S = 0.04
VERSIONS_KEPT = 400
READERS, FOLLOWERS = 3, 2
SIDE = 300
UP = "/v1/locales/up"


class Keeper(Writer):
    """A writer that goes on until its time is over, and forgets old versions."""

    def __init__(self, port, ground, revision):
        super().__init__(port, ground, revision, 0, "soak edits")
        self.order = collections.deque([revision])

    def run(self):
        end = time.monotonic() + SECONDS
        try:
            with Client(self.port) as client:
                while time.monotonic() < end:
                    self.commit(client)
                    self.forget()
                    time.sleep(EDIT_PAUSE_S)
                self.is_done = True
                self.commit(client)  # wakes the followers, who then see that it is over
        except BaseException as error:
            self.error = error
        finally:
            self.is_done = True

    def forget(self):
        self.order.append(self.acknowledged)
        self.edits.clear()
        while len(self.order) > VERSIONS_KEPT:
            del self.versions[self.order.popleft()]


class Judging(Reader):
    """A reader that judges each answer when it comes."""

    judged = 0

    def keep(self, revision, points, values, what):
        self.got = [(revision, points, values, what)]
        judge(self, self.writer.versions)
        self.judged += 1
        return revision


class Follower(threading.Thread):
    """Every revision once, in order."""

    def __init__(self, writer, port):
        super().__init__()
        self.writer, self.port, self.error, self.told = writer, port, None, 0

    def run(self):
        try:
            last = self.writer.acknowledged
            with Stream(self.port, BASE + "/events", {"Last-Event-ID": str(last)}) as stream:
                while not self.writer.is_done or last < self.writer.acknowledged:
                    event = stream.event()
                    equal(event.id, last + 1, "the next event")
                    last, self.told = last + 1, self.told + 1
        except BaseException as error:
            self.error = error


class Uploader(threading.Thread):
    """Replaces a layer and a mesh, and reads both back."""

    def __init__(self, writer, port):
        super().__init__()
        self.writer, self.port, self.error, self.done = writer, port, None, 0

    def run(self):
        try:
            with Client(self.port) as client:
                equal(client.ask("PUT", UP, {}).status, 201, "PUT")
                while not self.writer.is_done:
                    self.turn(client)
                    self.done += 1
                    time.sleep(0.2)
        except BaseException as error:
            self.error = error

    def turn(self, client):
        n = self.done
        ground = Ground(SIDE, SIDE, [n + c / 8 + r / 16 for r in range(SIDE) for c in range(SIDE)])
        put_ground(client, ground, "up", status=200 if n else 201)
        answer = client.ask("PUT", UP + "/layers/roof", obj([rectangle(0, 0, SIDE, SIDE,
                                                                      5000.0 + n)]),
                            media="model/obj")
        check(answer.status in (200, 201), f"the mesh: {answer}")
        places = [(7 * n + 31 * i) % (SIDE - 1) for i in range(40)]
        points = floats(v for i, c in enumerate(places) for v in (c, places[-i]))
        answer = client.ask("POST", UP + "/height?layer=ground", to_bytes(points), media=F32)
        equal(answer.status, 200, "heights")
        want = [n + points[2 * i] / 8 + points[2 * i + 1] / 16 for i in range(40)]
        equal(list(from_bytes(answer.body)), want, f"heights of upload {n}")
        answer = client.ask("POST", UP + "/ray", {"rays": [{"origin": [5, 5, 9e4],
                                                            "direction": [0, 0, -1]}]})
        near = answer.json["results"][0]["t"]
        check(math.isclose(near, 9e4 - 5000 - n, rel_tol=1e-9), f"the mesh {n} is at {near}")


def fill_the_feed(daemon):
    """The ring of events has a fixed size; it is filled first, so that filling it is no growth."""
    daemon.ok("PUT", "/v1/locales/fill", {}, status=201)
    put_ground(daemon, Ground(2, 2, [0] * 4), "fill")
    body = b'{"rect":[0,0,1,1],"op":"add","heights":[1]}'
    request = (f"POST /v1/locales/fill/edits HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
               f"\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
    count = daemon.ok("GET", "/v1/limits")["feed_events_max"]
    daemon.pipeline(request, count // 100 * 100 + 100)
    equal(daemon.ask("DELETE", "/v1/locales/fill").status, 204, "DELETE")


def watch(daemon, writer, samples):
    start = time.monotonic()
    while not writer.is_done:
        samples.append((time.monotonic() - start, daemon.memory_kib(), fds_of(daemon)))
        time.sleep(min(1, SECONDS / 80))


def soak():
    """(threads, samples of (second, KiB, files)); raises what any of them found."""
    samples = []
    with tempfile.TemporaryDirectory(prefix="kota-torture-") as folder, \
            Daemon("--loops", "2", "--data", os.path.join(folder, "data")) as daemon:
        daemon.ok("PUT", BASE, {}, status=201)
        ground = hills(rng("soak"), COLS, ROWS)
        if SECONDS >= 120:
            fill_the_feed(daemon)
        writer = Keeper(daemon.port, ground, put_ground(daemon, ground)["revision"])
        readers = [Judging(writer, daemon.port, f"soak {i}") for i in range(READERS)]
        followers = [Follower(writer, daemon.port) for _ in range(FOLLOWERS)]
        uploader = Uploader(writer, daemon.port)
        threads = [writer, *readers, *followers, uploader]
        for thread in threads:
            thread.start()
        watch(daemon, writer, samples)
        for thread in threads:
            thread.join(60 * SLOW)
            check(not thread.is_alive(), f"{type(thread).__name__} does not end")
            if thread.error:
                raise thread.error
        last = writer.versions[writer.acknowledged]
        last.compare(read_ground(daemon, last), "the end")
    return writer, readers, followers, uploader, samples


def main():
    try:
        writer, readers, followers, uploader, samples = soak()
    except Exception as error:
        row("soak", f"{SECONDS} s", "0 wrong answers", f"{type(error).__name__}: {error}"[:300],
            False)
        return
    judged = sum(reader.judged for reader in readers)
    row("soak: 2 loops, reads, edits, events, uploads", f"{SECONDS} s", "0 wrong answers",
        f"{judged} answers judged, {writer.acknowledged} edits, {uploader.done} uploads, "
        f"{sum(f.told for f in followers)} events; 0 wrong", judged > 10 and uploader.done > 1)
    settled = [entry for entry in samples if entry[0] >= SETTLE_S]
    part = max(16, len(settled) // 10)
    before, after = settled[:part], settled[-part:]
    memory = [statistics.median(entry[1] for entry in some) for some in (before, after)]
    growth = (memory[1] - memory[0]) / memory[0]
    if SECONDS >= 600:
        row("soak: resident memory", f"second {SETTLE_S:.0f} to {SECONDS}", "grows less than 2 %",
            f"{memory[0] / 1024:.1f} -> {memory[1] / 1024:.1f} MiB ({growth:+.2%})",
            growth < GROWTH_MAX)
    # the fewest: an upload has a few open for a moment
    files = [min(entry[2] for entry in some) for some in (before, after)]
    row("soak: open files", f"second {SETTLE_S:.0f} to {SECONDS}", "do not grow",
        f"{files[0]} -> {files[1]}", files[1] <= files[0])


if __name__ == "__main__":
    main()
    finish()
