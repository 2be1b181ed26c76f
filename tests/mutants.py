#!/usr/bin/env python3
"""Do the tests notice a changed line? Random one-line mutants of server/, each built and tested.

  python3 tests/mutants.py --count 40 --seed 1 server/terrain     a room, some files, or all of server
  python3 tests/mutants.py --list ...                  prints the mutants; builds and runs nothing
  python3 tests/mutants.py --whole ...                 what survives also gets all of `make test`
  python3 tests/mutants.py --tests test_ray,test_mesh.py ...       those programs only

A mutant swaps a comparison, + and -, && and || or the like, moves a number by one, negates a
condition, drops a statement, or returns something else. Lines are drawn evenly by the seed; one that
does not compile, or compiles to the same code, is drawn again. Work is done on a copy of the tree that
has its build (make, make test first), so the tree itself is never changed.

Each mutant gets the unit tests that contain its object file and include a header of its room, those
of like name first, quick ones before slow ones, then the black-box programs of its room (OUTSIDE below),
and then the fuzzers where they are built (make config=fuzz fuzzers), until one fails. A program that runs five times as long as it did with other mutants, and a minute, has noticed,
too. A program that fails is run on the unchanged build as well: if it fails there, it does not count.

One line a mutant: killed or SURVIVED, file:line, the kind of change, by which program; for survivors
the change itself. At the end a table by rooms. --report FILE keeps all as tab-separated lines.
Exit status 0 unless --least PERCENT is given and fewer were killed.
"""
import argparse
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD, FUZZ = "build/release", "build/fuzz"
FUZZ_LIMIT_S = 900
# A header that more objects than this include is left out: its mutants build for minutes.
DEPENDENTS_MAX = 12
LEAST_LIMIT_S = 60

# Black-box programs of a room, after its unit tests; the most telling first.
OUTSIDE = {
    "base": ["test_height.py", "test_start.py", "test_confined.py"],
    "terrain": ["test_oracle.py", "test_mesh_oracle.py", "test_mesh_soups.py", "test_lit.py",
                "test_pick.py", "test_edits.py"],
    "formats": ["test_tiles.py", "test_export.py", "test_mesh_files.py", "test_extremes.py"],
    "store": ["test_restarts.py", "test_edits_store.py", "test_durable.py", "test_store_faults.py"],
    "replica": ["test_postgres.py", "test_cluster.py"],
    "world": ["test_edits.py", "test_layers.py", "test_move.py", "test_polygons.py",
              "test_world_calls.py", "test_durable.py", "test_cluster.py"],
    "sand": ["test_sand.py", "test_patches.py", "test_sand_device.py"],
    "json": ["test_errors.py", "test_batches.py", "test_edits.py", "test_hostile_examples.py"],
    "http": ["test_http.py", "test_http_corpus.py", "test_http_refused.py", "test_life.py"],
    "api": ["test_errors.py", "test_openapi.py", "test_height.py", "test_batches.py",
            "test_edits.py", "test_layers.py", "test_limits.py", "test_metrics.py", "test_events.py",
            "test_start.py", "test_rights.py", "test_world_calls.py", "test_export.py"],
    "view": ["test_view.py"],
    "daemon": ["test_start.py", "test_life.py", "test_restarts.py", "test_confined.py"],
}

SWAPS = [("<=", "<"), ("<", "<="), (">=", ">"), (">", ">="), ("==", "!="), ("!=", "=="),
         ("&&", "||"), ("||", "&&"), ("+", "-"), ("-", "+"), ("*", "/"), ("/", "*"),
         ("+=", "-="), ("-=", "+="), ("++", "--"), ("--", "++"), ("<<", ">>"), (">>", "<<"),
         ("&", "|"), ("|", "&")]
OPERATORS = re.compile(
    r"->|<<=|>>=|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|\+\+|--|<<|>>|(?<= )[-+*/&|<>](?= )")
NUMBER = re.compile(r"(?<![\w.])(\d+)(u|U|ul|UL)?(?![\w.])")
STATEMENT = re.compile(r"^\s+(?!return\b|goto\b|case\b|default\b|else\b|if\b|for\b|while\b|do\b|struct\b|"
                       r"const\b|static\b|enum\b|unsigned\b|u?int\w*\b|double\b|float\b|bool\b|"
                       r"size_t\b|char\b|void\b)[\w*(][^;]*;\s*$")
