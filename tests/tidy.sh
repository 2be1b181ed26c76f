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
    sources server client deploy tests
    find tests deploy proto client \( -name '*.py' -o -name '*.sh' -o -name '*.yaml' -o -name run \
        -o -name '*.html' -o -name '*.js' -o -name '*.mjs' -o -name '*.css' \) -type f \
        -not -path '*/node_modules/*' 2>/dev/null
    [ ! -f .ci/run ] || echo .ci/run
    [ ! -f deploy/test ] || echo deploy/test
}

# where what is built, and is no test, lies
programs="server client deploy tests/bench/sandscene"

rules()
{
# ---- arrows between the rooms -------------------------------------------------------------------

rooms="base terrain formats store replica world sand view json http api daemon"

# arrows ROOM "ROOMS THAT IT MAY USE" [FOLDER], which is server/ROOM
arrows()
{
    [ -d "${3:-server/$1}" ] || return 0
    for room in $rooms; do
        case " $1 $2 " in
        *" $room "*) ;;
        *) grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]+[<\"]$room/" \
            $(sources "${3:-server/$1}") /dev/null ;;
        esac
    done
}

arrows base "" | check "base uses no other room"
arrows terrain "base" | check "terrain uses only base"
arrows formats "base terrain" | check "formats uses only terrain and base"
arrows store "base terrain formats" | check "store uses only formats, terrain and base"
arrows replica "base" | check "replica uses only base"
arrows world "base terrain formats store replica" |
    check "world uses only replica, store, formats, terrain and base"
arrows sand "base terrain formats store replica world" | check "sand uses only world and what is below it"
arrows http "base" | check "http uses only base"
arrows json "base terrain" | check "json uses only terrain and base"
arrows view "base terrain formats store replica world sand" |
    check "view uses only sand and what is below it"
arrows api "base terrain formats store replica world sand view http json" |
    check "api uses only json, http, view and what is below it"
arrows sandscene "base terrain formats store world sand" tests/bench/sandscene |
    check "sandscene uses only sand and what is below it"
arrows demo "base terrain formats" deploy/demo |
    check "the demo's generator uses only formats, terrain and base"
find server client -type d ! -path client/web | while read -r folder; do
    files=$(find "$folder" -maxdepth 1 -type f | wc -l)
    [ "$files" -le 45 ] || echo "$folder: $files files"
done | check "no folder but the page's has more than 45 files"

python3 tests/words.py |
    check "public texts are in plain English, by the phrases that tests/words.py looks for"
python3 tests/links.py | check "every link of the pages leads somewhere, in the tree and installed"
python3 tests/mutants.py --list --count 1 server/base 2>&1 >/dev/null |
    check "tests/mutants.py knows the black-box tests of each room"
python3 tests/includes.py |
    check "no circle of includes but those that tests/includes.py lists, each with its reason"
sources server | xargs grep -nE \
    '#[[:space:]]*include[[:space:]]+"(\.\./|tests/|client/|server/)' |
    check "includes name a room, not a path out of it"

# ---- terrain is pure ----------------------------------------------------------------------------

sources server/terrain | xargs grep -nE \
    '#[[:space:]]*include[[:space:]]+[<"](uv\.h|sqlite3|GL/|EGL/|GLES|epoxy|cjson|cJSON|llhttp|png\.h|time\.h|sys/|syslog|unistd|pthread|stdio_ext|base/log|base/clock)' \
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

sources server client deploy tests | xargs awk '
    FNR == 1 { inside = 0 }
    /^[a-z].*\(/ { name = $0 }
    /^\{/ { inside = 1; start = FNR }
    /^\}/ {
        if (inside && FNR - start - 1 > (FILENAME ~ /^tests/ ? 90 : 70))
            print FILENAME ":" start ": " FNR - start - 1 " lines: " name
        inside = 0
    }' | check "no function is longer than 70 lines, in tests 90"

sources server client deploy tests | xargs awk '
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

sources $programs | xargs grep -nE 'typedef[[:space:]]+(struct|union|enum)|typedef .*_t;' \
    /dev/null | grep -v '(\*' | check "no typedef hides a struct, no type is named _t"

sources $programs | grep '\.c$' | xargs awk '
    FNR == 1 { opened = !/^\/\*/ }
    FNR == 1 && opened { print FILENAME ": does not open with a comment" }
    !opened && /\*\// {
        opened = 1
        if (FNR < 3 || FNR > 45)
            print FILENAME ": opens with a comment of " FNR " lines"
    }' | check "each .c opens with the problem, the approach and the source"

