#!/bin/bash
# slurm.sh - pods as jobs of a real Slurm cluster: whole runs, from the login node and over ssh to it.
. "$(dirname "$0")/slurm_lib.sh"

t_the_suite_for_providers() {
	has_cluster || return
	[ -n "${CHECKING:-}" ] || make -s -C "$ROOT" "$ROOT/build/e2e/conform" || complain "the suite cannot be built"
	on_cluster
	BURST=$BURST "$ROOT/build/e2e/conform" slurm >out.txt 2>err.txt || complain "$(grep -v '^\[' err.txt | head -n 3 | tr '\n' '|')"
	for name in $(pod_names); do rm -rf "/tmp/$name"; done # its pods run another script, which removes nothing
}
t_a_run_on_two_pods() {
	has_cluster || return
	slow_on_cluster 16 'pods = 2;'
	burst run --goal time
	is $STATUS 0 "exit status: $(tail -n 3 err.txt)"
	all_right 16
	is "$(ledger 'select count(*) from pod')" 2 pods
	is "$(ledger 'select count(distinct gpu) || gpu from pod')" 1L40S "GPU of the pods"
}

run_tests "$@"
