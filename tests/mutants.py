#!/usr/bin/env python3
"""Do the tests notice a changed line? Random one-line mutants of server/, each built and tested.

  python3 tests/mutants.py --count 40 --seed 1 server/terrain     a room, some files, or all of server
  python3 tests/mutants.py --list ...                  prints the mutants; builds and runs nothing
  python3 tests/mutants.py --whole ...                 what survives also gets all of `make test`
  python3 tests/mutants.py --within 100 ...            a mutant has survived after so many seconds, and 20
  python3 tests/mutants.py --tests test_ray,test_mesh.py ...       those programs only

A mutant swaps a comparison, + and -, && and || or the like, moves a number by one, negates a
condition, drops a statement, or returns something else. Lines are drawn evenly by the seed; one that
does not compile, or compiles to the same code, is drawn again. Work is done on a copy of the tree that
has its build (make, make test first), so the tree itself is never changed.

Each mutant gets the unit tests that contain its object file and include a header of its room, the
black-box programs of like name and of its room (OUTSIDE below), and the fuzzers that contain it, where built
(make config=fuzz fuzzers), until one fails. Near and quick ones go first, and each is linked when it is
run. A program that fails is run on the unchanged build as well: if it fails there, it does not count.
One that runs five times as long as it does there, and 20 s, has noticed, too.

One line a mutant: killed or SURVIVED, file:line, the kind of change, by which program; for survivors
the change itself. At the end a table by rooms. --report FILE keeps all as tab-separated lines.
Exit status 0 unless --least PERCENT is given and fewer were killed.
"""
import argparse
import collections
import concurrent.futures
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
# A header that more objects than this include is left out: its mutants build for minutes.
DEPENDENTS_MAX = 12
DAEMON = [f"{BUILD}/kotad", f"{BUILD}/kota", f"{BUILD}/kota-worldgen"]  # of black-box programs
LINKER = " -fuse-ld=lld" if shutil.which("ld.lld") else ""  # a third of the time of ld
LEAST_LIMIT_S, MOST_LIMIT_S = 20, 900
NEAREST = 8  # unit tests that go before the black-box programs

