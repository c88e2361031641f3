#!/bin/bash
# terminal.sh - no text from outside drives a terminal: not a vendor's (names of GPUs, states, details, logs, errors, what lies
# on a volume), not a project's. Looked at: the live display, plain lines, every command, the run's own log, and JSON, which
# must be valid besides. What a pod says is in tests/e2e/hostile.sh.
. "$(dirname "$0")/../e2e/lib.sh"
. "$ROOT/tests/cloud/runpod/client.sh"

# as JSON writes them: colours, a title, DEL, an 8-bit CSI (C1), and a mark that turns the direction of writing
SHORT='\u001b[31m\u009b'
ESC='\u001b[31mred\u001b]0;title\u0007\u007f\u009b2J\u202edlrow\r\nforged line'

# unhurt FILE...: nothing but what a terminal shows: no control but newline, no C1, no mark of direction
unhurt() {
	local file
	for file; do
		[ -s "$file" ] || complain "$file is empty: nothing was looked at"
		python3 - "$file" <<-'E' || complain "$(basename "$file"): $(cat bad)"
			import sys
			text = open(sys.argv[1], "rb").read().decode("utf-8", "replace")
			bad = [c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u061c" or
			       0x200e <= ord(c) <= 0x200f or 0x2028 <= ord(c) <= 0x202e or 0x2066 <= ord(c) <= 0x2069)]
			if bad:
			    at = text.index(bad[0])
			    open("bad", "w").write(ascii(text[max(at - 60, 0):at + 30]))
			    sys.exit(1)
		E
		! grep -qx "forged line.*" "$file" || complain "$(basename "$file"): a vendor's text begins a line of its own"
	done
}
# What a terminal gets of a live display, without the sequences that are burst's own: to the line's begin and up, clear, colours.
as_shown() {
	sed -e 's/\r\?\x1b\[[0-9]*A//g' -e 's/\r\?\x1b\[2K//g' -e 's/\x1b\[J//g' -e 's/\x1b\[\(1\|2\|31\|32\|33\|36\|0\)m//g' -e 's/\r*$//' "$1"
}
rule() { rp_control fault "{\"when\":{\"op\":\"$1\"},\"times\":${3:--1},\"do\":$2}" >/dev/null; }
say_all() { # say_all NAME: what every command that looks at such things prints
	local i=0 line
	while read -r line; do
		i=$((i + 1))
		# shellcheck disable=SC2086
		burst $line
		cat out.txt err.txt >"$1.$i"
		unhurt "$1.$i"
	done
}

