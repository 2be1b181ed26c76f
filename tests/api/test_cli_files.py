"""Files that `kota` writes appear whole or not at all: signals, full disks, servers that stop."""
import os
import signal
import subprocess
import tempfile
import threading
import time

from daemon import clean_environment
from kota_cli import KOTA, Stub, fails, kota, reply
from tap import HANG_S, case, check, equal, run, test

LOCALE = {"id": "a", "revision": 1, "triangulation": "anti", "bounds": None,
          "layers": [{"id": "ground", "kind": "heightfield", "role": "ground"}]}


def half(connection, is_over):
    """Half of a file, then nothing."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.kota.f32\r\n"
                       b"Content-Length: 100000\r\n\r\n" + b"\0" * 50000)
    is_over.wait(HANG_S)


def cut(connection, is_over):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"\0" * 50000)


def server(answer):
    return Stub(lambda request: answer if "layers" in request.target or "view" in request.target
                else reply(LOCALE))


COMMANDS = {"export": ["export", "a", "ground", "x.f32"], "view": ["patch", "view", "a", "1", "x.png"]}


def half_comes(folder, process, name):
    """Waits until the file that becomes `name` grows."""
    deadline = time.monotonic() + HANG_S
    while not any(os.path.getsize(os.path.join(folder, entry)) > 6 for entry in os.listdir(folder)
                  if entry != name):
        check(time.monotonic() < deadline and process.poll() is None, "no file grows")
        time.sleep(0.01)


def ends(name, number, had_before):
    """A signal in the midst of the download: nothing is left, the old file is as it was."""
    with tempfile.TemporaryDirectory() as folder, server(half) as stub:
        words = COMMANDS[name]
        if had_before:
            with open(os.path.join(folder, words[-1]), "w", encoding="ascii") as file:
                file.write("before")
        process = subprocess.Popen([KOTA, *words], cwd=folder, stdin=subprocess.DEVNULL,
                                   env=clean_environment({"KOTA_URL": stub.url}),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        half_comes(folder, process, words[-1])
        process.send_signal(number)
        process.communicate(timeout=HANG_S)
        equal(process.returncode, -number, "how it ended")
        equal(os.listdir(folder), [words[-1]] if had_before else [], "files")
        if had_before:
            with open(os.path.join(folder, words[-1]), encoding="ascii") as file:
                equal(file.read(), "before", "the old file")


for name_ in COMMANDS:
    for number_ in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        for had_ in (False, True):
            case(f"{name_}: {number_.name} leaves {'the old file' if had_ else 'nothing'}", ends,
                 name_, number_, had_)


@test("a connection that breaks, or falls silent, leaves nothing and is status 1")
def _():
    for answer in (cut, half):
        with tempfile.TemporaryDirectory() as folder, server(answer) as stub:
            for words in COMMANDS.values():
                timeout = "0.2" if answer is half else "30"
                fails(kota(*words[:-1], os.path.join(folder, words[-1]), "--timeout", timeout,
                           url=stub.url), 1, stub.url)
            equal(os.listdir(folder), [], "files")


@test("what cannot be written is status 1 and says why")
def _():
    with tempfile.TemporaryDirectory() as folder, \
            server(reply(b"\0" * 16, media="application/vnd.kota.f32")) as stub:
        os.mkdir(os.path.join(folder, "there.f32"))
        fails(kota("export", "a", "ground", os.path.join(folder, "no", "x.f32"), url=stub.url), 1,
              "No such file")
        fails(kota("export", "a", "ground", os.path.join(folder, "there.f32"), url=stub.url), 1,
              "no regular file")
        result = kota("export", "a", "ground", os.path.join(folder, "x.f32"), url=stub.url)
        equal(result.status, 0, str(result))
        equal(sorted(os.listdir(folder)), ["there.f32", "x.f32"], "files")
        mask = os.umask(0o027)
        kota("export", "a", "ground", os.path.join(folder, "y.f32"), url=stub.url)
        os.umask(mask)
        equal(os.stat(os.path.join(folder, "y.f32")).st_mode & 0o777, 0o640, "mode")


@test("a full disk leaves nothing and is status 1")
def _():
    with tempfile.TemporaryDirectory() as folder, \
            server(reply(b"\0" * 100000, media="application/vnd.kota.f32")) as stub:
        done = subprocess.run(["sh", "-c", f"ulimit -f 8; trap '' XFSZ; exec {KOTA} export a ground "
                               f"{folder}/x.f32"], env=clean_environment({"KOTA_URL": stub.url}),
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=HANG_S)
        equal(done.returncode, 1, str(done))
        check(b"x.f32 cannot be written: File too large" in done.stderr, str(done.stderr))
        equal(os.listdir(folder), [], "files")


@test("an ignored SIGHUP stays ignored, as under nohup")
def _():
    with tempfile.TemporaryDirectory() as folder:
        may_end = threading.Event()

        def slow(connection, is_over):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"\0" * 50000)
            may_end.wait(HANG_S)
            connection.sendall(b"\0" * 50000)

        with server(slow) as stub:
            process = subprocess.Popen(
                ["sh", "-c", f"trap '' HUP; exec {KOTA} export a ground x.f32"], cwd=folder,
                env=clean_environment({"KOTA_URL": stub.url}), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            half_comes(folder, process, "x.f32")
            process.send_signal(signal.SIGHUP)  # is pending before the other half can be read
            may_end.set()
            equal(process.wait(timeout=HANG_S), 0, "how it ended")
        equal(os.listdir(folder), ["x.f32"], "files")


run()
