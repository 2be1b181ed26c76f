"""What the linker and the compiler have done against attackers, read from the built programs.

Position-independent (PIE), all relocations read-only after start (full RELRO), no executable stack,
code in pages of its own, checked libc calls, a canary on the stack, and on x86 landing pads for
indirect jumps (IBT, SHSTK). The release build only: sanitizers have their own.
"""
import os
import platform
import re
import shutil
import subprocess

from daemon import BIN_DIR
from tap import Skip, case, check, equal, run

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROGRAMS = ("kotad", "kota", "kota-worldgen", "kota-sand")


def readelf(program, *options):
    if "release" not in os.path.basename(os.path.normpath(BIN_DIR)):
        raise Skip("not the release build")
    if not shutil.which("readelf"):
        raise Skip("no readelf")
    path = os.path.join(BIN_DIR, program)
    return subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True,
                          check=True).stdout


def segments(program):
    """[(type, flags)…]"""
    rows = re.findall(r"^\s+([A-Z_]+)\s+0x\S+ 0x\S+ 0x\S+ 0x\S+ 0x\S+ (.{3}) ",
                      readelf(program, "-l"), re.M)
    check(rows, f"{program}: no segments")
    return rows


def pie(program):
    check(re.search(r"Type:\s+DYN", readelf(program, "-h")), f"{program} is not position-independent")
    check(re.search(r"FLAGS_1\).*\bPIE\b", readelf(program, "-d")), f"{program} is no PIE")


def relro(program):
    check("GNU_RELRO" in dict(segments(program)), f"{program} has no RELRO segment")
    check(re.search(r"\(FLAGS\).*BIND_NOW|FLAGS_1\).*\bNOW\b", readelf(program, "-d")),
          f"{program} binds lazily")


def stack(program):
    flags = dict(segments(program)).get("GNU_STACK")
    check(flags and "E" not in flags, f"{program}: the stack is {flags}")


def separate(program):
    loads = [flags for kind, flags in segments(program) if kind == "LOAD"]
    check("R E" in loads and loads[0].strip() == "R", f"{program}: segments {loads}")
    check(not any("W" in flags and "E" in flags for flags in loads), f"{program}: writable code")


def fortified(program):
    names = re.findall(r"UND (\w+_chk)@", readelf(program, "--dyn-syms"))
    check("__stack_chk_fail" in readelf(program, "--dyn-syms"), f"{program}: no stack canary")
    check(names, f"{program}: no checked call of libc")


def has_source(folder, name):
    """What was built of a source that is gone does not count."""
    return os.path.exists(os.path.join(ROOT, os.path.relpath(folder, BIN_DIR), name[:-1] + "c"))


def landing_pads():
    """In each object of ours: the program says it only where libc's start code has them, too."""
    if platform.machine() not in ("x86_64", "i686"):
        raise Skip("not an x86")
    objects = [os.path.join(folder, name) for room in ("server", "client")
               for folder, _, names in os.walk(os.path.join(BIN_DIR, room))
               for name in names if name.endswith(".o") and has_source(folder, name)]
    check(len(objects) > 50, f"{len(objects)} objects")
    text = readelf(objects[0], "-n", *objects[1:])
    found = len(re.findall(r"x86 feature: IBT, SHSTK", text))
    equal(found, len(objects), "objects with landing pads")


for program_ in PROGRAMS:
    for what_, function_ in (("is position-independent", pie), ("has full RELRO", relro),
                             ("has no executable stack", stack),
                             ("keeps code in pages of its own", separate),
                             ("has checked libc calls and stack canaries", fortified)):
        case(f"{program_} {what_}", function_, program_)

case("each object has landing pads for indirect jumps", landing_pads)

run()
