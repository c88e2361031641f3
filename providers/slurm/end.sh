#!/bin/sh
# end.sh - a pod on a Slurm cluster ends with its batch script, whose head (batch.sh) sets pod_clear and pod_folder. Precedes
# jobs/agent/start.sh.
# shellcheck disable=SC2154

vendor_switch() {
	report_switch 'ok exit'
}

slurm_leave() {
	cd /
	cat "$home/start.log" # to the file that burst reads as this pod's log
	# burst may have left: it removes the folder of a pod that it releases, and reads the log of one that ended on its own
	[ ! -e "$home/end" ] || rm -rf "$pod_folder"
	unset BURST_HOME
	sh -c "$pod_clear" clear "$home"
}
trap slurm_leave EXIT
