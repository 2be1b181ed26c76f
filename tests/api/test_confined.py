"""What the daemon gives up at its start: root (--user) and the file system (Landlock)."""
import os
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

from daemon import F32, KOTAD, Daemon, clean_environment
from ground import check_is_good
from mesh_oracle import obj, rectangle
from tap import HANG_S, Skip, check, equal, run, test

base = tempfile.mkdtemp(prefix="kota-confined-")


def fill(daemon, **named):
    """Something of each kind that the store keeps in files."""
    daemon.ok("PUT", "/v1/locales/land", {}, status=201, **named)
    daemon.ok("PUT", "/v1/locales/land/layers/ground?cols=2&rows=2&spacing=1,1",
              struct.pack("<4f", 1, 2, 3, 4), status=201, media=F32, **named)
    daemon.ok("PUT", "/v1/locales/land/layers/deck", obj([rectangle(0, 0, 1, 1, 9)]), status=201,
              media="model/obj", **named)


@test("the log says whether the sandbox is in force, and --no-sandbox does without")
def _():
    with Daemon() as daemon:
        check(re.search(r"sandbox: (Landlock \d+ is in force|not in force: )", daemon.log_text()),
              daemon.log_text())
    with Daemon("--no-sandbox") as daemon:
        check("sandbox: Landlock is off" in daemon.log_text(), daemon.log_text())


@test("in the sandbox a fresh store is made, filled, opened again; a token file is replaced")
def _():
    data, tokens = os.path.join(base, "deep", "data"), os.path.join(base, "tokens")
    with open(tokens, "w") as file:
        file.write("edit first-0123456789\n")
    arguments = ("--data", data, "--token-file", tokens)
    with Daemon(*arguments) as daemon:
        fill(daemon, headers={"Authorization": "Bearer first-0123456789"})
        with open(tokens + ".new", "w") as file:
            file.write("edit second-0123456789\n")
        os.rename(tokens + ".new", tokens)
        daemon.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + HANG_S
        while "tokens read again" not in daemon.log_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        daemon.ok("PUT", "/v1/locales/land", {"title": "later"},
                  headers={"Authorization": "Bearer second-0123456789"})
    with Daemon(*arguments) as daemon:
        equal(daemon.ok("GET", "/v1/locales/land/height?x=1&y=1&layer=ground")["height"], 4, "height")
    check_is_good(data)


@test("a world and a file beside the sandbox's paths are read")
def _():
    with open(os.path.join(base, "field.asc"), "w") as file:
        file.write("ncols 2\nnrows 2\nxllcenter 0\nyllcenter 0\ncellsize 1\n1 2\n3 4\n")
    with Daemon("field.asc", cwd=base) as daemon:
        equal(daemon.ok("GET", "/v1/locales/field/height?x=1&y=0")["height"], 4, "by a relative path")


@test("--user: every thread is that user without capabilities, and the store is theirs")
def _():
    if os.geteuid() != 0:
        raise Skip("not root")
    nobody = pwd.getpwnam("nobody")
    home = os.path.join(base, "home")
    os.mkdir(home)
    os.chmod(base, 0o755)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    data, port_file = os.path.join(home, "data"), os.path.join(home, "port")
    with Daemon("--user", "nobody", "--data", data, "--port-file", port_file, wait=False) as daemon:
        daemon.port_file = port_file
        daemon.wait_until_ready()
        fill(daemon)
        tasks = daemon.threads("status")
        check(len(tasks) > 2, f"threads: {list(tasks)}")
        for task, text in tasks.items():
            for name in ("Uid", "Gid"):
                ids = re.search(rf"^{name}:\s+(.*)", text, re.M).group(1).split()
                check(ids == [str(nobody.pw_uid if name == "Uid" else nobody.pw_gid)] * 4,
                      f"thread {task}: {name} {ids}")
            for name in ("CapEff", "CapPrm", "CapInh"):
                equal(int(re.search(rf"^{name}:\s+(\w+)", text, re.M).group(1), 16), 0, name)
            groups = re.search(r"^Groups:(.*)", text, re.M).group(1).split()
            check("0" not in groups, f"groups {groups}")
    for name in os.listdir(data):
        equal(os.stat(os.path.join(data, name)).st_uid, nobody.pw_uid, name)
    check_is_good(data)


@test("--user that cannot be is a refusal that says why")
def _():
    for name, more, word in (("no-such-user-here", {}, "no such user"), ("root", {}, "root"),
                             ("daemon", {"user": 65534}, "only root")):
        if os.geteuid() != 0:
            raise Skip("not root")
        done = subprocess.run([KOTAD, "--listen", "127.0.0.1:0", "--user", name], timeout=HANG_S,
                              capture_output=True, text=True, env=clean_environment(), check=False,
                              cwd="/", **more)
        equal(done.returncode, 2, f"{name}: {done.stderr}")
        check(word in done.stderr and name in done.stderr, f"{name}: {done.stderr}")


@test("no token and no body is in the log, at its most talkative")
def _():
    tokens = os.path.join(base, "more-tokens")
    with open(tokens, "w") as file:
        file.write("edit chisel-0123456789\nread glass-0123456789\n")
    with Daemon("--token-file", tokens, "--log-level", "debug", "--access-log", "--slow-ms", "1") \
            as daemon:
        for token in ("chisel-0123456789", "glass-0123456789", "forged-0123456789"):
            for method, target, body in (
                    ("PUT", "/v1/locales/a", {"title": "body-of-a-request"}),
                    ("PUT", "/v1/locales/a", '{"title": "body-of-a-request'),
                    ("POST", "/v1/locales/a/height", '{"points": "body-of-a-request"}'),
                    ("GET", f"/v1/limits?token={token}", None)):
                daemon.ask(method, target, body, headers={"Authorization": f"Bearer {token}"})
        with socket.create_connection(("127.0.0.1", daemon.port)) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer chisel-0123456789\n\r\n\r\n")
            s.recv(4096)
        log = daemon.log_text()
        check("/v1/locales/a/height" in log, f"the access log: {log[-500:]}")
        for word in ("0123456789", "body-of-a-request"):
            check(word not in log, f"{word} in the log: {log[:3000]}")


run(lambda: shutil.rmtree(base), "the files can be removed")
