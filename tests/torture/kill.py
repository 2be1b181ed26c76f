"""kill -9 under reads, edits and patches, on the demo world.

Each round two connections send edits to a locale whose samples a replay in Python knows
(killing.py), one keeps reading, and on another locale boxes fall on sand, whose patches are
written back by the daemon itself. After the restart nothing that was acknowledged may be missing:
the edits by the replay; of the sand, which nobody can compute ahead, the samples that were read at
a revision are the samples at that revision, and no revision that was seen is gone.

KOTA_KILL_ROUNDS  (200)
KOTA_DEMO         the demo world (build/demo); the short form does without
"""
import math
import os
import random as random_module
import tempfile
import threading
import time

from table import IS_SHORT, finish, go_first, go_like_others, percentile, row, setting

from daemon import ROOT, SLOW, Daemon
from ground import CUT, Client, Ground, check_is_good, cut_off, hills, put_ground
from killing import Sender, settle_round
from tap import Failure, check, rng

ROUNDS = setting("KOTA_KILL_ROUNDS", 200)
DEMO = os.path.join(ROOT, setting("KOTA_DEMO", "build/demo"))
RESTART_S = 2
COLS, ROWS = 64, 48
FLAGS = ("--loops", "2", "--gpu", "cpu", "--patch-speed", "0", "--patch-pause-ms", "50",
         "--patch-linger-ms", "0", "--patch-granules", "2000", "--patches-fine", "0",
         "--patches-medium", "0")
SAND = "/v1/locales/sand"
FACES = ((1, 3, 2), (1, 4, 3), (5, 6, 7), (5, 7, 8), (1, 2, 6), (1, 6, 5), (2, 3, 7), (2, 7, 6),
         (3, 4, 8), (3, 8, 7), (4, 1, 5), (4, 5, 8))
CORNERS = [(x, y, z) for z in (-.7, .7) for x, y in ((-.7, -.7), (.7, -.7), (.7, .7), (-.7, .7))]
BOX = ("".join("v %r %r %r\n" % corner for corner in CORNERS)
       + "".join("f %d %d %d\n" % face for face in FACES)).encode()


class Worker(threading.Thread):
    """Does turn() again and again until the daemon is gone."""

    def __init__(self, port, seed):
        super().__init__()
        self.port, self.random, self.error = port, random_module.Random(seed), None

    def run(self):
        try:
            with Client(self.port) as client:
                while True:
                    self.turn(client)
        except CUT:
            pass
        except BaseException as error:
            self.error = error


class Dropper(Worker):
    """Lets boxes fall on sand; now and then a patch is ended before its time."""

    made = 0

    def turn(self, client):
        x, y = self.random.uniform(8, 24), self.random.uniform(8, 24)
        answer = client.ask("POST", SAND + "/patches", {
            "center": [x, y], "size": [5, 5], "scale": "coarse", "depth": 2,
            "bodies": [{"model": "box", "position": [x, y, 2.5], "velocity": [0, 0, -6],
                        "mass": 6000}]})
        check(answer.status in (201, 409, 503), f"a patch: {answer}")
        if answer.status != 201:
            time.sleep(0.02)
            return
        self.made += 1
        if self.random.random() < 0.3:
            time.sleep(self.random.uniform(0, 0.2))
            ended = client.ask("DELETE", answer.headers["location"])
            check(ended.status in (200, 404, 409), f"the end of a patch: {ended}")


class Watcher(Worker):
    """Reads the sand's samples and remembers them by revision."""

    def __init__(self, port, seed, seen):
        super().__init__(port, seed)
        self.seen = seen

    def turn(self, client):
        look_at_sand(client, self.seen, "while it changes")
        answer = client.get("/v1/locales/land/height?x=10&y=10")
        check(answer.status == 200, f"a read: {answer}")


def look_at_sand(client, seen, what):
    """Reads all samples; what was seen of the same revision must be the same. The revision."""
    answer = client.get(SAND + "/tiles/0/0/0?format=f32")
    check(answer.status == 200, f"the sand {what}: {answer}")
    revision = int(answer.headers["kota-revision"])
    former = seen.setdefault(revision, answer.body)
    if former != answer.body:
        raise Failure(f"the sand {what}: revision {revision} has other samples than before")
    return revision


def bumps(side):
    """Nearly flat; no two neighbours at one height, so that a lost bit shows."""
    return Ground(side, side, [0.07 * math.sin(0.9 * c) * math.cos(1.3 * r) + 0.001 * c
                               for r in range(side) for c in range(side)], (0.5, 0.5))


