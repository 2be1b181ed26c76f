"""The same header lines sent again: the daemon keeps what it found out about the lines of the last
plain requests, and must answer as if it did not. Each request is asked behind many with other lines,
and again behind one with its own lines, on one loop; the answers must be the same.
"""
import os
import re
import socket
import tempfile

from daemon import F32, Daemon
from tap import check, equal, run, test

TARGET = "/v1/locales"
HOST = "Host: a\r\n"
LINES = [HOST, HOST + "Accept: */*\r\n", "host:a\r\n", "HOST: a \r\nX-Empty:\r\nX: \t\r\n",
         HOST + "Authorization: Bearer sesame\r\n", HOST + "Authorization: Bearer wrong\r\n",
         HOST + "Connection: close\r\n", HOST + "Connection: Upgrade\r\nUpgrade: x\r\n",
         HOST + "Kota-Min-Revision: 99999999999999999999\r\n", HOST + "Content-Encoding: gzip\r\n",
         HOST + "Content-Length: 0\r\n", HOST + "Content-Type: text/plain\r\n",
         HOST + "Expect: 100-continue\r\n", HOST + "Expect: more\r\n", "Accept: */*\r\n", "",
         HOST + HOST, "Host: a\n", HOST + " fold\r\n", HOST + "Content-Length: 0\r\n" * 2,
         HOST + "Transfer-Encoding: chunked\r\n", HOST + "bad name: x\r\n", HOST + "X: \x01\r\n",
         HOST + "A: b\r\n" * 31, HOST + "A: b\r\n" * 32, HOST + "A: b\r\n" * 70,
         HOST + "X: " + "y" * 1000 + "\r\n", HOST + "X: " + "y" * 1100 + "\r\n",
         HOST + "Sesame: Bearer\r\nauthorization : Bearer sesame\r\n"]
FIRSTS = [f"{line}\r\n" for line in (
    f"GET {TARGET} HTTP/1.1", f"HEAD {TARGET} HTTP/1.1", f"OPTIONS {TARGET} HTTP/1.1",
    f"GET {TARGET} HTTP/1.0", f"GET {TARGET} HTTP/1.2", f"get {TARGET} HTTP/1.1",
    f"GET  {TARGET} HTTP/1.1", f"GET {TARGET}# HTTP/1.1", f"GET {TARGET}\x7f HTTP/1.1",
    f"GET {TARGET}\xe9 HTTP/1.1", "GET * HTTP/1.1", "OPTIONS * HTTP/1.1", "GET x HTTP/1.1",
    "GET http:/// HTTP/1.1", "GET http://a/livez HTTP/1.1", "GET /%zz HTTP/1.1", "GET / HTTP/1.1 ",
    f"PUT {TARGET}/a HTTP/1.1", "GET /" + "a" * 8500 + " HTTP/1.1",
    f"GET {TARGET}/nope/height?x=1&y=2 HTTP/1.1", "\r\nGET /livez HTTP/1.1", "GET /livez HTTP/1.1\r")]
FIRSTS.append(f"GET {TARGET} HTTP/1.1\n")
SETS = 8  # that are kept
PATHS = ["/livez", "/readyz", TARGET, "/v1/stats"]  # as many as are kept
POST = f"POST {TARGET}/nope/height HTTP/1.1\r\n"
BODY = '{"points":[[1,2]]}'
LENGTH = f"Content-Length: {len(BODY)}\r\n"
AUTHORIZED = HOST + "Authorization: Bearer sesame\r\n"
BODY_LINES = [
    lines for content in ("", "Content-Type: application/json\r\n", "CONTENT-TYPE: Text/Plain; a=b\r\n",
                          "Content-Type: \r\n", "Content-Type: a/b\r\nContent-Type: a/b\r\n",
                          "Content-Type: " + "y" * 64 + "\r\n", "Content-Type: " + "y" * 65 + "\r\n")
    for lines in (AUTHORIZED + content + LENGTH, AUTHORIZED + LENGTH + content, HOST + content + LENGTH)
] + [AUTHORIZED + more for more in (
    LENGTH + LENGTH, "Content-Length: 0\r\n", "Content-Length: 2\r\n", "", LENGTH + "Expect: more\r\n",
    LENGTH + "Expect: 100-continue\r\n", LENGTH + "Connection: close\r\n", "Content-Length: +18\r\n",
    LENGTH + "Content-Encoding: gzip\r\n", LENGTH + "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: chunked\r\n", "Content-Length: 18446744073709551616\r\n",
    "Content-Length: 99999999999\r\n")]


