"""The scripts of deploy/: install-deps.sh with stand-ins for apt, serve.sh with the real daemon and
with stand-ins that die or refuse.
"""
import array
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time

from daemon import BIN_DIR, ROOT, SLOW, clean_environment
from tap import Failure, check, equal, run, test

INSTALL = os.path.join(ROOT, "deploy", "install-deps.sh")
SERVE = os.path.join(ROOT, "deploy", "serve.sh")
WAIT_SECONDS = 120 * SLOW


def write_script(path, text):
    with open(path, "w") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


# ---- install-deps.sh -----------------------------------------------------------------------------

BUILD = ["gcc", "libc6-dev", "make", "pkg-config", "libuv1-dev", "libcjson-dev", "libpng-dev",
         "libtiff-dev", "libassimp-dev", "libsqlite3-dev", "zlib1g-dev", "libzstd-dev", "libssl-dev",
         "libcurl4-openssl-dev", "libegl-dev",
         "libgl-dev", "libepoxy-dev", "libpq-dev", "python3", "python3-yaml"]


class Apt:
    """A PATH of its own with stand-ins; what is installed and known are files."""

    def __init__(self, installed=(), known=(), uid=0, has_sudo=True, update_works=True):
        self.folder = tempfile.mkdtemp(prefix="kota-test-")
        self.state = {}
        for name, lines in (("installed", installed), ("known", known), ("calls", ())):
            self.state[name] = os.path.join(self.folder, name)
            with open(self.state[name], "w") as file:
                file.writelines(line + "\n" for line in lines)
        tools = os.path.join(self.folder, "bin")
        os.mkdir(tools)
        for tool in ("sh", "awk", "cat", "env", "grep", "head", "sed", "sort", "tr"):
            os.symlink(shutil.which(tool), os.path.join(tools, tool))
        here = self.folder
        write_script(f"{tools}/id", f"echo {uid}\n")
        write_script(f"{tools}/dpkg-query", f'''
for package; do :; done
grep -qx "$package" {here}/installed && echo installed
''')
        write_script(f"{tools}/apt-cache", f'''
[ "$1" = policy ] || exit 0
grep -qx "$2" {here}/known && printf '%s:\\n  Candidate: 1.0\\n' "$2"
''')
        write_script(f"{tools}/apt-get", f'''
echo "apt-get $* frontend=$DEBIAN_FRONTEND" >> {here}/calls
case "$*" in
*update) exit {0 if update_works else 100} ;;
*install*) for word; do
    case $word in -*|install) ;; *=*) ;;
    *) grep -qx "$word" {here}/known || exit 100; echo "$word" >> {here}/installed ;;
    esac
done ;;
esac
''')
        if has_sudo:
            write_script(f"{tools}/sudo", f'echo sudo >> {here}/calls\nexec "$@"\n')
        self.environment = {"PATH": tools}

    def run(self, *args):
        done = subprocess.run([shutil.which("sh"), INSTALL, *args], env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              stdin=subprocess.DEVNULL, timeout=WAIT_SECONDS)
        return done.returncode, done.stdout

    def read(self, name):
        with open(self.state[name]) as file:
            return file.read().split("\n")[:-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)


@test("install-deps.sh does nothing and says so when all is there")
def deps_all_there():
    with Apt(installed=BUILD + ["node-llhttp"], uid=1000, has_sudo=False) as apt:
        status, text = apt.run()
        equal((status, text), (0, "install-deps: everything for build is installed\n"), "outcome")
        equal(apt.read("calls"), [], "calls")


@test("install-deps.sh installs what is missing and nothing else")
def deps_missing():
    with Apt(installed=BUILD[1:], known=["gcc", "node-llhttp", "make"]) as apt:
        status, text = apt.run("build")
        equal(status, 0, text)
        calls = apt.read("calls")
        equal(len(calls), 2, "calls")
        check(calls[0].endswith("update frontend=noninteractive"), calls[0])
        check(re.search(r"install --no-install-recommends gcc node-llhttp frontend=noninteractive$",
                        calls[1]), calls[1])
        equal(apt.run("build")[1], "install-deps: everything for build is installed\n", "again")
        equal(apt.read("calls"), calls, "calls of the second run")


@test("install-deps.sh prefers libllhttp-dev where the distribution has it, and takes either")
def deps_llhttp():
    with Apt(installed=BUILD, known=["libllhttp-dev", "node-llhttp"]) as apt:
        equal(apt.run()[0], 0, "status")
        check(" libllhttp-dev frontend" in apt.read("calls")[-1], apt.read("calls")[-1])
    for name in ("libllhttp-dev", "node-llhttp"):
        with Apt(installed=BUILD + [name], known=["libllhttp-dev"]) as apt:
            equal(apt.run()[0], 0, "status")
            equal(apt.read("calls"), [], f"calls with {name}")


