"""Each fuzzer for ten minutes, as many at once as there are cores, and what the corpora reach.

KOTA_FUZZ_SECONDS  of each (600)
"""
import os
import re
import shutil
import subprocess

from table import finish, row, setting

SECONDS = setting("KOTA_FUZZ_SECONDS", 600)
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def main():
    if not shutil.which("clang"):
        row("fuzzers", f"{SECONDS} s each", "no crash, leak or hang",
            "no clang: sh deploy/install-deps.sh fuzz", None)
        return
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}
    done = subprocess.run(["make", "--no-print-directory", "-C", ROOT, "fuzz",
                           f"FUZZ_SECONDS={SECONDS}"], env=environment, capture_output=True,
                          text=True, check=False)
    rows = re.findall(r"^(ok|FAIL) +fuzz_(\w+): (.*)", done.stdout, re.M)
    for word, name, said in sorted(rows, key=lambda entry: entry[1]):
        row(f"fuzzer: {name}", f"{SECONDS} s", "no crash, leak or hang", said, word == "ok")
    if not rows or done.returncode != 0:
        row("fuzzers", f"{SECONDS} s each", "all run", (done.stdout + done.stderr)[-300:], False)
    done = subprocess.run(["sh", "tests/fuzz/cover.sh"], cwd=ROOT, env=environment,
                          capture_output=True, text=True, check=False)
    shares = [float(share) for share in re.findall(r"([\d.]+)% of", done.stdout)]
    row("lines of each decoder that its corpus reaches", f"{len(shares)} files", "85 % at least",
        f"{min(shares, default=0):.1f} % the fewest", done.returncode == 0 and len(shares) > 10)


if __name__ == "__main__":
    main()
    finish()
