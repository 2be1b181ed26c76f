"""A release: its parts have the same bytes when they are made twice, the image is an OCI layout from which
kotad runs, npm and pip take the packages, and all parts have one version.

Short: everything that is made from a staged root. With KOTA_LONG=1 the Debian packages are built, too,
twice, each in a folder of its own.
"""
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request

from daemon import BIN_DIR, KOTAD, ROOT, SLOW, Daemon, clean_environment
from tap import HANG_S, Skip, check, equal, run, test

sys.path.insert(0, os.path.join(ROOT, "deploy"))
import release  # noqa: E402  (the program of make release)

CONFIG = os.path.basename(BIN_DIR)
folder = tempfile.TemporaryDirectory(prefix="kota-release-")
made = {}


def make_release(name, *words, **environment):
    out = os.path.join(folder.name, name)
    done = subprocess.run([sys.executable, os.path.join("deploy", "release.py"), out, *words], cwd=ROOT,
                          capture_output=True, text=True, env={**os.environ, **environment})
    equal(done.returncode, 0, (done.stdout + done.stderr)[-3000:])
    return out


def parts():
    """The release of a staged root, made once."""
    if not shutil.which("git") or not os.path.exists(os.path.join(ROOT, ".git")):
        raise Skip("no git checkout")
    if CONFIG != "release":
        raise Skip("only of the release build")
    if not made:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
        staged = os.path.join(folder.name, "staged")
        done = subprocess.run(["make", "--no-print-directory", "install", f"DESTDIR={staged}", "PREFIX=/usr"],
                              cwd=ROOT, env=environment, capture_output=True, text=True)
        equal(done.returncode, 0, done.stderr[-2000:])
        made["staged"], made["out"] = staged, make_release("one", "--staged", staged)
    return made["out"]


def files(out):
    found = {}
    for name in sorted(os.listdir(out)):
        with open(os.path.join(out, name), "rb") as file:
            found[name] = file.read()
    return found


def part(pattern):
    found = [name for name in os.listdir(parts()) if re.fullmatch(pattern, name)]
    equal(len(found), 1, f"{pattern}: {os.listdir(parts())}")
    return os.path.join(made["out"], found[0])


def same(one, two):
    equal(list(one), list(two), "names")
    for name, data in one.items():
        check(data == two[name], f"{name} differs")


@test("made twice, in another time zone, language and under another umask, each part has the same bytes")
def _():
    one = files(parts())
    for path in [os.path.join(at, name) for at, _, names in os.walk(made["staged"]) for name in names]:
        os.utime(path, (1, 1), follow_symlinks=False)
    before = os.umask(0o077)
    try:
        two = files(make_release("two", "--staged", made["staged"], TZ="Pacific/Auckland", LC_ALL="C",
                                 PYTHONHASHSEED="7"))
    finally:
        os.umask(before)
    check(len(one) == 5, f"{list(one)}")
    same(one, two)
    sums = dict(reversed(line.split("  ")) for line in one.pop("SHA256SUMS").decode().splitlines())
    equal(sums, {name: hashlib.sha256(data).hexdigest() for name, data in one.items()}, "SHA256SUMS")


@test("the whole release, Debian packages included, has the same bytes twice")
def _():
    if not os.environ.get("KOTA_LONG"):
        raise Skip("KOTA_LONG=1 builds the packages twice")
    parts()
    one, two = files(make_release("long1")), files(make_release("long2"))
    equal(len([name for name in one if name.endswith(".deb") and "dbgsym" not in name]), 5, "packages")
    same(one, two)


# ---- the image ----------------------------------------------------------------------------------


