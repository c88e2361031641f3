#!/bin/sh
# packages.sh - installs Debian's Slurm for tests/e2e/slurm*.sh, and slurmdbd and MariaDB for slurm_accounts.sh, as root. None of its
# services is started, now or at the next boot: the tests start their own.
set -eu
policy=/usr/sbin/policy-rc.d

lacking() { # PACKAGE...: those that are not installed
	for package; do
		dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || printf ' %s' "$package"
	done
}
# shellcheck disable=SC2086 # words
install() { # PACKAGE...
	missing=$(lacking "$@")
	[ -n "$missing" ] || return 0
	[ "$(id -u)" = 0 ] || { echo "burst: to install$missing, run this as root" >&2; return 1; }
	echo "    installing:$missing"
	if [ ! -e $policy ]; then
		trap 'rm -f $policy' EXIT
		printf '#!/bin/sh\nexit 101\n' >$policy
		chmod 755 $policy
	fi
	DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $missing >/dev/null || return
	! command -v systemctl >/dev/null || systemctl -q disable munge slurmctld slurmd slurmdbd 2>/dev/null || :
}

install slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins
# MariaDB's programs alone: its package mariadb-server would add a service and a user
install slurmdbd slurm-wlm-mysql-plugin mariadb-server-core mariadb-client-core ||
	echo "burst: without accounting the tests of slurm_accounts.sh will be skipped" >&2
