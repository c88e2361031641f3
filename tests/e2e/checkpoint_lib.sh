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
saved_step() { # the step that the newest snapshot holds, here or on a volume
	local file
	file=$(find "$T" -path '*/checkpoint/command-0.*' -type f -not -name '*.part' -printf '%T@ %p\n' 2>/dev/null | sort -n | tail -n 1 | cut -d' ' -f2-)
	[ -n "$file" ] && tar -xOf "$file" step 2>/dev/null
}
saved_up_to() { [ "$(saved_step)" -ge "$1" ] 2>/dev/null; }
computed() { # times that a step was computed, in all
	grep -hoE '\| computed [0-9]+' out*.txt err*.txt | wc -l
}
moment() { # a part of a step, by a seed that a failure names
	read -rt "0.$((RANDOM % 7))$((RANDOM % 10))" <> <(:) || :
}
reclaimed() { # reclaimed STEP... -- COMMAND...: after each step that is saved, at some moment of the next one
	local steps=()
	SEED=${SEED:-$RANDOM}
	RANDOM=$SEED
	BLOWS=0
	while [ "$1" != -- ]; do
		steps+=("$1")
		shift
	done
	shift
	for step in "${steps[@]}"; do
		wait_for 60 "step $step to be saved (seed $SEED)" saved_up_to "$step" || return
		moment
		"$@" || return
		BLOWS=$((BLOWS + 1))
	done
}
all_steps_once() { # but those that were cut off; the last one wrote all files
	local i times
	is "$STATUS" 0 "exit status (seed $SEED) ($(tail -n 2 err.txt | tr '\n' '|'))"
	for i in $(seq 10); do
		is "$(cat "out/out/$i" 2>/dev/null)" "result $i" "file $i"
		grep -hqE "\| computed $i\$" out*.txt err*.txt || complain "step $i was never computed"
	done
	times=$(computed)
	[ "$times" -le $((10 + BLOWS)) ] || complain "$times steps computed for 10, with $BLOWS cut off (seed $SEED)"
	[ "$(find out/out -type f | wc -l)" = 10 ] || complain "other files: $(ls out/out)"
	[ -z "$(find state/runs -path '*checkpoint/*' -type f)" ] || complain "a snapshot is left on this machine"
}
