#!/bin/bash
# wrong.sh - what people type wrong, and the exact messages: each row of wrong.txt is a command line and a config, the exit
# status, and all that burst writes to stderr. RECORD=1 writes what it says now into wrong.txt, for review.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
TABLE=$ROOT/tests/e2e/wrong.txt

# The row's lines begin with a word: "cfg" adds a line to the config, "only" is all of it, "run" the arguments.
wrong_row() {
	local kind rest
	printf '%s\n' 'provider = ["local"];' 'job = { type = "tts"; input = "s.jsonl"; };' >burst.cfg
	printf '%s\n' '{"text":"One."}' >s.jsonl
	rm -f err.txt
	: >args.txt
	while read -r kind rest; do
		case $kind in
		cfg) printf '%s\n' "$rest" >>burst.cfg ;;
		only) printf '%s\n' "$rest" >burst.cfg ;;
		none) rm burst.cfg ;;
		line) printf '%s\n' "$rest" >>s.jsonl ;;
		run) printf '%s\n' "$rest" >args.txt ;;
		esac
	done <row.txt
	eval "burst $(cat args.txt)"
	sed -i "s#$T#DIR#g" err.txt
}

# A row begins with "[its name]", and ends before the next.
t_wrong_inputs_and_their_messages() {
	local name rows
	export NO_COLOR=1
	csplit -s -z -n 3 -f row- "$TABLE" '/^\[/' '{*}'
	rows=(row-*)
	[ "${#rows[@]}" -ge 40 ] || complain "only ${#rows[@]} rows"
	for name in "${rows[@]}"; do
		grep -v '^exit \|^err ' "$name" >row.txt
		wrong_row
		{ sed '/^$/d' row.txt; echo "exit $STATUS"; sed 's/^/err /' err.txt; echo; } >now.txt
		[ -z "${RECORD:-}" ] || { cat now.txt >>new.txt; continue; }
		diff <(sed '/^$/d' "$name") <(sed '/^$/d' now.txt) >diff.txt || complain "$(head -n 1 "$name"): $(head -n 6 diff.txt | tr '\n' '|')"
	done
	[ -z "${RECORD:-}" ] || sed '$d' new.txt >"$TABLE"
	is "$(ledger 'select count(*) from pod' 2>/dev/null || echo 0)" 0 "pods rented"
}

run_tests "$@"
