#!/bin/sh
# Installs what kota needs from the packages of Debian or Ubuntu, and only what is missing.
#
#   sh deploy/install-deps.sh [--check] [PART…]
#
# Parts: build (default), test, wasm (what kota_ground.wasm is built with; the build leaves it out
# without; a part of test), fuzz, bench (what the benchmarks compare with), torture (what
# `make torture` attacks with), ops (what stands beside a daemon or around it: Prometheus, nginx,
# HAProxy, kubectl, Compose; their tests are skipped without), package (what deploy/build-deb.sh and the tests of packages need),
# cross (what tests/cross.sh builds and runs for aarch64 with), runtime. --check installs nothing, says what is missing and exits with 1 if anything is. When all
# is there the script changes nothing, asks no network and needs no root.
#
# Two things are named differently from release to release and are looked up rather than assumed:
# llhttp (libllhttp-dev where there is one, else node-llhttp, which carries its C sources) and the
# run-time libraries (libuv1 became libuv1t64, and so on). "a|b" means: either will do. A browser,
# node, npm and kubectl in PATH are taken as they are, wherever they came from.

set -u

BUILD='gcc libc6-dev make pkg-config|pkgconf libuv1-dev libcjson-dev libpng-dev libtiff-dev libassimp-dev
    libsqlite3-dev zlib1g-dev libzstd-dev libssl-dev libcurl4-openssl-dev|libcurl4-gnutls-dev
    libllhttp-dev|node-llhttp
    libegl-dev libgl-dev libepoxy-dev libpq-dev python3 python3-yaml'
TEST='libcmocka-dev python3-venv curl sqlite3 libegl1 libgl1-mesa-dri valgrind chromium nodejs npm
    tmux mandoc zsh fish postgresql glslang-tools gdal-bin python3-rasterio g++ libbullet-dev libode-dev'
WASM='clang lld wasi-libc libclang-rt-wasm32'
FUZZ='clang libclang-rt'
BENCH='libcmocka-dev libembree-dev libbullet-dev g++ wrk gdal-bin nginx-light valgrind haproxy
    postgresql lammps'
TORTURE='slowhttptest'
OPS='prometheus nginx-light haproxy openssl python3-kubernetes kubernetes-client docker-compose-v2'
PACKAGE='build-essential debhelper lintian debootstrap'
CROSS='gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user'
RUNTIME='libuv1t64|libuv1 libcjson1 libpng16-16t64|libpng16-16 libcurl4t64|libcurl4 libllhttp
    libtiff6 libassimp6|libassimp5t64|libassimp5 libsqlite3-0 zlib1g libzstd1 libpq5
    libssl3t64|libssl3
    libepoxy0 libegl1 libopengl0|libgl1 libgl1-mesa-dri'

say()
{
    echo "install-deps: $*"
}

fail()
{
    echo "install-deps: $*" >&2
    exit 1
}

is_installed() # is_installed PACKAGE
{
    dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

is_known() # is_known PACKAGE: apt can install it
{
    apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'
}

is_command() # is_command NAME: found in PATH, whoever installed it
{
    command -v "$1" >/dev/null 2>&1
}

# The packages that PACKAGE depends on, one a line.
depends_of()
{
    apt-cache depends "$1" 2>/dev/null | awk '$1 == "Depends:" { print $2 }'
}

# The real names behind the two that carry a version: prints "none" where there is nothing.
resolve() # resolve WANTED
{
    case $1 in
    libclang-rt) # the sanitizers of that clang which "clang" stands for; part of it before 14
        version=$(depends_of clang | sed -n 's/^clang-\([0-9]*\)$/\1/p' | head -n 1)
        if [ -n "$version" ] && is_known "libclang-rt-$version-dev"; then
            echo "libclang-rt-$version-dev"
        else
            echo none
        fi
        ;;
    libclang-rt-wasm32) # the same for WebAssembly: what the compiler itself calls
        version=$(depends_of clang | sed -n 's/^clang-\([0-9]*\)$/\1/p' | head -n 1)
        if [ -n "$version" ] && is_known "libclang-rt-$version-dev-wasm32"; then
            echo "libclang-rt-$version-dev-wasm32"
        else
            echo none
        fi
        ;;
    libllhttp) # a library of its own only where libllhttp-dev exists; else it is linked in
        name=$(depends_of libllhttp-dev | grep '^libllhttp[0-9]' | head -n 1)
        echo "${name:-none}"
        ;;
    chromium) # Ubuntu has it as a snap alone, which no script can count on; the tests then skip
        if is_command chromium || is_command chromium-browser ||
            grep -qs '^ID=ubuntu' /etc/os-release; then
            echo none
        else
            echo chromium
        fi
        ;;
    kubernetes-client | docker-compose-v2) # the one is Debian's alone, the other Ubuntu's
        if [ "$1" = kubernetes-client ] && is_command kubectl || ! is_known "$1"; then
            echo none
        else
            echo "$1"
        fi
        ;;
    nodejs) if is_command node; then echo none; else echo nodejs; fi ;;
    npm) if is_command npm; then echo none; else echo npm; fi ;;
    *) echo "$1" ;;
    esac
}

