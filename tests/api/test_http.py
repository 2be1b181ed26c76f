"""HTTP itself: framing, keep-alive, pipelining, HEAD, OPTIONS, ids, probes, metrics, limits."""
import json
import re
import socket
import threading
import time

from daemon import JSON, SLOW, Daemon, parse_answers, problem
from fields import Terrain, put_terrain
from tap import HANG_S, case, check, equal, rng, run, test

daemon = Daemon("--loops", "2")
put_terrain(daemon, "land", Terrain(5, 4, [[c + r for c in range(5)] for r in range(4)]))
LAND = "/v1/locales/land"
GET = f"GET {LAND}/height?x=1&y=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode()
CLOSE = f"GET {LAND}/height?x=2&y=2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
LIVEZ = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = json.dumps({"points": [[1, 1], [2, 2]]}).encode()


def post(path, body, more="", media=JSON):
    return (f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {media}\r\n"
            f"Content-Length: {len(body)}\r\n{more}\r\n").encode() + body


# ---- answers ------------------------------------------------------------------------------------


@test("every answer has Date, X-Request-Id and, with a body, Content-Length and Content-Type")
def _():
    for method, target in (("GET", "/v1/locales"), ("GET", LAND), ("GET", "/metrics"), ("GET", "/"),
                           ("GET", "/openapi.json"), ("GET", "/nope"), ("PUT", LAND + "/height"),
                           ("POST", LAND + "/height"), ("OPTIONS", LAND)):
        answer = daemon.ask(method, target)
        check("date" in answer.headers, f"{method} {target}: no Date")
        check(re.fullmatch(r"[0-9a-f]{16}", answer.headers.get("x-request-id", "")),
              f"{method} {target}: X-Request-Id {answer.headers.get('x-request-id')!r}")
        names = [name for name, _ in answer.pairs]
        for name in ("content-length", "x-request-id", "content-type", "date"):
            check(names.count(name) <= 1, f"{method} {target}: {name} twice")
        if answer.status != 204:
            equal(int(answer.headers["content-length"]), len(answer.body), "Content-Length")
            check(answer.media_type, f"{method} {target}: no Content-Type")


