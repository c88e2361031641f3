#!/bin/bash
# bed.sh up DIR | down DIR | ctld|dbd|NODENAME DIR stop|start - a private Slurm cluster of this machine, made of Debian's programs, in DIR (absolute,
# with every parent open to all): a node on loopback with free ports and a munge of its own. Root, or an ordinary user. `up` prints
# the line that makes its commands speak to it.
#
# TRACKER=cgroup: processes are tracked by control groups (root and cgroup v1), else linuxproc.
# NODES=2: a second node, named after the first with a 2.
# ACCOUNTS=1: slurmdbd on loopback, MariaDB on a unix socket, and limits are enforced. Accounts: lab (the default), spent (its budget is
# used up), full (no job may be submitted) and alien (this user is no member). QOS: normal, single (one job of a user runs), brief
# (2 minutes at most) and closed (not for this user). Partition members: for account alien. A pod with a GPU is 11 billing units.
# Exit 3: that tracker, or accounting, cannot be had here.
#
# Partitions: main (default), high (takes the nodes of main's jobs), brief (2 minutes at most). A node pretends to have 4 L40S and 64 cores.
set -u
cmd=$1 B=$2
U=$(id -un) H=$(hostname -s)
export PATH=$PATH:/usr/sbin SLURM_CONF=$B/slurm.conf

# ---- processes ----

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
await() { # SECONDS COMMAND...
	local until=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $until ] || { echo "waited in vain: $*" >&2; return 1; }
		sleep 0.05
	done
}
idle() { [ "$(timeout 3 sinfo -h -N -o %T -p main | grep -c '^idle$')" = "${NODES:-1}" ]; }
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

# ---- the cluster's files ----

