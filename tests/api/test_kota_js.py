"""client/web/kota.js: asked in Node against a real daemon, and checked by the TypeScript compiler.

Needs Node 18 or later; the check needs typescript (npm ci in tests/web). Skipped without, with the
reason.
"""
import os
import re
import shutil
import subprocess
import tempfile

from daemon import ROOT, Daemon, trusting
from schema import contract
from tap import HANG_S, Skip, case, check, run, test

NODE_MIN = 18
node = shutil.which("node")
output = {}


def need_node():
    if not node:
        raise Skip("no node (deploy/install-deps.sh test)")
    said = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    if int(said.lstrip("v").split(".")[0] or 0) < NODE_MIN:
        raise Skip(f"node {said} is older than {NODE_MIN}")


@test("the client runs in Node, against the world of the examples")
def _():
    need_node()
    world = contract()["x-kota-world"]
    with Daemon("--gpu", "cpu") as daemon:
        for request in world:
            answer = daemon.ask(request["method"], request["path"], request["body"],
                                media=request["content-type"])
            check(answer.status in (200, 201), f"{request['path']}: {answer}")
        done = subprocess.run([node, os.path.join("tests", "web", "client.mjs")], cwd=ROOT,
                              capture_output=True, text=True, timeout=HANG_S,
                              env={**os.environ, **trusting(daemon.url), "KOTA_URL": daemon.url,
                                   "KOTA_TOKEN": daemon.front.token if daemon.front else ""})
    for line in done.stdout.splitlines():
        found = re.match(r"(ok|not ok) \d+ - (.*)", line)
        if found:
            output[found[2]] = [found[1]]
        elif output:
            output[list(output)[-1]].append(line)
    check(len(output) > 10 or done.returncode == 0, f"{done.stdout}{done.stderr}")


def passed(name):
    need_node()
    check(output.get(name, ["not run"])[0] == "ok", "\n".join(output.get(name, ["not run"])))


with open(os.path.join(ROOT, "tests", "web", "client.mjs"), encoding="utf-8") as file:
    for name_ in re.findall(r'^test\("(.*?)", async', file.read(), re.M):
        case(name_, passed, name_)


def tsc(*words):
    need_node()
    compiler = os.path.join(ROOT, "tests", "web", "node_modules", "typescript", "bin", "tsc")
    if not os.path.exists(compiler):
        raise Skip("no typescript: run `npm ci` in tests/web")
    done = subprocess.run([node, compiler, "-p", *words], cwd=ROOT, capture_output=True, text=True,
                          timeout=HANG_S)
    check(done.returncode == 0, done.stdout + done.stderr)


@test("npm pack takes client/web as it is, at the version of kota.h")
def _():
    need_node()
    with open(os.path.join(ROOT, "client", "lib", "kota.h"), encoding="utf-8") as file:
        version = ".".join(re.findall(r"define KOTA_VERSION_\w+ (\d+)", file.read()))
    done = subprocess.run(["npm", "pack", "--dry-run", "--offline"], capture_output=True, text=True,
                          cwd=os.path.join(ROOT, "client", "web"), timeout=HANG_S)
    check(done.stdout.split()[-1:] == [f"kota-client-{version}.tgz"], done.stdout + done.stderr)


@test("its types hold (tsc --checkJs --strict), and client/web/types is what `make types` writes")
def _():
    with tempfile.TemporaryDirectory(prefix="kota-types-") as folder:
        tsc("tests/web/types.json", "--outDir", folder)
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name)) as made, \
                    open(os.path.join(ROOT, "client", "web", "types", name)) as committed:
                check(made.read() == committed.read(), f"client/web/types/{name} is old: run `make types`")
        check(len(os.listdir(folder)) == 7, f"{os.listdir(folder)}")


run()
