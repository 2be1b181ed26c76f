#!/bin/sh
# Keeps the promise of the README on a machine that has nothing: a minimal Debian in a directory, a
# clean copy of the committed tree, and the two commands.
#
#   sudo sh tests/fresh-machine.sh [deps|all|test|run|deb|systemd|docker|walk]…     (default: test run)
#
# deps    deploy/install-deps.sh twice: it installs, then it finds all there
# all     deps, then make
# test    sh deploy/test
# run     sh deploy/run until it serves; asks it once; ends it by SIGTERM
# deb     builds the Debian packages in one root and asks lintian; installs them in another, where the
#         daemon is started as its unit says, asked and ended, and the packages are removed
# systemd the same packages in a root that boots its own systemd (tests/fresh-systemd.sh): start, reload,
#         restart, watchdog, socket activation, the sandbox, upgrade, removal
# walk    the path of each reader of the documents, with its minutes (tests/walk-readers.py)
# docker  the Dockerfile's stages, each in a root of its own (tests/dockerfile.py), and what it promises
#
# Needs root, debootstrap and a mirror. The machine's own way to its mirror (apt's proxy settings,
# the environment's proxies, the certificates) is copied into the root while the script runs,
# because a chroot has none. ROOT_DIR keeps the root for another look; SUITE is bookworm, and with
# SUITE=noble MIRROR=http://archive.ubuntu.com/ubuntu the machine is an Ubuntu. BASE_DIR is
# what debootstrap made before: it is copied instead of made again. DEBS is a folder of packages that
# deploy/build-deb.sh has built before: deb and systemd build none then.

set -eu
cd "$(dirname "$0")/.."

suite=${SUITE:-bookworm}
keep=${ROOT_DIR:-}
root=${ROOT_DIR:-$(mktemp -d "${TMPDIR:-/var/tmp}/kota-fresh.XXXXXX")}
mirror=${MIRROR:-$(sed -n 's/^URIs: *//p; s/^deb  *\(\[[^]]*\] *\)\{0,1\}\(http[^ ]*\) .*/\2/p' \
    /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1)}
mirror=${mirror:-http://deb.debian.org/debian}

say()
{
    echo "== $*"
}

# A failed step must leave no daemon and no mounts behind, and rm must not walk into them.
runner=''
first=$root
leave()
{
    status=$?
    trap '' INT TERM
    if [ -n "$runner" ]; then
        kill -TERM "$runner" 2>/dev/null || true
        wait "$runner" || true
    fi
    for at in "$first" "$first.build"; do
        umount "$at/dev/pts" 2>/dev/null || true
        umount "$at/proc" 2>/dev/null || true
    done
    if ! grep -q " $first\.build/" /proc/mounts; then
        rm -rf "$first.build" "$first.context"
    fi
    if [ -z "$keep" ] && ! grep -q " $first/" /proc/mounts; then
        rm -rf "$first"
    fi
    exit "$status"
}

make_root()
{
    if [ ! -x "$root/usr/bin/apt-get" ] && [ -n "${BASE_DIR:-}" ]; then
        mkdir -p "$root"
        cp -a --one-file-system "$BASE_DIR/." "$root/"
    fi
    if [ ! -x "$root/usr/bin/apt-get" ]; then
        say "debootstrap --variant=minbase $suite from $mirror"
        # One script of debootstrap's is for every Ubuntu, also for those that it does not know.
        set -- --variant=minbase "$suite" "$root" "$mirror"
        case $mirror in
        *ubuntu*) set -- --components=main,universe "$@" /usr/share/debootstrap/scripts/gutsy ;;
        esac
        debootstrap "$@" >"$root.log" 2>&1 || { tail -n 20 "$root.log"; exit 1; }
        rm -f "$root.log"
    fi
    # How this machine reaches its mirror; never written into the repository.
    cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    apt-config dump | grep -iE '^Acquire::(Check-|https?::)' \
        >"$root/etc/apt/apt.conf.d/99mirror" || true
    if [ -f /etc/ssl/certs/ca-certificates.crt ]; then
        mkdir -p "$root/etc/ssl/certs"
        cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
        # npm has a list of its own, and the package ca-certificates writes the file above again
        cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/machine.crt"
    fi
    chmod 755 "$root" # apt's own user reads its archives
    mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
    # Terminals, for the tests of what people see; they skip themselves where this is not allowed.
    mountpoint -q "$root/dev/pts" ||
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts" 2>/dev/null || true
    [ -e "$root/dev/ptmx" ] || ln -s pts/ptmx "$root/dev/ptmx"
    for tool in gcc make python3 pkg-config; do
        if [ -z "$keep" ] && in_root "command -v $tool" >/dev/null; then
            echo "this root is not bare: it has $tool" >&2
            exit 1
        fi
    done
}

