"""Storms: many requests that are each allowed, mixed, cut and left in the middle at random places.

Whatever came of one request may not depend on what went before it on the connection or beside it;
and who goes away takes everything with him that was held for him: items, bodies, streams, files.
"""
import json
import os
import random
import re
import socket
import struct
import threading
import time

from daemon import F32, JSON, SLOW, Daemon, parse_answers, receive
from events import Stream
from tap import HANG_S, check, equal, rng, run, test

LAND = "/v1/locales/land"
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close() sends a reset
COLS, ROWS = 40, 30


def land(*args):
    daemon = Daemon(*args)
    daemon.ok("PUT", LAND, {}, status=201)
    heights = struct.pack(f"<{COLS * ROWS}f", *(c / 4 + r / 8 for r in range(ROWS)
                                                for c in range(COLS)))
    daemon.ok("PUT", f"{LAND}/layers/ground?cols={COLS}&rows={ROWS}&spacing=1,1", heights,
              media=F32, status=201)
    return daemon


def connect(daemon):
    s = socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def go_away(s, rough):
    if rough:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    s.close()


def files(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def until(daemon, what, read):
    """Waits until nothing is held any more."""
    deadline = time.monotonic() + HANG_S
    while (got := read()) != 0:
        check(time.monotonic() < deadline, f"{what}: still {got}")
        time.sleep(0.02)


def nothing_is_held(daemon, fds):
    until(daemon, "items in flight", lambda: daemon.ok("GET", "/v1/stats")["items_in_flight"])
    until(daemon, "requests in the queue", lambda: daemon.ok("GET", "/v1/stats")["http"]["queued"])
    until(daemon, "streams", lambda: daemon.ok("GET", "/v1/stats")["http"]["streams_open"])
    until(daemon, "files too many", lambda: max(0, files(daemon) - fds))


def cut(random, data, most=6):
    """The same bytes in up to `most` pieces."""
    places = sorted(random.sample(range(1, len(data)), min(len(data) - 1, random.randrange(most))))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)])]


# ---- requests that follow each other ---------------------------------------------------------------

NAMES = ["Host", "host", "HOST", "hOsT"]
EXTRAS = ["", "Accept: */*\r\n", "accept: */*\r\n", "ACCEPT:*/*\r\n", "Accept: */*\r\nAccept: a/b\r\n",
          "If-None-Match: *\r\n", 'If-None-Match: "x"\r\n', "if-NONE-match: W/\"x\", *\r\n",
          "Origin: https://a\r\n", "origin: https://b\r\nORIGIN: https://a\r\n",
          "Kota-Min-Revision: 1\r\n", "kota-MIN-revision: 1\r\nKota-Min-Revision: 2\r\n",
          "Authorization: Bearer a\r\n", "AUTHORIZATION: Bearer a\r\nauthorization: Bearer b\r\n",
          "Connection: keep-alive\r\n", "Content-Type: text/plain\r\ncontent-type: text/html\r\n",
          "X: " + "y" * 900 + "\r\n", "X:\r\n", "Content-Length: 0\r\n", "Cookie: a=b\r\ncookie: c\r\n"]
TARGETS = [f"{LAND}/height?x=1&y=2", f"{LAND}/height?x=39&y=29", f"{LAND}/height?x=NaN&y=2",
           f"{LAND}/height?x=1&x=2&y=3", "/v1/locales", "/livez", "/v1/limits", "/", "/web/state.js",
           "/web/../web/state.js", "/web/%2e%2e/state.js", "/web/", "/nope", f"{LAND}/tiles/0/0/0",
           f"{LAND}/tiles/0/0/0?format=f32", f"{LAND}/tiles/0/9/0"]
