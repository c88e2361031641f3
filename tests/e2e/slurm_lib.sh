# slurm_lib.sh - tests on a real Slurm cluster of this machine (tests/cloud/slurm/bed.sh), one for all tests of a script.
# shellcheck shell=bash disable=SC2034,SC2154
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
CLUSTER=$WORK/cluster
CLUSTER_FAILED=
L40S_PRICE='price_per_gpu_hour = ["L40S=0.80"];'

cluster_down() {
	[ ! -e "$CLUSTER/slurm.conf" ] || bash "$ROOT/tests/cloud/slurm/bed.sh" down "$CLUSTER"
}
cluster_up() {
	local status=0
	export PATH=$PATH:/usr/sbin
	command -v slurmctld slurmd munged sbatch >/dev/null || { CLUSTER_FAILED="no Slurm (make slurm-packages)"; return; }
	chmod 711 "$WORK"
	[ "$(id -u)" != 0 ] || others_enter "$WORK" || { CLUSTER_FAILED="no other user can enter the test's folder here"; return; }
	bash "$ROOT/tests/cloud/slurm/bed.sh" up "$CLUSTER" >"$WORK/bed.txt" 2>&1 || status=$?
	case $status in
	0) export SLURM_CONF=$CLUSTER/slurm.conf ;;
	3) CLUSTER_FAILED="no ${ACCOUNTS:+slurmdbd and MariaDB (make slurm-packages)}${TRACKER:+control groups for Slurm} here" ;;
	*) CLUSTER_FAILED="the cluster did not start: $(tail -n 3 "$WORK/bed.txt" | tr '\n' '|')" ;;
	esac
}
if [ -z "${LIST:-}" ]; then
	trap 'cluster_down; cleanup_all' EXIT
	cluster_up
fi

# has_cluster: first line of each test; it is skipped where there is none
has_cluster() {
	SLURM=
	unset PRICE
	case $CLUSTER_FAILED in
	'') return ;;
	no*) skip "$CLUSTER_FAILED" ;;
	*) complain "$CLUSTER_FAILED" ;;
	esac
	return 1
}
# on_cluster [KEY=VALUE;]...: burst.cfg for the cluster; SLURM="..." are keys of the provider, also those of the user's own file;
# PRICE='' leaves the price out
on_cluster() {
	config "$@"
	mkdir -p "$XDG_CONFIG_HOME/burst"
	echo "providers = { slurm = { volume_dir = \"$T/shared\"; ${PRICE-$L40S_PRICE} $SLURM }; };" \
		>"$XDG_CONFIG_HOME/burst/burst.cfg"
	sed -i -e 's/^provider = .*/provider = "slurm"; gpu = ["L40S"];/' -e '/^providers = /{s/providers = { local = {.*}; };//}' burst.cfg
}
slow_on_cluster() { # slow_on_cluster N [CONFIG...]: N segments of half a second each, on one pod unless CONFIG says otherwise
	script_lines "$1"
	shift
	slow_worker SLOW=0.5 MAX_BATCH=1
	case "$*" in *pods*) ;; *) set -- 'pods = 1;' "$@" ;; esac
	on_cluster 'code = { path = "code"; };' "$@"
}
queue() { # queue FORMAT: of the pods' jobs that have not ended
	squeue -h -o "%j $1" | sed -n 's/^burst-[0-9a-f]* //p'
}
is_state() { # is_state STATE N: so many pods are in this state
	[ "$(queue %T | grep -c "^$1")" -ge "$2" ]
}
pod_names() {
	squeue -h -t all -o %j | grep '^burst-'
}
cluster_leaves() { # what pods have left: jobs, files, processes
	local name
	queue '%i %T %r'
	for name in $(pod_names); do
		[ ! -e "/tmp/$name" ] || echo "/tmp/$name"
		grep -lsaF "BURST_HOME=/tmp/$name" /proc/[0-9]*/environ
	done
	find "$T/shared/pods" -name env 2>/dev/null # keys; a log may stay
}
cluster_is_empty() { [ -z "$(cluster_leaves)" ]; }
eval "$(declare -f nothing_left | sed '1s/nothing_left/nothing_left_here/')"
nothing_left() {
	[ -n "$CLUSTER_FAILED" ] || wait_for 15 "the cluster to be empty" cluster_is_empty || WHY="$WHY: $(cluster_leaves | head -n 5 | tr '\n' ' ')"
	nothing_left_here
}
# login_node: an sshd of this test as the login node "login", which only ssh in $PATH knows
login_node() {
	local port
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	mkdir -p login bin /run/sshd
	chmod 700 login
	ssh-keygen -q -t ed25519 -N '' -f login/host
	ssh-keygen -q -t ed25519 -N '' -f login/id
	cp login/id.pub login/authorized
	cat >login/sshd <<-C
		ListenAddress 127.0.0.1
		Port $port
		HostKey $T/login/host
		PidFile $T/login/pid
		AuthorizedKeysFile $T/login/authorized
		StrictModes no
		UsePAM no
		PasswordAuthentication no
		KbdInteractiveAuthentication no
		PermitRootLogin yes
		SetEnv SLURM_CONF=$SLURM_CONF
	C
	cat >login/ssh <<-C
		Host login
		HostName 127.0.0.1
		Port $port
		User $(id -un)
		IdentityFile $T/login/id
		IdentitiesOnly yes
		UserKnownHostsFile $T/login/known
		StrictHostKeyChecking yes
	C
	echo "[127.0.0.1]:$port $(cut -d' ' -f1,2 login/host.pub)" >login/known
	printf '#!/bin/sh\nexec /usr/bin/ssh -F %s/login/ssh "$@"\n' "$T" >bin/ssh
	chmod 755 bin/ssh
	export PATH=$T/bin:$PATH
	/usr/sbin/sshd -f "$T/login/sshd" -E "$T/login/log"
	wait_for 10 "the login node's sshd" [ -s login/pid ]
}
login_node_ends() {
	local pid
	pid=$(cat login/pid)
	kill "$pid"
	wait_for 10 "the login node to end" login_node_ended "$pid"
	PATH=${PATH#"$T/bin:"}
}
login_node_ended() { ! running_as "$1"; }
# instead_of COMMAND BODY: what $PATH has under this name while the test runs; "real" in the body is the true one
instead_of() {
	mkdir -p bin
	printf '#!/bin/bash\nreal=%s\n%s\n' "$(command -v "$1")" "$2" >"bin/$1"
	chmod 755 "bin/$1"
	case $PATH in "$T/bin:"*) ;; *) PATH=$T/bin:$PATH ;; esac
}
