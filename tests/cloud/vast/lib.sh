# lib.sh - a Vast.ai of one's own for a test: `. tests/cloud/vast/lib.sh` after tests/e2e/lib.sh.
#
#   va_start [options of server.js]   starts one in $T/cloud (--fast unless VA_SLOW is set); sets VAST_API_URL and VAST_API_KEY for burst
#   va_stop                           ends it and complains of whatever is left; call it at the end of each test
#   va_api METHOD PATH [BODY]         a request with the account's key: status in $HTTP, body in reply.json
#   va_control PATH [BODY]            the control: POST with a body, else GET; prints the answer
#   va_rule WHEN DO [MORE]            va_rule '"op":"createInstance"' '"status":500' '"times":3'
#   va_pods                           a line "ID STATUS NAME" for each instance that lives
#   va_get ID JQ-FILTER, va_invariants
# shellcheck shell=bash
VA_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR
. "$VA_HERE/../common/lib.sh"
VA_PID=

va_start() {
	local fast=--fast
	[ -z "${VA_SLOW:-}" ] || fast=
	VA_STATE=$T/cloud
	mkdir -p "$VA_STATE"
	coproc VA_SERVER { exec node "$VA_HERE/server.js" --state "$VA_STATE" --podbox "$PODBOX" --tied ${fast:+"$fast"} "$@" 2>"$VA_STATE/stderr"; }
	VA_PID=$VA_SERVER_PID
	read -rt 20 VAST_API_URL <&"${VA_SERVER[0]}" || {
		complain "the stand-in did not start: $(tail -n 3 "$VA_STATE/stderr")"
		return 1
	}
	VAST_API_KEY=$(cat "$VA_STATE/account.key")
	export VAST_API_URL VAST_API_KEY
}

va_stop() { # what is left is a complaint
	[ -n "$VA_PID" ] || return 0
	# shellcheck disable=SC2046
	cloud_end "$VA_PID" "$VA_STATE" $(va_control state | jq -r '.pods[].pid | select(. > 0)')
	VA_PID=
}

va_api() { # METHOD PATH [BODY]
	HTTP=$(curl -qsS -g --max-time 30 -o reply.json -w '%{http_code}' -X "$1" -H "Authorization: Bearer ${VA_KEY-$VAST_API_KEY}" \
		${3+-H "Content-Type: application/json"} ${3+--data-binary "$3"} "$VAST_API_URL$2" 2>curl.err)
}
va_control() { # PATH [BODY]
	curl -qsS --max-time 30 ${2+--data-binary "$2"} "$VAST_API_URL/_control/$1"
}
va_rule() { # WHEN DO [MORE]
	va_control fault "{\"when\":{$1},\"do\":{$2}${3:+,$3}}" >/dev/null
}
va_pods() {
	va_control state | jq -r '.pods[] | select(.ended_ms == null) | "\(.id) \(.actual) \(.name)"'
}
va_get() { # ID JQ-FILTER
	va_control state | jq -r --arg id "$1" ".pods[] | select(.id == \$id) | $2"
}
va_is() { # ID JQ-FILTER TEXT
	[ "$(va_get "$1" "$2")" = "$3" ]
}
va_invariants() {
	local broken
	broken=$(va_control invariants | jq -r '.broken[]')
	[ -z "$broken" ] || complain "$broken"
}