@test("every answer has Server-Timing, which is within the time that the client measures")
def _():
    def timed(*asked, **named):
        begin = time.monotonic()
        answer = daemon.ask(*asked, **named)
        took_ms = (time.monotonic() - begin) * 1000
        match = re.fullmatch(r"total;dur=(\d+\.\d{3})", answer.headers.get("server-timing", ""))
        check(match, f"{asked}: Server-Timing {answer.headers.get('server-timing')!r}")
        check(float(match[1]) <= took_ms, f"{asked}: {match[1]} ms of {took_ms} ms")
        equal(answer.headers.get("timing-allow-origin"), "*", "Timing-Allow-Origin")
        check("Server-Timing" in answer.headers["access-control-expose-headers"], "not exposed")
        return answer

    for method, target in (("GET", "/v1/locales"), ("GET", LAND), ("HEAD", LAND), ("GET", "/nope"),
                           ("GET", "/metrics"), ("PUT", LAND + "/height"), ("OPTIONS", LAND),
                           ("POST", LAND + "/height")):
        timed(method, target)
    tag = timed("GET", "/").headers["etag"]
    equal(timed("GET", "/", headers={"If-None-Match": tag}).status, 304, "status")
    head = daemon.raw(b"GET /v1/events HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                      until=lambda got: b"\r\n\r\n" in got)
    check(b"\r\nServer-Timing: total;dur=" in head, head)
    bad = daemon.raw(b"GET / HTTP/9.9\r\n\r\n")
    check(b"\r\nServer-Timing: total;dur=" in bad, bad)


@test("request ids are distinct")
def _():
    ids = [daemon.get("/livez").headers["x-request-id"] for _ in range(300)]
    equal(len(set(ids)), 300, "distinct ids")


@test("JSON answers are application/json")
def _():
    for target in ("/v1/locales", LAND, LAND + "/height?x=1&y=1", "/v1/limits", "/v1/stats",
                   "/openapi.json", "/livez"):
        equal(daemon.get(target).media_type, JSON, target)


HEADS = ["/v1", "/v1/locales", LAND, LAND + "/height?x=1&y=1", LAND + "/tiles/0/0/0?format=f32",
         LAND + "/layers/ground/stats", "/v1/limits", "/openapi.json", "/", "/livez",
         "/nope", LAND + "/height"]


def head_is_get(target):
    get = daemon.get(target)
    received = daemon.raw(f"HEAD {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    head, _, rest = received.partition(b"\r\n\r\n")
    equal(rest, b"", "the body of a HEAD")
    answer = parse_answers(received, ["HEAD"])[0]
    equal(answer.status, get.status, "status")
    equal(answer.headers["content-type"], get.headers["content-type"], "Content-Type")
    if target != "/v1/stats":
        equal(answer.headers["content-length"], get.headers["content-length"], "Content-Length")


for target_ in HEADS:
    case(f"HEAD {target_} is GET without its body", head_is_get, target_)


@test("HEAD leaves a kept connection in step")
def _():
    received = daemon.raw(GET.replace(b"GET", b"HEAD") + GET + CLOSE)
    answers = parse_answers(received, ["HEAD"])
    equal([a.status for a in answers], [200, 200, 200], "statuses")
    equal(answers[1].json["height"], 2, "the answer after it")


# ---- OPTIONS and CORS ----------------------------------------------------------------------------

ROUTES = [("/v1", {"GET"}), ("/v1/locales", {"GET", "POST"}), (LAND, {"GET", "PUT", "DELETE"}),
          (LAND + "/height", {"GET", "POST"}), (LAND + "/ray", {"GET", "POST"}),
          (LAND + "/layers/ground", {"GET", "PUT", "DELETE"}), (LAND + "/layers/ground/stats", {"GET"}),
          (LAND + "/tiles/0/0/0", {"GET"}), ("/v1/limits", {"GET"}), ("/", {"GET"})]


def options(target, methods):
    answer = daemon.ask("OPTIONS", target, headers={
        "Origin": "http://tool.example", "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,authorization"})
    equal((answer.status, answer.body), (204, b""), "answer")
    allow = {m.strip() for m in answer.headers["allow"].split(",")}
    check(methods <= allow, f"Allow {allow}")
    equal(allow - {"HEAD", "OPTIONS"}, methods, "Allow")
    equal(answer.headers.get("access-control-allow-origin"), "*", "Allow-Origin")
    named = {m.strip() for m in answer.headers["access-control-allow-methods"].split(",")}
    check(methods <= named, f"Allow-Methods {named}")
    headers = answer.headers["access-control-allow-headers"].lower()
    check(headers == "*" or {"content-type", "authorization"} <= {
        h.strip() for h in headers.split(",")}, f"Allow-Headers {headers}")


for target_, methods_ in ROUTES:
    case(f"OPTIONS {target_} is 204 with Allow and CORS headers", options, target_, methods_)


@test("a page of another origin may read: answers and refusals carry Allow-Origin")
def _():
    for target in (LAND, LAND + "/height?x=1&y=1", "/nope", LAND + "/height"):
        answer = daemon.get(target, headers={"Origin": "http://tool.example"})
        equal(answer.headers.get("access-control-allow-origin"), "*", target)
    answer = daemon.post(LAND + "/ray", {"rays": [{"origin": [1, 1, 9], "direction": [0, 0, -1]}]},
                         headers={"Origin": "http://tool.example"})
    equal((answer.status, answer.headers.get("access-control-allow-origin")), (200, "*"), "ray")
    exposed = answer.headers.get("access-control-expose-headers", "").lower()
    check(exposed == "*" or "x-request-id" in exposed, f"Expose-Headers {exposed!r}")


@test("OPTIONS of an unknown route is 404 or 204, never a crash; OPTIONS * as well")
def _():
    check(daemon.ask("OPTIONS", "/nope").status in (204, 404), "unknown route")
    received = daemon.raw(b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    check(received.startswith(b"HTTP/1.1 "), f"{received[:100]!r}")
    check(daemon.is_alive(), "alive")


# ---- connections ------------------------------------------------------------------------------------


@test("a hundred requests in one packet are answered in order")
def _():
    pieces = b"".join(f"GET {LAND}/height?x={i % 5}&y={i % 4} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
                      for i in range(100))
    answers = parse_answers(daemon.raw(pieces + CLOSE))
    equal(len(answers), 101, "answers")
    equal([a.json["height"] for a in answers[:100]], [i % 5 + i % 4 for i in range(100)], "order")


@test("fast and slow routes pipelined together keep their order")
def _():
    many = json.dumps({"points": [[1, 1]] * 9000}).encode()
    tile = f"GET {LAND}/tiles/0/0/0?format=png16 HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    stream = (post(LAND + "/height", many) + GET + tile + GET + post(LAND + "/height", BODY)
              + b"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n" + CLOSE)
    answers = parse_answers(daemon.raw(stream))
    equal([a.status for a in answers], [200, 200, 200, 200, 200, 404, 200], "statuses")
    equal(len(answers[0].json["results"]), 9000, "the first")
    equal(answers[2].media_type, "image/png", "the third")
    equal(len(answers[4].json["results"]), 2, "the fifth")


@test("requests split at every byte are understood")
def _():
    stream = post(LAND + "/height", BODY, "Connection: close\r\n")
    for cut in range(1, len(stream), 7 if SLOW > 1 else 3):
        answers = parse_answers(daemon.raw(stream[:cut], stream[cut:], pause=0.001))
        equal([a.status for a in answers], [200], f"cut at {cut}")
        equal(len(answers[0].json["results"]), 2, f"cut at {cut}")
    pieces = [bytes([b]) for b in stream]
    equal(parse_answers(daemon.raw(*pieces))[0].status, 200, "a byte at a time")


@test("chunked bodies are understood, however they are cut")
def _():
    random = rng("chunks")
    for _ in range(20):
        body, at = b"", 0
        while at < len(BODY):
            size = random.randrange(1, 9)
            piece = BODY[at:at + size]
            body += f"{len(piece):x}".encode() + b"\r\n" + piece + b"\r\n"
            at += size
        head = (f"POST {LAND}/height HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\n"
                "Transfer-Encoding: chunked\r\n\r\n").encode()
        answers = parse_answers(daemon.raw(head + body + b"0\r\n\r\n" + CLOSE))
        equal([a.status for a in answers], [200, 200], "statuses")
        equal(len(answers[0].json["results"]), 2, "results")


@test("Connection: close closes, HTTP/1.1 keeps open, HTTP/1.0 closes")
def _():
    answers = parse_answers(daemon.raw(CLOSE))
    equal(len(answers), 1, "answers")
    equal(answers[0].headers.get("connection", "").lower(), "close", "Connection")
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S) as s:
        for _ in range(20):
            s.sendall(GET)
            received = b""
            while b"}" not in received:
                received += s.recv(65536)
            check(received.startswith(b"HTTP/1.1 200"), f"{received[:80]!r}")
    received = daemon.raw(f"GET {LAND}/height?x=1&y=1 HTTP/1.0\r\n\r\n".encode())
    check(received.startswith(b"HTTP/1.1 200") or received.startswith(b"HTTP/1.0 200"),
          f"{received[:80]!r}")


@test("Expect: 100-continue is answered before the body")
def _():
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S) as s:
        head, _, body = post(LAND + "/height", BODY, "Expect: 100-continue\r\n"
                             "Connection: close\r\n").partition(b"\r\n\r\n")
        s.sendall(head + b"\r\n\r\n")
        first = s.recv(4096)
        check(first.startswith(b"HTTP/1.1 100 "), f"{first[:60]!r}")
        s.sendall(body)
        rest = first.partition(b"\r\n\r\n")[2]
        while True:
            more = s.recv(65536)
            if not more:
                break
            rest += more
    equal(parse_answers(rest)[0].status, 200, "the answer")


