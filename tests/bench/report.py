"""Makes one table of the rows that the programs of `make bench` have written.

    python3 tests/bench/report.py ROWS [DOCUMENT]
    python3 tests/bench/report.py --reasons DOCUMENT

Prints the table; with a document, it also replaces what stands there between the lines
`<!-- table of make bench, LEVEL -->` and `<!-- end of the table -->`, where LEVEL is the machine's
vector instructions (avx512, avx2 or scalar): so a document holds a table for each kind of machine.
The order is that of the rows. A row that is not reached says why: reasons.tsv has, for a level or
`*` and a pattern of "section: work", the reason; the first line that fits counts. With --reasons
all tables of a document are left as they are but for these.
"""
import datetime
import os
import re
import subprocess
import sys

REASONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reasons.tsv")
MISSED, WHY = "**not reached**", "; why: "
NO_REASON = "nobody knows why yet"
BEGIN, END = "<!-- table of make bench, {} -->", "<!-- end of the table -->"
# as server/terrain/simd.c has it
LEVELS = (("avx512", {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "bmi2"}),
          ("avx2", {"avx2", "fma", "bmi2"}))
PACKAGES = ("libembree3-3", "libbullet3.24", "gdal-bin", "nginx-light", "wrk", "libuv1", "gcc",
            "postgresql-15", "haproxy")


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


def figure(value):
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def versions():
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\n",
                            *PACKAGES], capture_output=True, text=True, check=False).stdout
    found = [line.split() for line in asked.splitlines()]
    return ", ".join(f"{p[0]} {p[1]}" for p in found if len(p) == 3 and p[2] == "installed")


def of_processor(name):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(rf"^{name}\s*: (.*)$", file.read(), re.M)
    return found.group(1) if found else ""


def machine():
    return f"{of_processor('model name') or os.uname().machine}, {os.cpu_count()} processors"


def level():
    flags = set(of_processor("flags").split())
    return next((name for name, needed in LEVELS if needed <= flags), "scalar")


def read_reasons(path=REASONS):
    reasons = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            cells = line.rstrip("\n").split("\t")
            if line.startswith("#"):
                continue
            if len(cells) != 3 or not all(cells):
                raise SystemExit(f"{path}:{number}: not a reason: {line!r}")
            reasons.append((cells[0], re.compile(cells[1]), cells[2]))
    return reasons


def reason_of(reasons, on, section, work):
    return next((why for where, pattern, why in reasons
                 if where in ("*", on) and pattern.search(f"{section}: {work}")), NO_REASON)


def table(rows, reasons):
    out, section = [], None
    for name, work, peer, kind, ratio, asked, note in rows:
        if name != section:
            section = name
            out += ["", f"**{name}**", "", "| work | beside | asked | got | |", "|---|---|---|---|---|"]
        is_reached = ratio <= asked if kind == "most" else ratio >= asked
        want = f"{'≤' if kind == 'most' else '≥'} {asked:g}" if asked else "–"
        end = ("" if not asked else "reached" if is_reached else MISSED)
        end = "; ".join(part for part in (end, note) if part)
        if asked and not is_reached:
            end += WHY + reason_of(reasons, level(), name, work)
        out.append(f"| {work} | {peer} | {want} | {figure(ratio)} | {end} |")
    return out[1:]


def put(document, lines):
    begin = BEGIN.format(level())
    with open(document, encoding="utf-8") as file:
        text = file.read()
    if text.count(begin) != 1 or END not in text[text.index(begin):]:
        raise SystemExit(f"{document}: needs one line {begin}, and a line {END} behind it")
    head, tail = text.split(begin)
    with open(document, "w", encoding="utf-8") as file:
        file.write(head + begin + "\n\n" + "\n".join(lines) + "\n\n" + tail[tail.index(END):])


def give_reasons(document, reasons):
    out, on, section = [], None, None
    with open(document, encoding="utf-8") as file:
        for line in file.read().split("\n"):
            found = re.fullmatch(BEGIN.format("(.*)"), line)
            on = found.group(1) if found else None if line == END else on
            found = re.fullmatch(r"\*\*(.*)\*\*", line)
            section = found.group(1) if found else section
            if on and line.startswith("| ") and MISSED in line:
                work = line[2:].split(" | ")[0]
                line = (line.removesuffix(" |").split(WHY)[0] + WHY
                        + reason_of(reasons, on, section, work) + " |")
            out.append(line)
    with open(document, "w", encoding="utf-8") as file:
        file.write("\n".join(out))


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[-1] == "--reasons":
        raise SystemExit(__doc__)
    if sys.argv[1] == "--reasons":
        give_reasons(sys.argv[2], read_reasons())
        return
    lines = [f"{machine()}; {versions()}; {datetime.date.today().isoformat()}.", "",
             *table(read_rows(sys.argv[1]), read_reasons())]
    print("\n".join(lines))
    if len(sys.argv) == 3:
        put(sys.argv[2], lines)


if __name__ == "__main__":
    main()
