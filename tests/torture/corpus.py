"""The malformed and odd HTTP requests of tests/api/http_corpus.py, cut at every byte.

KOTA_SPLITS  some: long cases at some places only, as in `make test` (all)
"""
import os
import re
import subprocess
import sys

from table import finish, row

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    done = subprocess.run([sys.executable, os.path.join(HERE, "..", "api", "test_http_corpus.py")],
                          env={"KOTA_SPLITS": "all", **os.environ}, capture_output=True, text=True,
                          check=False)
    amount = re.search(r"(\d+) cases, (\d+) connections", done.stdout)
    wrong = re.findall(r"^not ok \d+ - (.*)", done.stdout, re.M)
    print(done.stdout if wrong or not amount else "", end="")
    row("malformed and odd HTTP, each cut at every byte",
        f"{amount.group(1)} cases, {amount.group(2)} connections" if amount else "none",
        "documented status or close, the same at each cut; the next request works",
        f"{len(wrong)} differ{': ' + wrong[0] if wrong else ''}",
        done.returncode == 0 and amount is not None)


if __name__ == "__main__":
    main()
    finish()
