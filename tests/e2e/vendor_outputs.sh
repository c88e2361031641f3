#!/bin/bash
# vendor_outputs.sh - what a command has finished at VENDOR (modal, runpod or vast) is a result, whatever becomes of it or of its pod. Its
# container has the real start.sh as its first process, which alone hears that the vendor takes the pod back.
# shellcheck disable=SC2317 # c_ functions are called by names put together
. "$(dirname "$0")/lib.sh"
# shellcheck source=/dev/null
. "$ROOT/tests/cloud/$VENDOR/client.sh"

# on a pod: whether it is the first one
# shellcheck disable=SC2016 # expanded there
IS_FIRST=${IS_FIRST:-'echo x >>"$BURST_VOLUME/attempts"; [ "$(wc -l <"$BURST_VOLUME/attempts")" = 1 ]'}
# of its last seconds, when it is taken back: only a volume keeps what is finished then
LAST_FILES="closed.wav last.wav ok1.wav ok2.wav term.wav" LAST_STREAMED=$LAST_FILES
[ -z "${NO_VOLUMES:-}" ] || LAST_FILES=last.wav LAST_STREAMED="last.wav ok1.wav ok2.wav"

# makes STREAM [END]: a command that renames two files, closes one and is writing another. The next attempt makes last.wav alone.
makes() {
	mkdir -p code
	cat >code/go.sh <<-E
		mkdir out
		$IS_FIRST || { echo 9 >out/last.wav; exit 0; }
		for i in 1 2; do echo \$i >out/tmp; mv out/tmp out/ok\$i.wav; done
		echo 3 >out/closed.wav
		exec 7>out/open.wav
		echo half >&7
		trap 'echo 4 >out/tmp; mv out/tmp out/term.wav; kill -9 \$\$' TERM
		echo ready
		${2:-while :; do sleep 0.1; done}
	E
	POD='worker_root = true;' vendor_config 'pods = 1; code = { path = "code"; };'
	sed -i "s/^job = .*/job = { name = \"o\"; type = \"command\"; stream = $1; outputs = [\"out\/*.wav\"]; output = \"res\"; run = \"sh go.sh\"; };/" burst.cfg
}
are_here() { # are_here NAMES: under their final names, in the manifest, whole, and no others
	is "$(cd res && find . -type f -not -name manifest.jsonl | sed 's:^./out/::' | sort | tr '\n' ' ')" "$1 " files
	is "$(jq -r .file res/manifest.jsonl | sed 's:^out/::' | sort -u | tr '\n' ' ')" "$1 " "in the manifest"
	jq -r '.sha256 + "  res/" + .file' res/manifest.jsonl | sort -u | sha256sum -c --quiet >/dev/null 2>&1 ||
		complain "a file is not what the manifest says"
}
is_ready() { grep -q '| ready' err.txt; }
at_work() { # at_work STREAM: it has finished what it finishes by itself; its pod in $ID
	makes "$1"
	burst_bg run --json
	wait_for 90 "the command to work" is_ready
	ID=$(pods_alive | cut -d' ' -f1)
}

fails() {
	makes "$1" 'sleep 1; exit 3'
	burst run --json
	is "$STATUS" 1 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(json .error.message)" "the command ended with exit code 3" "what it says"
	are_here "closed.wav ok1.wav ok2.wav open.wav"
}
c_command_fails() { fails false; }
c_streamed_command_fails() { fails true; }

interrupted() {
	at_work "$1"
	kill -INT "$PID"
	burst_wait
	is "$STATUS" 130 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	are_here "closed.wav ok1.wav ok2.wav term.wav"
	is "$(pods_ever)" 1 "pods that ever were"
}
c_interrupted() { interrupted false; }
c_streamed_and_interrupted() { interrupted true; }

# Its command hears of it and finishes what it can; all that is finished reaches the volume before the pod is gone.
reclaimed() { # reclaimed STREAM GRACE-MS FILES
	grace "$2"
	at_work "$1"
	[ "$1" = false ] || wait_for 30 "the renamed files" test -e res/out/ok1.wav -a -e res/out/ok2.wav
	reclaim "$ID"
	burst_wait
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	are_here "$3"
	is "$(pods_ever)" 2 "pods that ever were"
	hasnt err.txt "use fewer pods"
}
c_reclaimed() { reclaimed false 9000 "$LAST_FILES"; }
c_streamed_and_reclaimed() { reclaimed true 9000 "$LAST_STREAMED"; }
c_reclaimed_at_once() { reclaimed false 0 "last.wav"; }
c_streamed_and_reclaimed_at_once() { reclaimed true 0 "last.wav ok1.wav ok2.wav"; }

# Stages follow on other pods beside the same volume, if there is one: one with a GPU that encodes video, one without a GPU where
# there are such pods.
c_stages_follow() {
	local last=none
	[ -z "${NO_CPU_PODS:-}" ] || last="RTX 4090"
	vendor_config 'pods = 1;'
	sed -i 's/^job = .*/@/' burst.cfg
	sed -i '/^@$/{r /dev/stdin
		d}' burst.cfg <<-'E'
		job = { name = "o"; type = "command"; run = "echo speech >said.txt"; outputs = ["said.txt"]; output = "res"; then = (
			{ name = "video"; pod = { needs = ["nvenc"]; }; run = "(cat $BURST_INPUTS/said.txt; echo film) >cut.mp4"; outputs = ["cut.mp4"]; },
			{ name = "upload"; pod = { gpu = ["@LAST@"]; }; from = ["video"]; run = "cat $BURST_INPUTS/cut.mp4 >up.txt"; outputs = ["up.txt"]; } ); };
	E
	[ "$last" != none ] || sed -i 's/ pod = { gpu = \["@LAST@"\]; };//' burst.cfg
	sed -i "s/@LAST@/$last/" burst.cfg
	burst run --json
	is "$STATUS $(json '[.stages[] | .name + " " + .status] | join(", ")')" "0 video done, upload done" "exit status, stages ($(tail -n 3 err.txt | tr '\n' '|'))"
	is "$(tr '\n' ' ' <res/up.txt)" "speech film " "what was uploaded"
	is "$(pods_ever)" 3 "pods that ever were"
	is "$(ledger "select count(distinct volume_id) from pod") $(ledger "select count(*) from pod where state <> 'gone'")" "1 0" "volumes, pods left"
	is "$(ledger "select gpu_offered from pod order by seq desc limit 1")" "$last" "the GPU of the last pod"
	[ "$(ledger "select gpu_offered from pod order by seq limit 1 offset 1")" != none ] || complain "the video had no GPU"
	hasnt err.txt "files missing on the volume"
}

t_of_a_command() {
	cases c_stages_follow c_command_fails c_streamed_command_fails c_interrupted c_streamed_and_interrupted c_reclaimed c_streamed_and_reclaimed \
		c_reclaimed_at_once c_streamed_and_reclaimed_at_once
}
run_tests "$@"
