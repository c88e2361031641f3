#!/bin/bash
# view.sh - the live view on a terminal that tests/e2e/terminal.py emulates: its screens at three sizes, its redraws, a run, Ctrl-C;
# and the plain lines where there is no terminal. UPDATE=1 writes the screens in tests/golden anew.
# shellcheck disable=SC2119 # wavs takes a folder, or none
. "$(dirname "$0")/lib.sh"

PLAY=$ROOT/build/e2e/screen_play
GOLDEN=$ROOT/tests/golden
export TERM=xterm TZ=UTC

# on_terminal COLUMNSxROWS STEP... -- COMMAND...: status in $STATUS, what was wrong in term.txt
on_terminal() {
	STATUS=0
	timeout -k 5 "${LIMIT:-90}" python3 "$ROOT/tests/e2e/terminal.py" "$@" >term.txt 2>&1 || STATUS=$?
}

# ---- fixed views ----

# golden_screen SCENE COLUMNSxROWS
golden_screen() {
	local file=$GOLDEN/$1-$2.txt
	on_terminal "$2" 'once:ETA' end "shot:screen" -- "$PLAY" "$1"
	is $STATUS 0 "$1 at $2: $(cat term.txt)"
	[ -z "${UPDATE:-}" ] || cp screen "$file"
	cmp -s screen "$file" || complain "$1 at $2 is not as in $file: $(diff "$file" screen | tr '\n' '|')"
}
t_screens_are_as_kept() {
	[ -n "${CHECKING:-}" ] || make -s -C "$ROOT" build/e2e/screen_play || complain "screen_play cannot be built"
	local scene size
	for scene in half hundred joining; do
		for size in 40x8 80x24 120x40; do
			golden_screen $scene $size
		done
	done
}
t_colours_follow_the_state() {
	on_terminal 120x40 end "color:screen" -- "$PLAY" half
	has screen "{32}working{0}"
	has screen "{33}image 41 %{0}"
	has screen "{33}package install{0}"
	has screen "{31}1 failed{0}"
}
t_a_picture() { # as `make picture` draws it
	on_terminal 96x24 end "svg:view.svg" -- "$PLAY" half
	is $STATUS 0 "terminal: $(cat term.txt)"
	python3 - <<-'E' 2>&1 >lines.txt || complain "not well formed: $(tail -n 1 lines.txt)"
		import xml.etree.ElementTree as tree
		for text in tree.parse("view.svg").getroot().iter("{http://www.w3.org/2000/svg}text"):
		    print(text.get("fill"), text.text.replace("\u00a0", " "))
	E
	has lines.txt "#56d364 working"
	has lines.txt "None \$0.03 of \$1.00, about \$0.06 in total"
}
# One view is on the screen whatever the window did between two draws; where it only became wider, there is one in all.
t_the_window_changes() {
	on_terminal 80x24 'once:ETA' send:a size:120x24 send:a 'expect:1m14s' size:120x40 send:a 'expect:1m15s' shot:wide \
		size:100x40 send:a 'expect:1m16s' size:50x40 send:a 'expect:1m17s' size:40x40 send:a 'expect:1m18s' shot:narrow \
		send:q end -- "$PLAY" keys
	is $STATUS 0 "wider and narrower: $(cat term.txt)"
	is "$(grep -c . wide)" 10 "lines of the wide one ($(cat wide))"
	is "$(grep -c ETA narrow)" 1 "views on the narrow one ($(cat narrow))"
	on_terminal 80x24 send:a 'expect:1m14s' size:80x8 send:a 'expect:1m15s' shot:low size:40x6 send:a 'expect:1m16s' shot:small \
		size:200x50 send:a 'expect:1m17s' send:q end -- "$PLAY" keys
	is $STATUS 0 "lower: $(cat term.txt)"
	is "$(grep -c ETA low) $(grep -c ETA small)" "1 1" "views on the low one ($(cat low small))"
}

# ---- runs ----