CONDITION = re.compile(r"^(\s*(?:\} else )?(?:if|while) \()(.*)(\)(?: \{)?\s*)$")
RETURN = re.compile(r"^(\s*return )([^;]+)(;\s*)$")
# Nobody can notice these: hints to the processor, words of a message, checks of other builds, a byte more room.
DULL = re.compile(r"__builtin_(prefetch|expect)|VALIDATE_THAT|_Static_assert|\bprefetch\w*\(|^\s+char \w+\[\d+\];")


def code_lines(text):
    """(index, line) of each line inside a function that holds neither comment nor string."""
    inside = comment = False
    for i, line in enumerate(text.split("\n")):
        begins_in_comment = comment
        if "/*" in line:
            comment = "*/" not in line[line.rindex("/*"):]
        elif "*/" in line:
            comment = False
        if line.startswith("{"):
            inside = True
        elif line.startswith("}"):
            inside = False
        elif inside and not begins_in_comment and not comment and \
                not re.search(r'^\s*#|/\*|"|\'|\\$', line) and not DULL.search(line):
            yield i, line


def changes(line):
    """Every (kind, changed line) of one line."""
    for match in OPERATORS.finditer(line):
        for old, new in SWAPS:
            if match.group() == old:
                yield f"{old} to {new}", line[:match.start()] + new + line[match.end():]
    for match in NUMBER.finditer(line):
        value, suffix = int(match.group(1)), match.group(2) or ""
        for other in (value + 1, value - 1):
            if other >= 0:
                yield f"{value} to {other}", \
                    line[:match.start()] + str(other) + suffix + line[match.end():]
    match = CONDITION.match(line)
    if match and match.group(2).count("(") == match.group(2).count(")"):
        yield "condition negated", f"{match.group(1)}!({match.group(2)}){match.group(3)}"
    if STATEMENT.match(line):
        yield "statement dropped", re.match(r"\s*", line).group() + ";"
    match = RETURN.match(line)
    if match and match.group(2) not in ("0", "false"):
        yield "returns 0", f"{match.group(1)}0{match.group(3)}"
    if match and match.group(2) in ("0", "false", "true"):
        other = {"0": "1", "false": "true", "true": "false"}[match.group(2)]
        yield f"returns {other}", f"{match.group(1)}{other}{match.group(3)}"
    if re.match(r"^\s*(break|continue);\s*$", line):
        yield "jumps elsewhere", line.replace("break", "\0").replace("continue", "break") \
            .replace("\0", "continue")


def dependents():
    """Objects of the build by source file: {path: [object]} from the compiler's .d files."""
    found = {}
    for name in glob.glob(os.path.join(ROOT, BUILD, "server", "**", "*.d"), recursive=True):
        with open(name, encoding="utf-8") as file:
            words = file.read().split(":", 1)[1].split(":", 1)[0].replace("\\\n", " ").split()
        for word in set(words):
            if word.startswith("server/"):
                found.setdefault(word, []).append(os.path.relpath(name[:-2] + ".o", ROOT))
    return found


def draw(places, seed, objects):
    """Endless draws of (path, index of the line, kind, old line, new line)."""
    files = []
    rooms = {entry.name for entry in os.scandir(os.path.join(ROOT, "server")) if entry.is_dir()}
    if rooms != set(OUTSIDE):
        sys.exit(f"OUTSIDE and the rooms of server/ differ: {' '.join(sorted(rooms ^ set(OUTSIDE)))}")
    for place in places:
        top = os.path.join(ROOT, place)
        names = [top] if os.path.isfile(top) else \
            glob.glob(os.path.join(top, "**", "*.[ch]"), recursive=True)
        files += sorted(os.path.relpath(name, ROOT) for name in names)
    lines = []
    for path in files:
        if path.endswith(".h") and not 0 < len(objects.get(path, [])) <= DEPENDENTS_MAX:
            continue
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            lines += [(path, i, line) for i, line in code_lines(file.read()) if any(changes(line))]
    if not lines:
        sys.exit(f"no line to change in {' '.join(places)} (is {BUILD} built?)")
    chance, seen = random.Random(seed), set()
    while len(seen) < len(lines):
        path, i, line = chance.choice(lines)
        kind, new = chance.choice(list(changes(line)))
        if (path, i) not in seen:
            seen.add((path, i))
            yield path, i, kind, line, new


