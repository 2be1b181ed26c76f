#!/bin/sh
# kota for another processor, tried on this one: builds all of it for aarch64 with a cross compiler and
# runs it by qemu's user mode. Slow (some 20 to 50 times), so it is no part of `make test`.
#
#   sh tests/cross.sh [NAME…]
#
# Without names: all unit tests and fuzz corpora, each with its time limit; before them what must be the
# same on all processors, bit for bit, as the build for this one has it (build/release): the generator's
# world, and the checksums of tests/bench/counted.c. With names: those of tests/run, of the daemon's tests
# too (`height`, `rays`…). KOTA_TEST_SECONDS and KOTA_TEST_JOBS are tests/run's.
#
# Needs `sh deploy/install-deps.sh build test cross`, and Linux 6.7, whose user namespaces may have a
# binfmt_misc of their own: there the programs run by their names, and nothing of this machine changes.
# The libraries of the other processor are packages of this system's own suite, unpacked below
# build/aarch64-root and not installed. Ubuntu has them on another mirror (ports.ubuntu.com).
#
# Not there by qemu 7.2, and no faults: Landlock (test_confine skips), RLIMIT_AS (in test_jail the test of
# memory fails), OpenGL by a pixel is minutes.

set -eu
cd "$(dirname "$0")/.."

machine=aarch64 arch=arm64
triple=$machine-linux-gnu
build=build/$machine
root=$PWD/build/$machine-root
qemu=$(command -v qemu-$machine || true)
if [ -z "$qemu" ] || ! command -v $triple-gcc >/dev/null; then
    echo "no qemu-$machine or no $triple-gcc: sh deploy/install-deps.sh cross" >&2
    exit 2
fi

# ---- the libraries -----------------------------------------------------------------------------

if [ ! -e "$root/complete" ]; then
    state=$root.apt
    rm -rf "$root" "$state"
    mkdir -p "$root" "$state/lists/partial" "$state/archives/partial"
    : >"$state/status"
    apt()
    {
        apt-get -q -y -o APT::Architecture=$arch -o APT::Architectures=$arch \
            -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state" \
            -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" "$@"
    }
    apt update
    apt install --no-install-recommends --download-only libc6-dev libuv1-dev libcjson-dev \
        libpng-dev libtiff-dev libassimp-dev libsqlite3-dev zlib1g-dev libzstd-dev libssl-dev libcurl4-openssl-dev libegl-dev \
        libgl-dev libepoxy-dev libpq-dev libcmocka-dev
    for package in "$state"/archives/*.deb; do
        dpkg-deb -x "$package" "$root"
    done
    [ -e "$root/lib" ] || ln -s usr/lib "$root/lib"
    find "$root" -type l -lname '/*' | while read -r link; do
        ln -sfn "$root$(readlink "$link")" "$link" # as seen from outside
    done
    rm -r "$state"
    touch "$root/complete"
fi

# ---- run programs of that processor by their names ---------------------------------------------

if [ "${KOTA_CROSS_INSIDE:-}" != yes ]; then
    make config=release build/release/bench/counted build/release/kota-worldgen
    # the name, and what an ELF file of 64 bits begins with that is a program or a library for it;
    # F: qemu is opened now
    export KOTA_CROSS_INSIDE=yes QEMU="$qemu"
    # shellcheck disable=SC2016 # the shell inside is to expand it
    exec unshare --user --map-root-user --mount sh -c '
        mount -t binfmt_misc none /proc/sys/fs/binfmt_misc &&
        printf ":kota:M::%s:%s:%s:F" \
            "\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00" \
            "\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff" \
            "$QEMU" >/proc/sys/fs/binfmt_misc/register || exit 2
        # and no longer as root, who could not become anybody else here
        exec unshare --user --map-user=1000 --map-group=1000 sh "$0" "$@"' tests/cross.sh "$@"
fi

export QEMU_LD_PREFIX="$root" PKG_CONFIG_SYSROOT_DIR="$root"
export PKG_CONFIG_LIBDIR="$root/usr/lib/$triple/pkgconfig:$root/usr/share/pkgconfig"

# ---- build, compare, test ----------------------------------------------------------------------

programs=''
for source in tests/unit/test_*.c tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    programs="$programs $build/tests/$(echo "$name" | sed 's/^fuzz_/replay_&/')"
done

# shellcheck disable=SC2086
make CI=1 B="$build" CC="$triple-gcc --sysroot=$root" AR=$triple-ar LD=$triple-ld \
    OBJCOPY=$triple-objcopy -j "$(getconf _NPROCESSORS_ONLN)" \
    all "$build/bench/counted" "$build/faults/inject.so" $programs

if [ $# -gt 0 ]; then
    for name; do
        tests/run "$build" "$name"
    done
    exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for b in build/release "$build"; do
    out=$work/$(basename "$b")
    "$b/kota-worldgen" demo "$out" --size 128 >/dev/null
    for set in $("$b/bench/counted"); do
        KOTA_SIMD=scalar "$b/bench/counted" "$set"
    done >"$out/checksums"
done
diff -r "$work/release" "$work/$machine"
echo "the same world and the same checksums"

failed=''
for program in $programs; do
    name=$(basename "$program")
    tests/run "$build" "$name" >"$work/said" || failed="$failed $name"
    grep -E "^(ok|FAIL|skip) " "$work/said"
done
[ -z "$failed" ] || {
    echo "failed:$failed" >&2
    exit 1
}
