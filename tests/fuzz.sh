#!/bin/sh
# Runs each fuzzer of BUILD for SECONDS on its corpus, one a core. Called by `make fuzz`.
#
# What a fuzzer finds new goes to BUILD/corpus/NAME, what crashes it to BUILD/crashes/NAME-…; the
# corpus in tests/fuzz/corpus is only read. A crasher becomes a file there with its fix. Exits with
# 1 if any fuzzer found one. KOTA_TEST_JOBS: fuzzers at once (default: the cores).

set -u

if [ "$1" = --one ]; then
    build=$2 seconds=$3 fuzzer=$4
    name=$(basename "$fuzzer")
    seeds=tests/fuzz/corpus/$name
    [ -d "$seeds" ] || seeds=tests/fuzz/corpus/${name#fuzz_}
    [ -d "$seeds" ] || seeds=
    mkdir -p "$build/corpus/$name"
    # shellcheck disable=SC2086 # seeds is one word or none
    if "$fuzzer" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$build/crashes/$name-" "$build/corpus/$name" $seeds \
        >"$build/crashes/$name.log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/crashes/$name.log")
        echo "ok    $name: ${runs:-?} inputs in $seconds s"
        exit 0
    fi
    echo "FAIL  $name: see $build/crashes/$name.log"
    grep -E 'ERROR|SUMMARY|Test unit written' "$build/crashes/$name.log" | sed 's/^/      /'
    exit 1
fi

build=$1 seconds=$2
jobs=${KOTA_TEST_JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}

mkdir -p "$build/crashes"
for fuzzer in "$build"/fuzz/fuzz_*; do
    [ ! -x "$fuzzer" ] || [ ! -f "tests/fuzz/$(basename "$fuzzer").c" ] || echo "$fuzzer"
done | xargs -n 1 -P "$jobs" sh "$0" --one "$build" "$seconds" || exit 1
