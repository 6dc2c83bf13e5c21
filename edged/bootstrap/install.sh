#!/bin/sh
# Installs noded on this machine and joins it to the iop cluster whose edge made this script. It checks what it downloads,
# needs no root, changes nothing outside of the prefix and the configuration's directory but the service, and says what it did.
#
#   IOP_JOIN_TOKEN=... sh install.sh [--user | --prefix DIR] [--config FILE] [--no-service]
set -eu

base='@URL@'
plaintext='@PLAINTEXT@' # whether the edge accepts joining over plain HTTP
sums='@SUMS@'

say() { printf 'iop: %s\n' "$*"; }
fail() {
	printf 'iop: %s\n' "$*" >&2
	exit 1
}

usage() {
	cat <<'END'
install.sh: installs noded and joins this machine to a cluster
  --user          into ~/.local, configuration in ~/.config/iop (the default without root)
  --prefix DIR    into DIR/bin, configuration in DIR/etc/iop
  --config FILE   the node file to write
  --no-service    do not install the service
  --edge URL      another address of the edge's openai listener
The join token is taken from IOP_JOIN_TOKEN. Without one noded is only installed.
END
}

# platform prints the name of the build for this machine.
platform() {
	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) fail "no build for $(uname -s): use install.ps1 on Windows" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "no build for the processor $(uname -m)" ;;
	esac
	if [ "$os" = darwin ] && [ "$(sysctl -n hw.optional.arm64 2>/dev/null || echo 0)" = 1 ]; then
		arch=arm64 # a shell that is translated says x86_64
	fi
	printf 'noded-%s-%s' "$os" "$arch"
}

fetch() {
	if command -v curl >/dev/null 2>&1; then
		curl -fsSL --connect-timeout 20 -o "$2" "$1"
	elif command -v wget >/dev/null 2>&1; then
		wget -q -T 20 -O "$2" "$1"
	else
		fail "neither curl nor wget is here: install one of them"
	fi
}

checksum() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum <"$1" | cut -c 1-64
	elif command -v shasum >/dev/null 2>&1; then
		shasum -a 256 <"$1" | cut -c 1-64
	elif command -v openssl >/dev/null 2>&1; then
		openssl dgst -sha256 <"$1" | sed 's/^.*= *//'
	else
		fail "nothing here can compute SHA-256: install sha256sum, shasum or openssl"
	fi
}

# install_service has noded started at every boot, where this user may say so.
install_service() {
	if ! "$noded" service print --help >/dev/null 2>&1; then
		say "no service was installed. noded runs with: $noded --config $config"
		return
	fi
	if [ "$(uname -s)" = Linux ]; then
		if [ "$(id -u)" != 0 ] || [ ! -d /run/systemd/system ]; then
			say "no service was installed, as that takes root and systemd. noded runs with: $noded --config $config"
			return
		fi
		if ! id iop >/dev/null 2>&1; then
			useradd --system --no-create-home --shell /usr/sbin/nologin iop
			say "made the user iop, as whom the service runs"
		fi
		chown iop "$config"
		[ ! -f "${config%.*}-ca.pem" ] || chown iop "${config%.*}-ca.pem"
	fi
	"$noded" service install --config "$config" || fail "the service was not installed. noded runs with: $noded --config $config"
}

main() {
	prefix='' config='' service=yes token=${IOP_JOIN_TOKEN:-}
	unset IOP_JOIN_TOKEN || true
	while [ $# -gt 0 ]; do
		case $1 in
		--user) prefix=$HOME/.local config=${config:-${XDG_CONFIG_HOME:-$HOME/.config}/iop/node.yaml} ;;
		--prefix | --config | --edge)
			[ $# -ge 2 ] || fail "$1 needs a value"
			case $1 in
			--prefix) prefix=$2 ;;
			--config) config=$2 ;;
			--edge) base=${2%/} ;;
			esac
			shift
			;;
		--no-service) service=no ;;
		--help | -h)
			usage
			exit 0
			;;
		*) fail "unknown argument $1: see --help" ;;
		esac
		shift
	done
	if [ -z "$prefix" ] && [ "$(id -u)" = 0 ]; then
		prefix=/usr/local config=${config:-/etc/iop/node.yaml}
	elif [ -z "$prefix" ]; then
		prefix=$HOME/.local config=${config:-${XDG_CONFIG_HOME:-$HOME/.config}/iop/node.yaml}
	fi
	config=${config:-$prefix/etc/iop/node.yaml}

	build=$(platform)
	want=$(printf '%s\n' "$sums" | while read -r sum name; do
		[ "$name" != "$build" ] || printf '%s' "$sum"
	done)
	[ -n "$want" ] || fail "the edge has no build $build: the operator makes it with 'make artifacts'"

	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM
	say "downloading $base/bootstrap/$build"
	fetch "$base/bootstrap/$build" "$work/noded" || fail "the download failed: can this machine reach $base?"
	have=$(checksum "$work/noded")
	[ "$have" = "$want" ] || fail "the build has SHA-256 $have, not $want as the edge promised: nothing was installed"
	say "its SHA-256 is right: $want"

	mkdir -p "$prefix/bin"
	chmod 755 "$work/noded"
	"$work/noded" --version >/dev/null 2>&1 || fail "the build does not run on this machine"
	# Renamed in its place, so that a noded that runs is not disturbed.
	cp "$work/noded" "$prefix/bin/.noded.new"
	mv -f "$prefix/bin/.noded.new" "$prefix/bin/noded"
	noded=$prefix/bin/noded
	say "installed $("$noded" --version) as $noded"

	if [ -z "$token" ]; then
		say "not joined, as IOP_JOIN_TOKEN is not set. Later: IOP_JOIN_TOKEN=... $noded join --edge $base --config $config $plaintext"
		exit 0
	fi
	IOP_JOIN_TOKEN=$token "$noded" join --edge "$base" --config "$config" $plaintext || fail "it did not join; noded stays installed as $noded"

	if [ "$service" = yes ]; then
		install_service
	else
		say "no service was installed. noded runs with: $noded --config $config"
	fi
	case ":$PATH:" in
	*":$prefix/bin:"*) ;;
	*) say "note that $prefix/bin is not in PATH" ;;
	esac
	say "done"
}

main "$@"
