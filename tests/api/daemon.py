"""Starts a kotad of its own for a test, asks it over a real socket, and stops it again.

The program is taken from $KOTA_BIN_DIR (default build/release). Each daemon listens on a free port
of 127.0.0.1 and tells it by its port file; it is stopped by SIGTERM and must then exit with 0 and
have said nothing that a sanitizer says.

With KOTA_TEST_PROXY=nginx or haproxy each daemon has that proxy in front of it (proxies.py), and what
is asked goes through it: `port` is the proxy's then, `direct_port` the daemon's own.
"""
import atexit
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from tap import HANG_S, Failure, Skip, check, equal

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN_DIR = os.path.join(ROOT, os.environ.get("KOTA_BIN_DIR", "build/release"))
KOTAD = os.path.join(BIN_DIR, "kotad")
SLOW = 10 if re.search("asan|tsan|cov|debug", BIN_DIR) else 1
if "suppressions=" not in os.environ.get("TSAN_OPTIONS", ""):  # tests/run has not set it
    os.environ["TSAN_OPTIONS"] = (f"suppressions='{os.path.join(ROOT, 'tests', 'tsan.supp')}' "
                                  f"print_suppressions=0 {os.environ.get('TSAN_OPTIONS', '')}")
COMPLAINTS = re.compile(
    r"ERROR: AddressSanitizer|ERROR: LeakSanitizer|runtime error|ThreadSanitizer|CHECK failed"
    r"|SUMMARY: ")
JSON = "application/json"
PROBLEM = "application/problem+json"
F32 = "application/vnd.kota.f32"
F64 = "application/vnd.kota.f64"
PROXY = os.environ.get("KOTA_TEST_PROXY", "")
TOKEN = "edit-through-a-proxy-0123456789abcdef"
FRONTS = {}  # port: the proxy that listens there
INSIDE = ("/metrics", "/livez", "/readyz", "/healthz", "/v1/stats")  # what no proxy lets through


def data_path(*parts):
    """A file of the shared real data; skips the test when it is not there."""
    base = os.environ.get("KOTA_TEST_DATA", os.path.join(ROOT, "..", "shared", "data"))
    path = os.path.join(base, *parts)
    if not os.path.exists(path):
        raise Skip(f"no {os.path.join(*parts)} (KOTA_TEST_DATA)")
    return path


class Answer:
    """Status, headers (lower-case names) and body of one answer."""

    def __init__(self, status, headers, body):
        self.status = status
        self.pairs = [(name.lower(), value) for name, value in headers]
        self.headers = dict(self.pairs)
        self.body = body

    @property
    def media_type(self):
        return self.headers.get("content-type", "").split(";")[0].strip().lower()

    @property
    def json(self):
        def refuse(name):
            raise Failure(f"{name} in an answer: {self.body[:300]!r}")
        try:
            return json.loads(self.body.decode("utf-8"), parse_constant=refuse)
        except ValueError as error:
            raise Failure(f"not JSON ({error}): {self.body[:300]!r}") from error

    def __str__(self):
        return f"{self.status} {self.headers.get('content-type')} {self.body[:400]!r}"


def connect(port, timeout=HANG_S):
    """A socket to a daemon's port; through TLS where a proxy listens."""
    plain = socket.create_connection(("127.0.0.1", port), timeout=timeout)
    if port not in FRONTS:
        return plain
    return FRONTS[port].context.wrap_socket(plain, server_hostname="127.0.0.1")


