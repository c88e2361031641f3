#!/bin/bash
# minimal_root.sh DIR - a Debian root as small as an image gets (no curl, no certificates, no sshd), in DIR/root, and in
# DIR/mirror the packages that a start script will want (openssh-server, curl, ca-certificates and what they need) with an
# index for apt. Made once; needs root, debootstrap and a Debian mirror. Exits 1 with a line on stderr when it cannot be.
set -eu
dir=$1
suite=${RP_SUITE:-bookworm}
[ ! -e "$dir/root/.complete" ] || exit 0
fail() { echo "minimal_root.sh: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "needs root"
# debootstrap mounts /proc in the root. In mounts of its own, that is gone with this script, however it ends.
if [ -z "${OWN_MOUNTS:-}" ] && unshare -m true 2>/dev/null; then
	OWN_MOUNTS=1 exec unshare -m bash "$0" "$@"
fi
command -v debootstrap >/dev/null || fail "no debootstrap (Debian package debootstrap)"
mkdir -p "$dir"
exec 9>"$dir/lock"
flock 9
[ ! -e "$dir/root/.complete" ] || exit 0
rm -rf "$dir/root" "$dir/mirror"
mkdir -p "$dir/mirror"
timeout 400 debootstrap --variant=minbase "$suite" "$dir/root" "${RP_DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$dir/log" 2>&1 ||
	fail "debootstrap failed: $(tail -n 1 "$dir/log") (see $dir/log)"

# what the minimal root lacks of them, by this machine's own sources
timeout 200 apt-get -qq -o Dir::State::status="$dir/root/var/lib/dpkg/status" -o Dir::Cache::archives="$dir/mirror" \
	-o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Binary::apt-get::APT::Keep-Downloaded-Packages=true --download-only --no-install-recommends -y \
	install openssh-server curl ca-certificates >>"$dir/log" 2>&1 || fail "no packages: $(tail -n 1 "$dir/log") (see $dir/log)"
rm -rf "$dir/mirror/partial" "$dir/mirror/lock"
for deb in "$dir"/mirror/*.deb; do
	dpkg-deb -f "$deb"
	printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$(basename "$deb")" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d' ' -f1)"
done >"$dir/mirror/Packages"
rm -rf "$dir"/root/var/cache/apt/archives/*.deb "$dir"/root/etc/apt/sources.list.d/* "$dir"/root/var/lib/apt/lists/*
: >"$dir/root/.complete"
