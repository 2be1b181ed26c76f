"""Ground that changes: a model of one heightfield under edits, and clients that may be cut off.

The model does to an array of float32 what the design says an edit does: set, add, and the four
brushes. A brush is worked out in float64 here as well, but not by the same lines, so samples that
one has touched are compared with a tolerance until they are set again; all others to the bit.
"""
import array
import http.client
import json
import math
import re
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time

from daemon import F32, JSON, KOTAD, Daemon, clean_environment, client_to, connection_to
from tap import HANG_S, Failure, check, equal

NAN = float("nan")
SIDE = 257
LOOSE_M = 2e-3  # what brushes, one over another, may differ by
CUT = (OSError, http.client.HTTPException)


def floats(values=()):
    return array.array("f", values)


def from_bytes(data):
    """Little-endian float32 as an array."""
    made = floats()
    made.frombytes(data)
    if sys.byteorder == "big":
        made.byteswap()
    return made


def to_bytes(values):
    if sys.byteorder == "big":
        values = floats(values)
        values.byteswap()
    return values.tobytes()


def smooth_step(t):
    return 1 - 3 * t * t + 2 * t * t * t


class Edit:
    """One edit: set or add of a rect, or a brush; how it is asked for is the sender's choice."""

    def __init__(self, op, rect=None, heights=None, brush=None):
        self.op, self.rect, self.heights, self.brush = op, rect, heights, brush

    @property
    def source(self):
        return "brush" if self.op == "brush" else "edit"

    def request(self, locale, layer=None, binary=False):
        """(target, body, media type) of the POST."""
        target = f"/v1/locales/{locale}/edits"
        if binary and self.op != "brush":
            rect = ",".join(str(n) for n in self.rect)
            query = f"?rect={rect}&op={self.op}" + (f"&layer={layer}" if layer else "")
            return target + query, to_bytes(self.heights), F32
        body = {"layer": layer} if layer else {}
        if self.op == "brush":
            body["brush"] = self.brush
        else:
            body.update(rect=list(self.rect), op=self.op,
                        heights=[None if math.isnan(v) else v for v in self.heights])
        return target, json.dumps(body).encode(), JSON


def random_rect(random, cols, rows, most=12):
    w, h = random.randint(1, min(most, cols)), random.randint(1, min(most, rows))
    return random.randint(0, cols - w), random.randint(0, rows - h), w, h


SHAPES = ("raise", "crater", "flatten", "smooth")


def random_edit(random, ground, most=12, shapes=SHAPES, holes=0.02):
    """An edit that changes something; now and then across the seams at 256, where there are any."""
    kind = random.random()
    if shapes and kind < 0.25:
        shape = random.choice(shapes)
        c, r = random.randrange(ground.cols), random.randrange(ground.rows)
        while shape == "flatten" and not ground.is_solid(c, r):
            c, r = random.randrange(ground.cols), random.randrange(ground.rows)
        brush = {"shape": shape, "center": list(ground.place(c, r)),
                 "radius": random.uniform(1.5, most / 2 + 1.5) * max(ground.spacing)}
        if shape in ("raise", "crater"):
            brush["amount"] = round(random.uniform(0.5, 4), 3)
        elif random.random() < 0.5:
            brush["amount"] = round(random.uniform(0.5, 2), 3)
        return Edit("brush", brush=brush)
    rect = random_rect(random, ground.cols, ground.rows, most)
    if kind < 0.45 and min(ground.cols, ground.rows) > 256 + most:
        rect = (random.randint(256 - most, 255), random.randint(256 - most, 255), most, most)
    count = rect[2] * rect[3]
    if kind < 0.6:
        return Edit("add", rect, floats(random.randint(1, 4000) / 1024 for _ in range(count)))
    return Edit("set", rect, floats(NAN if random.random() < holes else random.uniform(-50, 50)
                                    for _ in range(count)))


