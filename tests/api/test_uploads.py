"""f32 layers that are built while they arrive: larger than --max-body, in pieces, broken off.

The oracle is struct: what a sample becomes by its bits, scale and place. The buffered path is that
of a file on the command line; both must give the same bytes everywhere.
"""
import array
import functools
import math
import os
import socket
import struct
import tempfile
import time

import metrics
from daemon import F32, SLOW, Daemon, parse_answers, problem, receive
from fields import put_locale
from images import png
from tap import HANG_S, case, check, equal, rng, run, test

MAX_BODY = 1 << 20
COLS, ROWS = 1000, 600  # 2.4 MB; four tiles wide, three high
NAN_BITS = 0x7fc00000
daemon = Daemon("--max-body", str(MAX_BODY))


def wide_body(cols=COLS, rows=ROWS, seed="field"):
    """Samples of all finite magnitudes, zeros of both signs, NaN of any bits."""
    words = list(struct.unpack(f"<{cols * rows}I", rng(seed).randbytes(4 * cols * rows)))
    for i in [i for i, word in enumerate(words) if word & 0x7f800000 == 0x7f800000]:
        words[i] = words[i] | 0x400000 if words[i] % 3 else NAN_BITS  # of NaN and infinity NaN is made
    return struct.pack(f"<{cols * rows}I", *words)


BODY = wide_body()


@functools.lru_cache
def expected(body, cols=COLS, rows=ROWS, flip=False, scale=1.0, offset=0.0, nodata=None):
    """The bytes that an export must have; without scale, offset and nodata by the bits of its samples."""
    if flip:
        packed, width = expected(body, cols, rows, False, scale, offset, nodata), 4 * cols
        return b"".join(packed[i:i + width] for i in range(len(packed) - width, -1, -width))
    if (scale, offset, nodata) != (1.0, 0.0, None):
        body = struct.pack(f"<{cols * rows}f", *[math.nan if code == nodata else offset + scale * code
                                                 for code in struct.unpack(f"<{cols * rows}f", body)])
    words = list(struct.unpack(f"<{cols * rows}I", body))
    for i in [i for i, word in enumerate(words) if word == 0x80000000 or word & 0x7fffffff > 0x7f800000]:
        words[i] = 0 if words[i] == 0x80000000 else NAN_BITS
    return struct.pack(f"<{cols * rows}I", *words)


def at(name, layer="ground"):
    return f"/v1/locales/{name}/layers/{layer}"