@test("install-deps.sh --check installs nothing and says what is missing")
def deps_check():
    with Apt(installed=BUILD + ["node-llhttp"]) as apt:
        status, text = apt.run("--check", "build", "test")
        equal(status, 1, "status")
        check(re.match(r"install-deps: missing for build test: .*\blibcmocka-dev\b.*\n$", text), text)
        check("gcc" not in text and "llhttp" not in text, text)
        equal(apt.read("calls"), [], "calls")
        equal(apt.run("--check")[0], 0, "status for build alone")


@test("install-deps.sh takes a node, npm and chromium that are in PATH, and wants them otherwise")
def deps_browser():
    others = ["libcmocka-dev", "python3-venv", "curl", "sqlite3", "libegl1", "libgl1-mesa-dri", "valgrind", "tmux",
              "mandoc", "zsh", "fish", "postgresql", "glslang-tools", "gdal-bin", "python3-rasterio", "g++", "libbullet-dev",
              "libode-dev", "clang", "lld", "wasi-libc"]
    with Apt(installed=BUILD + others) as apt:
        status, text = apt.run("--check", "test")
        check(status == 1 and "nodejs" in text and "npm" in text, text)
        for name in ("node", "npm", "chromium"):
            write_script(os.path.join(apt.environment["PATH"], name), "exit 1\n")
        equal(apt.run("--check", "test"), (0, "install-deps: everything for test is installed\n"),
              "with them")


@test("install-deps.sh uses sudo when it is not root, and says so when there is none")
def deps_sudo():
    with Apt(installed=BUILD, known=["node-llhttp"], uid=1000) as apt:
        equal(apt.run()[0], 0, "status")
        equal(apt.read("calls")[0], "sudo", "first call")
        check("frontend=noninteractive" in apt.read("calls")[1], apt.read("calls")[1])
    with Apt(installed=BUILD, known=["node-llhttp"], uid=1000, has_sudo=False) as apt:
        status, text = apt.run()
        equal(status, 1, "status")
        check("neither root nor sudo" in text and "node-llhttp" in text, text)
        equal(apt.read("calls"), [], "calls")


@test("install-deps.sh goes on when apt-get update fails, and fails when the install does")
def deps_update_fails():
    with Apt(installed=BUILD, known=["node-llhttp"], update_works=False) as apt:
        status, text = apt.run()
        equal(status, 0, text)
        check("going on" in text, text)
    with Apt(installed=BUILD, known=[]) as apt:
        status, text = apt.run()
        equal(status, 1, text)
        check("could not install: libllhttp-dev" in text, text)


@test("install-deps.sh without apt names what to install by hand")
def deps_no_apt():
    with Apt() as apt:
        os.remove(os.path.join(apt.folder, "bin", "dpkg-query"))
        status, text = apt.run()
        equal(status, 1, "status")
        check("libuv" in text and "by hand" in text, text)


@test("install-deps.sh refuses a part that it does not know")
def deps_unknown():
    with Apt() as apt:
        status, text = apt.run("everything")
        equal((status, text.startswith("usage:")), (2, True), text)


# ---- serve.sh ------------------------------------------------------------------------------------

