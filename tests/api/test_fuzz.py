"""Each fuzzer for a few seconds on its corpus; `make torture P=fuzz` has the long form.

The fuzzers are built by clang (make config=fuzz fuzzers), which `make test` does where there is one.

The seed is fixed, so that a red run means a change; `make fuzz` draws another one each time.

KOTA_FUZZ_SECONDS  (10) of each
"""
import base64
import glob
import os
import re
import subprocess
import tempfile

from daemon import BIN_DIR, ROOT
from tap import Skip, case, check, run

SECONDS = int(os.environ.get("KOTA_FUZZ_SECONDS", "10"))
PROGRAMS = os.path.join(ROOT, "build", "fuzz", "fuzz")


def fuzz(name):
    if not BIN_DIR.endswith("release"):
        raise Skip("runs once, with the release build; the fuzzers bring their own sanitizers")
    program = os.path.join(PROGRAMS, name)
    if not os.path.exists(program):
        raise Skip("not built: sh deploy/install-deps.sh fuzz, make config=fuzz fuzzers")
    with tempfile.TemporaryDirectory(prefix="kota-fuzz-") as folder:
        found = os.path.join(folder, "found")
        os.mkdir(found)
        done = subprocess.run(
            [program, f"-max_total_time={SECONDS}", "-seed=1", "-timeout=60", "-rss_limit_mb=4096",
             "-print_final_stats=1", f"-artifact_prefix={folder}/crash-", found,
             os.path.join(ROOT, "tests", "fuzz", "corpus", name.removeprefix("fuzz_"))],
            capture_output=True, text=True, errors="replace", check=False, timeout=SECONDS + 300)
        inputs = re.search(r"stat::number_of_executed_units: *(\d+)", done.stderr)
        for crash in glob.glob(f"{folder}/crash-*"):
            with open(crash, "rb") as file:
                print(f"# the input, in base64: {base64.b64encode(file.read()).decode()[:4000]}")
        check(done.returncode == 0 and inputs, done.stderr[-3000:])
    print(f"# {name}: {inputs.group(1)} inputs in {SECONDS} s")


for path_ in sorted(glob.glob(os.path.join(ROOT, "tests", "fuzz", "fuzz_*.c"))):
    name_ = os.path.basename(path_)[:-2]
    case(f"{name_}: no crash, leak or hang", fuzz, name_)

run()
