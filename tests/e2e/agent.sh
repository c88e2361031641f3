#!/bin/sh
# agent.sh - the agent alone: sessions, the lease, handover, takeover, another run that takes its pod.
# shellcheck disable=SC2016,SC2013,SC2015,SC2086,SC2154 # pod-side $ stays; paths of our own making have no blanks
. "$(dirname "$0")/agent_lib.sh"

test_renders() {
	start 2 '"CHATTY":"1"'
	expect '"ev":"worker".*"state":"ready","engine":"test"' 2
	batch b1 q1 q2 q3
	batch b2 q4
	expect '"ev":"batch","id":"b1","state":"done"'
	expect '"ev":"batch","id":"b2","state":"done"'
	equal 'segments' "$(count '"ev":"segment".*"ok":true.*"bytes":1644.*"seconds":0.1,"rate":8000')" 4
	hash=$(sha256sum "$P/q1.wav" | cut -d' ' -f1)
	expect "\"id\":\"q1\",\"batch\":\"b1\",\"try\":1,\"ok\":true,\"file\":\"q1.wav\",\"path\":\"runs/r1/$BURST_ATTEMPT/q1.wav\",\"bytes\":1644,\"sha256\":\"$hash\""
	expect '"ev":"log","w":[01],"line":"now q2"'
	expect '"ev":"log","w":[01],"line":"err q4"'
}

# ... of which one is longer than a line may be
test_progress_bars_before_its_words() {
	start 1 '"BAR":"30000"'
	batch b1 q1 q2
	expect '"ev":"batch","id":"b1","state":"done"'
	equal 'segments' "$(count '"ev":"segment".*"ok":true')" 2
	equal 'crashes' "$(count '"state":"retry"')" 0
}

test_keeps_the_lease() {
	tell '{"op":"renew","lease_s":100}'
	expect '"ev":"lease","left_s":(100|99)'
	read -r who wall up <"$BURST_HOME/lease"
	equal attempt "$who" "$BURST_ATTEMPT"
	[ $((wall - $(date +%s))) -le 100 ] || fail "wall clock of the lease"
	read -r now _ </proc/uptime
	[ $((up - ${now%.*})) -le 101 ] || fail "uptime of the lease"
	tell '{"op":"renew","lease_s":100000}'
	expect '"ev":"lease","left_s":3[56][0-9][0-9]'
}

# The lease of an earlier life: its uptime may have begun anew, its wall clock may have been set.
test_lease_of_an_earlier_life() {
	for lease in "100 4000000" "4000 100"; do
		detach
		for pid in $(serve_pid); do kill "$pid"; done
		pod
		read -r now _ </proc/uptime
		echo "$BURST_ATTEMPT $(($(date +%s) + ${lease% *})) $((${now%.*} + ${lease#* }))" >"$BURST_HOME/lease"
		attach 0
		expect '"ev":"hello".*"lease_left_s":(100|9[0-9]|[78][0-9]),'
	done
}

# What waits long hears that the agent lives.
test_says_that_it_is_alive() {
	tell '{"op":"setup","hash":"e","script":"until [ -e \"$BURST_HOME/../go\" ]; do sleep 0.1; done"}'
	expect '"ev":"alive"' 2
	: >"$dir/go"
	expect '"ev":"setup","ok":true'
	expect '"ev":"alive"' 3
}

test_reconnects_with_what_is_missing() {
	start 1 ''
	batch b1 q1 q2
	expect '"id":"b1","state":"done"'
	detach
	cp "$said" "$dir/first"
	equal 'all numbers' "$(grep -o '^{"n":[0-9]*' "$said" | cut -d: -f2 | tr '\n' ' ')" "$(seq "$(grep -c '^{"n"' "$said")" | tr '\n' ' ')"
	attach 3
	last=$(grep -c '^{"n"' "$dir/first")
	expect "^{\"n\":$last,"
	equal 'events after 3' "$(grep '^{"n"' "$said" | cat)" "$(grep '^{"n"' "$dir/first" | tail -n +4)"
	equal 'the file' "$(cat "$P/events.jsonl")" "$(grep '^{"n"' "$dir/first")"
	equal 'hello first' "$(head -n 1 "$said" | grep -c '"ev":"hello"')" 1
	batch b2 q3
	expect '"id":"b2","state":"done"'
}

