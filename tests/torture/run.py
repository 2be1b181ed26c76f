"""Runs the parts of `make torture` one after another and prints a table of what held.

usage: run.py [PART…]      all parts without one

A part is a program that writes rows (table.py). It has a time limit, after which it is ended and
counts as failed. The exit status is 1 if anything failed. KOTA_TORTURE_ROWS names a file in which
the rows are kept; without it they are only printed.

Lengths are set in the environment: KOTA_SLOW_SECONDS, KOTA_SLOW_CONNECTIONS,
KOTA_FLOOD_CONNECTIONS, KOTA_FLOOD_ROUNDS, KOTA_KILL_ROUNDS, KOTA_SOAK_SECONDS, KOTA_STORM_SECONDS,
KOTA_STORM_SEED, KOTA_FAULTS_EVERY, KOTA_SPLITS, KOTA_FUZZ_SECONDS, KOTA_SANITIZERS, KOTA_SANITIZER_TESTS, KOTA_SANITIZER_SECONDS,
and for the cluster KOTA_CLUSTER_EDITS, KOTA_CLUSTER_ROUNDS, KOTA_CLUSTER_CUTS,
KOTA_CLUSTER_AWAY_ROUNDS, KOTA_CLUSTER_AWAY_SECONDS, KOTA_CLUSTER_BEHIND, KOTA_CLUSTER_LOST.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HEADS = ("attack or fault", "amount", "must hold", "measured", "")

# name -> (command, more environment, limit in seconds)
PARTS = {
    "http": ([sys.executable, os.path.join(HERE, "corpus.py")], {}, 900),
    "slow": ([sys.executable, os.path.join(HERE, "slow.py")], {}, 900),
    "flood": ([sys.executable, os.path.join(HERE, "flood.py")], {}, 900),
    "kill": ([sys.executable, os.path.join(HERE, "kill.py")], {}, 1800),
    "soak": ([sys.executable, os.path.join(HERE, "soak.py")], {}, 1800),
    "storm": ([sys.executable, os.path.join(HERE, "storm.py")], {}, 1800),
    "faults": ([sys.executable, os.path.join(HERE, "faults.py")], {}, 3600),
    "fuzz": ([sys.executable, os.path.join(HERE, "fuzz.py")], {}, 12000),
    "sanitizers": ([sys.executable, os.path.join(HERE, "sanitizers.py")], {}, 36000),
    "cluster": ([sys.executable, os.path.join(HERE, "cluster.py")], {}, 5400),
}


def run_part(name, rows_path):
    """True if it held all that it should."""
    command, more, limit_s = PARTS[name]
    environment = {**os.environ, **more, "KOTA_TORTURE_ROWS": rows_path,
                   "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
    print(f"== {name}", flush=True)
    start = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                               start_new_session=True)
    try:
        status = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        status = None
    finally:
        try:  # a part that was ended leaves no daemon behind
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    print(f"   {time.monotonic() - start:.0f} s", flush=True)
    if status is None:
        print(f"   ended after its limit of {limit_s} s", flush=True)
    return status == 0


def read_rows(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def show(rows):
    """As Markdown, so that it can be pasted as it is."""
    widths = [max(len(entry[i]) for entry in [HEADS, *rows]) for i in range(len(HEADS))]
    for entry in [HEADS, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(entry, widths)) + " |")


def main():
    chosen = sys.argv[1:] or list(PARTS)
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        sys.exit(f"there is no part {' or '.join(unknown)}; there are {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory(prefix="kota-torture-") as folder:
        path = os.environ.get("KOTA_TORTURE_ROWS") or os.path.join(folder, "rows.tsv")
        if os.path.exists(path):
            os.remove(path)
        failed = [name for name in chosen if not run_part(name, path)]
        rows = read_rows(path)
    print()
    show(rows)
    for name in failed:
        print(f"{name} FAILED")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