t_a_run() {
	REHEARSE='boot_delay = "3s";'
	JOB='join = { gap = 0.1; };'
	script_lines 120
	config 'pods = 2;'
	on_terminal 80x24 'once:ETA' 'expect:PHASE[^\n]*\n[^\n]* booting' shot:booting 'expect:working' 'expect:of audio' shot:working end shot:end -- \
		"$BURST" run --anew
	is $STATUS 0 "exit status: $(cat term.txt)"
	is "$(wavs)" 120 files
	has booting "e2e  run "
	has booting "cap \$1.00, 10m"
	has booting "Ctrl-C "
	grep -qE '^\[[#.]+\]  [0-9]+ %  [0-9]+/120  [0-9]+s  ETA [0-9]+s$' working || complain "no progress: $(cat working)"
	grep -qE '^\$0\.00[0-9]* of \$1\.00, about \$0\.0[0-9]+ in total  .* of audio$' working || complain "no cost: $(cat working)"
	grep -qE '^local-[0-9a-f…]+ +no GPU +local_play here +0\.69 +[0-9]+ .*working$' working || complain "no pod: $(cat working)"
	! grep -q 'ETA' end || complain "the view stays: $(cat end)"
}
t_a_run_in_a_small_window() {
	script_lines 40
	config 'pods = 2;'
	on_terminal 40x6 'once:ETA' 'expect:[0-9]/40 .*ETA' shot:screen end -- "$BURST" run
	is $STATUS 0 "exit status: $(cat term.txt)"
	has screen " of \$1.00, "
}
t_ctrl_c_says_what_happens_next() {
	REHEARSE='release_delay = "2s";'
	slow_segments 40
	on_terminal 100x24 'expect:working' 'send:\x03' 'expect:stopping: fetching' 'expect:Ctrl-C again releases the pods now' \
		end shot:end -- "$BURST" run
	is $STATUS 130 "exit status: $(cat term.txt)"
	has end "stopping: fetching what is finished"
	grep -q 'burst resume' end || complain "how to go on is not said: $(cat end)"
}
t_without_colours() {
	script_lines 5
	config
	NO_COLOR=1 on_terminal 80x24 'expect:ETA' color:screen end -- "$BURST" run
	hasnt screen "{"
	on_terminal 80x24 'expect:ETA' color:screen end -- "$BURST" run --no-color --anew
	hasnt screen "{"
}
t_a_dumb_terminal() {
	REHEARSE='boot_delay = "500ms";'
	script_lines 5
	config
	TERM=dumb on_terminal 80x24 end color:screen -- "$BURST" run
	is $STATUS 0 "exit status: $(cat term.txt)" # a sequence would end it
	grep -qE '^20[0-9-]+T[0-9:]+Z pod local-[0-9a-f]+: (working|preparing|gone)$' screen || complain "no plain line: $(cat screen)"
}
t_piped() {
	REHEARSE='boot_delay = "1500ms";'
	script_lines 5
	config
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 1 err.txt))"
	# a create that is answered at once is not seen: the phase is looked at now and then
	grep -qE '^20[0-9-]+T[0-9:]+Z (renting a pod|pod [^ ]+: booting) \(no GPU, local_play here, \$0\.6900 an hour\)$' err.txt || complain "no offer: $(cat err.txt)"
	grep -qE '^20[0-9-]+T[0-9:]+Z 5/5 \(100 %\), [0-9]+s of audio, ETA [0-9]+s, \$0\.0[0-9]+ of \$1\.00, about \$0\.0[0-9]+ in total$' err.txt ||
		complain "no total: $(cat err.txt)"
	is "$(grep -oE 'Z pod [^ :]+' err.txt | sort -u | wc -l)" 1 "names of the pod"
	LC_ALL=C grep -q $'\033' err.txt && complain "it drives a terminal"
}
t_by_script() {
	command -v script >/dev/null || { skip "no script(1)"; return; }
	script_lines 5
	config
	script -qefc "stty cols 100 rows 20; exec '$BURST' run" /dev/null </dev/null >typed.txt 2>&1
	is $? 0 "exit status ($(tail -n 2 typed.txt))"
	has typed.txt "5/5"
}
t_in_tmux() {
	command -v tmux >/dev/null || { skip "no tmux"; return; }
	slow_segments 12
	tmux -S "$T/tmux" -f /dev/null new-session -d -x 80 -y 24 "'$BURST' run; echo \"exit \$?\"; sleep 60"
	shown() { tmux -S "$T/tmux" capture-pane -p -S - | grep -c "$1"; }
	shows() { [ "$(shown "$1")" -ge 1 ]; }
	wait_for 30 "a pod at work" shows working
	tmux -S "$T/tmux" resize-window -x 60 -y 20
	tmux -S "$T/tmux" resize-window -x 110 -y 30
	wait_for 20 "progress" shows "[1-9]/12"
	is "$(shown ETA)" 1 "views ($(tmux -S "$T/tmux" capture-pane -p -S -))"
	wait_for 30 "its end" shows "exit 0"
	is "$(shown ETA)" 0 "views that are left ($(tmux -S "$T/tmux" capture-pane -p -S -))"
	tmux -S "$T/tmux" kill-server
}

t_detached() { # what it shows until the pods have the queue disappears then
	slow_segments 8
	on_terminal 100x24 'once:ETA' 'expect:ETA' end shot:end -- "$BURST" run -d
	is $STATUS 0 "exit status: $(cat term.txt)"
	has end "handed over"
	hasnt end ETA
	hasnt end Ctrl-C
	on_terminal 100x24 'expect:Ctrl-C stops watching' end -- "$BURST" attach
	is $STATUS 0 "exit status of attach: $(cat term.txt)"
	is "$(LC_ALL=C grep -c $'\033' "$BURST_STATE_DIR"/runs/*/client.log)" 0 "sequences in the client's log"
}

# ---- the time left ----