class Serving:
    """deploy/serve.sh with its output in a file."""

    def __init__(self, build=BIN_DIR, **settings):
        self.folder = tempfile.mkdtemp(prefix="kota-test-")
        self.path = os.path.join(self.folder, "out")
        environment = clean_environment({"TMPDIR": self.folder, **settings})
        for name in ("WORLD", "LISTEN", "PORT", "ARGS", "DEFAULT_PORT"):
            if name not in settings:
                environment.pop(name, None)
        with open(self.path, "wb") as out:
            self.process = subprocess.Popen([SERVE, build], env=environment, cwd=ROOT, stdout=out,
                                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def text(self):
        with open(self.path, "rb") as file:
            return file.read().decode("utf-8", "replace")

    def wait_for(self, pattern):
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            match = re.search(pattern, self.text())
            if match:
                return match
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise Failure(f"serve.sh never said {pattern!r}:\n{self.text()[-3000:]}")

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.wait()

    def wait(self):
        try:
            return self.process.wait(timeout=WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"serve.sh does not end:\n{self.text()[-3000:]}") from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            self.wait()
        shutil.rmtree(self.folder)


def make_world(folder):
    """A world directory with one sloping locale `slope`."""
    place = os.path.join(folder, "slope")
    os.makedirs(place)
    with open(os.path.join(place, "ground.f32"), "wb") as file:
        array.array("f", (c + r / 2 for r in range(33) for c in range(33))).tofile(file)
    with open(os.path.join(place, "locale.json"), "w") as file:
        json.dump({"title": "A slope", "layers": [{"id": "ground", "file": "ground.f32", "cols": 33,
                                                   "rows": 33, "spacing": [5, 5]}]}, file)
    return folder


@test("serve.sh starts a world directory, asks it aloud, serves, and ends as the daemon does")
def serve_world():
    with tempfile.TemporaryDirectory() as folder:
        with Serving(WORLD=make_world(folder), LISTEN="127.0.0.1:0") as serving:
            said = serving.wait_for(r"kotad serves \S+ at (http://127\.0\.0\.1:\d+) - Ctrl-C")
            url = said.group(1)
            text = serving.text()
            for command in ("ls", "height slope 80,80", "ray slope 80,0,", "pick slope --eye "):
                check(re.search(rf"^\$ KOTA_URL={url} \S+/kota {re.escape(command)}", text, re.M),
                      f"did not ask {command!r}:\n{text}")
            check('"status":"ok","height":24' in text, f"no true height:\n{text}")
            equal(text.count('"status":"hit"'), 2, f"hits\n{text}")
            equal(serving.end(), 0, f"exit status\n{serving.text()}")
            equal(os.listdir(serving.folder), ["out"], "files left behind")


@test("serve.sh starts on a single elevation file")
def serve_file():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "hill.asc")
        with open(path, "w") as file:
            file.write("ncols 3\nnrows 3\nxllcorner 0\nyllcorner 0\ncellsize 10\n"
                       "1 2 3\n4 5 6\n7 8 9\n")
        with Serving(WORLD=path, LISTEN="127.0.0.1:0") as serving:
            serving.wait_for("kotad serves")
            check('"id":"hill"' in serving.text(), serving.text())
            equal(serving.end(signal.SIGINT), 0, "exit status")


@test("serve.sh uses a free port when the default one is taken, and says so")
def serve_taken():
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with Serving(WORLD=make_world(folder), DEFAULT_PORT=port) as serving:
            serving.wait_for(rf"Port {port} is taken")
            other = serving.wait_for(r"kotad serves \S+ at http://127\.0\.0\.1:(\d+)").group(1)
            check(other != port, f"serves on the taken port {port}")
            equal(serving.end(), 0, "exit status")
        for settings in ({"PORT": port}, {"LISTEN": f"127.0.0.1:{port}"}):
            with Serving(WORLD=folder, **settings) as serving:
                equal(serving.wait(), 1, f"exit status with {settings}")
                check(f"port {port} is taken" in serving.text(), serving.text())


@test("deploy/run says what it takes when it is given a flag of kotad")
def run_flag():
    done = subprocess.run(["sh", os.path.join(ROOT, "deploy", "run"), "--port", "0"], capture_output=True, text=True)
    equal((done.returncode, done.stdout), (2, ""), "status and output")
    check("does not take --port" in done.stderr and "LISTEN=127.0.0.1:0" in done.stderr, done.stderr)


@test("serve.sh refuses a world that is not there")
def serve_nothing():
    with Serving(WORLD="/nonexistent/world", LISTEN="127.0.0.1:0") as serving:
        equal(serving.wait(), 1, "exit status")
        check("/nonexistent/world is neither" in serving.text(), serving.text())


@test("serve.sh ends with the daemon's own status when it dies before it serves")
def serve_early_death():
    with tempfile.TemporaryDirectory() as folder:
        write_script(os.path.join(folder, "kotad"), 'echo "cannot: $*"\nexit 7\n')
        with Serving(build=folder, WORLD=folder, LISTEN="127.0.0.1:0",
                     ARGS="--loops 1") as serving:
            equal(serving.wait(), 7, "exit status")
            check(f"cannot: --listen 127.0.0.1:0 --port-file" in serving.text(), serving.text())
            check(f"--loops 1 --world {folder}" in serving.text(), serving.text())
            check("serves" not in serving.text(), serving.text())


@test("serve.sh hands signals on and waits for a daemon that takes its time")
def serve_signals():
    with tempfile.TemporaryDirectory() as folder:
        write_script(os.path.join(folder, "kotad"), '''
while [ $# -gt 0 ]; do [ "$1" != --port-file ] || file=$2; shift; done
trap 'trap : TERM; echo draining; sleep 0.5; echo drained; exit 3' TERM
echo 1 > "$file"
while :; do sleep 0.1; done
''')
        write_script(os.path.join(folder, "kota"), "exit 1\n")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with Serving(build=folder, WORLD=folder, LISTEN="127.0.0.1:0") as serving:
                serving.wait_for("kotad serves")
                equal(serving.end(number), 3, f"exit status after {number!r}")
                check("drained" in serving.text(), serving.text())


run()
