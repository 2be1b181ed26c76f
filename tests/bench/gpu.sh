#!/bin/sh
# The sand on a GPU, in one go and within a bound of time: builds, measures the solver and its passes,
# runs the published scenes, asks a daemon for patches, runs the tests of the device, and films a
# drop. Writes three files:
#
#   FOLDER/sand.md    device, driver, date; the table of bench_sand, with and without robust access;
#                     the scenes with percentiles of their frames; how long patches take; the tests
#   FOLDER/log.txt    all that the programs printed
#   FOLDER/film.png   a drop
#
#   sh tests/bench/gpu.sh [FOLDER]           (build/gpu)
#   sh tests/bench/gpu.sh --pack FOLDER      programs and their libraries, for a machine without a
#                                            compiler: there, BUILD=FOLDER sh tests/bench/gpu.sh
#
#   GPU       which device, in the words of --gpu (auto)
#   BUILD     where the programs are (build/release); they are built first where compiler and
#             packages are installed (deploy/install-deps.sh build test), else taken as they are
#   LIMIT     seconds for all of it (540); a part that has no time left is told as left out
#   SPHERES   sizes to measure, as in bench_sand --spheres (those of bench_sand)
#   SHARE     of the granules of the scenes (1)
#   PATCHES   that a daemon is asked for (medium:9 medium:15 fine:9)
#
# Ends with 1 when a part failed, and at once when the device is no whole GPU: software, or a slice of
# one (MIG has no OpenGL). GPU=software tries the script itself, with everything small; the table then
# says that its numbers are none of a GPU.

set -u
cd "$(dirname "$0")/../.." || exit 2

start=$(date +%s)
GPU=${GPU:-auto}
BUILD=${BUILD:-build/release}
LIMIT=${LIMIT:-540}
film='--granules 2000 --seconds 3' impacts='--count 2'
if [ "$GPU" = software ]; then
    SPHERES=${SPHERES:-1000} SHARE=${SHARE:-0.0005} PATCHES=${PATCHES:-coarse:4}
    film='--granules 500 --height 3 --seconds 1'
    impacts='--count 1 --size 3.6 --depth 1.8 --cells 8'
fi
SHARE=${SHARE:-1}
PATCHES=${PATCHES:-medium:9 medium:15 fine:9}

# ---- programs -----------------------------------------------------------------------------------

programs() # builds what is missing, where that can be done; what was packed is taken as it is
{
    [ ! -d "$BUILD/packed" ] || return 0
    command -v make >/dev/null && command -v pkg-config >/dev/null &&
        pkg-config --exists epoxy egl libuv cmocka || return 0
    tests=$(ls tests/unit/test_sand_gl*.c | sed "s|tests/unit/\(.*\)\.c|$BUILD/tests/\1|")
    # shellcheck disable=SC2086 # a list of names without blanks
    make -j"$(getconf _NPROCESSORS_ONLN)" $tests "$BUILD/bench/bench_sand" "$BUILD/kota-sand" \
        "$BUILD/kotad" "$BUILD/kota" >"$1" 2>&1 || {
        tail -n 20 "$1"
        exit 2
    }
}

# Libraries of a program; and those that are opened by name, which ldd does not see.
libraries()
{
    ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
    for name in libEGL.so.1 libOpenGL.so.0 libGLdispatch.so.0; do
        ldconfig -p | awk -v name="$name" '$1 == name { print $NF; exit }'
    done
}

pack()
{
    mkdir -p "$1/tests" "$1/bench" "$1/packed" || exit 2
    programs "$1/build.log"
    for program in "$BUILD"/tests/test_sand_gl* "$BUILD/bench/bench_sand" "$BUILD/kota-sand" \
        "$BUILD/kotad" "$BUILD/kota"; do
        case $program in *.[a-z]*) continue ;; esac
        strip -o "$1/${program#"$BUILD"/}" "$program" || exit 2
    done
    # not what belongs to the system's C library: that must be the system's own
    libraries "$BUILD/kotad" "$BUILD/kota" "$BUILD/tests/test_sand_gl" | sort -u |
        grep -vE '/(ld-linux|libc|libm|libdl|librt|libpthread|libresolv)[-.]' |
        while read -r file; do cp -L "$file" "$1/packed/"; done
    du -sh "$1"
}

if [ "${1:-}" = --pack ]; then
    pack "${2:?FOLDER}"
    exit 0
fi

if [ "$GPU" != software ] && command -v nvidia-smi >/dev/null && nvidia-smi -L | grep -q MIG; then
    nvidia-smi -L
    echo "gpu.sh: this is a MIG slice: it has no OpenGL, and is no measure of a GPU" >&2
    exit 1