def layout():
    """{name: bytes} of the image archive, and a reader of its blobs that checks size and digest."""
    with tarfile.open(part(r"kota-.*-oci-\w+\.tar")) as archive:
        found = {info.name: archive.extractfile(info).read() for info in archive if info.isfile()}
    used = set()

    def blob(at):
        kind, _, digest = at["digest"].partition(":")
        equal(kind, "sha256", "the kind of digest")
        data = found[f"blobs/sha256/{digest}"]
        equal((len(data), hashlib.sha256(data).hexdigest()), (at["size"], digest), "size and digest")
        used.add(f"blobs/sha256/{digest}")
        return data
    return found, blob, used


def image():
    found, blob, used = layout()
    equal(json.loads(found["oci-layout"]), {"imageLayoutVersion": "1.0.0"}, "oci-layout")
    index = json.loads(found["index.json"])
    equal((index["schemaVersion"], len(index["manifests"])), (2, 1), "index.json")
    manifest = json.loads(blob(index["manifests"][0]))
    config = json.loads(blob(manifest["config"]))
    layers = [gzip.decompress(blob(layer)) for layer in manifest["layers"]]
    equal(set(found), used | {"oci-layout", "index.json"}, "members, each of use")
    return index, manifest, config, layers


@test("the image is an OCI layout: digests, sizes, media types, and what its configuration says")
def _():
    index, manifest, config, layers = image()
    kind = "application/vnd.oci.image."
    equal(manifest["mediaType"], kind + "manifest.v1+json", "manifest")
    equal(index["manifests"][0]["mediaType"], kind + "manifest.v1+json", "index")
    equal(manifest["config"]["mediaType"], kind + "config.v1+json", "config")
    equal({layer["mediaType"] for layer in manifest["layers"]}, {kind + "layer.v1.tar+gzip"}, "layers")
    equal(config["rootfs"], {"type": "layers", "diff_ids": [
        "sha256:" + hashlib.sha256(tar).hexdigest() for tar in layers]}, "rootfs")
    settings = config["config"]
    equal(settings["Entrypoint"], ["kotad"], "entrypoint")
    equal(settings["User"], "7420:7420", "user")
    equal(sorted(settings["ExposedPorts"]), ["7420/tcp", "7421/tcp"], "ports")
    equal((settings["Volumes"], settings["StopSignal"]), ({"/data": {}}, "SIGTERM"), "volume, signal")
    equal(settings["Labels"]["org.opencontainers.image.version"], release.version(), "version")
    equal(config["architecture"] in ("amd64", "arm64"), True, "architecture")
    names = set()
    for tar in layers:
        for info in tarfile.open(fileobj=io.BytesIO(tar)):
            check(info.uid in (0, 7420) and info.mtime > 1e9, f"{info.name}: {info.uid}, {info.mtime}")
            check(not info.mode & 0o6000, f"{info.name}: set-user-id")
            names.add(info.name)
    for name in ("usr/bin/kotad", "usr/bin/kota", "etc/kotad.conf", "usr/share/kota/demo/village/locale.json",
                 "usr/share/doc/libc6/copyright"):
        check(name in names, f"no {name}")


