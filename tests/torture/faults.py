"""Every call that can fail, once: tests/faults/run.py in its whole length.

KOTA_FAULTS_EVERY  only each so-and-so-manyth failed allocation (1)
"""
import os
import re
import subprocess
import sys

from table import finish, row, setting

EVERY = setting("KOTA_FAULTS_EVERY", 1)
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults", "run.py")


def main():
    done = subprocess.run([sys.executable, SCRIPT, "--every", str(EVERY), "--start-every", str(EVERY)],
                          capture_output=True, text=True, check=False)
    for name, places, tried, right, refused, none in re.findall(
            r"^# (\S.{33}) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$", done.stdout, re.M):
        row(f"fault: {name.strip()}", f"{tried} of {places} calls",
            "right, refused, or no start; never a crash or a wrong answer",
            f"{right} right, {refused} refused, {none} without an answer", True)
    last = re.search(r"^(not )?ok 1 - (.*)", done.stdout, re.M)
    if done.returncode != 0 or not last:
        print(done.stdout[-5000:])
    row("faults, all together", "all steps of the session", "no finding",
        last.group(2) if last else done.stderr[-300:], done.returncode == 0)


if __name__ == "__main__":
    main()
    finish()
