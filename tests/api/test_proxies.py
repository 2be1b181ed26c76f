"""deploy/nginx.conf and deploy/haproxy.cfg by the real programs: TLS, rates, what they hide, SSE.

Then the tests of the API once more, through each of them (KOTA_TEST_PROXY): a few files here, most of
them in make test-all, and with KOTA_LONG=1 (make proxies) every file but those that through.py names,
each with its reason.
"""
import concurrent.futures
import functools
import http.server
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

from background import program
from daemon import (F32, FRONTS, PROBLEM, PROXY, ROOT, TOKEN, Daemon, ask_once, connection_to, parse_answers,
                    problem)
from events import Stream
from fields import Terrain
from proxies import Front
from tap import HANG_S, Failure, Skip, case, check, equal, rest, run
from through import SHORT, SHORTEST, left_out, longest_first, names_of_all

LONG = os.environ.get("KOTA_LONG") == "1"
FIELD = Terrain(2, 2, [[1, 2], [3, 4]])
EDIT = {"Authorization": f"Bearer {TOKEN}"}
PROBES = ("/livez", "/readyz", "/healthz", "/%72eadyz", "/livez?x=1")
COUNTERS = ("/metrics", "/v1/stats", "/%6detrics", "/metrics?x=1", "/v1/%73tats")


class Behind:
    """A daemon with a token file, and the proxy in front of it; ask() goes through the proxy."""

    def __init__(self, kind, **named):
        self.kind, self.named = kind, named

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="kota-test-")
        tokens = os.path.join(self.folder.name, "tokens")
        with open(tokens, "w") as file:
            file.write(f"edit {TOKEN}\n")
        self.daemon = Daemon("--token-file", tokens, "--stream-silence-ms", "300")
        try:
            self.front = Front(self.kind, [self.daemon.port], **self.named)
        except BaseException:
            self.daemon.kill()
            raise
        self.direct, self.daemon.port = self.daemon.port, self.front.port
        FRONTS[self.front.port] = self.front
        return self

    def __exit__(self, kind, error, trace):
        FRONTS.pop(self.front.port)
        self.front.stop()
        self.daemon.__exit__(kind, error, trace)
        self.folder.cleanup()

    def fill(self):
        daemon = self.daemon
        daemon.ok("PUT", "/v1/locales/land", {}, status=201, headers=EDIT)
        daemon.ok("PUT", f"/v1/locales/land/layers/ground?{FIELD.query()}", FIELD.body(), status=201,
                  media=F32, headers=EDIT)


def hides(kind):
    with Behind(kind) as behind:
        for target in PROBES:
            problem(behind.daemon.get(target, headers=EDIT), 404, "not to be seen from here")
        for target in COUNTERS:
            answer = behind.daemon.get(target)
            problem(answer, 401, "told to those with a token")
            equal(answer.headers.get("www-authenticate"), "Bearer", "WWW-Authenticate")
            for unknown in ("Bearer x", "Basic eDp5", "x"):
                answer = behind.daemon.get(target, headers={"Authorization": unknown})
                problem(answer, 401, "no known token")
        for target in ("/metrics", "/v1/stats"):
            equal(behind.daemon.get(target, headers=EDIT).status, 200, f"{target} with a token")
        for target in ("//metrics", "/metrics/", "/v1//stats", "/./metrics", "/x/../metrics"):
            answer = behind.daemon.get(target)
            check(answer.status in (400, 401, 404), f"{target}: {answer}")
        equal(ask_once(behind.direct, "/readyz").status, 200, "/readyz of the daemon itself")


