"""Impacts and kill -9: each one that was acknowledged is in the ground exactly once.

20 clients throw balls, each at a place of its own on flat ground and under a key of its own, at a
daemon with three patches (in make test one); it is killed at a random moment and started again. Then every impact
without an answer is sent again under its key, and the ground of every place must be one crater:
what its impact says it is, a crater of the law or one of granules, and nothing that nobody threw.
One of them at least was refined by granules before the first kill: that ground must survive to the bit.
"""
import shutil
import struct
import tempfile
import threading
import time

from daemon import F32, Daemon, check, equal
from ground import CUT, Client
from tap import ALL, HANG_S, rng, run, test

ROUNDS, MOST = (3, 334) if ALL else (2, 40)
CLIENTS, GRID, APART = 20, 40 if ALL else 12, 8
SIDE = GRID * APART + 1
BALL = {"radius": 0.45, "mass": 1000, "velocity": [0, 0, -6]}  # four fine granules across

folder = tempfile.mkdtemp(prefix="kota-test-")
ARGUMENTS = ("--data", folder, "--gpu", "cpu", "--patches-fine", "3" if ALL else "1",
             "--patches-medium", "0", "--patches-coarse", "0", "--patch-speed", "0", "--patch-pause-ms", "200",
             "--patch-linger-ms", "0", "--patch-active-max-ms", "1000" if ALL else "300")


