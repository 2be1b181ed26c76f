"""Server-sent events of a locale and of all: order, resumption, gaps, slow and many readers; and
reads that wait for a revision."""
import os
import resource
import signal
import tempfile
import threading
import time

from daemon import F32, PROXY, SLOW, Daemon, check, equal, problem
from events import Stream
from fields import Terrain, put_layer, put_locale, put_terrain
from tap import HANG_S, Skip, case, rng, run, test, wait_for

daemon = Daemon()
FIELD = Terrain(5, 4, [[c + 10 * r for c in range(5)] for r in range(4)])
RING = daemon.ok("GET", "/v1/limits")["feed_events_max"]
started = time.monotonic()
put_locale(daemon, "quiet")
silent = Stream(daemon.port, "/v1/locales/quiet/events")


def at(name):
    return f"/v1/locales/{name}/events"


def edit(name, body, where=None):
    """Edits, and returns the revision."""
    return (where or daemon).ok("POST", f"/v1/locales/{name}/edits", body)["revision"]


def change(name, where=None):
    """One revision more; returns it."""
    return edit(name, {"rect": [1, 1, 1, 1], "op": "add", "heights": [0.5]}, where)


def streams():
    return daemon.ok("GET", "/v1/stats")["http"]


def sequence():
    """The sequence of the last change of all."""
    with Stream(daemon.port, "/v1/events?since=999999999999") as stream:
        event = stream.event()
        equal(event.name, "resync", "event")
        return event.id


class Second(Daemon):
    """Another connection to the daemon, for another thread."""

    def __init__(self, port):
        self.port = port
        self.connection = None

    def __exit__(self, *_):
        self.connection.close()


# ---- the shape ------------------------------------------------------------------------------------


@test("a stream is text/event-stream without a length, says its revision, and begins with retry")
def _():
    revision = put_terrain(daemon, "shape", FIELD)["revision"]
    with Stream(daemon.port, at("shape")) as stream:
        equal(stream.status, 200, "status")
        for name, value in (("content-type", "text/event-stream"), ("cache-control", "no-store"),
                            ("kota-revision", str(revision))):
            equal(stream.headers.get(name), value, name)
        if not PROXY:  # for the proxy, and by it
            equal(stream.headers.get("x-accel-buffering"), "no", "x-accel-buffering")
            equal(stream.headers.get("connection"), "close", "connection")
            check("transfer-encoding" not in stream.headers, "chunks")
        check("content-length" not in stream.headers, "a length")
        equal(stream.block(), [("retry", "2000"), ("", "kota")], "the first block")


@test("an event tells locale, revision, rect, bounds, source and layer")
def _():
    before = sequence()
    with Stream(daemon.port, at("shape")) as stream, Stream(daemon.port, "/v1/events") as world:
        equal(world.headers.get("kota-revision"), None, "no revision over all locales")
        revision = put_layer(daemon, "shape", FIELD, status=200)["revision"]
        put_locale(daemon, "shape", status=200, title="x")
        events = stream.events(2)
        others = world.events(2)
    equal([e.id for e in events], [revision, revision + 1], "ids of the locale")
    equal([e.id for e in others], [before + 1, before + 2], "ids over all")
    equal([e.data for e in others], [e.data for e in events], "the same changes")
    for event, source, layer in zip(events, ("layer", "manifest"), ("ground", None)):
        equal([name for name, _ in event.fields], ["event", "id", "data"], "fields")
        equal(event.name, "edit", "event")
        equal(sorted(event.data), sorted(("locale", "revision", "rect", "bounds", "source",
                                          "layer")), "members")
        equal((event.data["locale"], event.data["revision"]), ("shape", event.id), "what")
        equal((event.data["source"], event.data["layer"]), (source, layer), "source and layer")
    equal(events[0].data["rect"], [0, 0, 5, 4], "the rect of a layer")
    equal(events[0].data["bounds"], {"min": [0, 0, 0], "max": [4, 3, 34]}, "its bounds")


