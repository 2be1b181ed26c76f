"""Each fuzzer on its corpus for as many inputs as an eighth of a second of processor takes (make test),
or for sixty times as many (make test-all); `make torture P=fuzz` has the long form.

The fuzzers are built by clang (make config=fuzz fuzzers), which `make test` does where there is one.

A red run means a change: seed, order of the corpus, addresses and number of inputs are fixed, so that
another machine runs the same inputs, whatever its speed. (Two read a clock, fuzz_http and fuzz_png:
their inputs differ in some hundredths.) `make fuzz` draws another seed each time.

KOTA_FUZZ_TIMES  (1, or 60) as many inputs
"""
import base64
import glob
import os
import re
import shutil
import subprocess
import tempfile

from daemon import BIN_DIR, ROOT
from tap import ALL, Skip, case, check, run

TIMES = int(os.environ.get("KOTA_FUZZ_TIMES", "60" if ALL else "1"))
INPUTS = 2000
SLOW = {"fuzz_gltf": 120, "fuzz_tiff": 120, "fuzz_record": 600, "fuzz_store": 20}
SEEDS = {"fuzz_store": 1 if ALL else 8}  # one of so many: each takes long, replay_fuzz_store has all
LIMIT_S = 600  # of a slow machine: what it has not run by then is left out
PROGRAMS = os.path.join(ROOT, "build", "fuzz", "fuzz")


def fixed_addresses():
    """The words before a command that fix its addresses, which libFuzzer's tables depend on."""
    words = ["setarch", "-R"]
    if shutil.which(words[0]) and subprocess.run([*words, "true"], stderr=subprocess.DEVNULL).returncode == 0:
        return words
    return []


def fuzz(name):
    if not BIN_DIR.endswith("release"):
        raise Skip("runs once, with the release build; the fuzzers bring their own sanitizers")
    program = os.path.join(PROGRAMS, name)
    if not os.path.exists(program):
        raise Skip("not built: sh deploy/install-deps.sh fuzz, make config=fuzz fuzzers")
    seeds = sorted(glob.glob(os.path.join(ROOT, "tests", "fuzz", "corpus", name.removeprefix("fuzz_"), "*")))
    seeds = seeds[::SEEDS.get(name, 1)]
    with tempfile.TemporaryDirectory(prefix="kota-fuzz-") as folder:
        found = os.path.join(folder, "found")
        os.mkdir(found)
        done = subprocess.run(
            [*fixed_addresses(), program, f"-runs={TIMES * SLOW.get(name, INPUTS)}", "-seed=1",
             "-reload=0", f"-max_total_time={LIMIT_S}", "-timeout=300", "-rss_limit_mb=4096",
             "-print_final_stats=1", f"-artifact_prefix={folder}/crash-",
             "-seed_inputs=" + ",".join(seeds), found],
            capture_output=True, text=True, errors="replace", check=False, timeout=LIMIT_S + 300)
        inputs = re.search(r"stat::number_of_executed_units: *(\d+)", done.stderr)
        for crash in glob.glob(f"{folder}/crash-*"):
            with open(crash, "rb") as file:
                print(f"# the input, in base64: {base64.b64encode(file.read()).decode()[:4000]}")
        check(done.returncode == 0 and inputs, done.stderr[-3000:])
    print(f"# {name}: {inputs.group(1)} inputs")


for path_ in sorted(glob.glob(os.path.join(ROOT, "tests", "fuzz", "fuzz_*.c"))):
    name_ = os.path.basename(path_)[:-2]
    case(f"{name_}: no crash, leak or hang", fuzz, name_)

run()
