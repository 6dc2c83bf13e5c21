#!/bin/sh
# packages.sh ROOT WORK OUT VERSION: makes the deb and rpm packages of what release.sh has in WORK. It is called by it.
#
# They are four, since machines differ: an edge needs no noded, a node must not open a port, who operates needs iopctl
# alone, and the builds of noded that an edge serves to new machines are larger than all else together.
set -eu
root=$1
work=$2
out=$3
version=$4
epoch=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -u -r "$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
day=$(date -u -d "@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %H:%M:%S +0000' 2>/dev/null || date -u -r "$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %H:%M:%S +0000')
src=$root/configs/packages
stage=$work/packages

# stage/PACKAGE is what its file in configs/packages names; everything is made from what others use as well.
mkdir -p "$stage/common"
unit() { # unit SOURCE NAME USER: a unit of configs/services for a program in /usr/bin and a user of the package's own
	sed -e '/^#   /d' -e "s|^# .* as a systemd service.*|# Of the package; change it with: systemctl edit $2|" -e '/^#.*systemctl reload/d' \
		-e 's|/usr/local/bin/|/usr/bin/|' -e "s|^User=iop\$|User=$3|" "$1" >"$stage/common/$2"
}
unit "$root/configs/services/edged.service" iop-edged.service iop-edge
unit "$root/configs/services/noded.service" iop-noded.service iop-node
# What only the package's unit has: a node file that an administrator wrote is given to the one who has to read it.
awk '/^After=/ { print; print "# noded join writes it.\nConditionPathExists=/etc/iop/node.yaml"; next }
	/^ExecStart=/ { print "# noded join, run by root, leaves files that only root can read.\nExecStartPre=-+/bin/sh -c \"chown iop-node: /etc/iop/node.yaml /etc/iop/node-ca.pem 2>/dev/null\"" }
	{ print }' "$stage/common/iop-noded.service" >"$stage/common/unit" && mv "$stage/common/unit" "$stage/common/iop-noded.service"

script() { # script PACKAGE UNIT USER FILE STATE MADE: the maintainer scripts of a package with a daemon
	for part in deb.postinst deb.prerm deb.postrm rpm.post rpm.preun rpm.postun; do
		sed -e "s|@PACKAGE@|$1|g" -e "s|@UNIT@|$2|g" -e "s|@USER@|$3|g" -e "s|@FILE@|$4|g" -e "s|@STATE@|$5|g" -e "s|@MADE@|$6|g" \
			"$src/$part" >"$stage/common/$1.$part"
	done
}
script iop-edge iop-edged.service iop-edge edge.yaml /var/lib/iop-edged ''
script iop-node iop-noded.service iop-node node.yaml /var/lib/iop-noded '/etc/iop/node.yaml /etc/iop/node-ca.pem'

for page in "$src"/man/*; do gzip -9nc "$page" >"$stage/common/$(basename "$page").gz"; done
gzip -9nc "$root/README.md" >"$stage/common/README.md.gz"
{
	cat "$src/copyright"
	sed 's/^/ /; s/^ $/ ./' "$root/LICENSE" | tail -n +3
} >"$stage/common/copyright"
gzip -9nc "$work/THIRD_PARTY.txt" >"$stage/common/THIRD_PARTY.txt.gz"

for file in "$src"/*.nfpm.yaml; do
	name=$(basename "$file" .nfpm.yaml)
	printf '%s (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md of the project.\n\n -- the iop authors <noreply@iop.invalid>  %s\n' "$name" "$version" "$day" |
		gzip -9nc >"$stage/common/$name.changelog.gz"
	for platform in $PLATFORMS; do
		[ "${platform%/*}" = linux ] || continue
		arch=${platform#*/}
		if [ "$name" = iop-noded-builds ]; then
			[ ! -e "$stage/all" ] || continue
			arch=all
			: >"$stage/all"
		fi
		for kind in deb rpm; do
			release=1
			[ "$kind" = rpm ] || release=
			sed -e "s|@RELEASE@|$release|g" -e "s|@VERSION@|$version|g" -e "s|@ARCH@|$arch|g" -e "s|@EPOCH@|$epoch|g" -e "s|@SRC@|$src|g" -e "s|@BIN@|$work/bin|g" \
				-e "s|@WORK@|$work|g" -e "s|@ROOT@|$root|g" -e "s|@STAGE@|$stage/common|g" "$file" >"$stage/$name.yaml"
			case $kind-$arch in
			rpm-amd64) target=$out/$name-$version-1.x86_64.rpm ;;
			rpm-arm64) target=$out/$name-$version-1.aarch64.rpm ;;
			rpm-all) target=$out/$name-$version-1.noarch.rpm ;;
			*) target=$out/${name}_${version}_$arch.deb ;;
			esac
			"$work/tools/nfpm" package -f "$stage/$name.yaml" -p "$kind" -t "$target" >"$work/nfpm.log" 2>&1 || { cat "$work/nfpm.log" >&2 && exit 1; }
			printf 'release: %s\n' "$(basename "$target")"
		done
	done
done
