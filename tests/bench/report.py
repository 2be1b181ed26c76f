"""Makes a table of the rows that the benchmarks have written (tests/support/bench_rows.h).

    python3 tests/bench/report.py ROWS               prints all rows, in their order
    python3 tests/bench/report.py ROWS DOCUMENT      prints the rows that short.tsv lists, and puts
                                                     them into the document

A document has a table for each machine, between the lines `<!-- make bench: MACHINE -->` and
`<!-- end -->`. The table of this machine is replaced; where there is none, it is added after the last.
A row of short.tsv that is not reached says why.
"""
import datetime
import os
import re
import subprocess
import sys

SHORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "short.tsv")
MISSED = "**not reached**"
BEGIN, END = "<!-- make bench: {} -->", "<!-- end -->"
PACKAGES = ("libembree4-4", "libembree3-3", "libbullet3.24", "nginx-light", "wrk", "libuv1", "gcc")


def read_rows(path):
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            cells = line.rstrip("\n").split("\t")
            if len(cells) != 7 or cells[3] not in ("least", "most"):
                raise SystemExit(f"{path}:{number}: not a row: {line!r}")
            rows.append((*cells[:4], float(cells[4]), float(cells[5]), cells[6]))
    if not rows:
        raise SystemExit(f"{path}: no rows")
    return rows


def read_short(path=SHORT):
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    if any(len(cells) != 4 for cells in lines):
        raise SystemExit(f"{path}: a line has four cells: section, work, peer, reason")
    return lines


def figure(value):
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def versions():
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\n",
                            *PACKAGES], capture_output=True, text=True, check=False).stdout
    found = [line.split() for line in asked.splitlines()]
    return ", ".join(f"{p[0]} {p[1]}" for p in found if len(p) == 3 and p[2] == "installed")


def machine():
    """The processor's name, and its family and model, since virtual machines hide the name."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        info = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", file.read(), re.M))
    parts = [info.get("model name") or os.uname().machine]
    parts += [f"{name.split()[-1]} {info[name]}" for name in ("cpu family", "model") if name in info]
    return ", ".join(parts + [f"{os.cpu_count()} processors"])


def line_of(row, reason=""):
    section, work, peer, kind, ratio, asked, note = row
    is_reached = ratio <= asked if kind == "most" else ratio >= asked
    want = f"{'≤' if kind == 'most' else '≥'} {asked:g}" if asked else "–"
    end = "" if not asked else "reached" if is_reached else MISSED
    end = "; ".join(part for part in (end, note) if part)
    if end.startswith(MISSED) and reason:
        end += f"; why: {reason}"
    return f"| {section}: {work} | {peer} | {want} | {figure(ratio)} | {end} |"


def short_lines(rows):
    """The rows that short.tsv lists, in its order, with a reason where one is not reached."""
    out = []
    for section, work, peer, reason in read_short():
        found = [row for row in rows if row[:2] == (section, work) and row[2].startswith(peer)]
        out += [line_of(row, reason) for row in found]
        if not found:
            print(f"no row {section}: {work}, beside {peer} (sh deploy/install-deps.sh bench)",
                  file=sys.stderr)
    return out


def put(document, lines):
    begin = BEGIN.format(machine())
    table = "\n".join([begin, "", *lines, "", END])
    with open(document, encoding="utf-8") as file:
        text = file.read()
    if begin in text:
        at = text.index(begin)
        to = text.index(END, at) + len(END)
    elif END in text:
        at = to = text.rindex(END) + len(END)
        table = "\n\n" + table
    else:
        raise SystemExit(f"{document}: needs a line {END} after a table of `make bench`")
    with open(document, "w", encoding="utf-8") as file:
        file.write(text[:at] + table + text[to:])


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    rows = read_rows(sys.argv[1])
    lines = [f"{machine()}; {versions()}; {datetime.date.today().isoformat()}.", "",
             "| work | beside | asked | got | |", "|---|---|---|---|---|"]
    lines += short_lines(rows) if len(sys.argv) == 3 else [line_of(row) for row in rows]
    print("\n".join(lines))
    if len(sys.argv) == 3:
        put(sys.argv[2], lines)


if __name__ == "__main__":
    main()
