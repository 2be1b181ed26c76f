"""What the programs and clients have in common: exit codes, time-outs, tries, keys."""
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from daemon import Daemon
from kota_cli import Stub, kota, reply
from tap import HANG_S, case, check, equal, run, test

sys.path.insert(0, os.path.join("client", "python"))
from kota import Client  # noqa: E402, pylint: disable=wrong-import-position

BUILD = os.environ.get("KOTA_BUILD", "build/release")
daemon = Daemon()


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def found(path, pattern):
    match = re.search(pattern, read(path))
    check(match, f"{path} has no {pattern}")
    return float(match[1])


def rows(path, first):
    """The rows of the table whose rows begin with `first`, as lists of cells."""
    return [[cell.strip() for cell in line.strip("|").split("|")]
            for line in read(path).split("\n") if re.match(rf"\| {first}", line)]


@test("the four clients have the defaults that the table says")
def _():
    python = inspect.signature(Client.__init__).parameters
    script = "client/web/kota.js"
    real = {
        "time of a whole call": [found("client/lib/client.c", r"\.timeout_s = (\d+)"),
                                 found(script, r"options\.timeoutMs \?\? (\d+)") / 1000,
                                 python["timeout_s"].default,
                                 found("client/kota.c", r'DEFAULT_TIMEOUT "(\d+)"')],
        "tries of a call": [found("client/lib/client.c", r"\.tries_max = (\d+)"),
                            found(script, r"options\.triesMax \?\? (\d+)"),
                            python["tries_max"].default,
                            found("client/lib/client.c", r"\.tries_max = (\d+)")],  # kota uses libkota
        "silence after which": [found("client/lib/client.c", r"\.silence_s = (\d+)"),
                                found(script, r"options\.silenceMs \?\? (\d+)") / 1000,
                                python["silence_s"].default,
                                found("client/call.h", r"CALL_SILENCE_S (\d+)")],
    }
    for name, values in real.items():
        told = rows("docs/errors.md", name)[0][1:]
        equal([float(cell.split()[0]) for cell in told], [float(v) for v in values], name)


C_EDIT = """
#include <kota.h>
int main(int argc, char **argv)
{
    struct kota_options options;
    struct kota_client *client;
    struct kota_answer *answer;
    int done;

    kota_options_init(&options, sizeof(options));
    options.url = argc > 1 ? argv[1] : "";
    client = kota_open(&options);
    answer = kota_call(client, kota_edit_brush("a", KOTA_RAISE, 1, 1, 1, 1));
    done = kota_answer_error(answer) != 0;
    kota_answer_free(answer);
    kota_close(client, 0, 0);
    return done;
}
"""
BRUSH = {"brush": {"shape": "raise", "center": [1, 1], "radius": 1, "amount": 1}}


def compiled(folder):
    lib = os.path.abspath(os.path.join(BUILD, "lib"))
    with open(folder + "/edit.c", "w", encoding="utf-8") as file:
        file.write(C_EDIT)
    subprocess.run(["cc", folder + "/edit.c", "-Iclient/lib", f"-L{lib}", f"-Wl,-rpath,{lib}", "-lkota", "-o",
                    folder + "/edit"], check=True)
    return [folder + "/edit"]


def edits(folder, url):
    """{client: a function that makes one edit at url}, each with its defaults."""
    def ran(*command):
        return subprocess.run(command, check=True, timeout=HANG_S, stdout=subprocess.DEVNULL)

    script = f'import {{ Kota }} from "{os.path.abspath("client/web/kota.js")}";' \
        f'await new Kota("{url}").edit("a", {json.dumps(BRUSH)});'
    def by_python():
        client = Client(url)
        client.edit_brush("a", **BRUSH["brush"])
        client.close()

    found = {"libkota": lambda: ran(*compiled(folder), url), "Python": by_python,
             "kota": lambda: ran(os.path.join(BUILD, "kota"), "--url", url, "edit", "a", "--brush", "raise",
                                 "--center", "1,1", "--radius", "1", "--amount", "1")}
    if shutil.which("node"):
        found["kota.js"] = lambda: ran("node", "--input-type=module", "-e", script)
    return found


