#!/bin/bash
# notify.sh - a run's end is told where nobody watches: posted, handed to a command, shown; and whatever comes of that changes nothing.
# shellcheck disable=SC2016
. "$(dirname "$0")/lib.sh"

own() { # own LINE...: one's own file
	mkdir -p "$XDG_CONFIG_HOME/burst"
	printf '%s\n' "$@" >"$XDG_CONFIG_HOME/burst/burst.cfg"
	chmod 600 "$XDG_CONFIG_HOME/burst/burst.cfg"
}
job() { # job COMMAND [LINE]
	cat >burst.cfg <<-E
		provider = "local";
		job = { name = "night"; type = "command"; run = "$1"; no_outputs = true; env = ["HF_TOKEN"]; };
		providers = { local = { price_per_hour = 0.69; }; };
		${2:-}
	E
}
serve() {
	python3 "$ROOT/tests/e2e/notify_server.py" "$T" &
	SERVER=$!
	wait_for 20 "the server" test -s port
	URL=http://127.0.0.1:$(cat port)/topic-nobody-guesses
}
unserve() { { kill "$SERVER" && wait "$SERVER"; } 2>/dev/null; }
got() { wc -l <got 2>/dev/null || echo 0; }
last() { tail -n 1 got | jq -r "$1"; }     # of the last request
told() { last .body | jq -r "$1"; }        # of the object that it had
events() { jq -r '.headers["x-burst-event"]' got | tr '\n' ' '; }
no_secret() { # in what was sent, said or kept
	! grep -qF 'topic-nobody-guesses' err.txt out.txt state/runs/*/log || complain "the address was shown: $(grep -hF topic-nobody err.txt out.txt state/runs/*/log | head -n 1)"
	[ ! -e got ] || ! grep -qE 'hf_SECRET1|rpa_SECRET2|PATH=' got || complain "a secret was sent"
}

t_each_end_is_told_once() {
	serve
	local -x HF_TOKEN=hf_SECRET1 RUNPOD_API_KEY=rpa_SECRET2
	own "notify = { on = [\"failed\", \"capped\", \"unreleased\", \"recovered\", \"done\"]; url = \"$URL\"; };"
	job 'echo hf_SECRET1 $HF_TOKEN >&2; exit 3'
	burst run --json
	is "$STATUS" 1 "a run that fails"
	is "$(got) $(last '.headers["x-burst-event"]') $(last .path)" "1 failed /topic-nobody-guesses" "what was told"
	is "$(last '.headers["content-type"]') $(last .headers.title)" "application/json burst: night: failed" "its headers"
	last .body >body.json
	schema run body.json
	is "$(jq -S 'del(.pods)' body.json)" "$(tail -n 1 out.txt | jq -S 'del(.pods)')" "what --json says"
	no_secret
	job 'echo x >o' 
	burst run
	is "$STATUS" 0 "a run that does not ($(tail -n 2 err.txt))"
	burst run --anew
	own "caps = { per_day = 0; }; notify = { on = [\"capped\", \"recovered\"]; url = \"$URL\"; };"
	burst run --anew
	is "$STATUS" 5 "a run that may spend nothing ($(tail -n 2 err.txt))"
	is "$(told '.status + " " + .job + .run')" "capped night" "what was told of it"
	has <(told .error.message) 'caps.per_day'
	burst run --anew # tried again, as by a queue: no news
	own "notify = { on = [\"recovered\"]; url = \"$URL\"; };"
	job 'exit 4'
	burst run --anew # not asked for
	job 'echo x >o'
	burst run --anew
	is "$(events)" "failed recovered done capped recovered " "events"
	no_secret
	unserve
}

# No reply ends a run, or the client.
t_extreme_replies_change_nothing() {
	local name
	coproc EXTREMES { exec node "$ROOT/tests/cloud/common/extremes.js" header_100k header_endless continue_endless trailer_10m body_endless; }
	read -rt 20 ports <&"${EXTREMES[0]}" || { complain "the server did not start"; return; }
	job 'echo x >o'
	for name in $(jq -r 'keys[]' <<<"$ports"); do
		own "notify = { on = [\"done\"]; url = \"http://127.0.0.1:$(jq -r ".$name.port" <<<"$ports")/topic-nobody-guesses\"; };"
		burst run --anew
		is "$STATUS" 0 "$name: exit status ($(tail -n 2 err.txt))"
		has err.txt 'warning: notify.url: '
		no_secret
	done
	kill "$EXTREMES_PID"
	wait "$EXTREMES_PID" 2>/dev/null
}

