"""The life of a daemon: reload, drain, the service manager's messages, socket activation, upgrades."""
import ctypes
import json
import os
import re
import signal
import shutil
import socket
import sqlite3
import struct
import subprocess
import tempfile
import threading
import time
import zlib

from daemon import (BIN_DIR, F32, KOTAD, ROOT, SLOW, Daemon, ask_once, clean_environment, parse_answers,
                    problem, receive)
from folders import folder, fresh
from images import asc
from metrics import bodies_bytes
from sand import box
from tap import HANG_S, Skip, case, check, equal, fail, run, test, wait_for

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def write(path, text):
    """Whole or not at all, as an operator's tools do it."""
    with open(path + ".new", "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    os.rename(path + ".new", path)
    return path


def said(daemon, text, times=1):
    wait_for(f"{text!r} in the log, {times} times",
             lambda: len(re.findall(text, daemon.log_text())) >= times)


def reload(daemon, times=1):
    """SIGHUP, and what the log says at the end of it."""
    before = len(re.findall("SIGHUP: (tokens read|read|everything)", daemon.log_text()))
    for i in range(times):
        daemon.process.send_signal(signal.SIGHUP)
        said(daemon, "SIGHUP: (tokens read|read|everything)", before + i + 1)


def bearer(token):
    return {"Authorization": "Bearer " + token}


def make_locale(base, name, height, more=""):
    os.makedirs(os.path.join(base, name), exist_ok=True)
    write(os.path.join(base, name, "g.asc"), asc([[height, height], [height, height]], 10))
    write(os.path.join(base, name, "locale.json"),
          '{"title": "%s", %s "layers": [{"id": "ground", "file": "g.asc"}]}' % (name, more))


def field(daemon, name, side=2, at="&origin=5,5"):
    """A locale by PUT, `side` samples a side."""
    daemon.ok("PUT", f"/v1/locales/{name}", {}, status=201)
    heights = [0.02 * (i % side) for i in range(side * side)]
    answer = daemon.put(f"/v1/locales/{name}/layers/ground?cols={side}&rows={side}&spacing=0.5,0.5{at}",
                        struct.pack(f"<{side * side}f", *heights), media=F32)
    equal(answer.status, 201, f"layer: {answer}")


def height(daemon, name):
    return daemon.ok("GET", f"/v1/locales/{name}/height?x=6&y=6")["height"]


# ---- reload -----------------------------------------------------------------------------------------


@test("SIGHUP: plain limits, log level and slow-request threshold change; others are named")
def _():
    path = write(os.path.join(fresh(), "kotad.conf"), "max-items = 3\nlog-level = info\nloops = 1\n")
    points = {"points": [[0, 0]] * 4}
    with Daemon("--config", path, "--slow-ms", "0") as daemon:
        field(daemon, "land")
        problem(daemon.post("/v1/locales/land/height", points), 413, "3")
        write(path, "max-items = 4\nmax-body = 4096\nmax-locales = 1\nloops = 2\nlog-level = warn\n")
        daemon.process.send_signal(signal.SIGHUP)
        wait_for("the new limits", lambda: daemon.ok("GET", "/v1/limits")["items_max"] == 4)
        equal(daemon.post("/v1/locales/land/height", points).status, 200, "four points")
        equal(daemon.ok("GET", "/v1/limits")["body_bytes_max"], 4096, "max-body")
        problem(daemon.put("/v1/models/box", "x" * 5000, media="model/obj"), 413, "4096")
        wait_for("max-locales", lambda: daemon.put("/v1/locales/two", {}).status == 413)
        said(daemon, "loops has changed, which needs a restart")
        log = daemon.log_text()
        daemon.get("/v1/nothing")  # logged at info
        write(path, "max-items = 4\nlog-level = info\nslow-ms = 1\n")
        daemon.process.send_signal(signal.SIGHUP)
        said(daemon, "log-level has changed")
        check("/v1/nothing" not in daemon.log_text()[len(log):], "log-level warn says too much")
        daemon.get("/v1/nothing2")
        said(daemon, "/v1/nothing2")
        check("slow-ms" not in daemon.log_text(), "a flag is stronger than the file, and stays")


@test("SIGHUP: the slow-request threshold is the new one from the next request on")
def _():
    path = write(os.path.join(fresh(), "kotad.conf"), "slow-ms = 0\n")
    with Daemon("--config", path) as daemon:
        field(daemon, "land")
        wait = {"Kota-Min-Revision": "9"}
        heavy = {"points": [[i, i] for i in range(9999)]}
        daemon.post("/v1/locales/land/height", heavy)
        check("slow" not in daemon.log_text(), daemon.log_text())
        write(path, "slow-ms = 1\nmin-revision-wait-ms = 1\n")
        reload(daemon)
        equal(daemon.get("/v1/locales/land/height?x=0&y=0", headers=wait).status, 503, "a short wait")
        for _ in range(50):
            daemon.post("/v1/locales/land/height", heavy)
            if " slow" in daemon.log_text():
                return
        fail("no batch of 9999 points took 1 ms, or none was logged")


BAD = [("max-items = many\n", "many"), ("colour = red\n", "colour"), ("max-items\n", "name = value"),
       ("max-items = 0\n", "1 to"), ("patches-at-end = sell\n", "sell")]


def bad_reload(text, word):
    base = fresh()
    path = write(os.path.join(base, "kotad.conf"), "max-items = 7\n")
    tokens = write(os.path.join(base, "tokens"), "edit first-0123456789\n")
    with Daemon("--config", path, "--token-file", tokens) as daemon:
        write(path, text)
        write(tokens, "edit second-0123456789\n")
        reload(daemon)
        check("everything stays as it was: " in daemon.log_text() and word in daemon.log_text(),
              daemon.log_text())
        equal(daemon.ok("GET", "/v1/limits")["items_max"], 7, "items_max")
        equal(daemon.put("/v1/locales/a", {}, headers=bearer("second-0123456789")).status, 401,
              "a token of a reload that was refused")
        daemon.ok("PUT", "/v1/locales/a", {}, status=201, headers=bearer("first-0123456789"))


for text_, word_ in BAD:
    case(f"SIGHUP with a config file of {text_.strip()!r} changes nothing and says why", bad_reload, text_,
         word_)


@test("SIGHUP with a bad or absent token file changes nothing, the configuration included")
def _():
    base = fresh()
    path = write(os.path.join(base, "kotad.conf"), "max-items = 7\n")
    tokens = write(os.path.join(base, "tokens"), "edit first-0123456789\n")
    with Daemon("--config", path, "--token-file", tokens) as daemon:
        write(path, "max-items = 8\n")
        write(tokens, "nonsense\n")
        reload(daemon)
        os.unlink(tokens)
        reload(daemon)
        equal(daemon.ok("GET", "/v1/limits")["items_max"], 7, "items_max")
        check(f"{tokens}:1" in daemon.log_text(), daemon.log_text())
        daemon.ok("PUT", "/v1/locales/a", {}, status=201, headers=bearer("first-0123456789"))


@test("SIGHUP: of --world what has changed is replaced, what has not keeps its edits")
def _():
    base = fresh()
    for name, at in (("same", 1), ("other", 2), ("gone", 3)):
        make_locale(base, name, at)
    single = write(os.path.join(fresh(), "single.asc"), asc([[5, 5], [5, 5]], 10))
    with Daemon("--world", base, single) as daemon:
        for name in ("same", "other"):
            answer = daemon.put(f"/v1/locales/{name}/layers/ground?cols=2&rows=2&spacing=10,10&"
                                "origin=5,5", struct.pack("<4f", 20, 20, 20, 20), media=F32)
            check(answer.status in (200, 201), f"{answer}")
        make_locale(base, "other", 7)
        make_locale(base, "new", 8)
        shutil.rmtree(os.path.join(base, "gone"))
        write(single, asc([[6, 6], [6, 6]], 10))
        before = daemon.ok("GET", "/v1/locales/other")["revision"]
        reload(daemon)
        check("2 replaced, 1 added, 1 removed, 1 as they were" in daemon.log_text(),
              daemon.log_text())
        equal([height(daemon, name) for name in ("same", "other", "new", "single")], [20, 7, 8, 6],
              "heights")
        check(daemon.ok("GET", "/v1/locales/other")["revision"] > before, "revision")
        equal(daemon.get("/v1/locales/gone").status, 404, "the locale whose folder is gone")
        reload(daemon)
        check("0 replaced, 0 added, 0 removed, 4 as they were" in daemon.log_text(),
              daemon.log_text())
        make_locale(base, "other", 9)
        make_locale(base, "bad", 1, more='"colour": 1,')
        reload(daemon)
        check("bad/locale.json" in daemon.log_text() and "colour" in daemon.log_text(),
              daemon.log_text())
        equal(height(daemon, "other"), 7, "a reload that is refused changes nothing")
        equal(daemon.get("/v1/locales/bad").status, 404, "the bad one")


@test("SIGHUP with --data leaves the locales as they are stored")
def _():
    base, data = fresh(), fresh()
    make_locale(base, "land", 1)
    with Daemon("--world", base, "--data", os.path.join(data, "d")) as daemon:
        make_locale(base, "land", 2)
        reload(daemon)
        equal(height(daemon, "land"), 1, "height")


class Client(threading.Thread):
    """Asks without a pause until it is told to stop; everything that is not 200 is kept."""

    def __init__(self, daemon, target, headers):
        super().__init__()
        self.port, self.target, self.headers = daemon.port, target, headers
        self.answers, self.failures, self.stops = 0, [], False

    def run(self):
        head = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        request = f"GET {self.target} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode()
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=HANG_S) as s:
                while not self.stops:
                    s.sendall(request)
                    got = receive(s, lambda got: b"\r\n\r\n" in got and got.endswith(b"}"))
                    self.answers += 1
                    if not got.startswith(b"HTTP/1.1 200"):
                        self.failures.append(got[:300])
        except OSError as error:
            self.failures.append(str(error))


