"""Claims of tokens: random requests with random claims against the rules, written again here.

The rules are those of docs/security.md: a token that is unknown, expired or revoked is 401; what its
claims forbid is 403, also where the target does not exist; lists, questions to the world and feeds
show what it may read, and nothing else.
"""
import base64
import fnmatch
import http.client
import json
import os
import random
import re
import signal
import struct
import subprocess
import tempfile
import threading
import time

from daemon import F32, KOTAD, Daemon, clean_environment, connection_to, problem
from kota_cli import kota
from models import BOX
from tap import ALL, HANG_S, Skip, check, equal, run, test

SEED = int(os.environ.get("KOTA_TEST_SEED", "20171107"))
REQUESTS = int(os.environ.get("KOTA_TEST_REQUESTS", "20000" if ALL else "3000"))
RIGHTS = ("reading", "edits", "layers", "locales", "patches", "bodies", "impacts", "models",
          "moves", "pins", "operating")
LOCALES = ("arena-1", "arena-2", "lobby", "village")
folder = tempfile.TemporaryDirectory(prefix="kota-test-")
tokens_path = os.path.join(folder.name, "tokens")
randomly = random.Random(SEED)


def write_tokens(*lines):
    with open(tokens_path, "w", encoding="ascii") as file:
        file.write("\n".join(("edit root may=" + ",".join(RIGHTS),) + lines) + "\n")
    os.chmod(tokens_path, 0o600)


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def fill(daemon):
    for locale in LOCALES:
        equal(daemon.put(f"/v1/locales/{locale}", {}, headers=bearer("root")).status, 201, locale)
        answer = daemon.put(f"/v1/locales/{locale}/layers/ground?cols=21&rows=21&spacing=1,1",
                            struct.pack("<441f", *[0] * 441), media=F32, headers=bearer("root"))
        equal(answer.status, 201, "layer")


# ---- the rules, once more -----------------------------------------------------------------------

class Token:
    def __init__(self, number):
        self.name = f"tok-{number}-{randomly.getrandbits(60):x}"
        self.may = randomly.sample(RIGHTS, randomly.randint(1, 6)) if randomly.random() < 0.6 else None
        self.locales = randomly.choice((None, ["arena-*"], ["lobby", "village"], ["*-2"], ["nowhere"]))
        self.bounds = None
        if randomly.random() < 0.5:
            x, y = randomly.uniform(-2, 12), randomly.uniform(-2, 12)
            self.bounds = [x, y, x + randomly.uniform(2, 15), y + randomly.uniform(2, 15)]
        self.is_old = randomly.random() < 0.05

    def line(self):
        words = ["edit", self.name]
        if self.may:
            words.append("may=" + ",".join(self.may))
        if self.locales:
            words.append("locales=" + ",".join(self.locales))
        if self.bounds:
            words.append("bounds=" + ",".join(map(repr, self.bounds)))
        if self.is_old:
            words.append("until=2020-05-05")
        return " ".join(words)

    def has(self, locale):
        return not self.locales or any(fnmatch.fnmatchcase(locale, one) for one in self.locales)

    def expected(self, right, locale, box):
        if self.is_old:
            return 401
        if right not in (self.may or [one for one in RIGHTS if one != "operating"]):
            return 403
        if locale and not self.has(locale):
            return 403
        if box and self.bounds and locale in LOCALES:
            inside = (box[0] >= self.bounds[0] and box[1] >= self.bounds[1] and
                      box[2] <= self.bounds[2] and box[3] <= self.bounds[3])
            return None if inside else 403
        return None


def question():
    """Method, path, body, media type, right, locale, box of what may change."""
    locale = randomly.choice(LOCALES + ("nowhere", "arena-9"))
    at = f"/v1/locales/{locale}"
    c, r, n, m = (randomly.randint(0, 15), randomly.randint(0, 15), randomly.randint(1, 5),
                  randomly.randint(1, 5))
    x, y, radius = randomly.uniform(3, 17), randomly.uniform(3, 17), randomly.uniform(1, 3)
    return randomly.choice((
        ("GET", at + "/height?x=3&y=3", None, None, "reading", locale, None),
        ("GET", at, None, None, "reading", locale, None),
        ("POST", at + "/contact", {"points": [[1, 1, 1]]}, None, "reading", locale, None),
        ("POST", at + "/edits", {"rect": [c, r, n, m], "op": "add", "heights": [0] * (n * m)}, None,
         "edits", locale, [c, r, c + n - 1, r + m - 1]),
        ("POST", at + "/edits", {"brush": {"shape": "raise", "center": [x, y], "radius": radius,
                                           "amount": 0}}, None,
         "edits", locale, [x - radius, y - radius, x + radius, y + radius]),
        ("PUT", at + "/layers/none/transform", {"translation": [0, 0, 0]}, None, "moves", locale, None),
        ("DELETE", at + "/layers/none", None, None, "layers", locale, None),
        ("DELETE", at + "/patches/77", None, None, "patches", locale, None),
        ("POST", at + "/patches/77/bodies", {"model": "m", "position": [0, 0, 0]}, None, "bodies",
         locale, None),
        ("DELETE", "/v1/models/none", None, None, "models", None, None),
        ("GET", "/v1/models", None, None, "reading", None, None),
        ("GET", "/v1/locales", None, None, "reading", None, None),
    ))


