"""make install and make uninstall: what is put where, that it works there, and that all of it goes.

The paths are compared with tests/api/installed.txt; a line of it that ends in * stands for each
file of the folder named after it, so that a new page needs no change. Nothing is built here but
what `make install` itself makes.
"""
import glob
import os
import shutil
import subprocess
import tempfile

from daemon import BIN_DIR, Daemon, ROOT, clean_environment
from tap import HANG_S, Skip, check, equal, run, test

CONFIG = os.path.basename(BIN_DIR)
SECONDS = 600


def make(*words, status=0):
    """make in this tree, none of the settings of a make that called the tests."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
    done = subprocess.run(["make", "--no-print-directory", f"config={CONFIG}", *words], cwd=ROOT,
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=SECONDS)
    text = done.stdout.decode("utf-8", "replace")
    equal(done.returncode == 0, status == 0, f"make {' '.join(words)}:\n{text[-2000:]}")
    return text


def tree(folder):
    """Every file and link below a folder, and every folder that is empty."""
    found = []
    for at, folders, files in os.walk(folder):
        if not folders and not files and at != folder:
            found.append(os.path.relpath(at, folder) + "/")
        for name in files + [name for name in folders if os.path.islink(os.path.join(at, name))]:
            found.append(os.path.relpath(os.path.join(at, name), folder))
    return sorted(found)


def committed_list():
    wanted = []
    with open(os.path.join(ROOT, "tests/api/installed.txt"), encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("#") or not line:
                continue
            if " <- " not in line:
                wanted.append(line)
                continue
            target, source = line.split(" <- ")
            wanted += [target[:-1] + os.path.basename(path)
                       for path in glob.glob(os.path.join(ROOT, source))]
    return sorted(wanted)


class Folder:
    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="kota-install-")
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path)


@test("make install DESTDIR= PREFIX=/usr puts there what the committed list says; uninstall leaves nothing")
def _():
    with Folder() as folder:
        make("install", f"DESTDIR={folder}", "PREFIX=/usr")
        equal(tree(folder), committed_list(), "what was installed")
        for program in glob.glob(folder + "/usr/bin/*"):
            equal(os.stat(program).st_mode & 0o777, 0o755, program)
        for page in glob.glob(folder + "/usr/share/man/*/*"):
            check(os.path.getsize(page) > 500, f"{page} is no page")
        for file in tree(folder):
            path = os.path.join(folder, file)
            if os.path.isfile(path) and not path.startswith(folder + "/usr/bin"):
                with open(path, "rb") as opened:
                    check(folder.encode() not in opened.read(), f"{file} names DESTDIR")
        make("uninstall", f"DESTDIR={folder}", "PREFIX=/usr")
        equal(os.listdir(folder), [], "what uninstall left")


@test("uninstall leaves folders that were there before, and what others have put into those that were not")
def _():
    with Folder() as folder:
        os.makedirs(folder + "/usr/bin")
        make("install", f"DESTDIR={folder}", "PREFIX=/usr")
        mine = ["usr/share/kota/mine", "usr/include/other.h"]
        for path in mine:
            open(os.path.join(folder, path), "w").close()
        make("uninstall", f"DESTDIR={folder}", "PREFIX=/usr")
        equal(tree(folder), sorted(mine + ["usr/bin/"]), "what uninstall left")


@test("installing again takes away what an older version had put there")
def _():
    with Folder() as folder:
        make("install", f"DESTDIR={folder}", "PREFIX=/opt/kota")
        record = folder + "/opt/kota/share/kota/installed"
        old = ["/opt/kota/lib/libkota.so.0.0.9", "/opt/kota/share/older/page"]
        for path in old:
            os.makedirs(os.path.dirname(folder + path), exist_ok=True)
            open(folder + path, "w").close()
        before = tree(folder)
        with open(record, "a", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in [*old, "/opt/kota/share/older/"]))
        make("install", f"DESTDIR={folder}", "PREFIX=/opt/kota")
        equal(tree(folder), [path for path in before if "/" + path not in old],
              "after the second install")
        make("uninstall", f"DESTDIR={folder}", "PREFIX=/opt/kota")
        equal(os.listdir(folder), [], "what uninstall left")


@test("a prefix with a blank works: programs run there, units and libkota.pc name it")
def _():
    with Folder() as folder:
        prefix = folder + "/a & b"
        make("install", f"PREFIX={prefix}")
        for name in ["kotad", "kota"]:
            said = subprocess.run([f"{prefix}/bin/{name}", "--help"], stdout=subprocess.PIPE,
                                  env=clean_environment(), timeout=HANG_S)
            equal(said.returncode, 0, f"{name} --help")
        with open(prefix + "/lib/pkgconfig/libkota.pc", encoding="utf-8") as file:
            check(f"prefix={prefix}\n" in file.read(), "libkota.pc names another prefix")
        for unit in glob.glob(prefix + "/lib/systemd/system/*.service"):
            with open(unit, encoding="utf-8") as file:
                check(f"{prefix}/bin/kotad" in file.read(), f"{unit} starts another kotad")
        make("uninstall", f"PREFIX={prefix}")
        equal(os.listdir(folder), [], "what uninstall left")


@test("uninstall where nothing is installed says so")
def _():
    with Folder() as folder:
        said = make("uninstall", f"DESTDIR={folder}", "PREFIX=/usr", status=2)
        check("nothing is installed" in said, said)


@test("a program is built with the installed library, shared and static, by pkg-config")
def _():
    if CONFIG not in ("release", "debug"):
        raise Skip(f"a program must be built as {CONFIG} is")
    for tool in ["cc", "pkg-config"]:
        if not shutil.which(tool):
            raise Skip(f"no {tool}")
    with Folder() as folder:
        make("install", f"PREFIX={folder}")
        environment = dict(os.environ, PKG_CONFIG_PATH=folder + "/lib/pkgconfig")

        def flags(*words):
            said = subprocess.run(["pkg-config", "--cflags", "--libs", *words, "libkota"],
                                  env=environment, check=True, stdout=subprocess.PIPE)
            return said.stdout.decode().split()
        source = folder + "/share/doc/kota/examples/hello.c"
        shared = ["cc", "-o", folder + "/shared", source, *flags(), f"-Wl,-rpath,{folder}/lib"]
        static = ["cc", "-o", folder + "/static", source, folder + "/lib/libkota.a",
                  *[flag for flag in flags("--static") if flag != "-lkota"]]
        for words in [shared, static]:
            subprocess.run(words, check=True, timeout=HANG_S)
        with Daemon() as daemon:
            for name in ["shared", "static"]:
                needed = subprocess.run(["readelf", "-d", f"{folder}/{name}"], check=True,
                                        stdout=subprocess.PIPE).stdout.decode()
                equal("libkota.so.0" in needed, name == "shared", f"{name} needs libkota.so.0")
                said = subprocess.run([f"{folder}/{name}", f"http://127.0.0.1:{daemon.port}",
                                       "nowhere", "1", "2"], stderr=subprocess.PIPE, timeout=HANG_S)
                equal(said.returncode, 1, f"{name}: {said.stderr}")
                check(b"nowhere" in said.stderr, f"{name} says {said.stderr!r}")


run()
