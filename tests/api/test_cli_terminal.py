"""`kota` as people see it: a shell in tmux. Tables, progress bars that come and go, completion by the
Tab key, Ctrl-C; and the same commands in a pipe.
"""
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time

from daemon import BIN_DIR, Daemon, clean_environment
from tap import HANG_S, Failure, check, equal, run, test

if not shutil.which("tmux") or not shutil.which("bash"):
    print("1..0 # SKIP no tmux or no bash here")
    raise SystemExit

SIDE = 64
FOLDER = tempfile.mkdtemp(prefix="kota-tmux-")
with open(os.path.join(FOLDER, "big.f32"), "wb") as file_:
    file_.truncate(32 << 20)
home = Daemon()
home.ok("PUT", "/v1/locales/sand", {"title": "A beach"}, status=201)
home.ok("PUT", f"/v1/locales/sand/layers/ground?cols={SIDE}&rows={SIDE}&spacing=1,1",
        struct.pack(f"<{SIDE * SIDE}f", *[c / 4 for r in range(SIDE) for c in range(SIDE)]),
        status=201, media="application/vnd.kota.f32")


class Terminal:
    """A shell of its own in a tmux server of its own."""

    def __init__(self):
        self.name = f"kota-test-{os.getpid()}"
        path = os.path.abspath(BIN_DIR) + ":" + os.environ["PATH"]
        env = clean_environment({"KOTA_URL": home.url, "PATH": path, "LC_ALL": "C.UTF-8", "INPUTRC": "/dev/null"})
        env.pop("TMUX", None)
        self.env = env
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "40", "-c", FOLDER,
                  "bash --norc --noprofile")
        try:
            self.get_ready()
        except BaseException:
            self.end()
            raise

    def get_ready(self):
        self.type("-l", "PS1='ready> '")
        self.type("Enter")
        self.see(lambda text: text.strip().endswith("ready>"))

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-L", self.name, *words], env=self.env, capture_output=True,
                              check=False, timeout=HANG_S)
        if done.returncode:
            raise Failure(f"tmux {words}: {done.stderr.decode()}")
        return done.stdout.decode()

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def see(self, wanted):
        """The screen, once wanted(screen) is true."""
        deadline = time.monotonic() + HANG_S
        while time.monotonic() < deadline:
            text = self.screen()
            if wanted(text):
                return text
            time.sleep(0.03)
        raise Failure("the terminal never showed it:\n" + self.screen())

    def clear(self):
        self.type("C-u")
        self.type("clear", "Enter")
        self.see(lambda text: text.strip() == "ready>")

    def run(self, command):
        """What stands on the screen when the command is over, without the command."""
        self.clear()
        self.type("-l", command + "; echo over $?")
        self.type("Enter")
        text = self.see(lambda text: re.search(r"^over \d+$", text, re.M))
        return text[text.index("\n") + 1:]

    def end(self):
        self.tmux("kill-server")


class SlowServer:
    """Takes the body of one upload slowly, then answers; or sends an answer slowly."""

    def __init__(self, download=False):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.go_on = threading.Event()
        self.download = download
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        connection, _ = self.listener.accept()
        with connection:
            try:
                while self.serve_one(connection):
                    pass
            except OSError:
                pass

    def serve_one(self, connection):
        received = b""
        while b"\r\n\r\n" not in received:
            more = connection.recv(4096)
            if not more:
                return False
            received += more
        head, _, rest = received.partition(b"\r\n\r\n")
        match = re.search(rb"(?i)content-length: (\d+)", head)
        left = int(match.group(1)) - len(rest) if match else 0
        while left > 0:
            left -= len(connection.recv(min(left, 1 << 18)))
            if not self.go_on.is_set():
                time.sleep(0.02)
        if self.download and b"/layers/" in head:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 16000000\r\n\r\n")
            for _ in range(160):
                connection.sendall(bytes(100000))
                self.go_on.wait(0.03)
            return True
        body = json.dumps({"id": "a", "triangulation": "anti",
                           "layers": [{"id": "g", "kind": "heightfield"}]}).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                           b"%d\r\n\r\n%s" % (len(body), body))
        return True