def writes_need_a_token(kind):
    with Behind(kind) as behind:
        problem(behind.daemon.put("/v1/locales/land", {}), 401)
        behind.fill()
        edit = {"brush": {"shape": "raise", "center": [0.5, 0.5], "radius": 1, "amount": 1}}
        problem(behind.daemon.post("/v1/locales/land/edits", edit), 401)
        behind.daemon.ok("POST", "/v1/locales/land/edits", edit, headers=EDIT)
    with Daemon() as daemon:  # without tokens: a proxy's request is not from this machine
        with Front(kind, [daemon.port]) as front:
            FRONTS[front.port] = front
            connection = connection_to(front.port)
            connection.request("PUT", "/v1/locales/land", "{}", {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
            FRONTS.pop(front.port)
        equal(answer.status, 403, text)
        check("Forwarded" in text, text)


def counters_without_tokens(kind):
    """Behind a proxy a daemon without tokens shows its counters to no bearer."""
    with Daemon() as daemon:
        with Front(kind, [daemon.port]) as front:
            FRONTS[front.port] = front
            for bearer in ("Bearer any", "Bearer x.y"):
                for target in COUNTERS:
                    connection = connection_to(front.port)
                    connection.request("GET", target, headers={"Authorization": bearer})
                    answer = connection.getresponse()
                    text = answer.read().decode()
                    connection.close()
                    equal(answer.status, 403, text)
                    check('"code":"proxied_without_tokens"' in text, text)
            FRONTS.pop(front.port)
        for target in ("/metrics", "/v1/stats"):
            equal(daemon.get(target).status, 200, f"{target} of this machine")
            for name in ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host"):
                answer = daemon.get(target, headers={name: "x", "Authorization": "Bearer any"})
                problem(answer, 403, "through a proxy")


def passes(kind):
    """Bodies of both sizes, conditions, ids of requests; connections to the daemon are kept."""
    with Behind(kind) as behind:
        daemon = behind.daemon
        behind.fill()
        side = 1500  # 9 MB
        body = b"".join(struct.pack("<f", r % 7) * side for r in range(side))
        daemon.ok("PUT", f"/v1/locales/land/layers/ground?cols={side}&rows={side}&spacing=1,1", body,
                  media=F32, headers=EDIT)
        tile = "/v1/locales/land/tiles/0/0/0?format=f32"
        first = daemon.get(tile)
        equal((first.status, len(first.body)), (200, 257 * 257 * 4), "a tile")
        again = daemon.get(tile, headers={"If-None-Match": first.headers["etag"]})
        equal((again.status, again.body), (304, b""), "the same tile")
        check(re.fullmatch(r'"[^"]+"', first.headers["etag"]), f"{first.headers['etag']}")
        check(first.headers.get("x-request-id"), "no X-Request-Id")

        def accepted():
            return json.loads(ask_once(behind.direct, "/v1/stats").body)["http"][
                "connections_accepted"]
        before = accepted()
        for i in range(200):
            daemon.ok("GET", f"/v1/locales/land/height?x={i}&y=1")
        made = accepted() - before - 1
        check(made < 20, f"200 requests took {made} connections to the daemon")


def refuses_in_words(kind):
    """What the proxy itself refuses is a problem document, too."""
    def whole(data):
        return data.endswith(b"}")
    with Behind(kind) as behind:
        for request in (b"GET /v1/locales HTTP/1.1\r\n\r\n",
                        b"GET /v1/locales/%00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                        b"GET /v1/locales HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                        b"GET /a b c HTTP/1.1\r\nHost: x\r\n\r\n"):
            if kind == "haproxy" and (b"-1" in request or b"a b" in request):
                continue  # what is no HTTP at all is answered before its configuration is asked
            answers = parse_answers(behind.daemon.raw(request, until=whole))
            check(answers, f"no answer to {request!r}")
            equal(answers[0].media_type, PROBLEM, f"{request!r}")
            problem(answers[0], 400)
        long = f"GET /{'x' * 20000} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        answer = parse_answers(behind.daemon.raw(long, until=whole))[0]
        check(answer.status in (400, 414), f"a target of 20,000 bytes: {answer}")
        problem(answer, answer.status)


def too_large(kind):
    with Behind(kind) as behind:
        connection = connection_to(behind.front.port)
        connection.putrequest("PUT", "/v1/locales/land/layers/ground?cols=2&rows=2")
        for name, value in (("Content-Type", F32), ("Content-Length", str(67108865)),
                            *EDIT.items()):
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        document = json.loads(answer.read())
        connection.close()
        equal((answer.status, answer.getheader("Content-Type")), (413, "application/problem+json"),
              "of 64 MiB and a byte")
        equal(document["limit"], 67108864, "limit")


def streams(kind):
    """An event comes while its stream goes on, and so do the comments of silence."""
    with Behind(kind) as behind:
        behind.fill()
        with Stream(behind.front.port, "/v1/locales/land/events") as stream:
            equal(stream.block(), [("retry", "2000"), ("", "kota")], "the first block")
            for n in range(3):
                behind.daemon.ok("POST", "/v1/locales/land/edits", {"brush": {
                    "shape": "raise", "center": [0.5, 0.5], "radius": 1, "amount": 1}}, headers=EDIT)
                equal(stream.event().data["revision"], 3 + n, "the event's revision")
            equal(stream.block(), [("", "")], "a comment breaks the silence")

        def streams_open():
            return json.loads(ask_once(behind.direct, "/v1/stats").body)["http"]["streams_open"]
        behind.front.wait(lambda: streams_open() == 0, "the stream of a reader that has gone ends")


def rates(kind):
    with Behind(kind, has_rates=True) as behind:
        refused = None
        for _ in range(3000):
            answer = behind.daemon.get("/v1/limits")
            if answer.status != 200:
                refused = answer
                break
        check(refused, "3,000 requests in a row and none refused")
        problem(refused, 429, "more requests")
        equal(refused.headers.get("retry-after"), "1", "Retry-After")
        deadline = time.monotonic() + HANG_S
        while behind.daemon.get("/v1/limits").status != 200:
            check(time.monotonic() < deadline, "refused for ever")
            time.sleep(0.5)


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with the head that it got."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = json.dumps(self.headers.items()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class EchoServer(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """A health check that closes at once is no error."""


def heads(kind):
    """What a client says of itself does not arrive; Host does."""
    server = EchoServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with Front(kind, [server.server_port]) as front:
            def asked():
                return ask_once(front.port, "/x", front.context, {
                    "X-Forwarded-For": "10.9.9.9", "X-Forwarded-Proto": "gopher",
                    "Forwarded": "for=10.9.9.9", "Traceparent": "00-1-2-01", "X-Request-Id": "mine"})
            answer = front.wait(lambda: (got := asked()).status == 200 and got, "the echo answers")
            got = {}
            for name, value in answer.json:
                got.setdefault(name.lower(), []).append(value)
            equal(got.get("x-forwarded-for"), ["127.0.0.1"], "X-Forwarded-For")
            equal(got.get("x-forwarded-proto"), ["https"], "X-Forwarded-Proto")
            equal(got.get("forwarded"), None, "Forwarded")
            equal(got.get("traceparent"), ["00-1-2-01"], "traceparent")
            equal(got.get("x-request-id"), ["mine"], "X-Request-Id")
            equal(got.get("host"), [f"127.0.0.1:{front.port}"], "Host")
            check("close" not in got.get("connection", []), f"Connection: {got.get('connection')}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def gone(kind):
    """Without a daemon it is 503, and 200 again once there is one."""
    with Behind(kind) as behind:
        equal(behind.daemon.get("/v1/limits").status, 200, "with the daemon")
        behind.daemon.process.terminate()
        behind.daemon.process.wait()
        behind.front.wait(lambda: ask_once(behind.front.port, "/v1/limits").status == 503, "503")


def http2(kind):
    with Behind(kind) as behind:
        done = subprocess.run(
            [program("curl"), "-sS", "--http2", "--cacert", behind.front.path("tls.crt"), "-o", "-",
             "-w", "\n%{http_version}", f"https://127.0.0.1:{behind.front.port}/v1/locales"],
            capture_output=True, timeout=HANG_S, check=True)
        equal(done.stdout.decode(), '{"locales":[],"next":null}\n2', "the answer, the version")


def inspector(kind):
    """With a token it shows all; without one it says in words what it cannot show, and why."""
    node = shutil.which("node")
    if not node:
        raise Skip("no node (deploy/install-deps.sh test)")
    with Behind(kind) as behind:
        behind.fill()
        done = subprocess.run([node, os.path.join(ROOT, "tests", "web", "behind.mjs"),
                               f"https://127.0.0.1:{behind.front.port}", TOKEN],
                              capture_output=True, text=True, timeout=2 * HANG_S, check=False)
    if done.stdout.startswith("1..0 # SKIP "):
        raise Skip(done.stdout.partition("# SKIP ")[2].strip())
    check(done.returncode == 0 and "ok 1" in done.stdout, done.stdout + done.stderr)


def once_more(kind, name, chosen):
    for needed in (kind, "openssl"):
        program(needed)  # else it is skipped
    environment = {**os.environ, "KOTA_TEST_PROXY": kind, "KOTA_TEST_ALL": ""}
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "api", f"test_{name}.py"),
                           *chosen, *(f"-{sentence}" for sentence in left_out(name, kind))],
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=5 * HANG_S, check=False)
    text = done.stdout.decode("utf-8", "replace")
    passed = len(re.findall(r"^ok \d+ (?!.*# SKIP)", text, re.M))
    if done.returncode != 0 or passed < max(1, len(chosen)):
        raise Failure(f"{passed} passed, exit status {done.returncode}:\n" + "\n".join(
            line for line in text.splitlines() if not line.startswith("ok "))[-3000:])


def all_of_them():
    """make proxies: side by side, as tests/run does, since most of their time is waiting."""
    jobs = int(os.environ.get("KOTA_TEST_JOBS") or os.cpu_count())
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    for name in longest_first():
        for kind in KINDS:
            begun = pool.submit(once_more, kind, name, ())
            case(f"{kind}: test_{name}.py passes through it", begun.result)


TESTS = ((hides, "probes and counters are not to be seen, however they are written"),
         (writes_need_a_token, "a write needs a token"),
         (counters_without_tokens, "without tokens counters are shown to no bearer"),
         (passes, "uploads, tiles, ETags and ids pass, over connections that are kept"),
         (refuses_in_words, "what it refuses itself is a problem document"),
         (too_large, "a body over the daemon's limit is 413, a problem document"),
         (streams, "events come one by one while the stream goes on"),
         (rates, "too many requests are 429 with Retry-After, and pass later"),
         (heads, "X-Forwarded-* are the proxy's own, traceparent and Host the client's"),
         (gone, "without a daemon it is 503"),
         (http2, "HTTP/2 is spoken"))
INSPECTOR = "the inspector: with a token it shows all, without one it says what it cannot"
KINDS = ("nginx", "haproxy")

if PROXY:
    raise SystemExit("1..0 # SKIP it starts its own proxies")
case("what is left out is there, and has a reason", names_of_all)
for kind_ in KINDS:
    for function, sentence_ in TESTS:
        case(f"{kind_}: {sentence_}", function, kind_)
    rest(f"{kind_}: {INSPECTOR}")(functools.partial(inspector, kind_))
    for name_, chosen_ in () if LONG else SHORTEST.items():
        case(f"{kind_}: some of test_{name_}.py passes through it", once_more, kind_, name_, chosen_)
    for name_, chosen_ in () if LONG else SHORT.items():
        rest(f"{kind_}: test_{name_}.py passes through it")(
            functools.partial(once_more, kind_, name_, chosen_))
if LONG:
    all_of_them()
run()
