#!/bin/sh
# release.sh DIR VERSION: makes a release in DIR: archives of the three programs for each system, the builds of noded that
# edges serve, deb and rpm packages, what is in each binary (CycloneDX), and SHA256SUMS over all.
#
# The same sources, VERSION, SOURCE_DATE_EPOCH (default: the time of the last commit) and Go give the same bytes, wherever
# and by whomever (.tools/release-check.sh). PLATFORMS makes less of it: "linux/amd64" is what tests ask for.
set -eu
umask 022
export LC_ALL=C TZ=UTC
cd "$(dirname "$0")/.."
root=$PWD
mkdir -p "$1"
out=$(cd "$1" && pwd)
version=$2
# What an earlier release left goes, and nothing else.
if [ -f "$out/SHA256SUMS" ]; then
	sed 's/^[0-9a-f]* [ *]//' "$out/SHA256SUMS" | (cd "$out" && while read -r file; do rm -f -- "${file##*/}"; done)
	rm "$out/SHA256SUMS"
fi
if [ -n "$(ls -A "$out")" ]; then
	echo "release: $out is not empty" >&2
	exit 1
fi
: "${PLATFORMS:=linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}"
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export PLATFORMS SOURCE_DATE_EPOCH
case $version in *[!A-Za-z0-9.+~_-]* | '') echo "release: \"$version\" is no version" >&2 && exit 1 ;; esac

# What the archives are called, and the packages: v1.2.3 is 1.2.3, v1.2.3-rc.1 is 1.2.3~rc.1 (before 1.2.3), what git
# describes as v1.2.3-4-gabc is 1.2.3+4.gabc (behind it), and a commit without any tag before all of them.
number=${version#v}
case $number in
[0-9]*-[0-9]*-g*) package=$(printf '%s' "$number" | sed 's/-\([0-9]*\)-g/+\1.g/; s/-/~/g') ;;
[0-9]*.[0-9]*) package=$(printf '%s' "$number" | tr - '~') ;;
*) package=0.0.0+$(printf '%s' "$number" | tr -c 'a-z0-9\n' .) ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

say() { printf 'release: %s\n' "$*"; }

say "version $version, packages $package, time $SOURCE_DATE_EPOCH, $(go version | cut -d ' ' -f 3-)"
PROGRAMS='edged noded iopctl' sh .tools/artifacts.sh "$work/bin" "-X main.stamped=$version" >/dev/null
builds=$work/noded-builds
mkdir "$builds"
cp "$work"/bin/noded-* "$builds/"
(cd "$builds" && grep ' noded-' "$work/bin/SHA256SUMS" >SHA256SUMS)
rm "$work/bin/SHA256SUMS"

say 'tools'
mkdir "$work/tools"
GOFLAGS='' CGO_ENABLED=0 go build -modfile=.tools/release.mod -trimpath -buildvcs=false -o "$work/tools/" \
	github.com/goreleaser/nfpm/v2/cmd/nfpm github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
GOFLAGS='' go build -trimpath -buildvcs=false -o "$work/tools/" ./.tools/pack/main.go
mv "$work/tools/main" "$work/tools/pack"
GOFLAGS='' go run .tools/licences/main.go "$work"/bin/* >"$work/THIRD_PARTY.txt"

# The completions are told by an iopctl that runs here.
host=$work/bin/iopctl-$(go env GOHOSTOS)-$(go env GOHOSTARCH)
if [ ! -x "$host" ]; then
	host=$work/tools/iopctl
	GOFLAGS='' CGO_ENABLED=0 go build -buildvcs=false -o "$host" ./cli/cmd/iopctl
fi
mkdir "$work/completions"
"$host" completion bash >"$work/completions/iopctl.bash"
"$host" completion zsh >"$work/completions/_iopctl"
"$host" completion fish >"$work/completions/iopctl.fish"
"$host" completion powershell >"$work/completions/iopctl.ps1"

# archive NAME: packs the directory work/NAME as NAME.tar.gz, or .zip for Windows.
archive() {
	case $1 in
	*_windows_*) "$work/tools/pack" "$out/$1.zip" "$work/$1" ;;
	*) "$work/tools/pack" "$out/$1.tar.gz" "$work/$1" ;;
	esac
}

# text DIR: what goes with every archive.
text() {
	cp README.md LICENSE "$work/THIRD_PARTY.txt" "$1/"
	[ ! -f docs/INSTALL.md ] || cp docs/INSTALL.md "$1/"
	[ ! -f docs/CHANGELOG.md ] || cp docs/CHANGELOG.md "$1/"
}

for platform in $PLATFORMS; do
	os=${platform%/*} arch=${platform#*/}
	exe=
	[ "$os" != windows ] || exe=.exe
	name=iop_${package}_${os}_$arch
	say "$name"
	dir=$work/$name
	mkdir -p "$dir/examples" "$dir/completions"
	for program in edged noded iopctl; do
		cp "$work/bin/$program-$os-$arch$exe" "$dir/$program$exe"
		# The first hashes are those of the tool itself, which differ with the machine that it was built on.
		"$work/tools/cyclonedx-gomod" bin -json -noserial -notimestamp -std -version "$version" "$work/bin/$program-$os-$arch$exe" 2>"$work/sbom.log" |
			awk '/"hashes": \[/ && !done { skip = 1 } !skip; skip && /^ *\],?$/ { skip = 0; done = 1 }' >"$out/${program}_${package}_${os}_$arch.cdx.json"
		[ -s "$out/${program}_${package}_${os}_$arch.cdx.json" ] || { cat "$work/sbom.log" >&2 && exit 1; }
	done
	text "$dir"
	cp configs/examples/*.yaml configs/*.schema.json "$dir/examples/"
	cp "$work"/completions/* "$dir/completions/"
	case $os in
	linux) mkdir "$dir/services" && cp configs/services/*.service "$dir/services/" ;;
	darwin) mkdir "$dir/services" && cp configs/services/*.plist "$dir/services/" ;;
	esac
	archive "$name"
done

name=iop_${package}_noded-builds
say "$name"
mkdir "$work/$name"
cp "$builds"/* "$work/$name/"
text "$work/$name"
archive "$name"

case " $PLATFORMS " in
*' linux/'*) sh .tools/packages.sh "$root" "$work" "$out" "$package" ;;
esac

cd "$out"
if command -v sha256sum >/dev/null 2>&1; then
	sha256sum -- * >SHA256SUMS
else
	shasum -a 256 -- * >SHA256SUMS
fi
say "done: $(wc -l <SHA256SUMS | tr -d ' ') files in $out"
