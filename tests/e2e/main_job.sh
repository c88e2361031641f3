#!/bin/bash
# main_job.sh - the main path: render, come back to it, stop it, hand it over.
. "$(dirname "$0")/lib.sh"

t_renders_everything() {
	script_lines 12
	JOB='join = { gap = 0.4; subtitles = true; };'
	config 'pods = 2;'
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(wavs)" 12 "files"
	is "$(json .status)" done status
	is "$(json .segments.rendered)" 12 rendered
	is "$(json '[.pods[].released] | all')" true "all released"
	is "$(wc -l <out/manifest.jsonl)" 12 "lines of the manifest"
	[ -s out/joined.wav ] && [ -s out/joined.srt ] && [ -s out/joined.vtt ] || complain "no joined track or subtitles"
	for id in s001 s012; do
		is "$(jq -r "select(.id==\"$id\").sha256" out/manifest.jsonl)" "$(sha256sum "out/$id.wav" | cut -d' ' -f1)" "hash of $id"
	done
}

begins_to_join() { # begins_to_join: burst runs until ffmpeg, which would never end
	rm -f joining
	PATH=$T/bin:$PATH burst_bg run
	wait_for 60 "the joining" [ -s joining ]
}
t_a_join_that_takes_long_can_be_ended() { # a book of many hours; all that is rendered stays
	command -v ffmpeg >/dev/null || { skip "no ffmpeg"; return; }
	script_lines 3
	JOB='join = { loudness = -18; };' config
	mkdir bin
	printf '#!/bin/sh\ncase "$*" in *-version*) exit 0 ;; esac\necho $$ >%s/joining\nexec sleep 300\n' "$T" >bin/ffmpeg
	chmod +x bin/ffmpeg
	local how word
	for how in "TERM TERM 143" "TERM 143" "INT 130" "KILL 137"; do # the first by the run itself, the others where all is rendered
		begins_to_join
		for word in ${how% *}; do
			kill "-$word" "$PID"
			sleep 0.5
		done
		burst_wait
		is "$STATUS" "${how##* }" "exit status ($(tail -n 2 err.txt))"
		! running_as "$(cat joining)" || complain "ffmpeg goes on after $how"
		is "$(find out -maxdepth 1 -name '*.wav' | wc -l)" 3 "files"
	done
	has err.txt "all 3 segments are already rendered: nothing rented"
	burst run
	is "$STATUS" 0 "exit status of the next run ($(tail -n 2 err.txt))"
	has err.txt "joined.wav: "
}

t_pods_that_bring_nothing() { # are not rented: the first one is done before another could be up
	script_lines 30
	slow_worker SLOW=0.05
	REHEARSE='boot_delay = "4s";' config 'code = { path = "code"; }; pods = 4;'
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(json .segments.rendered)" 30 rendered
	is "$(json '.pods | length')" 1 pods
}

t_second_run_rents_nothing() {
	script_lines 5
	config
	burst run
	is "$STATUS" 0 "first run"
	burst run --json
	is "$STATUS" 0 "second run"
	is "$(json .segments.cached)" 5 cached
	is "$(json '.pods | length')" 0 "pods rented"
	echo '{"id":"s006","text":"One more line."}' >>script.jsonl
	burst run --json
	is "$(json .segments.rendered)" 1 "only the new one"
}