def first_start(data):
    daemon = Daemon("--data", data, *(() if IS_SHORT else ("--world", DEMO)), *FLAGS)
    try:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        ground = hills(rng("kill torture"), COLS, ROWS, (2.0, 2.0), (-30.0, 7.0))
        known = put_ground(daemon, ground)["revision"]
        daemon.ok("PUT", SAND, {}, status=201)
        put_ground(daemon, bumps(65), "sand")
        daemon.ok("PUT", "/v1/models/box", BOX, status=201, media="model/obj")
        return daemon, ground, known
    except BaseException:
        daemon.kill()
        raise


def start_again(data):
    """(daemon, seconds until it was ready); before other programs, which would be measured else"""
    if not IS_SHORT:
        go_first()
    start = time.monotonic()
    try:
        daemon = Daemon("--data", data, *FLAGS)
    finally:
        took = time.monotonic() - start
        if not IS_SHORT:
            go_like_others()
    if not IS_SHORT:
        go_like_others(int(thread) for thread in os.listdir(f"/proc/{daemon.process.pid}/task"))
    return daemon, took


def await_write_back(seen):
    """Until the sand has a revision more; a drop takes a second, and more beside other programs."""
    before, deadline = max(list(seen), default=0), time.monotonic() + 120
    while max(list(seen), default=0) <= before and time.monotonic() < deadline:
        time.sleep(0.01)


def one_round(number, daemon, data, ground, known, seen, random):
    """(the new daemon, the last revision, edits sent, patches made, seconds of the restart)"""
    workers = [Sender(daemon.port, ground.copy(), random.random(), f"{number}-{i}", 12)
               for i in range(2)]
    workers += [Dropper(daemon.port, random.random()), Watcher(daemon.port, random.random(), seen)]
    for worker in workers:
        worker.start()
    time.sleep(random.uniform(0, 0.8) * SLOW ** 0.5)
    if number % 5 == 4:
        await_write_back(seen)
    cut_off(daemon)
    for worker in workers:
        worker.join()
    for worker in workers:
        if worker.error:
            raise worker.error
    daemon, took = start_again(data)
    try:
        with Client(daemon.port) as client:
            last = max(seen, default=0)
            now = look_at_sand(client, seen, f"after round {number}")
            check(now >= last, f"round {number}: the sand is at {now}; {last} was seen")
        sent = [request for sender in workers[:2] for request in sender.sent]
        known = settle_round(daemon, ground, known, sent, f"round {number}")
    except BaseException:
        daemon.kill()
        raise
    return daemon, known, len(sent), workers[2].made, took


def rounds(count):
    """(edits, patches made, patches written, seconds of each restart)"""
    random, seen, took = rng("kill rounds"), {}, []
    edits = patches = 0
    with tempfile.TemporaryDirectory(prefix="kota-torture-") as folder:
        data = os.path.join(folder, "data")
        daemon, ground, known = first_start(data)
        for number in range(count):
            daemon, known, sent, made, seconds = one_round(number, daemon, data, ground, known,
                                                           seen, random)
            edits, patches = edits + sent, patches + made
            took.append(seconds)
        written = daemon.ok("GET", SAND)["revision"] - 2
        daemon.stop()
        check_is_good(data)
    return edits, patches, written, took


def main():
    if not IS_SHORT and not os.path.isdir(DEMO):
        row("kill -9", f"{ROUNDS} rounds", "nothing acknowledged is lost",
            f"no demo world in {DEMO}: make run makes it", None)
        return
    try:
        edits, patches, written, took = rounds(ROUNDS)
    except Failure as failure:
        row("kill -9 under reads, edits, patches", f"{ROUNDS} rounds",
            "nothing acknowledged is lost", str(failure)[:200], False)
        return
    row("kill -9 under reads, edits, patches", f"{ROUNDS} rounds", "nothing acknowledged is lost",
        f"{edits} edits, {patches} patches made, {written} written back; 0 lost", edits > ROUNDS and (written > 0 or ROUNDS < 50))
    if IS_SHORT:
        return
    row("restart with the demo world", f"{ROUNDS} times", f"below {RESTART_S} s",
        f"median {percentile(took, 0.5):.2f} s, longest {max(took):.2f} s", max(took) < RESTART_S)


if __name__ == "__main__":
    main()
    finish()
