#!/bin/sh
# Puts what was built where it belongs, and takes it away again. Called by `make install` and
# `make uninstall`.
#
#   deploy/install.sh install | uninstall BUILD-DIR      settings come from the environment:
#
# DESTDIR      before every path; empty: the machine itself
# PREFIX       /usr/local
# LIBDIR       $PREFIX/lib; Debian's packages say /usr/lib/x86_64-linux-gnu
# LIB_VERSION  of libkota: MAJOR.MINOR.PATCH
#
# What goes where stands in deploy/install.list. install writes down what it made, files and
# directories, in $PREFIX/share/kota/installed; uninstall removes exactly that: never a directory
# that was there before, nor one that somebody else has put something into. Installing again removes
# what an older version had put there and this one does not.

set -eu
umask 022

what=${1:?usage: deploy/install.sh install|uninstall BUILD-DIR}
build=${2:?usage: deploy/install.sh install|uninstall BUILD-DIR}
destdir=${DESTDIR:-}
prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
version=${LIB_VERSION:?LIB_VERSION is not set}
list=$(dirname "$0")/install.list
record=$prefix/share/kota/installed

fail()
{
    echo "install: $*" >&2
    exit 1
}

# A path as sed's replacement: its own signs stay what they are.
escaped()
{
    printf '%s\n' "$1" | sed 's/[&|\\]/\\&/g'
}

# The lines of the list with their words put in.
fill()
{
    sed -e '/^#/d; /^$/d' \
        -e "s|@BUILD@|$(escaped "$build")|; s|@PREFIX@|$(escaped "$prefix")|" \
        -e "s|@LIBDIR@|$(escaped "$libdir")|g; s|@VERSION@|$version|g" \
        -e "s|@SOVERSION@|${version%%.*}|g" "$list"
}

# Makes a directory and those above it; says which ones were not there before, the highest first.
make_directory() # make_directory PATH, without DESTDIR
{
    [ ! -d "$destdir$1" ] || return 0
    case $1 in
    */*/*) make_directory "${1%/*}" ;;
    esac
    mkdir -p "$destdir$1"
    echo "$1/" >>"$made"
}

# The systemd units and libkota.pc name the place they are installed at; in the tree they say /usr.
put() # put MODE SOURCE TARGET
{
    case $3 in
    *.service | *.socket)
        sed "s|/usr/bin/kotad|$(escaped "$prefix")/bin/kotad|g" "$2" >"$scratch/file"
        set -- "$1" "$scratch/file" "$3"
        ;;
    *.pc)
        sed -e "s|^prefix=.*|prefix=$(escaped "$prefix")|" \
            -e "s|^includedir=.*|includedir=$(escaped "$prefix")/include|" \
            -e "s|^libdir=.*|libdir=$(escaped "$libdir")|" "$2" >"$scratch/file"
        set -- "$1" "$scratch/file" "$3"
        ;;
    esac
    ${INSTALL:-install} -m "$1" "$2" "$destdir$3"
}

# One line of the list. A source with a * is each file that fits, and the target a directory.
put_line() # put_line MODE SOURCE TARGET
{
    case $2 in
    *\**)
        for source in $2; do
            [ -f "$source" ] || continue
            put_line "$1" "$source" "$3${source##*/}"
        done
        return
        ;;
    esac
    make_directory "${3%/*}"
    if [ "$1" = link ]; then
        ln -sf "$2" "$destdir$3"
    else
        [ -f "$2" ] || fail "$2 has not been built"
        put "$1" "$2" "$3"
    fi
    echo "$3" >>"$made"
}

# Files in any order, then directories from the innermost outwards, while they are empty.
remove() # remove LIST-OF-PATHS
{
    { grep -v '/$' "$1" || true; } | while IFS= read -r path; do
        rm -f "$destdir$path"
    done
    { grep '/$' "$1" || true; } | LC_ALL=C sort -r | while IFS= read -r path; do
        rmdir "$destdir${path%/}" 2>/dev/null || true
    done
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
made=$scratch/made
before=$scratch/before
: >"$made"
: >"$before"
[ ! -f "$destdir$record" ] || cp "$destdir$record" "$before"

case $what in
install)
    fill >"$scratch/lines"
    while read -r mode source target; do
        put_line "$mode" "$source" "$target"
    done <"$scratch/lines"
    # What an older version made and this one does not goes now; its directories that are still
    # there are ours to remove later.
    echo "$record" >>"$made"
    LC_ALL=C sort -u "$made" >"$scratch/sorted"
    LC_ALL=C sort -u "$before" | LC_ALL=C comm -23 - "$scratch/sorted" >"$scratch/gone"
    remove "$scratch/gone"
    { grep '/$' "$scratch/gone" || true; } | while IFS= read -r path; do
        [ ! -d "$destdir$path" ] || echo "$path" >>"$made"
    done
    LC_ALL=C sort -u "$made" >"$scratch/sorted"
    ${INSTALL:-install} -m 644 "$scratch/sorted" "$destdir$record"
    ;;
uninstall)
    [ -s "$before" ] || fail "nothing is installed at $destdir$prefix: there is no $destdir$record"
    remove "$before"
    ;;
*) fail "'$what' is neither install nor uninstall" ;;
esac
