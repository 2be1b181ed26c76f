#!/bin/sh
# Builds the Debian packages kotad, kota, libkota0, libkota-dev and kota-doc.
#
#   sh deploy/build-deb.sh OUT          the packages, and what dpkg-genchanges says of them, into OUT
#
# Of the committed tree, or, where this is no git checkout, of the tree as it is. It is copied to a
# temporary folder with deploy/debian as its debian/, because dpkg-buildpackage wants that at the
# top. What is needed: `sh deploy/install-deps.sh build package`. No root. DEB_BUILD_OPTIONS is
# Debian's own: nocheck, parallel=4.

set -eu

out=${1:?usage: sh deploy/build-deb.sh OUT}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/.."

for tool in dpkg-buildpackage dh; do
    if ! command -v "$tool" >/dev/null; then
        echo "build-deb: no $tool; run: sh deploy/install-deps.sh build package" >&2
        exit 1
    fi
done

folder=$(mktemp -d "${TMPDIR:-/tmp}/kota-deb.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' deploy/debian/changelog)
source=$folder/kota-$version
mkdir "$source"
if git rev-parse --git-dir >/dev/null 2>&1; then
    git archive HEAD | tar -x -C "$source"
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
    export SOURCE_DATE_EPOCH
else
    tar -c --exclude=./build --exclude=./tests/web/node_modules . | tar -x -C "$source"
fi
cp -R "$source/deploy/debian" "$source/debian"

: "${DEB_BUILD_OPTIONS=parallel=$(nproc 2>/dev/null || echo 2)}"
export DEB_BUILD_OPTIONS
(cd "$source" && dpkg-buildpackage -us -uc -b)
cp "$folder"/*.deb "$folder"/*.changes "$folder"/*.buildinfo "$out"
echo "build-deb: kota $version is in $out"
