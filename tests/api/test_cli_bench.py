"""`kota bench`, the load generator: what it sends, what it counts, and what it refuses. Against a
server that answers as told, and against the daemon. No test looks at how fast anything was.
"""
import json
import os
import socket
import subprocess
import tempfile
import threading

from daemon import BIN_DIR, Daemon, clean_environment
from tap import HANG_S, check, equal, run, test

KOTA = os.path.join(BIN_DIR, "kota")


class Result:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        check("Sanitizer" not in self.err and "runtime error" not in self.err, self.err)

    @property
    def document(self):
        check(self.status in (0, 1) and self.out.count("\n") == 1, f"no document: {self}")
        return json.loads(self.out)

    def __str__(self):
        return f"status {self.status}, stdout {self.out[:300]!r}, stderr {self.err[:300]!r}"


def bench(*args, url="http://127.0.0.1:1", stdin=None):
    return Result(subprocess.run([KOTA, "bench", "--url", url, *args], input=stdin or "",
                                 capture_output=True, text=True, timeout=HANG_S,
                                 env=clean_environment(None)))


class Server:
    """Answers request i with answer(i, head, body) in pieces as it yields them; keeps requests."""

    def __init__(self, answer):
        self.answer, self.seen, self.lock = answer, [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.accepting = threading.Thread(target=self.accept, daemon=True)
        self.accepting.start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        waiting = b""
        with connection:
            while True:
                while b"\r\n\r\n" not in waiting:
                    more = connection.recv(65536)
                    if not more:
                        return
                    waiting += more
                head, _, waiting = waiting.partition(b"\r\n\r\n")
                length = 0
                for line in head.lower().split(b"\r\n"):
                    if line.startswith(b"content-length:"):
                        length = int(line[15:])
                while len(waiting) < length:
                    waiting += connection.recv(65536)
                body, waiting = waiting[:length], waiting[length:]
                with self.lock:
                    n = len(self.seen)
                    self.seen.append((head.decode(), body.decode()))
                answer = self.answer(n)
                if answer is None:
                    return
                try:
                    for piece in answer:
                        connection.sendall(piece)
                except OSError:
                    return  # kota has given up, as some tests want

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.accepting.join()  # or it would accept where the next server has the same descriptor
        self.listener.close()


def ok(_n):
    return [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"]


@test("exactly the requests that were asked for are sent, targets in turn, and all are counted")
def exact():
    with Server(ok) as server:
        out = bench("/a", "/b?x=1", "/c", "--requests", "100", "--connections", "4", "--depth", "3",
                    url=server.url).document
        equal((out["requests"], out["failed"], out["loop"]), (100, 0, "closed"), "counts")
        lines = [head.split(" ")[1] for head, _ in server.seen]
        equal([lines.count(t) for t in ("/a", "/b?x=1", "/c")], [34, 33, 33], "targets")
        check(out["latency_us"]["p50"] <= out["latency_us"]["p99"] <= out["latency_us"]["max"],
              f"quantiles: {out}")
        equal(out["bytes_in"], 100 * 40, "bytes in")
        equal(out["requests_per_cpu_s"], None, "no server was named")


@test("bodies are sent in turn as POST, with their type and the token")
def bodies():
    with Server(ok) as server, tempfile.NamedTemporaryFile("w") as token:
        token.write("read secret\n")
        token.flush()
        out = bench("/p", "--bodies", "-", "--type", "text/x", "--requests", "7", "--connections",
                    "1", "--token-file", token.name, url=server.url, stdin="one\n\nthree\r\n")
        equal(out.document["requests"], 7, "requests")
        equal([body for _, body in server.seen], ["one", "three"] * 3 + ["one"], "bodies")
        for head, body in server.seen:
            check(head.startswith("POST /p HTTP/1.1\r\n"), head)
            for line in ("Content-Type: text/x", f"Content-Length: {len(body)}",
                         "Authorization: Bearer secret"):
                check(line in head.split("\r\n"), f"{line!r} is missing: {head!r}")


@test("a whole file is one body, and a prefix of the URL is kept")
def body():
    with Server(ok) as server, tempfile.NamedTemporaryFile("wb") as file:
        file.write(b"x\ny\n" * 50000)
        file.flush()
        bench("/p", "--body", file.name, "--requests", "3", "--connections", "2",
              url=server.url + "/pre/").document
        equal([(h.split(" ")[1], len(b)) for h, b in server.seen], [("/pre/p", 200000)] * 3, "sent")


@test("an open loop sends what falls due within its time, over however few connections")
def open_loop():
    with Server(ok) as server:
        out = bench("/a", "--rate", "500", "--seconds", "0.4", "--warm-up", "0.1", "--connections",
                    "2", url=server.url).document
        equal((len(server.seen), out["loop"]), (250, "open"), "sent in all")
        equal(out["requests"], 200, "due while it was measured")


@test("answers are found however they are cut, with any case of Content-Length, and without a body")
def cut():
    kinds = [[bytes([b]) for b in b"HTTP/1.1 200 OK\r\ncontent-LENGTH:5\r\nX: y\r\n\r\n12345"],
             [b"HTTP/1.1 204 No Content\r\n\r\n"],
             [b"HTTP/1.1 200 OK\r\nX: Content-Length: 9\r\nContent-Length:  0\r\n\r", b"\n"],
             [b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"\r\n\r\n" * 25000]]
    with Server(lambda n: kinds[n % 4]) as server:
        out = bench("/a", "--requests", "40", "--connections", "1", "--depth", "4", url=server.url)
        equal((out.document["requests"], out.status), (40, 0), "answers")


@test("errors are counted, and are status 1")
def failed():
    with Server(lambda n: [b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"] if n % 2 else ok(n)) as s:
        out = bench("/a", "--requests", "10", "--connections", "1", url=s.url)
        equal((out.status, out.document["failed"], out.document["requests"]), (1, 5, 10), "outcome")
        check("5 of 10 answers were errors" in out.err, str(out))


@test("a server that is not there, closes, is silent or speaks something else is status 1")
def broken():
    for answer, words in ((lambda n: None, "closed a connection"),
                          (lambda n: [], "no answer within 0.3 s"),
                          (lambda n: [b"SSH-2.0-x\r\n\r\n"], "no HTTP/1.1"),
                          (lambda n: [b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"], "no number"),
                          (lambda n: [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"],
                           "no Content-Length"),
                          (lambda n: ok(n) + ok(n), "nobody asked for")):
        with Server(answer) as server:
            out = bench("/a", "--requests", "1", "--connections", "1", "--timeout", "0.3",
                        url=server.url) if "asked" not in words else bench(
                            "/a", "--connections", "1", "--seconds", "30", url=server.url)
            equal((out.status, out.out), (1, ""), f"outcome of {words!r}: {out}")
            check(words in out.err, f"does not say {words!r}: {out}")
    with Server(lambda n: [b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"] if n == 0 else None) as server:
        out = bench("/a", "--requests", "2", "--connections", "1", url=server.url)
        check("after 1 answers, the last with status 503" in out.err, str(out))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        out = bench("/a", url=f"http://127.0.0.1:{free.getsockname()[1]}")
        equal(out.status, 1, "nobody listens")
        check("no connection" in out.err, str(out))


@test("what makes no sense is status 2 and names the option")
def misuse():
    for args, words in ((["--seconds", "1"], "a target is missing"), (["x.y"], "'x.y' is no id"),
                        (["x", "/a"], "takes no targets"), (["x", "--type", "a/b"], "takes no targets"),
                        (["x", "--batch", "0"], "0 is outside"), (["x", "--ask", "los"], "--ask 'los'"),
                        (["/a", "--binary"], "--binary"),
                        (["/a b"], "byte 0x20"), (["/a", "--connections", "0"], "--connections '0'"),
                        (["/a", "--depth", "1.5"], "--depth '1.5'"),
                        (["/a", "--rate", "-1"], "--rate '-1'"),
                        (["/a", "--seconds", "0"], "--seconds '0'"),
                        (["/a", "--server", "4194304"], "there is no process 4194304"),
                        (["/a", "--cpu", "1023"], "--cpu 1023"),
                        (["/a", "--body", "/no/file"], "/no/file cannot be read"),
                        (["/a", "--body", "-", "--bodies", "-"], "exclude each other"),
                        (["--targets", "-"], "- has no lines"), (["/a", "--fast"], "--fast")):
        out = bench(*args)
        equal((out.status, out.out), (2, ""), f"outcome of {args}: {out}")
        check(words in out.err, f"does not say {words!r}: {out}")
    for url, words in (("https://127.0.0.1:1", "only over http"), ("http://256.0.0.1.x:1", "256")):
        out = bench("/a", url=url)
        equal(out.status, 2, f"outcome of {url}: {out}")
        check(words in out.err, f"does not say {words!r}: {out}")


@test("daemon: heights, pipelined and in an open loop, and its processor time")
def daemon():
    with Daemon("--loops", "1") as d:
        d.ok("PUT", "/v1/locales/a", {}, status=201)
        url, pid = d.url, str(d.process.pid)
        out = bench("/v1/locales/a", "/livez", "--requests", "500", "--depth", "16", "--connections",
                    "8", "--server", pid, url=url).document
        equal((out["requests"], out["failed"]), (500, 0), "closed")
        check(0 < out["server_cpu_s"] < 60 and out["requests_per_cpu_s"] > 0, f"time: {out}")
        out = bench("/livez", "--rate", "200", "--seconds", "0.2", "--warm-up", "0", "--busy",
                    url=url).document
        equal((out["requests"], out["failed"]), (40, 0), "open")
        out = bench("/v1/locales/nope", "--requests", "3", url=url)
        equal((out.status, out.document["failed"]), (1, 3), "404s")


run()