exec_in_root() # exec_in_root 'COMMAND': in the place of this shell, so that it gets its signals
{
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
        NODE_EXTRA_CA_CERTS=/etc/ssl/machine.crt ${CI:+CI="$CI"} chroot "$root" /bin/sh -c "$1"
}

in_root()
{
    (exec_in_root "$1")
}

copy_tree()
{
    rm -rf "$root/src"
    mkdir -p "$root/src"
    git archive HEAD | tar -x -C "$root/src"
}

step_deps()
{
    in_root 'cd /src && sh deploy/install-deps.sh build test' 2>&1 | grep '^install-deps'
    again=$(in_root 'cd /src && sh deploy/install-deps.sh build test')
    say "again: $again"
    [ "$again" = "install-deps: everything for build test is installed" ]
}

step_all()
{
    step_deps
    in_root 'cd /src && make -j2 all' | tail -n 3
    in_root 'cd /src && ls -l build/release/kotad build/release/kota build/release/kota-worldgen'
}

step_test()
{
    in_root 'cd /src && sh deploy/test' >"$root/test.log" 2>&1 || { cat "$root/test.log"; exit 1; }
    tail -n 40 "$root/test.log"
}

# Starts it, waits until it says that it serves, asks it from outside, ends it.
step_run()
{
    exec_in_root 'cd /src && exec sh deploy/run LISTEN=127.0.0.1:0' >"$root/run.log" 2>&1 &
    runner=$!
    tries=0
    until grep -q '^kotad serves' "$root/run.log"; do
        tries=$((tries + 1))
        if ! kill -0 "$runner" 2>/dev/null || [ "$tries" -gt 1800 ]; then
            cat "$root/run.log"
            exit 1
        fi
        sleep 1
    done
    grep -v '^  CC' "$root/run.log" | tail -n 40
    url=$(sed -n 's/^kotad serves .* at \(http[^ ]*\) .*/\1/p' "$root/run.log")
    in_root "/src/build/release/kota --url $url ls" >/dev/null
    kill -TERM "$runner"
    wait "$runner" || true # make itself ends by the signal; what counts is the daemon
    runner=''
    grep -q 'kotad has ended' "$root/run.log"
    if in_root "/src/build/release/kota --url $url ls" >/dev/null 2>&1; then
        echo "it still serves at $url" >&2
        exit 1
    fi
    say "drained and ended after SIGTERM"
}

# Runs a command in a network that has loopback alone: the packages and the image name their ports.
alone()
{
    python3 -c 'import os, sys; sys.path.insert(0, "tests"); import dockerfile
dockerfile.own_network_and_mounts(); os.execvp(sys.argv[1], sys.argv[1:])' "$@"
}