# eta_holds WHAT: runs, and compares each ETA of its view from the middle of the run on with the time that was left then: two of
# three are within a third of it, or within 1.5 s
eta_holds() {
	timeout -k 5 "$LIMIT" python3 - "$1" "$BURST" run >eta.txt 2>&1 <<-'E' || complain "$(tail -n 1 eta.txt)"
		import glob, json, os, subprocess, sys, time
		run = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open("err.txt", "w"))
		began, samples, last = time.monotonic(), [], None
		while run.poll() is None:
		    for name in glob.glob(os.environ["BURST_STATE_DIR"] + "/runs/*/view"):
		        try:
		            view = json.load(open(name))
		        except (OSError, ValueError):
		            continue  # it is being written, or gone
		        if view["age"] != last:
		            last = view["age"]
		            samples.append((time.monotonic(), view["eta"] / 1000, view["finish"]))
		    try:
		        run.wait(0.05)
		    except subprocess.TimeoutExpired:
		        pass
		end = time.monotonic()
		middle = (began + end) / 2
		late = [(end - at, eta, finish) for at, eta, finish in samples if at >= middle]
		good = [1 for left, eta, _ in late if 0 <= eta and abs(eta - left) <= max(left / 3, 1.5)]
		for left, eta, finish in late:
		    print(f"left {left:.1f} s, ETA {eta:.1f} s, finish {finish}")
		print(f"{sys.argv[1]}: {len(good)} of {len(late)} ETAs are right (exit {run.returncode}):",
		      " ".join(f"{eta:.1f}/{left:.1f}{chr(39) * finish}" for left, eta, finish in late))
		sys.exit(run.returncode or not late or 3 * len(good) < 2 * len(late))
	E
}
long_lines() { # long_lines N: about 50 s of sound each
	local i
	for i in $(seq "$1"); do
		printf '{"id":"l%03d","text":"%s"}\n' "$i" "$(printf "This is sentence $i of a long text, and it is read at leisure. %.0s" $(seq 12))"
	done >script.jsonl
}
t_the_eta_of_a_short_run() {
	LIMIT=120
	slow_segments 16
	eta_holds "no join"
	JOB="$JOB join = { gap = 0.1; };" config 'pods = 1; code = { path = "code"; };'
	rm -rf out
	eta_holds "a short join"
}
t_the_eta_of_a_long_join() { # on a first run: nothing is known of this machine
	command -v ffmpeg >/dev/null || { skip "no ffmpeg"; return; }
	LIMIT=300
	JOB='join = { gap = 0.1; loudness = -18; };'
	long_lines 12
	config 'pods = 1;'
	eta_holds "a long join"
	grep -q 'finish 1' eta.txt || complain "the second half of the run has no join: $(cat eta.txt)"
}

# ---- attach ----

# watched_run: a run in the background, half a second a segment; its id in $RUN
watched_run() {
	slow_segments 40
	burst_bg run
	wait_for 30 "a file" file_count out 1
	RUN=$("$BURST" ledger --json | jq -r '.[0].run')
}
t_attach() {
	watched_run
	on_terminal 100x24 'once:ETA' 'expect:working' 'expect:[0-9]/40 .*ETA [0-9]' shot:screen 'expect:[1-3][0-9]/40' \
		'send:\x03' end -- "$BURST" attach "$RUN"
	is $STATUS 130 "exit status of attach: $(cat term.txt)"
	hasnt screen "code: 1 entry" # it was said before
	has screen "earlier lines: \`burst logs $RUN\`"
	has screen "e2e  run $RUN"
	has screen "Ctrl-C stops watching; the run continues"
	running_as "$PID" || complain "the run has ended"
	"$BURST" cancel "$RUN" >/dev/null 2>&1
	burst_wait
	[ ! -e "$BURST_STATE_DIR/runs/$RUN/view" ] || complain "the copy of the view is left behind"
}
t_attach_without_a_copy() { # of another version, or on a full disk: what the ledger has
	watched_run
	rm -f "$BURST_STATE_DIR/runs/$RUN/view"
	mkdir "$BURST_STATE_DIR/runs/$RUN/view"
	on_terminal 100x24 'expect:working' 'expect:[0-9]/40 .*ETA unknown' 'send:\x03' end -- "$BURST" attach "$RUN"
	is $STATUS 130 "exit status of attach: $(cat term.txt)"
	"$BURST" cancel "$RUN" >/dev/null 2>&1
	burst_wait
}
t_attach_piped() {
	watched_run
	"$BURST" attach "$RUN" >attach.txt 2>&1 </dev/null &
	local attached=$!
	wait_for 30 "a total" grep -qE '^20[0-9-]+T[0-9:]+Z [0-9]+/40 \([0-9]+ %\), .*ETA [0-9]+s, \$' attach.txt
	has attach.txt "run $RUN: attached (job \"e2e\" in "
	grep -qE "^[0-9]+ earlier lines?: .burst logs $RUN.$" attach.txt || complain "no word of the log: $(head -n 3 attach.txt)"
	hasnt attach.txt "code: 1 entry"
	grep -qE '^20[0-9-]+T[0-9:]+Z pod local-[0-9a-f]+: working( \(no GPU.*)?$' attach.txt || complain "no pod: $(cat attach.txt)"
	"$BURST" cancel "$RUN" >/dev/null 2>&1
	burst_wait
	wait $attached
	is $? 143 "exit status of attach"
	LC_ALL=C grep -q $'\033' attach.txt && complain "it drives a terminal"
}

run_tests "$@"
