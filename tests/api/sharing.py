"""Readers and a writer who share ground that changes, and what the answers should have been.

The field has a seam of tiles in its middle, and edits cross it. A reader asks heights, rays and
contacts, one by one, in JSON batches and in binary ones, and tiles; judge() holds what it got
against the samples of exactly the revision that each answer names.
"""
import math
import random as random_module
import struct
import threading

from daemon import F64
from ground import Client, from_bytes, pack, random_edit, same
from tap import check, equal, fail, near, rng

COLS, ROWS = 280, 40
BASE = "/v1/locales/land"
ABOVE = 1000.0


def height_of(h, x, y):
    """The anti triangulation with spacing 1 and origin 0; None over a hole."""
    c, r = min(int(x), COLS - 2), min(int(y), ROWS - 2)
    fu, fv = x - c, y - r
    at = r * COLS + c
    if fu + fv <= 1:
        a, b, d = h[at], h[at + 1], h[at + COLS]
        value = a + fu * (b - a) + fv * (d - a)
    else:
        a, b, d = h[at + COLS + 1], h[at + COLS], h[at + 1]
        value = a + (1 - fu) * (b - a) + (1 - fv) * (d - a)
    return None if math.isnan(value) else value


def places(random, count):
    """Points inside triangles, most of them where the edits are; on samples every fourth."""
    made = []
    for i in range(count):
        c, r = random.randrange(236, 276), random.randrange(ROWS - 1)
        if i % 4 == 0:
            made.append((float(c), float(r)))
            continue
        fu, fv = random.uniform(0.05, 0.9), random.uniform(0.05, 0.9)
        if abs(fu + fv - 1) < 0.02:
            fu += 0.05
        made.append((c + fu, r + fv))
    return made


class Reader(threading.Thread):
    """Asks in every way, again and again, and keeps what came."""

    def __init__(self, writer, port, seed):
        super().__init__()
        self.writer, self.port = writer, port
        self.random = random_module.Random(seed)
        self.got, self.error, self.asked = [], None, 0
        self.points = places(self.random, 40)

    def run(self):
        try:
            with Client(self.port) as client:
                last = 0
                while not self.writer.is_done:
                    ask = self.random.choice((self.single, self.heights, self.binary_heights,
                                              self.rays, self.binary_rays, self.contacts,
                                              self.binary_contacts, self.single, self.tile,
                                              self.locale))
                    least = self.writer.acknowledged
                    revision = ask(client)
                    check(revision >= least, f"{ask.__name__}: revision {revision} begun after "
                          f"{least} was acknowledged")
                    check(revision >= last, f"{ask.__name__}: revision {revision} after {last} on "
                          "one connection")
                    last = revision
                    self.asked += 1
        except BaseException as error:
            self.error = error

    def keep(self, revision, points, values, what):
        self.got.append((revision, points, values, what))
        return revision

    def ask(self, client, method, path, *args, **named):
        answer = client.ask(method, BASE + path, *args, **named)
        check(answer.status == 200, f"{path}: {answer}")
        return answer

    def batch(self, client, path, body):
        answer = self.ask(client, "POST", path, body).json
        equal(len(answer["results"]), len(self.points), f"results of {path}")
        return answer["revision"], answer["results"]

    def binary(self, client, path, kind, values, per_item):
        answer = self.ask(client, "POST", path, pack(kind, values), media=F64)
        got = struct.unpack(f"<{len(self.points) * per_item}d", answer.body)
        return int(answer.headers["kota-revision"]), got

    def single(self, client):
        x, y = self.random.choice(self.points)
        answer = self.ask(client, "GET", f"/height?x={x!r}&y={y!r}").json
        return self.keep(answer["revision"], [(x, y)], [answer["height"]], "single height")

    def heights(self, client):
        revision, items = self.batch(client, "/height", {"points": self.points})
        return self.keep(revision, self.points, [i["height"] for i in items], "height batch")

    def binary_heights(self, client):
        revision, got = self.binary(client, "/height", "d", [v for p in self.points for v in p], 1)
        return self.keep(revision, self.points, [None if v != v else v for v in got],
                         "binary heights")

    def rays(self, client):
        rays = [{"origin": [x, y, ABOVE], "direction": [0, 0, -1]} for x, y in self.points]
        revision, items = self.batch(client, "/ray", {"rays": rays})
        return self.keep(revision, self.points, [None if i["t"] is None else ABOVE - i["t"]
                                                 for i in items], "ray batch")

    def binary_rays(self, client):
        values = [v for x, y in self.points for v in (x, y, ABOVE, 0, 0, -1, math.inf)]
        revision, got = self.binary(client, "/ray", "d", values, 4)
        return self.keep(revision, self.points, [None if math.isinf(t) else ABOVE - t
                                                 for t in got[::4]], "binary rays")

    def contacts(self, client):
        revision, items = self.batch(client, "/contact",
                                     {"points": [[x, y, ABOVE] for x, y in self.points]})
        return self.keep(revision, self.points, [i["floor"] and i["floor"]["point"][2]
                                                 for i in items], "contact batch")

    def binary_contacts(self, client):
        revision, got = self.binary(client, "/contact", "d",
                                    [v for p in self.points for v in (*p, ABOVE)], 6)
        return self.keep(revision, self.points, [None if z != z else z for z in got[::6]],
                         "binary contacts")

    def tile(self, client):
        column = self.random.randrange(2)
        answer = self.ask(client, "GET", f"/tiles/0/{column}/0?format=f32")
        block, count = from_bytes(answer.body), min(257, COLS - 256 * column)
        lines = [block[r * 257:r * 257 + count].tobytes() for r in range(ROWS)]
        return self.keep(int(answer.headers["kota-revision"]), column, b"".join(lines), "tile")

    def locale(self, client):
        answer = self.ask(client, "GET", "")
        equal(answer.headers["etag"], f'"{answer.json["revision"]}"', "ETag")
        return answer.json["revision"]