def head(target, length=None, extra=(), media=F32):
    lines = [f"PUT {target} HTTP/1.1", "Host: x", f"Content-Type: {media}", *extra,
             "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def sized(cols=COLS, rows=ROWS, more=""):
    return f"?cols={cols}&rows={rows}&spacing=2,3{more}"


def opened(*pieces, of=daemon):
    s = socket.create_connection(("127.0.0.1", of.direct_port), timeout=HANG_S)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for piece in pieces:
        s.sendall(piece)
    return s


def complete(received):
    """Is one whole answer there?"""
    start, _, rest = received.partition(b"\r\n\r\n")
    length = [line for line in start.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(length) and len(rest) >= int(length[0].split(b":")[1])


def answer_of(s):
    answers = parse_answers(receive(s, complete))
    s.close()
    equal(len(answers), 1, "answers")
    return answers[0]


def chunked(body, random, most):
    """The body in chunks of 1 to `most` bytes."""
    place = 0
    while place < len(body):
        some = body[place:place + random.randint(1, most)]
        yield b"%x\r\n%s\r\n" % (len(some), some)
        place += len(some)
    yield b"0\r\n\r\n"


def gauges(of=daemon):
    families = metrics.parse(of.get("/metrics").body.decode())
    return {name: families[f"kota_{name}"].value()
            for name in ("uploads_memory_bytes", "request_bodies_bytes")}


def await_nothing_held(of=daemon):
    """Waits until no upload holds memory or a charge."""
    deadline = time.monotonic() + HANG_S
    while any(gauges(of).values()):
        check(time.monotonic() < deadline, f"still held: {gauges(of)}")
        time.sleep(0.01)


def export(name, of=daemon):
    answer = of.get(at(name))
    check(answer.status == 200, str(answer))
    return answer.body


def same(got, want, what):
    if got != want:
        place = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
        check(False, f"{what}: {len(got)} and {len(want)} bytes, first different at {place}")


# ---- what is sent is there --------------------------------------------------------------------------

@test("a field over --max-body is 201, and its samples are those of the oracle")
def _():
    check(len(BODY) > 2 * MAX_BODY, "the body is over the limit")
    put_locale(daemon, "large")
    made = daemon.ok("PUT", at("large") + sized(), BODY, status=201, media=F32)
    layer = made["layers"][0]
    equal((made["revision"], layer["cols"], layer["rows"], layer["spacing"]), (2, COLS, ROWS, [2, 3]),
          "the layer")
    same(export("large"), expected(BODY), "export")
    daemon.ok("PUT", at("large") + sized(more="&flip_y=true"), BODY, status=200, media=F32)
    same(export("large"), expected(BODY, flip=True), "flipped")
    equal(gauges(), {"uploads_memory_bytes": 0, "request_bodies_bytes": 0}, "gauges")


@test("scale, offset and nodata are those of any upload")
def _():
    random, cols, rows = rng("scaled"), 700, 400
    some = [random.uniform(-500, 500) for _ in range(999)]
    codes = random.choices(some + [math.nan, -9999.0] * 999, k=cols * rows)
    body = struct.pack(f"<{len(codes)}f", *codes)
    put_locale(daemon, "scaled")
    more = "&height_scale=0.1&height_offset=-5&nodata=-9999"
    check(len(body) > MAX_BODY, "the body is over the limit")
    daemon.ok("PUT", at("scaled") + sized(cols, rows, more), body, status=201, media=F32)
    same(export("scaled"), expected(body, cols, rows, scale=0.1, offset=-5.0, nodata=-9999.0), "export")


def in_pieces(most, cols, rows):
    random = rng(f"pieces {most}")
    name = f"pieces-{cols}-{rows}"
    body = wide_body(cols, rows, name)
    put_locale(daemon, name)
    answer = answer_of(opened(head(at(name) + sized(cols, rows)), *chunked(body, random, most)))
    equal(answer.status, 201, str(answer))
    same(export(name), expected(body, cols, rows), "export")
    flipped = opened(head(at(name) + sized(cols, rows, "&flip_y=true"), len(body)))
    place = 0
    while place < len(body):
        some = random.randint(1, most)
        flipped.sendall(body[place:place + some])
        place += some
    equal(answer_of(flipped).status, 200, "with Content-Length")
    same(export(name), expected(body, cols, rows, flip=True), "flipped")


for most_, cols_, rows_ in ((3, 19, 7), (50, 257, 258), (4099, COLS, ROWS), (65536, 513, 1025),
                            (300001, 2, 300000), (300001, 300000, 2)):
    case(f"{cols_} x {rows_} samples in pieces of up to {most_} bytes, chunked and counted", in_pieces,
         most_, cols_, rows_)


@test("tiles, heights and rays are those of the same file on the command line")
def _():
    random = rng("smooth")
    along, up = [100 * math.sin(c / 40) for c in range(COLS)], [50 * math.cos(r / 25) for r in range(ROWS)]
    heights = array.array("f", [x + y + n / 256 for y in up for x, n in zip(along, random.randbytes(COLS))])
    for _ in range(500):
        heights[random.randrange(len(heights))] = math.nan
    query = sized(more="&flip_y=true&origin=-100,50")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "whole.f32")
        with open(path, "wb") as file:
            file.write(heights.tobytes())
        with Daemon(path + query, "--max-body", str(MAX_BODY)) as other:
            put_locale(other, "streamed", triangulation=other.ok(
                "GET", "/v1/locales/whole")["triangulation"])
            other.ok("PUT", at("streamed") + query, heights.tobytes(), status=201, media=F32)
            def both(method, target, body=None):
                got = [other.ask(method, f"/v1/locales/{name}{target}", body)
                       for name in ("whole", "streamed")]
                check(got[0].status == 200, str(got[0]))
                same(*(a.body.replace(b'"locale":"whole"', b'"locale":"streamed"')
                       .replace(b'"revision":2', b'"revision":1') for a in got), target)
            for level, across, up in ((0, 4, 3), (1, 2, 2), (2, 1, 1)):
                for column in range(across):
                    for row in range(up):
                        for kind in ("sampled",) if level == 0 else ("sampled", "min", "max"):
                            both("GET", f"/tiles/{level}/{column}/{row}?format=f32&kind={kind}")
            points = [[random.uniform(-150, 1950), random.uniform(0, 1900)] for _ in range(2000)]
            both("POST", "/height", {"points": points})
            both("POST", "/ray", {"rays": [{"origin": [*p, 400],
                                            "direction": [random.uniform(-1, 1), random.uniform(-1, 1), -0.3]}
                                           for p in points]})


# ---- refused, before the body where that is possible ------------------------------------------------

def refused_at_once(status, target, *words, length=1 << 30, extra=(), of=daemon, media=F32):
    """Only the head is sent; the answer comes."""
    answer = answer_of(opened(head(target, length, extra, media), of=of))
    problem(answer, status, *words)
    return answer


@test("what headers, options and length say is refused before the body comes")
def _():
    put_locale(daemon, "early")
    daemon.ok("PUT", at("early") + sized(2, 2), bytes(16), status=201, media=F32)
    big = sized(16384, 16384)
    refused_at_once(413, at("early") + big, "16384 x 16384", "134217728")
    refused_at_once(413, at("early") + sized(2, 1 << 21), "1048576", length=1 << 24)
    fits = sized(8192, 8192)
    refused_at_once(400, at("early") + fits, "8192 x 8192 samples take 268435456 bytes, got 1073741824")
    refused_at_once(400, at("early") + "?cols=8192&rows=8192", "spacing", length=1 << 28)
    refused_at_once(400, at("early") + fits + "&nodata=x", "nodata", length=1 << 28)
    refused_at_once(400, at("early") + fits + "&scale=1", "scale", length=1 << 28)
    refused_at_once(400, at("early", "a%20b") + fits, "layer id", length=1 << 28)
    refused_at_once(404, at("nowhere") + fits, "nowhere", length=1 << 28)
    refused_at_once(412, at("early") + fits, "revision 2", length=1 << 28, extra=['If-Match: "1"'])
    refused_at_once(412, at("early") + fits, length=1 << 28, extra=["If-None-Match: *"])
    refused_at_once(400, at("early") + fits, "Idempotency-Key", length=1 << 28,
                    extra=["Idempotency-Key: " + "k" * 129])
    refused_at_once(415, at("early") + fits, "encoded", length=1 << 28, extra=["Content-Encoding: gzip"])
    refused_at_once(415, at("early") + fits, "image/png", length=1 << 28, media="text/html")
    equal(gauges(), {"uploads_memory_bytes": 0, "request_bodies_bytes": 0}, "gauges")
    equal(daemon.ok("GET", "/v1/locales/early")["revision"], 2, "revision")


@test("other formats, and other calls, are limited by --max-body as before")
def _():
    put_locale(daemon, "others")
    body = png([[0] * 1500] * 400)
    tall = b"ncols 2\nnrows 300000\ncellsize 1\n" + b"1 2\n" * 300000
    for media, sent, query in (("image/png", body + bytes(MAX_BODY), "?spacing=1,1"),
                               ("text/plain", tall, ""), ("model/obj", bytes(MAX_BODY + 1), "")):
        answer = daemon.put(at("others") + query, sent, media=media)
        problem(answer, 413, str(MAX_BODY), limit=MAX_BODY, got=len(sent))
    problem(daemon.post("/v1/locales/others/edits", bytes(MAX_BODY + 1), media=F32), 413, str(MAX_BODY))
    daemon.ok("PUT", at("others") + "?spacing=1,1", body, status=201, media="image/png")


@test("without a right nothing of a large body is taken")
def _():
    with tempfile.NamedTemporaryFile("w") as tokens:
        tokens.write("read read-token-0123456789abcdef\nedit edit-token-0123456789abcdef\n")
        tokens.flush()
        with Daemon("--token-file", tokens.name, "--max-body", str(MAX_BODY)) as guarded:
            edit = {"Authorization": "Bearer edit-token-0123456789abcdef"}
            guarded.ok("PUT", "/v1/locales/a", {}, status=201, headers=edit)
            query = sized(8192, 8192)
            refused_at_once(401, at("a") + query, length=1 << 28, of=guarded)
            refused_at_once(403, at("a") + query, length=1 << 28, of=guarded,
                            extra=["Authorization: Bearer read-token-0123456789abcdef"])
            guarded.ok("PUT", at("a") + sized(), BODY, status=201, media=F32, headers=edit)


@test("a wrong length or an infinite sample is 400 as for a short body, and leaves nothing")
def _():
    put_locale(daemon, "wrong")
    for cols, rows in ((5, 4), (COLS, ROWS)):
        good = bytes(4 * cols * rows)
        named = f"{cols} x {rows} samples take {len(good)} bytes"
        for body in (good[:-1], good[:-4], good + b"x", good + bytes(4)):
            problem(daemon.put(at("wrong") + sized(cols, rows), body, media=F32), 400,
                    f"{named}, got {len(body)}", limit=len(good))
            pieces = chunked(body, rng("wrong"), 70000)
            answer = answer_of(opened(head(at("wrong") + sized(cols, rows)), *pieces))
            problem(answer, 400, named, limit=len(good))
        for place in (0, cols + 1, cols * rows - 1):
            body = bytearray(good)
            body[4 * place:4 * place + 4] = struct.pack("<f", -math.inf)
            problem(daemon.put(at("wrong") + sized(cols, rows), body, media=F32), 400,
                    f"column {place % cols} of row {place // cols} ", "infinite")
    problem(answer_of(opened(head(at("wrong") + sized()),
                             *chunked(bytes(3 * len(BODY)), rng("long"), 70000))), 400, "got more")
    problem(daemon.put(at("wrong") + sized(5, 4), b"", media=F32), 400, "take 80 bytes, got 0")
    await_nothing_held()
    locale = daemon.ok("GET", "/v1/locales/wrong")
    equal((locale["revision"], locale["layers"]), (1, []), "the locale")


@test("a chunk that is malformed ends the upload")
def _():
    put_locale(daemon, "malformed")
    s = opened(head(at("malformed") + sized()), b"%x\r\n%s\r\n" % (1 << 20, bytes(1 << 20)), b"zz\r\n")
    problem(answer_of(s), 400, "chunk size")
    await_nothing_held()


# ---- broken off -------------------------------------------------------------------------------------

@test("an upload that is broken off leaves no memory, no charge and no revision")
def _():
    put_locale(daemon, "broken")
    cols = rows = 2048  # 16 MiB
    daemon.ok("PUT", at("broken") + sized(), BODY, status=201, media=F32)
    await_nothing_held()
    before = daemon.memory_kib()
    for i in range(12):
        s = opened(head(at("broken") + sized(cols, rows), None if i % 2 else 4 * cols * rows),
                   *([b"1000000\r\n"] if i % 2 else []), bytes((0, 1000, 3 << 20, 15 << 20)[i % 4]))
        if i % 4 < 2:
            while gauges()["uploads_memory_bytes"] == 0:  # it has begun
                time.sleep(0.01)
        if i % 3 == 0:
            s.shutdown(socket.SHUT_WR)
            problem(answer_of(s), 400, "closed in the middle")
        elif i % 3 == 1:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
        await_nothing_held()
    if SLOW == 1:
        grown = daemon.memory_kib() - before
        check(grown < 24 << 10, f"{grown} KiB more after 12 broken uploads of 16 MiB")
    equal(daemon.ok("GET", "/v1/locales/broken")["revision"], 2, "revision")
    same(export("broken"), expected(BODY), "export")
    daemon.ok("PUT", at("broken") + sized(more="&flip_y=true"), BODY, media=F32)
    same(export("broken"), expected(BODY, flip=True), "another upload")


@test("an upload that stalls is 408 and leaves nothing")
def _():
    with Daemon("--body-ms", "500", "--max-body", str(MAX_BODY)) as quick:
        put_locale(quick, "slow")
        s = opened(head(at("slow") + sized(), len(BODY)), BODY[:1000], of=quick)
        problem(answer_of(s), 408, "body")
        await_nothing_held(quick)
        quick.ok("PUT", at("slow") + sized(), BODY, status=201, media=F32)


@test("an upload of 64 MiB takes the memory of its field and little more")
def _():
    side = 4096
    body = array.array("f", range(side)).tobytes() * side
    with Daemon("--max-body", str(MAX_BODY)) as small:
        put_locale(small, "a")
        before = small.memory_kib()
        made = small.ok("PUT", at("a") + sized(side, side), body, status=201, media=F32)
        field = made["memory_bytes"] >> 10
        most = small.memory_kib("VmHWM") - before
        check(field > 64 << 10, f"the field has {field} KiB")
        if SLOW == 1:
            check(most < field + (24 << 10), f"{most} KiB for a field of {field} KiB")
        same(export("a", small)[-4 * side:], body[-4 * side:], "the last row")


# ---- others at the same time ------------------------------------------------------------------------

@test("fields that arrive are bounded by --max-uploads from their first byte on")
def _():
    with Daemon("--max-uploads", "4000000", "--max-body", str(MAX_BODY)) as narrow:
        put_locale(narrow, "a")
        first = opened(head(at("a", "one") + sized(), len(BODY)), BODY[:500000], of=narrow)
        while gauges(narrow)["uploads_memory_bytes"] == 0:
            time.sleep(0.01)
        answer = refused_at_once(503, at("a", "two") + sized(), "4000000", length=len(BODY), of=narrow)
        check(int(answer.headers["retry-after"]) >= 1, f"{answer.headers}")
        first.sendall(BODY[500000:])
        equal(answer_of(first).status, 201, "the first")
        narrow.ok("PUT", at("a", "two") + sized(), BODY, status=201, media=F32)
        bad = BODY[:1 << 20] + struct.pack("<f", math.inf) + BODY[(1 << 20) + 4:]
        for _ in range(5):  # an error gives the charge back before its answer
            problem(narrow.put(at("a", "three") + sized(), bad, media=F32), 400, "infinite")


@test("the locale is judged when the body is there: gone, changed, or split in another way")
def _():
    for what, status in (("gone", 404), ("changed", 412), ("split", 201)):
        name = "judged-" + what
        put_locale(daemon, name, triangulation="anti")
        s = opened(head(at(name) + sized(), len(BODY), ['If-Match: "1"'] if what == "changed" else []),
                   BODY[:1500000])
        while gauges()["uploads_memory_bytes"] == 0:
            time.sleep(0.01)
        if what == "gone":
            daemon.ok("DELETE", f"/v1/locales/{name}", status=204)
        elif what == "changed":
            daemon.ok("PUT", f"/v1/locales/{name}", {"title": "other", "triangulation": "anti"})
        else:
            daemon.ok("PUT", f"/v1/locales/{name}", {"triangulation": "main"})
        s.sendall(BODY[1500000:])
        answer = answer_of(s)
        equal(answer.status, status, str(answer))
        await_nothing_held()
    ramp = array.array("f", [c * r for r in range(ROWS) for c in range(COLS)]).tobytes()
    daemon.ok("PUT", at("judged-split") + sized(), ramp, media=F32)
    got = daemon.ok("GET", "/v1/locales/judged-split/height?x=1&y=0.75")  # u 0.5, v 0.25
    equal(got["height"], 0.25, "by the diagonal from (0,0)")  # anti: 0


@test("questions are answered while a field arrives")
def _():
    s = opened(head(at("large") + sized(), len(BODY)), BODY[:1500000])
    for _ in range(50):
        equal(daemon.get("/v1/locales/large/height?x=1&y=1").status, 200, "height")
    s.sendall(BODY[1500000:])
    equal(answer_of(s).status, 200, "the upload")


# ---- the same key again -----------------------------------------------------------------------------

@test("a repeat under an Idempotency-Key has the first answer; another body is 422")
def _():
    put_locale(daemon, "keyed")
    key = {"Idempotency-Key": "one"}
    first = daemon.put(at("keyed") + sized(), BODY, media=F32, headers=key)
    equal(first.status, 201, str(first))
    pieces = list(chunked(BODY, rng("keyed"), 90000))
    for again in (daemon.put(at("keyed") + sized(), BODY, media=F32, headers=key),
                  answer_of(opened(head(at("keyed") + sized(), None, ["Idempotency-Key: one"]),
                                   *pieces))):
        equal((again.status, again.body), (201, first.body), "again")
        equal(again.headers.get("idempotency-replayed"), "true", "Idempotency-Replayed")
        equal(again.headers["kota-revision"], "2", "Kota-Revision")
    other = BODY[:-4] + struct.pack("<f", 1.25)
    problem(daemon.put(at("keyed") + sized(), other, media=F32, headers=key), 422, "Idempotency-Key")
    problem(daemon.put(at("keyed") + sized(more="&flip_y=true"), BODY, media=F32, headers=key), 422)
    equal(daemon.ok("GET", "/v1/locales/keyed")["revision"], 2, "revision")
    daemon.ok("DELETE", "/v1/locales/keyed", status=204)
    gone = daemon.put(at("keyed") + sized(), BODY, media=F32, headers=key)
    equal((gone.status, gone.body), (201, first.body), "when the locale is gone")
    problem(daemon.put(at("keyed") + sized(), BODY, media=F32, headers={"Idempotency-Key": "two"}), 404)
    await_nothing_held()


run(daemon.stop)
