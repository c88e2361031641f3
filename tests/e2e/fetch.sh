#!/bin/bash
# fetch.sh - `burst fetch` brings what a run left, and rents nothing.
. "$(dirname "$0")/lib.sh"

t_fetch_rents_nothing() {
	living_run
	for pod in $(pods_left); do "$BURST" reap "$pod" --force >>reap.txt 2>&1; done
	kill_it
	burst reap
	local before
	before=$(wavs)
	find out -name 's00*.wav' | head -n 2 >lost.txt
	xargs rm <lost.txt
	burst fetch "$RUN"
	is "$STATUS" 0 "fetch ($(tail -n 2 err.txt))"
	[ "$(wavs)" -ge "$before" ] || complain "$(wavs) files, $before before two were lost"
	while read -r f; do [ -s "$f" ] || complain "$f is not home again"; done <lost.txt
	is "$("$BURST" ledger --json | jq length)" 1 "runs"
	f=$(basename "$(head -n 1 lost.txt)" .wav)
	is "$(jq -r "select(.id==\"$f\").sha256" out/manifest.jsonl | tail -n 1)" "$(sha256sum "out/$f.wav" | cut -d' ' -f1)" hash
}

t_fetch_leaves_what_has_changed() {
	living_run
	for pod in $(pods_left); do "$BURST" reap "$pod" --force >>reap.txt 2>&1; done
	kill_it
	burst reap
	local same other
	same=$(basename "$(find out -name 's*.wav' | sort | sed -n 1p)" .wav)
	other=$(basename "$(find out -name 's*.wav' | sort | sed -n 2p)" .wav)
	rm "out/$same.wav" "out/$other.wav"
	sed -i "/\"$other\"/s/This is/That was/" script.jsonl
	burst fetch "$RUN"
	is "$STATUS" 1 "fetch ($(tail -n 1 err.txt))"
	[ -s "out/$same.wav" ] || complain "$same is not home again"
	[ ! -e "out/$other.wav" ] || complain "the old text's sound came home as $other"
	has err.txt "$other: not fetched: the job's text or settings have changed since the run"
	burst resume "$RUN"
	is "$STATUS" 2 "resume of a changed job ($(tail -n 1 err.txt))"
	has err.txt "1 of the job's segments changed since run $RUN began ($other first)"
	is "$(pods_left)" "" pods
}

t_fetch_refuses_a_hostile_log() { # what a pod wrote down of its files is checked as in a run
	living_run
	for pod in $(pods_left); do "$BURST" reap "$pod" --force >>reap.txt 2>&1; done
	kill_it
	burst reap
	local a b c d log
	# of one pod, so that no other log has them
	log=$(find "$BURST_STATE_DIR/volumes" -name events.jsonl -exec grep -Hc '"ok":true' {} + | sort -t : -k 2 -n | tail -n 1 | cut -d: -f1)
	read -r a b c d < <(jq -r 'select(.ev == "segment" and .ok).id' "$log" | head -n 4 | xargs)
	[ -n "$d" ] || { complain "fewer than four files in one log"; return; }
	for f in "$a" "$b" "$c" "$d"; do rm -f "out/$f.wav"; done
	jq -c --arg a "$a" --arg b "$b" --arg c "$c" 'if .ev != "segment" then . elif .id == $a then .sha256 = "zz" + .sha256[2:]
		elif .id == $b then .bytes = 9000000000000 elif .id == $c then .path = "../../../" + .path else . end' "$log" >log
	jq -c --arg a "$a" 'select(.ev == "segment" and .id == $a)' log >one
	for _ in 1 2 3 4 5 6 7 8 9 10; do cat one one; done >>log
	cp log "$log"
	burst fetch "$RUN"
	is "$STATUS" 1 "fetch ($(tail -n 1 err.txt))"
	has err.txt "$a: the pod reports an invalid file ($a.wav); it is not fetched"
	has err.txt "$b: the pod reports a file of 9000000000000 bytes, more than it can have ($b.wav); it is not fetched"
	has err.txt "$c: the pod reports an invalid file ($c.wav); it is not fetched"
	is "$(grep -c "$a: the pod reports" err.txt)" 1 "how often a bad report is told"
	[ -s "out/$d.wav" ] || complain "$d is not home again"
	for f in "$a" "$b" "$c"; do [ ! -e "out/$f.wav" ] || complain "$f came home"; done
}

run_tests "$@"