class Writer(threading.Thread):
    """Commits edits and keeps the ground of every revision."""

    def __init__(self, port, ground, revision, count, seed):
        super().__init__()
        self.port, self.count, self.random = port, count, rng(seed)
        self.versions, self.edits = {revision: ground}, {}
        self.acknowledged, self.is_done, self.error = revision, False, None

    def commit(self, client):
        now = self.versions[self.acknowledged].copy()
        edit = random_edit(self.random, now, 24, ())
        c, r, w, h = edit.rect
        edit.rect = (min(236 + c % 40, COLS - w), r, w, h)
        now.apply(edit)
        revision = self.acknowledged + 1
        self.versions[revision], self.edits[revision] = now, edit
        answer = client.edit(edit, binary=self.random.random() < 0.7)
        check(answer.status == 200, str(answer))
        equal(answer.json["revision"], revision, "revision of an edit")
        self.acknowledged = revision

    def run(self):
        try:
            with Client(self.port) as client:
                for _ in range(self.count):
                    self.commit(client)
        except BaseException as error:
            self.error = error
        finally:
            self.is_done = True


def judge(reader, versions):
    known = {}
    for revision, points, values, what in reader.got:
        check(revision in versions, f"{what}: revision {revision} does not exist")
        h = versions[revision].h
        if what == "tile":
            lo, hi = 256 * points, min(256 * points + 257, COLS)
            want = b"".join(h[r * COLS + lo:r * COLS + hi].tobytes() for r in range(ROWS))
            if values != want and not all(map(same, from_bytes(values), from_bytes(want))):
                fail(f"tile {points} of revision {revision} is another's")
            continue
        for point, value in zip(points, values):
            key = revision, point
            if key not in known:
                known[key] = height_of(h, *point)
            want = known[key]
            if point[0].is_integer() and (value is None or want is None):
                continue  # on a sample other triangles, not looked at here, may be there or not
            near(value, want, f"{what} of revision {revision} at {point}", 1e-9, ABOVE)