@test("random requests with random claims: none beyond them, none refused wrongly")
def _():
    tokens = [Token(number) for number in range(60)]
    write_tokens(*(token.line() for token in tokens))
    with Daemon("--token-file", tokens_path, "--gpu", "off") as daemon:
        fill(daemon)
        seen = {}
        for _ in range(REQUESTS):
            token = randomly.choice(tokens)
            method, path, body, media, right, locale, box = question()
            answer = daemon.ask(method, path, body, media=media, headers=bearer(token.name))
            wanted = token.expected(right, locale, box)
            if wanted:
                equal(answer.status, wanted, f"{token.line()}: {method} {path} {body}: {answer}")
            else:
                check(answer.status not in (401, 403), f"{token.line()}: {method} {path}: {answer}")
            seen[answer.status] = seen.get(answer.status, 0) + 1
            if path == "/v1/locales" and answer.status == 200:
                equal([one["id"] for one in answer.json["locales"]],
                      [one for one in LOCALES if token.has(one)], token.line())
        check({200, 401, 403, 404} <= set(seen), f"statuses: {seen}")


@test("the world, lists and feeds show what a token may read")
def _():
    write_tokens("edit seer locales=arena-*")
    with Daemon("--token-file", tokens_path) as daemon:
        fill(daemon)
        ask = {"points": [[3, 3, 0]]}
        found = daemon.ask("POST", "/v1/locate", ask, headers=bearer("seer")).json["results"][0]
        names = json.dumps(found)
        check("arena-1" in names and "lobby" not in names and "village" not in names, names)
        problem(daemon.get("/v1/locales/lobbx", headers=bearer("seer")), 403)
        answer = daemon.get("/v1/locales/arena-x", headers=bearer("seer"))
        check(answer.status == 404 and b"lobby" not in answer.body, answer)
        connection = connection_to(daemon.port)
        connection.request("GET", "/v1/events", headers=bearer("seer"))
        stream = connection.getresponse()
        edit = {"brush": {"shape": "raise", "center": [5, 5], "radius": 2, "amount": 1}}
        for locale in ("lobby", "arena-2"):
            daemon.ok("POST", f"/v1/locales/{locale}/edits", edit, headers=bearer("root"))
        text = b""
        while b"arena-2" not in text:
            text += stream.read1(4096)
        check(b"lobby" not in text, text)
        connection.close()


@test("a stream ends when its token does: at its time, and when a reload takes it away")
def _():
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3))
    write_tokens("edit short until=" + soon, "edit gone")
    with Daemon("--token-file", tokens_path) as daemon:
        fill(daemon)
        ended = {}

        def follow(token):
            connection = connection_to(daemon.port)
            connection.request("GET", "/v1/events", headers=bearer(token))
            stream = connection.getresponse()
            equal(stream.status, 200, token)
            while stream.read1(4096):
                pass
            ended[token] = time.time()
            connection.close()
        threads = {token: threading.Thread(target=follow, args=(token,)) for token in ("short", "gone")}
        for thread in threads.values():
            thread.start()
        threads["short"].join(HANG_S)
        check("short" in ended and "gone" not in ended, f"ended: {ended}")
        problem(daemon.get("/v1/locales", headers=bearer("short")), 401, "expired")
        write_tokens("edit other")
        daemon.process.send_signal(signal.SIGHUP)
        threads["gone"].join(HANG_S)
        check("gone" in ended, "the stream of a token that is gone goes on")


