#!/bin/sh
# Runs each fuzzer of BUILD for SECONDS on its corpus. Called by `make fuzz`.
#
# What a fuzzer finds new goes to BUILD/corpus/NAME, what crashes it to BUILD/crashes/NAME-…; the
# corpus in tests/fuzz/corpus is only read. A crasher becomes a file there with its fix. Exits with
# 1 if any fuzzer found one.

set -u
build=$1 seconds=$2
failed=0

mkdir -p "$build/crashes"
for fuzzer in "$build"/fuzz/fuzz_*; do
    [ -x "$fuzzer" ] && [ -f "tests/fuzz/$(basename "$fuzzer").c" ] || continue
    name=$(basename "$fuzzer")
    seeds=tests/fuzz/corpus/$name
    [ -d "$seeds" ] || seeds=tests/fuzz/corpus/${name#fuzz_}
    [ -d "$seeds" ] || seeds=
    mkdir -p "$build/corpus/$name"
    # shellcheck disable=SC2086 # seeds is one word or none
    if "$fuzzer" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$build/crashes/$name-" "$build/corpus/$name" $seeds \
        >"$build/crashes/$name.log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/crashes/$name.log")
        echo "ok    $name: ${runs:-?} inputs in $seconds s"
    else
        failed=1
        echo "FAIL  $name: see $build/crashes/$name.log"
        grep -E 'ERROR|SUMMARY|Test unit written' "$build/crashes/$name.log" | sed 's/^/      /'
    fi
done
exit "$failed"
