"""Rows of the benchmarks, from Python: what tests/support/bench_rows.h is for C."""
import os


def _row(section, work, peer, kind, ratio, asked, note):
    for text in (section, work, peer, note):
        if any(c in text for c in "\t\r\n"):
            raise ValueError(f"a cell of a row holds a tab or a line end: {text!r}")
    is_reached = ratio <= asked if kind == "most" else ratio >= asked
    want = f"  asked: at {kind} {asked:g}, {'reached' if is_reached else 'NOT reached'}" if asked else ""
    print(f"  {work:<46} {peer:<24} {ratio:8.3g}{want}{'  ' if note else ''}{note}", flush=True)
    path = os.environ.get("KOTA_BENCH_ROWS")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write("\t".join((section, work, peer, kind, f"{ratio:.6g}", f"{asked:.6g}", note))
                       + "\n")


def row(section, work, peer, ratio, asked=0.0, note=""):
    """kota does `ratio` times better than the peer; reached where ratio >= asked, 0: none asked."""
    _row(section, work, peer, "least", ratio, asked, note)


def row_most(section, work, peer, ratio, asked=0.0, note=""):
    """A cost in units of the peer; reached where ratio <= asked."""
    _row(section, work, peer, "most", ratio, asked, note)
