"""Ten million triangles: how long the upload's build and a restart take, and memory at the peak of the build.

Hills of a grid of float32 vertices, as binary PLY. The peak is the process's greatest resident memory
with its body, the restart the time from its start until it answers.

    python3 tests/bench/bench_large_mesh.py [TRIANGLES]
"""
import array
import math
import os
import re
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from daemon import Daemon  # noqa: E402
from rows import row_most  # noqa: E402

SECTION, BYTES, RESTART_S = "Large mesh", 480, 10


def hills(triangles):
    """(the file, its number of triangles)"""
    side = math.isqrt(triangles // 2) + 1
    count = 2 * (side - 1) ** 2
    out = bytearray(f"ply\nformat binary_little_endian 1.0\nelement vertex {side * side}\nproperty float x\n"
                    f"property float y\nproperty float z\nelement face {count}\n"
                    "property list uchar int vertex_indices\nend_header\n".encode())
    wave = [math.sin(x / 37) for x in range(side)]
    for y in range(side):
        tall = 20 * math.cos(y / 53)
        out += array.array("f", [n for x in range(side) for n in (x, y, tall * wave[x])]).tobytes()
    pair = bytearray(26 * (side - 1))
    pair[::13] = b"\3" * (2 * (side - 1))
    for y in range(side - 1):
        base = range(y * side, (y + 1) * side - 1)
        for at, add in enumerate((0, 1, side, 1, side + 1, side)):
            column = array.array("I", [i + add for i in base]).tobytes()
            for byte in range(4):
                pair[13 * (at // 3) + 1 + 4 * (at % 3) + byte::26] = column[byte::4]
        out += pair
    return bytes(out), count


def main():
    body, count = hills(int(sys.argv[1]) if sys.argv[1:] else 10000000)
    with tempfile.TemporaryDirectory(prefix="kota-bench-") as folder:
        args = ("--data", os.path.join(folder, "data"), "--max-body", str(1 << 31), "--max-polygons", str(2 * count),
                "--max-import-ms", "600000")
        with Daemon(*args) as daemon:
            daemon.ok("PUT", "/v1/locales/a", {}, status=201)
            answer = daemon.ask("PUT", "/v1/locales/a/layers/m", body, media="model/ply")
            assert answer.status == 201, answer
            build = float(re.search(r"build;dur=([\d.]+)", answer.headers["server-timing"]).group(1))
            peak = 1024 * daemon.memory_kib("VmHWM") / count
        start = time.monotonic()
        with Daemon(*args) as daemon:
            daemon.ok("POST", "/v1/locales/a/contact", {"points": [[10.2, 20.3, 100]]})
            restart = time.monotonic() - start
    print(f"  {count} triangles: built in {build / 1e3:.1f} s")
    row_most(SECTION, f"{count} triangles, the process at its peak", "1 byte a triangle", peak, BYTES)
    row_most(SECTION, f"{count} triangles, restart", "1 s", restart, RESTART_S)


main()
