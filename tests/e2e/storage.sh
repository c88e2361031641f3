#!/bin/bash
# storage.sh - volumes that can be used without a pod: code goes there before a pod is rented, pods go before all of their
# files are home. The rehearsal's `storage = true` plays a vendor whose pods bill and whose volumes have an API.
. "$(dirname "$0")/lib.sh"

code() { # code KILOBYTES
	mkdir -p code/deep
	head -c $(($1 * 512)) /dev/urandom >code/one
	head -c $(($1 * 512)) /dev/urandom >code/deep/two
}
hashing() { # hashing [KEYS]
	rehearse
	cat >burst.cfg <<-E
		provider = "local_play";
		volume = { name = "v"; size_gb = 1; create = true; };
		job = { name = "t"; type = "command"; run = "cat one deep/two | sha256sum >sum"; outputs = ["sum"]; output = "out"; };
		code = { path = "code"; };
		providers = { local_play = { storage = true; price_per_hour = 0.69; $* }; };
	E
}
right_sum() {
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(cat out/sum)" "$(cat code/one code/deep/two | sha256sum)" "what the pod had"
}
t_code_goes_first() { # what takes longer than a boot: no pod is rented before it is there
	code 12000
	hashing
	burst run -v
	right_sum
	has err.txt "kB on volume v before a pod is rented"
	has err.txt "bytes stored on volume v without a pod"
	has err.txt ": code: on the volume already"
	is "$(ls "$BURST_STATE_DIR"/volumes/v/staged)" "" "what is left staged"
	is "$(find "$BURST_STATE_DIR"/runs -name 'staged-*')" "" "what is left here"
	[ "$(grep -n 'stored on volume' err.txt | cut -d: -f1)" -lt "$(grep -n ': code:' err.txt | cut -d: -f1)" ] || complain "not first"
}
t_little_code_goes_meanwhile() {
	code 200
	hashing 'boot_delay = "2s";'
	burst run -v
	right_sum
	hasnt err.txt "before a pod is rented"
	has err.txt "bytes stored on volume v without a pod"
	has err.txt ": code: on the volume already"
}
t_only_what_differs_goes() {
	code 12000
	hashing
	burst run
	right_sum
	rm -r out
	echo changed >>code/one
	burst run -v
	right_sum
	hasnt err.txt "before a pod is rented" # but for one file of 6 MB
	[ "$(sed -n 's/.*code: \([0-9]*\) bytes put.*/\1/p' err.txt)" -lt 7000000 ] || complain "$(grep 'bytes put' err.txt)"
	rm -r out
	burst run -v
	right_sum
	hasnt err.txt "stored on volume"
}
t_storage_that_fails() { # then the code travels as ever
	code 12000
	hashing
	"$BURST" volume create v --provider local_play >/dev/null 2>&1
	mkdir -p "$BURST_STATE_DIR/volumes/v"
	echo in the way >"$BURST_STATE_DIR/volumes/v/staged"
	burst run -v
	right_sum
	has err.txt "sending it over SSH"
}
t_what_was_staged_is_spoilt() {
	code 12000
	hashing 'boot_delay = "3s";'
	burst_bg run -v
	wait_for 30 "the code to be there" grep -q "bytes stored on volume" err.txt
	printf spoilt | dd of="$(echo "$BURST_STATE_DIR"/volumes/v/staged/*.0)" bs=1 seek=3000000 conv=notrunc status=none
	burst_wait
	right_sum
	has err.txt "bytes" # and then over the line
	hasnt err.txt ": code: on the volume already"
}

# ---- pods go first ----

