"""docs/command-line.md tells the truth: its console blocks are run in their order, in one folder, on
one demo world; `console terminal` blocks with a terminal as standard output. `--write` renews them.
"""
import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios

from daemon import BIN_DIR, ROOT, clean_environment
from kota_cli import HANG_SECONDS
from pages import Demo, commands
from tap import Skip, case, check, equal, run, test

PAGE = os.path.join(ROOT, "docs", "command-line.md")
BLOCK = re.compile(r"```console( terminal)?\n(.*?)```", re.DOTALL)
FOLDER = tempfile.mkdtemp(prefix="kota-command-line-")
demo = Demo()


def environment():
    return clean_environment({"KOTA_URL": demo.url, "LC_ALL": "C.UTF-8",
                              "PATH": os.path.abspath(BIN_DIR) + ":" + os.environ["PATH"]})


def in_pipe(command):
    done = subprocess.run(["sh", "-c", command], env=environment(), cwd=FOLDER, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=HANG_SECONDS)
    return done.stdout.decode()


def on_terminal(command):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
    process = subprocess.Popen(["sh", "-c", command], env=environment(), cwd=FOLDER, stdin=slave,
                               stdout=slave, stderr=subprocess.PIPE)
    os.close(slave)
    out = b""
    while True:
        try:
            more = os.read(master, 1 << 16)
        except OSError:
            break
        if not more:
            break
        out += more
    os.close(master)
    said = process.stderr.read()
    equal((process.wait(timeout=HANG_SECONDS), said), (0, b""), command)
    return out.decode().replace("\r\n", "\n")


def true_block(terminal, block):
    lines = []
    for command, _ in commands(block):
        if command.startswith("gdal") and not shutil.which("gdal_translate"):
            raise Skip("no gdal_translate (gdal-bin)")
        output = (on_terminal if terminal else in_pipe)(command).rstrip("\n")
        output = output.replace(demo.url, "http://127.0.0.1:7420")
        lines += ["$ " + command] + ([output] if output else [])
    return "\n".join(lines) + "\n"


def page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def is_true(terminal, block):
    equal(true_block(terminal, block), block, "the block with its true outputs")


def write():
    text = BLOCK.sub(lambda match: f"```console{match.group(1) or ''}\n"
                     + true_block(match.group(1), match.group(2)) + "```", page())
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(text)
    finish()


@test("every command and only commands stand in the page's table")
def _():
    help_text = in_pipe("kota --help").split("\nOptions")[0]
    want = set(re.findall(r"^  ([a-z]+) ", help_text, re.M))
    row = re.search(r"^\| `ls`.*$", page(), re.M).group(0)
    equal(set(re.findall(r"`([a-z]+)`", row)), want, "commands")


@test("the options of the blocks that are not run exist")
def _():
    for line in re.findall(r"^kota ([a-z]+)(.*)$", "\n".join(re.findall(r"```sh\n(.*?)```", page(), re.DOTALL)),
                           re.M):
        text = in_pipe(f"kota {line[0]} --help")
        for option in re.findall(r"--[a-z-]+", line[1]):
            check(option in text, f"kota {line[0]} has no {option}")


def finish():
    demo.stop()
    shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
        sys.exit(0)
    for terminal_, block_ in BLOCK.findall(page()):
        case(f"example: {commands(block_)[0][0][:60]}", is_true, terminal_, block_)
    run(finish)