@test("rate and items: 429 with limit and Retry-After, one bucket a name")
def _():
    write_tokens("edit one name=pair rate=5/s", "edit two name=pair rate=5/s", "edit many items=100/s")
    with Daemon("--token-file", tokens_path) as daemon:
        fill(daemon)
        answers = [daemon.get("/v1/locales/lobby/height?x=1&y=1",
                              headers=bearer(("one", "two")[i % 2])) for i in range(12)]
        refused = [answer for answer in answers if answer.status != 200]
        check(3 <= len(refused) <= 7, f"{len(refused)} of 12 are refused")
        for answer in refused:
            equal(problem(answer, 429, "pair", limit=5)["code"], "too_many_requests", "code")
            equal(answer.headers["retry-after"], "1", "Retry-After")
        heights = "/v1/locales/lobby/height"
        points = {"points": [[1, 1]] * 80}
        equal(daemon.ask("POST", heights, points, headers=bearer("many")).status, 200, "80 items")
        problem(daemon.ask("POST", heights, points, headers=bearer("many")), 429, "items", limit=100)
        equal(daemon.get(heights + "?x=1&y=1", headers=bearer("one")).status, 429, "still")
        time.sleep(1.1)
        equal(daemon.get(heights + "?x=1&y=1", headers=bearer("one")).status, 200, "later")
        metrics = daemon.get("/metrics", headers=bearer("many")).body.decode()
        check(f'kota_token_refused_total{{name="pair"}} {len(refused) + 1}\n' in metrics, metrics[-3000:])
        check(re.search(r'kota_token_items_total{name="token-[0-9a-f]{8}"} 80\n', metrics), "items")


# ---- signed tokens ------------------------------------------------------------------------------

def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Signer:
    """Ed25519 by the openssl program."""

    def __init__(self):
        self.path = os.path.join(folder.name, "key.pem")
        self.openssl("genpkey", "-algorithm", "ed25519", "-out", self.path)
        self.public = self.openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")[-32:]

    @staticmethod
    def openssl(*words):
        try:
            return subprocess.run(["openssl", *words], capture_output=True, check=True).stdout
        except FileNotFoundError as error:
            raise Skip("no openssl") from error

    def token(self, **claims):
        text = "kota1." + b64(json.dumps(claims).encode())
        message = os.path.join(folder.name, "message")
        with open(message, "w", encoding="ascii") as file:
            file.write(text)
        return text + "." + b64(self.openssl("pkeyutl", "-sign", "-inkey", self.path, "-rawin", "-in",
                                             message))


@test("signed tokens: minted without the daemon, with the same claims; revoked by a reload")
def _():
    signer = Signer()
    lines = ["audience world-1", "key k1 " + b64(signer.public)]
    write_tokens(*lines)
    base = {"kid": "k1", "aud": "world-1", "name": "match-7", "exp": time.time() + 600}
    with Daemon("--token-file", tokens_path) as daemon:
        fill(daemon)
        edit = {"brush": {"shape": "raise", "center": [5, 5], "radius": 2, "amount": 1}}
        good = signer.token(**base, jti="j7", may=["edits"], locales=["arena-*"], bounds=[0, 0, 10, 10])
        for _ in range(2):
            equal(daemon.ask("POST", "/v1/locales/arena-1/edits", edit, headers=bearer(good)).status,
                  200, "edit")
        problem(daemon.ask("POST", "/v1/locales/lobby/edits", edit, headers=bearer(good)), 403)
        problem(daemon.get("/v1/locales", headers=bearer(good)), 403, "reading")
        edit["brush"]["center"] = [9, 9]
        problem(daemon.ask("POST", "/v1/locales/arena-1/edits", edit, headers=bearer(good)), 403, "x 0 to 10")
        for claims in ({"exp": time.time() - 60}, {"aud": "world-2"}, {"kid": "k2"}, {"admin": True},
                       {"nbf": time.time() + 60}, {"may": ["root"]}, {"alg": "none"}):
            problem(daemon.get("/v1/locales", headers=bearer(signer.token(**{**base, **claims}))), 401)
        problem(daemon.get("/v1/locales", headers=bearer(good[:-1])), 401)
        problem(daemon.get("/v1/locales", headers=bearer(good + "=")), 401)
        write_tokens(*lines, "revoked j7")
        daemon.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + HANG_S
        while (status := daemon.ask("POST", "/v1/locales/arena-1/edits", edit,
                                    headers=bearer(good)).status) != 401:
            check(time.monotonic() < until, f"a revoked token is {status}")
            time.sleep(0.05)


