#!/bin/sh
# The shape of the source, as the style guide wants it: prints TAP, one line a rule.
# Run from the repository root, by `make tidy` or as a part of `make test`.
#
# A rule's offenders are printed as `# file: what`, and the rule fails.

set -u
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/.." || exit 2

# check "sentence": reads offenders from stdin; none is ok.
check()
{
    offenders=$(cat)
    if [ -z "$offenders" ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        printf '%s\n' "$offenders" | sed 's/^/# /'
    fi
}

skip()
{
    echo "ok - $1 # SKIP $2"
}

sources() # sources DIR...: every C file below
{
    for top in "$@"; do
        [ ! -d "$top" ] || find "$top" -name '*.[ch]'
    done | sort
}

everything() # every text file that people write
{
    sources server client tests
    find tests deploy proto client \( -name '*.py' -o -name '*.sh' -o -name '*.yaml' -o -name run \
        -o -name '*.html' -o -name '*.js' -o -name '*.mjs' -o -name '*.css' \) -type f \
        -not -path '*/node_modules/*' 2>/dev/null
    [ ! -f .ci/run ] || echo .ci/run
    [ ! -f deploy/test ] || echo deploy/test
}

rules()
{
# ---- arrows between the rooms -------------------------------------------------------------------

rooms="base terrain formats store cluster world sand http api worldgen sandscene"

# arrows ROOM "ROOMS THAT IT MAY USE"
arrows()
{
    [ -d "server/$1" ] || return 0
    for room in $rooms; do
        case " $1 $2 " in
        *" $room "*) ;;
        *) grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]+[<\"]$room/" \
            $(sources "server/$1") /dev/null ;;
        esac
    done
}

arrows base "" | check "base uses no other room"
arrows terrain "base" | check "terrain uses base alone"
arrows formats "base terrain" | check "formats uses terrain and base alone"
arrows store "base terrain formats" | check "store uses nothing to its left"
arrows cluster "base" | check "cluster uses base alone"
arrows world "base terrain formats store cluster" | check "world uses nothing to its left"
arrows sand "base terrain formats store cluster world" | check "sand uses nothing to its left"
arrows sandscene "base terrain formats store cluster world sand" | check "sandscene uses sand and nothing to its right"
arrows http "base" | check "http uses base alone"
arrows api "base terrain formats store cluster world sand http" | check "api uses nothing to its left"
arrows worldgen "base terrain formats" | check "worldgen uses terrain, formats and base alone"

sources server | grep -v '^server/worldgen/' | xargs grep -nE \
    '#[[:space:]]*include[[:space:]]+"(\.\./|tests/|client/|server/)' |
    check "includes name a room, not a path out of it"

# ---- terrain is pure ----------------------------------------------------------------------------

sources server/terrain | xargs grep -nE \
    '#[[:space:]]*include[[:space:]]+[<"](uv\.h|sqlite3|GL/|EGL/|GLES|epoxy|cjson|cJSON|llhttp|png\.h|time\.h|sys/|syslog|unistd|pthread|stdio_ext|base/log)' \
    /dev/null | check "terrain includes no libuv, SQLite, GL, cJSON, clock, system or log header"
sources server/terrain | xargs grep -nE \
    '(^|[^A-Za-z0-9_])(getenv|secure_getenv|clock_gettime|gettimeofday|time|clock|rand|random|srand|printf|fprintf|fopen|open|read|write|log_[a-z]+)\(' \
    /dev/null | grep -vE ':[[:space:]]*(/?\*|//)' |
    check "terrain asks no clock, no environment, no random source, no file, no log"
sources server/formats | xargs grep -nE \
    '(^|[^A-Za-z0-9_])(getenv|clock_gettime|gettimeofday|fopen|open)\(' /dev/null |
    grep -vE ':[[:space:]]*(/?\*|//)' | check "formats takes bytes, opens no file, asks no clock"
sources server/http | xargs grep -niE 'heightfield|terrain|locale' /dev/null |
    grep -vE ':[[:space:]]*(/?\*|//)|/\*.*(terrain|locale)|"[^"]*locales' |
    check "http knows no terrain"

# ---- lengths --------------------------------------------------------------------------------------

