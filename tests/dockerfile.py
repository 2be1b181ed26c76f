"""Runs a Dockerfile without a container engine: each stage in a root of its own, by chroot.

    python3 tests/dockerfile.py --base DIR [--work DIR] [--check] [DOCKERFILE] [CONTEXT]

--base   a minimal Debian, as debootstrap makes it; every `FROM debian:…` begins with a copy of it
--work   where the roots are made (default: a temporary folder, removed at the end)
--check  builds nothing: says whether every instruction is one that this runner knows

The Dockerfile itself is read, so that what is tested cannot drift from what is shipped. What the
runner does not know it refuses; nothing is passed over. The last stage is then run as an engine
would run it at its strictest: as the image's USER, without any capability and with no way to get
one, on a root that can be read only but for the volumes and /tmp, in a network of its own. There
`exercise` looks at what the image promises. Needs root. The network of RUN is the machine's.
"""
import argparse
import ctypes
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
START_SECONDS = 120


class Refused(Exception):
    """What the runner does not know, or what did not work."""


# ---- the file ---------------------------------------------------------------------------------

def instructions(text):
    """(line number, word, rest) of each; comments go, lines that end in a backslash are joined."""
    found, number, joined = [], 0, ""
    for at, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        number = number if joined else at
        joined += line.rstrip("\\") if line.endswith("\\") else line
        if line.endswith("\\"):
            continue
        if joined.strip():
            word, _, rest = joined.strip().partition(" ")
            found.append((number, word.upper(), rest.strip()))
        joined = ""
    return found


def listed(rest):
    """["a", "b"] is a list of words; anything else goes to the shell."""
    if rest.startswith("["):
        return json.loads(rest)
    return ["/bin/sh", "-c", rest]


class Image:
    """One stage: its root, and what its instructions say about running it."""

    def __init__(self, name, root):
        self.name, self.root = name, root
        self.environment, self.folder, self.user = {"PATH": PATH}, "/", "root"
        self.volumes, self.ports, self.entry, self.command = [], [], [], []
        self.health, self.health_options, self.stop_signal = None, {}, "SIGTERM"


KNOWN = {"FROM", "RUN", "COPY", "ENV", "WORKDIR", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK",
         "ENTRYPOINT", "CMD", "LABEL", "STOPSIGNAL"}
FLAGS = {"COPY": {"from"}, "HEALTHCHECK": {"interval", "timeout", "start-period", "retries"}}


def check_all(found):
    for number, word, rest in found:
        if word not in KNOWN:
            raise Refused(f"line {number}: {word} is not among {', '.join(sorted(KNOWN))}")
        for flag in re.findall(r"--([a-z-]+)", re.match(r"(--\S+\s+)*", rest).group(0)):
            if flag not in FLAGS.get(word, ()):
                raise Refused(f"line {number}: {word} --{flag} is not known here")
    if not found or found[0][1] != "FROM":
        raise Refused("the first instruction is not FROM")


# ---- the machine ------------------------------------------------------------------------------

def call(*words, **named):
    done = subprocess.run(words, **named)
    if done.returncode != 0:
        raise Refused(f"{' '.join(words)[:300]}: exit status {done.returncode}")
    return done


