"""Makes a release of kota out of the committed tree: `make release`.

    python3 deploy/release.py OUT [--staged DIR]

OUT gets the Debian packages, a source archive, an OCI image archive, the npm package, the Python wheel
and SHA256SUMS. Made again from the same commit on the same system, each file has the same bytes:
members are sorted, belong to root, and have the time of the commit (SOURCE_DATE_EPOCH wins).

The image is made without a container engine, from the staged root of the packages: the programs, the
demo world, and the libraries that they load, taken from the system that built them. Its archive is an
OCI layout: `skopeo copy oci-archive:FILE`, `podman load -i FILE`, `docker load -i FILE` (25 or later).

--staged takes a tree that `make install DESTDIR=DIR PREFIX=/usr` has made, and makes no packages of it.
"""
import argparse
import glob
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
USER = 7420
# loaded by name at run time: EGL finds a GPU's driver, which NVIDIA's container toolkit brings
LOADED = ["libEGL.so.1", "libOpenGL.so.0"]


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def version():
    """The one place of the version is client/lib/kota.h."""
    return ".".join(re.findall(r"#define KOTA_VERSION_\w+ (\d+)", text_of("client", "lib", "kota.h")))


def run(*words, **named):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, **named).stdout


def epoch():
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    return int(run("git", "log", "-1", "--format=%ct", cwd=ROOT))


# ---- archives ---------------------------------------------------------------------------------

