# checkpoint_lib.sh - a command of ten steps that continues from $BURST_CHECKPOINT, and pods that are taken away from it.
# shellcheck shell=bash
# The script that runs on the pod: each step's result is an output and part of the checkpoint.
ten_steps() { # [SECONDS OF A STEP]
	mkdir -p code
	cat >code/steps.sh <<-'E'
		k=$BURST_CHECKPOINT
		mkdir -p out
		cp "$k"/files/* out/ 2>/dev/null
		at=$(cat "$k/step" 2>/dev/null || echo 0)
		while [ "$at" -lt 10 ]; do
			sleep "$1"
			at=$((at + 1))
			echo "computed $at"
			mkdir -p "$k/files"
			echo "result $at" >"$k/files/$at.tmp" && mv "$k/files/$at.tmp" "$k/files/$at"
			cp "$k/files/$at" "out/$at"
			echo "$at" >"$k/step.tmp" && mv "$k/step.tmp" "$k/step"
		done
	E
	STEPS="type = \"command\"; run = \"sh steps.sh ${1:-1.5}\"; outputs = [\"out/*\"]; checkpoint = \"1s\";"
}
outputs_apart() { # the same, but its outputs are not part of the checkpoint
	ten_steps "$@"
	sed -i '/files/d; s/^echo "computed.*/&; echo "result $at" >"out\/$at"/' code/steps.sh
}
# The step of the newest snapshot from which an attempt may continue, here or on a volume: one that the client has noted, or in a run that is
# DETACHED its pod.
saved_step() {
	local file number
	while read -r _ file; do
		number=${file##*.}
		if [ -n "${DETACHED:-}" ]; then
			grep -q "\"ev\":\"checkpoint\".*\"number\":$number," "${file%/checkpoint/*}/events.jsonl"
		else
			ledger "select value from fact where name like 'checkpoint%'" | grep -q "\"number\":$number,"
		fi 2>/dev/null && tar -xOf "$file" step 2>/dev/null && return
	done < <(find "$T" -path '*/checkpoint/command-0.*' -type f -not -name '*.part' -printf '%T@ %p\n' 2>/dev/null | sort -rn)
}
saved_up_to() { [ "$(saved_step)" -ge "$1" ] 2>/dev/null; }
computed() { # [STEP]: times that this step, or any, was computed
	grep -hoE "\\| computed ${1:-[0-9]+}\$" out*.txt err*.txt | wc -l
}
SAVED=()
moment() { # a part of a step, by a seed that a failure names
	read -rt "0.$((RANDOM % 7))$((RANDOM % 10))" <> <(:) || :
}
reclaimed() { # reclaimed STEP... -- COMMAND...: after each step that is saved, at some moment of the next one
	local steps=()
	SEED=${SEED:-$RANDOM}
	RANDOM=$SEED
	SAVED=()
	while [ "$1" != -- ]; do
		steps+=("$1")
		shift
	done
	shift
	for step in "${steps[@]}"; do
		wait_for 60 "step $step to be saved (seed $SEED)" saved_up_to "$step" || return
		moment
		"$@" || return
		SAVED+=("$step")
	done
}
all_steps_once() { # but those that were no part of what was SAVED before a blow; the last one wrote all files
	local i step most
	is "$STATUS" 0 "exit status (seed $SEED) ($(tail -n 2 err.txt | tr '\n' '|'))"
	for i in $(seq 10); do
		is "$(cat "out/out/$i" 2>/dev/null)" "result $i" "file $i"
		most=1
		for step in "${SAVED[@]}"; do most=$((most + (step < i))); done
		[ "$(computed "$i")" -ge 1 ] || complain "step $i was never computed"
		[ "$(computed "$i")" -le "$most" ] || complain "step $i was computed $(computed "$i") times, with ${SAVED[*]} saved (seed $SEED)"
	done
	[ "$(find out/out -type f | wc -l)" = 10 ] || complain "other files: $(ls out/out)"
	[ -z "$(find state/runs -path '*checkpoint/*' -type f)" ] || complain "a snapshot is left on this machine"
}
