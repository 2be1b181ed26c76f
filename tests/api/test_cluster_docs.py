"""docs/cluster.md tells the truth: each `console` block is run, and its output compared; its flags are
kotad's, its metrics are there.

Folders and ports are the test's own; root runs PostgreSQL's programs as another user, as it must. `…`
in an output stands for anything.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from background import free_port
from daemon import BIN_DIR, KOTAD, ROOT, Daemon, clean_environment
from pages import BLOCK, commands
from tap import Failure, check, equal, run, test

sys.path.insert(0, os.path.join(ROOT, "tests", "cluster"))
from postgres import account, end_with_parent, place, programs  # noqa: E402

PAGE = os.path.join(ROOT, "docs", "cluster.md")
with open(PAGE, encoding="utf-8") as page:
    TEXT = page.read()
FOLDER, PORTS, DATABASE_PORT = "/tmp/kota-cluster", ("7420", "7430"), "5433"


class Reader:
    """Who follows the page: folder, ports, and what has been started."""

    def __init__(self):
        self.bin, self.account = programs(), account()
        self.folder = tempfile.mkdtemp(prefix="kota-test-", dir=place(False))
        self.database = os.path.join(self.folder, "db")
        os.mkdir(self.database, 0o700)
        os.chmod(self.folder, 0o755)
        if self.account:
            os.chown(self.database, self.account["user"], self.account["group"])
        self.engine_port, self.engine, self.daemons = free_port(), None, {}
        self.environment = {**clean_environment(), "PATH": f"{self.bin}:{os.environ['PATH']}",
                            "LC_ALL": "C.UTF-8"}

    def own(self, command):
        """The command with the test's folders and ports."""
        text = command.replace(FOLDER, self.folder).replace("build/release/", BIN_DIR + "/")
        text = text.replace(DATABASE_PORT, str(self.engine_port))
        for port, daemon in self.daemons.items():
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{daemon.port}")
        return text

    def run(self, command):
        """What it prints; a command that ends in & is started."""
        words = shlex.split(command.rstrip(" &"))
        if command.endswith("&") and words[0].endswith("kotad"):
            port = words[words.index("--listen") + 1].rpartition(":")[2]
            check(port in PORTS, f"which port? {command}")
            own = shlex.split(self.own(command.rstrip(" &")))[1:]
            own[own.index("--listen") + 1] = "127.0.0.1:0"
            self.daemons[port] = Daemon(*own)
            return ""
        if command.endswith("&"):
            equal(words[0], "postgres", "what is started")
            self.engine = subprocess.Popen(shlex.split(self.own(command.rstrip(" &"))), **self.account,
                                           env=self.environment, stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                           cwd=self.database, preexec_fn=end_with_parent)
            return ""
        who = self.account if words[0] in ("initdb", "createdb") else {}
        done = subprocess.run(["sh", "-c", self.own(command)], **who, env=self.environment, timeout=120,
                              cwd=self.database if who else ROOT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        said = done.stdout.decode().rstrip("\n")
        equal(done.returncode, 0, f"exit status of {command}: {said[-1000:]}")
        return said

    def stop(self):
        try:
            for daemon in self.daemons.values():
                daemon.stop()
        finally:
            for daemon in self.daemons.values():
                if daemon.is_alive():
                    daemon.kill()
            if self.engine:
                self.engine.terminate()
                self.engine.send_signal(3)  # an immediate stop
                self.engine.wait()
            shutil.rmtree(self.folder, ignore_errors=True)


@test("each command works, in the page's order, and prints what the page says")
def _():
    reader = Reader()
    try:
        for block in BLOCK.findall(TEXT):
            for command, want in commands(block):
                got = reader.run(command)
                pattern = ".*".join(map(re.escape, want.split("…")))
                if not re.fullmatch(pattern, got, re.DOTALL):
                    raise Failure(f"{command}\nprinted\n{got[-1500:]}\nand the page says\n{want}")
    except BaseException:
        for daemon in reader.daemons.values():
            print("# " + daemon.log_text()[-2000:].replace("\n", "\n# "))
            daemon.kill()
        reader.daemons = {}
        raise
    finally:
        reader.stop()


@test("its flags are kotad's, with their defaults")
def _():
    said = subprocess.run([KOTAD, "--help=table"], stdout=subprocess.PIPE, env=clean_environment(), check=True)
    table = [line.split("\t") for line in said.stdout.decode().splitlines()]
    flags = {name: example for _, name, _, _, example, _, _ in table}
    named = set(re.findall(r"`--([a-z-]+)", TEXT))
    for name in named:
        check(name in flags, f"there is no --{name}")
    rows = re.findall(r"(?m)^\| `--([a-z-]+) [^|]*\| ([^|]*) \|", TEXT)
    equal({name for name, _ in rows} & named, {name for name, _ in rows}, "rows")
    for name, default in rows:
        if re.fullmatch(r"\d+", default):
            equal(flags[name], default, f"--{name}")


@test("its metrics are in docs/metrics.md, its files are there")
def _():
    with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as file:
        known = file.read()
    for name in set(re.findall(r"`(kota_cluster_\w+)`", TEXT)):
        check(f"`{name}`" in known or f"`{name}{{" in known, f"there is no {name}")
    for path in re.findall(r"\]\(([^)#]+)", TEXT):
        check(os.path.exists(os.path.join(ROOT, "docs", path)), f"there is no {path}")


run()
