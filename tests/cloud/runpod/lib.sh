# lib.sh - a RunPod of one's own for a test: `. tests/cloud/runpod/lib.sh` after tests/e2e/lib.sh.
#
#   rp_start [options of server.js]   starts one in $T/cloud (--fast unless RP_SLOW is set); sets RUNPOD_API_URL, RUNPOD_API_KEY,
#                                     RUNPOD_S3_URL, RUNPOD_S3_ACCESS_KEY, RUNPOD_S3_SECRET_KEY for burst
#   rp_stop                           ends it and complains of whatever is left; call it at the end of each test
#   rp_api METHOD PATH [BODY]         a request with the account's key: status in $HTTP, body in reply.json, head in reply.head
#   rp_control PATH [BODY]            the control: POST with a body, else GET; prints the answer
#   rp_fault NAME [JSON MEMBERS]      rp_fault F5 '"times":3,"when":{"gpu":".*4090"}'
#   rp_pods                           a line "ID STATUS NAME" for each pod that lives
#   rp_wait_status ID STATUS [SECONDS], rp_log ID, rp_s3 METHOD PATH [curl options], rp_invariants
# shellcheck shell=bash
RP_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR
. "$RP_HERE/../common/lib.sh"
RP_PID=

rp_can() { cloud_can; }

rp_start() {
	local fast=--fast
	[ -z "${RP_SLOW:-}" ] || fast=
	RP_STATE=$T/cloud
	mkdir -p "$RP_STATE"
	coproc RP_SERVER { exec node "$RP_HERE/server.js" --state "$RP_STATE" --podbox "$PODBOX" --tied ${fast:+"$fast"} "$@" 2>"$RP_STATE/stderr"; }
	RP_PID=$RP_SERVER_PID
	read -rt 20 RUNPOD_API_URL <&"${RP_SERVER[0]}" || {
		complain "the stand-in did not start: $(tail -n 3 "$RP_STATE/stderr")"
		return 1
	}
	RUNPOD_API_KEY=$(cat "$RP_STATE/account.key")
	RUNPOD_S3_URL=$(cat "$RP_STATE/s3.url")
	RUNPOD_S3_ACCESS_KEY=$(cat "$RP_STATE/s3.access")
	RUNPOD_S3_SECRET_KEY=$(cat "$RP_STATE/s3.secret")
	export RUNPOD_API_URL RUNPOD_API_KEY RUNPOD_S3_URL RUNPOD_S3_ACCESS_KEY RUNPOD_S3_SECRET_KEY
}

rp_stop() { # what is left is a complaint
	[ -n "$RP_PID" ] || return 0
	# shellcheck disable=SC2046
	cloud_end "$RP_PID" "$RP_STATE" $(rp_control state | jq -r '.pods[].pid | select(. > 0)')
	RP_PID=
}

rp_api() { # METHOD PATH [BODY]
	HTTP=$(curl -qsS -g --max-time 30 -o reply.json -D reply.head -w '%{http_code}' -X "$1" -H "Authorization: Bearer ${RP_KEY-$RUNPOD_API_KEY}" \
		${3+-H "Content-Type: application/json"} ${3+--data-binary "$3"} "$RUNPOD_API_URL$2" 2>curl.err)
}
rp_control() { # PATH [BODY]
	curl -qsS --max-time 30 ${2+--data-binary "$2"} "$RUNPOD_API_URL/_control/$1"
}
rp_fault() { # NAME [MEMBERS]
	rp_control fault "{\"fault\":\"$1\"${2:+,$2}}" >/dev/null
}
rp_pods() {
	rp_control state | jq -r '.pods[] | select(.ended_ms == null) | "\(.id) \(.status) \(.name)"'
}
rp_get() { # ID JQ-FILTER: of what the API says of a pod at this moment, without being counted
	rp_control state | jq -r --arg id "$1" ".pods[] | select(.id == \$id) | $2"
}
rp_is() { # ID JQ-FILTER TEXT
	[ "$(rp_get "$1" "$2")" = "$3" ]
}
rp_wait_status() { # ID STATUS [SECONDS]
	wait_for "${3:-20}" "pod $1 to be $2" rp_is "$1" .status "$2"
}
rp_log() { # ID
	rp_get "$1" '.log[]'
}
rp_s3() { # METHOD PATH [curl options]: signed as AWS does; RP_REGION says where the volume is
	local method=$1 path=$2
	shift 2
	HTTP=$(curl -qsS --max-time 60 -o reply.s3 -D reply.head -w '%{http_code}' -X "$method" --aws-sigv4 "aws:amz:${RP_REGION:-EU-RO-1}:s3" \
		--user "${RP_S3_USER-$RUNPOD_S3_ACCESS_KEY:$RUNPOD_S3_SECRET_KEY}" "$@" "$RUNPOD_S3_URL$path" 2>curl.err)
}
rp_invariants() {
	local broken
	broken=$(rp_control invariants | jq -r '.broken[]')
	[ -z "$broken" ] || complain "$broken"
}
