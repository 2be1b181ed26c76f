"""Feeds that carry what changed: bounds, layers, samples, frames; a copy that is kept by them."""
import base64
import json
import os
import struct
import subprocess
import tempfile
import threading
import time

from daemon import BIN_DIR, Daemon, check, clean_environment, equal, problem
from events import Stream
from fields import NAN, Terrain, put_layer, put_locale, put_terrain
from frames import EDIT, FEED, POSE, RESYNC, RANGE, TICK, FrameStream, split
from oracle import f32
from tap import case, rng, run, test

SIDE = 300
daemon = Daemon("--stream-silence-ms", "700")


def flat(side=SIDE):
    return Terrain(side, side, [[f32(c + r / 8) for c in range(side)] for r in range(side)], (1.0, 1.0), (0.0, 0.0))


def at(name, query=""):
    return f"/v1/locales/{name}/events{'?' if query else ''}{query}"


def edit(name, rect, heights, on=None, **more):
    return (on or daemon).ok("POST", f"/v1/locales/{name}/edits",
                             {"op": "set", "rect": rect, "heights": heights, **more})["revision"]


def base64_of(heights):
    return base64.b64encode(struct.pack(f"<{len(heights)}f", *heights)).decode()


put_terrain(daemon, "field", flat())


@test("samples=f32 has the samples of the rect as they were after the change, in base64")
def _():
    with Stream(daemon.port, at("field", "samples=f32")) as text, Stream(daemon.port, at("field")) as plain, \
            FrameStream(daemon.port, at("field")) as frames:
        want = [1.5, None, 3.25, -0.0, 1e30, 7.0]
        revision = edit("field", [10, 20, 3, 2], want)
        floats = [NAN if h is None else f32(h) for h in want]
        event = text.event()
        got = struct.unpack("<6f", base64.b64decode(event.data["samples"]))
        equal((event.id, event.data["rect"], event.data["source"]), (revision, [10, 20, 3, 2], "edit"), "event")
        equal([str(h) for h in got], [str(h) for h in floats], "samples")
        check("samples" not in plain.event().data, "samples that nobody asked for")
        frame = frames.edit()
        equal((frame.kind, frame.revision, frame.layer, frame.source, frame.rect),
              (EDIT, revision, "ground", "edit", (10, 20, 3, 2)), str(frame))
        equal([str(h) for h in frame.samples], [str(h) for h in floats], "samples of the frame")
        equal(list(frame.bounds), event.data["bounds"]["min"] + event.data["bounds"]["max"], "bounds")
        revision = edit("field", [10, 20, 2, 1], [1.0, 1.0])
        daemon.ok("POST", "/v1/locales/field/edits", {"op": "add", "rect": [10, 20, 2, 1], "heights": [0.5, 1.0]})
        text.event()
        equal(text.event().data["samples"], base64_of([1.5, 2.0]), "of add: the sum")


def largest(cols, rows, is_there):
    with Stream(daemon.port, at("field", "samples=f32")) as text, FrameStream(daemon.port, at("field")) as frames:
        revision = edit("field", [0, 0, cols, rows], [float(i % 97) for i in range(cols * rows)])
        event, frame = text.event(), frames.edit()
        equal((event.id, frame.revision), (revision, revision), "revision")
        if not is_there:
            equal((event.data["samples"], frame.samples, frame.flags & 4), (None, None, 0), "samples")
            return
        want = [float(i % 97) for i in range(cols * rows)]
        equal(event.data["samples"], base64_of(want), "samples")
        equal(list(frame.samples), want, "samples of the frame")


