#!/bin/sh
# Line coverage of each room, from what the tests left in BUILD. Called by `make cover`.
#
# gcov prints for each object the lines of every file it is made of; a file's own .c counts, and
# headers do not. Untested files count with none of their lines executed.

set -u
build=$1
gcov=${GCOV:-gcov}
notes=$(mktemp) || exit 1
trap 'rm -f "$notes"' EXIT

case $(${CC:-cc} --version 2>/dev/null) in
*clang*) gcov=${GCOV:-llvm-cov gcov} ;;
esac
find "$build/server" "$build/client" "$build/deploy" -name '*.gcno' >"$notes"
[ -s "$notes" ] || { echo "cover: nothing below $build was built for coverage" >&2; exit 1; }

# "File 'server/base/err.c'" and "Lines executed:91.30% of 23" become room, lines and percent.
while read -r note; do
    $gcov -n -o "$(dirname "$note")" "${note%.gcno}.gcda" 2>/dev/null ||
        $gcov -n -o "$(dirname "$note")" "$note" 2>/dev/null
done <"$notes" | awk -F"'" '
    /^File / { file = $2; next }
    /^No executable lines/ { file = ""; next }
    /^Lines executed:/ && file ~ /^(server|client|deploy)\/.*\.c$/ {
        split($0, part, /[:%]| of /)
        room = file
        sub(/\/[^\/]*$/, "", room)
        lines[room] += part[4]
        hit[room] += part[2] * part[4] / 100
        all += part[4]
        all_hit += part[2] * part[4] / 100
        file = ""
    }
    END {
        if (!all)
            exit 1
        for (room in lines)
            printf "%-18s %6.1f %% of %5d lines\n", room, 100 * hit[room] / lines[room],
                lines[room] | "sort"
        close("sort")
        printf "%-18s %6.1f %% of %5d lines\n", "all", 100 * all_hit / all, all
    }'
