"""All unit and API programs under ASan with UBSan, and under TSan.

Each build runs what `make test` runs of it; whoever says something that a sanitizer says fails its
test. A program that cannot run under a sanitizer skips and says why, and the row counts it. ASan has
no suppression; what TSan says of libraries, and is not so, is in tests/tsan.supp with the reasons.

KOTA_SANITIZERS         "asan tsan"
KOTA_SANITIZER_TESTS    names of test programs (all)
KOTA_SANITIZER_SECONDS  of each program at most (2700)
"""
import os
import re
import shutil
import subprocess

from table import finish, row, setting

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
NAMES = {"asan": "ASan and UBSan", "tsan": "ThreadSanitizer"}
SUPPRESSED = {"asan": "no suppression", "tsan": "no suppression but tests/tsan.supp's of libraries"}
KINDS = setting("KOTA_SANITIZERS", "asan tsan").split()
TESTS = setting("KOTA_SANITIZER_TESTS", "").split() or [""]
SECONDS = setting("KOTA_SANITIZER_SECONDS", 2700)
RESULT = re.compile(r"^(ok|FAIL|skip) +(\S+) +(\d+) passed(?:, (\d+) failed)?(?:, (\d+) skipped)?")


def run(kind):
    """What each program of that build said: (word, name, passed, failed, skipped)."""
    # addresses that are chosen at random collide with TSan's own map on newer kernels
    before = ["setarch", "-R"] if kind == "tsan" and shutil.which("setarch") else []
    environment = {k: v for k, v in os.environ.items()
                   if k not in ("MAKEFLAGS", "MAKELEVEL", "KOTA_BIN_DIR")}
    environment["KOTA_TEST_SECONDS"] = str(SECONDS)
    results = []
    for name in TESTS:
        command = [*before, "make", "--no-print-directory", "-C", ROOT, f"config={kind}", "test",
                   *([f"T={name}"] if name else [])]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as process:
            for line in process.stdout:
                match = RESULT.match(line)
                if match:
                    word, program, *counts = match.groups()
                    results.append((word, program, *(int(count or 0) for count in counts)))
                if not line.startswith(("  CC ", "ok ")):
                    print(f"  {line.rstrip()}", flush=True)
    return results


def main():
    for kind in KINDS:
        results = run(kind)
        ran = [result for result in results if result[2] or result[3]]
        failed = [result[1] for result in ran if result[3]]
        row(f"{NAMES[kind]} over unit and API programs", f"{len(ran)} programs",
            f"all pass, nothing said, {SUPPRESSED[kind]}",
            f"{sum(r[2] for r in ran)} tests passed, {sum(r[4] for r in results)} skipped, "
            + (f"{len(failed)} programs failed: {', '.join(failed)}" if failed else "0 failed"),
            bool(ran) and not failed)


if __name__ == "__main__":
    main()
    finish()