class Thrown:
    """An impact on one place of the grid, and its number, once it was acknowledged."""

    def __init__(self, index):
        self.x, self.y = APART * (index % GRID) + APART / 2, APART * (index // GRID) + APART / 2
        self.key, self.number = f"throw-{index}", None

    def ask(self, client):
        answer = client.ask("POST", "/v1/locales/field/impacts",
                            {**BALL, "position": [self.x, self.y, 3], "until": "accepted"},
                            headers={"Idempotency-Key": self.key})
        check(answer.status == 202, f"{self.key}: {answer}")
        self.number = answer.json["impact"]


class Thrower(threading.Thread):
    def __init__(self, port, throws):
        super().__init__()
        self.port, self.throws, self.error = port, throws, None

    def run(self):
        try:
            with Client(self.port) as client:
                for thrown in self.throws:
                    thrown.ask(client)
        except CUT:
            pass
        except BaseException as error:
            self.error = error


def heights(daemon):
    points = [float(v) for r in range(SIDE) for c in range(SIDE) for v in (c, r)]
    answer = daemon.post("/v1/locales/field/height?interp=nearest",
                         struct.pack(f"<{len(points)}f", *points), media=F32)
    equal(answer.status, 200, "heights")
    return struct.unpack(f"<{SIDE * SIDE}f", answer.body)


def around(ground, thrown):
    """The samples of a place."""
    c, r, half = int(thrown.x), int(thrown.y), APART // 2
    return [ground[(r + j) * SIDE + c + i] for j in range(-half, half) for i in range(-half, half)]


def dug(ground, thrown):
    """Volume below the old ground, and the sum of all, around a place."""
    cells = around(ground, thrown)
    return -sum(min(h, 0) for h in cells), sum(cells)


def fate_of(daemon, thrown):
    return daemon.ok("GET", f"/v1/locales/field/impacts/{thrown.number}")


def make_small(daemon, place):
    """A patch that the impact of this place will join. Those of their own have three times the granules,
    and are killed: nobody waits for their rest in make test, for there is one patch."""
    daemon.post("/v1/locales/field/patches", {"center": [place.x, place.y], "size": [3, 3], "scale": "fine",
                                              "depth": 0.7})


def throw_until_refined(daemon, places):
    """Throws one after another until granules have made the ground of one: the last of what it returns.
    Earlier ones stay craters where the pool is not made yet, or seems too slow."""
    throws, deadline = [], time.monotonic() + HANG_S
    while not throws or fate["how"] != "patch":
        check(time.monotonic() < deadline, f"no granules: {throws and fate}")
        throws.append(next(places))
        make_small(daemon, throws[-1])
        with Client(daemon.port) as client:
            throws[-1].ask(client)
        wait_for_all(daemon, throws[-1:])
        fate = fate_of(daemon, throws[-1])
        time.sleep(0 if fate["how"] == "patch" else 0.5)
    return throws


def throw_until_killed(daemon, random_, throws):
    shares = [throws[i::CLIENTS] for i in range(CLIENTS)]
    threads = [Thrower(daemon.port, share) for share in shares]
    for thread in threads:
        thread.start()
    wanted = random_.random() * len(throws) * 0.9
    while sum(1 for t in throws if t.number) < wanted and all(t.is_alive() for t in threads):
        time.sleep(0.005)
    time.sleep(random_.random() * 0.3)
    daemon.kill()
    for thread in threads:
        thread.join()
        if thread.error:
            raise thread.error


def check_places(daemon, throws, crater, name):
    ground = heights(daemon)
    numbers = [t.number for t in throws]
    check(len(set(numbers)) == len(numbers), f"{name}: an impact was made for two keys")
    refined = 0
    for thrown in throws:
        fate = fate_of(daemon, thrown)
        volume, rest = dug(ground, thrown)
        equal(fate["state"], "written", f"{name}: {fate}")
        if fate["how"] == "crater":
            check(abs(rest) < 1e-3 and abs(volume - crater) < 1e-4,
                  f"{name}: {volume} m dug, {rest} of it lost, one crater is {crater}: {fate}")
        else:  # granules are compacted, and less comes back than the law's rim has
            refined += 1
            check(abs(rest) < 0.8 * crater and 0.3 * crater < volume < 1.7 * crater,
                  f"{name}: {volume} m dug, {rest} of it lost, a crater is {crater}: {fate}")
    changed = sum(1 for h in ground if h != 0)
    check(changed <= len(throws) * APART * APART, f"{name}: {changed} samples have changed")
    return refined


@test(f"{MOST} impacts by {CLIENTS} clients, killed {ROUNDS} times: each is there exactly once")
def _():
    random_ = rng("kill")
    refined = 0
    daemon = Daemon(*ARGUMENTS)
    try:
        daemon.ok("PUT", "/v1/locales/field", {"title": "field"}, status=201)
        answer = daemon.put(f"/v1/locales/field/layers/ground?cols={SIDE}&rows={SIDE}&spacing=1,1",
                            bytes(4 * SIDE * SIDE), media=F32)
        equal(answer.status, 201, "layer")
        far = {**BALL, "position": [4, 4, 3], "observer": [4, 4, 900]}
        equal(daemon.post("/v1/locales/field/impacts", far).json["how"], "crater", "the measure")
        crater, _ = dug(heights(daemon), Thrown(0))
        throws = throw_until_refined(daemon, map(Thrown, range(1 + ROUNDS * MOST, GRID * GRID)))
        granular = throws[-1]
        of_granules = around(heights(daemon), granular)
        for round_ in range(ROUNDS):
            first = 1 + round_ * MOST
            fresh = [Thrown(first + i) for i in range(MOST)]
            throw_until_killed(daemon, random_, fresh)
            daemon = Daemon(*ARGUMENTS)
            equal(around(heights(daemon), granular), of_granules, f"round {round_}: ground of granules")
            make_small(daemon, min(fresh, key=lambda thrown: thrown.number or 0))
            for thrown in fresh:
                known = thrown.number
                thrown.ask(daemon)
                check(known in (None, thrown.number), f"{thrown.key} was {known}, is {thrown.number}")
            throws += fresh
            wait_for_all(daemon, fresh)
            equal(fate_of(daemon, granular)["how"], "patch", f"round {round_}: the first that was refined")
            refined = check_places(daemon, throws, crater, f"round {round_}")
        print(f"# {len(throws)} impacts, {refined} refined by granules")
    finally:
        daemon.kill()
        shutil.rmtree(folder)


def wait_for_all(daemon, throws):
    for thrown in throws:
        while fate_of(daemon, thrown)["state"] != "written":
            time.sleep(0.02)


run()
