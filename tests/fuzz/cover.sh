#!/bin/sh
# Line coverage of each decoder under the committed corpora alone, for docs/internals/fuzzing.md.
#
#   sh tests/fuzz/cover.sh        builds build/cov/tests/replay_* and prints a table
#
# A row: the fuzzer or fuzzers, the file that they are about, and the share of its lines that their
# own corpora reach together. Exits with 1 when one is below 85 %.

set -u
build=build/cov
gcov=${GCOV:-gcov}
pairs='
http        server/http/head.c server/http/head_parse.c server/http/chunks.c server/http/target.c
request     server/api/batch.c server/api/calls/elevation_decode.c
batch       server/json/json_batch.c
json        server/json/json_check.c
json,batch,request,edit server/json/json_tape.c
edit        server/api/edit_decode.c
png         server/formats/raster/png.c
f32         server/formats/raster/f32.c
hgt         server/formats/raster/hgt.c
asc         server/formats/raster/asc.c
tiff        server/formats/raster/tiff_read.c server/formats/raster/tiff_geo.c
obj         server/formats/polygon/obj.c
ply         server/formats/polygon/ply.c
stl         server/formats/polygon/stl.c
gltf        server/formats/polygon/gltf.c
polyline    server/formats/polyline.c
idempotency_record  server/api/idempotency_record.c server/sand/body/shell_bytes.c
polygon_header  server/formats/polygon/polygon_header.c server/formats/polygon/ac3d.c
mesh_image  server/terrain/mesh/mesh_image.c
record      server/world/follow/record_read.c
negotiation server/api/answer/header_list.c server/formats/float_layout.c
store       server/store/store_load.c server/store/store_row_cache.c server/store/store_tiles.c
'
replays=$(echo "$pairs" | awk -v build="$build" 'NF {gsub(",", " " build "/tests/replay_fuzz_", $1)
    print build "/tests/replay_fuzz_" $1}')
# shellcheck disable=SC2086 # words
make --no-print-directory config=cov $replays >/dev/null || exit 1
echo "$pairs" | {
    bad=0
    while read -r names files; do
        [ -n "$names" ] || continue
        find "$build" -name '*.gcda' -delete
        fuzzers=
        for name in $(echo "$names" | tr , ' '); do
            "$build/tests/replay_fuzz_$name" "tests/fuzz/corpus/$name" >/dev/null || exit 1
            fuzzers="${fuzzers:+$fuzzers, }\`fuzz_$name\`"
        done
        for file in $files; do
            object=$build/${file%.c}
            percent=$($gcov -n -o "$(dirname "$object")" "$object.gcda" 2>/dev/null |
                awk -v file="$file" '$0 == "File \x27" file "\x27" {hit = 1; next}
                    hit && /^Lines executed:/ {sub(/^Lines executed:/, ""); print; exit}')
            echo "| $fuzzers | \`$file\` | ${percent:-none} |"
            case ${percent:-0} in
            100* | 8[5-9]* | 9*) ;;
            *) bad=1 ;;
            esac
        done
    done
    exit "$bad"
}