@test("kota token makes, lists and removes tokens, and the daemon takes them")
def _():
    path = os.path.join(folder.name, "kota-tokens")

    def token(*words, code=0):
        done = kota("token", *words)
        equal(done.status, code, done.err)
        return done
    made = token("add", path, "edit", "name=bob", "locales=lobby").out.decode().strip()
    equal(len(made), 64, "a token")
    token("add", path, "read", "name=eve")
    check("may=" in token("add", path, "edit", "may=all", code=2).err, "a wrong right")
    rows = token("ls", path).lines
    equal([(row["name"], row["kind"]) for row in rows], [("bob", "edit"), ("eve", "read")], "ls")
    with open(path, encoding="ascii") as file:
        check(made not in file.read(), "the token is in the file")
    with Daemon("--token-file", path) as daemon:
        equal(daemon.ask("PUT", "/v1/locales/lobby", {}, headers=bearer(made)).status, 201, "bob")
        problem(daemon.ask("PUT", "/v1/locales/other", {}, headers=bearer(made)), 403)
        token("rm", path, "bob")
        token("rm", path, "bob", code=2)
        daemon.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + HANG_S
        while daemon.get("/v1/locales", headers=bearer(made)).status != 401:
            check(time.monotonic() < until, "a removed token is taken")
            time.sleep(0.02)


# ---- the audit ----------------------------------------------------------------------------------

def line_words(line):
    return dict(word.split("=", 1) for word in line.split()[1:])


