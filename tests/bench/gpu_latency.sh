#!/bin/sh
# How long a game waits for a patch, through a kotad: a barrel-sized box falls eight metres onto a
# square of flat ground, the patch is closed, and the times of its states are told, in seconds since
# the request. Simulated time passes no faster than real time while it is active.
#
#   sh tests/bench/gpu_latency.sh PATCH…     each is SCALE:METRES, as in medium:9
#
#   GPU     which device, in the words of --gpu (auto)
#   BUILD   where kotad and kota are (build/release)

set -u
cd "$(dirname "$0")/../.." || exit 2
BUILD=${BUILD:-build/release}
folder=$(mktemp -d) || exit 2
daemon=
trap '[ -z "$daemon" ] || kill "$daemon"; wait; rm -rf "$folder"' EXIT

head -c $((257 * 257 * 4)) /dev/zero >"$folder/land.f32"
{
    printf 'v %s\n' '-.4 -.4 -.4' '.4 -.4 -.4' '.4 .4 -.4' '-.4 .4 -.4' \
        '-.4 -.4 .4' '.4 -.4 .4' '.4 .4 .4' '-.4 .4 .4'
    printf 'f %s\n' '1 3 2' '1 4 3' '5 6 7' '5 7 8' '1 2 6' '1 6 5' '2 3 7' '2 7 6' \
        '3 4 8' '3 8 7' '4 1 5' '4 5 8'
} >"$folder/box.obj"
"$BUILD/kotad" --gpu "${GPU:-auto}" --listen 127.0.0.1:0 --port-file "$folder/port" --no-sandbox \
    "$folder/land.f32?cols=257&rows=257&spacing=0.25,0.25" 2>"$folder/log" &
daemon=$!
until [ -s "$folder/port" ]; do
    kill -0 "$daemon" 2>/dev/null || {
        cat "$folder/log"
        exit 1
    }
    sleep 0.1
done
KOTA_URL=http://127.0.0.1:$(cat "$folder/port")
export KOTA_URL
"$BUILD/kota" model put box "$folder/box.obj" >/dev/null || exit 1

field() { sed -n 's/.*"'"$1"'":"\{0,1\}\([^",}]*\).*/\1/p'; }

echo "| patch | granules | answer to POST | states, seconds since POST |"
echo "|---|---|---|---|"
for patch; do
    scale=${patch%:*} side=${patch#*:}
    before=$(date +%s%N)
    "$BUILD/kota" --timeout 60 patch create land --center 32,32 --size "$side,$side" \
        --scale "$scale" --body '{"model": "box", "position": [32, 32, 8], "density": 1500}' \
        >"$folder/made" || exit 1
    after=$(date +%s%N)
    number=$(field id <"$folder/made")
    "$BUILD/kota" patch watch land "$number" >"$folder/states" &
    watch=$!
    "$BUILD/kota" --timeout 500 patch delete land "$number" >"$folder/ended" || exit 1
    wait "$watch"
    states=$(grep '"at_s"' "$folder/states" | while read -r line; do
        echo "$line" | sed 's/.*"state":"\([a-z]*\)".*"at_s":\([0-9.]*\).*/\1 \2/'
    done | awk '{ printf "%s%s %.2f", n++ ? ", " : "", $1, $2 }')
    echo "| $scale, $side m | $(field granules <"$folder/made") |" \
        "$(((after - before) / 1000000)) ms | $states |"
    [ "$(field state <"$folder/ended")" = written ] || exit 1
done
grep -o 'patches are simulated by [^"]*' "$folder/log"
