#!/bin/sh
# artifacts.sh DIR LDFLAGS: builds noded for all systems into DIR, with SHA256SUMS. The same sources, version and Go give the
# same bytes on every machine: no paths, no state of the working copy and no C compiler go into them.
set -eu
dir=$1
flags=$2
cd "$(dirname "$0")/.."
mkdir -p "$dir"
for os in linux darwin windows; do
	for arch in amd64 arm64; do
		name=noded-$os-$arch
		[ "$os" != windows ] || name=$name.exe
		CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= $flags" -o "$dir/$name" ./noded/cmd/noded
	done
done
cd "$dir"
if command -v sha256sum >/dev/null 2>&1; then
	sha256sum noded-* >SHA256SUMS
else
	shasum -a 256 noded-* >SHA256SUMS
fi
cat SHA256SUMS