c_what_a_vendor_says_while_a_job_runs() {
	slow_worker SLOW=0.3
	rp_config 'code = { path = "code"; };'
	script_lines 8
	# everything that a listing or a look at a pod has texts in, but the id
	rule 'listPods|getPod' "{\"set\":{\"name\":\"n$ESC\",\"dataCenterId\":\"EU$ESC\",\"statusMessage\":\"$ESC\",\"imageName\":\"$ESC\"}}"
	rule 'listGpus' "{\"set\":{\"name\":\"$ESC\"}}"
	rule 'createPod' "{\"status\":400,\"detail\":\"no longer any instances available $ESC\"}" 1
	burst run --json -v --trace
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	schema run <(tail -n 1 out.txt)
	has err.txt 'no longer any instances available'
	cp "$BURST_STATE_DIR"/runs/*/log log.txt
	unhurt err.txt out.txt log.txt
	say_all after <<-E
		ps
		ps --json
		ledger
		ledger --json
		ledger $(json .run)
		logs $(json .run)
		offers
		offers --json
	E
}
a_strange_gpu() { # the cheapest one, of a type that has such a name
	rp_control stock "{\"gpu\":\"$RTX4090\",\"price\":0.01}" >/dev/null
	rp_control stock "{\"gpu\":\"$RTX4090\",\"rename\":\"X$ESC\"}" >/dev/null
}
c_a_live_display() {
	command -v script >/dev/null || { skip "no script(1)"; return; }
	slow_worker SLOW=0.5
	GPUS='' rp_config 'code = { path = "code"; };'
	sed -i '/^gpu = /d' burst.cfg
	script_lines 6
	a_strange_gpu
	rule 'listPods|getPod' "{\"set\":{\"status\":\"$ESC\"}}" 3
	TERM=xterm script -qefc "stty cols 200; exec '$BURST' run" /dev/null </dev/null >term.raw 2>&1
	is $? 0 "exit status ($(tail -n 2 term.raw))"
	grep -q '\[2K' term.raw || complain "it was no live display"
	as_shown term.raw >term.txt
	grep -q 'X\\x1b' term.txt || complain "its name was not on the display"
	unhurt term.txt
}
c_offers_and_errors() { # types of GPU that nobody knows, words of refusals, and a bill
	script_lines 2
	rp_config
	sed -i '/^gpu = /d' burst.cfg
	a_strange_gpu
	say_all unknown <<-E
		offers
		offers --json
		plan
		run -v
		ps
		ledger
	E
	has unknown.1 '\x1b[31mred'
	burst offers --json
	schema offers out.txt
	jq -re '.[0].gpu' out.txt | LC_ALL=C grep -q "$(printf '\033')" || complain "JSON does not carry the name as it is"
	curl -qsS -X DELETE "$RUNPOD_API_URL/_control/faults" >/dev/null
	rule '.*' "{\"status\":422,\"detail\":\"$ESC\"}"
	rm -r out
	say_all refused <<-E
		offers
		doctor
		run --json
		reap
		volume ls
	E
	has refused.3 '422 from RunPod: \\x1b[31mred'
}
c_strangers_pods_and_volumes() { # found on the account: marks and names that others chose
	script_lines 2
	rp_config
	rp_api POST /v2/pods "{\"name\":\"burst-x\",\"image\":\"host/tts:1\",\"cloud\":\"SECURE\",\"gpu\":{\"id\":\"$RTX4090\",\"count\":1},\"disk\":10,
		\"ports\":[\"22/tcp\"],\"args\":\"sleep 600\",\"env\":{\"BURST_MACHINE\":\"m$SHORT\",\"BURST_RUN\":\"r$SHORT\",\"BURST_ATTEMPT\":\"a$SHORT\",\"BURST_HARD_END\":\"9999999999\"}}"
	is "$HTTP" 201 "the stranger's pod ($(cat reply.json))"
	local id
	id=$(jq -r .id reply.json)
	rp_api POST /v2/network-volumes '{"name":"v","size":10,"dataCenter":"EU-RO-1"}'
	rule 'listVolumes' "{\"set\":{\"name\":\"v$ESC\"}}"
	say_all found <<-E
		reap
		volume ls
		volume ls --json
		ps
	E
	has found.1 'run r\x1b[31m'
	has found.2 'v\x1b[31mred'
	burst reap "$id" --force
	touch "$BURST_STATE_DIR/ledger.db"
	echo "$id" >"$BURST_STATE_DIR/ledger.db.not" # it is in no ledger, and need not be
}
c_what_lies_on_a_volume() { # names in an S3 listing, words of an S3 error
	script_lines 2
	rp_config
	burst run --json
	all_done 2 1
	local folder
	folder=$RP_STATE/volumes/$(rp_control state | jq -r '.volumes[0].id')
	mkdir -p "$folder/runs/$(printf 'r\033[31m\302\2332J')/p" "$folder/env/.half.$(printf '\033]0;x\007')"
	echo x | tee "$folder/runs/$(printf 'r\033[31m\302\2332J')/p/f" >"$folder/env/.half.$(printf '\033]0;x\007')/f"
	say_all gc <<-E
		volume gc v --older-than 0s -n
		volume gc v --older-than 0s --force -y
	E
	rule 's3:.*' "{\"status\":403,\"body\":\"<Error><Code>X\u001b[31m</Code><Message>\u009b2J\u001b]0;x\u0007</Message></Error>\"}"
	say_all s3 <<-E
		volume gc v --older-than 0s
	E
}
t_what_vendors_say() {
	cases c_what_a_vendor_says_while_a_job_runs c_a_live_display c_offers_and_errors c_strangers_pods_and_volumes c_what_lies_on_a_volume
}
t_a_projects_names() { # what a cloned repository is called, and what its settings hold
	local dir
	dir=$T/$(printf 'repo\033[31m\302\2332J')
	mkdir -p "$dir"
	cd "$dir" || return
	script_lines 2
	config
	sed -i 's/output = "out"/output = "o\\x1b]0;title\\x07"/' burst.cfg
	# its folder is no name for a job; this one is
	burst run -v
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	unhurt err.txt
	burst ledger "$("$BURST" ledger --json | jq -r '.[0].run')"
	unhurt out.txt
	burst ledger --json
	unhurt out.txt
	jq -e . out.txt >/dev/null || complain "no valid JSON"
	config 'zebra = 1;'
	sed -i "s/zebra/ze\\x1b[31mbra/" burst.cfg
	burst run
	is "$STATUS" 2 "exit status of a bad file"
	unhurt err.txt
	burst run "$(printf 'no\033[2Jsuch.cfg')"
	is "$STATUS" 2 "exit status without a file"
	unhurt err.txt
	cd "$T" || return
	mv "$dir"/err.txt .
}

run_tests "$@"
