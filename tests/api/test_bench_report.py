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
INTERNALS = os.path.join(ROOT, "docs", "internals")
ROWS = (("rays", "single ray, picks, 4096²", "Embree 4", "least", "2.04", "2", "10 and 20 ns"),
        ("rays", "rays in a batch, random, 4096²", "Embree 4", "least", "1.5", "2", "10 and 15 ns"),
        ("rays", "single ray, random, 4096²", "Embree 4", "least", "1.5", "0", ""),
        ("Serving", "p99 in an open loop, half load", "nginx", "most", "0.9", "1", ""),
        ("elsewhere", "work of a new kind", "nobody", "most", "1.2", "1", ""))


def report(rows, document=None):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.tsv")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines("\t".join(row) + "\n" for row in rows)
        return subprocess.run([sys.executable, REPORT, path, *([document] if document else [])],
                              capture_output=True, text=True, check=False)


def table_rows(text):
    return [line for line in text.splitlines()
            if line.startswith("| ") and not line.startswith("| work |")]


@test("a row is reached, not reached, or was not asked for; all are printed in their order")
def _():
    done = report(ROWS)
    equal(done.returncode, 0, "exit status")
    equal(table_rows(done.stdout), [
        "| rays: single ray, picks, 4096² | Embree 4 | ≥ 2 | 2.04 | reached; 10 and 20 ns |",
        "| rays: rays in a batch, random, 4096² | Embree 4 | ≥ 2 | 1.5 | **not reached**; 10 and 15 ns |",
        "| rays: single ray, random, 4096² | Embree 4 | – | 1.5 |  |",
        "| Serving: p99 in an open loop, half load | nginx | ≤ 1 | 0.9 | reached |",
        "| elsewhere: work of a new kind | nobody | ≤ 1 | 1.2 | **not reached** |"], "rows")


@test("a document gets the short table of this machine, with reasons, and no other table changes")
def _():
    other = "<!-- make bench: another machine -->\n\nold\n\n<!-- end -->"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "performance.md")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"before\n{other}\nafter\n")
        for _ in range(2):
            equal(report(ROWS, path).returncode, 0, "exit status")
        with open(path, encoding="utf-8") as file:
            text = file.read()
    check(text.startswith(f"before\n{other}\n\n<!-- make bench: "), text)
    check(text.endswith("\n<!-- end -->\nafter\n"), text)
    rows = table_rows(text)
    equal(len(rows), 3, "rows that short.tsv lists, once")
    check("; why: steps by nodes" in rows[1], rows[1])


@test("a document without a place for a table is refused, and so is a line that is no row")
def _():
    with tempfile.NamedTemporaryFile(suffix=".md") as file:
        check("needs a line" in report(ROWS, file.name).stderr, "no place")
    for bad in (("rays", "work", "peer", "least", "1", "2"), ("a", "b", "c", "some", "1", "2", "")):
        done = report((*ROWS, bad))
        equal(done.returncode, 1, "exit status")
        check(f"rows.tsv:{len(ROWS) + 1}: not a row" in done.stderr, done.stderr)
    check("no rows" in report(()).stderr, "an empty file of rows")


@test("each row of docs/performance.md that is not reached says why, with a page that is there")
def _():
    with open(DOCUMENT, encoding="utf-8") as file:
        missed = [line for line in table_rows(file.read()) if "**not reached**" in line]
    for line in missed:
        page = re.search(r"; why: .*\((\w+\.md)\) \|$", line)
        check(page is not None, f"no reason: {line}")
        check(os.path.exists(os.path.join(INTERNALS, page.group(1))), f"no such page: {line}")


run()
