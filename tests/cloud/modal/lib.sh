# lib.sh - a Modal of one's own for a test: `. tests/cloud/modal/lib.sh` after tests/e2e/lib.sh.
#
#   md_start [options of server.js]   starts one in $T/modal (--fast unless MD_SLOW is set); sets MODAL_SERVER_URL,
#                                     MODAL_TOKEN_ID, MODAL_TOKEN_SECRET for burst, MD_SIDE_URL for tests
#   md_stop                           ends it and complains of whatever is left; call it at the end of each test
#   md_control PATH [BODY]            the control: POST with a body, else GET; prints the answer
#   md_fault NAME [JSON MEMBERS]      md_fault throttled '"times":3,"when":{"op":"SandboxWait"}'
#   md_call METHOD [MESSAGE [MORE]]   one call by itself, all of what came back in reply.json; its grpc-status in $GRPC ("null":
#                                     none). MORE: JSON members, '"headers":{"te":null}'
#   md_sandboxes                      a line "ID STATE NAME" for each sandbox that is not over
#   md_get ID JQ-FILTER, md_is ID JQ-FILTER TEXT, md_wait_state ID STATE [SECONDS], md_invariants
# shellcheck shell=bash
MD_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export MD_PACKAGE=${MD_PACKAGE:-$ROOT/build/modal}
MD_PID=
# shellcheck source-path=SCRIPTDIR
. "$MD_HERE/../common/lib.sh"

md_can() { # may this machine have such sandboxes? says why not
	cloud_can || return 1
	bash "$MD_HERE/package.sh" "$MD_PACKAGE" 2>&1
}

md_start() {
	local fast=--fast
	[ -z "${MD_SLOW:-}" ] || fast=
	MD_STATE=$T/modal
	mkdir -p "$MD_STATE"
	coproc MD_SERVER { exec node "$MD_HERE/server.js" --state "$MD_STATE" --podbox "$PODBOX" --tied ${fast:+"$fast"} "$@" 2>"$MD_STATE/stderr"; }
	MD_PID=$MD_SERVER_PID
	read -rt 30 MODAL_SERVER_URL <&"${MD_SERVER[0]}" || {
		complain "the stand-in did not start: $(tail -n 3 "$MD_STATE/stderr")"
		return 1
	}
	MODAL_TOKEN_ID=$(cat "$MD_STATE/token.id")
	MODAL_TOKEN_SECRET=$(cat "$MD_STATE/token.secret")
	MD_SIDE_URL=$(cat "$MD_STATE/side.url")
	export MODAL_SERVER_URL MODAL_TOKEN_ID MODAL_TOKEN_SECRET MD_SIDE_URL MODAL_CONFIG_PATH=/nonexistent
}
md_stop() { # what is left is a complaint
	[ -n "$MD_PID" ] || return 0
	# shellcheck disable=SC2046
	cloud_end "$MD_PID" "$MD_STATE" $(md_control state | jq -r '.sandboxes[].pid | select(. > 0)')
	MD_PID=
}

md_control() { # PATH [BODY]
	curl -qsS --fail-with-body --max-time 60 ${2+--data-binary "$2"} "$MD_SIDE_URL/_control/$1"
}
md_fault() { # NAME [MEMBERS]
	local said
	said=$(md_control fault "{\"fault\":\"$1\"${2:+,$2}}" 2>&1) || complain "fault $1: $said"
}
md_call() { # METHOD [MESSAGE [MORE]]
	md_control call "{\"method\":\"$1\",\"message\":${2:-{\}}${3:+,$3}}" >reply.json
	GRPC=$(jq -r '.status | tostring' reply.json 2>/dev/null)
}
md_sandboxes() {
	md_control state | jq -r '.sandboxes[] | select(.result == null) | "\(.id) \(.state) \(.name)"'
}
md_get() { # ID JQ-FILTER
	md_control state | jq -r --arg id "$1" ".sandboxes[] | select(.id == \$id) | $2"
}
md_is() { # ID JQ-FILTER TEXT
	[ "$(md_get "$1" "$2")" = "$3" ]
}
md_wait_state() { # ID STATE [SECONDS]
	wait_for "${3:-20}" "sandbox $1 to be $2" md_is "$1" .state "$2"
}
md_invariants() {
	local broken
	broken=$(md_control invariants | jq -r '.broken[]')
	[ -z "$broken" ] || complain "$broken"
}
