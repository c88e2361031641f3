#!/bin/bash
# checkpoint.sh - commands that continue from $BURST_CHECKPOINT: on local pods that are taken away, with a volume and without.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/checkpoint_lib.sh"

checkpoint_config() { # [CONFIG...]
	rehearse
	cat >burst.cfg <<-E
		provider = "local_play"; pods = 1; spot = true;
		code = { path = "code"; };
		caps = { max_cost = 1.00; max_duration = "10m"; };
		providers = { local_play = { price_per_hour = 0.69; spot_price_per_hour = 0.20; ${LOCAL:-} }; };
		job = { name = "t"; output = "out"; $STEPS ${JOB:-} };
		$*
	E
}
VOLUME='volume = { name = "v"; size_gb = 1; create = true; };'
first_processes() { # of the pods that live
	"$BURST" local-cloud list "$BURST_STATE_DIR" <<<'{}' | jq -r '.pods[] | select(.state != "gone") | .init.pid'
}
pod_dies() { # at once, with all that runs in it
	# shellcheck disable=SC2046
	kill -9 $(first_processes)
}

# ---- pods that are taken away ----

steps_on_dying_pods() {
	LIMIT=200 burst_bg run -v
	reclaimed 2 5 8 -- pod_dies
	burst_wait
	all_steps_once
	is "$(ledger 'select count(*) from pod')" 4 pods
	local wasted compute
	wasted=$("$BURST" ledger --json | jq '.[0].wasted_seconds')
	compute=$("$BURST" ledger --json | jq '.[0].compute_seconds')
	jq -en "$wasted > 0 and $wasted < $compute / 2" >/dev/null || complain "wasted $wasted s of $compute s"
}
t_without_a_volume() { # by way of this machine
	ten_steps
	checkpoint_config
	steps_on_dying_pods
	has err.txt "continues from its checkpoint"
}
t_on_a_volume() {
	ten_steps
	checkpoint_config "$VOLUME"
	steps_on_dying_pods
	[ -z "$(find state/runs -name checkpoint)" ] || complain "it came to this machine"
}

t_outputs_apart_without_a_volume() { # what was finished before a save is here before the save is used
	outputs_apart
	checkpoint_config
	steps_on_dying_pods
}
t_outputs_apart_on_a_volume() {
	outputs_apart
	checkpoint_config "$VOLUME"
	steps_on_dying_pods
}

# ---- clients and agents that end ----

