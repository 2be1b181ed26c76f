"""The faults of `make torture P=cluster` in their short form, without their times; in make test with
fewer edits and cuts than in make test-all.
"""
import os
import subprocess
import sys
import tempfile

from daemon import ROOT, SLOW
from tap import ALL, Skip, case, check, run

FOLDER = os.path.join(ROOT, "tests", "cluster")


def part(name, *args, **settings):
    """Runs a program of that length; each of its rows held. Skips when all of them were."""
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        rows_path = os.path.join(folder, "rows")
        environment = {**os.environ, "KOTA_TORTURE_ROWS": rows_path, "KOTA_TORTURE_SHORT": "yes",
                       **{key: str(value) for key, value in settings.items()}}
        done = subprocess.run([sys.executable, os.path.join(FOLDER, name + ".py"), *args],
                              env=environment, capture_output=True, text=True, check=False,
                              timeout=600 * SLOW)
        said = done.stdout + done.stderr
        for line in done.stdout.splitlines():
            print(f"# {line.strip()}")
        check(os.path.exists(rows_path), said[-3000:])
        with open(rows_path, encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
    words = {row[-1] for row in rows}
    if words == {"skipped"}:
        raise Skip(rows[0][-2])
    check(done.returncode == 0 and words == {"held"}, said[-3000:])


case("random edits on two daemons and random reads: one order, and the same ground at each revision",
     part, "mix", KOTA_CLUSTER_EDITS=300 if ALL else 100)
case("kill -9 of a daemon, one that stands still, the primary killed and its standby promoted: nothing "
     "acknowledged is lost, nothing is there twice", part, "kills", KOTA_CLUSTER_ROUNDS=1)
case("a patch whose daemon stands still beyond its lease loses its ground and writes nothing", part, "fence",
     KOTA_CLUSTER_ROUNDS=2 if ALL else 1)
case("connections to the engine are cut at random bytes: each edit is made once", part, "cuts",
     KOTA_CLUSTER_CUTS=20 if ALL else 6)
case("the engine is away: reads go on, writes are refused, then all is equal", part, "away",
     KOTA_CLUSTER_AWAY_ROUNDS=1, KOTA_CLUSTER_AWAY_SECONDS=3 if ALL else 1)
case("a node comes back behind a trimmed log, by snapshot and tail", part, "behind",
     KOTA_CLUSTER_BEHIND=600 if ALL else 120)
case("failover to a standby that did not have everything: both nodes agree with the log, and go on", part,
     "lost", KOTA_CLUSTER_LOST=1)

run()
