#!/bin/sh
# Keeps the promise of the README on a machine that has nothing: a minimal Debian in a directory, a
# clean copy of the committed tree, and the two commands.
#
#   sudo sh tests/fresh-machine.sh [deps|all|test|run|docker]…     (default: test run)
#
# deps    deploy/install-deps.sh twice: it installs, then it finds all there
# all     deps, then make
# test    sh deploy/test
# run     sh deploy/run until it serves; asks it once; ends it by SIGTERM
# docker  the commands of the Dockerfile's two stages, by hand, each in a root of its own
#
# Needs root, debootstrap and a mirror. The machine's own way to its mirror (apt's proxy settings,
# the environment's proxies, the certificates) is copied into the root while the script runs,
# because a chroot has none. ROOT_DIR keeps the root for another look; SUITE is bookworm.

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
leave()
{
    status=$?
    trap '' INT TERM
    if [ -n "$runner" ]; then
        kill -TERM "$runner" 2>/dev/null || true
        wait "$runner" || true
    fi
    umount "$root/dev/pts" 2>/dev/null || true
    umount "$root/proc" 2>/dev/null || true
    if [ -z "$keep" ] && ! grep -q " $root/" /proc/mounts; then
        rm -rf "$root"
    fi
    exit "$status"
}

make_root()
{
    if [ ! -x "$root/usr/bin/apt-get" ]; then
        say "debootstrap --variant=minbase $suite from $mirror"
        debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
            { tail -n 20 "$root.log"; exit 1; }
        rm -f "$root.log"
    fi
    # How this machine reaches its mirror; never written into the repository.
    cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    apt-config dump | grep -iE '^Acquire::(Check-|https?::)' \
        >"$root/etc/apt/apt.conf.d/99mirror" || true
    if [ -f /etc/ssl/certs/ca-certificates.crt ]; then
        mkdir -p "$root/etc/ssl/certs"
        cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
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
        ${CI:+CI="$CI"} chroot "$root" /bin/sh -c "$1"
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

# The Dockerfile's stages without an engine: this root builds, a second one runs.
step_docker()
{
    in_root 'cd /src && sh deploy/install-deps.sh build' | grep '^install-deps'
    in_root 'cd /src && make -j2 install DESTDIR=/out PREFIX=/usr/local &&
        strip /out/usr/local/bin/* &&
        build/release/kota-worldgen demo /out/usr/local/share/kota/demo' | tail -n 3
    second=$(env -u ROOT_DIR STAGE_OUT="$root/out" sh "$0" stage2)
    echo "$second"
}

step_stage2()
{
    cp -a "$STAGE_OUT/." "$root/"
    in_root 'sh /src/deploy/install-deps.sh runtime' | grep '^install-deps'
    in_root 'rm -rf /var/lib/apt/lists/* && useradd --system --no-create-home \
        --shell /usr/sbin/nologin kota && install -d -o kota /world'
    in_root 'ldd /usr/local/bin/kotad /usr/local/bin/kota | grep "not found"' && exit 1
    in_root 'setpriv --reuid=kota --clear-groups kotad --listen 0.0.0.0:0 --read-only \
        --world /usr/local/share/kota/demo --port-file /tmp/port & pid=$!
        for i in $(seq 600); do [ -s /tmp/port ] && break; sleep 0.1; done
        kota --url "http://127.0.0.1:$(cat /tmp/port)" ls; status=$?
        kill "$pid"; wait "$pid"; echo "kotad ended with $?"; exit "$status"'
    du -shx "$root/usr/local" "$root" | sed 's/^/   /'
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