class Tree:
    """Members of an archive, by their names: sorted, of root, of one time."""

    def __init__(self, seconds):
        self.seconds, self.members = seconds, {}

    def put(self, name, data=None, mode=0o644, link=None, owner=0):
        """A file, a link, or (without both) a folder; folders above it are made."""
        info = tarfile.TarInfo(name)
        info.mtime, info.uid, info.gid = self.seconds, owner, owner
        info.mode = mode
        if link is not None:
            info.type, info.linkname, info.mode = tarfile.SYMTYPE, link, 0o777
        elif data is None:
            info.type = tarfile.DIRTYPE
        else:
            info.size = len(data)
        above = os.path.dirname(name)
        if above and above not in self.members:
            self.put(above, mode=0o755)
        self.members[name] = info, data

    def put_file(self, name, path, mode=None):
        with open(path, "rb") as file:
            data = file.read()
        self.put(name, data, mode or (0o755 if os.access(path, os.X_OK) else 0o644))

    def tar(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for name in sorted(self.members):
                info, data = self.members[name]
                archive.addfile(info, None if data is None else io.BytesIO(data))
        return out.getvalue()


def zipped(data):
    return gzip.compress(data, 9, mtime=0)


# ---- what is made -------------------------------------------------------------------------------

def source_archive(out, name):
    tar = run("git", "archive", "--format=tar", f"--prefix={name}/", "HEAD", cwd=ROOT)
    with open(os.path.join(out, f"{name}.tar.gz"), "wb") as file:
        file.write(zipped(tar))


def npm_package(staged, seconds):
    """The files that client/web/package.json lists, and the module where it was built; the version is
    added to it."""
    document = json.loads(text_of("client", "web", "package.json"))
    document["version"] = version()
    tree = Tree(seconds)
    tree.put("package/package.json", (json.dumps(document, indent=2) + "\n").encode())
    tree.put("package/README.md", text_of("client", "web", "README.md").encode())
    tree.put("package/LICENSE", text_of("LICENSE").encode())
    web = os.path.join(ROOT, "client", "web")
    for pattern in document["files"]:
        for path in glob.glob(os.path.join(web, pattern)):
            tree.put_file("package/" + os.path.relpath(path, web), path, 0o644)
    module = os.path.join(staged, "usr/share/kota/kota_ground.wasm")
    if os.path.exists(module):
        tree.put_file("package/kota_ground.wasm", module, 0o644)
    return tree


def wheel(out, seconds):
    sys.path.insert(0, os.path.join(ROOT, "client", "python"))
    import build_wheel
    os.environ["SOURCE_DATE_EPOCH"] = str(seconds)
    build_wheel.build_wheel(out)


# ---- the image ----------------------------------------------------------------------------------

def libraries(programs):
    """Paths of what the programs load, the loader included, as ldd says."""
    found = set()
    for program in programs:
        for line in run("ldd", program).decode().splitlines():
            path = re.search(r"(/\S+) \(0x", line)
            if path:
                found.add(path.group(1))
    return found


def loaded(name):
    for line in run("ldconfig", "-p").decode().splitlines():
        path = re.match(rf"\s+{re.escape(name)} .*=> (\S+)", line)
        if path:
            return path.group(1)
    return None


def put_library(tree, path):
    """A library under its name; the folder's own name is resolved, for /lib is a link to /usr/lib."""
    name = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    tree.put_file(name.lstrip("/"), os.path.realpath(path), 0o755)
    return os.path.realpath(path)


def put_licences(tree, paths):
    names = {path.replace("/usr/", before, 1) for path in paths for before in ("/usr/", "/")}
    said = subprocess.run(["dpkg", "-S", *names], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=False).stdout.decode()
    for owner in sorted({line.split(":")[0] for line in said.splitlines()}):
        copyright_ = f"/usr/share/doc/{owner}/copyright"
        if os.path.exists(copyright_):
            tree.put_file(copyright_.lstrip("/"), copyright_, 0o644)


def system_layer(programs, seconds):
    """The system's part: libraries, a shell for `docker exec`, users, and their licences."""
    tree = Tree(seconds)
    for name in ("bin", "sbin", "lib", "lib64"):
        tree.put(name, link=f"usr/{name}")
    names = [path for path in map(loaded, LOADED) if path]
    found = {put_library(tree, path) for path in libraries([*programs, "/bin/dash", *names]) | set(names)}
    put_licences(tree, found | {os.path.realpath("/bin/dash")})
    tree.put_file("usr/bin/sh", os.path.realpath("/bin/dash"), 0o755)
    for name in ("usr/sbin", "proc", "sys", "dev", "run"):
        tree.put(name, mode=0o755)
    tree.put("tmp", mode=0o1777)
    tree.put("root", mode=0o700)
    tree.put("etc/passwd", f"root:x:0:0:root:/root:/bin/sh\nkota:x:{USER}:{USER}::/data:/bin/sh\n".encode())
    tree.put("etc/group", f"root:x:0:\nkota:x:{USER}:\n".encode())
    tree.put("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n")
    return tree


def kota_layer(staged, programs, seconds):
    tree = Tree(seconds)
    for path in programs:
        tree.put_file("usr/bin/" + os.path.basename(path), path, 0o755)
    demo = os.path.join(staged, "usr", "share", "kota", "demo")
    for at, _, files in os.walk(demo):
        for name in files:
            path = os.path.join(at, name)
            tree.put_file(os.path.relpath(path, staged), path, 0o644)
    # the Dockerfile installs below /usr/local
    settings = text_of("deploy", "docker", "kotad.conf").replace("/usr/local/", "/usr/")
    tree.put("etc/kotad.conf", settings.encode())
    tree.put_file("usr/share/glvnd/egl_vendor.d/10_nvidia.json",
                  os.path.join(ROOT, "deploy", "docker", "10_nvidia.json"), 0o644)
    tree.put("usr/share/doc/kota/LICENSE", text_of("LICENSE").encode())
    tree.put("data", mode=0o755, owner=USER)
    return tree


def image(out, staged, seconds):
    blobs = {}

    def blob(data, media):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}

    with tempfile.TemporaryDirectory(prefix="kota-image-") as folder:
        programs = []
        for name in ("kotad", "kota"):
            programs.append(shutil.copy(os.path.join(staged, "usr", "bin", name), folder))
            run("strip", programs[-1])
        tars = [layer.tar() for layer in (system_layer(programs, seconds),
                                          kota_layer(staged, programs, seconds))]
    layers = [blob(zipped(tar), "application/vnd.oci.image.layer.v1.tar+gzip") for tar in tars]
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    labels = {"org.opencontainers.image.title": "kota",
              "org.opencontainers.image.description": "terrain server for virtual worlds",
              "org.opencontainers.image.version": version(),
              "org.opencontainers.image.revision": run("git", "rev-parse", "HEAD", cwd=ROOT).decode().strip(),
              "org.opencontainers.image.created": made,
              "org.opencontainers.image.licenses": "MIT"}
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    config = {
        "created": made, "architecture": machine, "os": "linux",
        "config": {
            "User": f"{USER}:{USER}", "ExposedPorts": {"7420/tcp": {}, "7421/tcp": {}},
            "Env": ["PATH=/usr/bin:/bin", "KOTA_CONFIG=/etc/kotad.conf",
                    "NVIDIA_DRIVER_CAPABILITIES=graphics,utility"],
            "Entrypoint": ["kotad"], "Volumes": {"/data": {}}, "WorkingDir": "/",
            "Labels": labels, "StopSignal": "SIGTERM"},
        "rootfs": {"type": "layers",
                   "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}" for tar in tars]},
        "history": [{"created": made, "created_by": "deploy/release.py: " + what}
                    for what in ("libraries of the system", "kota")]}

    def document(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    manifest = blob(document({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(document(config), "application/vnd.oci.image.config.v1+json"),
        "layers": layers, "annotations": labels}), "application/vnd.oci.image.manifest.v1+json")
    manifest["annotations"] = {"org.opencontainers.image.ref.name": version()}
    tree = Tree(seconds)
    tree.put("oci-layout", document({"imageLayoutVersion": "1.0.0"}))
    tree.put("index.json", document({"schemaVersion": 2, "manifests": [manifest],
                                     "mediaType": "application/vnd.oci.image.index.v1+json"}))
    for digest, data in blobs.items():
        tree.put(f"blobs/sha256/{digest}", data)
    with open(os.path.join(out, f"kota-{version()}-oci-{machine}.tar"), "wb") as file:
        file.write(tree.tar())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--staged")
    arguments = parser.parse_args()
    seconds = epoch()
    os.makedirs(arguments.out, exist_ok=True)
    for name in os.listdir(arguments.out):
        os.remove(os.path.join(arguments.out, name))
    with tempfile.TemporaryDirectory(prefix="kota-release-") as folder:
        staged = arguments.staged or folder + "/staged"
        if not arguments.staged:
            subprocess.run(["sh", os.path.join(ROOT, "deploy", "build-deb.sh"), folder, staged], check=True,
                           env={**os.environ, "SOURCE_DATE_EPOCH": str(seconds)})
            for path in glob.glob(folder + "/*.deb"):
                shutil.copy(path, arguments.out)
        image(arguments.out, staged, seconds)
        with open(os.path.join(arguments.out, f"kota-client-{version()}.tgz"), "wb") as file:
            file.write(zipped(npm_package(staged, seconds).tar()))
    source_archive(arguments.out, f"kota-{version()}")
    wheel(arguments.out, seconds)
    lines = []
    for name in sorted(os.listdir(arguments.out)):
        with open(os.path.join(arguments.out, name), "rb") as file:
            lines.append(f"{hashlib.sha256(file.read()).hexdigest()}  {name}\n")
    with open(os.path.join(arguments.out, "SHA256SUMS"), "w", encoding="utf-8") as file:
        file.writelines(lines)
    print(f"kota {version()} is in {arguments.out}:\n" + "".join(lines), end="")


if __name__ == "__main__":
    main()
