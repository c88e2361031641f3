#!/bin/bash
# volumes.sh - `burst volume`: listed, removed, cleaned up, warmed.
. "$(dirname "$0")/lib.sh"

t_volumes() {
	config
	burst volume create w
	is "$STATUS" 0 "create ($(tail -n 1 err.txt))"
	burst volume ls
	has out.txt w
	burst volume rm w
	is "$STATUS" 2 "rm without -y"
	burst volume rm w -y
	is "$STATUS" 0 "rm -y ($(tail -n 1 err.txt))"
	burst volume rm w -y
	is "$STATUS" 2 "rm again"
	has err.txt "w: no such volume"
}

t_volume_in_use_is_not_removed() {
	living_run
	STATUS=0
	"$BURST" volume rm v -y >rm.txt 2>&1 </dev/null || STATUS=$?
	is "$STATUS" 2 "rm of a volume in use"
	has rm.txt "volume v: a pod uses it now (see \`burst ps\`)"
	[ -d "state/volumes/v/runs/$RUN" ] || complain "its files are gone"
	# the vendor refuses too, whatever our ledger says (the run is dead by then: it would end at the loss of its ledger)
	kill -9 "$PID"
	burst_wait
	mv state/ledger.db their-ledger && rm -f state/ledger.db-wal state/ledger.db-shm
	STATUS=0
	"$BURST" volume rm v -y >rm.txt 2>&1 </dev/null || STATUS=$?
	[ "$STATUS" != 0 ] || complain "a volume in use was removed"
	has rm.txt "in use by pod"
	[ -d "state/volumes/v/runs/$RUN" ] || complain "its files are gone"
	for pod in $(pods_left); do "$BURST" reap "$pod" --force >>reap.txt 2>&1; done
}

gc_stays() { # gc_stays WHY FLAGS...: the run's folder is still there
	local why=$1
	shift
	"$BURST" volume gc "$@" >gc.txt 2>gc-err.txt </dev/null || complain "gc: $(cat gc-err.txt)"
	has gc.txt "runs/$RUN stays: $why"
	[ -d "state/volumes/v/runs/$RUN" ] || complain "it went although: $why"
}

t_volume_gc() {
	script_lines 3
	config
	burst run
	is "$STATUS" 0 "run ($(tail -n 1 err.txt))"
	RUN=$("$BURST" ledger --json | jq -r '.[0].run')
	local dir=state/volumes/v/runs/$RUN
	[ -d "$dir" ] || complain "no folder $dir"
	burst volume gc
	is "$STATUS" 0 "gc ($(tail -n 1 err.txt))"
	is "$(cat out.txt)" "v: 0 folders, 0 kB freed" "gc of a young run"
	has "state/runs/$RUN/lock" "volume gc, process " # no client's: nothing for \`cancel\` to stop
	burst volume gc v --older-than 0s -n
	has out.txt "v: runs/$RUN would be removed ("
	has out.txt "all outputs fetched"
	[ -d "$dir" ] || complain "a dry run removed it"
	burst volume gc v --older-than 0s
	is "$STATUS" 0 "gc ($(tail -n 1 err.txt))"
	has out.txt "v: runs/$RUN removed ("
	[ ! -e "$dir" ] || complain "$dir is still there"
	[ -d state/volumes/v/agent ] || complain "the agent is gone too"
	is "$(wavs)" 3 "files at home"
	burst run
	is "$STATUS" 0 "a run afterwards"
	burst volume rm v -n
	is "$STATUS" 2 "a flag of gc with rm"
	burst volume gc nonsense
	is "$STATUS" 2 "gc of no volume"
}

t_volume_gc_keeps_what_is_needed() {
	living_run
	gc_stays "the run is active" --older-than 0s --force -y
	kill_it
	gc_stays "its pods may still be active" --older-than 0s
	burst cancel "$RUN"
	gc_stays "" --older-than 0s
	grep -q "of 800 outputs are not fetched (.burst fetch $RUN" gc.txt || complain "$(cat gc.txt)"
	mkdir -p state/volumes/v/runs/strange state/volumes/v/code/.half outside
	ln -s "$T/outside" state/volumes/v/runs/link
	burst volume gc --older-than 0s --force
	is "$STATUS" 2 "--force without -y"
	burst volume gc --older-than 0s --force -y
	is "$STATUS" 0 "--force -y ($(tail -n 1 err.txt))"
	has out.txt "outputs never fetched"
	[ ! -e "state/volumes/v/runs/$RUN" ] || complain "it is still there"
	[ -d state/volumes/v/runs/strange ] && [ -d outside ] || complain "a stranger's run of today went"
	[ -d state/volumes/v/code/.half ] || complain "a build of today went"
}

t_volume_warm() { # the setup is run once, by the pod that fills the volume; the run finds all that it needs
	JOB='setup = "head -c 1000 /dev/zero >\"$BURST_ENV/weights\"";' \
		config 'code = { path = "."; };'
	printf '%s\n' home state '*.txt' >.burstignore
	script_lines 4
	burst volume warm v
	is "$STATUS" 2 "exit status: there is no such volume"
	has err.txt "v: no such volume"
	burst volume create v
	burst volume warm v --older-than 3d
	has err.txt '--older-than is a flag of `burst volume gc`'
	mkdir elsewhere
	(cd elsewhere && "$BURST" volume warm v --config .. >../out.txt 2>../err.txt) || complain "warm: $(tail -n 2 err.txt | tr '\n' '|')"
	has out.txt 'volume v of local: ready for job "e2e", for $'
	has err.txt "volume v of local: filled from a pod without a GPU for \$0.6900 an hour; at most \$0.1150 in all"
	is "$(ls state/volumes/v/env/*/weights | wc -l)" 1 "environments" # each setup leaves one
	[ ! -e out ] || complain "it made an output folder"
	"$BURST" ledger --json | jq -r '.[0] | "\(.status) \(.billed_seconds > 0)"' >ledger.txt
	has ledger.txt "done true"
	rm -r elsewhere ledger.txt
	burst run --json
	is "$STATUS $(json .status) $(wavs)" "0 done 4" "the run that follows"
	burst run --json --force
	is "$(ls state/volumes/v/kit | wc -l) $(ls state/volumes/v/env | wc -l)" "1 1" "worker files, environments"
	! ls state/volumes/v/code/*/out >ls.txt 2>&1 || complain "the outputs travelled with the code: $(cat ls.txt | tr '\n' ' ')"
}

t_volume_warm_that_fails() { # with the setup's own words; nothing half made is left, and nothing to resume
	JOB='setup = "echo half >\"$BURST_ENV/x\"; echo CUDA is not available >&2; exit 3";' config
	script_lines 2
	burst volume create v
	burst volume warm v
	is "$STATUS" 1 "exit status"
	has err.txt "setup failed: CUDA is not available"
	is "$(ls -A state/volumes/v/env 2>/dev/null | wc -l)" 0 "environments"
	burst resume
	is "$STATUS" 2 "exit status of resume"
	has err.txt 'filled a volume and has no files: `burst volume warm` fills it again'
	sed -i '/job = /d' burst.cfg
	burst volume warm v
	is "$STATUS" 2 "exit status without a job"
	has err.txt "no job for volume v: give its burst.cfg"
}

run_tests "$@"
