#!/bin/bash
# slurm_kill.sh - the client of pods on a Slurm cluster dies of SIGKILL at one of its ledger's writes, its orders to agents, or its
# children (questions to the login node, sbatch, scancel, ways into pods): whoever comes next finishes the work, and `reap` leaves
# nothing. All cases share one cluster; their pods have no GPU, of which it has too few. (slurm_killed.sh does that at states of the queue.)
#
# A spread sample of the points; KILL_POINTS=all: all of them (make soak). ONLY='order_after_12$' one of them again.
# shellcheck disable=SC2317 # called by kill.sh and client.sh
. "$(dirname "$0")/slurm_lib.sh"
. "$ROOT/tests/cloud/common/client.sh"
. "$ROOT/tests/cloud/common/kill.sh"
NO_LAG=1

vendor_config() {
	PRICE='price_per_gpu_hour = ["none=0.80"];' on_cluster "$@"
	sed -i 's/gpu = \["L40S"\];/gpu = ["none"];/' burst.cfg
}
jobs_here() { # jobs_here FORMAT: of this case's pods, which have their folders in its own
	squeue -h -t all -o "%Z $1" | sed -n "s,^$T/shared/pods/[^ ]* ,,p"
}
pods_alive() { jobs_here '%i %T' | grep -E ' (PENDING|CONFIGURING|RUNNING|COMPLETING|SUSPENDED)$'; }
pods_ever() { jobs_here %i | wc -l; }
is_over() { [ -z "$(pods_alive)" ]; }
all_paid_for() { # up to two seconds: Slurm's times are whole ones, and a job ends a moment after its release
	paid_for < <(SLURM_TIME_FORMAT=%s jobs_here '%i.%j %S %e' |
		awk '$2 ~ /^[0-9]+$/ && $3 - $2 > 2 { sub(/burst-/, "", $1); print $1, ($3 - $2 - 2) * 1000 }')
}
no_secrets_in() { ! grep -rqa "PRIVATE KEY" state || complain "a private key is left in $(grep -rla "PRIVATE KEY" state | head -n 1)"; }
delayed_create() { # delayed_create MS: of the first one
	# shellcheck disable=SC2016
	instead_of sbatch "[ -e begun ] || { cd '$T' && : >begun && sleep $(($1 / 1000)).$(($1 % 1000)); }
		exec \"\$real\" \"\$@\""
}
create_has_begun() { [ -e begun ]; }
cloud() { make -s -C "$ROOT" e2e-tools || complain "killer.so cannot be built"; }
cloud_over() {
	local name
	wait_for 15 "its jobs to end" is_over
	for name in $(jobs_here %j); do
		[ ! -e "/tmp/$name" ] || complain "left on the node: /tmp/$name"
		[ -z "$(grep -lsaF "BURST_HOME=/tmp/$name" /proc/[0-9]*/environ)" ] || complain "left on the node: processes of $name"
	done
	is "$(find shared/pods -name env)" "" "keys that are left"
}

t_killed_at_ledger_writes() { has_cluster && SAMPLE=6 killed_at_ledger_writes; }
t_killed_at_orders() { has_cluster && SAMPLE=6 killed_at_requests order; }
t_killed_at_orders_to_agents() { has_cluster && SAMPLE=6 killed_at_orders_to_agents; }
t_killed_while_a_create_is_under_way() { has_cluster && killed_while_a_create_is_under_way; }

run_tests "$@"
