"""docs/compat.md: each of its commands is run by a shell, and answers."""
import json
import os
import re
import shutil
import subprocess

from daemon import ROOT, Daemon
from tap import Skip, case, check, equal, run, test

daemon = Daemon()
with open(os.path.join(ROOT, "docs", "compat.md"), encoding="utf-8") as file:
    page = file.read()
BLOCKS = re.findall(r"```sh\n(.*?)```", page, re.S)


def commands(block):
    """One a line, with what a backslash or a pipe continues."""
    joined = block.replace("\\\n", " ").replace("|\n", "| ")
    return [line.strip() for line in joined.splitlines() if line.strip()]


def answered(command):
    if not shutil.which("curl"):
        raise Skip("no curl")
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "KOTA": f"http://127.0.0.1:{daemon.port}"})
    check(done.returncode == 0, f"{command}: {done.returncode} {done.stderr}")
    said = json.loads(done.stdout)
    if "/compat/" in command and "91,0" not in command:
        equal(said["status"], "OK", command)
        check(all(item["elevation"] is not None for item in said["results"]), f"{command}: {said}")
    elif "/compat/" in command:
        equal(said["status"], "INVALID_REQUEST", command)


@test("the page has its commands")
def _():
    check(sum(len(commands(block)) for block in BLOCKS) >= 8, f"{BLOCKS}")


for block_ in BLOCKS:
    for command_ in commands(block_):
        case(f"{command_[:70]}", answered, command_)


run(daemon.stop)