@test("each client sends a write without an answer again, under one key of its own making")
def _():
    keys, lost = [], []

    def answer(request):
        keys.append(request.headers.get("idempotency-key"))
        return None if len(keys) % 2 else reply({"locale": "a", "revision": 2, "rect": [0, 0, 1, 1]})

    with tempfile.TemporaryDirectory() as folder, Stub(answer) as stub:
        for name, make in edits(folder, stub.url).items():
            make()
            equal(len(keys) % 2, 0, f"requests of {name}: {keys}")
            check(keys[-1] and keys[-1] == keys[-2], f"{name}: {keys[-2:]}")
            lost.append(keys[-1])
    equal(len(set(lost)), len(lost), "keys of all writes")


def ends(status, *command):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([os.path.join(BUILD, command[0]),
                               *(word.replace("{}", folder) for word in command[1:])],
                              capture_output=True, text=True, timeout=HANG_S, check=False)
    equal(done.returncode, status, f"{command}: {done.stdout[-200:]} {done.stderr[-300:]}")
    check(status == 0 or done.stderr.strip() or done.stdout.strip(), "not a word")
    if command[0] == "kotad" and status != 0:  # one form for all: the log's
        said = [line for line in map(json.loads, done.stderr.splitlines()) if line["level"] == "error"]
        equal(len(said), 1, f"errors of {done.stderr}")
        check(re.match(r"kotad (does not start|is not ready): .", said[0]["message"]), f"{said}")


URL = f"http://127.0.0.1:{daemon.port}"
for status_, command_ in (
        (0, ("kota", "--url", URL, "ls")), (1, ("kota", "--url", URL, "info", "nope")),
        (2, ("kota", "fly")), (2, ("kota", "--url", URL, "height", "nope", "1,nan")),
        (0, ("kotad", "--version")), (2, ("kotad", "--nope")),
        (2, ("kotad", "--listen", "0.0.0.0:0")), (2, ("kotad", "--check")),
        (2, ("kotad", "--listen", "127.0.0.1:0", "--token-file", "{}/none")),
        (2, ("kotad", "--listen", "127.0.0.1:0", "--config", "{}/none")),
        (2, ("kotad", "--listen", "127.0.0.1:0", "--cluster", "postgresql://127.0.0.1:1/x")),
        (1, ("kotad", "--listen", f"127.0.0.1:{daemon.port}")),
        (1, ("kotad", "--check", "--data", "{}/none")),
        (1, ("kotad", "--healthcheck", "--listen", "127.0.0.1:1")),
        (2, ("kota-worldgen",)), (2, ("kota-worldgen", "demo")),
        (1, ("kota-worldgen", "enlarge", "{}/none.png", "{}/out.f32", "64")),
        (2, ("kota-sand",)), (2, ("kota-sand", "scene", "nope")), (0, ("kota-sand", "--help"))):
    case(f"{' '.join(command_)} ends with {status_}", ends, status_, *command_)


@test("the exit codes are in one header, one table, both manuals")
def _():
    codes = re.findall(r"EXIT_\w+ = (\d)", read("server/base/exit_code.h"))
    equal(codes, ["0", "1", "2"], "codes")
    for code in codes:
        equal(len(rows("docs/command-line.md", code)), 1, f"rows of {code}")
        check(re.search(rf"\b{code} when|^0 after", read("docs/man/kotad.8"), re.M), "kotad.8")


@test("a misspelt command of kota is guessed at")
def _():
    for word, guess in (("hieght", "height"), ("contct", "contact"), ("lss", "ls")):
        said = kota(word).err
        check(f"did you mean {guess}?" in said, said)
    check("did you mean" not in kota("fly").err, "a guess at nothing near")


run(daemon.stop)