class Builder:
    def __init__(self, base, work, context):
        self.base, self.work, self.context = base, work, context
        self.images, self.mounted = [], []

    def named(self, name):
        for image in self.images:
            if image.name == name:
                return image
        raise Refused(f"there is no stage {name}")

    def begin(self, rest):
        words = rest.split()
        name = words[2] if len(words) == 3 and words[1].upper() == "AS" else str(len(self.images))
        root = os.path.join(self.work, "stage-" + name)
        if not re.fullmatch(r"debian:[a-z]+(-slim)?", words[0]):
            raise Refused(f"FROM {words[0]}: only debian:SUITE is known here")
        with open(self.base + "/etc/os-release", encoding="utf-8") as file:
            suite = re.search(r"VERSION_CODENAME=(\w+)", file.read()).group(1)
        if words[0].split(":")[1].split("-")[0] != suite:
            raise Refused(f"FROM {words[0]}, but --base is {suite}")
        call("cp", "-a", "--one-file-system", "--reflink=auto", self.base, root)
        call("mount", "-t", "proc", "proc", root + "/proc")
        self.mounted.append(root + "/proc")
        self.images.append(Image(name, root))

    def end(self):
        while self.mounted:
            subprocess.run(["umount", self.mounted.pop()], check=False)

    def inside(self, image, words, **named):
        environment = dict(image.environment, HOME="/root")
        for name in ["http_proxy", "https_proxy"]:
            if name in os.environ:
                environment[name] = os.environ[name]
        line = f"cd {shlex.quote(image.folder)} && exec \"$@\""
        return call("chroot", f"--userspec={image.user}", image.root, "/bin/sh", "-c", line, "sh",
                    *words, env=environment, **named)

    def target(self, image, path):
        """Where a path of the image lies outside; COPY's rule of the / at the end is kept."""
        whole = os.path.join(image.folder, path)
        return image.root + os.path.normpath(whole) + ("/" if path.endswith("/") else "")

    def copy(self, image, rest):
        source_root = self.context
        match = re.match(r"--from=(\S+)\s+(.*)", rest)
        if match:
            source_root, rest = self.named(match.group(1)).root, match.group(2)
        *sources, target = rest.split()
        target = self.target(image, "./" if target == "." else target)
        for source in sources:
            path = os.path.normpath(source_root + "/" + source)
            if not os.path.exists(path):
                raise Refused(f"COPY {source}: not there")
            if os.path.isdir(path):
                os.makedirs(target, exist_ok=True)
                call("cp", "-a", path + "/.", target)
            else:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                call("cp", "-a", path, target)

    def take(self, word, rest):
        if word == "FROM":
            self.begin(rest)
            return
        image = self.images[-1]
        if word == "RUN":
            self.inside(image, listed(rest))
        elif word == "COPY":
            self.copy(image, rest)
        elif word == "WORKDIR":
            image.folder = os.path.join(image.folder, rest)
            os.makedirs(image.root + image.folder, exist_ok=True)
        elif word == "ENV":
            image.environment.update(part.split("=", 1) for part in shlex.split(rest))
        elif word == "USER":
            image.user = rest
        elif word == "VOLUME":
            image.volumes += listed(rest) if rest.startswith("[") else rest.split()
        elif word == "EXPOSE":
            image.ports += rest.split()
        elif word == "ENTRYPOINT":
            image.entry = listed(rest)
        elif word == "CMD":
            image.command = listed(rest)
        elif word == "STOPSIGNAL":
            image.stop_signal = rest
        elif word == "HEALTHCHECK":
            options, _, command = rest.partition("CMD ")
            image.health = listed(command.strip())
            image.health_options = dict(re.findall(r"--([a-z-]+)=(\S+)", options))


# ---- running the last stage -------------------------------------------------------------------