def tidy(text):
    """An answer without what differs from one to the next."""
    return re.sub(rb"(Date|X-Request-Id): [^\r]*\r\n", b"", text)


def ask(daemon, *heads):
    """All on one connection, one write each; everything that came back until it closed."""
    out = b""
    with socket.create_connection(("127.0.0.1", daemon.port)) as s:
        s.settimeout(60)
        for head in heads:
            s.sendall(head.encode("latin-1"))
        s.shutdown(socket.SHUT_WR)
        try:
            while more := s.recv(65536):
                out += more
        except ConnectionResetError:
            pass
    return out


def prime(daemon, lines, first="GET /livez HTTP/1.1\r\n", body=""):
    ask(daemon, f"{first}{lines}\r\n{body}")


def forget(daemon):
    """Other lines and paths instead of all that are kept."""
    ask(daemon, "".join(f"GET {PATHS[i % len(PATHS)]}?other HTTP/1.1\r\n{HOST}X-Other: {i}\r\n\r\n"
                        for i in range(SETS)))


def compare(daemon, first, lines, body="", primer="GET /livez HTTP/1.1\r\n"):
    head = f"{first}{lines}\r\n{body}"
    forget(daemon)
    want = tidy(ask(daemon, head))
    forget(daemon)
    prime(daemon, lines, primer, body)
    got = tidy(ask(daemon, head))
    check(want != b"", f"no answer to {head[:200]!r}")
    equal(got, want, f"answer to {head[:200]!r} behind the same lines")
    if first in (FIRSTS[0], POST) and b"Connection: close" not in want and want.count(b"HTTP/") == 1:
        twice = tidy(ask(daemon, head * 3))
        equal(twice, want * 3, f"answers to three times {head[:200]!r}")


def with_daemon(body):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokens")
        with open(path, "w") as file:
            file.write("read sesame\nedit other\n")
        with Daemon("--loops", "1", "--token-file", path) as daemon:
            body(daemon)


@test("each set of lines is answered alike the first time and again")
def lines_again():
    with_daemon(lambda d: [compare(d, FIRSTS[0], lines) for lines in LINES])


@test("each request line is judged by itself, whatever lines follow it")
def firsts_again():
    with_daemon(lambda d: [compare(d, first, lines) for first in FIRSTS
                           for lines in (HOST, LINES[4], LINES[6], "")])


@test("lines that come with a body are answered alike the first time and again")
def bodies_again():
    with_daemon(lambda d: [compare(d, POST, lines, BODY, POST) for lines in BODY_LINES])


HEIGHT = f"{TARGET}/a/height"
QUERIES = ["", "?", "?x=1", "?x=1&y=2", "?y=2&x=1&", "?&&x=1&y=2", "?x", "?x=&y=2", "?=1", "?x=1=2",
           "?x=%31&y=2", "?x=+1&y=2", "?x=1&y=2#", "?x=1&y=\x7f", "?x=\xe9", "?x=1&y=2 ", "?x=1 &y=2",
           "?x=1&y=2&x=1", "?X=1&y=2", "?!\"$'()*,;[]{}|^`\\<>", "?x=1&y=2\t", "?x=1\0&y=2", "?x=1?y=2",
           "?x=1&y=2&interp=nearest", "?x=1&y=2&fields=normal,cell&layer=ground", "?x=1&y=2&layer=",
           "?" + "&".join(f"n{i}=1" for i in range(8)), "?" + "&".join(f"n{i}=1" for i in range(9)),
           "?" + "&".join(f"n{i}" for i in range(40)), "?x=1&y=" + "0" * 8200,
           "?x=1&y=" + "0" * 100, "?x=1e0&y=2.", "?x=.5&y=-0", "?x=00001.50&y=+1", "?x=nan&y=1"]