# Packages are built in a copy of the root, so that the root that gets them stays bare.
build_debs()
{
    cp -a --one-file-system "$root" "$root.build"
    root=$first.build
    mount -t proc proc "$root/proc"
    in_root 'cd /src && sh deploy/install-deps.sh build package' 2>&1 | grep '^install-deps'
    in_root 'cd /src && sh deploy/build-deb.sh /out' >"$root/deb.log" 2>&1 ||
        { tail -n 60 "$root/deb.log"; exit 1; }
    in_root 'lintian --allow-root --fail-on error --info /out/*.changes' || exit 1
    # shellcheck disable=SC2016 # the root's shell is to expand it
    in_root 'apt-get -q -y install /out/libkota0_*.deb /out/libkota-ground0_*.deb /out/libkota-dev_*.deb && cd /tmp &&
        cc -o hello /src/client/examples/hello.c $(pkg-config --cflags --libs libkota) &&
        { ./hello; [ $? -eq 2 ]; }' >"$root/dev.log" 2>&1 || { cat "$root/dev.log"; exit 1; }
    say "a program is built with libkota-dev"
    mkdir -p "$first/debs"
    cp "$root"/out/*.deb "$first/debs"
    root=$first
}

get_debs()
{
    if [ -n "${DEBS:-}" ]; then
        mkdir -p "$root/debs"
        cp "$DEBS"/*.deb "$root/debs"
    else
        build_debs
    fi
    install_debs
}

step_deb()
{
    get_debs
    alone sh tests/fresh-unit.sh "$root"
    remove_debs
}

install_debs()
{
    rm -rf "$root/src" "$root"/debs/*dbgsym*
    in_root 'apt-get -q update && apt-get -q -y install /debs/*.deb' >"$root.log" 2>&1 ||
        { tail -n 30 "$root.log"; exit 1; }
    rm -f "$root.log"
    in_root 'dpkg -l kotad kota libkota0 libkota-ground0 libkota-dev kota-doc | grep ^ii'
    in_root 'ldd /usr/bin/kotad /usr/bin/kota /usr/lib/*/libkota.so.0 | grep "not found"' && exit 1
    return 0
}

# Nothing of them stays but what the daemon itself wrote.
remove_debs()
{
    rm -rf "$root/debs"
    in_root 'apt-get -q -y purge kotad kota libkota0 libkota-ground0 libkota-dev kota-doc' >/dev/null
    left=$(in_root 'find /bin /etc /lib /usr -xdev -name "*kota*" ! -name "North_Dakota"')
    [ -z "$left" ] || { echo "left behind by purge: $left" >&2; exit 1; }
    say "removed: nothing is left"
}

step_systemd()
{
    get_debs
    in_root 'apt-get -q -y install --no-install-recommends systemd curl' >"$root.log" 2>&1 ||
        { tail -n 30 "$root.log"; exit 1; }
    rm -f "$root.log"
    umount "$root/dev/pts" "$root/proc" # systemd mounts its own
    sh tests/fresh-systemd.sh "$root" || [ $? -eq 77 ] # it has said why it cannot
}

# Tools that readers have are installed before the clock starts, and the build does not count.
step_walk()
{
    if [ -n "${DEBS:-}" ]; then
        mkdir -p "$root/debs"
        cp "$DEBS"/*.deb "$root/debs"
    else
        build_debs
    fi
    in_root 'cd /src && sh deploy/install-deps.sh build && apt-get -q -y install --no-install-recommends \
        curl nodejs npm chromium python3-venv && make -j2 all build/demo.made' >"$root/walk.log" 2>&1 ||
        { tail -n 30 "$root/walk.log"; exit 1; }
    in_root 'cd /src && DEBS=/debs python3 tests/walk-readers.py'
}

step_docker()
{
    mkdir -p "$root.context"
    git archive HEAD | tar -x -C "$root.context"
    rm -rf "$root/src"
    python3 tests/dockerfile.py --base "$root" "$root.context/Dockerfile" "$root.context"
}

[ "$(id -u)" -eq 0 ] || { echo "fresh-machine: needs root, for chroot" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "fresh-machine: needs debootstrap" >&2; exit 2; }
trap leave EXIT
trap 'exit 130' INT TERM
[ $# -gt 0 ] || set -- test run
make_root
copy_tree
for step; do
    say "$step"
    "step_$step"
done
say "the promise holds: $*"
