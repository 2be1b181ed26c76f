"""What the tests of documents share: `console` blocks, their commands, and the demo world."""
import os
import re
import subprocess
import tempfile

from daemon import BIN_DIR, ROOT

BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def commands(block):
    """[(command, output)] of one block."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


def demo_world():
    """The demo world, made anew unless `make run` has left one."""
    folder = os.path.join(ROOT, "build", "demo")
    if not os.path.exists(folder + ".made"):
        folder = os.path.join(tempfile.mkdtemp(prefix="kota-readme-"), "demo")
        subprocess.run([os.path.join(BIN_DIR, "kota-worldgen"), "demo", folder], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder
