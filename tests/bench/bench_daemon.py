"""The daemon as a whole: readers while the ground changes, and a start with a large layer.

Readers: kotad runs on a data directory with one heightfield of 2048 x 2048 samples; wrk asks for
heights over keep-alive connections. In every other round an editor commits 50 edits a second, each
of 128 x 128 samples at another place, each acknowledged before the next. Rounds are interleaved, the
medians of their 99th percentiles are compared. Skipped where there is no wrk.

Start: from exec to the port file (which appears when /readyz answers 200), with a layer of
8192 x 8192 samples in the store, beside `cat` of the database from a warm page cache; interleaved,
medians. Checksums and the pyramid are part of the start.

Called by `make bench-all`.
"""
import array
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from daemon import F32, Daemon  # noqa: E402

SIDE, EDIT, EDITS_A_SECOND = 2048, 128, 50
LARGE = 8192
ROUNDS, ROUND_SECONDS, CONNECTIONS = 7, 3, 8
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def quantile(text, percent):
    value, unit = re.search(rf"^\s*{percent}%\s+([\d.]+)(us|ms|s)", text, re.M).groups()
    return float(value) * UNITS[unit]


def ask(daemon):
    target = f"http://127.0.0.1:{daemon.port}/v1/locales/a/height?x=701.25&y=333.75"
    text = subprocess.run(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{ROUND_SECONDS}s", "--latency",
                           target], check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in text:
        raise SystemExit("bench_daemon: some answers were errors\n" + text)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))
    return quantile(text, 50), quantile(text, 99), rate


class Editor(threading.Thread):
    """Commits edits at a steady rate until it is told to stop."""

    def __init__(self, daemon):
        super().__init__()
        self.daemon_, self.is_over, self.times = daemon, threading.Event(), []

    def run(self):
        body = struct.pack("<f", 0.125) * (EDIT * EDIT)
        start, n = time.monotonic(), 0
        while not self.is_over.wait(max(0.0, start + n / EDITS_A_SECOND - time.monotonic())):
            c, r = (n * 397) % (SIDE - EDIT), (n * 211) % (SIDE - EDIT)
            before = time.monotonic()
            answer = self.daemon_.post(f"/v1/locales/a/edits?rect={c},{r},{EDIT},{EDIT}&op=add",
                                       body, media=F32)
            if answer.status != 200:
                raise SystemExit(f"bench_daemon: an edit was refused: {answer}")
            self.times.append(time.monotonic() - before)
            n += 1


def readers():
    if not shutil.which("wrk"):
        print("readers and edits: skipped, there is no wrk (deploy/install-deps.sh bench)")
        return
    data = tempfile.mkdtemp(prefix="kota-bench-")
    try:
        with Daemon("--data", data) as daemon:
            daemon.ok("PUT", "/v1/locales/a", {}, status=201)
            daemon.ok("PUT", f"/v1/locales/a/layers/ground?spacing=1,1&cols={SIDE}&rows={SIDE}",
                      bytes(4 * SIDE * SIDE), status=201, media=F32)
            measure(daemon)
    finally:
        shutil.rmtree(data, ignore_errors=True)


def measure(daemon):
    quiet, busy, times, edits = [], [], [], 0
    ask(daemon)
    for _ in range(ROUNDS):
        quiet.append(ask(daemon))
        editor = Editor(daemon)
        editor.start()
        busy.append(ask(daemon))
        editor.is_over.set()
        editor.join()
        edits += len(editor.times)
        times += editor.times
    print(f"\nReaders while {edits / (ROUNDS * ROUND_SECONDS):.0f} edits/s of {EDIT}x{EDIT} samples "
          f"are committed ({SIDE}x{SIDE}, {CONNECTIONS} connections, {ROUNDS} rounds of "
          f"{ROUND_SECONDS} s each)")
    print(f"  {'':10} {'median us':>10} {'p99 us':>10} {'requests/s':>12}")
    for name, rounds in (("no edits", quiet), ("edits", busy)):
        p50, p99, rate = (statistics.median(column) for column in zip(*rounds))
        print(f"  {name:10} {p50 * 1e6:10.0f} {p99 * 1e6:10.0f} {rate:12.0f}")
    ratio = statistics.median(b[1] for b in busy) / statistics.median(q[1] for q in quiet)
    print(f"  p99 with edits / without: {ratio:.2f}  (an edit is acknowledged in "
          f"{statistics.median(times) * 1e3:.1f} ms, median)")


def put_large(data):
    line = array.array("f", (i * 37 % 1000 / 10 for i in range(LARGE + 100)))
    rows = [line[i:i + LARGE].tobytes() for i in range(100)]
    with Daemon("--data", data, "--max-body", str(5 * LARGE * LARGE)) as daemon:
        daemon.ok("PUT", "/v1/locales/a", {}, status=201)
        daemon.ok("PUT", f"/v1/locales/a/layers/ground?spacing=1,1&cols={LARGE}&rows={LARGE}",
                  b"".join(rows[i % 100] for i in range(LARGE)), status=201, media=F32)


def time_start(data):
    before = time.monotonic()
    daemon = Daemon("--data", data, wait=False)
    while not os.path.exists(daemon.port_file):
        time.sleep(0.001)
    taken = time.monotonic() - before
    daemon.wait_until_ready()
    daemon.stop()
    return taken


def time_cat(data):
    before = time.monotonic()
    subprocess.run(["cat", os.path.join(data, "kota.db")], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - before


def start():
    data = tempfile.mkdtemp(prefix="kota-bench-")
    try:
        put_large(data)
        rounds = [(time_cat(data), time_start(data)) for _ in range(ROUNDS + 1)][1:]
    finally:
        shutil.rmtree(data, ignore_errors=True)
    cat, kotad = (statistics.median(column) for column in zip(*rounds))
    print(f"\nStart of kotad with a layer of {LARGE}x{LARGE} samples beside cat of its database")
    print(f"  cat {cat * 1e3:.0f} ms, kotad until /readyz {kotad * 1e3:.0f} ms: "
          f"{kotad / cat:.1f} times")


if __name__ == "__main__":
    readers()
    start()
