"""A height of a replica in JavaScript beside the same in C: both one by one, at random places of 1024².

Rounds are interleaved, and each figure is the least of its rounds, since other work on the machine only
adds. Called by `make bench-all`.
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "api"))
from daemon import BIN_DIR, ROOT, Daemon  # noqa: E402
from fields import Terrain, put_terrain  # noqa: E402
from rows import row_most  # noqa: E402

SIDE, ROUNDS, MOST = 1024, 7, 6


def ns(*command):
    done = subprocess.run(command, check=True, text=True, capture_output=True, timeout=120,
                          env={**os.environ, "LD_LIBRARY_PATH": os.path.join(BIN_DIR, "lib")})
    return float(done.stdout)


def main():
    if not shutil.which("node") or not os.path.exists(os.path.join(BIN_DIR, "kota_ground.wasm")):
        print("no node, or no kota_ground.wasm: no row", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="kota-bench-") as folder, Daemon() as daemon:
        program = os.path.join(folder, "ground_heights")
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-D_GNU_SOURCE", "-o", program,
                        os.path.join(HERE, "ground_heights.c"), "-I", os.path.join(ROOT, "client", "ground"),
                        "-L", os.path.join(BIN_DIR, "lib"), "-lkota-ground"], check=True)
        put_terrain(daemon, "land", Terrain(SIDE, SIDE, [[(c * r) % 17 for c in range(SIDE)] for r in range(SIDE)]))
        found = [(ns(program), ns("node", os.path.join(HERE, "ground_heights.mjs"), daemon.url))
                 for _ in range(ROUNDS)]
    core, script = (min(round_[i] for round_ in found) for i in range(2))
    row_most("Replica", "height in JavaScript, one by one", "libkota-ground", script / core, MOST,
             f"{script:.1f} ns, {core:.1f} ns")


if __name__ == "__main__":
    main()