@test("20 reloads, good and bad, tokens rotated, while clients ask: no request fails")
def _():
    base = fresh()
    path = write(os.path.join(base, "kotad.conf"), "max-items = 10\n")
    tokens = write(os.path.join(base, "tokens"), "read kept-0123456789\nedit edit-0-0123456789\n")
    lands = fresh()
    make_locale(lands, "land", 1)
    with Daemon("--config", path, "--token-file", tokens, "--world", lands, "--loops",
                "2") as daemon:
        clients = [Client(daemon, "/v1/locales/land/height?x=6&y=6", bearer("kept-0123456789"))
                   for _ in range(4)]
        for client in clients:
            client.start()
        for i in range(1, 21):
            write(path, f"max-items = {10 + i}\n" if i % 4 else "max-items = none\n")
            if i % 4:
                write(tokens, f"read kept-0123456789\nedit edit-{i}-0123456789\n")
                make_locale(lands, "land", i)
            reload(daemon)
            if i % 4:
                old = daemon.put("/v1/locales/x", {}, headers=bearer(f"edit-{i - 1}-0123456789"))
                equal(old.status, 401, f"the old token: {old}")
                new = daemon.put("/v1/locales/x", {}, headers=bearer(f"edit-{i}-0123456789"))
                check(new.status in (200, 201), f"the new token: {new}")
        for client in clients:
            client.stops = True
        for client in clients:
            client.join()
            equal(client.failures, [], "failures")
            check(client.answers >= 20, f"{client.answers} answers only")
        equal(daemon.get("/v1/locales/land/height?x=6&y=6",
                         headers=bearer("kept-0123456789")).json["height"], 19, "the last world")