test_second_attach_ends_the_first() {
	first=$client
	exec 4>&3
	attach 0
	for _ in $(seq 100); do
		kill -0 "$first" 2>/dev/null || break
		sleep 0.05
	done
	kill -0 "$first" 2>/dev/null && fail 'the first client is still there'
	exec 4>&-
	tell '{"op":"handover","id":"hello \u00e9\n\"x\""}'
	expect '"ev":"mode","mode":"detached","id":"hello é\\u000a\\"x\\""'
}

# A client for which the agent has no file waits, and so does the agent.
test_waits_without_files() {
	server=$(serve_pid)
	cpu() { sed 's/.*) //' "/proc/$server/stat" | awk '{ print $12 + $13 }'; }
	files=0 # the first number that is free
	while [ -e "/proc/$server/fd/$files" ]; do files=$((files + 1)); done
	prlimit --pid "$server" --nofile=$files:
	before=$(cpu)
	{ echo '{"op":"attach","from":0}' && sleep 3; } | "$AGENT" attach >"$dir/early" 2>&1 # sleep: the time that is measured
	equal 'a hello without a file' "$(grep -c '"ev":"hello"' "$dir/early")" 0
	[ $(($(cpu) - before)) -lt 10 ] || fail "the agent spins: $(($(cpu) - before)) hundredths in 3 s"
	prlimit --pid "$server" --nofile=1024:
	attach 0
}

test_revoke() {
	start 1 '"SLOW":"0.3"'
	batch b1 q1 q2
	batch b2 q3
	batch b3 q4
	expect '"id":"b1","state":"started"'
	tell '{"op":"revoke"}'
	expect '"ev":"revoked","ids":\["b2","b3"\]'
	expect '"id":"b1","state":"done"'
	refuse '"id":"b2","state":"started"'
}

test_handover_ends_by_itself() {
	start 2 ''
	batch b1 q1 q2
	batch b2 q3
	tell '{"op":"handover","lease_s":20}'
	expect '"ev":"mode","mode":"detached"'
	detach
	for _ in $(seq 200); do
		[ -e "$BURST_HOME/end" ] && break
		sleep 0.05
	done
	equal 'end' "$(cat "$BURST_HOME/end")" 'all work is done'
	equal 'events' "$(grep -c '"ev":"segment".*"ok":true' "$P/events.jsonl")" 3
	grep -q "^$BURST_ATTEMPT " "$BURST_HOME/lease" || fail 'no lease was written'
	attach 0
	expect '"ev":"hello".*"mode":"detached"'
	expect '"id":"b2","state":"done"'
}

test_takeover() {
	start 1 '"SLOW":"0.5"'
	batch b1 q1
	tell '{"op":"handover","lease_s":20}'
	tell '{"op":"takeover"}'
	expect '"ev":"mode","mode":"attached"'
	expect '"id":"b1","state":"done"'
	[ -e "$BURST_HOME/end" ] && fail 'it ended although it was taken over'
}

test_log_flood() {
	tell '{"op":"start","workers":1,"command":true}'
	tell '{"op":"batch","id":"b1","segments":[{"id":"c1","run":"yes 0123456789012345678901234567890123456789 | head -c 30000000; echo; echo the end; sleep 1.2; echo after"}]}'
	expect '"id":"c1".*"ok":true'
	expect 'lines were not kept'
	[ "$(wc -c <"$P/events.jsonl")" -lt 600000 ] || fail 'the flood was kept'
	[ "$(wc -c <"$P/c1.log")" -gt 29000000 ] || fail 'the log file is cut'
}

