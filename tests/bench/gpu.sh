#!/bin/sh
# The sand on a GPU, in one go: builds, runs the tests of the sand on the device, measures, and
# writes FOLDER/sand.md: device, driver, date, results of the tests, the table of bench_sand.
#
#   sh tests/bench/gpu.sh [FOLDER]      (build/gpu)
#
#   GPU       which device, in the words of --gpu (auto)
#   BUILD     where the programs are (build/release); they are built first where compiler and
#             packages are installed (deploy/install-deps.sh build test), else taken as they are, as
#             on a machine to which only the programs were copied
#   SPHERES   sizes to measure, as in bench_sand --spheres (those of bench_sand)
#
# Ends with 1 when a test failed. Without a GPU it runs on the software renderer, and the table says
# so: such numbers are none of a GPU.

set -u
cd "$(dirname "$0")/../.." || exit 2

out=${1:-build/gpu}
GPU=${GPU:-auto}
BUILD=${BUILD:-build/release}
mkdir -p "$out" || exit 2

if command -v make >/dev/null && command -v pkg-config >/dev/null &&
    pkg-config --exists epoxy egl libuv cmocka; then
    tests=$(ls tests/unit/test_sand_*.c | sed "s|tests/unit/\(.*\)\.c|$BUILD/tests/\1|")
    # shellcheck disable=SC2086 # a list of names without blanks
    make -j"$(getconf _NPROCESSORS_ONLN)" $tests "$BUILD/bench/bench_sand" >"$out/build.log" 2>&1 || {
        tail -n 20 "$out/build.log"
        exit 2
    }
fi
if [ ! -x "$BUILD/bench/bench_sand" ]; then
    echo "gpu.sh: no $BUILD/bench/bench_sand, and no compiler and packages to make it" >&2
    exit 2
fi

{
    echo "# The sand on $(uname -m), $(getconf _NPROCESSORS_ONLN) cores"
    echo
    echo "Date: $(date -u '+%Y-%m-%d %H:%M UTC'); source: $(git describe --always --dirty 2>/dev/null || echo unknown)"
    if command -v nvidia-smi >/dev/null; then
        nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader |
            sed 's/^/GPU, driver, memory: /'
    fi
    echo
} >"$out/sand.md"

failed=0
for test in "$BUILD"/tests/test_sand_*; do
    name=$(basename "$test")
    case $name in *.*) continue ;; esac
    if KOTA_TEST_GPU=$GPU timeout 300 "$test" >"$out/$name.log" 2>&1; then
        said=passed
    else
        said="FAILED (status $?)"
        failed=1
    fi
    skipped=$(grep -cE '# SKIP' "$out/$name.log")
    [ "$skipped" -eq 0 ] || said="$said, $skipped skipped"
    echo "- $name: $said" | tee -a "$out/sand.md"
done

echo >>"$out/sand.md"
"$BUILD/bench/bench_sand" --gpu "$GPU" ${SPHERES:+--spheres "$SPHERES"} 2>"$out/bench.log" |
    tee -a "$out/sand.md"
exit $failed