client_is_killed_and_resumed() { # client_is_killed_and_resumed STEPS: and the pod is gone meanwhile; with a volume and without
	local how
	for how in "" "$VOLUME"; do
		rm -rf out state err*.txt out*.txt
		"$1"
		checkpoint_config "$how"
		burst_bg run -v
		reclaimed 3 -- kill_it
		pod_dies
		mv err.txt err1.txt
		mv out.txt out1.txt
		LIMIT=120 burst resume -v
		all_steps_once
		has err.txt "continues from its checkpoint"
	done
}
t_client_is_killed_and_resumed() { client_is_killed_and_resumed ten_steps; }
t_outputs_apart_and_the_client_is_killed() { client_is_killed_and_resumed outputs_apart; }
agent_is_killed() { # another one runs on the same pod
	checkpoint_config
	burst_bg run -v
	reclaimed 2 5 -- kill_in_pods KILL "burst-agent.* serve"
	burst_wait
	all_steps_once
	is "$(ledger 'select count(*) from pod')" 1 pods
}
t_agent_is_killed() { # it begins from the last save
	ten_steps
	agent_is_killed
}
t_outputs_apart_and_the_agent_is_killed() {
	outputs_apart
	agent_is_killed
}
computed_up_to() { grep -qE "\| computed $1\$" err.txt out.txt; }
seldom() { STEPS=${STEPS/checkpoint = \"1s\"/checkpoint = \"1h\"}; } # saves only when something ends
interrupted() { kill -INT "$PID"; }
t_interrupted_and_resumed() { # with a volume and without: what it had done when the signal came
	local how
	for how in "" "$VOLUME"; do
		rm -rf out state err*.txt out*.txt
		ten_steps 1
		seldom
		checkpoint_config "$how"
		burst_bg run -v
		wait_for 30 "step 3" computed_up_to 3
		interrupted
		burst_wait
		is "$STATUS" 130 "exit status"
		mv err.txt err1.txt
		mv out.txt out1.txt
		LIMIT=120 burst resume -v
		local SEED=none
		SAVED=(2)
		all_steps_once
		has err.txt "continues from its checkpoint"
	done
}
told_and_dead() { # the vendor asks the pod to end, and waits until it has saved
	# shellcheck disable=SC2046
	kill -TERM $(first_processes)
	wait_for 20 "a save" saved_up_to "$1"
	pod_dies
}
t_asked_to_end() { # SIGTERM from the vendor: what it had done then is saved, also of a command that does not listen
	local how listens
	for how in "" "$VOLUME"; do
		for listens in "" "trap '' TERM; "; do
			rm -rf out state err*.txt out*.txt
			ten_steps 1
			seldom
			[ -z "$listens" ] || sed -i "1i\\$listens" code/steps.sh
			checkpoint_config "$how"
			LIMIT=120 burst_bg run -v
			wait_for 30 "step 3" computed_up_to 3
			told_and_dead 3
			burst_wait
			local SEED=none
			SAVED=(3)
			all_steps_once
			has err.txt "continues from its checkpoint"
		done
	done
}
t_a_command_that_fails_is_resumed() { # from what it had saved when it failed, not from its last interval
	ten_steps 0.1
	seldom
	sed -i 's/^at=.*/&; [ "$at" -gt 0 ] || stop=6/; s/.*step.tmp.*/&; [ "$at" != "$stop" ] || exit 3/' code/steps.sh
	checkpoint_config
	burst run -v
	is "$STATUS" 1 "the first time"
	mv err.txt err1.txt
	mv out.txt out1.txt
	burst resume -v
	local SEED=none
	SAVED=()
	all_steps_once
	is "$(computed)" 10 "steps computed"
}
t_a_new_run_begins_anew() { # a checkpoint belongs to its run
	ten_steps 0
	checkpoint_config
	sed -i 's/.*step.tmp.*/&; [ "$at" != 4 ] || exit 3/' code/steps.sh
	burst run -v
	is "$STATUS" 1 "the first time"
	sed -i 's/ || exit 3//' code/steps.sh
	burst run -v
	is "$STATUS $(computed)" "0 10" "the second time"
}

is_over() { [ -z "$(pod_processes "sh steps.sh")" ]; }
t_a_save_that_is_not_needed() { # the command succeeds while its save is on its way: nothing waits for it, nothing of it stays
	ten_steps
	STEPS=${STEPS/out\/\*/f}
	cat >code/steps.sh <<-'E'
		head -c 100000000 /dev/urandom >"$BURST_CHECKPOINT/big.tmp" && mv "$BURST_CHECKPOINT/big.tmp" "$BURST_CHECKPOINT/big"
		echo begun
		sleep 3
		echo done >f
	E
	checkpoint_config
	burst_bg run -v
	wait_for 30 "its begin" grep -q '| begun$' err.txt
	kill -STOP "$PID" # it hears of the save and of the success at once
	wait_for 30 "the end of the command" is_over
	kill -CONT "$PID"
	burst_wait
	is "$STATUS $(cat out/f)" "0 done" "exit status, output ($(tail -n 2 err.txt))"
	hasnt err.txt "checkpoint of"
	[ -z "$(find state/runs -path '*checkpoint/*' -type f)" ] || complain "it is left on this machine"
}

t_detached() { # the agent alone saves to the volume; without a volume that is said before anything is rented
	ten_steps 1
	checkpoint_config "$VOLUME"
	burst run -d
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	hasnt err.txt "no volume:"
	kill -9 "$(sed 's/[^0-9]//g' state/runs/*/lock)"
	DETACHED=1 wait_for 60 "step 3 to be saved" saved_up_to 3
	pod_dies
	LIMIT=120 burst resume -v
	is "$STATUS" 0 "resumed ($(tail -n 2 err.txt))"
	has err.txt "continues from its checkpoint"
	is "$(cat out/out/* | sort -u | wc -l)" 10 files
	[ "$(computed)" -le 7 ] || complain "$(computed) steps computed after 3 were saved"
	checkpoint_config
	rm -rf out
	burst run -d
	has err.txt "no volume: this machine must stay awake until the run ends, to fetch the files and checkpoints"
	burst cancel "$("$BURST" ledger --json | jq -r '.[0].run')"
}

saved_parts() { [ "$(find state/runs -path '*/checkpoint/command-*' -name "command-[0-2].*" -not -name '*.part' -type f 2>/dev/null | sed 's/.*command-\([0-2]\).*/\1/' | sort -u | wc -l)" = 3 ]; }
t_saves_that_one_pod_gets() { # two of three detached pods die: their work is dealt to the third, which gets one save after the other
	outputs_apart 1
	sed -i 's,out/$at,out/$BURST_INDEX-$at,' code/steps.sh
	LOCAL='capacity = 3;'
	checkpoint_config
	sed -i 's/pods = 1;/pods = 3;/' burst.cfg
	burst run -d
	wait_for 60 "three saves" saved_parts
	first_processes | head -n 2 | xargs kill -9
	wait_for 90 "the end" ended
	is "$(find out -type f -path '*/out/*' | wc -l)" 30 files
	is "$(grep -c 'continues from its checkpoint' state/runs/*/log*)" 2 "lines in the log"
}
ended() { [ "$("$BURST" ledger --json | jq -r '.[0].status')" != running ]; }

# ---- a transfer that fails ----

resumed_with() { # FAILURES: of the folders from which the save is sent
	cat >client <<-E
		#!/bin/sh
		export FAIL_AT='$1' FAIL_UNDER='$T/$(echo state/runs/*/)checkpoint/.send-' ASAN_OPTIONS='$ASAN_OPTIONS:verify_asan_link_order=0'
		LD_PRELOAD='$ROOT/build/e2e/failer.so' exec '$BURST' "\$@"
	E
	chmod 755 client
	CLIENT=$T/client burst_bg resume -v
}
five_steps_then_alone() { # five steps are saved here; client and pod are gone
	make -s -C "$ROOT" e2e-tools || { complain "failer.so cannot be built"; return 1; }
	ten_steps 1
	checkpoint_config
	burst_bg run -v
	reclaimed 5 -- kill_it
	pod_dies
	mv err.txt err1.txt
	mv out.txt out1.txt
}
t_a_transfer_that_fails_once() { # is tried again
	five_steps_then_alone || return
	resumed_with "once 1 EIO"
	burst_wait
	all_steps_once
	has err.txt "its checkpoint did not reach pod"
	has err.txt "continues from its checkpoint"
}
t_a_transfer_that_fails_for_good() { # the command begins anew; what it saves does not replace the five steps, and the next attempt has them
	five_steps_then_alone || return
	resumed_with "on 1 EIO"
	wait_for 60 "step 3" computed_up_to 3
	kill_it
	pod_dies
	has err.txt "the command begins anew"
	has err.txt "the earlier one is kept until a new one holds as much"
	is "$(tar -xOf state/runs/*/checkpoint/command-0.* step)" 5 "the step that is saved here"
	mv err.txt err2.txt
	mv out.txt out2.txt
	LIMIT=120 burst resume -v
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(grep -hoE '\| computed [0-9]+' err.txt | head -n 1)" "| computed 6" "the first step then"
	is "$(cat out/out/* | sort -u | wc -l)" 10 files
}

# ---- what does not travel ----

t_too_large_for_this_machine() { # one line, and the command goes on
	ten_steps
	STEPS='type = "command"; outputs = ["f"]; checkpoint = "1s"; checkpoint_max_mb = 1; run = "head -c 2000000 /dev/urandom >\"$BURST_CHECKPOINT/big\"; sleep 4; echo 1 >\"$BURST_CHECKPOINT/more\"; sleep 3; echo done >f";'
	checkpoint_config
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(grep -c 'checkpoint' err.txt)" 1 "lines about it ($(grep checkpoint err.txt))"
	has err.txt "at most 1.0 MB (job.checkpoint_max_mb); the command goes on"
	is "$(cat out/f)" "done" "its output"
	STEPS='type = "command"; outputs = ["f"]; checkpoint = "1s"; run = "truncate -s 3T \"$BURST_CHECKPOINT/big\"; sleep 2; echo done >f";'
	checkpoint_config
	rm -rf out
	burst run
	is "$STATUS" 0 "a file of zeros: exit status ($(tail -n 2 err.txt))"
	has err.txt "its checkpoint of 3.3 TB is not kept"
}
t_what_cannot_travel() { # a line each, and the command goes on
	local what
	ten_steps
	for what in 'ln -s /etc/passwd l|l is a link that leaves the folder' 'mkfifo p|p is not a file, folder or link' 'echo 1 >\"$(printf \"a\\nb\")\"|has a name with control characters'; do
		rm -rf out
		STEPS="type = \"command\"; outputs = [\"f\"]; checkpoint = \"1s\"; run = \"(cd \\\"\$BURST_CHECKPOINT\\\"; ${what%|*}); sleep 2.5; echo done >f\";"
		checkpoint_config
		burst run
		is "$STATUS" 0 "$what: exit status ($(tail -n 2 err.txt))"
		is "$(grep -c 'its checkpoint is not kept' err.txt)" 1 "$what: lines ($(grep checkpoint err.txt))"
		has err.txt "${what#*|}"
	done
}
t_plan_says_how_often() { # in words and as JSON: before a save was measured and after, and as job.checkpoint says
	local every
	ten_steps 0.5
	STEPS=${STEPS/checkpoint = \"1s\";/}
	checkpoint_config
	burst plan --json
	schema plan
	jq -e '.checkpoint.every_s == null and (.checkpoint.from | startswith("by what the first save takes"))' out.txt >/dev/null || complain "before a save: $(jq -c .checkpoint out.txt)"
	burst run
	is "$STATUS" 0 "run ($(tail -n 2 err.txt))"
	rm -rf out
	burst plan
	has out.txt 'checkpoint: $BURST_CHECKPOINT is saved every '
	burst plan --json
	schema plan
	jq -e '.checkpoint.every_s >= 10 and (.checkpoint.from | startswith("a save takes "))' out.txt >/dev/null || complain "measured: $(jq -c .checkpoint out.txt)"
	rm -rf state out
	sed -i 's/spot = true/spot = false/' burst.cfg
	burst plan
	has err.txt "no estimate"
	has out.txt 'checkpoint: $BURST_CHECKPOINT is saved as soon as it is written, then by what the first save takes'
	for every in 90s:90 5m:300; do
		JOB="checkpoint = \"${every%:*}\";" checkpoint_config
		burst plan --json
		is "$(jq -c .checkpoint out.txt)" "{\"every_s\":${every#*:},\"from\":\"job.checkpoint\"}" "$every"
	done
	sed -i 's/ type = "command"; run = /run = /; s/run = .*outputs = [^;]*;//; s/output = "out";/output = "out"; engine = "espeak"; voice = "en"; input = "l.csv";/; s/code = [^}]*};//' burst.cfg
	burst plan --json
	is "$(jq -c .checkpoint out.txt)" null "speech"
}
t_bad_settings() {
	local case
	ten_steps
	for case in 'checkpoint = "often";|checkpoint' 'checkpoint = "10ms";|job.checkpoint is out of range: it must be "1s" to "720h"' 'checkpoint = "0";|job.checkpoint is out of range: it must be "1s" to "720h"' 'checkpoint = "9999h";|job.checkpoint is out of range: it must be "1s" to "720h"' 'checkpoint_max_mb = -1;|job.checkpoint_max_mb is out of range: it must be 0 to 1000000'; do
		STEPS="type = \"command\"; run = \"true\"; no_outputs = true; ${case%|*}"
		checkpoint_config
		burst run
		is "$STATUS" 2 "$case"
		has err.txt "${case#*|}"
		is "$(grep -c "burst.cfg:" err.txt)" 1 "lines of $case"
	done
}

run_tests "$@"