class Ground:
    """cols × rows samples, row by row from the smallest y; loose where a brush has been."""

    def __init__(self, cols, rows, heights, spacing=(1.0, 1.0), origin=(0.0, 0.0)):
        self.cols, self.rows, self.h = cols, rows, floats(heights)
        self.loose = bytearray(cols * rows)
        self.spacing, self.origin = spacing, origin
        assert len(self.h) == cols * rows

    def copy(self):
        made = Ground(self.cols, self.rows, self.h, self.spacing, self.origin)
        made.loose = bytearray(self.loose)
        return made

    def body(self):
        return to_bytes(self.h)

    def query(self):
        return (f"cols={self.cols}&rows={self.rows}&spacing={self.spacing[0]!r},{self.spacing[1]!r}"
                f"&origin={self.origin[0]!r},{self.origin[1]!r}")

    def place(self, c, r):
        return (self.origin[0] + c * self.spacing[0], self.origin[1] + r * self.spacing[1])

    def is_solid(self, c, r):
        """No hole at this sample or beside it: the surface is there."""
        return not any(math.isnan(self.h[y * self.cols + x])
                       for y in range(max(0, r - 1), min(self.rows, r + 2))
                       for x in range(max(0, c - 1), min(self.cols, c + 2)))

    def apply(self, edit):
        if edit.op == "brush":
            self.apply_brush(edit.brush)
            return
        c0, r0, w, h = edit.rect
        for j in range(h):
            at = (r0 + j) * self.cols + c0
            line = edit.heights[j * w:(j + 1) * w]
            if edit.op == "set":
                self.h[at:at + w] = line
                self.loose[at:at + w] = bytes(w)
            else:
                self.h[at:at + w] = floats(a + b for a, b in zip(self.h[at:at + w], line))

    def under(self, brush):
        """(index, t = distance / radius) of the samples that are no holes, nearer than radius."""
        (x, y), radius = brush["center"], brush["radius"]
        low = [max(0, math.floor((v - radius - o) / s)) for v, o, s in
               zip((x, y), self.origin, self.spacing)]
        high = [min(n - 1, math.ceil((v + radius - o) / s)) for v, o, s, n in
                zip((x, y), self.origin, self.spacing, (self.cols, self.rows))]
        found = []
        for r in range(low[1], high[1] + 1):
            for c in range(low[0], high[0] + 1):
                px, py = self.place(c, r)
                t = math.hypot(px - x, py - y) / radius
                if t < 1 and not math.isnan(self.h[r * self.cols + c]):
                    found.append((r * self.cols + c, t))
        return found

    def neighbours(self, index):
        r, c = divmod(index, self.cols)
        values = [self.h[y * self.cols + x] for y in range(max(0, r - 1), min(self.rows, r + 2))
                  for x in range(max(0, c - 1), min(self.cols, c + 2)) if (x, y) != (c, r)]
        return [v for v in values if not math.isnan(v)]

    def apply_brush(self, brush):
        """The centre is on a sample here, so the surface's height there is that sample's."""
        shape, amount = brush["shape"], brush.get("amount", math.inf)
        under, new = self.under(brush), {}
        if shape == "crater":
            total = sum(smooth_step(t) for _, t in under)
            moment = sum(smooth_step(t) * t * t for _, t in under)
            beta = total / moment if moment else 0.0
        elif shape == "flatten":
            c, r = (round((v - o) / s) for v, o, s in zip(brush["center"], self.origin,
                                                         self.spacing))
            goal = self.h[r * self.cols + c]
        for index, t in under:
            old, w = self.h[index], smooth_step(t)
            if shape == "raise":
                new[index] = old + amount * w
            elif shape == "crater":
                new[index] = old - amount * w * (1 - beta * t * t)
            else:
                if shape == "smooth":
                    around = self.neighbours(index)
                    goal = sum(around) / len(around) if around else old
                new[index] = old + w * max(-amount, min(amount, goal - old))
        for index, value in new.items():
            self.h[index] = value
            self.loose[index] = 1

    def compare(self, got, what):
        """Samples as the daemon has them against these; fails with the first that differ."""
        equal(len(got), len(self.h), f"{what}: samples")
        if got.tobytes() == self.h.tobytes():
            return
        wrong = []
        for i, (a, b) in enumerate(zip(got, self.h)):
            if a == b or a != a and b != b:
                continue
            if self.loose[i] and abs(a - b) <= LOOSE_M:
                continue
            wrong.append(i)
        if wrong:
            shown = ", ".join(f"({i % self.cols},{i // self.cols}) is {got[i]!r} and not "
                              f"{self.h[i]!r}{' ~' if self.loose[i] else ''}" for i in wrong[:4])
            raise Failure(f"{what}: {len(wrong)} samples of {len(got)} are wrong: {shown}")

    def adopt(self, got):
        """Takes over what compare has accepted: brushes no longer add up differences."""
        self.h = floats(got)
        self.loose = bytearray(len(self.h))


def hills(random, cols, rows, spacing=(1.0, 1.0), origin=(0.0, 0.0), holes=0.0):
    along, heights = [10 * math.sin(c / 7) - 1 for c in range(cols)], floats()
    for r in range(rows):
        y = 8 * math.cos(r / 5)
        heights.extend(floats([x + y + n / 128 for x, n in zip(along, random.randbytes(cols))]))
    for index in random.sample(range(len(heights)), round(holes * len(heights))):
        heights[index] = NAN
    return Ground(cols, rows, heights, spacing, origin)


