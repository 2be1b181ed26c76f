"""Runs `kota`: its outcome, what it says when it fails, a server that answers as told, terminals."""
import json
import os
import pty
import re
import select
import socket
import subprocess
import threading

from daemon import BIN_DIR, clean_environment
from tap import HANG_S, Failure, Skip, check, equal

KOTA = os.path.join(BIN_DIR, "kota")


class Result:
    def __init__(self, process, out, err):
        self.status = process.returncode
        self.out = out
        self.err = err.decode("utf-8")

    @property
    def lines(self):
        check(self.out == b"" or self.out.endswith(b"\n"), f"half a line: {self.out[-100:]!r}")
        return [json.loads(line) for line in self.out.decode("utf-8").splitlines()]

    def __str__(self):
        return f"status {self.status}, stdout {self.out[:300]!r}, stderr {self.err[:600]!r}"


def kota(*args, stdin=None, env=None, url=None, stdout=subprocess.PIPE):
    """Runs kota; bytes for stdin, or none at all."""
    if not os.path.exists(KOTA):
        raise Failure(f"{KOTA} has not been built")
    environment = clean_environment({**(env or {}), **({"KOTA_URL": url} if url else {})})
    process = subprocess.Popen([KOTA, *args], env=environment, stdout=stdout,
                               stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                               stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(stdin, timeout=HANG_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failure(f"kota {' '.join(args)} hangs") from None
    result = Result(process, out or b"", err)
    check("Sanitizer" not in result.err and "runtime error" not in result.err, result.err)
    return result


def fails(result, status, *words, out=b""):
    """That exit status, one line on stderr that holds these words, and `out` on stdout."""
    check(result.status == status, f"expected status {status}: {result}")
    check(re.fullmatch(r"kota: [^\n]+\n", result.err), f"not one line: {result}")
    check(re.search(r"[\x00-\x09\x0b-\x1f\x7f]", result.err) is None,
          f"control characters: {result}")
    for word in words:
        check(word in result.err, f"does not say {word!r}: {result}")
    equal(result.out, out, "stdout")


class Request:
    def __init__(self, head, body):
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = lines[0].split(" ", 2)
        self.headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        self.body = body

    @property
    def json(self):
        return json.loads(self.body, parse_int=float)  # as integers, -0 would lose its sign


class Stub:
    """Listens on a free port and gives each request to answer(request) -> bytes or None (close)."""

    def __init__(self, answer):
        self.answer = answer
        self.requests = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while not self.is_over.is_set():
            if not select.select([self.listener], [], [], 0.05)[0]:
                continue
            connection, _ = self.listener.accept()
            with connection:
                connection.settimeout(HANG_S)
                try:
                    while self.serve_one(connection):
                        pass
                except OSError:
                    pass  # the client has gone, as some tests want

    def serve_one(self, connection):
        received = b""
        while b"\r\n\r\n" not in received:
            more = connection.recv(1 << 16)
            if not more:
                return False
            received += more
        head, _, body = received.partition(b"\r\n\r\n")
        match = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        length = int(match.group(1)) if match else 0
        while len(body) < length:
            more = connection.recv(1 << 16)
            if not more:
                return False
            body += more
        request = Request(head, body)
        self.requests.append(request)
        answer = self.answer(request)
        if answer is None:
            return False
        if callable(answer):
            answer(connection, self.is_over)
            return False
        connection.sendall(answer)
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()
        self.listener.close()


def reply(body, status="200 OK", media="application/json", more=""):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return (f"HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n"
            f"{more}\r\n").encode() + body


def heights(request, revision=7):
    """What a daemon would say about a plane z = x + 2y."""
    points = request.json["points"]
    return reply({"locale": "a", "revision": revision, "results": [
        {"status": "ok", "height": x + 2 * y} for x, y in points]})


def on_terminal(*args, url):
    """What kota prints when stdout is a terminal (and stdin is one)."""
    try:
        master, slave = pty.openpty()
    except OSError as error:
        raise Skip(f"no terminals here: {error}") from error
    process = subprocess.Popen([KOTA, *args], env=clean_environment({"KOTA_URL": url}), stdin=slave,
                               stdout=slave, stderr=slave)
    os.close(slave)
    out = b""
    while True:
        try:
            more = os.read(master, 1 << 16)
        except OSError:  # Linux says so when the last writer has gone
            break
        if not more:
            break
        out += more
    os.close(master)
    return process.wait(timeout=HANG_S), out.decode().replace("\r\n", "\n")