test_agent_killed_comes_back() {
	start 1 '"SLOW":"5"'
	batch b1 q1
	expect '"id":"b1","state":"started"'
	kill -9 "$(serve_pid)"
	wait $client
	before=$(grep -c . "$P/events.jsonl")
	printf '{"n":torn' >>"$P/events.jsonl"
	attach "$before"
	start 1 ''
	batch b1 q1
	expect "^{\"n\":$((before + 1)),"
	expect '"id":"b1","state":"done"'
	equal 'no torn line' "$(grep -c torn "$P/events.jsonl")" 0
}

test_bad_lines() {
	tell 'what'
	expect '"ev":"error","error":"not a line of JSON"'
	tell '{"op":"dance"}'
	expect '"ev":"error","error":"no such operation"'
	tell '{"op":"batch","id":"../x","segments":[]}'
	expect '"error":"a batch without'
	tell '{"op":"renew","lease_s":"soon"}'
	expect '"ev":"lease"'
}

test_switch_is_told() {
	expect '"ev":"hello".*"switch":""'
	echo 'ok exit' >"$BURST_HOME/switch"
	expect '"ev":"switch","switch":"ok exit"'
}

test_no_volume() {
	detach
	for pid in $(serve_pid); do kill "$pid"; done
	pod
	rmdir "$BURST_VOLUME"
	: >"$BURST_VOLUME"
	attach 0
	expect '"ev":"fatal"'
	batch b1 q1
	expect '"ev":"error"'
}

# Handed to another run: its folder, its events from 1 on, the same process of the worker.
test_another_run_takes_the_pod() {
	start 1 '"CHATTY":"1"'
	expect '"ev":"worker".*"state":"ready"'
	batch b1 q1
	expect '"ev":"batch","id":"b1","state":"done"'
	pid=$(pgrep -f "$WORKER" -P "$(serve_pid)")
	exec 3>&-
	mkfifo "$dir/ask2"
	"$AGENT" attach <"$dir/ask2" >"$dir/said2" 2>>"$dir/stderr" &
	client=$!
	exec 3>"$dir/ask2"
	said=$dir/said2
	tell '{"op":"attach","from":0,"run":"r2"}'
	expect '"ev":"hello".*"run":"r2".*"next":1,.*"workers":1,'
	start 1 '"CHATTY":"1"'
	expect '"n":1,.*"ev":"worker","w":0,"state":"ready","engine":"test".*"load_ms":0'
	batch b1 q1
	expect '"ev":"batch","id":"b1","state":"done"'
	expect "\"path\":\"runs/r2/$BURST_ATTEMPT/q1.wav\""
	equal 'the worker' "$(pgrep -f "$WORKER" -P "$(serve_pid)")" "$pid"
	[ -e "$dir/volume/runs/r2/$BURST_ATTEMPT/events.jsonl" ] || fail 'no log of the second run'
	equal 'events of the first run' "$(grep -c '"ev":"segment"' "$P/events.jsonl")" 1
	# another environment: another worker
	start 1 '"CHATTY":"2"'
	expect '"ev":"worker".*"state":"ready"' 2
	[ "$(pgrep -f "$WORKER" -P "$(serve_pid)")" != "$pid" ] || fail 'a worker with another environment was kept'
}

# ... that had not finished: nothing of the first run comes to the second.
test_another_run_takes_a_pod_at_work() {
	start 1 '"SLOW":"5"'
	expect '"ev":"worker".*"state":"ready"'
	batch b1 q1 q2
	expect '"ev":"batch","id":"b1","state":"started"'
	exec 3>&-
	mkfifo "$dir/ask2"
	"$AGENT" attach <"$dir/ask2" >"$dir/said2" 2>>"$dir/stderr" &
	client=$!
	exec 3>"$dir/ask2"
	said=$dir/said2
	tell '{"op":"attach","from":0,"run":"r2"}'
	expect '"ev":"hello".*"run":"r2".*"next":1,.*"workers":0,.*"running":\[\]'
	start 1
	batch b2 q9
	expect '"ev":"batch","id":"b2","state":"done"'
	refuse '"id":"q[12]"'
}

run_tests
