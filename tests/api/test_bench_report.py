"""The table of `make bench`: what report.py makes of rows, and that the document's rows say why."""
import os
import re
import subprocess
import sys
import tempfile

from daemon import ROOT
from tap import check, equal, run, test

REPORT = os.path.join(ROOT, "tests", "bench", "report.py")
DOCUMENT = os.path.join(ROOT, "docs", "performance.md")
ROWS = (("rays", "single ray, picks, 1024²", "Embree", "least", "2.04", "2", "10 and 20 ns"),
        ("rays", "single ray, random, 1024²", "Embree", "least", "1.5", "2", "10 and 15 ns"),
        ("rays", "single ray, random, 4096²", "Embree", "least", "1.5", "0", ""),
        ("Serving", "p99 in an open loop", "nginx", "most", "0.9", "1", ""),
        ("Serving", "p99 in an open loop", "nginx", "most", "1.2", "1", ""),
        ("elsewhere", "work of a new kind", "nobody", "least", "0.5", "1", ""))


def report(rows, document=None):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.tsv")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines("\t".join(row) + "\n" for row in rows)
        done = subprocess.run([sys.executable, REPORT, path, *([document] if document else [])],
                              capture_output=True, text=True, check=False)
    return done


def table_rows(text):
    return [line for line in text.splitlines()
            if line.startswith("| ") and not line.startswith("| work |")]


@test("a row is reached, not reached with its reason, or was not asked for")
def _():
    done = report(ROWS)
    equal(done.returncode, 0, "exit status")
    lines = table_rows(done.stdout)
    equal(len(lines), len(ROWS), "rows")
    equal(lines[0], "| single ray, picks, 1024² | Embree | ≥ 2 | 2.04 | reached; 10 and 20 ns |", "1")
    check(re.search(r"\*\*not reached\*\*; 10 and 15 ns; why: .*\(\"Rays over heightfields\"\) \|$",
                    lines[1]), lines[1])
    equal(lines[2], "| single ray, random, 4096² | Embree | – | 1.5 |  |", "3")
    equal(lines[3], "| p99 in an open loop | nginx | ≤ 1 | 0.9 | reached |", "4")
    check("**not reached**" in lines[4] and "(\"Serving\")" in lines[4], lines[4])
    check(lines[5].endswith("**not reached**; why: nobody knows why yet |"), lines[5])


@test("a document's table of this machine's level is replaced, and no other")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "performance.md")
        with open(path, "w", encoding="utf-8") as file:
            for level in ("avx512", "avx2", "scalar"):
                file.write(f"<!-- table of make bench, {level} -->\n\nold {level}\n\n"
                           "<!-- end of the table -->\n")
        equal(report(ROWS, path).returncode, 0, "exit status")
        with open(path, encoding="utf-8") as file:
            text = file.read()
    equal(text.count("old "), 2, "tables that are left")
    equal(text.count("single ray, picks, 1024²"), 1, "tables that are new")
    equal(text.count("<!-- end of the table -->"), 3, "ends of tables")


@test("reasons are renewed in each table, of its level, and nothing else")
def _():
    row = "| contact, hit, hills, one by one | Embree | ≥ 4.5 | 3 | **not reached**; 9 and 27 ns"
    old = "\n".join([f"before {row} |"] + [
        f"<!-- table of make bench, {level} -->\n\n**contact**\n\n{row}{why} |\n| a | b | – | 3 |  |\n"
        "<!-- end of the table -->"
        for level, why in (("avx512", ""), ("avx2", "; why: old; as it was"))]) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "performance.md")
        for _ in range(2):
            with open(path, "w", encoding="utf-8") as file:
                file.write(old)
            done = subprocess.run([sys.executable, REPORT, "--reasons", path], check=False)
            equal(done.returncode, 0, "exit status")
            with open(path, encoding="utf-8") as file:
                old, new = file.read(), old
    missed = [line for line in old.splitlines() if line.startswith(row)]
    equal(len(missed), 2, "rows")
    check(all(line.startswith(f"{row}; why: ") and "as it was" not in line for line in missed), missed)
    check(missed[0] != missed[1], "each level has its own reason")
    equal([re.sub("; why.*", " |", line) for line in old.splitlines()],
          [re.sub("; why.*", " |", line) for line in new.splitlines()], "all else")


@test("what is no row is refused, with its line")
def _():
    for bad in (("rays", "work", "peer", "least", "1", "2"), ("a", "b", "c", "some", "1", "2", "")):
        done = report((*ROWS, bad))
        equal(done.returncode, 1, "exit status")
        check(f"rows.tsv:{len(ROWS) + 1}: not a row" in done.stderr, done.stderr)
    check("no rows" in report(()).stderr, "an empty file of rows")


@test("each row of docs/performance.md that is not reached says why, in a section that is there")
def _():
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    headings = set(re.findall(r"^##+ (.*)$", text, re.M))
    missed = [line for line in table_rows(text) if "**not reached**" in line]
    for line in missed:
        section = re.search(r'\("([^"]+)"\) \|$', line)
        check(section is not None, f"no reason: {line}")
        check(any(h.startswith(section.group(1)) for h in headings), f"no such section: {line}")


run()