class Tree:
    """A copy of the tree with its build, in which one line differs."""

    def __init__(self, folder):
        self.folder = folder
        for name in os.listdir(ROOT):
            if name not in (".git", "build"):
                subprocess.run(["cp", "-a", "--reflink=auto", os.path.join(ROOT, name), folder],
                               check=True)
        os.mkdir(os.path.join(folder, "build"))
        for build in (BUILD, FUZZ):
            if os.path.exists(os.path.join(ROOT, build)):
                subprocess.run(["cp", "-a", "--reflink=auto", os.path.join(ROOT, build),
                                os.path.join(folder, build)], check=True)

    def write(self, path, index, line):
        """Puts a line in; what the file was is returned, for restore()."""
        name = os.path.join(self.folder, path)
        with open(name, encoding="utf-8") as file:
            lines = file.read().split("\n")
        old, lines[index] = lines[index], line
        with open(name, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        return old

    def make(self, targets):
        return subprocess.run(["make", "-s", f"-j{os.cpu_count() or 1}", *targets], cwd=self.folder,
                              capture_output=True, text=True, errors="replace").returncode == 0

    def code(self, objects):
        """The objects' bytes without names of lines."""
        out = []
        for name in objects:
            bare = os.path.join(self.folder, "bare.o")
            subprocess.run(["objcopy", "--strip-debug", os.path.join(self.folder, name), bare],
                           check=True)
            with open(bare, "rb") as file:
                out.append(file.read())
        return out


class Programs:
    """What to run for a file, how long it takes, and whether it passes without a mutant."""

    def __init__(self):
        self.seconds, self.passes, self.holds, self.includes = {}, {}, {}, {}
        for name in sorted(glob.glob(os.path.join(ROOT, "tests/unit/test_*.c"))):
            program = os.path.join(BUILD, "tests", os.path.basename(name)[:-2])
            if not os.path.exists(os.path.join(ROOT, program)):
                continue
            with open(name, encoding="utf-8") as file:
                self.includes[program] = set(re.findall(r'#include "([^"]+)"', file.read()))
            said = subprocess.run(["nm", "--defined-only", os.path.join(ROOT, program)],
                                  capture_output=True, text=True).stdout
            self.holds[program] = {line.split()[-1] for line in said.splitlines() if line}

    def of(self, path, objects, only):
        """Programs for one file, in the order to run them."""
        if only:
            return [f"tests/api/{name}" if name.endswith(".py") else f"{BUILD}/tests/{name}"
                    for name in only]
        names = set()
        for name in objects:
            said = subprocess.run(["nm", "--defined-only", "--extern-only",
                                   os.path.join(ROOT, name)], capture_output=True, text=True).stdout
            names |= {line.split()[-1] for line in said.splitlines() if line}
        room, stem = path.split("/")[1], os.path.splitext(os.path.basename(path))[0]
        header = f"{os.path.dirname(path).removeprefix('server/')}/{stem}.h"
        units = [p for p, held in self.holds.items() if names & held]
        words = set(stem.split("_"))
        near = [p for p in units if words & set(os.path.basename(p).split("_")) or
                any(one.startswith(room + "/") for one in self.includes[p])]
        units = near or units
        units.sort(key=lambda p: (os.path.basename(p) != f"test_{stem}",
                                  -len(words & set(os.path.basename(p).split("_"))),
                                  header not in self.includes[p],
                                  self.seconds.get(p, 1)))
        outside = [f"tests/api/{name}" for name in OUTSIDE[room]
                   if os.path.exists(os.path.join(ROOT, "tests/api", name))]
        return units + outside

    def run(self, program, folder, limit_s):
        """(passed, seconds) of one program in a tree."""
        command = ["python3", program] if program.endswith(".py") else [program]
        environment = {**os.environ, "KOTA_BIN_DIR": BUILD, "CMOCKA_MESSAGE_OUTPUT": "TAP",
                       "PYTHONDONTWRITEBYTECODE": "1"}
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            process.communicate(timeout=limit_s)
            status = process.returncode
        except subprocess.TimeoutExpired:
            status = None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if status is None:
            process.communicate()
        return status == 0, time.monotonic() - began

    def usual(self, program):
        """Does it pass on the unchanged build?"""
        if program not in self.passes:
            self.passes[program], _ = self.run(program, ROOT, 900)
            if not self.passes[program]:
                print(f"# {program} fails without a mutant and is not counted", flush=True)
        return self.passes[program]


def noticed(tree, programs, path, objects, only):
    """The program that notices the mutant in the tree, and how; or None."""
    chosen, built = programs.of(path, objects, only), 0
    for number, program in enumerate(chosen):
        if number == built:  # the likeliest alone, the others in ever larger portions
            built = min(len(chosen), 2 * built + 3)
            tree.make(sorted({f"{BUILD}/{name}" for name in ("kotad", "kota", "kota-worldgen")
                              if chosen[built - 1].endswith(".py")} |
                             {name for name in chosen[number:built] if not name.endswith(".py")}))
        limit_s = max(LEAST_LIMIT_S, 5 * programs.seconds.get(program, LEAST_LIMIT_S))
        passed, seconds = programs.run(program, tree.folder, limit_s)
        if passed:
            programs.seconds[program] = min(seconds, programs.seconds.get(program, seconds))
        elif programs.usual(program):
            return os.path.basename(program) + (", which hangs" if seconds >= limit_s else "")
    return fuzzed(tree, programs) if not only else None


def fuzzed(tree, programs):
    """test_fuzz.py, which also notices leaks and what is read beyond its end; or None."""
    program = "tests/api/test_fuzz.py"
    if not os.path.exists(os.path.join(ROOT, FUZZ)) or not tree.make(["config=fuzz", "fuzzers"]):
        return None
    passed, _ = programs.run(program, tree.folder, FUZZ_LIMIT_S)
    return None if passed or not programs.usual(program) else os.path.basename(program)


def whole(tree):
    """All of `make test` in the mutant's tree: the first line that failed, or None."""
    done = subprocess.run(["make", "test"], cwd=tree.folder, capture_output=True, text=True,
                          errors="replace")
    said = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    return None if done.returncode == 0 else (said or ["make test"])[0].split()[-1]


def table(results):
    rooms = {}
    for path, killed in results:
        room = rooms.setdefault(path.split("/")[1], [0, 0])
        room[0] += killed
        room[1] += 1
    for room, (killed, count) in sorted(rooms.items()):
        print(f"{room:12} {killed:4} of {count:4} killed, {100 * killed / count:5.1f} %")
    killed = sum(k for _, k in results)
    print(f"{'all':12} {killed:4} of {len(results):4} killed, "
          f"{100 * killed / max(1, len(results)):5.1f} %")
    return 100 * killed / max(1, len(results))


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("places", nargs="*", default=["server"], help="rooms or files")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="number of the first to be run")
    parser.add_argument("--tests", default="", help="programs to run instead: test_ray,test_mesh.py")
    parser.add_argument("--whole", action="store_true", help="survivors get all of make test")
    parser.add_argument("--list", action="store_true", help="print what would be changed")
    parser.add_argument("--least", type=float, default=0, help="percent that must be killed")
    parser.add_argument("--report", help="a file of tab-separated lines")
    return parser.parse_args()