def own_network_and_mounts():
    """This process and its children go on in a network that has loopback alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        raise Refused(f"unshare: {os.strerror(ctypes.get_errno())}")
    call("mount", "--make-rprivate", "/")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))  # IFF_UP, RUNNING


class Container:
    def __init__(self, image, volumes):
        self.image, self.environment = image, {}
        root = image.root
        call("mount", "--bind", root, root)
        call("mount", "-t", "proc", "proc", root + "/proc")
        call("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", root + "/tmp")
        call("mount", "-o", "remount,bind,ro", root)
        for path, folder in volumes.items():
            call("mount", "--bind", folder, root + path)

    def words(self, command):
        return ["chroot", self.image.root, "setpriv", "--reuid", self.image.user, "--regid",
                self.image.user, "--clear-groups", "--no-new-privs", "--bounding-set=-all",
                "--inh-caps=-all", *command]

    def start(self, environment=None, arguments=None):
        image = self.image
        command = image.entry + (image.command if arguments is None else arguments)
        self.environment = dict(image.environment, **(environment or {}))
        print("   $", " ".join([f"{k}={v}" for k, v in (environment or {}).items()] + command))
        self.process = subprocess.Popen(self.words(command), env=self.environment, cwd="/",
                                        stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS
        while subprocess.run(self.words(image.health), env=self.environment, cwd="/",
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             timeout=60, check=False).returncode != 0:
            if self.process.poll() is not None:
                raise Refused(f"{command[0]} ended with {self.process.returncode}")
            if time.monotonic() > deadline:
                raise Refused(f"not healthy after {START_SECONDS} s: {' '.join(image.health)}")
            time.sleep(0.2)
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            status = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
        if "0" in status["Uid"].split() or int(status["CapEff"], 16) or status["NoNewPrivs"] != "1":
            raise Refused(f"it runs with more than it needs: {status['Uid']} {status['CapEff']}")

    def ask_again(self, *command):
        """Until it is no longer refused: the device that simulates is opened behind the start."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return self.ask(*command)
            except Refused:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def ask(self, *command, status=0):
        done = subprocess.run(self.words(list(command)), env=self.environment, cwd="/",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=300)
        if done.returncode != status:
            raise Refused(f"{' '.join(command)}: exit status {done.returncode}, not {status}")
        return done.stdout.decode()

    def stop(self):
        self.process.send_signal(getattr(signal, self.image.stop_signal))
        if self.process.wait(timeout=60) != 0:
            raise Refused(f"it ended with {self.process.returncode}")
        if subprocess.run(self.words(self.image.health), env=self.environment, cwd="/",
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0:
            raise Refused("it has ended and is still called healthy")


def exercise(image, work):
    """What the Dockerfile's comment promises: the demo world; writes that last; sand on no GPU."""
    volumes = {}
    for path in image.volumes:
        volumes[path] = tempfile.mkdtemp(dir=work)
        owner = os.stat(image.root + path)
        os.chown(volumes[path], owner.st_uid, owner.st_gid)
    container = Container(image, volumes)
    container.process = subprocess.Popen(["true"])
    try:
        promises(container, volumes)
    finally:
        if container.process.poll() is None:
            container.process.kill()
            container.process.wait()
        # what is mounted read only could not be removed
        call("umount", "--recursive", "--lazy", image.root)


def promises(container, volumes):
    container.start()
    names = container.ask("kota", "ls", "--ids").split()
    if "highlands" not in names:
        raise Refused(f"the demo world is not served: {names}")
    container.ask("kota", "rm", "highlands", status=1)
    container.stop()

    tokens = os.path.join(volumes["/data"], "tokens")
    with open(tokens, "w", encoding="utf-8") as file:
        file.write("edit 0123456789abcdefghijklmnopqrstuv\n")
    os.chown(tokens, *os.stat(volumes["/data"])[4:6])
    os.chmod(tokens, 0o600)
    writing = {"KOTA_READ_ONLY": "false", "KOTA_TOKEN_FILE": "/data/tokens"}
    container.start(writing)
    who = ["--token-file", "/data/tokens"]
    container.ask_again("kota", "patch", "create", "highlands", "--center", "1450,3000", "--size",
                        "8,8", "--scale", "coarse", *who)
    state, deadline = "filling", time.monotonic() + START_SECONDS
    while state == "filling":
        if time.monotonic() > deadline:
            raise Refused(f"the patch is still {state}")
        state = json.loads(container.ask("kota", "patch", "show", "highlands", "1", *who))["state"]
        time.sleep(0.2)
    if state not in ("settling", "active", "resting"):
        raise Refused(f"the patch is {state}")
    container.ask("kota", "patch", "view", "highlands", "1", "/tmp/patch.png", *who)
    container.ask("kota", "patch", "delete", "highlands", "1", "--discard", *who)
    container.ask("kota", "edit", "highlands", "--brush", "crater", "--center", "1450,3000", "--radius",
                  "40", "--amount", "12", *who)
    before = json.loads(container.ask("kota", "--json", "ls", *who).splitlines()[0])
    container.stop()
    container.start(writing)
    after = json.loads(container.ask("kota", "--json", "ls", *who).splitlines()[0])
    container.stop()
    if before != after or before["revision"] < 2:
        raise Refused(f"a restart changed {before} into {after}")
    print("   the demo world is served, sand falls on no GPU, a restart keeps what was written")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base")
    parser.add_argument("--work")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("dockerfile", nargs="?", default="Dockerfile")
    parser.add_argument("context", nargs="?", default=".")
    options = parser.parse_args()
    with open(options.dockerfile, encoding="utf-8") as file:
        found = instructions(file.read())
    check_all(found)
    if options.check:
        print(f"{len(found)} instructions, all known")
        return
    work = options.work or tempfile.mkdtemp(prefix="kota-docker-")
    builder = Builder(options.base, work, options.context)
    try:
        for number, word, rest in found:
            print(f"== {number}: {word} {rest}"[:160], flush=True)
            builder.take(word, rest)
        image = builder.images[-1]
        builder.end()
        call("du", "-shx", image.root)
        own_network_and_mounts()
        exercise(image, work)
    finally:
        builder.end()
        if not options.work:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    except Refused as error:
        sys.exit(f"dockerfile: {error}")