def changed(before, after):
    """Indices of the samples that differ, NaN being equal to itself."""
    if before.h.tobytes() == after.h.tobytes():
        return []
    cols, old, new = before.cols, memoryview(before.h).cast("B"), memoryview(after.h).cast("B")
    return [i for row in range(0, len(before.h), cols)
            if old[4 * row:4 * (row + cols)] != new[4 * row:4 * (row + cols)]
            for i in range(row, row + cols)
            if before.h[i] != after.h[i] and (before.h[i] == before.h[i] or after.h[i] == after.h[i])]


# ---- clients --------------------------------------------------------------------------------------


class Client:
    """One kept connection; an error is the caller's, nothing is sent twice."""

    def __init__(self, port, headers=None, timeout=HANG_S):
        self.headers = dict(headers or {})
        self.connection = client_to(port, timeout=timeout)

    def ask(self, method, target, body=None, headers=None, media=None):
        headers = {**self.headers, **(headers or {})}
        if isinstance(body, (dict, list)):
            body, media = json.dumps(body).encode(), media or JSON
        if media:
            headers["Content-Type"] = media
        return self.connection.ask(method, target, body, headers)

    def get(self, target, **named):
        return self.ask("GET", target, **named)

    def edit(self, edit, locale="land", layer=None, binary=False, headers=None):
        target, body, media = edit.request(locale, layer, binary)
        return self.ask("POST", target, body, headers, media)

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.close()


def put_ground(asker, ground, locale="land", layer="ground", status=201, headers=None):
    """A layer as f32; asker is a Daemon or a Client. Returns the Locale."""
    answer = asker.ask("PUT", f"/v1/locales/{locale}/layers/{layer}?{ground.query()}",
                       ground.body(), headers=headers, media=F32)
    check(answer.status == status, f"PUT of {layer}: expected {status}, got {answer}")
    return answer.json


