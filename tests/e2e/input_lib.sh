# input_lib.sh - what the tests of refused runs share.
# shellcheck shell=bash

refused() { # refused STATUS TEXT...: `burst run` ends so, says so, and rents nothing
	local want=$1 text
	shift
	burst run
	is "$STATUS" "$want" "exit status ($(tail -n 2 err.txt))"
	for text; do has err.txt "$text"; done
	is "$("$BURST" ledger --json | jq 'map(.cost_usd) | add // 0')" 0 "spent"
}
last_json() { # the last line of out.txt is the only object, and is by the schema
	is "$(grep -c '^{' out.txt)" 1 "objects printed ($1)"
	tail -n 1 out.txt >last.json
	schema run last.json
}
