#!/bin/sh
# packages.sh - installs Debian's Slurm for tests/e2e/slurm*.sh, as root. None of its services is started, now or at the next boot:
# the tests start their own.
set -eu
packages='slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins'
missing=
for package in $packages; do
	dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
[ "$(id -u)" = 0 ] || { echo "burst: to install$missing, run this as root" >&2; exit 1; }
echo "    installing:$missing"
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	trap 'rm -f $policy' EXIT
	printf '#!/bin/sh\nexit 101\n' >$policy
	chmod 755 $policy
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # words
apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $missing >/dev/null
! command -v systemctl >/dev/null || systemctl -q disable munge slurmctld slurmd 2>/dev/null || :