@test("of a path that is asked again each query is answered alike")
def queries_again():
    with Daemon("--loops", "1") as daemon:
        daemon.ok("PUT", TARGET + "/a", {}, status=201)
        daemon.ok("PUT", TARGET + "/a/layers/ground?spacing=1,1&cols=3&rows=3", bytes(36), status=201,
                  media=F32)
        for method in ("GET", "POST", "HEAD"):
            for version in ("1.1", "1.0"):
                for query in QUERIES:
                    compare(daemon, f"{method} {HEIGHT}{query} HTTP/{version}\r\n", HOST, "",
                            f"GET {HEIGHT}?x=2&y=1 HTTP/1.1\r\n")


@test("paths that begin alike are told apart")
def paths_again():
    def body(daemon):
        for path in (HEIGHT, HEIGHT + "s", HEIGHT + "/", HEIGHT[:-1], f"{TARGET}/b/height",
                     f"{TARGET}/%61/height", f"http://a{HEIGHT}", f"/{HEIGHT}", f"{TARGET}/a/./height"):
            for primer in (HEIGHT, f"{TARGET}/b/height", f"{TARGET}/%61/height"):
                compare(daemon, f"GET {path}?x=1&y=2 HTTP/1.1\r\n", AUTHORIZED, "",
                        f"GET {primer}?x=1&y=2 HTTP/1.1\r\n")
    with_daemon(body)


@test("lines of one method say nothing of another")
def methods_again():
    others = [POST, FIRSTS[0], POST.replace("POST", "PUT"), POST.replace("POST", "PATCH"),
              POST.replace("POST", "post"), POST.replace("1.1", "1.0"), POST.replace("POST", "GOST")]
    with_daemon(lambda d: [compare(d, first, lines, BODY, primer) for lines in BODY_LINES[:6]
                           for primer in (POST, FIRSTS[0]) for first in others])


@test("bodies of many lengths in turn are each read whole")
def lengths():
    def body(daemon):
        bodies = ['{"points":[[1,2%s]]}' % ("0" * (i % (2 * SETS))) for i in range(64)]
        heads = [f"{POST}{AUTHORIZED}Content-Length: {len(b)}\r\n\r\n{b}" for b in bodies]
        equal(re.findall(rb"HTTP/1.1 (\d+)", ask(daemon, "".join(heads))), [b"404"] * 64, "statuses")
    with_daemon(body)


@test("a token counts for the request that brings it and for no other")
def tokens():
    def body(daemon):
        heads = [f"GET {TARGET} HTTP/1.1\r\n{LINES[i]}\r\n" for i in (4, 0, 4, 5, 4, 4, 0, 0, 5)]
        statuses = re.findall(rb"HTTP/1.1 (\d+)", ask(daemon, "".join(heads)))
        equal(statuses, [b"200", b"401", b"200", b"401", b"200", b"200", b"401", b"401", b"401"],
              "statuses")
    with_daemon(body)


@test("the same lines are found however a head is cut")
def cuts():
    def body(daemon):
        head = f"GET {TARGET} HTTP/1.1\r\n{LINES[4]}\r\n"
        prime(daemon, LINES[4])
        want = tidy(ask(daemon, head))
        for cut in range(1, len(head)):
            prime(daemon, LINES[4])
            with socket.create_connection(("127.0.0.1", daemon.port)) as s:
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                s.sendall((head + head[:cut]).encode())
                first = b""
                while first.count(b"\r\n\r\n") < 1:
                    first += s.recv(65536)
                s.sendall(head[cut:].encode())
                s.shutdown(socket.SHUT_WR)
                while more := s.recv(65536):
                    first += more
            equal(tidy(first), want * 2, f"answers when cut at {cut}")
    with_daemon(body)


run()
