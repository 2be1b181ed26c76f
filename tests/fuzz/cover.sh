#!/bin/sh
# Line coverage of each decoder under the committed corpora alone, for docs/fuzzing.md.
#
#   sh tests/fuzz/cover.sh        builds build/cov/tests/replay_* and prints a table
#
# A row: the fuzzer, the file that it is about, and the share of its lines that the fuzzer's own
# corpus reaches. Exits with 1 when one is below 85 %.

set -u
build=build/cov
gcov=${GCOV:-gcov}
pairs='
http        server/http/head.c server/http/chunks.c server/http/target.c
request     server/api/batch.c server/api/elevation_decode.c
batch       server/api/json_batch.c
json        server/api/json_check.c
edit        server/api/edit_decode.c
png         server/formats/png.c
f32         server/formats/f32.c
hgt         server/formats/hgt.c
asc         server/formats/asc.c
obj         server/formats/obj.c
polyline    server/formats/polyline.c
kept        server/api/kept_answer.c server/sand/shell_bytes.c
polygon_header  server/formats/polygon_header.c server/formats/gltf.c server/formats/ac3d.c
mesh_image  server/terrain/mesh_image.c
store       server/store/store_load.c server/store/store_mirror.c server/store/store_tiles.c
'
replays=$(echo "$pairs" | awk -v build="$build" 'NF {print build "/tests/replay_fuzz_" $1}')
# shellcheck disable=SC2086 # words
make --no-print-directory config=cov $replays >/dev/null || exit 1
echo "$pairs" | {
    bad=0
    while read -r name files; do
        [ -n "$name" ] || continue
        find "$build" -name '*.gcda' -delete
        "$build/tests/replay_fuzz_$name" "tests/fuzz/corpus/$name" >/dev/null || exit 1
        for file in $files; do
            object=$build/${file%.c}
            percent=$($gcov -n -o "$(dirname "$object")" "$object.gcda" 2>/dev/null |
                awk -v file="$file" '$0 == "File \x27" file "\x27" {hit = 1; next}
                    hit && /^Lines executed:/ {sub(/^Lines executed:/, ""); print; exit}')
            echo "| \`fuzz_$name\` | \`$file\` | ${percent:-none} |"
            case ${percent:-0} in
            100* | 8[5-9]* | 9*) ;;
            *) bad=1 ;;
            esac
        done
    done
    exit "$bad"
}
