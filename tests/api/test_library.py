"""libkota as others meet it: its names, its header, its .pc file, and the examples.

What the library does on the wire is tested in C, by tests/unit/test_libkota_*.c.
"""
import os
import re
import shutil
import subprocess
import tempfile

from daemon import BIN_DIR, ROOT, Daemon
from tap import HANG_S, Skip, case, check, equal, run, test

LIB = os.path.join(BIN_DIR, "lib")
HEADER = os.path.join(ROOT, "client", "lib", "kota.h")
SAND_HEADER = os.path.join(ROOT, "client", "lib", "kota-sand.h")
GROUND_HEADER = os.path.join(ROOT, "client", "ground", "kota-ground.h")
EXAMPLES = os.path.join(ROOT, "client", "examples")
CC = os.environ.get("CC", "cc")
folder = tempfile.TemporaryDirectory(prefix="kota-test-")
world = os.path.join(folder.name, "world")
subprocess.run([os.path.join(BIN_DIR, "kota-worldgen"), "demo", world, "--size", "256",
                "--format", "f32"], check=True, stdout=subprocess.DEVNULL)
daemon = Daemon("--world", world)
URL = f"http://127.0.0.1:{daemon.port}"
ENVIRONMENT = dict(os.environ, PKG_CONFIG_PATH=os.path.join(LIB, "pkgconfig"),
                   LD_LIBRARY_PATH=LIB)
# A program around a library with a sanitizer needs its runtime.
EXTRA = {"asan": ["-fsanitize=address,undefined"], "tsan": ["-fsanitize=thread"],
         "cov": ["--coverage"]}.get(os.path.basename(os.path.normpath(BIN_DIR)), [])


def output(*command, status=0, env=None):
    done = subprocess.run(command, capture_output=True, text=True, env=env or ENVIRONMENT,
                          timeout=HANG_S, cwd=folder.name)
    check(done.returncode == status,
          f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}"[:4000])
    return done.stdout


def flags(*options, package="libkota"):
    if not shutil.which("pkg-config"):
        raise Skip("no pkg-config")
    return output("pkg-config", "--cflags", "--libs", *options, package).split()


def build(source, name, *more, text=None):
    """Compiles a program as its user would; its path."""
    program = os.path.join(folder.name, name)
    if text is not None:
        source = program + ".c"
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
    output(CC, "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", source, *EXTRA,
           *(more or flags()), "-o", program)
    return program


def exported(*command):
    return set(re.findall(r" [TDBRV] (\w+)", output("nm", *command)))


# ---- names ------------------------------------------------------------------------------------------

LIBRARIES = (("libkota", "kota_", (HEADER, SAND_HEADER)), ("libkota-ground", "kota_ground_", (GROUND_HEADER,)))


@test("nothing but their own names leaves the libraries, and both forms have the same")
def _():
    for library, prefix, _ in LIBRARIES:
        shared = exported("-D", "--defined-only", os.path.join(LIB, library + ".so"))
        static = exported("-g", "--defined-only", os.path.join(LIB, library + ".a"))
        if library == "libkota":  # the static one has the ground with it
            static = {name for name in static if not name.startswith("kota_ground_")}
        ours = {name for name in shared if name.startswith(prefix)}
        equal(ours, {name for name in static if name.startswith(prefix)}, f"names of {library}")
        others = {n for n in shared | static if not n.startswith(prefix)
                  and not re.match(r"KOTA_(GROUND_)?0|__|_?gcov|_?llvm|odr_asan|_init|_fini|mangle_path", n)}
        equal(others, set(), f"other names of {library}")


@test("each declared function is there, and each that is there is declared")
def _():
    for library, prefix, headers in LIBRARIES:
        text = "".join(open(header, encoding="utf-8").read() for header in headers)
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        declared = {n for n in re.findall(rf"\b({prefix}\w+)\(", text) if not n.endswith("_fn")}
        shared = exported("-D", "--defined-only", os.path.join(LIB, library + ".so"))
        equal({n for n in shared if n.startswith(prefix)}, declared, f"functions of {library}")


@test("the shared libraries say which they are, and libkota-ground needs only libc and libm")
def _():
    if not shutil.which("readelf"):
        raise Skip("no readelf")
    for library, _, _ in LIBRARIES:
        dynamic = output("readelf", "-d", os.path.join(LIB, library + ".so"))
        check(f"soname: [{library}.so.0]" in dynamic, dynamic)
        equal(output("pkg-config", "--modversion", library).strip(), "0.1.0", "version")
    needed = re.findall(r"NEEDED.*\[(.*?)\.so", dynamic)
    if BIN_DIR.endswith("release"):
        check(set(needed) <= {"libc", "libm", "ld-linux-x86-64"}, f"libkota-ground needs {needed}")


@test("the headers stand alone and together, in C11 and in C++")
def _():
    include = ["-I" + os.path.dirname(HEADER), "-I" + os.path.dirname(GROUND_HEADER), "-Wall", "-Wextra",
               "-Wpedantic", "-Werror", "-fsyntax-only"]
    cxx = shutil.which("g++") or shutil.which("clang++")
    for headers in (["kota.h"], ["kota-sand.h"], ["kota-ground.h"], ["kota.h", "kota-ground.h"]):
        words = [word for header in headers for word in ("-include", header)] + ["/dev/null"]
        output(CC, "-std=c11", "-x", "c", *include, *words)
        if cxx:
            output(cxx, "-std=c++17", "-x", "c++", *include, *words)