sources $programs | grep '\.c$' | xargs grep -m 1 -E '^[[:space:]]*#[[:space:]]*include' |
    while IFS=: read -r file first; do
        header=${file%.c}.h
        [ -f "$header" ] || continue
        case $first in
        *"${header##*/}\"") ;;
        *) echo "$file: its first include is $first" ;;
        esac
    done | check "each .c includes its own header first"

awk '!/^#/ && NF { print $1, $2 }' tests/programs.list | while read -r name belongs; do
    [ -f "tests/api/$name" ] || [ -f "tests/unit/$name.c" ] || [ -f "tests/$name" ] ||
        [ -f "tests/bench/$name" ] || echo "tests/programs.list: there is no $name"
    case $belongs in
    test | all | both) ;;
    *) echo "tests/programs.list: $name belongs to '$belongs', not to test, all or both" ;;
    esac
done | check "tests/programs.list names programs that exist"
long_form='^from tap import .*(ALL|rest)(,|$)|KOTA_TEST_ALL|long_form\.h|(inspect|replica)\.mjs'
{
    grep -lE "$long_form" tests/api/test_*.py tests/unit/test_*.c | sed 's|.*/||; s|\.c$||'
    awk '$2 == "both" { print $1 }' tests/programs.list
} | sort | uniq -u | check "programs with a form for make test-all, and no others, are listed as 'both'"

# ---- headers ------------------------------------------------------------------------------------------

cc=${CC:-cc}
if command -v "$cc" >/dev/null 2>&1; then
    flags=$(pkg-config --cflags libuv libcjson libpng libtiff-4 libcurl sqlite3 epoxy egl libpq 2>/dev/null)
    if pkg-config --exists libllhttp 2>/dev/null; then
        flags="$flags $(pkg-config --cflags libllhttp)"
    else
        flags="$flags -isystem /usr/share/include/llhttp"
    fi
    # one with a .c of its name is what that .c includes first, and the build compiles that
    for header in $(sources $programs | grep '\.h$'); do
        [ ! -f "${header%.h}.c" ] || continue
        said=$("$cc" -std=c17 -D_GNU_SOURCE -Iserver -Iproto -Itests -I. $flags -Wall -Wextra -Werror \
            -fsyntax-only -x c -include "$header" /dev/null 2>&1) ||
            printf '%s: %s\n' "$header" "$said" | head -n 3
    done | check "each header compiles by itself"
else
    skip "each header compiles by itself" "no $cc here"
fi

sources $programs | grep '\.h$' | xargs awk '
    function finish() { if (header && !guard) print header ": has no include guard" }
    FNR == 1 {
        finish()
        header = FILENAME
        parts = split(toupper(FILENAME), part, "/")
        name = substr(part[parts], 1, length(part[parts]) - 2)
        gsub("-", "_", name)
        wanted = part[1] == "SERVER" ? "^KOTA_" part[2] "_" name "_H$" : "^KOTA_([A-Z_]+_)?" name "_H$"
        guard = ""
    }
    /^#ifndef/ && !guard {
        guard = $2
        if (guard !~ wanted)
            print header ": its guard is " guard
    }
    END { finish() }' | check "each header of the server has the guard KOTA_ROOM_FILE_H, others KOTA_…FILE_H"

# Other versions lay out a few things otherwise; 14 is the one of Debian 12.
case $(clang-format --version 2>/dev/null) in
*"version 14."*)
    sources server client deploy tests | xargs clang-format --dry-run 2>&1 |
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