for cols_, rows_, there_ in ((128, 128, True), (129, 127, True), (16384 // 64, 64, True), (145, 113, False), (300, 300, False)):
    case(f"{cols_} x {rows_} samples, {4 * cols_ * rows_} bytes, are {'in' if there_ else 'not in'} the event",
         largest, cols_, rows_, there_)


@test("a 39 x 39 edit takes at most 7.0 KB as a frame and 9.5 KB as text")
def _():
    with Stream(daemon.port, at("field", "samples=f32")) as text, FrameStream(daemon.port, at("field")) as frames:
        text.block()
        edit("field", [50, 60, 39, 39], [1.25 * i for i in range(39 * 39)])
        block = text.until(b"\n\n")
        check(len(block) + 2 <= 9500, f"{len(block) + 2} bytes of text")
        while len(frames.received) < 6084:
            frames.more()
        check(len(frames.received) <= 7000, f"{len(frames.received)} bytes of a frame")
        equal(frames.edit().rect, (50, 60, 39, 39), "rect")


# ---- bounds and layers --------------------------------------------------------------------------

@test("an event is written only to readers whose bounds it meets, rims included")
def _():
    put_terrain(daemon, "areas", flat())
    # an edit of sample (100, 100) may change the surface from 99 to 101
    queries = {"bounds=0,0,98,98": False, "bounds=0,0,99,99": True, "bounds=101,101,200,200": True,
               "bounds=102,0,300,300": False, "bounds=100,100,100,100": True, "bounds=-9e9,-9e9,9e9,9e9": True,
               "bounds=0,102,300,103": False, "bounds=500,500,600,600": False}
    for form in (Stream, FrameStream):
        streams = {query: form(daemon.port, at("areas", query)) for query in queries}
        revision = edit("areas", [100, 100, 1, 1], [50.0])
        last = daemon.ok("PUT", "/v1/locales/areas", {"triangulation": "anti"})["revision"]  # reaches all
        for query, meets in queries.items():
            stream = streams[query]
            seen = [stream.event().id if form is Stream else stream.edit().revision]
            if meets:
                seen.append(stream.event().id if form is Stream else stream.edit().revision)
            equal(seen, [revision, last] if meets else [last], f"{form.__name__} {query}")
            stream.close()


@test("a change of samples that makes no surface reaches the readers there, and no others")
def _():
    holes = Terrain(40, 40, [[NAN] * 40 for _ in range(40)], (1.0, 1.0), (0.0, 0.0))
    put_terrain(daemon, "holes", holes)
    with Stream(daemon.port, at("holes", "bounds=0,0,5,5&samples=f32")) as near, \
            Stream(daemon.port, at("holes", "bounds=20,20,30,30")) as far:
        first = edit("holes", [3, 3, 1, 1], [9.0])
        second = edit("holes", [25, 25, 1, 1], [9.0])
        event = near.event()
        equal((event.id, event.data["samples"]), (first, base64_of([9.0])), "near")
        equal(far.event().id, second, "far")


@test("layer= spares changes and poses of the others, but not what concerns all")
def _():
    put_locale(daemon, "layers")
    terrain = Terrain(9, 9, [[0.0] * 9 for _ in range(9)], (1.0, 1.0), (0.0, 0.0))
    for layer in ("a", "b"):
        put_layer(daemon, "layers", terrain, layer)
    with Stream(daemon.port, at("layers", "layer=a")) as text, FrameStream(daemon.port, at("layers", "layer=a")) as frames:
        edit("layers", [1, 1, 1, 1], [5.0], layer="b")
        own = edit("layers", [1, 1, 1, 1], [5.0], layer="a")
        whole = daemon.ok("PUT", "/v1/locales/layers", {"triangulation": "main"})["revision"]
        equal([text.event().id, text.event().id], [own, whole], "text")
        equal([frames.edit().revision, frames.edit().revision], [own, whole], "frames")


@test("a skipped reader gets a block with only an id with its next keep-alive, or a tick")
def _():
    put_terrain(daemon, "ticks", flat(20))
    with Stream(daemon.port, at("ticks", "bounds=900,900,901,901")) as text, \
            FrameStream(daemon.port, at("ticks", "bounds=900,900,901,901")) as frames, \
            Stream(daemon.port, at("ticks")) as all_:
        text.block()
        revisions = [edit("ticks", [1, 1, 1, 1], [float(k)]) for k in range(3)]
        equal([all_.event().id for _ in revisions], revisions, "a reader of all")
        equal(text.block(), [("id", str(revisions[-1]))], "the block")
        equal(text.block(), [("", "")], "then a comment")
        frame = frames.frame()
        equal((frame.kind, frame.revision), (TICK, revisions[-1]), str(frame))
        equal(frames.frame().kind, TICK, "a frame's keep-alive is always a tick")
        equal(all_.block(), [("", "")], "one that was not skipped has a comment")
        revision = edit("ticks", [1, 1, 1, 1], [9.0])
    with Stream(daemon.port, at("ticks", "bounds=0,0,9,9"), {"Last-Event-ID": str(revisions[-1])}) as text:
        equal(text.event().id, revision, "resumed after the id")


# ---- frames -------------------------------------------------------------------------------------

@test("a reader of a part has the least and greatest sample of the whole before an edit or a tick")
def _():
    put_terrain(daemon, "ranges", flat(20))
    with FrameStream(daemon.port, at("ranges", "bounds=0,0,3,3")) as frames, \
            FrameStream(daemon.port, at("ranges")) as all_:
        first = edit("ranges", [9, 9, 1, 1], [500.0])
        edit("ranges", [9, 9, 1, 1], [400.0])
        inside = edit("ranges", [1, 1, 1, 1], [2.0])
        frame = frames.frame()
        equal((frame.kind, frame.layer, frame.numbers[1]), (RANGE, "ground", 400.0), str(frame))
        frame = frames.frame()
        equal((frame.kind, frame.revision), (EDIT, inside), str(frame))
        last = edit("ranges", [9, 9, 1, 1], [3.0])
        frame = frames.frame()
        equal((frame.kind, frame.revision), (RANGE, last), str(frame))
        check(frame.numbers[1] < 400, str(frame.numbers))
        frame = frames.frame()
        equal((frame.kind, frame.revision), (TICK, last), str(frame))
        equal([all_.frame().revision for _ in range(4)], list(range(first, last + 1)), "a reader of all")



@test("frames of polygons that are added and removed, as the daemon numbers them")
def _():
    put_locale(daemon, "deck")
    daemon.ok("PUT", "/v1/locales/deck/layers/ground", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 5 5 5\nv 6 5 5\nv 5 6 5\n"
              b"f 1 2 3\nf 4 5 6\n", status=201, media="model/obj")
    with FrameStream(daemon.port, at("deck")) as frames:
        answer = daemon.ok("POST", "/v1/locales/deck/layers/ground/polygons",
                           {"polygons": [[[2, 2, 0], [3, 2, 0], [3, 3, 0], [2, 3, 1]]], "remove": [1]})
        frame = frames.edit()
        equal((frame.source, frame.layer, frame.revision), ("polygons", "ground", answer["revision"]), str(frame))
        vertices, polygons, corners, removed = struct.unpack_from("<4Q", frame.polygons)
        equal((polygons, removed), (1, 1), "polygons and removed")
        points = [struct.unpack_from("<3d", frame.polygons, 32 + 24 * i) for i in range(vertices)]
        numbers = struct.unpack_from(f"<{polygons + 1 + corners + removed}I", frame.polygons, 32 + 24 * vertices)
        equal([points[k] for k in numbers[2:2 + corners]], [(2, 2, 0), (3, 2, 0), (3, 3, 0), (2, 3, 1)], "corners")
        equal(numbers[2 + corners:], (1,), "removed")
        daemon.ok("PUT", "/v1/locales/deck/layers/ground/transform", {"translation": [1, 2, 3], "yaw_deg": 30})
        pose = frames.edit()
        equal((pose.kind, pose.layer, pose.numbers[:4]), (POSE, "ground", (1.0, 2.0, 3.0, 30.0)), str(pose))
        time.sleep(0.02)
        daemon.ok("PUT", "/v1/locales/deck/layers/ground/transform", {"translation": [2, 2, 3], "yaw_deg": 30})
        moving = frames.edit()
        check(moving.kind == POSE and moving.numbers[8] > 0, f"a velocity: {moving.numbers}")
        still = frames.edit()
        equal((still.kind, still.revision, still.numbers), (POSE, moving.revision, (2.0, 2.0, 3.0, 30.0) + 10 * (0,)),
              "at rest it comes once more")
    with FrameStream(daemon.port, at("deck")) as frames:
        equal((frames.frame().numbers[:4]), (2.0, 2.0, 3.0, 30.0), "a stream begins with the poses")


@test("a gap is a resync frame; since and Last-Event-ID resume; deletion ends the stream")
def _():
    put_terrain(daemon, "gap", flat(20))
    with FrameStream(daemon.port, at("gap", "since=999999")) as frames:
        frame = frames.frame()
        equal((frames.hello.revision, frame.kind, frame.revision), (2, RESYNC, 2), "a revision to come")
    revisions = [edit("gap", [1, 1, 1, 1], [float(k)]) for k in range(4)]
    for named in ({"target": at("gap", "since=3")}, {"target": at("gap"), "headers": {"Last-Event-ID": "3"}}):
        with FrameStream(daemon.port, **named) as frames:
            equal(frames.hello.revision, 3, "hello")
            equal([frames.edit().revision for _ in revisions[1:]], revisions[1:], "frames")
    with FrameStream(daemon.port, at("gap")) as frames:
        daemon.ok("DELETE", "/v1/locales/gap", status=204)
        frame = frames.edit()
        equal((frame.source, frame.layer), ("delete", ""), str(frame))
        while frames.more():
            pass


@test("a replayed event has its samples; one from before a restart has none")
def _():
    with tempfile.TemporaryDirectory() as folder:
        with Daemon("--data", folder) as first:
            put_terrain(first, "kept", flat(20))
            edit("kept", [1, 2, 2, 1], [5.0, 6.0], first)
            with FrameStream(first.port, at("kept", "since=2")) as frames:
                equal(frames.edit().samples, (5.0, 6.0), "replayed")
        with Daemon("--data", folder) as second:
            with FrameStream(second.port, at("kept", "since=2")) as frames, \
                    Stream(second.port, at("kept", "since=2&samples=f32")) as text:
                frame = frames.edit()
                equal((frame.rect, frame.samples, frame.flags & 4), ((1, 2, 2, 1), None, 0), "after a restart")
                equal(text.event().data["samples"], None, "text")


@test("kota watch prints only what meets --bounds, of --layer")
def _():
    put_terrain(daemon, "watched", flat(60))
    before = daemon.ok("GET", "/v1/stats")["http"]["streams_opened"]
    watch = subprocess.Popen([os.path.join(BIN_DIR, "kota"), "watch", "watched", "--bounds", "0,0,9,9", "--layer",
                              "ground", "--json", "--url", daemon.url], stdout=subprocess.PIPE, text=True,
                             env=clean_environment())
    try:
        while daemon.ok("GET", "/v1/stats")["http"]["streams_opened"] == before and watch.poll() is None:
            time.sleep(0.01)
        edit("watched", [40, 40, 1, 1], [1.0])
        revision = edit("watched", [5, 5, 1, 1], [1.0])
        equal(json.loads(watch.stdout.readline())["data"]["revision"], revision, "the first line")
    finally:
        watch.kill()
        watch.wait()
    done = subprocess.run([os.path.join(BIN_DIR, "kota"), "watch", "--layer", "x", "--url", daemon.url],
                          capture_output=True, text=True, env=clean_environment(), check=False)
    check(done.returncode == 2 and "one locale" in done.stderr, str(done))


# ---- a copy -------------------------------------------------------------------------------------

class Copy:
    """The ground of one locale's heightfield, kept as proto/feed.md says, with a feed that is cut."""

    def __init__(self, name, on):
        self.name, self.on = name, on
        self.samples, self.revision, self.fetched = None, 0, 0
        self.refetches = self.resyncs = 0

    def fetch(self, rect=None):
        query = f"?rect={','.join(map(str, rect))}" if rect else ""
        answer = self.on.get(f"/v1/locales/{self.name}/layers/ground/samples{query}")
        equal(answer.status, 200, "window")
        c0, r0, cols, rows = map(int, answer.headers["kota-rect"].split(","))
        heights = struct.unpack(f"<{cols * rows}f", answer.body)
        if rect is None:
            self.cols, self.samples = cols, list(heights)
        else:
            self.write(rect, heights)
        self.fetched = max(self.fetched, int(answer.headers["kota-revision"]))

    def write(self, rect, heights):
        c0, r0, cols, rows = rect
        for j in range(rows):
            start = (r0 + j) * self.cols + c0
            self.samples[start:start + cols] = heights[j * cols:(j + 1) * cols]

    def take(self, frame):
        if frame.kind == RESYNC:
            self.resyncs += 1
            self.fetch()
        elif frame.kind == EDIT and frame.samples is not None:
            self.write(frame.rect, frame.samples)
        elif frame.kind == EDIT and frame.rect:
            self.refetches += 1
            self.fetch(frame.rect)
        if frame.kind in (EDIT, RESYNC, TICK):
            self.revision = frame.revision

    def follow(self, random, until, cut_after=None):
        """Reads frames until a revision; cuts the connection at a random byte now and then."""
        while self.revision < max(until, self.fetched):
            target = at(self.name, f"since={self.revision}" if self.revision else "")
            stream = FrameStream(self.on.port, target)
            if self.samples is None:
                self.revision = stream.hello.revision
                self.fetch()
            left = random.randrange(1, cut_after) if cut_after else 1 << 60
            while self.revision < max(until, self.fetched):
                if not stream.waiting:
                    stream.waiting, stream.received = split(stream.received)
                if stream.waiting:
                    self.take(stream.waiting.pop(0))
                    continue
                got = stream.socket.recv(min(left, 1 << 16))
                check(got, "the stream has ended")
                stream.received += got
                left -= len(got)
                if left <= 0:
                    break
            stream.close()


@test("a copy whose feed is cut at random bytes is equal at each revision that it names")
def _():
    random = rng("cuts")
    put_terrain(daemon, "copied", flat(120))
    copy, done = Copy("copied", Daemon.__new__(Daemon)), threading.Event()
    copy.on.port, copy.on.connection, copy.on.front = daemon.port, None, None
    edits = 150

    def write():
        own = Daemon.__new__(Daemon)
        own.port, own.connection, own.front = daemon.port, None, None
        for k in range(edits):
            cols, rows = random.randrange(1, 20), random.randrange(1, 20)
            edit("copied", [random.randrange(120 - cols), random.randrange(120 - rows), cols, rows],
                 [f32(random.uniform(-9, 9)) for _ in range(cols * rows)], own)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    copy.follow(rng("bytes"), 2 + edits, 4000)
    thread.join()
    equal(copy.revision, 2 + edits, "revision")
    want = daemon.get("/v1/locales/copied/layers/ground/samples").body
    equal(struct.pack(f"<{len(copy.samples)}f", *copy.samples), want, "the copy")
    equal(copy.resyncs, 0, "resyncs")


@test("a copy of a daemon that is killed and started again catches up")
def _():
    random = rng("killed")
    with tempfile.TemporaryDirectory() as folder:
        first = Daemon("--data", folder)
        put_terrain(first, "copied", flat(60))
        copy = Copy("copied", first)
        copy.follow(random, 2)
        for k in range(20):
            last = edit("copied", [k, k, 5, 5], [float(k)] * 25, first)
        copy.follow(random, last - 10)
        first.kill()
        with Daemon("--data", folder) as second:
            copy.on = second
            last = edit("copied", [30, 30, 2, 2], [7.0] * 4, second)
            copy.follow(random, last)
            want = second.get("/v1/locales/copied/layers/ground/samples").body
            equal(struct.pack(f"<{len(copy.samples)}f", *copy.samples), want, "the copy")
            check(copy.refetches > 0, "events from before the restart had no samples")


# ---- errors -------------------------------------------------------------------------------------

def refused(query, status, code, pointer):
    document = problem(daemon.get(at("field", query)), status, pointer=pointer)
    equal(document["code"], code, "code")


for query_, status_, code_, pointer_ in (
        ("bounds=1,2,3", 400, "bad_input", "bounds"), ("bounds=1,2,0,3", 400, "bad_input", "bounds"),
        ("bounds=1,2,3,nan", 400, "bad_input", "bounds"), ("bounds=1,9,3,2", 400, "bad_input", "bounds"),
        ("samples=f64", 400, "bad_input", "samples"), ("layer=nowhere", 422, "layer_unknown", "layer"),
        ("rate=3", 400, "unknown_parameter", "rate")):
    case(f"{query_}: {status_} {code_}", refused, query_, status_, code_, pointer_)


@test("another version of the frames is 406; other media types get text")
def _():
    answer = daemon.get(at("field"), headers={"Accept": f"{FEED};version=3"})
    equal(problem(answer, 406, "version 2", pointer="Accept")["code"], "not_acceptable", "code")
    for accept, media in ((f"text/event-stream, {FEED};q=0", "text/event-stream"), ("*/*", "text/event-stream"),
                          (f"{FEED};version=2", FEED), (f"{FEED.upper()}, text/event-stream;q=0.5", FEED)):
        with Stream(daemon.port, at("field"), {"Accept": accept}) as stream:
            equal((stream.status, stream.headers["content-type"]), (200, media), accept)


run(daemon.stop)
