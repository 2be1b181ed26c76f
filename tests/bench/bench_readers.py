"""How long until the last of 10,000 readers of the same events has one: kotad, and two threads that only send.

Rounds of both in turns. Readers are one process with one epoll loop (event_readers.c), on the same machine,
so their receiving is in both figures.

    python3 tests/bench/bench_readers.py [READERS]
"""
import os
import resource
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
from daemon import Daemon  # noqa: E402
from fields import put_terrain  # noqa: E402
from oracle import Terrain  # noqa: E402
from rows import row_most  # noqa: E402

READERS, ROUNDS, TURNS, SIDE, EVENT_BYTES = 9900, 7, 3, 257, 243
ASKED_MS = 100.0
PATHS = {"that meets all bounds": "/v1/locales/land/events?bounds=0,0,100,100&samples=f32",
         "of all of a locale": "/v1/locales/land/events"}


def bare(program, readers):
    with subprocess.Popen([program, "send", str(readers), str(EVENT_BYTES)], text=True,
                          stdout=subprocess.PIPE) as process:
        try:
            return last_ms(program, int(process.stdout.readline()), readers, "/")
        finally:
            process.kill()


def last_ms(program, port, readers, path):
    said = subprocess.run([program, str(port), str(readers), path, str(ROUNDS)], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return [float(line) for line in said.split()]


def main():
    readers = int(sys.argv[1]) if len(sys.argv) > 1 else READERS
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most < 2 * readers:
        readers = most // 2
        print(f"{readers} readers: {most} files are allowed")
    many = str(readers + 100)
    with tempfile.TemporaryDirectory() as folder, Daemon(
            "--max-connections", many, "--max-streams", many, "--max-connections-per-address", many) as daemon:
        program = os.path.join(folder, "event_readers")
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-pthread", "-o", program,
                        os.path.join(HERE, "event_readers.c")], check=True)
        put_terrain(daemon, "land", Terrain(SIDE, SIDE, [[0] * SIDE for _ in range(SIDE)], (1, 1), (0, 0)))
        found = {name: [] for name in PATHS}
        bound = []
        for _ in range(TURNS):
            for name, path in PATHS.items():
                found[name] += last_ms(program, daemon.port, readers, path)
            bound += bare(program, readers)
        for name, times in found.items():
            base, median = statistics.median(bound), statistics.median(times)
            row_most("Readers", f"an edit {name}, the last of {readers} readers", "only sends", median / base,
                     0, f"{median:.0f} ms (least {min(times):.0f}; {ASKED_MS:.0f} asked) and {base:.0f} "
                     f"({min(bound):.0f})")


if __name__ == "__main__":
    main()
