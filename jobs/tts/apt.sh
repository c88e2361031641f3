# apt.sh - installs Debian packages in a container. burst writes before it: $what (the name in messages), $packages, have() (whether
# the program exists) and states() (the states of its packages).
# shellcheck shell=sh disable=SC2154
#
# Packages are kept as files, one folder per release and architecture, so that the next container installs them without the network.
# The script leaves them in $BURST_KEEP; later they are in $BURST_KEPT, verified by the agent. Kept packages are those that another
# image lacked, so this image may need more. Another install may be running (the image's own start, or burst's install of curl), and
# apt does not wait for all of its locks. An interrupted install must be repaired first: it leaves unpacked packages that do not work.
have && ! states | grep -qE '^(half-|unpacked)' && exit 0
command -v apt-get >/dev/null 2>&1 || { echo "$what is missing and there is no apt-get" >&2; exit 1; }
[ "$(id -u)" = 0 ] || { echo "$what is missing and only root can install it" >&2; exit 1; }
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
release=$(. /etc/os-release; echo "$ID-$VERSION_ID")-$(dpkg --print-architecture)
debs=$BURST_KEPT/$release
log=$(mktemp) && archives=$(mktemp -d) || exit 1
trap 'rm -rf "$log" "$archives"' EXIT
apt() {
	timeout 300 apt-get -q -y -o Acquire::Retries=2 -o APT::Keep-Downloaded-Packages=true \
		-o Dir::Cache::archives="$archives" -o APT::Sandbox::User=root \
		-o DPkg::Lock::Timeout=120 --no-install-recommends "$@"
}
get() {
	timeout 120 dpkg --configure -a
	if [ -n "$BURST_KEPT" ] && [ -d "$debs" ]; then dpkg -i "$debs"/*.deb && have && return; fi
	timeout 120 apt-get -q -o Acquire::Retries=2 update &&
	mkdir -p "$archives/partial" &&
	{ apt install $packages || { apt -f install && apt install $packages; }; }
}
end=$(($(date +%s) + 120))
until get >"$log" 2>&1; do
	grep -qE 'Could not get lock|Unable to lock|locked by another' "$log" &&
		[ "$(date +%s)" -lt "$end" ] || { tail -n 5 "$log" >&2; exit 1; }
	sleep 2
done
have || { echo "$what was installed and is still not found" >&2; exit 1; }
set -- "$archives"/*.deb
if [ -n "$BURST_KEEP" ] && [ -e "$1" ]; then
	mkdir -p "$BURST_KEEP/$release" && cp "$@" "$BURST_KEEP/$release/"
fi
rm -rf "$archives"
exit 0
