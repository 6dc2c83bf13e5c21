#!/bin/sh
# release-check.sh VERSION: makes a release twice, from copies of the sources at two places, each with a build cache of its own
# and other settings of the caller, and compares all bytes. PLATFORMS narrows it.
set -eu
cd "$(dirname "$0")/.."
version=$1
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# copy DIR: the files that git knows or would add.
copy() {
	mkdir -p "$1"
	git ls-files -z -co --exclude-standard | xargs -0 sh -c 'd=$0; for f; do [ ! -f "$f" ] || { mkdir -p "$d/$(dirname "$f")"; cp "$f" "$d/$f"; }; done' "$1"
}
copy "$work/one"
(umask 077 && copy "$work/another place/of that name")
GOCACHE=$work/cache1 sh "$work/one/.tools/release.sh" "$work/out1" "$version"
(umask 077 && TZ=Asia/Seoul LC_ALL=C.UTF-8 GOAMD64=v3 GOFLAGS=-trimpath=false GOCACHE=$work/cache2 sh "$work/another place/of that name/.tools/release.sh" "$work/out2" "$version")
if ! diff "$work/out1/SHA256SUMS" "$work/out2/SHA256SUMS"; then
	echo 'release-check: these are not the same when they are made again' >&2
	exit 1
fi
echo "release-check: $(wc -l <"$work/out1/SHA256SUMS" | tr -d ' ') files, the same bytes twice"
