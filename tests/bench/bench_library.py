"""What a call of libkota costs the caller's processor: over TCP, over a Unix socket, beside bare libcurl
(curl_calls.c sends the same bytes and drops the answers), and in an older build.

The program (library_calls.c) is the same for all libkotas; rounds are interleaved, and each figure is the
least of its rounds, since other work on the machine only adds. KOTA_OLD_LIB names the folder of an older
libkota.so.0 (build/release/lib of that tree); without it those rows are left out.

Called by `make bench`.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "api"))
from daemon import BIN_DIR, F32, ROOT, Daemon  # noqa: E402
from fields import Terrain  # noqa: E402
from rows import row_most  # noqa: E402

SECTION = "Client library"
ROUNDS = 9
CALLS = {"one": 4000, "batch": 300}
OLD = os.environ.get("KOTA_OLD_LIB", "")


def cost_us(program, library, url, what):
    done = subprocess.run([program, url, "land", what, str(CALLS[what])], check=True, text=True,
                          capture_output=True, env={**os.environ, "LD_LIBRARY_PATH": library})
    return float(done.stdout)


def compiled(folder, name, *flags):
    program = os.path.join(folder, name)
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", program, os.path.join(HERE, name + ".c"), *flags],
                   check=True)
    return program


def main():
    folder = tempfile.mkdtemp(prefix="kota-bench-")
    library, path = os.path.join(BIN_DIR, "lib"), os.path.join(folder, "kota.sock")
    kota = compiled(folder, "library_calls", "-I", os.path.join(ROOT, "client", "lib"), "-L", library, "-lkota")
    curl = compiled(folder, "curl_calls", "-lcurl")
    field = Terrain(256, 256, [[(c * r) % 17 for c in range(256)] for r in range(256)])
    with Daemon("--listen", f"unix:{path}", "--loops", "1") as daemon:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        daemon.ok("PUT", f"/v1/locales/land/layers/ground?{field.query()}", field.body(), status=201, media=F32)
        ways = {"tcp": (kota, library, daemon.url), "unix": (kota, library, f"unix:{path}"),
                "curl": (curl, library, daemon.url)}
        if OLD:
            ways["old"] = (kota, OLD, daemon.url)
        least = {}
        for _ in range(ROUNDS):
            for what in CALLS:
                for way, (program, from_, url) in ways.items():
                    us = cost_us(program, from_, url, what)
                    least[way, what] = min(us, least.get((way, what), us))
    for what, text, most in (("one", "one height", 1.5), ("batch", "a binary batch of 10,000", 1.1)):
        def note(way, peer):
            return f"{least[way, what]:.1f} µs a call, {least[peer, what]:.1f} µs"
        row_most(SECTION, f"processor time of {text}, a Unix socket", "TCP", least["unix", what] / least["tcp", what],
                 1, note("unix", "tcp"))
        row_most(SECTION, f"processor time of {text}", "bare libcurl", least["tcp", what] / least["curl", what], 0,
                 note("tcp", "curl"))
        if OLD:
            row_most(SECTION, f"processor time of {text}", "an older libkota", least["tcp", what] / least["old", what],
                     most, note("tcp", "old"))


if __name__ == "__main__":
    main()