@test("kotad runs from the image as its user, in a root of its own: the first answer within 20 s")
def _():
    config, layers = image()[2:]
    if os.geteuid() != 0 or not shutil.which("chroot"):
        raise Skip("chroot needs root")
    root = os.path.join(folder.name, "root")
    for tar in layers:
        with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
            archive.extractall(root, numeric_owner=True)
    for name in os.listdir(root):
        check(os.lstat(os.path.join(root, name)).st_uid in (0, 7420), f"the owner of {name}")
    os.chmod(root, 0o755)
    os.chmod(folder.name, 0o755)
    began = time.monotonic()
    environment = dict(word.split("=", 1) for word in config["config"]["Env"])
    process = subprocess.Popen([shutil.which("chroot"), f"--userspec={config['config']['User']}", root,
                                *config["config"]["Entrypoint"], "--listen", "127.0.0.1:0", "--ops-listen",
                                "127.0.0.1:0", "--port-file", "/tmp/port", "--no-sandbox"],
                               env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        port = os.path.join(root, "tmp", "port")
        while not (os.path.exists(port) and open(port).read().strip()):
            if process.poll() is not None:
                check(False, process.stdout.read().decode())
            check(time.monotonic() - began < HANG_S, "it is not ready")
            time.sleep(0.05)
        url = f"http://127.0.0.1:{open(port).read().strip()}"
        with urllib.request.urlopen(url + "/v1/locales/highlands/height?x=1000&y=2000") as answer:
            equal(json.load(answer)["status"], "ok", "a height")
        seconds = time.monotonic() - began
        check(seconds < HANG_S, f"{seconds:.1f} s")
        said = subprocess.run([shutil.which("chroot"), root, "kota", "height", "highlands", "1000,2000", "--url", url],
                              env=environment, capture_output=True)
        equal(said.returncode, 0, said.stderr)
        with open(f"/proc/{process.pid}/status") as status:
            equal(re.search(r"Uid:\s+(\d+)", status.read()).group(1), "7420", "user")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(HANG_S)
    equal(process.returncode, 0, "exit status")


# ---- the other parts --------------------------------------------------------------------------------


@test("the source archive is the committed tree, and the version is at one place in it")
def _():
    with tarfile.open(part(r"kota-[\d.]+\.tar\.gz")) as archive:
        names = {info.name.partition("/")[2] for info in archive if info.isfile()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True,
                             check=True).stdout.split("\n")
    equal(names, {name for name in tracked if name and name in names}, "files")
    check({"Makefile", "server/daemon/main.c", "proto/openapi.yaml"} <= names, "files are missing")
    version = release.version()
    check(re.fullmatch(r"\d+\.\d+\.\d+", version), version)
    for program in ("kotad", "kota"):
        said = subprocess.run([os.path.join(BIN_DIR, program), "--version"], capture_output=True, text=True)
        equal(said.stdout, f"{program} {version}\n", program)
    with Daemon() as daemon:
        equal(daemon.ok("GET", "/v1/stats")["version"], version, "/v1/stats")
    # copies: the list of an installation, the image's name, since when a symbol is there, and what
    # `npm pack` in client/web needs (test_kota_js holds it)
    copies = {"tests/api/installed.txt", "client/web/package.json",
              "deploy/kubernetes/statefulset.yaml",
              "deploy/debian/libkota0.symbols", "deploy/debian/libkota-ground0.symbols",
              "tests/web/package-lock.json", "client/lib/kota.h", "client/ground/kota-ground.h"}
    said = subprocess.run(["git", "grep", "-lF", version, "--", "server", "client", "deploy", "Makefile",
                           "Dockerfile"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    equal(set(said) - copies, set(), f"files that name {version}")


@test("npm takes the package: types hold under strict, and Node asks a daemon through it")
def _():
    for tool in ("npm", "node"):
        if not shutil.which(tool):
            raise Skip(f"no {tool}")
    compiler = os.path.join(ROOT, "tests", "web", "node_modules", "typescript", "bin", "tsc")
    if not os.path.exists(compiler):
        raise Skip("no typescript: run `npm ci` in tests/web")
    package = part(r"kota-client-.*\.tgz")
    here = os.path.join(folder.name, "npm")
    os.mkdir(here)

    def node(*words):
        done = subprocess.run(words, cwd=here, capture_output=True, text=True, timeout=300 * SLOW,
                              env={**os.environ, "HOME": here})
        equal(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout
    with open(os.path.join(here, "package.json"), "w", encoding="utf-8") as file:
        file.write('{"type": "module", "private": true}')
    node("npm", "install", "--offline", "--no-audit", "--no-fund", package)
    with open(os.path.join(here, "ask.ts"), "w", encoding="utf-8") as file:
        file.write("""import { Kota, NotFoundError } from "kota-client";
const kota = new Kota("http://127.0.0.1:1", { timeoutMs: 1000 });
export async function floor(): Promise<number | null> {
  const { results } = await kota.contact("yard", [[1, 2, 9]]);
  const first = results[0];
  return first && first.floor ? first.floor.point[2] : null;
}
export const isMissing = (error: unknown): boolean => error instanceof NotFoundError;
// @ts-expect-error a point has three numbers in a list of points
kota.contact("yard", 7);
""")
    node("node", compiler, "--strict", "--noEmit", "--target", "es2022", "--module", "nodenext",
         "--lib", "es2022,dom,dom.iterable,dom.asynciterable", "ask.ts")
    with open(os.path.join(here, "ask.mjs"), "w", encoding="utf-8") as file:
        file.write("""import { Kota } from "kota-client";
const kota = new Kota(process.argv[2]);
console.log((await kota.contact("yard", [[1, 2, 9]])).results[0].floor.point[2]);
""")
    with Daemon() as daemon:
        daemon.ok("PUT", "/v1/locales/yard", {}, status=201)
        daemon.ok("PUT", "/v1/locales/yard/layers/ground?cols=2&rows=2&spacing=4,4",
                  struct.pack("<4f", 3, 3, 3, 3), status=201, media="application/vnd.kota.f32")
        equal(node("node", "ask.mjs", daemon.url), "3\n", "the floor")
        served = daemon.get("/web/kota.d.ts")
        equal(served.status, 200, "/web/kota.d.ts")
    with open(os.path.join(here, "node_modules", "kota-client", "types", "kota.d.ts"), "rb") as file:
        equal(file.read(), served.body, "/web/kota.d.ts")
    with open(os.path.join(here, "node_modules", "kota-client", "package.json"), encoding="utf-8") as file:
        equal(json.load(file)["version"], release.version(), "version")


@test("npm pack makes of the package the same files")
def _():
    if not shutil.which("npm"):
        raise Skip("no npm")
    here = os.path.join(folder.name, "pack")
    with tarfile.open(part(r"kota-client-.*\.tgz")) as archive:
        archive.extractall(here)
        wanted = {info.name: archive.extractfile(info).read() for info in archive if info.isfile()}
    done = subprocess.run(["npm", "pack", "--silent", "./package"], cwd=here, capture_output=True, text=True,
                          env={**os.environ, "HOME": here})
    equal(done.returncode, 0, done.stderr)
    with tarfile.open(os.path.join(here, done.stdout.strip())) as archive:
        equal({info.name: archive.extractfile(info).read() for info in archive}, wanted, "files")


@test("pip takes wheel and folder in a bare environment without a network, and both ask a daemon")
def _():
    source = os.path.join(ROOT, "client", "python")
    for name, given in (("wheel", part(r".*\.whl")), ("folder", source)):
        here = os.path.join(folder.name, "venv-" + name)
        done = subprocess.run([sys.executable, "-m", "venv", here], capture_output=True, text=True)
        if done.returncode:
            raise Skip(f"no venv: {done.stdout}{done.stderr}")
        python = os.path.join(here, "bin", "python")
        done = subprocess.run([python, "-m", "pip", "install", "--no-index", given], capture_output=True,
                              text=True, timeout=300 * SLOW)
        equal(done.returncode, 0, done.stdout + done.stderr)
        program = ("import kota, sys; there = kota.Client(sys.argv[1]); there.put_locale('x'); "
                   "print(kota.__version__, there.locale('x').revision)")
        with Daemon() as daemon:
            done = subprocess.run([python, "-c", program, daemon.url], capture_output=True, text=True, cwd=here,
                                  env=clean_environment())
        equal(done.stdout, f"{release.version()} 1\n", done.stderr)
    left = subprocess.run(["git", "ls-files", "--others", "--exclude-standard", source], cwd=ROOT,
                          capture_output=True, text=True, check=True).stdout
    equal(left, "", "files that pip has left")


run(folder.cleanup, "the temporary folders are removed")