class Connection:
    """One kept connection to a daemon. Takes half of the processor time of http.client."""

    def __init__(self, port, timeout=HANG_S):
        self.port, self.timeout, self.socket = port, timeout, None

    def ask(self, method, target, body=None, headers=None):
        """One request and its whole answer."""
        if self.socket is None:
            self.socket = connect(self.port, self.timeout)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headers = headers or {}
        names = {name.lower() for name in headers}
        head = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        if "host" not in names:
            head.append(f"Host: 127.0.0.1:{self.port}")
        if "accept-encoding" not in names:
            head.append("Accept-Encoding: identity")
        if "content-length" not in names and (body is not None or method in ("PUT", "POST", "PATCH")):
            head.append(f"Content-Length: {len(body or b'')}")
        head = "\r\n".join([*head, "\r\n"]).encode("latin-1")
        try:
            for part in (head + (body or b""),) if len(body or b"") < 1 << 16 else (head, body):
                self.socket.sendall(part)
            return self.receive(method)
        except BaseException:
            self.close()
            raise

    def receive(self, method):
        head, end, received, status = b"", b"", b"", 100
        while status < 200:  # 100 Continue comes before the answer
            head, end, received = received.partition(b"\r\n\r\n")
            while not end:
                more = self.socket.recv(1 << 16)
                if not more:
                    raise OSError(f"closed after {head!r}") if head else ConnectionResetError("closed")
                head, end, received = (head + more).partition(b"\r\n\r\n")
            status, pairs = parse_head(head)
        answer = Answer(status, pairs, b"")
        if method != "HEAD" and status not in (204, 304):
            check("content-length" in answer.headers, f"no Content-Length: {head!r}")
            answer.body = self.receive_body(received, int(answer.headers["content-length"]))
        else:
            check(not received, f"bytes after an answer without a body: {received[:200]!r}")
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
        return answer

    def receive_body(self, received, length):
        """`length` bytes, of which some have come."""
        check(len(received) <= length, f"{len(received)} bytes of a body of {length}")
        if len(received) == length:
            return received
        body = bytearray(length)
        body[:len(received)] = received
        at, view = len(received), memoryview(body)
        while at < length:
            more = self.socket.recv_into(view[at:])
            if not more:
                raise OSError(f"closed after {at} of {length} bytes")
            at += more
        return bytes(body)

    def close(self):
        if self.socket:
            self.socket.close()
            self.socket = None


def client_to(port, context=None, timeout=HANG_S):
    """What has .ask(); through TLS where a proxy listens."""
    if context is None and port not in FRONTS:
        return Connection(port, timeout)
    return connection_to(port, context, timeout)


def connection_to(port, context=None, timeout=HANG_S):
    """http.client's connection to a daemon's port; through TLS where a proxy listens."""
    if context is None and port not in FRONTS:
        import http.client  # takes 25 ms, and most tests do without
        return http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    from proxies import Through  # which imports this module
    connection = Through("127.0.0.1", port, timeout=timeout, context=context or FRONTS[port].context)
    if port in FRONTS:
        connection.token = FRONTS[port].token
    return connection


def ask_once(port, target, context=None, headers=None):
    """GET over a connection of its own."""
    connection = client_to(port, context)
    try:
        return connection.ask("GET", target, headers=headers)
    finally:
        connection.close()