everything | grep -v '\.yaml$' | xargs wc -l | awk '$2 != "total" && $1 > 1000 { print $2 ": " $1 " lines" }' |
    check "no file is longer than 1,000 lines"

sources server client tests | xargs awk '
    FNR == 1 { inside = 0 }
    /^[a-z].*\(/ { name = $0 }
    /^\{/ { inside = 1; start = FNR }
    /^\}/ {
        if (inside && FNR - start - 1 > 90)
            print FILENAME ":" start ": " FNR - start - 1 " lines: " name
        inside = 0
    }' | check "no function is longer than 90 lines"

sources server client tests | xargs awk '
    { line = $0; gsub(/[\200-\277]/, "", line) }
    length(line) > 100 { print FILENAME ":" FNR ": " length(line) " columns" }' |
    check "no line of C is wider than 100 columns"

# ---- habits -----------------------------------------------------------------------------------------

tab=$(printf '\t')
everything | xargs grep -n "$tab" /dev/null | cut -c 1-80 | check "no tabs"
everything | xargs grep -nE '[[:space:]]+$' /dev/null | check "no blanks at the end of a line"

marks="TO""DO|FIX""ME|XX""X"
everything | xargs grep -nE "(^|[^A-Za-z])($marks)([^A-Za-z]|$)" /dev/null |
    check "nothing is left marked as to be done"

sources server client | xargs grep -nE 'typedef[[:space:]]+(struct|union|enum)|typedef .*_t;' \
    /dev/null | grep -v '(\*' | check "no typedef hides a struct, no type is named _t"

for file in $(sources server client | grep '\.c$'); do
    awk -v file="$file" '
        NR == 1 && !/^\/\*/ { print file ": does not open with a comment"; exit }
        /\*\// {
            if (NR < 3 || NR > 45)
                print file ": opens with a comment of " NR " lines"
            exit
        }' "$file"
done | check "each .c opens with the problem, the approach and the source"

for file in $(sources server client | grep '\.c$'); do
    header=${file%.c}.h
    [ -f "$header" ] || continue
    first=$(grep -m 1 -E '^[[:space:]]*#[[:space:]]*include' "$file")
    case $first in
    *"$(basename "$header")\"") ;;
    *) echo "$file: its first include is $first" ;;
    esac
done | check "each .c includes its own header first"

# ---- headers ------------------------------------------------------------------------------------------

cc=${CC:-cc}
if command -v "$cc" >/dev/null 2>&1; then
    flags=$(pkg-config --cflags libuv libcjson libpng libcurl sqlite3 epoxy egl libpq 2>/dev/null)
    if pkg-config --exists libllhttp 2>/dev/null; then
        flags="$flags $(pkg-config --cflags libllhttp)"
    else
        flags="$flags -isystem /usr/share/include/llhttp"
    fi
    for header in $(sources server client | grep '\.h$'); do
        said=$("$cc" -std=c17 -D_GNU_SOURCE -Iserver -Iproto -I. $flags -Wall -Wextra -Werror \
            -fsyntax-only -x c -include "$header" /dev/null 2>&1) ||
            printf '%s: %s\n' "$header" "$said" | head -n 3
    done | check "each header compiles by itself"
else
    skip "each header compiles by itself" "no $cc here"
fi

sources server client | grep '\.h$' | while read -r header; do
    grep -qE '^#ifndef KOTA_[A-Z0-9_]+_H$' "$header" || echo "$header: no include guard KOTA_…_H"
done | check "each header has a guard KOTA_ROOM_MODULE_H"

# Other versions lay out a few things otherwise; 14 is the one of Debian 12.
case $(clang-format --version 2>/dev/null) in
*"version 14."*)
    sources server client tests | xargs clang-format --dry-run 2>&1 |
        grep -E 'warning|error' | head -n 20 | check "clang-format would change nothing"
    ;;
*) skip "clang-format would change nothing" "clang-format 14 is not installed" ;;
esac
}

# Numbers the results and says the plan; each rule ran in a pipe of its own and kept no count.
rules | awk '
    /^ok - / { sub(/^ok/, "ok " ++count) }
    /^not ok - / { sub(/^not ok/, "not ok " ++count); failed++ }
    { print }
    END { print "1.." count; exit failed > 0 }'