# ---- request ids and traces -------------------------------------------------------------------------


@test("X-Request-Id of the client is answered and logged if it is safe, else one is made")
def _():
    with Daemon("--log-format", "json") as daemon:
        for given in ("a", "A.b_c-9", "x" * 64):
            answer = daemon.get("/v1/nothing", headers={"X-Request-Id": given})
            equal(answer.headers["x-request-id"], given, "X-Request-Id")
            said(daemon, re.escape(f'"request_id":"{given}"'))
        for given in ("", "x" * 65, "a b", 'a"b', "a,b", "ä".encode("latin-1").decode("latin-1")):
            answer = daemon.get("/v1/nothing", headers={"X-Request-Id": given})
            check(re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"]),
                  f"{given!r}: {answer.headers['x-request-id']!r}")
        got = daemon.raw(b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: one\r\nX-Request-Id: two\r\n"
                         b"Connection: close\r\n\r\n")
        made = parse_answers(got)[0].headers["x-request-id"]
        check(re.fullmatch("[0-9a-f]{16}", made), f"two ids: {made!r}")


@test("traceparent goes through to the answer and the log, and is dropped when it is malformed")
def _():
    for form in ("json", "text"):
        with Daemon("--log-format", form) as daemon:
            answer = daemon.get("/v1/nothing", headers={"traceparent": TRACE})
            equal(answer.headers.get("traceparent"), TRACE, "traceparent")
            said(daemon, f'"traceparent":"{TRACE}"' if form == "json" else rf"\[\w+ {TRACE}\]")
            check("traceparent" not in daemon.get("/livez").headers, "a trace of another request")
            for bad in (TRACE.upper(), TRACE[:-1], TRACE + "0", "01" + TRACE[2:], "x",
                        TRACE.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
                        TRACE.replace("b7ad6b7169203331", "0" * 16)):
                answer = daemon.get("/v1/nothing", headers={"traceparent": bad})
                check("traceparent" not in answer.headers, f"{bad}: {answer.headers}")


@test("probes leave no line in the log, with --access-log neither")
def _():
    with Daemon("--log-format", "json", "--access-log") as daemon:
        for path in ("/livez", "/readyz", "/healthz", "/metrics", "/v1/stats"):
            equal(daemon.get(path).status, 200, path)
        daemon.get("/v1/locales")
        said(daemon, "/v1/locales")
        for path in ("/livez", "/readyz", "/healthz", "/metrics", "/v1/stats"):
            check(path not in daemon.log_text(), daemon.log_text())


# ---- the end ----------------------------------------------------------------------------------------


def patch_daemon(*flags):
    """A daemon in which a patch runs that takes its time: real time, and still for two seconds."""
    daemon = Daemon("--gpu", "cpu", "--patch-granules", "500", "--patch-pause-ms", "200",
                    "--patch-linger-ms", "3600000", *flags)
    try:
        field(daemon, "land", 24, "")
        daemon.ok("PUT", "/v1/models/box", box(0.7), status=201, media="model/obj")
        fall = {"model": "box", "position": [6, 6, 2], "density": 3000}
        answer = daemon.post("/v1/locales/land/patches",
                             {"center": [6, 6], "size": [4, 4], "scale": "coarse", "depth": 1.8,
                              "bodies": [fall]})
        equal(answer.status, 201, f"patch: {answer}")
        where = answer.headers["location"]
        wait_for("an active patch", lambda: daemon.ok("GET", where)["state"] in (
            "settling", "active", "resting", "paused"))
    except BaseException:
        daemon.kill()
        raise
    return daemon


@test("SIGTERM with --patches-at-end save: a patch that runs settles and is written")
def _():
    data = os.path.join(fresh(), "data")
    daemon = patch_daemon("--patch-speed", "0", "--patches-at-end", "save", "--drain-ms",
                          str(60000 * SLOW), "--data", data)
    revision = daemon.ok("GET", "/v1/locales/land")["revision"]
    try:
        daemon.process.send_signal(signal.SIGTERM)
        equal(daemon.process.wait(HANG_S), 0, "exit status")
        check("patch 1 of land is written" in daemon.log_text(), daemon.log_text()[-1500:])
    finally:
        daemon.kill()
    with Daemon("--data", data) as again:
        equal(again.ok("GET", "/v1/locales/land")["revision"], revision + 1, "revision")