nodes() { # their names
	local i
	echo "$H"
	for i in $(seq 2 "${NODES:-1}"); do echo "$H$i"; done
}
write_conf() {
	local ctld name port ports weights='' file
	read -r ctld DBD ports <<<"$(free_ports $((2 + ${NODES:-1})))"
	[ -z "${ACCOUNTS:-}" ] || weights='TRESBillingWeights="CPU=1.5,GRES/gpu=10.0"'
	cat >"$SLURM_CONF" <<-C
		ClusterName=burstbed
		SlurmctldHost=$H(127.0.0.1)
		SlurmUser=$U
		SlurmdUser=$U
		SlurmctldPort=$ctld
		AuthType=auth/munge
		CredType=cred/munge
		AuthInfo=socket=$B/munge/sock,cred_expire=5
		StateSaveLocation=$B/state
		SlurmdSpoolDir=$B/spool/%n
		SlurmctldPidFile=$B/run/slurmctld.pid
		SlurmdPidFile=$B/run/slurmd.%n.pid
		SlurmctldLogFile=$B/log/slurmctld.log
		SlurmdLogFile=$B/log/slurmd.%n.log
		ProctrackType=proctrack/${TRACKER:-linuxproc}
		SlurmdParameters=config_overrides
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		SchedulerType=sched/backfill
		SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,batch_sched_delay=0
		PreemptType=preempt/partition_prio
		PreemptMode=REQUEUE
		JobRequeue=1
		KillWait=${KILL_WAIT:-5}
		MinJobAge=${MIN_JOB_AGE:-300}
		SlurmdTimeout=${SLURMD_TIMEOUT:-300}
		ReturnToService=2
		MessageTimeout=10
		MpiDefault=none
		PlugStackConfig=$B/plugstack.conf
		GresTypes=gpu
		PartitionName=DEFAULT Nodes=ALL MaxTime=600 State=UP PriorityTier=1 PreemptMode=OFF $weights
		PartitionName=main Default=YES PreemptMode=REQUEUE
		PartitionName=high PriorityTier=10
		PartitionName=brief MaxTime=2
	C
	if [ -n "${ACCOUNTS:-}" ]; then
		cat >>"$SLURM_CONF" <<-C
			PartitionName=members AllowAccounts=alien
			AccountingStorageType=accounting_storage/slurmdbd
			AccountingStorageHost=127.0.0.1
			AccountingStoragePort=$DBD
			AccountingStoragePass=$B/munge/sock
			AccountingStorageTRES=gres/gpu,gres/gpu:l40s
			AccountingStorageEnforce=associations,limits,qos
		C
	else
		echo 'AccountingStorageType=accounting_storage/none' >>"$SLURM_CONF"
	fi
	for name in $(nodes); do
		port=${ports%% *} ports=${ports#* }
		echo "NodeName=$name NodeAddr=127.0.0.1 Port=$port CPUs=64 RealMemory=64000 Gres=gpu:l40s:4 State=UNKNOWN"
	done >>"$SLURM_CONF"
	: >"$B/plugstack.conf"
	for file in null zero full random; do echo "Name=gpu Type=l40s File=/dev/$file"; done >"$B/gres.conf"
	printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nConstrainDevices=no\n' >"$B/cgroup.conf"
}

# ---- accounting ----

sql() { mariadb --no-defaults -S "$B/run/sql.sock" "$@"; }
accounts_up() {
	# nothing of it outlives the test: no word has to reach the disk
	local options=(--no-defaults "--datadir=$B/db" --innodb-log-file-size=4M --innodb-flush-method=nosync --loose-debug-no-sync)
	[ "$(id -u)" != 0 ] || options+=(--user=root)
	mariadb-install-db "${options[@]}" --auth-root-authentication-method=normal --skip-test-db >"$B/log/sql.log" 2>&1 || return
	mariadbd "${options[@]}" --socket="$B/run/sql.sock" --skip-networking --pid-file="$B/run/sql.pid" >>"$B/log/sql.log" 2>&1 </dev/null &
	await 30 sql -e 'select 1' || return
	sql -u root -e "create database slurm_acct_db; create user slurm@localhost identified by 'slurm';
		grant all on slurm_acct_db.* to slurm@localhost" || return
	(umask 077; cat >"$B/slurmdbd.conf") <<-C
		DbdHost=$H
		DbdAddr=127.0.0.1
		DbdPort=$DBD
		SlurmUser=$U
		AuthType=auth/munge
		AuthInfo=socket=$B/munge/sock
		StorageType=accounting_storage/mysql
		StorageHost=localhost
		StorageUser=slurm
		StoragePass=slurm
		StorageLoc=slurm_acct_db
		LogFile=$B/log/slurmdbd.log
		PidFile=$B/run/slurmdbd.pid
	C
	start_dbd || return
	await 30 sacctmgr -n show cluster || return
	write_accounts
}
# In one process: each start of sacctmgr is a connection.
write_accounts() {
	sacctmgr -i <<-C >"$B/log/sacctmgr.log" 2>&1
		add cluster burstbed
		add qos single MaxJobsPerUser=1
		add qos brief MaxWall=2
		add qos closed
		add account lab,alien,full
		add account spent GrpTRESMins=billing=0
		add user $U account=lab DefaultAccount=lab QOS=normal,single,brief
		add user $U account=spent
		add user $U account=full MaxSubmitJobs=0
	C
}

# ---- up and down ----

start_ctld() {
	slurmctld -f "$SLURM_CONF" "$@"
}
start_dbd() {
	MYSQL_UNIX_PORT=$B/run/sql.sock slurmdbd </dev/null
}
start_node() { # NAME
	slurmd -f "$SLURM_CONF" -N "$1"
}
start_nodes() {
	local name
	for name in $(nodes); do
		start_node "$name" || return
	done
}
can_be_had() {
	[ "${TRACKER:-linuxproc}" = linuxproc ] || { [ "$(id -u)" = 0 ] && [ -w /sys/fs/cgroup/freezer ]; } || return
	[ -z "${ACCOUNTS:-}" ] || command -v slurmdbd mariadbd mariadb-install-db mariadb >/dev/null
}
up() {
	local DBD
	can_be_had || exit 3
	mkdir -p "$B"/{state,spool,log,run,munge}
	chmod 755 "$B" "$B"/{state,spool,log,run,munge}
	secret "$B/munge/key" 128
	write_conf
	munged --key-file="$B/munge/key" --socket="$B/munge/sock" --pid-file="$B/munge/pid" --log-file="$B/munge/log" \
		--seed-file="$B/munge/seed" || return 1
	{ [ -z "${ACCOUNTS:-}" ] || accounts_up; } && start_ctld -c && start_nodes && await 30 idle || {
		tail -qn 5 "$B"/log/*.log >&2
		down
		return 1
	}
	echo "export SLURM_CONF=$SLURM_CONF"
}
down() {
	local until=$((SECONDS + 10)) pid
	timeout 5 scancel -u "$U" 2>/dev/null
	while [ -n "$(timeout 3 squeue -h 2>/dev/null)" ] && [ $SECONDS -lt $until ]; do sleep 0.1; done
	for pid in "$B"/run/slurmd.*.pid; do stop "$pid"; done
	for pid in slurmctld slurmdbd sql; do stop "$B/run/$pid.pid"; done
	stop "$B/munge/pid"
	# slurmd leaves its control groups behind
	find /sys/fs/cgroup/freezer/"slurm_$H" -depth -type d -exec rmdir {} + 2>/dev/null
	return 0
}
case $cmd in
up) up ;;
down) down ;;
*)
	case "$3 $cmd" in
	"stop ctld" | "stop dbd") stop "$B/run/slurm$cmd.pid" ;;
	"stop "*) stop "$B/run/slurmd.$cmd.pid" ;;
	"start ctld" | "start dbd") "start_$cmd" ;;
	"start "*) start_node "$cmd" ;;
	esac
	;;
esac
