#!/bin/bash
# bed.sh up DIR | down DIR | ctld DIR stop|start - a private Slurm cluster of this machine, made of Debian's programs, in DIR (absolute, with every
# parent open to all): one node on loopback with free ports and a munge of its own. Root, or an ordinary user. `up` prints the line
# that makes its commands speak to it. TRACKER=cgroup: processes are tracked by control groups (root and cgroup v1), else linuxproc.
# Exit 3: that tracker cannot be had here. Partitions: main (default), high (takes the nodes of main's jobs), brief (2 minutes at most). The node pretends to have 4 L40S and 64 cores.
set -u
cmd=$1 B=$2
U=$(id -un) H=$(hostname -s)
export PATH=$PATH:/usr/sbin SLURM_CONF=$B/slurm.conf

lives() {
	case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in '' | Z*) return 1 ;; esac
}
# SIGTERM, then SIGKILL after 5 s; a zombie counts as gone: nobody may reap it here
stop() { # PIDFILE
	local pid until=$((SECONDS + 5))
	[ -s "$1" ] || return 0
	pid=$(cat "$1")
	kill "$pid" 2>/dev/null
	while lives "$pid"; do
		[ $SECONDS -lt $until ] || kill -9 "$pid" 2>/dev/null
		sleep 0.05
	done
}
await_idle() {
	local until=$((SECONDS + 30))
	until [ "$(timeout 3 sinfo -h -o %T -p main 2>/dev/null | head -n 1)" = idle ]; do
		[ $SECONDS -lt $until ] || { tail -n 5 "$B"/log/slurm*.log >&2; return 1; }
		sleep 0.1
	done
}
free_ports() { # N
	python3 -c 'if True:
		import socket, sys
		held = [socket.socket() for _ in range(int(sys.argv[1]))]
		for s in held: s.bind(("127.0.0.1", 0))
		print(*[s.getsockname()[1] for s in held])' "$1"
}
secret() { # FILE BYTES
	(umask 077; head -c "$2" /dev/urandom >"$1")
}
write_conf() {
	local ctld slurmd
	read -r ctld slurmd <<<"$(free_ports 2)"
	cat >"$SLURM_CONF" <<-C
		ClusterName=burstbed
		SlurmctldHost=$H(127.0.0.1)
		SlurmUser=$U
		SlurmdUser=$U
		SlurmctldPort=$ctld
		SlurmdPort=$slurmd
		AuthType=auth/munge
		CredType=cred/munge
		AuthInfo=socket=$B/munge/sock,cred_expire=5
		StateSaveLocation=$B/state
		SlurmdSpoolDir=$B/spool/%n
		SlurmctldPidFile=$B/run/slurmctld.pid
		SlurmdPidFile=$B/run/slurmd.pid
		SlurmctldLogFile=$B/log/slurmctld.log
		SlurmdLogFile=$B/log/slurmd.log
		ProctrackType=proctrack/${TRACKER:-linuxproc}
		SlurmdParameters=config_overrides
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		AccountingStorageType=accounting_storage/none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		SchedulerType=sched/backfill
		SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,batch_sched_delay=0
		PreemptType=preempt/partition_prio
		PreemptMode=REQUEUE
		JobRequeue=1
		KillWait=${KILL_WAIT:-5}
		MinJobAge=${MIN_JOB_AGE:-300}
		SlurmdTimeout=300
		ReturnToService=2
		MessageTimeout=10
		MpiDefault=none
		PlugStackConfig=$B/plugstack.conf
		GresTypes=gpu
		NodeName=$H NodeAddr=127.0.0.1 CPUs=64 RealMemory=64000 Gres=gpu:l40s:4 State=UNKNOWN
		PartitionName=main Nodes=ALL Default=YES MaxTime=600 State=UP PriorityTier=1 PreemptMode=REQUEUE
		PartitionName=high Nodes=ALL MaxTime=600 State=UP PriorityTier=10 PreemptMode=OFF
		PartitionName=brief Nodes=ALL MaxTime=2 State=UP PriorityTier=1 PreemptMode=OFF
	C
	: >"$B/plugstack.conf"
	for file in null zero full random; do echo "NodeName=$H Name=gpu Type=l40s File=/dev/$file"; done >"$B/gres.conf"
	printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nConstrainDevices=no\n' >"$B/cgroup.conf"
}
start_ctld() {
	slurmctld -f "$SLURM_CONF" "$@"
}
up() {
	[ "${TRACKER:-linuxproc}" = linuxproc ] || { [ "$(id -u)" = 0 ] && [ -w /sys/fs/cgroup/freezer ]; } || exit 3
	mkdir -p "$B"/{state,spool,log,run,munge}
	chmod 755 "$B" "$B"/{state,spool,log,run,munge}
	secret "$B/munge/key" 128
	write_conf
	munged --key-file="$B/munge/key" --socket="$B/munge/sock" --pid-file="$B/munge/pid" --log-file="$B/munge/log" \
		--seed-file="$B/munge/seed" || return 1
	start_ctld -c && slurmd -f "$SLURM_CONF" && await_idle || { down; return 1; }
	echo "export SLURM_CONF=$SLURM_CONF"
}
down() {
	local until=$((SECONDS + 10))
	timeout 5 scancel -u "$U" 2>/dev/null
	while [ -n "$(timeout 3 squeue -h 2>/dev/null)" ] && [ $SECONDS -lt $until ]; do sleep 0.1; done
	stop "$B/run/slurmd.pid"
	stop "$B/run/slurmctld.pid"
	stop "$B/munge/pid"
	# slurmd leaves its control groups behind
	find /sys/fs/cgroup/freezer/"slurm_$H" -depth -type d -exec rmdir {} + 2>/dev/null
	return 0
}
case $cmd in
up) up ;;
down) down ;;
ctld)
	case $3 in
	stop) stop "$B/run/slurmctld.pid" ;;
	start) start_ctld ;;
	esac
	;;
esac