@test("make install puts header, library and .pc file, and uninstall takes them away")
def _():
    if not BIN_DIR.endswith("release"):
        raise Skip("not the release build")
    target = os.path.join(folder.name, "root")
    # "-o all": what is built is what is tested, and is not built again here; test_install.py has the demo
    make = ["make", "-s", "-o", "all", "-o", "build/demo.made", "-C", ROOT, f"DESTDIR={target}", "PREFIX=/usr"]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
    output(*make, "install", env=clean)
    for path in ("include/kota.h", "include/kota-sand.h", "lib/libkota.so.0", "lib/libkota.so", "lib/libkota.a",
                 "include/kota-ground.h", "lib/libkota-ground.so.0", "lib/libkota-ground.a"):
        check(os.path.exists(os.path.join(target, "usr", path)), f"no {path}")
    with open(os.path.join(target, "usr/lib/pkgconfig/libkota.pc"), encoding="utf-8") as file:
        text = file.read()
    check("prefix=/usr\n" in text and "@" not in text and ROOT not in text, text)
    output(*make, "uninstall", env=clean)
    left = [name for _, _, names in os.walk(target) for name in names]
    equal(left, [], "left after uninstall")


# ---- examples ---------------------------------------------------------------------------------------

HELLO = os.path.join(EXAMPLES, "hello.c")


@test("hello.c is built by pkg-config, and prints what the daemon says")
def _():
    program = build(HELLO, "hello")
    want = daemon.ok("GET", "/v1/locales/highlands/height?x=1000&y=1000")["height"]
    equal(output(program, URL, "highlands", "1000", "1000"), f"{want:g} m\n", "output")
    equal(output(program, URL, "highlands", "-1", "0"), "outside\n", "output")
    equal(output(program, URL + "/", "atlantis", "1", "1", status=1), "", "output")
    output(program, "http://127.0.0.1:1", "highlands", "1", "1", status=1)
    output(program, status=2)


@test("hello.c is built with the static library, too")
def _():
    words = flags("--static")
    at = words.index("-lkota")
    words[at:at + 1] = ["-Wl,-Bstatic", "-lkota", "-Wl,-Bdynamic"]
    program = build(HELLO, "hello-static", *words)
    check("libkota" not in output("ldd", program), "it is linked with the shared one")
    check(output(program, URL, "highlands", "1000", "1000").endswith(" m\n"), "no height")


GAME = re.compile(r"^(\d+) ticks at 60 Hz, (\d+) missed; 1000 avatars.*?^contact.*?^(?:network: ([\d.]+) bytes a tick$.*?)?"
                  r"^(\d+) craters dug.*?(\d+) checks.*?(\d+) off the ground", re.M | re.S)


def game(*options):
    """ticks, bytes a tick (None: no replica), craters, checks, avatars off the ground"""
    text = output(os.path.join(BIN_DIR, "examples", "game_server"), "--url", URL, *options)
    for line in text.splitlines():
        print("# " + line)
    match = GAME.search(text)
    check(match, text)
    ticks, _, network, dug, checks, off = match.groups()
    return int(ticks), network and float(network), int(dug), int(checks), int(off)


@test("a thousand avatars stay on the ground of a replica while somebody digs")
def _():
    ticks, network, dug, checks, off = game("--seconds", "5")
    equal((ticks, off), (300, 0), "ticks, avatars off the ground")
    check(dug > 0 and checks > 0 and network > 0, f"{dug} craters, {checks} checks, {network} bytes a tick")


@test("while nobody digs a tick of a replica sends and receives nothing")
def _():
    ticks, network, dug, checks, off = game("--seconds", "3", "--digs", "0")
    equal((ticks, network, dug, off), (180, 0, 0, 0), "ticks, bytes a tick, craters, avatars off the ground")
    check(checks > 0, "nobody looked")


@test("the same game without a replica")
def _():
    ticks, network, _, checks, off = game("--seconds", "2", "--ask", "--digs", "0")
    equal((ticks, network, off), (120, None, 0), "ticks, bytes a tick, avatars off the ground")
    check(checks > 0, "nobody looked")


@test("the referee of the game sees what is off the ground")
def _():
    with open(os.path.join(EXAMPLES, "game_server.c"), encoding="utf-8") as file:
        source = file.read()
    line = "stand(game, i, game->own[i].status, game->own[i].floor.point[2]);"
    check(line in source, "the line has changed")
    # one that forgets avatar 7 from the second tick on
    text = source.replace(line, f"if (i != 7 || game->ticks < 2) {line}")
    program = build(None, "forgetful", *flags(), *flags(package="libkota-ground"), "-lm", "-pthread", text=text)
    wrong = output(program, "--url", URL, "--seconds", "2", status=1)
    check(int(re.search(r"(\d+) off the ground", wrong).group(1)) > 0, wrong)


def finish():
    try:
        daemon.stop()
    finally:
        folder.cleanup()


run(finish)
