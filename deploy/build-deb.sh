#!/bin/sh
# Builds the Debian packages kotad, kota, libkota0, libkota-ground0, libkota-dev and kota-doc.
#
#   sh deploy/build-deb.sh OUT [STAGED]
#
# The packages, .changes and .buildinfo go into OUT. STAGED, if given, gets the tree that the packages
# are cut from. Built of the committed tree, or, where this is no git checkout, of the tree as it is. It is copied to a
# temporary folder with deploy/debian as its debian/, because dpkg-buildpackage wants that at the
# top. What is needed: `sh deploy/install-deps.sh build package`. No root. DEB_BUILD_OPTIONS is
# Debian's own: nocheck, parallel=4.

set -eu

out=${1:?usage: sh deploy/build-deb.sh OUT [STAGED]}
mkdir -p "$out" ${2:+"$2"}
staged=${2:+$(cd "$2" && pwd)}
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
version=$(awk '/define KOTA_VERSION_/ {printf "%s%s", dot, $3; dot = "."}' client/lib/kota.h)
source=$folder/kota-$version
mkdir "$source"
if git rev-parse --git-dir >/dev/null 2>&1; then
    git archive HEAD | tar -x -C "$source"
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
else
    tar -c --exclude=./build --exclude=./tests/web/node_modules . | tar -x -C "$source"
fi
cp -R "$source/deploy/debian" "$source/debian"
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(date +%s)}"
cat >"$source/debian/changelog" <<END
kota ($version) unstable; urgency=medium

  * See CHANGELOG.md.

 -- The kota authors <kota@example.org>  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END

: "${DEB_BUILD_OPTIONS=parallel=$(nproc 2>/dev/null || echo 2)}"
export DEB_BUILD_OPTIONS
(cd "$source" && dpkg-buildpackage -us -uc -b)
[ -z "$staged" ] || cp -a "$source/debian/tmp/." "$staged/"
cp "$folder"/*.deb "$folder"/*.changes "$folder"/*.buildinfo "$out"
echo "build-deb: kota $version is in $out"
