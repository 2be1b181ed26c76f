"""The README tells the truth: each `console` block is run, and its output compared.

Lines that begin with `$ ` are commands; what follows one is its output. The daemon of a block is the
demo world's, or the one that the block itself starts with `kotad`. `python3 tests/api/test_readme.py
--write` puts the true outputs into the README.
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

from daemon import BIN_DIR, ROOT, Daemon, clean_environment, data_path
from pages import BLOCK, commands, demo_world
from tap import Skip, equal, run, test

README = os.path.join(ROOT, "README.md")
URL = "http://127.0.0.1:7420"
PLACES = ("/var/lib/kota", "/var/backups/kota")  # in the README; folders of the test's own here


def url(daemon):
    return f"http://127.0.0.1:{daemon.port}"


def daemon_of(block, places):
    """What the block's own kotad line starts, else None; its data is put elsewhere (places)."""
    for command, _ in commands(block):
        words = shlex.split(command)
        if words[0] != "build/release/kotad" or "--check" in words:
            continue
        if words[1] == "--data":
            folder = tempfile.mkdtemp(prefix="kota-readme-")
            places.update((place, folder + place) for place in PLACES)
            os.makedirs(places[PLACES[1]])
            return Daemon("--data", places[words[2]], "--world", demo_world())
        return Daemon(data_path("rasters", "srtm3_" + words[1].split(".")[0], words[1]))
    return None


def output_of(daemon, command, places):
    """One line for each line that the command prints; the daemon's own start prints nothing here."""
    if command.startswith("build/release/kotad") and "--check" not in command:
        return ""
    for place, folder in places.items():
        command = command.replace(place, folder)
    command = command.replace(URL, url(daemon)).replace("curl ", "curl -sS ")
    command = command.replace("build/release/", BIN_DIR + "/")
    environment = clean_environment({"KOTA_URL": url(daemon), "KOTA_BIN_DIR": BIN_DIR})
    done = subprocess.run(["sh", "-c", command], env=environment, cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=600, check=False)
    output = done.stdout.decode().rstrip("\n").replace(url(daemon), URL)
    for place, folder in places.items():
        output = output.replace(folder, place)
    return output


def true_block(demo, block):
    """The block with the outputs that its commands give now."""
    places = {}
    own = daemon_of(block, places)
    lines = []
    for command, _ in commands(block):
        lines.append("$ " + command)
        output = output_of(own or demo, command, places)
        lines += [output] if output else []
    if own:
        own.stop()
    for folder in places.values():
        shutil.rmtree(folder, ignore_errors=True)
    return "\n".join(lines) + "\n"


def blocks():
    with open(README, encoding="utf-8") as file:
        return BLOCK.findall(file.read())


def needs_curl():
    if subprocess.run(["sh", "-c", "command -v curl"], stdout=subprocess.DEVNULL,
                      check=False).returncode:
        raise Skip("curl is not installed")


DEMO = None


def demo_daemon():
    global DEMO  # started once, by the first test that asks
    if DEMO is None:
        DEMO = Daemon("--world", demo_world())
    return DEMO


def write():
    demo = demo_daemon()
    with open(README, encoding="utf-8") as file:
        text = file.read()
    text = BLOCK.sub(lambda match: "```console\n" + true_block(demo, match.group(1)) + "```", text)
    with open(README, "w", encoding="utf-8") as file:
        file.write(text)
    demo.stop()


def define(number, block):
    @test(f"README, example {number}: {commands(block)[0][0][:60]}")
    def _():
        needs_curl()
        equal(true_block(demo_daemon(), block), block, "the block with its true outputs")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
        sys.exit(0)
    for index, text_of_block in enumerate(blocks()):
        define(index + 1, text_of_block)
    run(finish=lambda: DEMO.stop() if DEMO else None)
