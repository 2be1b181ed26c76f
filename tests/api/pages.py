"""What the tests of documents share: `console` blocks, their commands, and the demo world."""
import os
import re
import subprocess
import tempfile

from daemon import BIN_DIR, ROOT, Daemon

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


class Demo:
    """A daemon of the demo world for a whole program, started at the first use."""

    def __init__(self):
        self.daemon = None

    @property
    def url(self):
        if self.daemon is None:
            self.daemon = Daemon("--world", demo_world())
        return self.daemon.url

    def stop(self):
        if self.daemon:
            self.daemon.stop()