# Prints those of WANTED… of which no alternative is installed.
missing_of()
{
    for wanted; do
        wanted=$(resolve "$wanted")
        [ "$wanted" != none ] || continue
        found=''
        for package in $(echo "$wanted" | tr '|' ' '); do
            ! is_installed "$package" || found=yes
        done
        [ -n "$found" ] || echo "$wanted"
    done
}

# Prints the first alternative that apt knows of each; the first of all where it knows none.
choose()
{
    for wanted; do
        chosen=''
        for package in $(echo "$wanted" | tr '|' ' '); do
            [ -n "$chosen" ] || ! is_known "$package" || chosen=$package
        done
        echo "${chosen:-${wanted%%|*}}"
    done
}

as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

# ---- what is asked for --------------------------------------------------------------------------

check_only='' parts='' wanted=''
for argument; do
    case $argument in
    --check) check_only=yes ;;
    build) parts="$parts build" wanted="$wanted $BUILD" ;;
    test) parts="$parts test" wanted="$wanted $TEST $WASM" ;;
    wasm) parts="$parts wasm" wanted="$wanted $WASM" ;;
    fuzz) parts="$parts fuzz" wanted="$wanted $FUZZ" ;;
    bench) parts="$parts bench" wanted="$wanted $BENCH" ;;
    torture) parts="$parts torture" wanted="$wanted $TORTURE" ;;
    ops) parts="$parts ops" wanted="$wanted $OPS" ;;
    package) parts="$parts package" wanted="$wanted $PACKAGE" ;;
    cross) parts="$parts cross" wanted="$wanted $CROSS" ;;
    runtime) parts="$parts runtime" wanted="$wanted $RUNTIME" ;;
    *)
        echo "usage: sh deploy/install-deps.sh [--check]" \
            "[build] [test] [wasm] [fuzz] [bench] [torture] [ops] [package] [cross] [runtime]" >&2
        exit 2
        ;;
    esac
done
[ -n "$parts" ] || { parts=' build' wanted=$BUILD; }

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    fail "this system has no apt. Install by hand: a C17 compiler, make, pkg-config, libuv," \
        "llhttp, cJSON, libpng, libtiff, assimp, libcurl, libepoxy, EGL, libpq, python3 with yaml; cmocka for" \
        "the tests; then run 'make'."
fi

# ---- what is missing -----------------------------------------------------------------------------

# shellcheck disable=SC2086 # the lists are split at blanks on purpose
missing=$(missing_of $wanted | sort -u | tr '\n' ' ')
if [ -z "$missing" ]; then
    say "everything for$parts is installed"
    exit 0
fi
if [ -n "$check_only" ]; then
    say "missing for$parts: $missing"
    exit 1
fi
if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    fail "missing for$parts: ${missing}- and neither root nor sudo is here to install it." \
        "Run this as root: sh deploy/install-deps.sh$parts"
fi

# ---- install -------------------------------------------------------------------------------------

say "missing for$parts: $missing"
say "apt-get update"
as_root apt-get -q update || say "apt-get update complained; going on with the lists that are here"

# Fresh lists may know another alternative, or a name that could not be looked up before.
# shellcheck disable=SC2046,SC2086
set -- $(choose $(missing_of $wanted | sort -u) | sort -u)
if [ $# -gt 0 ]; then
    say "apt-get install --no-install-recommends $*"
    as_root apt-get -q -y -o DPkg::Lock::Timeout=120 install --no-install-recommends "$@" ||
        fail "apt-get could not install: $*"
fi
# shellcheck disable=SC2086
missing=$(missing_of $wanted | tr '\n' ' ')
[ -z "$missing" ] || fail "still missing: $missing"
say "done"
