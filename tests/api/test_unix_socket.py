"""kotad --listen unix:PATH: beside TCP and without it, mode, stale paths, users, limits, the end."""
import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

import tap
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "client", "python"))
import kota  # noqa: E402
from daemon import KOTAD, Answer, Daemon, clean_environment, problem
from tap import HANG_S, Failure, Skip, check, run, test

OTHER_UID = 61234  # no such user is needed


def equal(got, expected, what="what was found"):
    tap.equal(got, expected, what)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=HANG_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(path, method, target, body=None, headers=None):
    connection = UnixConnection(path)
    try:
        connection.request(method, target, body, {"Content-Type": "application/json", **(headers or {})})
        got = connection.getresponse()
        return Answer(got.status, got.getheaders(), got.read())
    finally:
        connection.close()


def folder():
    made = tempfile.mkdtemp(prefix="kota-test-unix-")
    os.chmod(made, 0o755)
    return made


class Alone:
    """kotad without TCP."""

    def __init__(self, path, *args, env=None):
        self.path, self.port_file = path, os.path.join(os.path.dirname(path), "port")
        self.log = open(os.path.join(os.path.dirname(path), "log"), "ab")
        self.process = subprocess.Popen(
            [KOTAD, "--listen", f"unix:{path}", "--port-file", self.port_file, *args],
            stdout=self.log, stderr=self.log, env=clean_environment(env))
        deadline = time.monotonic() + HANG_S
        while not os.path.exists(self.port_file):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"kotad did not start: {open(self.log.name).read()[-1000:]}")
            time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(timeout=HANG_S)
        self.log.close()
        return status


def refused(*args):
    """The last line of a kotad that does not start, and its status."""
    got = subprocess.run([KOTAD, *args], capture_output=True, text=True, timeout=HANG_S,
                         env=clean_environment(), check=False)
    check(got.returncode not in (0, -6), f"it started: {got}")
    return got.stderr.strip().split("\n")[-1], got.returncode


@test("one daemon answers at TCP and at a Unix socket: the same bytes, also kept alive and pipelined")
def _():
    path = os.path.join(folder(), "kota.sock")
    with Daemon("--listen", f"unix:{path}", "--loops", "2") as daemon:
        equal(ask(path, "PUT", "/v1/locales/land", "{}").status, 201)
        equal(ask(path, "GET", "/v1/locales/land").body, daemon.get("/v1/locales/land").body)
        connection = UnixConnection(path)
        for _ in range(20):
            connection.request("GET", "/v1/locales")
            equal(connection.getresponse().read(), daemon.get("/v1/locales").body)
        connection.close()
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            s.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
            s.settimeout(HANG_S)
            got = b""
            while got.count(b"HTTP/1.1 200") < 50:
                part = s.recv(65536)
                check(part, f"the connection ended: {got[-200:]!r}")
                got += part
        check(f"unix:{path}" in daemon.log_text(), "the log names both addresses")
    check(not os.path.exists(path), "the path is gone after the end")


@test("without TCP: the port file holds the URL, --healthcheck asks there, and a comma makes two of one")
def _():
    path = os.path.join(folder(), "kota.sock")
    with Alone(path) as daemon:
        equal(open(daemon.port_file).read(), f"unix:{path}\n")
        equal(ask(path, "GET", "/readyz").status, 200)
        listening = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=False).stdout
        check(f"pid={daemon.process.pid}," not in listening, f"a TCP socket listens: {listening}")
        healthy = [KOTAD, "--healthcheck", "--listen", f"unix:{path}"]
        equal(subprocess.run(healthy, env=clean_environment(), check=False).returncode, 0)
    line, status = refused("--healthcheck", "--listen", f"unix:{path}")
    check(f"unix:{path}: No such file" in line, line)
    equal(status, 1)
    with Daemon(env={"KOTA_LISTEN": f"127.0.0.1:0,unix:{path}"}) as daemon:
        check(not os.path.exists(path), "the flag replaces the environment's")
    with Alone(path, "--listen", "127.0.0.1:0") as daemon:
        port = int(open(daemon.port_file).read())
        check(port > 0 and ask(path, "GET", "/livez").status == 200, "both")