# Black-box programs of a room, after its unit tests; the most telling first.
OUTSIDE = {
    "base": ["test_height.py", "test_start.py", "test_confined.py"],
    "terrain": ["test_oracle.py", "test_mesh_oracle.py", "test_mesh_soups.py", "test_lit.py",
                "test_pick.py", "test_edits.py"],
    "formats": ["test_tiles.py", "test_export.py", "test_mesh_files.py", "test_tiles3d.py", "test_terrain.py",
                "test_tiff.py", "test_extremes.py"],
    "store": ["test_restarts.py", "test_edits_store.py", "test_durable.py", "test_store_faults.py"],
    "replica": ["test_postgres.py", "test_cluster.py"],
    "world": ["test_edits.py", "test_layers.py", "test_mesh.py", "test_pins.py", "test_forks.py",
              "test_move.py", "test_polygons.py", "test_world_calls.py", "test_durable.py",
              "test_history.py", "test_cluster.py"],
    "sand": ["test_sand.py", "test_patches.py", "test_sand_device.py", "test_life.py"],
    "json": ["test_errors.py", "test_batches.py", "test_edits.py", "test_hostile_examples.py"],
    "http": ["test_http.py", "test_http_corpus.py", "test_http_refused.py", "test_life.py"],
    "api": ["test_errors.py", "test_openapi.py", "test_height.py", "test_maps.py", "test_samples.py",
            "test_batches.py", "test_edits.py", "test_layers.py", "test_limits.py", "test_metrics.py", "test_events.py",
            "test_start.py", "test_rights.py", "test_world_calls.py", "test_export.py", "test_compat.py"],
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
        self.folder, self.how, self.archives = folder, {}, {}
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

    def learn(self, programs):
        """Asks make once how each object and program of the build is made; make itself takes seconds."""
        said = subprocess.run(["make", "-nB", "V=1", *programs], cwd=self.folder, check=True,
                              capture_output=True, text=True).stdout
        for line in said.replace("\\\n", " ").splitlines():
            made = re.search(r" -o (\S+)", line)
            if made:
                self.how[made.group(1)] = line
            elif line.startswith("ar rcs "):
                _, _, archive, *held = line.split()
                self.archives[archive] = dict.fromkeys(held)

    def compile(self, objects):
        """Whether the objects could be made; the archives that hold them have them then."""
        environment = {**os.environ, "CCACHE_DISABLE": "1"}  # no mutant is compiled twice

        def is_made(name):
            return subprocess.run(self.how[name], shell=True, cwd=self.folder, env=environment,
                                  capture_output=True).returncode == 0

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            if not all(pool.map(is_made, objects)):
                return False
        self.put(objects)
        return True

    def put(self, objects):
        """The archives that hold the objects, again: some members have one name in two rooms."""
        for archive, held in self.archives.items():
            if held.keys() & set(objects):
                os.remove(os.path.join(self.folder, archive))
                subprocess.run(["ar", "rcsT", archive, *held], cwd=self.folder, check=True)

    def link(self, programs):
        """The programs from the objects as they are, side by side."""
        links = [subprocess.Popen(self.how[name] + LINKER, shell=True, cwd=self.folder)
                 for name in programs if name in self.how]
        if any([one.wait() for one in links]):
            sys.exit(f"cannot be linked: {' '.join(programs)}")

    def make(self, targets):
        """Whether make could make them: the fuzzers, which hold nothing of the page."""
        old = [f"--old-file={FUZZ}/{name}"
               for name in ("kota_ground.wasm", "web_assets.inc", "server/api/calls/web.o")]
        return subprocess.run(["make", "-s", f"-j{os.cpu_count() or 1}", *old, *targets],
                              cwd=self.folder, capture_output=True).returncode == 0

    def read(self, objects):
        """{name: bytes} of the objects, for restore()."""
        kept = {}
        for name in objects:
            with open(os.path.join(self.folder, name), "rb") as file:
                kept[name] = file.read()
        return kept

    def restore(self, kept):
        for name, content in kept.items():
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(content)
        self.put(list(kept))

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
        self.passes, self.holds, self.includes = {}, {}, {}
        self.seconds, self.kills = collections.Counter(), collections.Counter()
        with open(os.path.join(ROOT, "tests/programs.list"), encoding="utf-8") as file:
            self.listed = {line.split()[0]: int(line.split()[2]) for line in file
                           if line.strip() and line[0] != "#"}
        for name in sorted(glob.glob(os.path.join(ROOT, "tests/unit/test_*.c"))):
            program = os.path.join(BUILD, "tests", os.path.basename(name)[:-2])
            if os.path.exists(os.path.join(ROOT, program)):
                with open(name, encoding="utf-8") as file:
                    self.includes[program] = set(re.findall(r'#include "([^"]+)"', file.read()))
                self.holds[program] = symbols(program)
        self.fuzzers = {os.path.join(FUZZ, "fuzz", name): symbols(os.path.join(FUZZ, "fuzz", name))
                        for name in (os.listdir(os.path.join(ROOT, FUZZ, "fuzz"))
                                     if os.path.isdir(os.path.join(ROOT, FUZZ, "fuzz")) else [])}

    def about(self, program):
        """Seconds that it takes, as far as is known."""
        return self.seconds[program] or self.listed.get(os.path.basename(program), 1)

    def of(self, path, names, only):
        """Programs for one file that defines these names, in the order to run them."""
        if only:
            return [f"tests/api/{name}" if name.endswith(".py") else f"{BUILD}/tests/{name}"
                    for name in only]
        room, stem = path.split("/")[1], os.path.splitext(os.path.basename(path))[0]
        folder = os.path.dirname(path).removeprefix("server/")
        words = set(stem.split("_"))

        def chance(program):
            """A guess at how likely it notices; those of other rooms do not count."""
            included = self.includes[program]
            return self.kills[program, path] + \
                10 * (os.path.basename(program) == f"test_{stem}") + \
                5 * (f"{folder}/{stem}.h" in included) + \
                3 * len(words & set(os.path.basename(program).split("_"))) + \
                2 * any(os.path.dirname(one) == folder for one in included) + \
                any(one.startswith(room + "/") for one in included)

        units = [p for p, held in self.holds.items() if names & held]
        units = [p for p in units if chance(p)] or units
        units.sort(key=lambda p: -(chance(p) + 0.1) / (1 + self.about(p)))
        alike = [name for name in sorted(os.listdir(os.path.join(ROOT, "tests/api")))
                 if name.endswith(".py") and name[:5] == "test_" and
                 any(part.startswith(word) for part in name[5:-3].split("_") for word in words
                     if len(word) > 2)]
        alike.sort(key=self.about)
        outside = [f"tests/api/{name}" for name in dict.fromkeys(alike + OUTSIDE[room])
                   if os.path.exists(os.path.join(ROOT, "tests/api", name))]
        outside.sort(key=lambda p: -self.kills[p, room])
        return units[:NEAREST] + outside + units[NEAREST:]

    def run(self, command, folder, limit_s):
        """(status, seconds) of one program in a tree; None for a status: it ran past the limit."""
        environment = {**os.environ, "KOTA_BIN_DIR": BUILD, "CMOCKA_MESSAGE_OUTPUT": "TAP",
                       "PYTHONDONTWRITEBYTECODE": "1"}
        began = time.monotonic()
        process = subprocess.Popen(["python3", *command] if command[0].endswith(".py") else command,
                                   cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            status = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.wait()
        return status, time.monotonic() - began

    def usual(self, *command):
        """Does it pass on the unchanged build?"""
        if command not in self.passes:
            status, self.seconds[command[0]] = self.run(command, ROOT, MOST_LIMIT_S)
            self.passes[command] = status == 0
            if status != 0:
                print(f"# {' '.join(command)} fails without a mutant and is not counted", flush=True)
        return self.passes[command]

    def fails(self, tree, until, *command):
        """How it fails with the mutant and without it does not: "", or ", which hangs"; or None.

        A black-box program is stopped LEAST_LIMIT_S after `until`, and has then noticed nothing.
        """
        limit_s = max(LEAST_LIMIT_S, 5 * self.about(command[0]))
        left_s = until - time.monotonic() + LEAST_LIMIT_S if command[0].endswith(".py") \
            else float("inf")
        status, seconds = self.run(command, tree.folder, min(limit_s, left_s))
        if status is None and left_s < limit_s:
            return None
        if status is None and self.usual(*command) and limit_s < 5 * self.seconds[command[0]]:
            status, seconds = self.run(command, tree.folder, 5 * self.seconds[command[0]])
        if status == 0:
            self.seconds[command[0]] = seconds
        elif self.usual(*command):
            return "" if status is not None else ", which hangs"
        return None


def symbols(name, *options):
    said = subprocess.run(["nm", "--defined-only", *options, os.path.join(ROOT, name)],
                          capture_output=True, text=True).stdout
    return {line.split()[-1] for line in said.splitlines() if line}


def noticed(tree, programs, path, objects, only, until):
    """The program that notices the mutant in the tree, and how; or None. None begins after `until`."""
    names = set().union(*(symbols(name, "--extern-only") for name in objects))
    linked = False
    for program in programs.of(path, names, only):
        if time.monotonic() > until:
            return None
        if not program.endswith(".py"):
            tree.link([program])
        elif not linked:
            tree.link(DAEMON)
            linked = True
        how = programs.fails(tree, until, program)
        if how is not None:
            programs.kills.update([(program, path), (program, path.split("/")[1])])
            return os.path.basename(program) + how
    # The fuzzers also notice leaks and what is read beyond its end.
    chosen = sorted(name for name, held in programs.fuzzers.items() if names & held and not only)
    if chosen and time.monotonic() < until and tree.make(["config=fuzz", *chosen]):
        command = ["tests/api/test_fuzz.py", *(os.path.basename(name) + ":" for name in chosen)]
        if programs.fails(tree, until, *command) is not None:
            return "test_fuzz.py"
    return None


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
    parser.add_argument("--within", type=float, default=float("inf"), help="seconds for a mutant")
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
        tree.learn([*DAEMON, *programs.holds])
        number = 0
        for path, i, kind, old, new in drawn:
            touched = objects.get(path, [])
            if number >= asked.first - 1 + asked.count:
                break
            before, kept = tree.code(touched), tree.read(touched)
            tree.write(path, i, new)
            if tree.compile(touched) and tree.code(touched) != before:
                number += 1
                if number >= asked.first:
                    report(asked, tree, programs, results, (number, path, i, kind, old, new),
                           touched, only)
            tree.write(path, i, old)
            tree.restore(kept)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if table(results) < asked.least else 0


def report(asked, tree, programs, results, mutant, touched, only):
    number, path, i, kind, old, new = mutant
    began = time.monotonic()
    by = noticed(tree, programs, path, touched, only, began + asked.within) or \
        (whole(tree) if asked.whole else None)
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