def begin():
    try:
        return Terminal()
    except BaseException:
        home.kill()
        raise


terminal = begin()


@test("a terminal gets a table, a pipe gets JSON lines")
def _():
    text = terminal.run("kota height sand 1,1 2,2")
    equal(text.split("over")[0], "X  Y  STATUS  height\n1  1  ok      0.25\n2  2  ok      0.5\n", "table")
    text = terminal.run("kota ls")
    check(text.startswith("ID    REVISION  LAYERS  EXTENT") and "A beach" in text, text)
    text = terminal.run("kota height sand 1,1 2,2 | cat")
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    equal([line["height"] for line in lines], [0.25, 0.5], "lines")
    text = terminal.run("printf 'x,y\\n1,1\\n' | kota height sand")
    check(text.startswith("X  Y  STATUS  height\n1  1  ok"), text)


@test("an upload shows how far it is, and takes the line away")
def _():
    server = SlowServer()
    terminal.clear()
    terminal.type("-l", f"kota --url {server.url} import a g big.f32 --cols 4096 --rows 2048 "
                  "--spacing 1,1; echo over $?")
    terminal.type("Enter")
    text = terminal.see(lambda text: re.search(r"import  \[#+\.+\] +\d+%  [\d.]+ MiB of 32\.0 MiB", text))
    server.go_on.set()
    text = terminal.see(lambda text: re.search(r"^over \d+$", text, re.M))
    check("over 0" in text and "[#" not in text, text)


@test("a download, too; Ctrl-C in its midst leaves no file")
def _():
    server = SlowServer(download=True)
    terminal.clear()
    terminal.type("-l", f"kota --url {server.url} export a g out.f32")
    terminal.type("Enter")
    terminal.see(lambda text: re.search(r"export  \[#+\.+\] +\d+%  [\d.]+ MiB of 15\.3 MiB", text))
    check(any(name.startswith("out.f32.") for name in os.listdir(FOLDER)), "no file grows")
    terminal.type("C-c")
    terminal.see(lambda text: text.strip().endswith("ready>"))
    server.go_on.set()
    text = terminal.run("ls out*; echo")
    check("No such file" in text and not [n for n in os.listdir(FOLDER) if n.startswith("out")], text)


@test("a benchmark shows its time; a pipe of its errors shows nothing")
def _():
    terminal.clear()
    terminal.type("-l", "kota bench sand --seconds 2 --connections 2; echo over $?")
    terminal.type("Enter")
    terminal.see(lambda text: re.search(r"bench  \[#+\.+\] +\d+%  [\d.]+ s of 2\.5 s", text))
    text = terminal.see(lambda text: re.search(r"^over \d+$", text, re.M))
    check(re.search(r"^points_per_s +\d", text, re.M) and re.search(r"^latency_us\.p99 +\d", text, re.M)
          and "[#" not in text, text)
    terminal.run("kota bench sand --seconds 1 2>err >out")
    equal(os.path.getsize(os.path.join(FOLDER, "err")), 0, "bytes of standard error")


@test("Tab completes commands, options, their values, ids and files")
def _():
    terminal.run("source <(kota completion bash)")
    for typed, want in (("kota heig", "kota height"), ("kota height s", "kota height sand"),
                        ("kota height sand --inter", "kota height sand --interp"),
                        ("kota height sand --interp bi", "kota height sand --interp bilinear"),
                        (f"kota --url {home.url} export sand g",
                         f"kota --url {home.url} export sand ground"),
                        ("kota import x y big", "kota import x y big.f32")):
        terminal.clear()
        terminal.type("-l", typed)
        terminal.type("Tab")
        terminal.see(lambda text, want=want: text.startswith(f"ready> {want}"))
    terminal.clear()
    terminal.type("-l", "kota conta")
    terminal.type("Tab", "Tab")
    terminal.see(lambda text: re.search(r"contact +contains", text))
    terminal.type("C-u")


def finish():
    terminal.end()
    home.stop()
    shutil.rmtree(FOLDER, ignore_errors=True)


run(finish)