def read_ground(asker, ground, locale="land", layer=None):
    """All samples, from the tiles of level 0."""
    query = "?format=f32" + (f"&layer={layer}" if layer else "")
    cols, rows = ground.cols, ground.rows
    lines = [floats() for _ in range(rows)]
    for row in range((rows + 254) // 256):
        for column in range((cols + 254) // 256):
            answer = asker.ask("GET", f"/v1/locales/{locale}/tiles/0/{column}/{row}{query}")
            check(answer.status == 200, f"tile 0/{column}/{row}: {answer}")
            block = from_bytes(answer.body)
            equal(len(block), SIDE * SIDE, "samples of a tile")
            count = min(SIDE, cols - column * 256)
            for j in range(min(SIDE, rows - row * 256)):
                line, part = lines[row * 256 + j], block[j * SIDE:j * SIDE + count]
                former = line[column * 256:column * 256 + count]
                check(all(same(a, b) for a, b in zip(former, part)),
                      f"the apron of tile 0/{column}/{row}")
                if len(former) < count:
                    line.extend(part[len(former):])
    whole = floats()
    for line in lines:
        whole.extend(line)
    return whole


def same(a, b):
    return a == b or a != a and b != b


class Stream:
    """Server-sent events, read on a thread of their own until the other side ends or close()."""

    def __init__(self, port, target, last_id=None, headers=None):
        headers = dict(headers or {})
        if last_id is not None:
            headers["Last-Event-ID"] = str(last_id)
        self.connection = connection_to(port, timeout=HANG_S)
        self.connection.request("GET", target, headers=headers)
        self.socket = self.connection.sock
        self.answer = self.connection.getresponse()
        self.status, self.events, self.comments = self.answer.status, [], 0
        self.is_over, self.error = False, None
        if self.status != 200:
            self.body = self.answer.read()
            self.connection.close()
            return
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        fields = {}
        try:
            while True:
                line = self.answer.readline()
                if not line:
                    break
                line = line.rstrip(b"\r\n").decode("utf-8")
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    name, _, value = line.partition(":")
                    value = value[1:] if value.startswith(" ") else value
                    fields[name] = fields[name] + "\n" + value if name == "data" and \
                        name in fields else value
                elif "data" in fields:
                    with self.changed:
                        self.events.append((fields.get("id"), fields.get("event", "message"),
                                            json.loads(fields["data"])))
                        self.changed.notify_all()
                    fields = {}
                else:
                    fields = {}
        except (*CUT, ValueError, AttributeError) as error:
            self.error = error
        with self.changed:
            self.is_over = True
            self.changed.notify_all()

    def wait(self, enough, what):
        """Until enough(events) is true; a copy of the events."""
        deadline = time.monotonic() + HANG_S
        check(self.status == 200, f"{what}: the stream's status is {self.status}")
        with self.changed:
            while not enough(self.events):
                left = deadline - time.monotonic()
                if self.is_over or left <= 0:
                    raise Failure(f"{what}: the stream {'ended' if self.is_over else 'is silent'} "
                                  f"after {len(self.events)} events, the last "
                                  f"{self.events[-1:]}, {self.error}")
                self.changed.wait(left)
            return list(self.events)

    def until(self, last_id, what="events"):
        """All events up to the one of this id."""
        return self.wait(lambda events: events and int(events[-1][0] or 0) >= last_id,
                         f"{what} up to {last_id}")

    def close(self):
        if self.status != 200:
            return
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the daemon has closed it
        self.thread.join(HANG_S)
        self.connection.close()


def replay(port, target, last_id, until, what="replayed events", headers=None):
    """The events after last_id up to the id `until`; comes again when the stream has ended."""
    found = []
    while last_id < until:
        stream = Stream(port, target, last_id, headers)
        try:
            events = stream.wait(lambda got: stream.is_over or got and int(got[-1][0]) >= until,
                                 f"{what} up to {until}")
        finally:
            stream.close()
        check(events, f"{what}: {target} ended after {last_id} without an event")
        found += events
        last_id = int(events[-1][0])
    return found


# ---- daemons on a directory -------------------------------------------------------------------------


def stored(directory, *args, **named):
    """kotad --data."""
    return Daemon("--data", directory, "--loops", "2", *args, **named)


def cut_off(daemon):
    """kill -9."""
    daemon.process.kill()
    daemon.process.wait()
    log = daemon.log_text()
    daemon.kill()
    check("Sanitizer" not in log and "CHECK failed" not in log, f"kotad complained: {log[-3000:]}")


def settle(daemon):
    """Waits until a daemon listens, ready or not, or has ended; returns its exit status or None."""
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        status = daemon.process.poll()
        if status is not None:
            return status
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", daemon.log_text())
        if found:
            daemon.port = int(found.group(1))
            return None
        time.sleep(0.01)
    raise Failure(f"neither listening nor ended: {daemon.log_text()[-2000:]}")


def one_line(log, *words, what="the refusal"):
    """The log ends with one clear line of an error that holds each of the words (any capitals)."""
    lines = [line for line in log.splitlines() if line.strip()]
    check(lines, f"{what}: nothing was said")
    said = lines[-1]
    check(len(said) < 1000, f"{what}: a long line: {said[:2000]}")
    check(not re.search(r"core dumped|assert|CHECK", log), f"{what}: {log[-2000:]}")
    for word in words:
        pattern = word if hasattr(word, "search") else re.compile(re.escape(word), re.I)
        check(pattern.search(said), f"{what} does not say {pattern.pattern!r}: {log[-2000:]}")
    return said


def run_check(directory):
    """`kotad --check --data DIR`: (exit status, everything it said)."""
    done = subprocess.run([KOTAD, "--check", "--data", directory], capture_output=True, text=True,
                          timeout=HANG_S, env=clean_environment(), check=False)
    text = done.stdout + done.stderr
    check("Sanitizer" not in text and "runtime error" not in text, text[-4000:])
    check(done.returncode >= 0, f"--check ended by signal {-done.returncode}: {text[-2000:]}")
    return done.returncode, text


def check_is_good(directory):
    """`kotad --check` finds nothing."""
    status, text = run_check(directory)
    check(status == 0 and text.strip(), f"--check of {directory}: {status}, {text}")
    check(not re.search(r"[1-9]\d* damaged|error", text), f"--check of {directory}: {text}")


def restarts(data, model, random, rounds, changes, before_end=None):
    """kotad after so many rounds: each has some of model.step, model.verify, an end and a start."""
    own = stored(data)
    for number in range(rounds):
        with Client(own.port) as client:
            for _ in range(random.randint(changes // 2, changes)):
                model.step(client)
                if random.random() < 0.05:
                    time.sleep(0.3)  # the tiles are written
            model.verify(client, f"round {number}")
        if before_end:
            before_end(own, data)
        is_killed = random.random() < 0.5
        if is_killed:
            cut_off(own)
        else:
            own.stop()
        check_is_good(data)
        own = stored(data)
        with Client(own.port) as client:
            model.verify(client, f"after {'kill -9' if is_killed else 'SIGTERM'} {number}")
    return own


def damage(path, intact, sql):
    """The database of these bytes, changed by a statement."""
    with open(path, "wb") as file:
        file.write(intact)
    with sqlite3.connect(path) as store:
        store.execute(sql)
    store.close()


def pack(kind, values):
    return struct.pack(f"<{len(values)}{kind}", *values)
