# deliver_lib.sh - what the tests of deliveries share.
# shellcheck shell=bash

delivering() { # delivering 'COMMAND' [MORE KEYS]
	config "deliver = { run = \"$1\"; ${2:-} };"
}
runs() { ledger "select count(*) from run ${1:-}"; }
again() { # again WHAT: one line more, and all of them are delivered
	script_lines $(($(wc -l <script.jsonl) + 1))
	burst run --json -v
	is "$STATUS" 0 "exit status after $1 ($(tail -n 3 err.txt))"
	is "$(cat out/sum)" "$(cat out/s*.wav | sha256sum)" "what was delivered after $1"
	is "$(find out -name '.burst*')" "" "what is left of it in the output folder"
}