# The published ntfy server shows what a phone shows: a title, a text that a person reads, a priority, a tag.
ntfy_serves() {
	local program=${NTFY:-$ROOT/build/ntfy/ntfy} port
	[ -x "$program" ] || { skip "no ntfy server: make ntfy-server, or NTFY=PROGRAM"; return 1; }
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	URL=http://127.0.0.1:$port/nightly
	printf '%s\n' "listen-http: 127.0.0.1:$port" "base-url: http://127.0.0.1:$port" "cache-file: $T/ntfy.db" >ntfy.yml
	"$program" serve --config ntfy.yml >ntfy.log 2>&1 &
	SERVER=$!
	wait_for 20 "the server" curl -sf "http://127.0.0.1:$port/v1/health"
}
shown() { curl -s "$URL/json?poll=1"; } # a line for each message
last_shown() { shown | tail -n 1 | jq -r "$1"; }
t_what_a_phone_shows() {
	local all='on = ["failed", "capped", "unreleased", "recovered", "done"];' id
	ntfy_serves || return
	own "notify = { $all url = \"$URL\"; template = \"{summary}\"; };"
	job 'exit 3'
	burst run
	is "$STATUS" 1 "a run that fails"
	id=$(ledger "select id from run")
	is "$(last_shown .title)|$(last_shown .priority)|$(last_shown '.tags[0]')" "burst: night: failed|4|x" "failed"
	is "$(last_shown .message)" "the command ended with exit code 3; 0 rendered, 0 cached, 1 failed of 1; \$0.0002; run $id" "its text"
	job true
	burst run --anew
	is "$(last_shown .title)|$(last_shown .priority)" "burst: night: recovered|3" "recovered"
	burst run --anew
	is "$(last_shown .title)|$(last_shown .priority)|$(last_shown '.tags[0]')" "burst: night: done|2|white_check_mark" "done"
	is "$(last_shown .message)" "1 rendered, 0 cached of 1; \$0.0002" "its text"
	own "caps = { per_day = 0; }; notify = { $all url = \"$URL\"; template = \"{summary}\"; };"
	burst run --anew
	is "$(last_shown .title)|$(last_shown .priority)|$(last_shown '.tags[0]')" "burst: night: capped|4|moneybag" "capped"
	[[ $(last_shown .message) = *"today are spent or reserved (caps.per_day)"* ]] || complain "capped: $(last_shown .message)"
	job true
	sed -i 's/name = "night"/name = "Nächte"/' burst.cfg
	own "notify = { $all url = \"$URL\"; };" # a program reads this, not a person
	burst run --anew
	is "$(last_shown .title)" "burst: Nächte: done" "a name that is not ASCII"
	is "$(last_shown '.message | fromjson | .job')" "Nächte" "the run's JSON"
	is "$(shown | wc -l)" 5 "messages"
	unserve
}

t_what_fails_changes_nothing() {
	serve
	own "notify = { on = [\"done\"]; url = \"$URL\"; };"
	job 'echo x >o'
	local does began
	for does in 500 close redirect 204; do
		echo $does >does
		burst run --anew
		is "$STATUS" 0 "$does: exit status ($(tail -n 2 err.txt))"
		[ $does = 204 ] || has err.txt 'warning: notify.url: '
	done
	has <(cat state/runs/*/log) ' notify.url: the server answered with status 500'
	has <(cat state/runs/*/log) ' notify.url: the server answered with status 307'
	hasnt err.txt notify
	is "$(got)" 4 "requests: none of them twice, or to where it was led"
	echo hang >does
	began=$SECONDS
	burst run --anew
	is "$STATUS" 0 "hang: exit status"
	has err.txt 'warning: notify.url: '
	[ $((SECONDS - began)) -le 20 ] || complain "it was waited for, for $((SECONDS - began)) s"
	unserve
	burst run --anew # nobody listens there
	is "$STATUS" 0 "refused: exit status"
	has err.txt 'warning: notify.url: '
	own "notify = { on = [\"done\"]; url = \"http://192.0.2.1/topic-nobody-guesses\"; };" # in the clear, to another machine
	burst run --anew
	is "$STATUS" 0 "plain http: exit status"
	has err.txt 'warning: notify.url: '
	no_secret
}

