"""The attacks of `make torture` in their short form, without their times."""
import os
import subprocess
import sys
import tempfile

from daemon import ROOT, SLOW
from tap import case, check, rest, run

FOLDER = os.path.join(ROOT, "tests", "torture")


def part(name, least, **settings):
    """Runs a part of that length; each of its rows held, and there are at least so many."""
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        rows_path = os.path.join(folder, "rows")
        environment = {**os.environ, "KOTA_TORTURE_ROWS": rows_path, "KOTA_TORTURE_SHORT": "yes",
                       **{key: str(value) for key, value in settings.items()}}
        done = subprocess.run([sys.executable, os.path.join(FOLDER, name + ".py")],
                              env=environment, capture_output=True, text=True, check=False,
                              timeout=600 * SLOW)
        said = done.stdout + done.stderr
        for line in done.stdout.splitlines():
            print(f"# {line.strip()}")
        check(os.path.exists(rows_path), said[-3000:])
        with open(rows_path, encoding="utf-8") as file:
            words = [line.rstrip("\n").split("\t")[-1] for line in file]
    check(done.returncode == 0 and len(words) >= least and set(words) <= {"held", "skipped"}
          and "held" in words, said[-3000:])


rest("a flood of connections, half-closed and reset ones, and no files left")(
    lambda: part("flood", 3, KOTA_FLOOD_CONNECTIONS=800, KOTA_FLOOD_ROUNDS=2))
case("kill -9 under reads, edits and patches: nothing that was acknowledged is lost", part, "kill", 1,
     KOTA_KILL_ROUNDS=4)
rest("a soak: every answer is right at the revision that it names, no file stays open")(
    lambda: part("soak", 2, KOTA_SOAK_SECONDS=20))
rest("random calls of six clients: forks, pins, reverts, by one daemon and two of a log; living sand, killed")(
    lambda: part("storm", 3, KOTA_STORM_SECONDS=8))

run()