@test("the socket has --socket-mode from before the first connection; others are refused by the kernel")
def _():
    path = os.path.join(folder(), "kota.sock")
    for mode in ("0660", "0600", "666"):
        with Alone(path, *(["--socket-mode", mode] if mode != "0660" else [])):
            equal(stat.S_IMODE(os.stat(path).st_mode), int(mode, 8))
            if os.getuid() == 0:
                equal(as_user(path, "GET", "/livez")[0], 200 if mode == "666" else "PermissionError")
    for bad in ("9", "1777", "rw", ""):
        line, status = refused("--listen", f"unix:{path}", "--socket-mode", bad)
        check("--socket-mode" in line, line)
        equal(status, 2)


@test("a stale path is replaced; one where a process answers, or a file, is not")
def _():
    path = os.path.join(folder(), "kota.sock")
    daemon = Alone(path)
    equal(daemon.stop(signal.SIGKILL), -9)
    check(os.path.exists(path), "kill -9 leaves the path")
    os.unlink(daemon.port_file)
    with Alone(path) as daemon:
        equal(ask(path, "GET", "/livez").status, 200)
        inode = os.stat(path).st_ino
        line, status = refused("--listen", f"unix:{path}")
        check("another process" in line, line)
        equal((status, os.stat(path).st_ino), (1, inode), "the first keeps its path")
        equal(ask(path, "GET", "/livez").status, 200)
        os.unlink(path)
        open(path, "w").close()  # by somebody else
    check(os.path.exists(path), "what is not its socket stays at the end")
    line, status = refused("--listen", f"unix:{path}")
    check("no socket" in line, line)
    equal(status, 2)
    for bad in ("unix:", "unix:" + "x" * 108, f"unix:{path}/no"):
        line, status = refused("--listen", bad)
        check("unix:" in line, line)


