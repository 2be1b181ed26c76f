"""libkota as others meet it: its names, its header, its .pc file, and the examples.

What the library does on the wire is tested in C, by tests/unit/test_libkota_*.c.
"""
import os
import re
import shutil
import subprocess
import tempfile

from daemon import BIN_DIR, ROOT, SLOW, Daemon
from tap import Skip, case, check, equal, run, test

LIB = os.path.join(BIN_DIR, "lib")
HEADER = os.path.join(ROOT, "client", "lib", "kota.h")
EXAMPLES = os.path.join(ROOT, "client", "examples")
CC = os.environ.get("CC", "cc")
folder = tempfile.TemporaryDirectory(prefix="kota-test-")
world = os.path.join(folder.name, "world")
subprocess.run([os.path.join(BIN_DIR, "kota-worldgen"), "demo", world, "--size", "512",
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
                          timeout=120 * SLOW, cwd=folder.name)
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

@test("nothing but kota_* leaves the library, and both forms have the same")
def _():
    shared = exported("-D", "--defined-only", os.path.join(LIB, "libkota.so"))
    static = exported("-g", "--defined-only", os.path.join(LIB, "libkota.a"))
    ours = {name for name in shared if name.startswith("kota_")}
    equal(ours, {name for name in static if name.startswith("kota_")}, "exported names")
    others = {n for n in shared | static if not n.startswith("kota_")
              and not re.match(r"KOTA_0|__|_?gcov|_?llvm|odr_asan|_init|_fini|mangle_path", n)}
    equal(others, set(), "other names")


@test("each declared function is there, and each that is there is declared")
def _():
    text = re.sub(r"/\*.*?\*/", "", open(HEADER, encoding="utf-8").read(), flags=re.S)
    declared = {n for n in re.findall(r"\b(kota_\w+)\(", text)} - {"kota_done_fn", "kota_event_fn",
                                                                  "kota_closed_fn", "kota_take_fn", "kota_sent_fn"}
    shared = exported("-D", "--defined-only", os.path.join(LIB, "libkota.so"))
    equal({n for n in shared if n.startswith("kota_")}, declared, "functions")


@test("the shared library says which it is")
def _():
    if not shutil.which("readelf"):
        raise Skip("no readelf")
    dynamic = output("readelf", "-d", os.path.join(LIB, "libkota.so"))
    check("soname: [libkota.so.0]" in dynamic, dynamic)
    equal(output("pkg-config", "--modversion", "libkota").strip(), "0.1.0", "version")


@test("the header stands alone, in C11 and in C++")
def _():
    include = ["-I" + os.path.dirname(HEADER), "-Wall", "-Wextra", "-Wpedantic", "-Werror",
               "-fsyntax-only", "-include", "kota.h", "/dev/null"]
    output(CC, "-std=c11", "-x", "c", *include)
    cxx = shutil.which("g++") or shutil.which("clang++")
    if cxx:
        output(cxx, "-std=c++17", "-x", "c++", *include)


@test("make install puts header, library and .pc file, and uninstall takes them away")
def _():
    if not BIN_DIR.endswith("release"):
        raise Skip("not the release build")
    target = os.path.join(folder.name, "root")
    # "-o all": what is built is what is tested, and is not built again here
    make = ["make", "-s", "-o", "all", "-C", ROOT, f"DESTDIR={target}", "PREFIX=/usr"]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
    output(*make, "install", env=clean)
    for path in ("include/kota.h", "lib/libkota.so.0", "lib/libkota.so", "lib/libkota.a"):
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


@test("a thousand avatars stay on the ground while somebody digs")
def _():
    program = os.path.join(BIN_DIR, "examples", "game_server")
    text = output(program, "--url", URL, "--seconds", "10")
    for line in text.splitlines():
        print("# " + line)
    match = re.search(r"^(\d+) ticks at 20 Hz, (\d+) missed; 1000 avatars.*?^contact.*?^(\d+) "
                      r"craters dug, (\d+) changes.*?(\d+) checks.*?(\d+) off the ground", text,
                      re.M | re.S)
    check(match, text)
    ticks, missed, dug, told, checks, off = (int(word) for word in match.groups())
    equal((ticks, off), (200, 0), "ticks, avatars off the ground")
    check(dug > 0 and told > 0 and checks >= ticks - missed > 0, text)


@test("the referee of the game sees what is off the ground")
def _():
    with open(os.path.join(EXAMPLES, "game_server.c"), encoding="utf-8") as file:
        source = file.read()
    line = "stand(&game->avatars[i], contacts + KOTA_CONTACT_NUMBERS * i);"
    check(line in source, "the line has changed")
    # one that forgets avatar 7 from the second tick on
    text = source.replace(line, f"if (i != 7 || game->ticks < 2) {line}")
    program = build(None, "forgetful", *flags(), *flags(package="libuv"), "-lm", "-pthread",
                    text=text)
    wrong = output(program, "--url", URL, "--seconds", "2", status=1)
    check(int(re.search(r"(\d+) off the ground", wrong).group(1)) > 0, wrong)


def finish():
    try:
        daemon.stop()
    finally:
        folder.cleanup()


run(finish)