t_a_known_volume_starts_workers_at_once() { # ... and one that lost what it had is filled again
	local v
	script_lines 6
	config
	burst run
	is "$STATUS" 0 "first run"
	burst run --force -o again --trace
	is "$STATUS" 0 "second run"
	is "$(grep -c 'worker files:' err.txt)" 0 "trees asked for on a volume that has them"
	v=$(echo "$BURST_STATE_DIR"/volumes/*)
	[ -d "$v/kit" ] || complain "no kit in $v"
	rm -rf "$v/kit" "$v/agent"
	burst run --force -o more --trace
	is "$STATUS" 0 "third run ($(tail -n 2 err.txt))"
	is "$(grep -c 'worker files: [0-9]* bytes' err.txt)" 1 "what was lost is sent again"
	is "$(wavs more)" 6 files
}
t_phases_sum_to_wall_time() {
	script_lines 6
	REHEARSE='boot_delay = "1s";'
	config
	burst run --json
	is "$STATUS" 0 "exit status"
	is "$(json '.pods[0].phases | keys | length')" 10 phases
	is "$(json '.pods[0].compute_seconds <= .pods[0].billed_seconds')" true "compute within billed"
	is "$(json '.cost_usd > 0')" true "it costs"
	is "$(json '.pods[0].phases | .queue_s + .boot_s >= 1')" true "the boot delay is seen"
}

t_killed_client_is_resumed() {
	script_lines 300
	JOB='worker = "slow"; '
	JOB=''
	REHEARSE='boot_delay = "200ms";'
	config 'pods = 2;'
	burst_bg run
	wait_for 40 "some files" file_count out 3
	kill -9 "$PID"
	burst_wait
	before=$(wavs)
	burst resume --json
	is "$STATUS" 0 "resume ($(tail -n 2 err.txt))"
	is "$(wavs)" 300 files
	is "$(json .segments.failed)" 0 failed
	[ "$before" -lt 300 ] || skip "it was done before it could be killed"
}

t_killed_client_is_reaped() {
	script_lines 300
	config
	burst_bg run
	wait_for 40 "a file" file_count out 1
	kill -9 "$PID"
	burst_wait
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt))"
	is "$(pods_left)" "" "pods"
}

t_detached_run_is_attached() {
	script_lines 20
	config 'pods = 2;'
	burst run -d
	is "$STATUS" 0 "exit status"
	run=$(cat out.txt)
	[ -n "$run" ] || complain "no run id"
	burst attach "$run"
	is "$STATUS" 0 "attach ($(tail -n 2 err.txt))"
	is "$(wavs)" 20 files
}

handed_over() { [ "$(ledger 'select detached from run')" = 1 ]; }
taken_over() { grep -qs '"mode":"attached"' state/volumes/v/runs/*/*/events.jsonl; }
t_detached_run_is_taken_over() { # its client died: who attaches keeps the pods alive from then on, and is settled like anybody
	script_lines 60
	slow_worker SLOW=0.3 MAX_BATCH=1
	config 'code = { path = "code"; };'
	burst run -d
	is "$STATUS" 0 "exit status"
	wait_for 60 "the queue to be handed over" handed_over
	kill -9 "$(sed -n 's/^process //p' state/runs/*/lock)"
	burst_bg attach "$(cat out.txt)"
	wait_for 60 "its pod to be taken over" taken_over
	wait_for 60 "files" file_count out 5
	is "$(ledger 'select detached from run')" 0 "what the ledger calls it"
	is "$(ledger 'select count(*) from pod')" 1 "pods"
	kill -9 "$PID"
	burst_wait
	sed -i 's/SLOW=0.3/SLOW=0/' burst.cfg
	burst run
	is "$STATUS" 0 "the next run ($(tail -n 2 err.txt))"
	has err.txt "its client exited; releasing its pods"
	is "$(wavs | tr -d ' ')" 60 files
}

two_slow_pods_detached() { # until they have the queue
	script_lines 200
	slow_worker SLOW=0.5 MAX_BATCH=1
	config 'code = { path = "code"; }; pods = 2;'
	burst run -d
	is "$STATUS" 0 "exit status"
	wait_for 60 "the queue to be handed over" handed_over
}
t_detached_run_is_reaped_in_part() { # its client died: what was being given back is, what its agents work on is not
	two_slow_pods_detached
	kill -9 "$(sed -n 's/^process //p' state/runs/*/lock)"
	local idle
	idle=$(ledger "update pod set state = 'releasing' where id = (select min(id) from pod); select min(id) from pod")
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt))"
	has out.txt "pod $idle of local: gone (its client exited, and it has no work)"
	is "$(grep -c 'skipped (burst reap' out.txt)" 1 "pods that work on"
	is "$(ledger 'select status, detached from run')" 'running|1' "the run"
	burst cancel "$(ledger 'select id from run')"
	is "$STATUS" 0 "cancel ($(tail -n 2 err.txt))"
	is "$(pods_left)" "" "pods"
}

both_at_work() { [ "$(ledger "select count(*) from pod where state = 'live' and ready_ms > 0")" = 2 ]; }
t_detached_run_is_reaped_by_force() { # pod for pod, its client dead: what was ended here bills no more by the ledger, and the run has ended
	local pod first=''
	two_slow_pods_detached
	wait_for 60 "the second pod" both_at_work
	kill -9 "$(sed -n 's/^process //p' state/runs/*/lock)"
	for pod in $(ledger "select id from pod"); do
		burst reap "$pod"
		is "$STATUS" 9 "reap of a pod that works on, by name"
		burst reap "$pod" --force
		is "$STATUS" 0 "reap --force ($(tail -n 2 err.txt))"
		is "$(ledger "select state, gone_ms >= released_ms and released_ms >= release_ms and release_ms > create_ms,
			billed_ms >= released_ms - create_ms and billed_ms % 1000 = 0, cost_microusd > 0 from pod where id = '$pod'")" 'gone|1|1|1' "its row"
		is "$("$BURST" ps --json | jq -r '.[] | select(.kind == "pod") | .id' | grep -cx "$pod")" 0 "what ps lists of it"
		is "$(find state/runs -name "$(ledger "select attempt from pod where id = '$pod'").*")" "" "its keys"
		[ -n "$first" ] || is "$(ledger 'select status from run')" running "a run with one pod left"
		first=$pod
	done
	is "$(ledger 'select status, detached, ended_ms > 0 from run')" 'interrupted|0|1' "the run"
	is "$(ledger 'select (select sum(cost_microusd) from pod) - cost_microusd from run')" 0 "cost of its pods without that of the run"
	sed -i 's/SLOW=0.5/SLOW=0/' burst.cfg
	burst run
	is "$STATUS" 0 "the next run ($(tail -n 2 err.txt))"
}