rendering() { # two pods over a slow line; each makes 24 MB and is done
	rehearse
	through '*.*=delay:75'
	cat >burst.cfg <<-E
		provider = "local_play";
		pods = 2;
		volume = { name = "v"; size_gb = 1; create = true; };
		job = { name = "t"; type = "command"; outputs = ["*.bin"]; output = "out";
		        run = "for i in 1 2 3 4 5 6; do head -c 4000000 /dev/urandom >\$BURST_INDEX-\$i.bin; done"; };
		providers = { local_play = { storage = true; price_per_hour = 0.69; }; };
	E
}
all_there() {
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(find out -name '*.bin' -size 4000000c | wc -l)" 12 "files"
	cat "$BURST_STATE_DIR"/volumes/v/runs/*/*/events.jsonl | jq -r 'select(.ev == "output") | .sha256 + "  out/" + .name' |
		sha256sum -c --quiet >/dev/null 2>&1 || complain "a file is not what was announced"
	is "$(cat "$BURST_STATE_DIR"/volumes/v/runs/*/*/events.jsonl | grep -c '"ev":"segment"')" 2 "commands run, none twice"
}
last_file_ms() { # when the last output's last byte came home
	find out -name '*.bin' -printf '%T@\n' | sort -n | tail -n 1 | awk '{ printf "%.0f", $1 * 1000 }'
}
t_pods_go_before_their_files_are_home() {
	rendering
	burst run --json -v
	all_there
	is "$(grep -c 'are fetched from there after it is released' err.txt)" 2 "pods let go early"
	is "$(ledger "select count(*) from pod where release_ms < $(last_file_ms)")" 2 "pods that did not wait for the last file"
	is "$(ledger 'select sum(volume_safe) from pod')" 2 "what the ledger knows"
}
gone_in_the_ledger() { [ "$(ledger "select count(*) from pod where volume_safe and state in ('gone','releasing')")" = 2 ]; }
t_client_dies_when_they_are_gone() { # nothing is rendered again: the volumes have it
	rendering
	burst_bg run -v
	wait_for 60 "the pods to go" gone_in_the_ledger
	kill -KILL "$PID"
	burst_wait
	is "$STATUS" 137 "the client's end"
	burst resume -v
	all_there
	is "$(ledger 'select count(*) from pod')" 2 "pods in all"
}
t_a_run_after_a_kill_names_resume() { # which pays for nothing twice
	rendering
	burst_bg run -v
	wait_for 60 "the pods to go" gone_in_the_ledger
	kill -KILL "$PID"
	burst_wait
	local id words="volume v may hold segments that it finished: \`burst resume"
	id=$(ledger 'select id from run limit 1')
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	has err.txt "run $id of this job failed, and $words $id\` takes them over; this run "
	rm -r out
	burst run
	hasnt err.txt "$words"
	rm -r out
	sed -i 's/for i/sleep 1; for i/; s/sleep 1/sleep $((BURST_INDEX * 20))/' burst.cfg
	burst_bg run
	wait_for 60 "the first command's files" eval '[ "$(find out -name "0-*.bin" | wc -l)" = 6 ]'
	kill -KILL "$PID"
	burst_wait
	burst_bg run
	wait_for 30 "the next run to begin" grep -q "segments to render" err.txt
	kill -INT "$PID"
	burst_wait
	has err.txt "$words $(ledger 'select id from run order by seq desc limit 1 offset 1')\` takes them over; this run releases its pods and renders them again"
}
t_client_dies_and_its_pods_are_reaped() {
	rendering
	burst_bg run -v
	wait_for 60 "the pods to go" gone_in_the_ledger
	kill -KILL "$PID"
	burst_wait
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 3 err.txt))"
	burst resume "$(ledger 'select id from run limit 1')"
	all_there
	is "$(ledger 'select count(*) from pod')" 2 "pods in all"
}
t_storage_is_away_for_a_while() { # what is on it is asked for again, and not rendered again
	rendering
	sed -i 's/150ms/400ms/' burst.cfg
	burst_bg run -v
	# the pods have it mounted and do not notice
	wait_for 60 "both commands to work" eval '[ "$(ls "$BURST_STATE_DIR"/volumes/v/runs/*/*/events.jsonl | wc -l)" = 2 ]'
	mv "$BURST_STATE_DIR/volumes/v" away
	wait_for 60 "the pods to go" gone_in_the_ledger
	read -rt 2 <> <(:)
	running_as "$PID" || complain "it gave up"
	mv away "$BURST_STATE_DIR/volumes/v"
	burst_wait
	all_there
	is "$(ledger 'select count(*) from pod')" 2 "pods in all"
}
t_storage_comes_back_too_late() { # after ten minutes in vain, of a clock that is quick from then on: what was finished is brought later
	false_clock || return
	rendering
	sed -i 's/150ms/400ms/' burst.cfg
	cat >client <<-E
		#!/bin/sh
		export LD_PRELOAD='$(faketime -f +0 sh -c 'echo "$LD_PRELOAD"')' FAKETIME_TIMESTAMP_FILE='$T/clock.txt' FAKETIME_NO_CACHE=1 NO_FAKE_STAT=1
		exec '$BURST' "\$@"
	E
	chmod 755 client
	echo +0 >clock.txt
	CLIENT=$T/client burst_bg run -v
	wait_for 60 "both commands to work" eval '[ "$(ls "$BURST_STATE_DIR"/volumes/v/runs/*/*/events.jsonl | wc -l)" = 2 ]'
	mv "$BURST_STATE_DIR/volumes/v" away
	wait_for 60 "the pods to go" gone_in_the_ledger
	echo '+0 x20' >clock.txt
	burst_wait
	is "$STATUS" 1 "exit status ($(tail -n 3 err.txt))"
	# to what asks for a file, too, five seconds are a quarter of one: on a busy machine the run may end with that
	grep -qE "finished, but not fetched from the volume|did not start within 5 s" err.txt || complain "not told: $(tail -n 3 err.txt | tr '\n' '|')"
	mv away "$BURST_STATE_DIR/volumes/v"
	burst resume
	all_there
	is "$(ledger 'select count(*) from pod')" 2 "pods in all"
}
t_little_is_waited_for() { # files that are here in a moment: no need to go by way of the volume
	script_lines 12
	REHEARSE='storage = true;' config
	burst run --json -v
	is "$STATUS" 0 "exit status"
	is "$(wavs)" 12 files
	hasnt err.txt "after it is released"
}
run_tests "$@"