def as_user(path, method, target, body=None, headers=None, uid=OTHER_UID):
    """[status, body] of a request by another user, or [name of the exception, text]; needs root."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            answer = ask(path, method, target, body, headers)
            got = [answer.status, answer.body.decode()]
        except OSError as error:
            got = [type(error).__name__, str(error)]
        os.write(into, json.dumps(got).encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as file:
        got = json.loads(file.read())
    os.waitpid(child, 0)
    return got


@test("uid=N in the token file: that user needs no token, through a proxy or a page it does, a reload counts")
def _():
    if os.getuid() != 0:
        raise Skip("needs root to be two users")
    path = os.path.join(folder(), "kota.sock")
    tokens = os.path.join(os.path.dirname(path), "tokens")
    with open(tokens, "w") as file:
        file.write(f"edit uid=0 # root\nread uid={OTHER_UID}\nedit secret\n")
    with Daemon("--listen", f"unix:{path}", "--token-file", tokens, "--socket-mode", "0666") as daemon:
        put = ("PUT", "/v1/locales/land", "{}")
        equal(ask(path, *put).status, 201)
        equal(ask(path, "GET", "/v1/locales").status, 200)
        for headers, status in (({"X-Forwarded-For": "10.0.0.1"}, 401),
                                ({"Origin": "http://evil.example"}, 401),
                                ({"Authorization": "Bearer wrong"}, 401),
                                ({"Authorization": "Bearer secret"}, 200),
                                ({"Authorization": "Bearer uid=0"}, 401)):
            equal(ask(path, *put, headers).status, status, headers)
        status, body = as_user(path, *put)
        equal(status, 403, body)
        check("this user may read" in body, body)
        equal(as_user(path, "GET", "/v1/locales")[0], 200)
        equal(as_user(path, *put, {"Authorization": "Bearer secret"})[0], 200)
        status, body = as_user(path, "GET", "/v1/locales", uid=OTHER_UID + 1)
        equal(status, 401)
        check(f"read uid={OTHER_UID + 1}" in body, body)
        equal(as_user(path, "GET", "/livez", uid=OTHER_UID + 1)[0], 200)
        problem(daemon.get("/v1/locales"), 401)  # over TCP nobody is a user
        problem(daemon.put("/v1/locales/land", {}), 401)
        with open(tokens, "w") as file:
            file.write(f"edit uid={OTHER_UID}\n")
        daemon.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + HANG_S
        while ask(path, *put).status != 401 and time.monotonic() < deadline:
            time.sleep(0.05)
        equal((ask(path, *put).status, as_user(path, *put)[0]), (401, 200))
    for bad in ("uid=", "uid=-1", "uid=root", "uid=4294967295", "uid=1x", "uid=65534"):
        with open(tokens, "w") as file:
            file.write(f"edit {bad}\n")
        line, status = refused("--listen", f"unix:{path}", "--token-file", tokens)
        check(f"{tokens}:1:" in line, line)
        equal(status, 2)


@test("without a token file a local user may write over it, but not with a proxy's header or a page's origin")
def _():
    path = os.path.join(folder(), "kota.sock")
    with Alone(path):
        equal(ask(path, "PUT", "/v1/locales/land", "{}").status, 201)
        for headers in ({"X-Forwarded-For": "10.0.0.1"}, {"Origin": "http://evil.example"}):
            problem(ask(path, "PUT", "/v1/locales/land", "{}", headers), 403)


@test("each user counts as one address: its connections are limited, another user's are not")
def _():
    path = os.path.join(folder(), "kota.sock")
    with Daemon("--listen", f"unix:{path}", "--socket-mode", "0666",
                "--max-connections-per-address", "3") as daemon:
        kept = [UnixConnection(path) for _ in range(3)]
        for connection in kept:
            connection.request("GET", "/livez")
            equal(connection.getresponse().read() and 1, 1)
        answer = ask(path, "GET", "/v1/locales")
        problem(answer, 429, "this user holds 3 connections already")
        equal(daemon.get("/v1/locales").status, 200, "TCP is counted apart")
        equal(ask(path, "GET", "/livez").status, 200, "probes have their reserve")
        if os.getuid() == 0:
            equal(as_user(path, "GET", "/v1/locales")[0], 200)
        for connection in kept:
            connection.close()


@test("the Python client asks it by unix:PATH, over a kept connection, and follows its feed")
def _():
    path = os.path.join(folder(), "kota.sock")
    with Alone(path):
        with kota.Client(f"unix:{path}", timeout_s=HANG_S) as client:
            client.put_locale("land")
            for _ in range(3):
                equal(client.locale("land")["id"], "land")
            with client.locale_events("land") as feed:
                client.put_locale("land", {"title": "x"})
                equal(next(iter(feed)).id, "2")
    try:
        kota.Client(f"unix:{path}", tries_max=1).livez()
        check(False, "nobody is there")
    except kota.Unreachable as error:
        check(path in str(error), str(error))


def hand_over(sockets, *flags):
    """A kotad that gets these sockets as systemd hands them over."""
    directory = folder()
    port_file, log = os.path.join(directory, "port"), open(os.path.join(directory, "log"), "wb")

    def place():
        for i, s in enumerate(sockets):
            os.dup2(s.fileno(), 40 + i)
        for i in range(len(sockets)):
            os.dup2(40 + i, 3 + i)
            os.set_inheritable(3 + i, True)

    process = subprocess.Popen(
        ["/bin/sh", "-c", 'export LISTEN_PID=$$; exec "$0" "$@"', KOTAD, "--port-file", port_file, *flags],
        preexec_fn=place, stdout=log, stderr=log, close_fds=False,
        env=clean_environment({"LISTEN_FDS": str(len(sockets))}))
    deadline = time.monotonic() + HANG_S
    while not os.path.exists(port_file) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return process, port_file, log.name


@test("socket activation: a Unix socket and a TCP socket are handed over, alone and together")
def _():
    path = os.path.join(folder(), "kota.sock")
    local = socket.socket(socket.AF_UNIX)
    local.bind(path)
    local.listen(64)
    tcp = socket.create_server(("127.0.0.1", 0))
    process, port_file, log = hand_over([local], "--listen", "unix:/nowhere/kota.sock")
    try:
        equal(open(port_file).read(), f"unix:{path}\n")
        equal(ask(path, "GET", "/livez").status, 200)
        check("unix:/nowhere/kota.sock is not used" in open(log).read(), open(log).read())
        process.terminate()
        equal(process.wait(timeout=HANG_S), 0)
        check(os.path.exists(path), "the path is the service manager's")
        process, port_file, log = hand_over([local, tcp])
        equal(open(port_file).read(), f"{tcp.getsockname()[1]}\n")
        equal(ask(path, "GET", "/livez").status, 200)
        connection = http.client.HTTPConnection(*tcp.getsockname(), timeout=HANG_S)
        connection.request("GET", "/livez")
        equal(connection.getresponse().status, 200)
        connection.close()
    finally:
        process.terminate()
        process.wait(timeout=HANG_S)
        local.close()
        tcp.close()


if __name__ == "__main__":
    run()