@test("SIGTERM with --patches-at-end save: what does not settle in time is discarded, and said")
def _():
    daemon = patch_daemon("--patch-speed", "1", "--patches-at-end", "save", "--drain-ms", "300")
    try:
        daemon.process.send_signal(signal.SIGTERM)
        equal(daemon.process.wait(HANG_S), 0, "exit status")
        check(re.search("patch 1 of land is discarded: .*time to drain", daemon.log_text()),
              daemon.log_text()[-1500:])
    finally:
        daemon.kill()


@test("SIGTERM with --patches-at-end discard: it is discarded at once, and said")
def _():
    daemon = patch_daemon("--patch-speed", "1", "--patches-at-end", "discard", "--drain-ms", "60000")
    try:
        daemon.process.send_signal(signal.SIGTERM)
        equal(daemon.process.wait(HANG_S), 0, "exit status")
        check("patch 1 of land is discarded: the daemon stops" in daemon.log_text(),
              daemon.log_text()[-1500:])
    finally:
        daemon.kill()


UPLOAD_BYTES = 10_000  # more than what a request keeps of itself: request_bodies_bytes counts it


def begin_upload(daemon, s):
    """Sends the head and three bytes of a body; they have come when this returns."""
    s.sendall(b"PUT /v1/models/a HTTP/1.1\r\nHost: x\r\nContent-Type: model/obj\r\n"
              b"Content-Length: %d\r\n\r\nv 1" % UPLOAD_BYTES)
    wait_for("the body", lambda: bodies_bytes(daemon) > 0)


def second_signal(first, second, ends):
    daemon = Daemon("--drain-ms", "600000", "--body-ms", "600000")
    try:
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S) as s:
            begin_upload(daemon, s)
            daemon.process.send_signal(first)
            said(daemon, "draining")
            equal(daemon.get("/readyz").status, 503, "readyz")
            time.sleep(0.5)
            daemon.process.send_signal(second)
            if not ends:
                time.sleep(0.5)
                check(daemon.is_alive(), "one Ctrl-C that comes twice has cut the drain off")
                daemon.process.send_signal(second)
            equal(daemon.process.wait(HANG_S), 1, "exit status")
            said(daemon, "ends at once")
            check(not os.path.exists(daemon.port_file), "the port file is left")
    finally:
        daemon.kill()


case("a second SIGTERM ends at once", second_signal, signal.SIGTERM, signal.SIGTERM, True)
case("SIGINT and then SIGTERM count as one, as a script passes Ctrl-C on", second_signal,
     signal.SIGINT, signal.SIGTERM, False)


@test("SIGTERM that comes twice in a moment is one, as timeout(1) sends it to child and group")
def _():
    daemon = Daemon("--drain-ms", "600000", "--body-ms", "600000")
    try:
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S) as s:
            begin_upload(daemon, s)
            began = time.monotonic()
            daemon.process.send_signal(signal.SIGTERM)
            time.sleep(0.02)
            daemon.process.send_signal(signal.SIGTERM)
            if time.monotonic() - began > 0.2:
                raise Skip("this machine was too busy to send two signals in a moment")
            said(daemon, "draining")
            time.sleep(0.5)
            check(daemon.is_alive(), "one signal that came twice has cut the drain off")
            s.sendall(b" " * (UPLOAD_BYTES - 3))
            check(b"HTTP/1.1 4" in s.recv(65536), "what was under way is not answered")
        equal(daemon.process.wait(HANG_S), 0, "exit status")
    finally:
        daemon.kill()


# ---- the service manager ----------------------------------------------------------------------------


