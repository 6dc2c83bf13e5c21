#!/bin/sh
# artifacts.sh DIR LDFLAGS: builds noded (or PROGRAMS) for all systems (or PLATFORMS) into DIR, with SHA256SUMS. The same
# sources, version and Go give the same bytes on every machine: no paths, no state of the working copy, no C compiler and
# nothing of the caller's Go settings go into them.
set -eu
dir=$1
flags=$2
cd "$(dirname "$0")/.."
mkdir -p "$dir"
export CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT='' GOFLAGS='' GOWORK=off GODEBUG=''
for program in ${PROGRAMS:-noded}; do
	case $program in
	iopctl) source=./cli/cmd/iopctl ;;
	*) source=./$program/cmd/$program ;;
	esac
	for platform in ${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}; do
		os=${platform%/*} arch=${platform#*/}
		name=$program-$os-$arch
		[ "$os" != windows ] || name=$name.exe
		GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= $flags" -o "$dir/$name" "$source"
	done
done
cd "$dir"
rm -f SHA256SUMS
if command -v sha256sum >/dev/null 2>&1; then
	sha256sum ./* | sed 's| \./| |' >SHA256SUMS
else
	shasum -a 256 ./* | sed 's| \./| |' >SHA256SUMS
fi
cat SHA256SUMS
