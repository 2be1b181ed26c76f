#!/bin/sh
# Starts kotad on a world, asks it a few questions aloud, and keeps serving. Called by `make run`.
#
#   deploy/serve.sh BUILD-DIR           settings come from the environment:
#
# WORLD    a world directory, or one elevation file (PNG, HGT, ASC, f32; `FILE?spacing=10,10`)
# LISTEN   HOST:PORT; by default 127.0.0.1:$PORT, and PORT is 7420. When the default port is taken a
#          free one is used instead; a port that was asked for is never changed.
# DATA     a directory in which changes are kept; without it they end with the daemon
# ARGS     more flags for kotad
#
# Signals are handed to the daemon, which drains; the exit status is the daemon's.

set -u

DEFAULT_PORT=${DEFAULT_PORT:-7420}
build=${1:?usage: deploy/serve.sh BUILD-DIR}
world=${WORLD:?WORLD is not set}
kota=$build/kota

fail()
{
    echo "kota: $*" >&2
    exit 1
}

# The words as one would type them.
typed()
{
    for word; do
        case $word in
        *[!A-Za-z0-9_./:,=+@%-]*) printf " '%s'" "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    echo
}

# Whether somebody on this machine listens on port $1. Two daemons could share a port without a word
# (their sockets are SO_REUSEPORT), so it is looked up before.
is_taken()
{
    hex=$(printf ':%04X' "$1" 2>/dev/null) || return 1
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        awk -v port="$hex" '
            $4 == "0A" && substr($2, length($2) - 4) == port { found = 1 }
            END { exit !found }'
}

# ---- where to listen -----------------------------------------------------------------------------

if [ -n "${LISTEN:-}" ]; then
    listen=$LISTEN
elif [ -n "${PORT:-}" ]; then
    listen=127.0.0.1:$PORT
elif is_taken "$DEFAULT_PORT"; then
    echo "Port $DEFAULT_PORT is taken by another program; using a free one instead" \
        "(PORT=N or LISTEN=HOST:PORT chooses)."
    listen=127.0.0.1:0
else
    listen=127.0.0.1:$DEFAULT_PORT
fi
if [ "${listen##*:}" != 0 ] && is_taken "${listen##*:}"; then
    fail "port ${listen##*:} is taken; LISTEN=127.0.0.1:0 takes a free one"
fi

# ---- start ---------------------------------------------------------------------------------------

if [ -d "$world" ]; then
    set -- --world "$world"
elif [ -f "${world%%\?*}" ]; then
    set -- "$world"
else
    fail "WORLD=$world is neither a directory nor a file"
fi

[ -z "${DATA:-}" ] || set -- --data "$DATA" "$@"

folder=$(mktemp -d "${TMPDIR:-/tmp}/kota-run.XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
# shellcheck disable=SC2086 # ARGS holds several flags, here and below
echo "\$ $build/kotad$(typed --listen "$listen" ${ARGS:-} "$@")"
# shellcheck disable=SC2086
"$build/kotad" --listen "$listen" --port-file "$folder/port" ${ARGS:-} "$@" &
pid=$!
trap 'kill -TERM "$pid" 2>/dev/null' INT TERM HUP

# Waits for the daemon itself, however many signals come meanwhile, and exits as it did. A wait that
# a signal ended says 128 and more, as does a daemon that died of one: only asking again tells which
# (127: it has been told already).
finish()
{
    wait "$pid"
    status=$?
    while [ "$status" -gt 128 ]; do
        wait "$pid"
        again=$?
        [ "$again" -ne 127 ] || break
        [ "$again" -ne "$status" ] || kill -0 "$pid" 2>/dev/null || break
        status=$again
    done
    exit "$status"
}

# The port file appears when /readyz answers 200.
while [ ! -s "$folder/port" ]; do
    kill -0 "$pid" 2>/dev/null || finish
    sleep 0.1
done
host=${listen%:*}
case $host in
0.0.0.0) host=127.0.0.1 ;;
'[::]') host='[::1]' ;;
esac
KOTA_URL=http://$host:$(cat "$folder/port")
export KOTA_URL
[ "$KOTA_URL" = http://127.0.0.1:7420 ] || prefix="KOTA_URL=$KOTA_URL "

# ---- a few questions aloud -----------------------------------------------------------------------

ask() # ask ARGUMENT…: shows the command and its answer
{
    printf '\n$ %s%s%s\n' "${prefix:-}" "$kota" "$(typed "$@")"
    "$kota" "$@" </dev/null
}

# "X Y Z MIN-X MIN-Y TOP SPAN" of the first locale's bounds: centre, corner, top, width.
read_bounds()
{
    "$kota" --json info "$1" </dev/null | awk '
        match($0, /"bounds":\{"min":\[[^]]*\],"max":\[[^]]*\]/) {
            text = substr($0, RSTART, RLENGTH)
            gsub(/[^-+0-9.eE,]/, " ", text)
            gsub(/,/, " ", text)
            n = 0
            for (i = split(text, words, " "); i > 0; i--)
                if (words[i] ~ /^[-+]?[0-9]/)
                    b[++n] = words[i] # from the back: max z y x, min z y x
            if (n == 6)
                printf "%.6g %.6g %.6g %.6g %.6g\n", (b[3] + b[6]) / 2, (b[2] + b[5]) / 2,
                    b[1], b[5], b[3] - b[6]
        }'
}

ask_around() # ask_around ID X Y TOP SOUTH WIDTH
{
    id=$1 x=$2 y=$3 top=$4 south=$5
    above=$(awk -v top="$top" -v width="$6" 'BEGIN { printf "%.6g", top + width / 4 }')
    ask height "$id" "$x,$y"
    ask ray "$id" "$x,$south,$above" "$(awk -v y="$y" -v s="$south" -v top="$top" -v from="$above" \
        'BEGIN { printf "0,%.6g,%.6g", y - s, top - from }')"
    ask pick "$id" --eye "$x,$south,$above" --target "$x,$y,$top" --viewport 1280x720 \
        --pixel 640,500 --tile-side 16
}

ask ls
# the first locale with a heightfield, else the first
first=$("$kota" --json ls </dev/null | sed -n '/"kind":"heightfield"/s/^{"id":"\([A-Za-z0-9_-]*\)".*/\1/p' |
    head -n 1)
[ -n "$first" ] ||
    first=$("$kota" --json ls </dev/null | sed -n 's/^{"id":"\([A-Za-z0-9_-]*\)".*/\1/p' | head -n 1)
if [ -n "$first" ]; then
    bounds=$(read_bounds "$first")
    # shellcheck disable=SC2086 # five numbers
    [ -z "$bounds" ] || ask_around "$first" $bounds
fi

echo
echo "kotad serves $world at $KOTA_URL - Ctrl-C stops it."
finish