@test("an idle connection outlives the time for headers, one that dribbles headers does not")
def _():
    limit_s = 1.0
    with Daemon("--header-ms", str(int(limit_s * 1000))) as own, \
            socket.create_connection(("127.0.0.1", own.port), timeout=HANG_S) as idle, \
            socket.create_connection(("127.0.0.1", own.port), timeout=HANG_S) as slow:
        idle.sendall(LIVEZ)
        idle.recv(65536)
        received, start = b"", time.monotonic()
        slow.settimeout(0.1)
        slow.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n")
        while time.monotonic() < start + HANG_S:
            try:
                slow.sendall(b"X-A: 1\r\n")
                received += slow.recv(65536)
                break
            except TimeoutError:
                pass
            except ConnectionError:
                break
        seconds = time.monotonic() - start
        check(seconds > 0.85 * limit_s, f"cut after {seconds:.1f} s")
        check(seconds < HANG_S, f"still open after {seconds:.1f} s")
        if received:
            equal(parse_answers(received)[0].status, 408, "the answer")
        time.sleep(max(0, 1.5 * limit_s - seconds))
        idle.sendall(LIVEZ)
        check(idle.recv(65536).startswith(b"HTTP/1.1 200"), "after an idle time of the limit and a half")


@test("a hundred connections at once are answered, on two loops")
def _():
    sockets = [socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S) for _ in range(100)]
    try:
        for _ in range(3):
            for s in sockets:
                s.sendall(GET)
            for s in sockets:
                check(s.recv(65536).startswith(b"HTTP/1.1 200"), "an answer")
    finally:
        for s in sockets:
            s.close()


