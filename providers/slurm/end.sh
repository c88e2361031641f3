#!/bin/sh
# end.sh - a pod on a Slurm cluster ends with its batch script. What its processes started in sessions of their own may outlive it
# where Slurm tracks processes by their parents; all of them have BURST_HOME in their environment. Precedes jobs/agent/start.sh.
# shellcheck disable=SC2154

vendor_switch() {
	report_switch 'ok exit'
}

slurm_leave() {
	cd /
	cat "$home/start.log" # to the file that burst reads as this pod's log
	for pid in $(grep -lasF "BURST_HOME=$home" /proc/[0-9]*/environ 2>/dev/null); do
		pid=${pid#/proc/}
		pid=${pid%/environ}
		[ "$pid" = $$ ] || kill -9 "$pid" 2>/dev/null
	done
	rm -rf "$home"
}
trap slurm_leave EXIT