@test("an edit tells its samples, and bounds of the surface as it was and is")
def _():
    put_terrain(daemon, "edited", FIELD)
    with Stream(daemon.port, at("edited")) as stream:
        edit("edited", {"rect": [1, 2, 2, 1], "op": "set", "heights": [-7, 99]})
        event = stream.event()
        equal((event.data["source"], event.data["rect"]), ("edit", [1, 2, 2, 1]), "an edit")
        low, high = event.data["bounds"]["min"], event.data["bounds"]["max"]
        equal((low[:2], high[:2]), ([0, 1], [3, 3]), "the cells that its samples touch")
        check(low[2] <= -7 and high[2] >= 99, f"heights {low[2]} to {high[2]}")
        edit("edited", {"brush": {"shape": "raise", "center": [2, 2], "radius": 1.5, "amount": 1}})
        event = stream.event()
        equal((event.data["source"], event.data["layer"]), ("brush", "ground"), "a brush")
        check(event.data["bounds"]["max"][2] >= 99, "as it was and is")


@test("HEAD answers the headers, opens no stream, and leaves the connection closed")
def _():
    before = streams()["streams_opened"]
    for target in (at("shape"), "/v1/events?since=1"):
        received = daemon.raw(f"HEAD {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        check(received.startswith(b"HTTP/1.1 200 "), f"{received[:80]!r}")
        check(received.endswith(b"\r\n\r\n") and received.count(b"\r\n\r\n") == 1, "a body")
        check(b"text/event-stream" in received and b"Content-Length" not in received, "headers")
    equal(streams()["streams_opened"], before, "streams")


@test("an unknown locale is 404, an id or a parameter that is none 400, other methods 405")
def _():
    problem(daemon.get(at("nobody")), 404, "nobody")
    for text in ("x", "-1", "1.5", "", "1e3", "99999999999999999999"):
        for target in (at("shape"), "/v1/events"):
            problem(daemon.get(f"{target}?since={text}"), 400, "since", pointer="since")
            problem(daemon.get(target, headers={"Last-Event-ID": text}), 400,
                    pointer="Last-Event-ID")
    problem(daemon.get(at("shape") + "?from=1"), 400, "from")
    problem(daemon.get(at("shape") + "?since=x", headers={"Last-Event-ID": "1"}), 400, "since")
    equal(daemon.post(at("shape"), {}).status, 405, "POST")


# ---- who gets what --------------------------------------------------------------------------------


@test("two subscribers get the same events in order, those of their locale alone")
def _():
    put_terrain(daemon, "one", FIELD)
    put_terrain(daemon, "two", FIELD)
    with Stream(daemon.port, at("one")) as a, Stream(daemon.port, at("one")) as b, \
            Stream(daemon.port, at("two")) as other:
        revisions = [change("one") for _ in range(10)]
        last = change("two")
        revisions += [change("one") for _ in range(10)]
        got = a.events(20)
        equal([e.id for e in got], revisions, "ids")
        equal([e.data for e in b.events(20)], [e.data for e in got], "the other's")
        event = other.event()
        equal((event.id, event.data["locale"]), (last, "two"), "the other locale's")


@test("since= replays what came after it, and Last-Event-ID wins over it")
def _():
    put_terrain(daemon, "replayed", FIELD)
    last = [change("replayed") for _ in range(5)][-1]
    with Stream(daemon.port, at("replayed") + "?since=0") as stream:
        equal([e.id for e in stream.events(last)], list(range(1, last + 1)), "from the start")
    with Stream(daemon.port, at("replayed") + f"?since={last - 2}") as stream:
        equal([e.id for e in stream.events(2)], [last - 1, last], "the last two")
    with Stream(daemon.port, at("replayed") + "?since=0",
                headers={"Last-Event-ID": str(last - 1)}) as stream:
        equal(stream.event().id, last, "the header")
    with Stream(daemon.port, at("replayed"), headers={"Last-Event-ID": str(last)}) as stream:
        equal(change("replayed"), last + 1, "revision")
        equal(stream.event().id, last + 1, "nothing before it")


def follow(target, last, end, random):
    """Reads by many short connections, each from where the one before ended."""
    ids = []
    while last < end:
        with Stream(daemon.port, target, headers={"Last-Event-ID": str(last)}) as stream:
            for _ in range(random.randrange(1, 12)):
                event = stream.event()
                equal(event.name, "edit", f"after {last}")
                ids.append(event.id)
                last = event.id
                if last >= end:
                    break
    return ids


def resumed(target_of_all):
    random = rng("resume" + str(target_of_all))
    name = "resumed-all" if target_of_all else "resumed"
    first = put_terrain(daemon, name, FIELD)["revision"]
    start = sequence() if target_of_all else first
    count = 300
    failures = []

    def write():
        try:
            with Second(daemon.port) as writer:
                for _ in range(count):
                    change(name, writer)
        except BaseException as error:
            failures.append(error)
    thread = threading.Thread(target=write)
    thread.start()
    ids = follow("/v1/events" if target_of_all else at(name), start, start + count, random)
    thread.join()
    check(not failures, f"{failures}")
    equal(ids, list(range(start + 1, start + count + 1)), "ids")


case("a reader of a locale resumes without loss or double while edits go on", resumed, False)
case("a reader of all locales resumes without loss or double while edits go on", resumed, True)


@test("what lies in the future is answered by a resync to the present")
def _():
    revision = put_terrain(daemon, "future", FIELD)["revision"]
    with Stream(daemon.port, at("future") + f"?since={revision + 1}") as stream, \
            Stream(daemon.port, "/v1/events?since=888888888888") as world:
        event = stream.event()
        equal((event.name, event.id, event.data),
              ("resync", revision, {"locale": "future", "revision": revision}), "resync")
        event = world.event()
        equal((event.name, event.data),
              ("resync", {"locale": None, "revision": None, "sequence": event.id}), "resync")
        equal(change("future"), revision + 1, "revision")
        equal(stream.event().id, revision + 1, "then what follows")
        equal(world.event().id, event.id + 1, "then what follows")


@test("a deleted locale says so and ends its streams, and goes on counting when it comes again")
def _():
    revision = put_terrain(daemon, "mortal", FIELD)["revision"]
    before = streams()["streams_ended"]["over"]
    with Stream(daemon.port, at("mortal")) as stream, Stream(daemon.port, "/v1/events") as world:
        daemon.ok("DELETE", "/v1/locales/mortal", status=204)
        events = stream.rest()
        equal([(e.id, e.data["source"]) for e in events], [(revision + 1, "delete")], "the end")
        equal(world.event().data, events[0].data, "over all")
        equal(streams()["streams_ended"]["over"], before + 1, "counted")
        problem(daemon.get(at("mortal")), 404, "mortal")


# ---- many and slow ones ---------------------------------------------------------------------------


@test("1,000 subscribers get the same events")
def _():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2500:
        raise Skip(f"only {hard} open files allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2500), hard))
    put_terrain(daemon, "many", FIELD)
    readers = []
    try:
        for _ in range(1000):
            readers.append(Stream(daemon.port, at("many")))
        equal(streams()["streams_open"], 1001, "streams")  # and the silent one
        revisions = [change("many") for _ in range(20)]
        first = None
        for reader in readers:
            got = [(e.id, e.data) for e in reader.events(20)]
            first = first or got
            equal(got, first, "events")
        equal([i for i, _ in first], revisions, "ids")
    finally:
        for reader in readers:
            reader.close()
    wait_for("all streams are gone", lambda: streams()["streams_open"] == 1)


def change_often(name, count):
    """So many revisions more, by pipelined requests on connections of their own."""
    one = (f"PUT /v1/locales/{name} HTTP/1.1\r\nHost: x\r\n{daemon.token_line}Content-Length: 2\r\n\r\n"
           "{}").encode()
    last = one.replace(b"Host: x", b"Host: x\r\nConnection: close")

    def write():
        received = daemon.raw(one * (count // 4 - 1) + last, timeout=HANG_S)
        equal(received.count(b"HTTP/1.1 200 "), count // 4, "answers")
    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@test("a reader that does not keep up is cut off and counted while others go on, then resyncs")
def _():
    put_locale(daemon, "flood")
    before = streams()["streams_ended"]
    slow = Stream(daemon.port, at("flood"), receive_bytes=4096)
    quick = Stream(daemon.port, at("flood"))
    got = []
    reader = threading.Thread(target=lambda: got.extend(e.id for e in quick.events(count)))
    count = (RING + 4000) // 4 * 4
    reader.start()
    change_often("flood", count)
    reader.join()
    equal(got, list(range(2, count + 2)), "the quick one has all")
    events = slow.rest()
    ids = [e.id for e in events]
    equal(ids, list(range(2, len(ids) + 2)), "the slow one has the first ones")
    check(len(ids) < count - 100, f"{len(ids)} of {count} events waited for it")
    after = streams()["streams_ended"]
    equal(after["behind"] + after["stalled"], before["behind"] + before["stalled"] + 1, "counted")
    slow.close()
    quick.close()
    with Stream(daemon.port, at("flood"), headers={"Last-Event-ID": str(ids[-1])}) as stream:
        event = stream.event()
        equal((event.name, event.id), ("resync", count + 1), "it comes back")
    metrics = daemon.get("/metrics").body.decode()
    check('kota_streams_ended_total{reason="behind"} ' in metrics, "metrics")


@test("a silent reader holds no snapshot, and 100 changes leave no memory behind")
def _():
    side = 513
    big = Terrain(side, side, [[0.5] * side] * side)
    put_terrain(daemon, "large", big)
    layer, body = f"/v1/locales/large/layers/ground?{big.query()}", big.body()

    def put(times):
        for _ in range(times):
            daemon.ok("PUT", layer, body, media=F32)
    with Stream(daemon.port, at("large")), Stream(daemon.port, "/v1/events"):
        put(70)  # the last 64 revisions are held
        before = daemon.memory_kib()
        put(100)
        check(daemon.memory_kib() < before + 32 * 1024 * SLOW,
              f"{before} KiB became {daemon.memory_kib()} KiB")
        wait_for("no snapshot is kept",
                 lambda: daemon.ok("GET", "/v1/stats")["world"]["snapshots_retired"] == 0)


@test("a peer that has gone is noticed at once")
def _():
    wait_for("only the silent one is open", lambda: streams()["streams_open"] == 1)
    before = streams()
    stream = Stream(daemon.port, at("shape"))
    equal(streams()["streams_open"], before["streams_open"] + 1, "open")
    stream.close()
    wait_for("left", lambda: streams()["streams_ended"]["left"] == before["streams_ended"]["left"] + 1)


@test("more streams than --max-streams are 503, and /v1/limits tells how many")
def _():
    with Daemon("--max-streams", "2") as small:
        equal(small.ok("GET", "/v1/limits")["streams_max"], 2, "limit")
        with Stream(small.port, "/v1/events"), Stream(small.port, "/v1/events"):
            answer = small.get("/v1/events")
            problem(answer, 503, "2 streams", limit=2)
            equal(answer.headers.get("retry-after"), "1", "Retry-After")
            equal(small.ok("GET", "/v1/stats")["http"]["streams_rejected"], 1, "rejected")


@test("SIGTERM ends all streams at once")
def _():
    with Daemon() as other:
        readers = [Stream(other.port, "/v1/events") for _ in range(5)]
        other.process.send_signal(signal.SIGTERM)
        for reader in readers:
            equal(reader.rest(), [], "events")
        other.process.wait(timeout=HANG_S)


@test("events are read like everything else: by a token where reading needs one")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokens")
        with open(path, "w") as file:
            file.write("read glass-0123456789abcdef\nedit chisel-0123456789abcdef\n")
        os.chmod(path, 0o600)
        with Daemon("--token-file", path) as closed:
            problem(closed.get("/v1/events"), 401)
            problem(closed.get("/v1/events", headers={"Authorization": "Bearer x"}), 401)
            for token in ("glass", "chisel"):
                with Stream(closed.port, "/v1/events", headers={
                        "Authorization": f"Bearer {token}-0123456789abcdef"}) as stream:
                    equal(stream.status, 200, token)
    with Stream(daemon.port, "/v1/events", headers={"Origin": "http://elsewhere.example"}) as stream:
        equal(stream.status, 200, "a page of another host")
        equal(stream.headers.get("access-control-allow-origin"), "*", "CORS")


# ---- Kota-Min-Revision ----------------------------------------------------------------------------

TILE = "/tiles/0/0/0?format=f32"


def waits(method, tail, body):
    """A read that is asked before its revision is there is answered when it comes."""
    name = "awaited"
    now = daemon.ask("GET", f"/v1/locales/{name}")
    revision = now.json["revision"] if now.status == 200 else put_terrain(
        daemon, name, FIELD)["revision"]
    answers = []

    def ask():
        with Second(daemon.port) as other:
            answers.append(other.ask(method, f"/v1/locales/{name}{tail}", body,
                                     headers={"Kota-Min-Revision": str(revision + 1)}))
    thread = threading.Thread(target=ask)
    begun = daemon.ok("GET", "/v1/stats")["http"]["connections_accepted"]
    thread.start()
    wait_for("asked", lambda: daemon.ok("GET", "/v1/stats")["http"]["connections_accepted"] > begun)
    time.sleep(0.05)
    equal(answers, [], "answered too early")
    change(name)
    thread.join()
    equal(answers[0].status, 200, f"{answers[0]}")
    check(int(answers[0].headers["kota-revision"]) > revision, "an older revision")


POINTS = {"points": [[0.5, 0.5]]}
for method_, tail_, body_ in (
        ("GET", "", None), ("GET", "/height?x=1&y=1", None), ("POST", "/height", POINTS),
        ("POST", "/profile", {"path": [[0, 0], [3, 3]], "samples": 3}), ("GET", TILE, None),
        ("POST", "/contains", {"points": [[0, 0, 0]]}), ("GET", "/layers/ground/stats", None),
        ("HEAD", "/height?x=1&y=1", None),
        ("POST", "/height", {"points": [[0.5, 0.5]] * 5000})):
    case(f"{method_} {tail_} waits for its Kota-Min-Revision", waits, method_, tail_, body_)


@test("Kota-Min-Revision waits for a bounded time, then it is 503 with Retry-After")
def _():
    revision = put_terrain(daemon, "never", FIELD)["revision"]
    for tail in ("", TILE):
        answer = daemon.get("/v1/locales/never" + tail,
                            headers={"Kota-Min-Revision": str(revision + 1)})
        problem(answer, 503, "never", str(revision + 1), limit=revision, got=revision + 1)
        equal(answer.headers.get("retry-after"), "1", "Retry-After")
    for least in (0, 1, revision):
        equal(daemon.get("/v1/locales/never", headers={"Kota-Min-Revision": str(least)}).status,
              200, f"at least {least}")


@test("a Kota-Min-Revision that is none is 400, of an unknown locale 404, both at once")
def _():
    for text in ("x", "-1", "1.0", "", "1 2"):
        problem(daemon.get("/v1/locales/never", headers={"Kota-Min-Revision": text}), 400,
                pointer="Kota-Min-Revision")
    problem(daemon.get("/v1/locales/nobody", headers={"Kota-Min-Revision": "5"}), 404)


@test("a stream that waits for its revision begins there")
def _():
    revision = put_terrain(daemon, "begun-late", FIELD)["revision"]
    streams_before = streams()["streams_opened"]
    made = []
    thread = threading.Thread(target=lambda: made.append(Stream(
        daemon.port, at("begun-late"), headers={"Kota-Min-Revision": str(revision + 1)})))
    thread.start()
    equal(change("begun-late"), revision + 1, "revision")
    thread.join()
    with made[0] as stream:
        equal(int(stream.headers["kota-revision"]), revision + 1, "Kota-Revision")
        equal(change("begun-late"), revision + 2, "revision")
        equal(stream.event().id, revision + 2, "the first event")
    equal(streams()["streams_opened"], streams_before + 1, "one stream")


@test("silence is broken by a comment")
def _():
    equal(silent.block(), [("retry", "2000"), ("", "kota")], "the first block")
    equal(silent.block(), [("", "")], "a comment")
    silence_ms = daemon.ok("GET", "/v1/limits")["stream_silence_ms"]
    check(time.monotonic() - started >= silence_ms / 1000 - 0.1, "too early")
    put_locale(daemon, "quiet", status=200)
    equal(silent.event().id, 2, "and an event is still heard")
    silent.close()


run(daemon.stop)