class Manager:
    """The socket of a service manager."""

    def __init__(self):
        self.path = os.path.join(fresh(), "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.heard = []

    def listen(self, seconds=0.0):
        deadline = time.monotonic() + seconds
        while True:
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                self.heard.append(self.socket.recv(4096).decode())
            except TimeoutError:
                if time.monotonic() >= deadline:
                    return self.heard

    def hear(self, start):
        wait_for(f"{start} among {self.heard}",
                 lambda: any(m.startswith(start) for m in self.listen(0.02)))

    def environment(self, **more):
        return {"NOTIFY_SOCKET": self.path, **more}

    def close(self):
        self.socket.close()


def in_order(heard, *starts):
    at = -1
    for start in starts:
        found = [i for i, message in enumerate(heard) if i > at and message.startswith(start)]
        check(found, f"no {start} after message {at} of {heard}")
        at = found[0]


def exec_start():
    """The words of the unit's ExecStart but its paths, which are the machine's."""
    with open(os.path.join(ROOT, "deploy", "systemd", "kotad.service")) as file:
        line = re.search(r"^ExecStart=(.*)$", file.read(), re.M).group(1)
    base = fresh()
    shutil.copy(os.path.join(ROOT, "deploy", "kotad.conf"), os.path.join(base, "kotad.conf"))
    for path, ours in (("/usr/bin/kotad", KOTAD), ("/etc/kotad.conf", base + "/kotad.conf"),
                       ("/var/lib/kota", base + "/state")):
        check(path in line, f"{path} is not in {line}")
        line = line.replace(path, ours)
    return line.split()[1:]


@test("the unit's ExecStart tells readiness, reload, life and end in order")
def _():
    manager = Manager()
    daemon = Daemon(*exec_start(), env=manager.environment(WATCHDOG_USEC=str(2000000 * SLOW)))
    try:
        manager.hear("READY=1")
        manager.hear("WATCHDOG=1")
        daemon.process.send_signal(signal.SIGHUP)
        manager.hear("RELOADING=1\nMONOTONIC_USEC=")
        stamp = int([m for m in manager.heard if m.startswith("RELOADING")][0].split("=")[-1])
        check(0 <= time.monotonic() * 1e6 - stamp < 60e6 * SLOW, f"MONOTONIC_USEC {stamp}")
        wait_for("a second READY=1", lambda: manager.listen(0.02).count("READY=1") == 2)
        daemon.process.send_signal(signal.SIGTERM)
        manager.hear("STOPPING=1")
        equal(daemon.process.wait(HANG_S), 0, "exit status")
        in_order(manager.heard, "STATUS=serving", "READY=1", "RELOADING=1", "READY=1", "STOPPING=1")
    finally:
        daemon.kill()
        manager.close()


@test("a manager that does not read holds nothing up")
def _():
    manager = Manager()
    daemon = Daemon(env=manager.environment(WATCHDOG_USEC="20000"))
    try:
        said(daemon, "it does not read")
        daemon.stop()
    finally:
        daemon.kill()
        manager.close()


def threads(daemon):
    """{name: id} of the daemon's threads."""
    return {name.strip(): task for task, name in daemon.threads("comm").items()}


@test("a daemon has the threads of ARCHITECTURE.md's table, no more and no fewer")
def _():
    if "san" in BIN_DIR:
        raise Skip("a sanitizer has threads of its own")
    with open("ARCHITECTURE.md", encoding="utf-8") as file:
        section = file.read().partition("\n## Threads\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\w[^|]*) \|", section, re.M)[1:]
    with tempfile.TemporaryDirectory() as folder:
        for given in ([], ["--data", folder], ["--ops-listen", "127.0.0.1:0"]):
            wanted = 0
            for row in rows:
                if "from the first" in row or " with `" in row and not (given and given[0] in row):
                    continue
                wanted += 2 if row.startswith("loop ") else 5 if row.startswith("workers ") else 1
            with Daemon("--loops", "2", "--workers", "5", "--gpu", "cpu", *given) as daemon:
                equal(len(os.listdir(f"/proc/{daemon.process.pid}/task")), wanted, f"threads {given}")
            with open("docs/operating.md", encoding="utf-8") as file:
                more = {4: "and four more;", 5: "five with `--data` or `--ops-listen`"}[wanted - 7]
                check(more in file.read(), f"operating.md: not {more}")


def hanging(name, says):
    """Stops one thread, as a debugger does: no more signs of life until it goes on."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    seize, interrupt, detach, all_threads = 0x4206, 0x4207, 17, 0x40000000
    manager = Manager()
    daemon = Daemon("--loops", "2", env=manager.environment(WATCHDOG_USEC=str(2000000 * SLOW)))
    while name not in threads(daemon):  # a thread takes its name when it begins
        time.sleep(0.01)
    task = threads(daemon)[name]
    try:
        manager.hear("WATCHDOG=1")
        if libc.ptrace(seize, task, None, None) != 0:
            raise Skip(f"ptrace: {os.strerror(ctypes.get_errno())}")
        equal(libc.ptrace(interrupt, task, None, None), 0, "PTRACE_INTERRUPT")
        equal(os.waitpid(task, all_threads)[0], task, "the thread stands")
        said(daemon, f"{says} has not turned for .* the watchdog is not fed")

        def is_silent():  # a busy machine may have said so before, too
            manager.heard.clear()
            return "WATCHDOG=1" not in manager.listen(3.0 * SLOW)
        wait_for("no signs of life", is_silent)
        ends = len(re.findall("all threads run again", daemon.log_text()))
        equal(libc.ptrace(detach, task, None, None), 0, "PTRACE_DETACH")
        said(daemon, "all threads run again", ends + 1)
        manager.heard.clear()
        manager.hear("WATCHDOG=1")
        daemon.stop()
    finally:
        libc.ptrace(detach, task, None, None)  # a thread held after a failure would never be reaped
        daemon.kill()
        manager.close()


case("a loop that hangs ends the signs of life, until it turns again", hanging, "loop-1", "loop 1")
case("so does a writer that hangs", hanging, "writer", "the writer")


def start_with_sockets(sockets, names, *flags):
    """kotad with these as descriptors 3 and up, as a service manager starts it."""
    base = fresh()
    port_file, log = os.path.join(base, "port"), open(os.path.join(base, "log"), "wb")

    def hand_over():
        copies = [os.dup(s.fileno()) for s in sockets]
        spare = [os.dup2(fd, 100 + i) for i, fd in enumerate(copies)]
        for i, fd in enumerate(spare):
            os.dup2(fd, 3 + i)
        os.environ["LISTEN_PID"] = str(os.getpid())

    script = 'export LISTEN_PID=$$; exec "$0" "$@"'
    process = subprocess.Popen(["/bin/sh", "-c", script, KOTAD, "--port-file", port_file, *flags],
                               preexec_fn=hand_over, stdout=log, stderr=log, close_fds=False,
                               env=clean_environment({"LISTEN_FDS": str(len(sockets)),
                                                      "LISTEN_FDNAMES": names}))
    return process, port_file, log.name


def listener():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(64)
    return s


def ask(port, target="/v1/limits"):
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_S) as s:
        s.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return parse_answers(receive(s))[0]


@test("SIGTERM: what has arrived is answered, on idle connections, on new ones, on those in the queue")
def _():
    """The daemon is stopped meanwhile, so that it finds all of it at once."""
    request = b"GET /v1/limits HTTP/1.1\r\nHost: x\r\n\r\n"

    def connect():
        return socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S)
    for _ in range(5):
        with Daemon("--loops", "2") as daemon:
            kept, new = [connect() for _ in range(20)], [connect() for _ in range(20)]
            for s in kept:
                s.sendall(request)
                receive(s, lambda got: got.endswith(b"}"))
            wait_for("all are connections of the daemon", lambda: daemon.ok("GET", "/v1/stats")["http"][
                "connections_open"] == 41)
            daemon.process.send_signal(signal.SIGSTOP)
            queued = [connect() for _ in range(20)]
            for s in kept + new + queued:
                s.sendall(request)
            daemon.process.send_signal(signal.SIGTERM)
            daemon.process.send_signal(signal.SIGCONT)
            for kind, sockets in (("idle", kept), ("new", new), ("queued", queued)):
                answers = [parse_answers(receive(s)) for s in sockets]
                equal([len(got) and got[0].status for got in answers], [200] * 20, kind)
                for s in sockets:
                    s.close()
            equal(daemon.process.wait(HANG_S), 0, "exit status")


@test("SIGTERM with a socket that was given: later connections are the next daemon's")
def _():
    given = listener()
    port = given.getsockname()[1]
    process, port_file, _ = start_with_sockets([given], "main", "--loops", "1")
    name = f"socket:[{os.fstat(given.fileno()).st_ino}]"

    def link(path):
        try:
            return os.readlink(path)
        except FileNotFoundError:  # closed since it was listed
            return ""

    def copies():
        base = f"/proc/{process.pid}/fd"
        return [link(f"{base}/{fd}") for fd in os.listdir(base)].count(name)
    try:
        wait_for("the port file", lambda: os.path.exists(port_file))
        held = socket.create_connection(("127.0.0.1", port), timeout=HANG_S)
        held.sendall(b"PUT /v1/locales/x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{")
        wait_for("its head is taken", lambda: json.loads(ask(port, "/v1/stats").body)["http"][
            "connections_open"] == 2)
        before = copies()
        process.send_signal(signal.SIGTERM)
        wait_for("the end of its listening", lambda: copies() < before)
        late = socket.create_connection(("127.0.0.1", port), timeout=HANG_S)
        late.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        held.sendall(b"}")
        equal(parse_answers(receive(held))[0].status, 201, "the request under way")
        equal(process.wait(HANG_S), 0, "exit status")
        process, port_file, _ = start_with_sockets([given], "main")
        equal(parse_answers(receive(late))[0].status, 200, "/readyz of the next daemon")
        process.send_signal(signal.SIGTERM)
        equal(process.wait(HANG_S), 0, "exit status of the next")
    finally:
        process.kill()
        process.wait()
    given.close()


@test("socket activation: who connected before the start is answered, every loop accepts")
def _():
    given, ops = listener(), listener()
    port = given.getsockname()[1]
    early = socket.create_connection(("127.0.0.1", port), timeout=HANG_S)
    early.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    for _ in range(2):  # the second time is a restart: the socket has stayed
        process, port_file, log = start_with_sockets([given, ops], "main:ops", "--loops", "2",
                                                     "--listen", "127.0.0.1:1")
        try:
            wait_for("the port file", lambda: os.path.exists(port_file))
            equal(int(open(port_file).read()), port, "port")
            check(f"listen 127.0.0.1:1 is not used: the socket that was handed over is at 127.0.0.1:{port}"
                  in open(log).read(), "the log does not say that listen is not used")
            equal(parse_answers(receive(early))[0].status, 200, "who came before the start")
            equal({ask(port).status for _ in range(40)}, {200}, "status")
            equal(ask(ops.getsockname()[1], "/livez").status, 200, "the ops socket")
            process.send_signal(signal.SIGTERM)
            equal(process.wait(HANG_S), 0, "exit status")
            early = socket.create_connection(("127.0.0.1", port), timeout=HANG_S)
            early.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        finally:
            process.kill()
            process.wait()
    early.close()
    given.close()
    ops.close()


@test("a socket that does not listen, or two for one listener, end the start")
def _():
    loose = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one, two = listener(), listener()
    for sockets, names, word in (([loose], "main", "no TCP socket"), ([one, two], "a:b", "two sockets")):
        process, _, log = start_with_sockets(sockets, names)
        try:
            equal(process.wait(HANG_S), 2, "exit status")
            check(word in open(log).read(), open(log).read())
        finally:
            process.kill()
            process.wait()


@test("a socket that others can reach needs tokens like --listen")
def _():
    with socket.socket() as s:
        s.bind(("0.0.0.0", 0))
        s.listen()
        process, _, log = start_with_sockets([s], "main")
        equal(process.wait(HANG_S), 2, "exit status")
        check("--token-file" in open(log).read(), open(log).read())


@test("where memory may not become code (MemoryDenyWriteExecute) patches are refused, nothing crashes")
def _():
    set_mdwe = 65
    libc = ctypes.CDLL(None)
    base = fresh()
    port_file, log = os.path.join(base, "port"), open(os.path.join(base, "log"), "wb")
    process = subprocess.Popen([KOTAD, "--listen", "127.0.0.1:0", "--port-file", port_file, "--gpu",
                                "software"], stdout=log, stderr=log, env=clean_environment(),
                               preexec_fn=lambda: os._exit(77) if libc.prctl(set_mdwe, 1, 0, 0, 0)
                               else None)
    try:
        wait_for("the port file", lambda: os.path.exists(port_file) or process.poll() is not None)
        if process.poll() == 77:
            raise Skip("this kernel has no PR_SET_MDWE")
        stats = ask(int(open(port_file).read()), "/v1/stats").json["patches"]["device"]
        equal(stats["engine"], None, "engine")
        check("MemoryDenyWriteExecute" in stats["reason"], stats["reason"])
        process.send_signal(signal.SIGTERM)
        equal(process.wait(HANG_S), 0, "exit status")
    finally:
        process.kill()
        process.wait()


@test("systemd-analyze rates the unit below 2.0")
def _():
    if not shutil.which("systemd-analyze"):
        raise Skip("no systemd-analyze")
    unit = os.path.join(ROOT, "deploy", "systemd", "kotad.service")
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", unit],
                          capture_output=True, text=True, timeout=HANG_S, check=False)
    found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    if not found and "offline" in done.stderr:
        raise Skip("this systemd-analyze knows no --offline")
    check(found, done.stdout[-500:] + done.stderr)
    check(float(found.group(1)) < 2.0, found.group(0))


# ---- healthcheck and start ----------------------------------------------------------------------------


def healthcheck(*flags):
    done = subprocess.run([KOTAD, "--healthcheck", *flags], capture_output=True, text=True,
                          timeout=HANG_S, env=clean_environment(), check=False)
    check(done.returncode in (0, 1), f"exit status {done.returncode}")
    equal(len(done.stderr.splitlines()), done.returncode, f"lines of {done.stderr!r}")
    equal(done.stdout, "", "standard output")
    return done.returncode, done.stderr


@test("--healthcheck exits 0 when /readyz is 200, else 1 with one line")
def _():
    with Daemon() as daemon:
        equal(healthcheck("--listen", f"127.0.0.1:{daemon.port}")[0], 0, "of a ready daemon")
        equal(healthcheck("--listen", f"0.0.0.0:{daemon.port}")[0], 0, "of every address")
        equal(healthcheck("--listen", "127.0.0.1:0", "--port-file", daemon.port_file)[0], 0,
              "by the port file")
    status, line = healthcheck("--listen", f"127.0.0.1:{daemon.port}")
    check(status == 1 and str(daemon.port) in line, line)
    status, line = healthcheck("--listen", "127.0.0.1:0")
    check(status == 1 and "port-file" in line, line)
    with listener() as s:
        def odd():
            for answer in (b"HTTP/1.1 503 Service Unavailable\r\n\r\n{\"detail\":\"the daemon is "
                           b"loading\"}", b"SSH-2.0\r\n", b""):
                with s.accept()[0] as peer:
                    peer.recv(1000)
                    peer.sendall(answer)
        thread = threading.Thread(target=odd)
        thread.start()
        for word in ("503: the daemon is loading", "no kotad", "no answer"):
            status, line = healthcheck("--listen", f"127.0.0.1:{s.getsockname()[1]}")
            check(status == 1 and word in line, f"{word}: {line}")
        thread.join()


@test("while a world is loaded readyz says how far it is, SIGTERM ends at once, no port file")
def _():
    base = fresh()
    for i in range(3):
        make_locale(base, f"a{i}", i)
    os.makedirs(os.path.join(base, "b"))
    write(os.path.join(base, "b", "locale.json"), '{"layers": [{"id": "g", "file": "g.obj"}]}')
    side = 700  # long enough to be looked at
    with open(os.path.join(base, "b", "g.obj"), "w") as file:
        for r in range(side):
            file.write("".join(f"v {c} {r} {(c * r) % 3}\n" for c in range(side)))
        for r in range(side - 1):
            for c in range(1, side):
                at = r * side + c
                file.write(f"f {at} {at + 1} {at + side}\nf {at + 1} {at + side + 1} {at + side}\n")
    manager = Manager()
    daemon = Daemon("--world", base, "--ops-listen", "127.0.0.1:0", "--ops-port-file", "ops",
                    wait=False, env=manager.environment())
    try:
        ops_file = os.path.join(daemon.folder, "ops")
        wait_for("the ops port", lambda: os.path.exists(ops_file))
        port = int(open(ops_file).read())
        seen = ""
        wait_for("a share", lambda: "3 of 4 locales (75 %)" in seen_now(port, daemon))
        check(not os.path.exists(daemon.port_file), "a port file before all is loaded")
        check("READY=1" not in manager.listen(), f"ready before all is loaded {seen}")
        daemon.process.send_signal(signal.SIGTERM)
        equal(daemon.process.wait(HANG_S), 0, "exit status")
        check("while the world is loaded" in daemon.log_text(), daemon.log_text())
        check(not os.path.exists(ops_file), "the ops port file is left")
    finally:
        daemon.kill()
        manager.close()


def seen_now(port, daemon):
    check(daemon.is_alive(), daemon.log_text())
    answer = ask(port, "/readyz")
    check(answer.status == 503, f"loaded too soon for this test: {answer}")
    return answer.json["detail"]


# ---- upgrades -----------------------------------------------------------------------------------------


def row_crc(*values):
    """As store_schema.c."""
    crc = 0
    for value in values:
        if isinstance(value, int):
            crc = zlib.crc32(b"i" + struct.pack("<q", value), crc)
            continue
        kind = b"n" if value is None else b"f" if isinstance(value, float) else (
            b"t" if isinstance(value, str) else b"b")
        data = b"" if value is None else value.encode() if isinstance(value, str) else value
        if isinstance(value, float):
            crc = zlib.crc32(kind + struct.pack("<d", value), crc)
        else:
            crc = zlib.crc32(data, zlib.crc32(kind + struct.pack("<Q", len(data)), crc))
    return crc


def oldest_database(path, filled):
    """A database of schema version 1, made by its script, with the rows of a filled one."""
    with open(os.path.join(ROOT, "server", "store", "schema", "001.sql")) as file:
        script = file.read()
    db = sqlite3.connect(path)
    db.create_function("row_crc", -1, row_crc, deterministic=True)
    db.executescript("PRAGMA page_size=16384; PRAGMA application_id=%d; PRAGMA journal_mode=WAL;"
                     % 0x6b6f7461 + script)
    db.execute("ATTACH ? AS filled", (filled,))
    names = [row[0] for row in db.execute(
        "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
    for name in names:
        columns, now = ([row[1] for row in db.execute(f"PRAGMA {schema}.table_info({name})")]
                        for schema in ("main", "filled"))
        listed = ", ".join(columns)
        db.execute(f"INSERT INTO main.{name} ({listed}) SELECT {listed} FROM filled.{name}")
        if columns != now:  # a checksum is of the columns that there are
            db.execute(f"UPDATE main.{name} SET crc = row_crc({', '.join(columns[:-1])})")
    equal(db.execute("SELECT crc = row_crc(id, locales, models) FROM main.store").fetchall(), [(1,)],
          "row_crc of this test")
    db.commit()
    db.execute("DETACH filled")
    db.execute("PRAGMA user_version=1")
    db.close()


def fill(data):
    with Daemon("--data", data) as daemon:
        daemon.ok("PUT", "/v1/locales/land", {"title": "Ö"}, status=201)
        equal(daemon.put("/v1/locales/land/layers/ground?cols=2&rows=2&spacing=1,1",
                         struct.pack("<4f", 1, 2, 3, 4), media=F32).status, 201, "layer")


@test("a data directory of the oldest schema is upgraded, and all of it is there")
def _():
    base = fresh()
    new, old = os.path.join(base, "new"), os.path.join(base, "old")
    fill(new)
    shutil.copytree(new, old)
    for name in os.listdir(old):
        if name.startswith("kota.db"):
            os.unlink(os.path.join(old, name))
    oldest_database(os.path.join(old, "kota.db"), os.path.join(new, "kota.db"))
    for _ in range(2):
        with Daemon("--data", old) as daemon:
            equal(daemon.get("/readyz").status, 200, "readyz")
            equal(daemon.ok("GET", "/v1/locales/land")["title"], "Ö", "title")
            equal(daemon.ok("GET", "/v1/locales/land/height?x=1&y=1")["height"], 4, "height")
    newest = sqlite3.connect(os.path.join(new, "kota.db")).execute("PRAGMA user_version").fetchone()
    got = sqlite3.connect(os.path.join(old, "kota.db")).execute("PRAGMA user_version").fetchone()
    equal(got, newest, "user_version")
    check(newest[0] > 1, "there is no older schema to upgrade from")


# ---- the settings that a reload changes ---------------------------------------------------------------


def settings_table():
    """Of each setting: group, name, value, default, example, reload, text."""
    text = subprocess.run([KOTAD, "--help=table"], capture_output=True, text=True, timeout=HANG_S,
                          env=clean_environment(), check=True).stdout
    return [line.split("\t") for line in text.splitlines()]


@test("without standard input, output and error no socket gets their numbers, nor the log")
def without_standard_files():
    port_file = os.path.join(folder.name, "no-files-port")
    closed = ["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh"]
    process = subprocess.Popen([*closed, KOTAD, "--listen", "127.0.0.1:0", "--port-file", port_file, "--access-log"],
                               env=clean_environment())
    try:
        wait_for("a port", lambda: os.path.exists(port_file))
        port = int(open(port_file).read())
        for _ in range(20):
            equal(ask_once(port, "/v1/locales").status, 200, "an answer")
        kota = subprocess.run([*closed, os.path.join(BIN_DIR, "kota"), "--url", f"http://127.0.0.1:{port}", "check"],
                              env=clean_environment(), timeout=HANG_S, check=False)
        equal(kota.returncode, 1, "kota cannot write what it was asked for")
    finally:
        process.terminate()
        equal(process.wait(HANG_S), 0, "exit status")


@test("docs/life-cycle.md names what can change while the daemon runs, and nothing else")
def _():
    with open(os.path.join(ROOT, "docs", "life-cycle.md")) as file:
        text = file.read()
    part = text.split("<!-- live -->")[1]
    documented = set(re.findall(r"`([a-z0-9-]+)`", part))
    equal(documented, {row[1] for row in settings_table() if row[5]}, "options")


run(folder.cleanup, "the temporary folders are removed")