def main():
    asked = options()
    objects = dependents()
    drawn = draw(asked.places, asked.seed, objects)
    if asked.list:
        for _, (path, i, kind, old, new) in zip(range(asked.count), drawn):
            print(f"{path}:{i + 1}: {kind}\n-{old}\n+{new}")
        return 0
    programs, results = Programs(), []
    only = [name for name in asked.tests.split(",") if name]
    folder = tempfile.mkdtemp(prefix="kota-mutants-")
    try:
        tree = Tree(folder)
        number = 0
        for path, i, kind, old, new in drawn:
            touched = objects.get(path, [])
            if number >= asked.first - 1 + asked.count:
                break
            before = tree.code(touched)
            tree.write(path, i, new)
            if tree.make(touched) and tree.code(touched) != before:
                number += 1
                if number >= asked.first:
                    report(asked, tree, programs, results, (number, path, i, kind, old, new),
                           touched, only)
            tree.write(path, i, old)
            tree.make(touched)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if table(results) < asked.least else 0


def report(asked, tree, programs, results, mutant, touched, only):
    number, path, i, kind, old, new = mutant
    began = time.monotonic()
    by = noticed(tree, programs, path, touched, only) or (whole(tree) if asked.whole else None)
    results.append((path, by is not None))
    print(f"{number:4} {'killed  ' if by else 'SURVIVED'} {path}:{i + 1}: {kind}"
          f"{', by ' + by if by else ''} ({time.monotonic() - began:.0f} s)", flush=True)
    if not by:
        print(f"     -{old.strip()}\n     +{new.strip()}", flush=True)
    if asked.report:
        with open(asked.report, "a", encoding="utf-8") as file:
            print(number, "killed" if by else "survived", path, i + 1, kind, by or "", old.strip(),
                  new.strip(), sep="\t", file=file)


if __name__ == "__main__":
    sys.exit(main())