t_files_are_named_where_there_are_some() {
	local run
	script_lines 2
	LOCAL='capacity = 0;' config 'wait = "1s";'
	burst run
	is "$STATUS" 4 "a run without a pod ($(tail -n 1 err.txt))"
	hasnt err.txt "files in"
	has err.txt "0 rendered, 0 cached, 0 failed of 2"
	run=$(ledger 'select id from run')
	burst attach "$run"
	has err.txt "run $run has ended: "
	hasnt err.txt "files in"
	config
	burst run
	has err.txt "2 rendered, 0 cached, 0 failed of 2; files in $T/out"
	burst attach "$(ledger 'select id from run order by seq desc limit 1')"
	has err.txt "; files in $T/out"
	# of a command that fails, what it had finished
	cat >burst.cfg <<-'E'
		provider = "local";
		job = { type = "command"; run = "[ $BURST_INDEX = 1 ] || echo x >a.txt; exit 1"; outputs = ["*.txt"]; output = "files"; };
	E
	burst run
	is "$STATUS" 1 "a command that fails ($(tail -n 1 err.txt))"
	is "$(cat files/a.txt)" x "what it had finished"
	has err.txt "; files in $T/files"
	sed -i 's/echo x >a.txt/true/; s/"files"/"none"/' burst.cfg
	burst run
	is "$STATUS" 1 "one that makes nothing ($(tail -n 1 err.txt))"
	hasnt err.txt "; files in"
}

t_user_without_an_account() { # as in a container with a user of its own: the password file knows no such number, and no shell of it
	[ "$(id -u)" = 0 ] || { skip "only root can be somebody else"; return; }
	setpriv --reuid 54321 --regid 54321 --clear-groups unshare -Urn true 2>/dev/null || { skip "no user namespaces"; return; }
	script_lines 3
	config
	cp "$BURST" burst
	printf '#!/bin/sh\nexec setpriv --reuid 54321 --regid 54321 --clear-groups "%s" "$@"\n' "$T/burst" >other
	chmod 755 burst other
	chmod 711 "$WORK"
	chown -R 54321:54321 "$T"
	local CLIENT=$T/other
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(wavs)" 3 files
	# a plain process has the password file of the machine
	script_lines 4
	local -x LOCAL_ISOLATION=process
	LIMIT=20
	burst run
	is "$STATUS" 2 "as a plain process: exit status"
	has err.txt "gives the user 54321 no shell, so sshd refuses all logins: chsh"
	burst doctor
	has out.txt "bad  local: the password file gives the user 54321 no shell"
}
# A whole track stays until another whole one replaces it.
t_an_interrupted_render_keeps_the_whole_track() {
	script_lines 600
	JOB='join = { subtitles = true; };' config
	burst run
	[ -s out/joined.wav ] || complain "no track"
	is "$STATUS" 0 "the first run ($(tail -n 2 err.txt))"
	local whole
	whole=$(sha256sum <out/joined.wav)
	burst_bg run --anew
	wait_for 40 "a pod of the second run" row_says "(select count(*) from pod where ready_ms > 0) >= 2"
	kill -INT "$PID"
	burst_wait
	is "$STATUS" 130 "the second run ($(tail -n 2 err.txt))"
	is "$(sha256sum <out/joined.wav)" "$whole" "the track of the first run"
	burst resume
	is "$STATUS" 0 "resume ($(tail -n 2 err.txt))"
	all_right 600
	is "$(cd out && ls -d ./*partial* 2>/dev/null)" "" "what is left of a partial track"
}
t_names_of_the_track() { # a file under one of them that is not the job's stays, and no segment has it
	script_lines 2
	JOB='join = { subtitles = true; };' config
	mkdir out
	for name in joined.wav joined.partial.wav chapters.partial.txt; do
		echo mine >"out/$name"
		burst run
		is "$STATUS" 2 "exit status beside $name"
		has err.txt "$name is there and was not made by this job"
		rm "out/$name"
	done
	for id in joined joined.partial; do
		echo "{\"id\":\"$id\",\"text\":\"a\"}" >script.jsonl
		burst plan
		is "$STATUS" 2 "exit status with the id $id"
		has err.txt "script.jsonl:1: the id \"$id\" is taken by the joined track"
	done
}
t_interrupt_gives_back() {
	script_lines 600
	config 'pods = 2;'
	burst_bg run --json
	wait_for 40 "a file" file_count out 1
	local known began=$SECONDS
	known=$(wavs)
	kill -INT "$PID"
	burst_wait
	is "$STATUS" 130 "exit status"
	is "$(json .status)" interrupted status
	is "$(json '[.pods[].released] | all')" true "all released"
	[ $((SECONDS - began)) -le 45 ] || complain "it took $((SECONDS - began)) s" # 30 for the files, then the look that the pods are gone
	[ "$(wavs)" -ge "$known" ] || complain "$(wavs) files, $known before"
	all_right "$(wavs)"
}

run_tests "$@"
