"""Eight contenders for one lease, in rounds: the unit test of the cluster in its long form.

Skipped where it has not been built (`make build/release/tests/test_cluster_race`; `make torture` does).
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "torture")]
from table import finish, row  # noqa: E402

from daemon import BIN_DIR, ROOT  # noqa: E402

PROGRAM = os.path.join(BIN_DIR, "tests", "test_cluster_race")


def main():
    what, must = "lease race, 8 contenders", "exactly one winner"
    if not os.path.exists(PROGRAM):
        row(what, "1,000 rounds", must, "test_cluster_race has not been built", None)
        return
    done = subprocess.run([PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False, timeout=1500,
                          env={**os.environ, "KOTA_LONG": "1", "CMOCKA_MESSAGE_OUTPUT": "TAP"})
    said = done.stdout + done.stderr
    if re.search(r"(?m)^1\.\.0 # SKIP", said):
        row(what, "1,000 rounds", must, said.strip()[-200:], None)
        return
    won = [(int(wins), int(rounds)) for wins, rounds in re.findall(r"contender \d+ won (\d+) of (\d+)", said)]
    rounds = won[0][1] if won else 0
    print(said[-2000:] if done.returncode else "", end="")
    row(what, f"{rounds} rounds", must, f"{sum(wins for wins, _ in won)} wins by {len(won)} contenders, "
        f"{min(won)[0] if won else 0} to {max(won)[0] if won else 0} each",
        done.returncode == 0 and len(won) == 8 and sum(wins for wins, _ in won) == rounds >= 1000)


if __name__ == "__main__":
    main()
    finish()