@test("each write has its line: time, name, address, route, locale, rect, revision, request")
def _():
    write_tokens("edit alice-token name=alice", "edit op-token name=op may=operating")
    path = os.path.join(folder.name, "audit.log")
    with Daemon("--token-file", tokens_path, "--audit", path) as daemon:
        fill(daemon)
        edit = {"rect": [3, 4, 2, 1], "heights": [1, 2]}
        headers = {**bearer("alice-token"), "X-Request-Id": "req-17", "Idempotency-Key": "k"}
        for _ in range(2):
            equal(daemon.ask("POST", "/v1/locales/lobby/edits", edit, headers=headers).status, 200, "edit")
        equal(daemon.ask("POST", "/v1/locales/lobby/edits", {"rect": [90, 0, 1, 1], "heights": [0]},
                         headers=headers | {"Idempotency-Key": "other"}).status, 422, "refused")
        equal(daemon.ask("PUT", "/v1/models/box", BOX, media="model/obj",
                         headers=bearer("alice-token")).status, 201, "model")
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
        mine = [line_words(line) for line in lines if "name=alice" in line]
        equal(mine, [{"name": "alice", "address": "127.0.0.1", "route": "edit", "locale": "lobby",
                      "rect": "3,4,2,1", "revision": "3", "request": "req-17"},
                     {**mine[1], "name": "alice", "route": "putModel", "locale": "box", "rect": "-"}],
              "alice's lines")
        equal(len(lines), len(mine) + 2 * len(LOCALES), "all lines")
        check(all(re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ", line) for line in lines), lines)
        problem(daemon.get("/v1/audit", headers=bearer("alice-token")), 403, "operating")
        page = daemon.get("/v1/audit?limit=3", headers=bearer("op-token")).json
        equal([one["sequence"] for one in page["entries"]], [1, 2, 3], "a page")
        rest = daemon.get(page["next"] + "00", headers=bearer("op-token")).json
        equal((len(rest["entries"]), rest["next"]), (len(lines) - 3, None), "the rest")
        equal([(one["name"], one["rect"], one["revision"]) for one in rest["entries"]][-2],
              ("alice", [3, 4, 2, 1], 3), "the edit")
        os.rename(path, path + ".1")
        daemon.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + HANG_S
        while not os.path.exists(path):
            check(time.monotonic() < until, "the file is not opened again")
            time.sleep(0.02)
        daemon.ask("DELETE", "/v1/models/box", headers=bearer("alice-token"))
        with open(path, encoding="ascii") as file:
            check("route=deleteModel locale=box" in file.read(), "after the rotation")


@test("what a patch writes at its rest has a line of its own, as the request that made the patch")
def _():
    write_tokens("edit alice-token name=alice")
    path = os.path.join(folder.name, "audit-patch.log")
    with Daemon("--token-file", tokens_path, "--audit", path, "--gpu", "cpu", "--patch-speed", "0",
                "--patch-pause-ms", "300", "--patch-linger-ms", "100", "--patch-granules", "2000") as daemon:
        fill(daemon)
        headers = bearer("alice-token")
        equal(daemon.ask("PUT", "/v1/models/box", BOX, media="model/obj", headers=headers).status, 201, "model")
        patch = daemon.ask("POST", "/v1/locales/lobby/patches", {
            "center": [10, 10], "size": [4, 4], "scale": "coarse", "depth": 1.8,
            "bodies": [{"model": "box", "position": [10, 10, 3], "density": 3000}]},
            headers={**headers, "X-Request-Id": "patch-1"})
        equal(patch.status, 201, patch)
        until = time.monotonic() + HANG_S
        while (now := daemon.get(patch.headers["location"], headers=headers).json)["state"] != "written":
            check(time.monotonic() < until and now["state"] not in ("failed", "discarded"), now)
            time.sleep(0.05)
        with open(path, encoding="ascii") as file:
            lines = [line_words(line) for line in file if "request=patch-1" in line]
        equal([(one["name"], one["route"], one["locale"]) for one in lines],
              [("alice", "postPatch", "lobby")] * 2, lines)
        equal([one["revision"] for one in lines], ["-", str(now["revision"])], "revisions")
        equal(lines[1]["rect"], ",".join(map(str, now["edit_rect"])), "rect")


@test("--audit-sync: after kill -9 each acknowledged write has its line")
def _():
    write_tokens("edit alice-token name=alice")
    path, data = (os.path.join(folder.name, name) for name in ("audit-sync.log", "data"))
    for _ in range(5 if ALL else 2):
        daemon = Daemon("--token-file", tokens_path, "--audit", path, "--audit-sync", "--data", data)
        if daemon.get("/v1/locales/lobby").status == 404:
            fill(daemon)
        acknowledged, threads = [], []

        def dig(number):
            connection = connection_to(daemon.port)
            try:
                for step in range(1000):
                    request_id = f"{os.getpid()}-{daemon.process.pid}-{number}-{step}"
                    connection.request("POST", "/v1/locales/lobby/edits",
                                       json.dumps({"rect": [number, 0, 1, 1], "heights": [step]}),
                                       {**bearer("alice-token"), "Content-Type": "application/json",
                                        "X-Request-Id": request_id})
                    answer = connection.getresponse()
                    answer.read()
                    equal(answer.status, 200, "edit")
                    acknowledged.append(request_id)
            except OSError:
                pass
            except http.client.HTTPException:
                pass
        for number in range(4):
            threads.append(threading.Thread(target=dig, args=(number,)))
            threads[-1].start()
        while len(acknowledged) <= 10 and any(thread.is_alive() for thread in threads):
            time.sleep(0.01)
        time.sleep(randomly.uniform(0, 0.5))
        daemon.process.kill()
        for thread in threads:
            thread.join()
        daemon.kill()
        with open(path, encoding="ascii") as file:
            written = {line_words(line)["request"] for line in file}
        check(len(acknowledged) > 10, f"{len(acknowledged)} writes")
        equal(set(acknowledged) - written, set(), "acknowledged and without a line")


@test("--audit-sync: a write whose line is not on the disk is not acknowledged, and made once")
def _():
    write_tokens("edit alice-token name=alice")
    path, kept = (os.path.join(folder.name, name) for name in ("audit-full.log", "audit-kept.log"))
    os.symlink("/dev/full", path)
    with Daemon("--token-file", tokens_path, "--audit", path, "--audit-sync") as daemon:
        def put(name):
            return daemon.ask("PUT", f"/v1/locales/{name}", {}, headers={**bearer("alice-token"), "Idempotency-Key": name})
        problem(put("one"), 503, "this write is made, but its line in the audit is not: No space left")
        problem(put("two"), 503, "no write goes without its line: No space left")
        equal([daemon.get(f"/v1/locales/{name}", headers=bearer("alice-token")).status for name in ("one", "two")],
              [200, 404], "what is made")
        check("the audit cannot be written" in daemon.log_text(), "a line in the log")
        os.symlink(kept, path + ".new")
        os.replace(path + ".new", path)
        daemon.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + HANG_S
        while (answer := put("one")).status == 503:
            check(time.monotonic() < until, "the file is not opened again")
            time.sleep(0.02)
        equal((answer.status, answer.headers.get("idempotency-replayed")), (201, "true"), "sent again")
        equal(put("two").status, 201, "the next write")
        with open(kept, encoding="ascii") as file:
            equal([line_words(line)["locale"] for line in file], ["one", "two"], "lines")


@test("--audit: a pipe without a reader is an error, and not waited for")
def _():
    path = os.path.join(folder.name, "audit-pipe")
    os.mkfifo(path)
    done = subprocess.run([KOTAD, "--listen", "127.0.0.1:0", "--audit", path], stderr=subprocess.PIPE, text=True,
                          timeout=HANG_S, env=clean_environment(), check=False)
    check(done.returncode != 0 and f"--audit {path}: No such device" in done.stderr, done.stderr)


run(folder.cleanup, "the folder is removed")