BODY = json.dumps({"points": [[1, 1], [2.5, 3]]}).encode()
# Lengths that are the same and that differ, what is no JSON, and what a next request looks like.
BODIES = [BODY, BODY.replace(b"2.5", b"3.5"), BODY + b" ", b"{}", b"[]", b"x" * len(BODY), b" " * 9,
          b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"]


def chunked(random, data):
    """The data in chunks of random sizes, with whatever the grammar allows around them."""
    out = b""
    while data:
        size = random.choice((1, 1, 2, 7, len(data)))
        part, data = data[:size], data[size:]
        text = random.choice(("%x", "%X", "0%x", "000%x")) % len(part)
        more = random.choice(("", "", ";a", ";a=b", ' ; a="x;\\"y" ;b', "\t;q"))
        out += text.encode() + more.encode() + b"\r\n" + part + b"\r\n"
    return out + random.choice((b"0\r\n\r\n", b"00;x\r\n\r\n", b"0\r\nA: b\r\nContent-Length: 9\r\n\r\n"))


def any_request(random):
    """(bytes, method)"""
    lines = f"{random.choice(NAMES)}:{random.choice(('', ' ', '  '))}a{random.choice(('', ' '))}\r\n"
    extra = random.choice(EXTRAS)
    lines = lines + extra if random.random() < 0.7 else extra + lines
    kind = random.random()
    if kind < 0.7:
        method = random.choice(("GET", "GET", "GET", "GET", "HEAD", "OPTIONS", "DELETE"))
        target = random.choice(TARGETS if method != "DELETE" else ["/nope"])
        return f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode(), method
    lines = re.sub("(?i)content-(type|length): .*\r\n", "", lines)
    method = random.choice(("POST", "POST", "POST", "POST", "GET", "PUT", "DELETE"))
    media = random.choice((JSON, JSON, JSON, F32, "text/plain"))
    body = random.choice(BODIES)
    head = f"{method} {LAND}/height HTTP/1.1\r\n{lines}Content-Type: {media}\r\n"
    if kind < 0.9:
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body, method
    head = f"POST {LAND}/height HTTP/1.1\r\n{lines}Content-Type: {JSON}\r\n"
    return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunked(random, BODY), "POST"


def tidy(answer):
    """What must be the same each time."""
    body = re.sub(rb'"(uptime_s|resident_bytes)":[^,}]*', b"", answer.body)
    return answer.status, body, sorted(pair for pair in answer.pairs
                                       if pair[0] not in ("date", "x-request-id",
                                                          "server-timing"))


@test("requests of all kinds in one stream of bytes, cut anywhere, are answered as each one alone")
def _():
    random, known = rng("mixes"), {}
    with land("--loops", "1", "--cors-origin", "https://a,https://c") as daemon:
        def alone(request, method):
            if (request, method) not in known:
                other = f"GET /livez HTTP/1.1\r\nHost: a\r\nX-Other: {len(known)}\r\n\r\n".encode()
                with connect(daemon) as s:  # behind other lines, so that nothing is remembered
                    s.sendall(other + request)
                    s.shutdown(socket.SHUT_WR)
                    answers = parse_answers(receive(s), ("GET", method))
                equal(len(answers), 2, f"answers to {request[:300]!r}")
                known[request, method] = tidy(answers[1])
            return known[request, method]

        for turn in range(60 if SLOW == 1 else 15):
            some = [request for request in (any_request(random) for _ in range(6))
                    if ("connection", "close") not in alone(*request)[2]]
            requests = [random.choice(some) for _ in range(40)]
            want = [alone(*request) for request in requests]
            pieces = cut(random, b"".join(request for request, _ in requests), 40)
            answers = parse_answers(daemon_answers(daemon, pieces), [m for _, m in requests])
            equal(len(answers), len(want), f"turn {turn}: answers")
            for request, got, wanted in zip(requests, answers, want):
                equal(tidy(got), wanted, f"turn {turn}: the answer to {request[0][:300]!r}")


def daemon_answers(daemon, pieces):
    """Everything that comes; read while it is sent, since neither side holds it all."""
    received = []
    with connect(daemon) as s:
        reader = threading.Thread(target=lambda: received.append(receive(s)))
        reader.start()
        for piece in pieces:
            s.sendall(piece)
        s.shutdown(socket.SHUT_WR)
        reader.join()
    return received[0]


@test("a chunked body is the same body, each chunk one byte and each byte a packet of its own")
def _():
    head = (f"POST {LAND}/height HTTP/1.1\r\nHost: a\r\nContent-Type: {JSON}\r\n"
            "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n").encode()
    framed = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n\r\n"
    with land("--loops", "1") as daemon:
        want = daemon.post(LAND + "/height", BODY, media=JSON).body
        pieces = [head, *(framed[i:i + 1] for i in range(len(framed)))]
        answers = parse_answers(daemon.raw(*pieces))
        equal([(a.status, a.body) for a in answers], [(200, want)], "the answer")


# ---- those who go away -----------------------------------------------------------------------------

def post_head(call, length, media):
    return (f"POST {LAND}/{call} HTTP/1.1\r\nHost: a\r\nContent-Type: {media}\r\n"
            f"Content-Length: {length}\r\n\r\n").encode()


def leave(random, daemon, request, body):
    """Sends some or all of it, reads some of the answer or nothing, and goes."""
    with connect(daemon) as s:
        stop = random.choice((len(body), len(body), random.randrange(len(body))))
        try:
            s.sendall(request + body[:stop])
            if stop == len(body):
                time.sleep(random.choice((0, 0, 0.002, 0.02, 0.1)))
                if random.random() < 0.3:
                    s.shutdown(socket.SHUT_WR)
                if random.random() < 0.5:
                    s.recv(random.choice((1, 1000)))
        except OSError:
            pass  # refused before all of it was sent
        go_away(s, random.random() < 0.5)


def storm(daemon, threads, each):
    """`each(random)` again and again on some threads; the first error of any is raised."""
    errors = []

    def one(seed):
        try:
            each(random.Random(seed))
        except BaseException as error:
            errors.append(error)
    running = [threading.Thread(target=one, args=(seed,)) for seed in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]
    equal(daemon.get("/livez").status, 200, "livez")


@test("batches of a million items, left half-way: nothing is held, and the next is right")
def _():
    count = 1_000_000 if SLOW == 1 else 100_000
    body = struct.pack("<2f", 1.5, 2.5) * count
    slow = struct.pack("<7f", 0.5, 0.5, 99, 1, 0.7, -0.01, float("inf")) * (count // 10)
    with land("--max-body", str(1 << 26)) as daemon:
        fds = files(daemon)

        def each(random):
            for _ in range(6):
                call, data = random.choice((("height", body), ("ray", slow)))
                leave(random, daemon, post_head(call, len(data), F32), data)
        storm(daemon, 4, each)
        nothing_is_held(daemon, fds)
        answer = daemon.post(LAND + "/height", body, media=F32)
        equal(answer.status, 200, "all of them")
        equal(answer.body[:4] * count, answer.body, "heights")
        equal(struct.unpack_from("<f", answer.body)[0], 1.5 / 4 + 2.5 / 8, "a height")


@test("uploads that are left: the layer is the old one or the new one, and memory comes back")
def _():
    side = 700
    bodies = [struct.pack("<f", value) * (side * side) for value in (1, 2)]
    target = f"{LAND}/layers/wide?cols={side}&rows={side}&spacing=0.01,0.01"
    with land() as daemon:
        daemon.ok("PUT", target, bodies[0], media=F32, status=201)
        fds, seen = files(daemon), set()

        def each(random):
            for turn in range(12):
                body = bodies[turn % 2]
                head = (f"PUT {target} HTTP/1.1\r\nHost: a\r\nContent-Type: {F32}\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n").encode()
                leave(random, daemon, head, body)

        def look():
            answer = daemon.ok("GET", f"{LAND}/height?x=1&y=1&layer=wide")
            seen.add(answer["height"])
            check(answer["height"] in (1, 2), f"a height of {answer['height']}")
        for _ in range(3):
            storm(daemon, 4, each)
            nothing_is_held(daemon, fds)
            look()
        before = daemon.memory_kib()
        for _ in range(3):
            storm(daemon, 4, each)
            nothing_is_held(daemon, fds)
            look()
        if SLOW == 1:  # a sanitizer keeps what is freed
            grown = daemon.memory_kib() - before  # 280 MB have been sent meanwhile
            check(grown < 64 << 10, f"{grown} KiB more after as many again")
        daemon.ok("PUT", target, bodies[0], media=F32, status=200)
        equal(daemon.ok("GET", f"{LAND}/height?x=1&y=1&layer=wide")["height"], 1, "the last")


@test("subscribers that come and vanish while edits pour in: those who stay are told everything")
def _():
    turns = 400 if SLOW == 1 else 100
    with land() as daemon:
        first = daemon.ok("GET", LAND)["revision"]
        fds, is_over = files(daemon), threading.Event()

        def visit(random):
            while not is_over.is_set():
                some = [connect(daemon) for _ in range(10)]
                for s in some:
                    line = random.choice(("", f"?since={first}", "?since=0"))
                    s.sendall(f"GET {LAND}/events{line} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                for s in some:
                    try:
                        if random.random() < 0.6:
                            s.recv(random.choice((1, 4096)))
                    except OSError:
                        pass
                    go_away(s, random.random() < 0.5)

        with Stream(daemon.port, f"{LAND}/events") as stays:
            visitors = [threading.Thread(target=visit, args=(rng(f"visitor {i}"),)) for i in range(4)]
            for thread in visitors:
                thread.start()
            try:
                for turn in range(turns):
                    daemon.ok("POST", LAND + "/edits", {"rect": [turn % 20, 3, 2, 1], "op": "set",
                                                        "heights": [turn, turn]})
            finally:
                is_over.set()
                for thread in visitors:
                    thread.join()
            told = stays.events(turns)
            equal([event.id for event in told], list(range(first + 1, first + turns + 1)), "events")
        nothing_is_held(daemon, fds)
        equal(daemon.ok("GET", f"{LAND}/height?x={(turns - 1) % 20}&y=3")["height"], turns - 1,
              "the last edit")


run()
