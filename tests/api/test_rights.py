"""Who may write, who may read: loopback, origins, proxies, tokens, --read-only."""
import os
import re
import tempfile

from daemon import F32, Daemon, problem
from fields import Terrain
from tap import case, check, equal, run, test

FIELD = Terrain(2, 2, [[1, 2], [3, 4]])
PUT_LAYER = f"/v1/locales/land/layers/ground?{FIELD.query()}"
GOOD_RAY = {"rays": [{"origin": [0.2, 0.2, 9], "direction": [0, 0, -1]}]}


def fill(daemon, **named):
    daemon.ok("PUT", "/v1/locales/land", {}, status=201, **named)
    daemon.ok("PUT", PUT_LAYER, FIELD.body(), status=201, media=F32, **named)


def writes(daemon, headers):
    """The statuses of every kind of write with these headers."""
    return [daemon.ask(*request, headers=headers).status for request in (
        ("PUT", "/v1/locales/land", {}), ("PUT", "/v1/locales/other", {}),
        ("DELETE", "/v1/locales/land/layers/none"), ("DELETE", "/v1/locales/none"))] + [
        daemon.put(PUT_LAYER, FIELD.body(), media=F32, headers=headers).status]


def reads(daemon, headers):
    answers = [daemon.ask("GET", t, headers=headers) for t in
               ("/v1/locales", "/v1/locales/land", "/v1/locales/land/height?x=0&y=0",
                "/v1/limits", "/v1/stats", "/v1/locales/land/layers/ground/stats",
                "/v1/locales/land/tiles/0/0/0?format=f32")]
    answers.append(daemon.post("/v1/locales/land/ray", GOOD_RAY, headers=headers))
    return [answer.status for answer in answers]


open_daemon = Daemon()
fill(open_daemon)

FOREIGN = [("Origin", "http://evil.example"), ("Origin", "https://127.0.0.1.evil.example"),
           ("Origin", "null"), ("Origin", "http://localhost.evil.example:{port}"),
           ("X-Forwarded-For", "10.0.0.1"), ("X-Forwarded-Host", "x"),
           ("X-Forwarded-Proto", "https"), ("x-forwarded-for", "127.0.0.1")]


def foreign(name, value):
    before = open_daemon.get("/v1/locales?layers=true").body
    headers = {name: value.format(port=open_daemon.port)}
    equal(writes(open_daemon, headers), [403] * 5, f"{headers}")
    answer = open_daemon.put("/v1/locales/land", {}, headers=headers)
    problem(answer, 403, re.compile("origin" if name == "Origin" else "forwarded", re.I))
    equal(open_daemon.get("/v1/locales?layers=true").body, before, "the locales")
    got = reads(open_daemon, headers)
    equal(got.pop(4), 200 if name == "Origin" else 403, "counters, which no proxy shows without tokens")
    equal(set(got), {200}, "reading")


for name_, value_ in FOREIGN:
    case(f"without tokens a write with {name_}: {value_} is 403, a read is answered", foreign, name_,
         value_)


def rebound(host):
    """A foreign name that resolves to this machine: Origin and Host agree, and are foreign."""
    host = host.format(port=open_daemon.port)
    equal(writes(open_daemon, {"Origin": f"http://{host}", "Host": host}), [403] * 5, host)


for host_ in ("evil.example:{port}", "127.evil.example:{port}", "127.0.0.1.evil.example:{port}",
              "localhost.evil.example:{port}", "127.x:{port}",
              "10.0.0.1:{port}", "[::2]:{port}", "127.0.0.256:{port}"):
    case(f"a page of {host_} may not write though its Host says the same", rebound, host_)


@test("a page whose Host is none may do nothing")
def _():
    host = f"127.0.0.1:{open_daemon.port}.evil.example"
    equal(writes(open_daemon, {"Origin": f"http://{host}", "Host": host}), [400] * 5, host)


@test("a foreign write is refused before its body is read")
def _():
    head = ("PUT /v1/locales/land/layers/ground?spacing=1,1 HTTP/1.1\r\nHost: x\r\n"
            "Content-Type: image/png\r\nOrigin: http://evil.example\r\n"
            "Content-Length: 60000000\r\n\r\n").encode()
    received = open_daemon.raw(head, until=lambda data: b"}" in data)
    check(received.startswith(b"HTTP/1.1 403"), f"{received[:100]!r}")


@test("the daemon's own pages may write: an Origin of this host")
def _():
    for host in ("127.0.0.1", "127.1.2.3", "localhost", "[::1]"):
        origin = f"http://{host}:{open_daemon.port}"
        answer = open_daemon.put("/v1/locales/land", {}, headers={
            "Origin": origin, "Host": f"{host}:{open_daemon.port}"})
        equal(answer.status, 200, origin)


@test("without tokens an Authorization header changes nothing")
def _():
    equal(open_daemon.get("/v1/locales", headers={"Authorization": "Bearer x"}).status, 200, "read")


# ---- tokens ---------------------------------------------------------------------------------------


def token_file(folder, text, mode=0o600):
    path = os.path.join(folder, "tokens")
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


folder = tempfile.TemporaryDirectory(prefix="kota-test-")
edit_only = Daemon("--token-file", token_file(folder.name, "edit chisel-0123456789abcdef\n"))
with_reads = Daemon("--token-file", token_file(folder.name, "\n".join((
    "# who may do what", "read glass-0123456789abcdef", "", "edit chisel-0123456789abcdef",
    "edit second-0123456789abcdef")) + "\n"))
EDIT = {"Authorization": "Bearer chisel-0123456789abcdef"}
READ = {"Authorization": "Bearer glass-0123456789abcdef"}
SECOND = {"Authorization": "Bearer second-0123456789abcdef"}
for daemon_ in (edit_only, with_reads):
    fill(daemon_, headers=EDIT)


