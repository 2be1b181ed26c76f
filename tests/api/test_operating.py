"""docs/operating.md tells the truth: each `console` block is run, and its output compared.

A line `$ build/release/kotad …` without --check or --version starts the daemon of what follows, and ends
the one before it. Its folders and ports are the test's own. `…` in an output stands for anything.
"""
import os
import re
import shlex
import shutil
import subprocess
import tempfile

from daemon import BIN_DIR, ROOT, Daemon, clean_environment
from tap import Skip, case, check, equal, run
from pages import BLOCK, commands, demo_world

PAGE = os.path.join(ROOT, "docs", "operating.md")
PLACES = ("/var/lib/kota-restored", "/var/lib/kota", "/var/backups/kota", "/srv/world", "/etc/kota.tokens")
OPS, MAIN = "http://127.0.0.1:7421", "http://127.0.0.1:7420"
folder = tempfile.mkdtemp(prefix="kota-test-")
daemons = []  # the one that runs, if any


def place(text):
    """The page's folders are the test's own; the longest names first, in one pass."""
    return re.sub("|".join(map(re.escape, PLACES)), lambda match: folder + match.group(), text)


def end():
    while daemons:
        daemons.pop().stop()


def start(command):
    end()
    words = [place(word) for word in shlex.split(command)[1:]]
    ops_file = os.path.join(folder, "ops-port")
    if os.path.exists(ops_file):
        os.remove(ops_file)
    check(words[words.index("--ops-listen") + 1] == "127.0.0.1:7421", f"which port? {command}")
    words[words.index("--ops-listen") + 1] = "127.0.0.1:0"
    daemons.append(Daemon(*words, "--ops-port-file", ops_file))
    with open(ops_file) as file:
        daemons[0].ops = f"http://127.0.0.1:{int(file.read())}"


def output_of(command):
    daemon = daemons[0]
    own = f"http://127.0.0.1:{daemon.port}"
    text = place(command).replace(OPS, daemon.ops).replace(MAIN, own)
    text = text.replace("$(pidof -s kotad)", str(daemon.process.pid))
    text = text.replace("build/release/", BIN_DIR + "/")
    for word in ("sqlite3", "promtool"):
        if text.startswith(word + " ") and not shutil.which(word):
            raise Skip(f"no {word}")
    done = subprocess.run(["sh", "-c", text], cwd=ROOT, stdout=subprocess.PIPE, timeout=300,
                          env=clean_environment({"KOTA_URL": own}), stderr=subprocess.STDOUT,
                          check=False)
    got = done.stdout.decode().rstrip("\n").replace(folder, "")
    equal(done.returncode, 0, f"exit status of {command}: {got[-1000:]}")
    return got


def block_is_true(block):
    for command, want in commands(block):
        if command.startswith("build/release/kotad ") and not re.search("--check|--version", command):
            start(command)
            continue
        got = output_of(command)
        pattern = ".*".join(map(re.escape, want.split("…")))
        check(re.fullmatch(pattern, got, re.DOTALL),
              f"{command}\nprinted\n{got[-1500:]}\nand the page says\n{want}")


def no_other_commands():
    """What looks like a command stands in a console block, so that it is run."""
    with open(PAGE) as file:
        rest = BLOCK.sub("", file.read())
    check("```" not in rest, "a block that is not `console`")


def finish():
    end()
    shutil.rmtree(folder, ignore_errors=True)


os.makedirs(folder + "/srv")
os.makedirs(folder + "/etc")
os.symlink(demo_world(), folder + "/srv/world")
with open(PAGE) as page:
    for number, block_ in enumerate(BLOCK.findall(page.read()), 1):
        first = commands(block_)[0][0]
        case(f"block {number}: {first[:70]}", block_is_true, block_)
case("every block is one that is run", no_other_commands)
run(finish)