t_a_command_gets_it() {
	local -x HF_TOKEN=hf_SECRET1 RUNPOD_API_KEY=rpa_SECRET2
	own 'notify = { on = ["done", "failed"]; template = "{job} {event}: {rendered} of {total}, {failed} failed, {pods} pods{error} {";' \
		"	command = \"cat >$T/said; env >$T/env; echo \$BURST_EVENT \$BURST_JOB \$BURST_RUN >$T/vars; echo noise\"; };"
	job 'echo x >o'
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(cat said)" "night done: 1 of 1, 0 failed, 1 pods {" "its input"
	is "$(cat vars)" "done night $(json .run)" "its variables"
	is "$(wc -l <out.txt)" 1 "lines on stdout"
	hasnt env rpa_SECRET2
	# JSON for a service that wants its own
	own 'notify = { on = ["failed"]; template = "{\"text\": \"{job}: {error}\"}"; command = "cat >'"$T"'/said"; };'
	job 'echo \"that is \\\"it\\\"\" >&2; exit 3'
	burst run
	is "$STATUS" 1 "exit status of one that fails"
	is "$(jq -r '.text | startswith("night: ")' said)" true "an object ($(cat said))"
	job 'echo x >o'
	own 'notify = { on = ["done"]; command = "echo it is full >&2; exit 3"; };'
	burst run --anew
	is "$STATUS" 0 "it fails: exit status"
	has err.txt 'warning: notify.command: sh failed with exit status 3: it is full'
	has <(cat state/runs/*/log) ' notify.command: sh failed with exit status 3'
	own 'notify = { on = ["done"]; command = "sleep 61 | sleep 61; true"; };'
	local began=$SECONDS
	burst run --anew
	is "$STATUS" 0 "it hangs: exit status"
	has err.txt 'warning: notify.command: sh does not end: killed after 10 s'
	[ $((SECONDS - began)) -le 20 ] || complain "it was waited for, for $((SECONDS - began)) s"
	! pgrep -fx 'sleep 61' >/dev/null || complain "what it had started is left"
}

t_what_a_project_may_say_of_it() {
	job 'echo x >o' 'notify = { command = "true"; };'
	burst run
	is "$STATUS" 2 "a command: exit status"
	has err.txt 'burst.cfg:4: notify.command is allowed only in your own ~/.config/burst/burst.cfg'
	job 'echo x >o' 'notify = { url = "https://example.org/x"; template = "x"; };'
	burst run
	is "$STATUS" 2 "an address: exit status"
	has err.txt 'burst.cfg:4: notify.url is allowed only in your own ~/.config/burst/burst.cfg'
	has err.txt 'burst.cfg:4: notify.template is allowed only in your own ~/.config/burst/burst.cfg'
	own "notify = { command = \"cat >$T/said\"; };"
	job 'echo x >o' 'notify = { on = ["done"]; };'
	burst run
	is "$STATUS" 0 "events: exit status ($(tail -n 2 err.txt))"
	is "$(jq -r .status said)" "done" "what was told"
	job 'echo x >o' 'notify = { on = ["dnoe"]; };'
	own 'notify = { template = "{jbo}"; url = "ntfy.sh/x"; };'
	burst run
	is "$STATUS" 2 "mistakes: exit status"
	has err.txt 'burst.cfg:4: notify.on: "dnoe" is not an event: use "done", '
	has err.txt 'burst.cfg:1: notify.template: {jbo} is not a field; known: event, run, job'
	has err.txt 'burst.cfg:1: notify.url must begin with https://'
}

ready() { [ "$(ledger 'SELECT count(*) FROM pod WHERE ready_ms > 0')" = 1 ]; }
t_whoever_finds_a_dead_client_tells() {
	own "notify = { command = \"cat >>$T/said; echo >>$T/said\"; };"
	job 'sleep 300'
	burst_bg run
	wait_for 40 "work" ready
	kill -9 "$PID"
	burst_wait
	[ ! -e said ] || complain "told too early: $(cat said)"
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt))"
	is "$(jq -rs 'map(.status + " " + .job) | join(",")' said)" "interrupted night" "what was told"
	burst reap
	is "$(jq -rs length said)" 1 "told again"
	job 'echo x >o'
	burst run
	is "$(jq -rs 'map(.status) | join(",")' said)" "interrupted,done" "recovered"
	burst cancel "$(ledger "select id from run order by seq limit 1")" # what its user ends is no news
	is "$(jq -rs length said)" 2 "told of what its user did"
}

a_pod_may_bill() { # a run whose client is dead has a pod at a vendor that cannot be asked
	unset RUNPOD_API_KEY
	job 'echo x >o'
	burst run
	ledger "update run set status = 'running', detached = 0, ended_ms = 0"
	ledger "create temp table t as select * from pod limit 1;
		update t set seq = null, attempt = '00000000000000aa', id = 'rp1', provider = 'runpod', account = 'x', state = 'live', gone_ms = 0, released_ms = 0,
			hard_end_s = strftime('%s') + 600, create_ms = strftime('%s') * 1000, billed_ms = 0;
		insert into pod select * from t"
	burst reap
	is "$STATUS" 9 "reap ($(tail -n 2 err.txt))"
}
t_a_pod_that_may_still_bill() {
	own "notify = { command = \"cat >>$T/said; echo >>$T/said\"; };"
	a_pod_may_bill
	burst reap
	is "$(jq -rs 'map(.status) | join(",")' said)" "unreleased" "told, and once"
	LEAVES_PODS=t_a_pod_that_may_still_bill
}
t_a_phone_shows_a_pod_that_may_still_bill() {
	ntfy_serves || return
	own "notify = { url = \"$URL\"; template = \"{summary}\"; };"
	a_pod_may_bill
	is "$(last_shown .title)|$(last_shown .priority)|$(last_shown '.tags[0]')" "burst: night: unreleased|5|rotating_light" "what stands first"
	[[ $(last_shown .message) = "pod rp1 of runpod may still be billing: burst reap rp1 --force; "* ]] || complain "its text: $(last_shown .message)"
	unserve
	# shellcheck disable=SC2034 # lib.sh
	LEAVES_PODS=t_a_phone_shows_a_pod_that_may_still_bill
}

t_a_note_on_the_commit() {
	own 'notify = { git_note = true; };'
	job 'echo x >o'
	local -x GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
	git init -q . && printf '*\n!burst.cfg\n' >.gitignore && git add -f .gitignore burst.cfg && git commit -qm one
	mkdir -p .git/hooks && printf '#!/bin/sh\ntouch %s/hooked\n' "$T" >.git/hooks/reference-transaction && chmod +x .git/hooks/reference-transaction
	burst run --commit HEAD --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	has <(git notes --ref=burst show HEAD) " job night, run $(json .run): done: 1 rendered, 0 cached of 1; \$0."
	[ ! -e hooked ] || complain "a hook ran"
	rm .git/hooks/reference-transaction
	job 'exit 3'
	git commit -qam two
	burst run --commit HEAD
	is "$STATUS" 1 "one that fails: exit status"
	has <(git notes --ref=burst show HEAD) ": failed: the command ended with exit code"
	burst run --commit HEAD --anew
	is "$(git notes --ref=burst show HEAD | grep -c night)" 2 "lines of the second commit"
	is "$(git notes --ref=burst show HEAD~ | grep -c night)" 1 "lines of the first"
	burst run --anew # of the folder as it is: no commit is concerned
	is "$(git notes --ref=burst show HEAD | grep -c night)" 2 "lines of the second commit by now"
	own 'caps = { per_day = 0; }; notify = { git_note = true; };'
	burst run --commit HEAD --anew
	has <(git notes --ref=burst show HEAD) "job night, run -: capped: "
	touch .git/refs/notes/burst.lock
	own 'notify = { git_note = true; };'
	job 'echo x >o'
	git commit -qam three
	burst run --commit HEAD
	is "$STATUS" 0 "no note can be written: exit status"
	has err.txt 'warning: notify.git_note: '
}

t_on_the_desktop() {
	mkdir bin
	printf '#!/bin/sh\nprintf "%%s|" "$@" >>%s\n' "$T/shown" >bin/notify-send
	chmod +x bin/notify-send
	own 'notify = { on = ["done"]; desktop = true; };'
	job 'echo x >o'
	PATH=$T/bin:$PATH burst run
	is "$STATUS" 0 "exit status"
	has shown 'app-name=burst|--urgency=normal|--|burst: night: done|1 rendered, 0 cached of 1; $0.'
	printf '#!/bin/sh\necho no bus >&2; exit 1\n' >bin/notify-send
	PATH=$T/bin:$PATH burst run --anew
	is "$STATUS" 0 "without a session: exit status"
	has err.txt 'warning: notify.desktop: notify-send failed with exit status 1: no bus'
	command -v notify-send >/dev/null || {
		burst run --anew
		is "$STATUS" 0 "without notify-send: exit status"
		has err.txt 'warning: notify.desktop: notify-send is not installed'
	}
}

run_tests "$@"