@test("readers in parallel never see half a write")
def _():
    put_terrain(daemon, "turning", Terrain(3, 3, [[0] * 3] * 3))
    wrong, done = [], threading.Event()

    def read(port):
        import http.client
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG_S)
        while not done.is_set():
            connection.request("POST", "/v1/locales/turning/height",
                               json.dumps({"points": [[i % 3, i % 2] for i in range(400)]}),
                               {"Content-Type": JSON})
            answer = json.loads(connection.getresponse().read())
            heights = {item["height"] for item in answer["results"]}
            if len(heights) != 1 or answer["revision"] != heights.pop() + 2:
                wrong.append(answer["revision"])
        connection.close()

    readers = [threading.Thread(target=read, args=(daemon.port,)) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for height in range(1, 40):
            terrain = Terrain(3, 3, [[height] * 3] * 3)
            daemon.ok("PUT", f"/v1/locales/turning/layers/ground?{terrain.query()}",
                      terrain.body(), media="application/vnd.kota.f32")
    finally:
        done.set()
        for reader in readers:
            reader.join()
    equal(wrong, [], "answers that mix two revisions")


# ---- framing that is refused -----------------------------------------------------------------------

ROW = f"GET {LAND}/height?x=1&y=1 HTTP/1.1"
FRAMES = [
    ("a bare LF", ROW.encode() + b"\nHost: x\n\n", (400,)),
    ("a folded header", (ROW + "\r\nHost: x\r\nX-A: 1\r\n  2\r\n\r\n").encode(), (400,)),
    ("no Host", (ROW + "\r\n\r\n").encode(), (400,)),
    ("two Hosts", (ROW + "\r\nHost: x\r\nHost: y\r\n\r\n").encode(), (400,)),
    ("HTTP/2.0", ROW.replace("1.1", "2.0").encode() + b"\r\nHost: x\r\n\r\n", (400, 505)),
    ("HTTP/0.9", b"GET /livez\r\n\r\n", (400, 505)),
    ("an unknown method", b"BREW /v1/locales HTTP/1.1\r\nHost: x\r\n\r\n", (400, 405, 501)),
    ("a known method of another protocol", b"MKCOL /v1/locales HTTP/1.1\r\nHost: x\r\n\r\n",
     (400, 405, 501)),
    ("TLS", bytes.fromhex("16030100a5010000a10303") + bytes(100), (400,)),
    ("a space before the colon", (ROW + "\r\nHost: x\r\nX-A : 1\r\n\r\n").encode(), (400,)),
    ("a NUL in a header", (ROW + "\r\nHost: x\r\nX-A: a\0b\r\n\r\n").encode(), (400,)),
    ("two lengths", (f"POST {LAND}/height HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\n"
                     "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}").encode(), (400,)),
    ("a length and chunks", (f"POST {LAND}/height HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\n"
                             "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                             ).encode(), (400,)),
    ("a negative length", (f"POST {LAND}/height HTTP/1.1\r\nHost: x\r\nContent-Length: -2\r\n\r\n"
                           ).encode(), (400,)),
    ("a length that is no number", (f"POST {LAND}/height HTTP/1.1\r\nHost: x\r\n"
                                    "Content-Length: two\r\n\r\n").encode(), (400,)),
    ("a length beyond 64 bits", (f"POST {LAND}/height HTTP/1.1\r\nHost: x\r\nContent-Length: "
                                 "99999999999999999999999\r\n\r\n").encode(), (400, 413)),
    ("an unknown coding", (f"POST {LAND}/height HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\n"
                           "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n").encode(),
     (400, 411, 415, 501)),
    ("a chunk size that is no number", (f"POST {LAND}/height HTTP/1.1\r\nHost: x\r\nContent-Type: "
                                        f"{JSON}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
                                        ).encode(), (400,)),
    ("a target of 9 KiB", b"GET /" + b"a" * 9216 + b" HTTP/1.1\r\nHost: x\r\n\r\n", (414,)),
    ("a header of 17 KiB", (ROW + "\r\nHost: x\r\nX-A: " + "a" * 17408 + "\r\n\r\n").encode(),
     (431,)),
    ("200 headers", (ROW + "\r\nHost: x\r\n" + "".join(f"X-{i}: 1\r\n" for i in range(200)) + "\r\n"
                     ).encode(), (431,)),
    ("a bad percent code", b"GET /v1/locales/%zz HTTP/1.1\r\nHost: x\r\n\r\n", (400, 404)),
    ("a cut percent code", b"GET /v1/locales/%4 HTTP/1.1\r\nHost: x\r\n\r\n", (400, 404)),
    ("an encoded NUL", b"GET /v1/locales/%00 HTTP/1.1\r\nHost: x\r\n\r\n", (400, 404)),
    ("a target without slash", b"GET v1 HTTP/1.1\r\nHost: x\r\n\r\n", (400, 404)),
]


def framed(stream, statuses):
    received = daemon.raw(stream, until=lambda data: data.endswith(b"}") or data.endswith(b"}\n"))
    answers = parse_answers(received)
    check(answers and answers[0].status in statuses, f"expected {statuses}, got {received[:300]!r}")
    problem(answers[0], answers[0].status)
    equal(daemon.get("/livez").status, 200, "alive")


for what_, stream_, statuses_ in FRAMES:
    case(f"{what_}: a problem document", framed, stream_, statuses_)


@test("after a broken frame the connection closes: nothing behind it is read as a request")
def _():
    smuggled = b"X\r\nHost: x\r\n\r\n" + GET
    received = daemon.raw(ROW.encode() + b"\nHost: x\n\n" + smuggled)
    equal(len(parse_answers(received)), 1, "answers")


# ---- probes, metrics, statistics ------------------------------------------------------------------------


@test("probes say ok")
def _():
    for target in ("/livez", "/readyz", "/healthz"):
        equal(daemon.ok("GET", target), {"status": "ok"}, target)


SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (-?[0-9.eE+-]+|NaN|[+-]Inf)( -?\d+)?')
LABEL = re.compile(r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"')


def metrics():
    """{family: (type, {sample line without value: value})}, and every rule of the text format."""
    answer = daemon.get("/metrics")
    equal(answer.status, 200, "status")
    check(answer.headers["content-type"].startswith("text/plain; version=0.0.4"),
          f"Content-Type {answer.headers['content-type']}")
    text = answer.body.decode("utf-8")
    check(text.endswith("\n"), "the last line ends")
    helps, types, samples, order = set(), {}, {}, []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            check(name not in helps, f"HELP twice: {name}")
            check(len(line.split(" ", 3)) == 4, f"HELP without text: {line}")
            helps.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            check(name not in types, f"TYPE twice: {name}")
            check(kind in ("counter", "gauge", "histogram", "summary"), line)
            types[name] = kind
        elif line and not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            check(match, f"not a sample: {line!r}")
            name, labels, value = match.group(1), match.group(2) or "", match.group(3)
            if labels:
                check(re.fullmatch(LABEL.pattern + "(?:," + LABEL.pattern + ")*,?", labels[1:-1]),
                      f"labels of {line!r}")
            family = name
            for suffix in ("_bucket", "_sum", "_count"):
                if name.endswith(suffix) and types.get(name[:-len(suffix)]) == "histogram":
                    family = name[:-len(suffix)]
            check(family in types and family in helps, f"no HELP and TYPE before {line!r}")
            check(family.startswith("kota_"), f"not a kota_ metric: {family}")
            if types[family] == "counter":
                check(family.endswith("_total"), f"a counter without _total: {family}")
            check(name + labels not in samples, f"sample twice: {name + labels}")
            samples[name + labels] = float(value)
            if not order or order[-1] != family:
                check(family not in order, f"{family} is not in one piece")
                order.append(family)
    return types, samples


@test("metrics are Prometheus text: every sample has HELP and TYPE, names begin with kota_")
def _():
    types, samples = metrics()
    check(len(types) >= 5, f"only {sorted(types)}")
    check(all(value >= 0 for value in samples.values()), f"{samples}")


@test("histograms count up to +Inf")
def _():
    types, samples = metrics()
    for family in (name for name, kind in types.items() if kind == "histogram"):
        series = {}
        for name, value in samples.items():
            if name.startswith(family + "_bucket{"):
                labels = name[len(family) + 8:-1]
                bound = re.search(r'le="([^"]+)"', labels).group(1)
                rest = re.sub(r'le="[^"]+",?', "", labels).strip(",")
                series.setdefault(rest, []).append((float(bound.replace("+Inf", "inf")), value))
        check(series, f"{family} has no buckets")
        for rest, buckets in series.items():
            check(buckets == sorted(buckets), f"{family}: buckets not in order")
            counts = [count for _, count in buckets]
            check(counts == sorted(counts), f"{family}: not cumulative: {counts}")
            equal(buckets[-1][0], float("inf"), f"{family}: last bucket")
            name = family + "_count" + (f"{{{rest}}}" if rest else "")
            equal(samples.get(name), counts[-1], name)


@test("requests are counted by route, not by locale, and grow by what was asked")
def _():
    def total(samples):
        return sum(value for name, value in samples.items()
                   if name.startswith("kota_http_requests_total") and "height" in name)
    before = metrics()[1]
    for _ in range(25):
        daemon.get(LAND + "/height?x=1&y=1")
    for i in range(30):
        daemon.get(f"/v1/locales/unknown{i}/height?x=1&y=1")
    after = metrics()[1]
    equal(total(after) - total(before), 55, "requests of the height routes")
    check(not any("unknown" in name for name in after), "a label for each locale asked")
    check(len(after) - len(before) < 10, f"{len(after) - len(before)} new series")


@test("/v1/stats is JSON of numbers that agree with what was asked")
def _():
    first = daemon.ok("GET", "/v1/stats")
    check(isinstance(first, dict) and first, f"{first}")
    second = daemon.ok("GET", "/v1/stats")
    equal(set(first), set(second), "members")


@test("/v1/limits names the limits in force")
def _():
    limits = daemon.ok("GET", "/v1/limits")
    text = json.dumps(limits)
    for value in (10_000, 1_000_000, 64 * 1024 * 1024, 1_000):
        check(re.search(rf"\b{value}\b", text), f"no limit of {value}: {text}")
    flat = []

    def walk(value):
        for entry in value.values():
            if isinstance(entry, dict):
                walk(entry)
            else:
                flat.append(entry)
    equal(limits.pop("patch_granules_max"), None, "granules, where nothing simulates patches")
    walk(limits)
    check(all(isinstance(v, (int, float)) and not isinstance(v, bool) and v > 0 for v in flat),
          f"limits that are no numbers: {flat}")


@test("/openapi.json is the contract, / a page")
def _():
    document = daemon.ok("GET", "/openapi.json")
    equal(document["openapi"][:4], "3.1.", "version")
    page = daemon.get("/")
    equal((page.status, page.media_type), (200, "text/html"), "/")
    check(b"<html" in page.body.lower(), "a page")


@test("the connection limit per address is at least a thousand")
def _():
    sockets = []
    try:
        for _ in range(900):
            sockets.append(socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S))
        for s in sockets[::50]:
            s.sendall(GET)
            check(s.recv(65536).startswith(b"HTTP/1.1 200"), "an answer among 900 connections")
    finally:
        for s in sockets:
            s.close()


@test("a query may come in any order, percent-encoded, with + for a space nowhere a number")
def _():
    answer = daemon.ok("GET", LAND + "/height?interp=nearest&y=%31&x=1")
    equal(answer["height"], 2, "percent-encoded")
    answer = daemon.ok("GET", LAND + "/height?x=1e0&y=1.0E%2B00")
    equal(answer["height"], 2, "exponents")
    equal(daemon.ok("GET", LAND + "/height?x=-0&y=0")["height"], 0, "minus zero")


run(daemon.stop)