def clean_environment(extra=None):
    """No KOTA_* setting of the person who runs the tests reaches a daemon; no patches unless said."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KOTA_")}
    environment["KOTA_GPU"] = "off"  # OpenGL takes most of a second to start; who tests it says so
    # on a busy machine workers take longer, and so does what waits for them
    environment["KOTA_MAX_QUEUE_MS"] = str(1000 * HANG_S)
    environment.update(extra or {})
    return {**environment, **trusting(environment.get("KOTA_URL", ""))}


def trusting(url):
    """What a client needs in its environment for a daemon behind a proxy: certificate, token."""
    port = int(url.rsplit(":", 1)[1]) if re.fullmatch(r"https://127\.0\.0\.1:\d+", url) else None
    if port not in FRONTS:
        return {}
    front = FRONTS[port]
    return {"SSL_CERT_FILE": front.path("tls.crt"), "NODE_EXTRA_CA_CERTS": front.path("tls.crt"),
            **({"KOTA_TOKEN_FILE": front.write("token", front.token)} if front.token else {})}


class Daemon:
    """kotad with its temporary folder; usable in `with`, or by stop(). files: that it may open.

    When a test fails before it stops one, that one ends with the program.
    """

    front = None  # a proxy before it; second connections are made without __init__

    def __init__(self, *args, env=None, wait=True, cwd=None, files=None):
        if not os.path.exists(KOTAD):
            raise Failure(f"{KOTAD} has not been built")
        self.folder = tempfile.mkdtemp(prefix="kota-test-")
        self.port_file = os.path.join(self.folder, "port")
        self.log_path = os.path.join(self.folder, "log")
        self.log = open(self.log_path, "wb")
        self.front, self.direct_port, token = None, None, None
        if PROXY and wait and not {"--token-file", "--read-only"} & set(args):
            token = TOKEN
            with open(os.path.join(self.folder, "tokens"), "w") as file:
                file.write(f"edit {TOKEN}\n")
            args = ("--token-file", file.name, *args)
        self.args = [KOTAD, "--listen", "127.0.0.1:0", "--port-file", self.port_file, *args]
        before = files and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
        self.process = subprocess.Popen(self.args, preexec_fn=before, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, env=clean_environment(env),
                                        cwd=cwd or self.folder)
        atexit.register(lambda: self.is_alive() and self.kill())
        self.port = None
        self.connection = None
        if wait:
            try:
                self.wait_until_ready()
                if PROXY:
                    self.put_behind(PROXY, token)
            except BaseException:
                self.kill()
                raise

    def wait_until_ready(self):
        deadline = time.monotonic() + HANG_S
        while time.monotonic() < deadline:
            if os.path.exists(self.port_file):
                text = open(self.port_file).read().strip()
                if text:
                    self.port = self.direct_port = int(text)
                    return
            if self.process.poll() is not None:
                raise Failure(f"kotad ended with {self.process.returncode} before it was ready: "
                              f"{self.log_text()[-2000:]}")
            time.sleep(0.01)
        raise Failure(f"no port file within {HANG_S} s: {self.log_text()[-2000:]}")

    @property
    def url(self):
        """What kota and other clients are given; a proxy's is TLS (FRONTS)."""
        return f"{'https' if self.port in FRONTS else 'http'}://127.0.0.1:{self.port}"

    @property
    def token_line(self):
        """For a head that a test writes by itself: the header with the token, if a proxy needs one."""
        return f"Authorization: Bearer {self.front.token}\r\n" if self.front and self.front.token else ""

    def put_behind(self, kind, token):
        from proxies import Front  # which imports this module
        self.front = Front(kind, [self.direct_port])
        self.front.token = token
        self.port = self.front.port
        FRONTS[self.port] = self.front

    def log_text(self):
        with open(self.log_path, "rb") as file:
            return file.read().decode("utf-8", "replace")

    def is_alive(self):
        return self.process.poll() is None

    def memory_kib(self, name="VmRSS"):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(rf"^{name}:\s*(\d+)", file.read(), re.M).group(1))

    def threads(self, file):
        """{id of a thread: its /proc file of this name}, without threads that end meanwhile."""
        found = {}
        folder = f"/proc/{self.process.pid}/task"
        for thread in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), \
                    open(f"{folder}/{thread}/{file}") as text:
                found[int(thread)] = text.read()
        return found

    def kill(self):
        if self.is_alive():
            self.process.kill()
        self.process.wait()
        if self.front:
            FRONTS.pop(self.port, None)
            self.front.stop()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self):
        """SIGTERM, exit status 0, nothing that a sanitizer would say."""
        try:
            if self.connection:
                self.connection.close()
            if self.is_alive():
                self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=HANG_S)
            except subprocess.TimeoutExpired:
                raise Failure("kotad did not end within its time after SIGTERM") from None
            log = self.log_text()
            complaint = COMPLAINTS.search(log)
            if complaint:
                raise Failure("kotad complained:\n" + log[max(0, complaint.start() - 500):][:6000])
            if self.process.returncode != 0:
                raise Failure(f"kotad exited with {self.process.returncode}:\n{log[-3000:]}")
        finally:
            self.kill()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.stop()
        else:
            self.kill()

    # ---- questions ------------------------------------------------------------------------------

    def ask(self, method, target, body=None, headers=None, media=None):
        """One request on a kept connection (opened anew when the daemon has closed it)."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, (bytes, bytearray)):
            if not isinstance(body, str):
                body = json.dumps(body, allow_nan=False)
                media = media or JSON
            body = body.encode("utf-8")
        if media:
            headers["Content-Type"] = media
        if self.front and target.partition("?")[0] in INSIDE and method == "GET":
            return ask_once(self.direct_port, target, headers=headers)
        for attempt in (0, 1):
            if self.connection is None:
                self.connection = client_to(self.port)
            try:
                return self.connection.ask(method, target, body, headers)
            except ConnectionError:
                self.connection.close()
                self.connection = None
                if attempt:
                    raise
        raise AssertionError

    def get(self, target, **named):
        return self.ask("GET", target, **named)

    def post(self, target, body, **named):
        return self.ask("POST", target, body, **named)

    def put(self, target, body, **named):
        return self.ask("PUT", target, body, **named)

    def ok(self, method, target, body=None, status=200, **named):
        """Asks, wants this status, and returns the JSON."""
        answer = self.ask(method, target, body, **named)
        check(answer.status == status, f"{method} {target}: expected {status}, got {answer}")
        return answer.json if answer.body else None

    def raw(self, *pieces, pause=0.0, timeout=HANG_S, until=None):
        """Sends bytes as they are, in pieces, and reads until the daemon closes (or `until`)."""
        with connect(self.port, timeout) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                for i, piece in enumerate(pieces):
                    if i and pause:
                        time.sleep(pause)
                    s.sendall(piece)
            except TimeoutError:
                raise
            except OSError:
                pass  # it may answer and close before it has read all
            return receive(s, until)

    def pipeline(self, request, count, each=100):
        """Sends the same request count times over one connection, `each` at once; all must be 200."""
        with connect(self.port) as s:
            for _ in range(count // each):
                s.sendall(request * each)
                received = receive(s, lambda got: got.count(b'"revision"') >= each)
                check(received.count(b"HTTP/1.1 200") == each, f"not {each} times 200: {received[-500:]!r}")


def receive(s, until=None):
    """What comes until the other side closes, or until until(what came) is true."""
    received = b""
    while until is None or not until(received):
        try:
            more = s.recv(1 << 16)
        except ConnectionError:
            break
        if not more:
            break
        received += more
    return received


def parse_head(head):
    """(status, [(name of a header, value)])"""
    line, *lines = head.decode("latin-1").split("\r\n")
    match = re.fullmatch(r"HTTP/1\.1 (\d{3})( .*)?", line)
    check(match, f"not a status line: {line!r}")
    pairs = []
    for line in lines:
        name, colon, value = line.partition(":")
        check(colon and name.strip() == name and "\n" not in line, f"not a header: {line!r}")
        pairs.append((name, value.strip()))
    return int(match.group(1)), pairs


def parse_answers(received, methods=()):
    """Splits what came over a socket into Answers; methods[i] == "HEAD" has no body."""
    answers = []
    while received:
        head, separator, rest = received.partition(b"\r\n\r\n")
        check(separator, f"a cut answer: {received[:200]!r}")
        status, headers = parse_head(head)
        names = {name.lower(): value for name, value in headers}
        is_head = len(answers) < len(methods) and methods[len(answers)] == "HEAD"
        if status in (204, 304) or is_head or status < 200:
            length = 0
        else:
            check("content-length" in names, f"no Content-Length: {head!r}")
            length = int(names["content-length"])
        check(len(rest) >= length, f"a cut body: {len(rest)} of {length} bytes")
        answers.append(Answer(status, headers, rest[:length]))
        received = rest[length:]
    return answers


with open(os.path.join(ROOT, "server/base/err.h"), encoding="utf-8") as _list:
    ERROR_CODES = {}  # the statuses of each code
    for _code, _status in re.findall(r'^ +X\(\w+, (\w+), (\d+), "', _list.read(), re.M):
        if _code != "ok":
            ERROR_CODES.setdefault(_code, []).append(int(_status))


def problem(answer, status, *words, pointer=None, limit=None, got=None):
    """An answer is a problem document of that status whose text names these words."""
    check(answer.status == status, f"expected {status}, got {answer}")
    equal(answer.media_type, PROBLEM, "Content-Type")
    document = answer.json
    for member in ("type", "title", "status", "code", "detail"):
        check(member in document, f"no member {member}: {document}")
    equal(document["status"], status, "status in the document")
    check(document["code"] in ERROR_CODES, f"no such code: {document}")
    check(status in ERROR_CODES[document["code"]], f"{document['code']} with {status}")
    equal(document["type"], f"/docs/errors#{document['code']}", "type")
    for member in ("type", "title", "detail"):
        check(isinstance(document[member], str) and document[member],
              f"{member} is no text: {document}")
    said = document["detail"] + " " + json.dumps(document.get("errors", ""))
    for word in words:
        pattern = word if hasattr(word, "search") else re.compile(re.escape(word))
        check(pattern.search(said), f"the detail does not name {pattern.pattern!r}: {document}")
    check("errors" in document or status not in (400, 404, 405, 415, 422) or
          document["code"] == "bad_request", f"the place is not named: {document}")
    for entry in document.get("errors", []):
        check(set(entry) >= {"pointer", "detail"}, f"an error without pointer or detail: {entry}")
    if pointer is not None:
        pointers = [entry.get("pointer") for entry in document.get("errors", [])]
        check(pointer in pointers, f"no error points to {pointer!r}: {document}")
    if limit is not None:
        equal(document.get("limit"), limit, "limit")
    if got is not None:
        equal(document.get("got"), got, "got")
    return document