fi

out=${1:-build/gpu}
mkdir -p "$out" || exit 2
programs "$out/log.txt"
if [ ! -x "$BUILD/kota-sand" ]; then
    echo "gpu.sh: no programs in $BUILD, and no compiler and packages to make them" >&2
    exit 2
fi
if [ -d "$BUILD/packed" ]; then # only what this system lacks
    lib=$(mktemp -d)
    trap 'rm -rf "$lib"' EXIT
    for file in "$BUILD"/packed/*; do
        ldconfig -p | awk '{ print $1 }' | grep -qxF "$(basename "$file")" ||
            ln -s "$(realpath "$file")" "$lib/"
    done
    LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
fi
# a driver that is mounted elsewhere is not found by itself
vendor=share/glvnd/egl_vendor.d/10_nvidia.json
if [ ! -f "/usr/$vendor" ] && [ -f "/usr/local/nvidia/$vendor" ] &&
    [ -z "${__EGL_VENDOR_LIBRARY_FILENAMES:-}" ]; then
    export __EGL_VENDOR_LIBRARY_FILENAMES="/usr/local/nvidia/$vendor"
fi

"$BUILD/kota-sand" device "$GPU" || {
    echo "gpu.sh: no figure would be of a GPU; GPU=software tries the script without one" >&2
    exit 1
}

# ---- parts --------------------------------------------------------------------------------------

failed=0
: >"$out/log.txt"

# part SECONDS NAME PROGRAM ARGUMENTS...: its output goes to the log and to $out/part.txt, its fate
# to $said; status 1 when it failed or was left out
part()
{
    seconds=$1 name=$2
    shift 2
    left=$((start + LIMIT - $(date +%s)))
    [ "$left" -ge "$seconds" ] || seconds=$left
    : >"$out/part.txt"
    if [ "$seconds" -le 2 ]; then
        said="left out: no time"
        return 1
    fi
    began=$(date +%s)
    timeout "$seconds" "$@" >"$out/part.txt" 2>&1
    status=$?
    { echo "==== $name: $*"; cat "$out/part.txt"; } >>"$out/log.txt"
    took=$(($(date +%s) - began))
    case $status in
    0) said="passed ($took s)"; return 0 ;;
    124) said="stopped after $took s" ;;
    *) said="FAILED (status $status)" ;;
    esac
    failed=1
    return 1
}

say() { tee -a "$out/sand.md"; }

scene() # scene NAME SECONDS ARGUMENTS...
{
    which=$1 wall=$2
    shift 2
    part $((wall + 30)) "scene $which" "$BUILD/kota-sand" scene "$which" --gpu "$GPU" \
        --share "$SHARE" --wall "$wall" "$@"
    {
        echo "- scene $which, share $SHARE: $said"
        # where it stood last, the whole, the times of frames, and what was published
        tail -n 4 "$out/part.txt" | sed 's/^/    /'
    } | say
}

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

table() # table NAME: what a part printed, without the log's lines, and its fate
{
    { grep -v ' info ' "$out/part.txt"; echo; echo "- $1: $said"; echo; } | say
}

part 120 bench_sand "$BUILD/bench/bench_sand" --gpu "$GPU" ${SPHERES:+--spheres "$SPHERES"}
table bench_sand
part 30 plain "$BUILD/bench/bench_sand" --gpu "$GPU" --access plain --spheres "${SPHERES:-250000,1000000}"
table "bench_sand without robust access"
scene dense 30 --seconds 8
scene scales 30 --seconds 8
scene ten 100 --seconds 105
# shellcheck disable=SC2086 # a list without blanks in its words
GPU=$GPU BUILD=$BUILD part 100 patches sh tests/bench/gpu_latency.sh $PATCHES
table "patches of a daemon"
# shellcheck disable=SC2086 # lists of options
{
    part 60 film "$BUILD/kota-sand" film "$out/film.png" --gpu "$GPU" $film
    echo "- film: $said" | say
    part 60 compare "$BUILD/kota-sand" compare impacts --gpu "$GPU" $impacts
    echo "- impacts: $said" | say
}
for test in "$BUILD"/tests/test_sand_gl*; do
    name=$(basename "$test")
    case $name in *.*) continue ;; esac
    KOTA_TEST_GPU=$GPU part 60 "$name" "$test"
    skipped=$(grep -cE '# SKIP' "$out/part.txt")
    [ "$skipped" -eq 0 ] || said="$said, $skipped skipped"
    echo "- $name: $said" | say
done
rm -f "$out/part.txt"
echo "- all: $(($(date +%s) - start)) s" | say
exit $failed