@test("with edit tokens alone a write needs one, reading needs none")
def _():
    equal(writes(edit_only, {}), [401] * 5, "no token")
    equal(writes(edit_only, EDIT), [200, 201, 404, 404, 200], "edit")
    equal(set(reads(edit_only, {})), {200}, "reads without a token")
    equal(set(reads(edit_only, EDIT)), {200}, "reads with one")


@test("a # inside a token belongs to it, one that begins a word begins a comment")
def _():
    with Daemon("--token-file", token_file(folder.name,
                                           "edit a#b # mine\n  # read all\n")) as daemon:
        equal(writes(daemon, {"Authorization": "Bearer a#b"}), [201, 201, 404, 404, 201], "whole")
        equal(set(writes(daemon, {"Authorization": "Bearer a"})), {401}, "what stands before #")
        equal(set(reads(daemon, {})), {200}, "no read line")


@test("a token may be as short as one character")
def _():
    with Daemon("--token-file", token_file(folder.name, "edit e\nread r\n")) as daemon:
        equal(writes(daemon, {"Authorization": "Bearer e"}), [201, 201, 404, 404, 201], "edit")
        equal(set(writes(daemon, {"Authorization": "Bearer r"})), {403}, "read")
        equal(set(writes(daemon, {"Authorization": "Bearer er"})), {401}, "unknown")


BAD = [("Bearer wrong", "an unknown token"), ("Bearer", "no token behind Bearer"),
       ("Bearer ", "an empty token"), ("chisel-0123456789abcdef", "no scheme"),
       ("Basic chisel-0123456789abcdef", "another scheme"),
       ("Bearer chisel-0123456789abcde", "a prefix of a token"),
       ("Bearer chisel-0123456789abcdef0", "a longer one"),
       ("Bearer CHISEL-0123456789ABCDEF", "other capitals"),
       ("Bearer edit", "the scope's name"), ("Bearer edit chisel-0123456789abcdef", "a whole line"),
       ("Bearer #", "a comment")]


def bad_token(value):
    for daemon in (edit_only, with_reads):
        answer = daemon.put("/v1/locales/land", {}, headers={"Authorization": value})
        problem(answer, 401)
        check("www-authenticate" in answer.headers, f"no WWW-Authenticate: {answer.headers}")
        check("chisel" not in answer.json["detail"], "the answer tells a token")
    equal(with_reads.get("/v1/locales", headers={"Authorization": value}).status, 401, "read")


for value_, what_ in BAD:
    case(f"{what_} is 401 with WWW-Authenticate", bad_token, value_)


@test("Bearer in any capitals is Bearer")
def _():
    answer = edit_only.put("/v1/locales/land", {},
                           headers={"Authorization": "bearer chisel-0123456789abcdef"})
    equal(answer.status, 200, "bearer")


@test("with a read token in the file reading needs a token, the wrong scope is 403")
def _():
    equal(set(reads(with_reads, {})), {401}, "no token")
    equal(set(reads(with_reads, READ)), {200}, "read")
    equal(set(reads(with_reads, EDIT)), {200}, "edit may read")
    equal(writes(with_reads, {}), [401] * 5, "writes without")
    equal(writes(with_reads, READ), [403] * 5, "writes with read")
    equal(writes(with_reads, SECOND), [200, 201, 404, 404, 200], "writes with edit")


@test("probes never need a token")
def _():
    for target in ("/livez", "/readyz", "/healthz"):
        equal(with_reads.get(target).status, 200, target)
        equal(with_reads.get(target, headers={"Authorization": "Bearer wrong"}).status, 200, target)


@test("preflight never needs a token")
def _():
    equal(with_reads.ask("OPTIONS", "/v1/locales/land").status, 204, "OPTIONS")


@test("with a token a page or a proxy may write: the token says who it is")
def _():
    for name, value in (("Origin", "http://tool.example"), ("X-Forwarded-For", "10.0.0.1")):
        answer = edit_only.put("/v1/locales/land", {}, headers={**EDIT, name: value})
        equal(answer.status, 200, name)
    with open("docs/security.md", encoding="utf-8") as file:  # nothing else may be promised
        check("**With a token a page of any origin can write**" in file.read(), "security.md")


@test("no token is ever written into the log")
def _():
    for daemon in (edit_only, with_reads):
        log = daemon.log_text()
        for token in ("chisel-", "glass-", "second-"):
            check(token not in log, f"{token} in the log: {log[-500:]}")


# ---- read-only ----------------------------------------------------------------------------------------


@test("--read-only refuses every write and answers every read")
def _():
    world = os.path.join(folder.name, "field.asc")
    with open(world, "w") as file:
        file.write("ncols 2\nnrows 2\nxllcenter 0\nyllcenter 0\ncellsize 1\n1 2\n3 4\n")
    with Daemon("--read-only", world) as daemon:
        answer = daemon.put("/v1/locales/field", {})
        check(answer.status in (403, 405, 503), str(answer))
        problem(answer, answer.status, "read-only")
        for method, target, body in (("PUT", "/v1/locales/x", {}),
                                     ("DELETE", "/v1/locales/field", None),
                                     ("DELETE", "/v1/locales/field/layers/ground", None)):
            equal(daemon.ask(method, target, body).status, answer.status, f"{method} {target}")
        equal(daemon.ok("GET", "/v1/locales/field/height?x=0&y=0")["status"], "ok", "read")


def finish():
    for daemon in (open_daemon, edit_only, with_reads):
        daemon.stop()
    folder.cleanup()


run(finish)
