"""Daemons of one shared log under faults: the programs of tests/cluster, one after another.

usage: cluster.py [mix] [kills] [fence] [race] [cuts] [away] [behind] [lost]     all without one
"""
import os
import subprocess
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster")
PARTS = ("mix", "kills", "fence", "race", "cuts", "away", "behind", "lost")


def main():
    chosen = sys.argv[1:] or PARTS
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        sys.exit(f"there is no part {' or '.join(unknown)}; there are {', '.join(PARTS)}")
    statuses = [subprocess.run([sys.executable, os.path.join(FOLDER, name + ".py")],
                               check=False).returncode for name in chosen]
    sys.exit(1 if any(statuses) else 0)


if __name__ == "__main__":
    main()
