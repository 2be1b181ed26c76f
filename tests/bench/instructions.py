"""Counts the instructions of fixed sets of queries and compares them with what is committed.

    python3 tests/bench/instructions.py [--write]      (`make bench-check`; WRITE=1 renews)

Time on a busy machine says nothing; the count of the same program on the same input is always the
same. Each set of tests/bench/counted.c runs under valgrind, once for each dispatch level that
valgrind knows, and may take at most 5 % more than tests/bench/instructions.tsv says. What takes at
least 5 % less is told, too: renew the file then, in the commit that made it faster. Prints TAP.

Counts belong to a compiler and an architecture, named in the file's first line. With another one all
is skipped, and so it is without valgrind. --write renews the file.
"""
import os
import platform
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(HERE, "instructions.tsv")
PROGRAM = os.path.join(os.environ.get("KOTA_BIN_DIR", os.path.join(HERE, "../../build/release")),
                       "bench", "counted")
LEVELS = ("scalar", "avx2")  # what valgrind can run
TOLERANCE = 0.05


def compiler():
    """As the program says it: gcc leaves its version in the section .comment."""
    text = subprocess.run(["readelf", "-p", ".comment", PROGRAM], capture_output=True, text=True,
                          check=True).stdout
    found = re.findall(r"(?:GCC|clang)[^\n]*", text)
    return f"{platform.machine()}, {', '.join(sorted(set(found)))}"


def count(name, level):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                           "--toggle-collect=counted_run", PROGRAM, name], capture_output=True,
                          text=True, check=False, env=dict(os.environ, KOTA_SIMD=level))
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        raise SystemExit(f"instructions.py: {name} ({level}): {done.stdout}{done.stderr}")
    return int(found.group(1))


def read():
    with open(FILE, encoding="utf-8") as file:
        head, *lines = file.read().splitlines()
    return head[2:], {tuple(line.split("\t")[:2]): int(line.split("\t")[2]) for line in lines}


def write(counts):
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(f"# {compiler()}\n")
        file.writelines(f"{name}\t{level}\t{got}\n" for (name, level), got in counts.items())


def skip(why):
    print(f"1..0 # SKIP {why}")
    raise SystemExit(0)


def compare(counts, known):
    print(f"1..{len(counts)}")
    bad = 0
    for number, (key, got) in enumerate(counts.items(), 1):
        is_known = key in known
        ratio = got / known[key] if is_known else float("inf")
        is_good = ratio <= 1 + TOLERANCE
        bad += not is_good
        print(f"{'ok' if is_good else 'not ok'} {number} - {key[0]} ({key[1]}) takes no more instructions")
        if not is_known:
            print(f"# {got} instructions, and none in the file: instructions.py --write")
        elif not is_good or ratio < 1 - TOLERANCE:
            print(f"# {got} instructions, {ratio:.3f} times {known[key]}"
                  f"{'' if is_good else ': slower'}")
    return 1 if bad else 0


def main():
    if sys.argv[1:] not in ([], ["--write"]):
        raise SystemExit(__doc__)
    if not shutil.which("valgrind"):
        skip("no valgrind")
    names = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout.split()
    if sys.argv[1:] == []:
        head, known = read()
        if head != compiler():
            skip(f"counted for {head}, this is {compiler()}")
    counts = {(name, level): count(name, level) for name in names for level in LEVELS}
    if sys.argv[1:]:
        write(counts)
        return 0
    return compare(counts, known)


if __name__ == "__main__":
    sys.exit(main())
