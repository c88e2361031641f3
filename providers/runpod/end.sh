#!/bin/sh
# end.sh - how a pod ends itself at RunPod: by a request to its API, with the key that RunPod gives each pod. Follows
# providers/http.sh, precedes jobs/agent/start.sh, and uses their functions and variables.
#
# shellcheck disable=SC2034,SC2154,SC2317 # http.sh reads the variables, sets others and calls the functions

# The key leaves the environment before any child could inherit it.
api_key=$RUNPOD_API_KEY
unset RUNPOD_API_KEY
api_root=https://api.runpod.io

ask() { # TOOL
	request "$1" GET "/v2/pods/$RUNPOD_POD_ID" ''
}

# GraphQL answers 200 to refused requests too; the body has the result.
accepted_by_graphql() {
	accepted && grep -q '"data"' "$reply" 2>/dev/null && ! grep -q '"errors"' "$reply"
}

# Ends this pod in one way. Succeeds if the API accepted it.
end_by() { # TOOL WAY
	id=$RUNPOD_POD_ID
	case $2 in
	delete) request "$1" DELETE "/v2/pods/$id" '' ;;
	terminate) request "$1" POST "/v2/pods/$id/action" '{"action":"terminate"}' ;;
	graphql) request "$1" POST /graphql "{\"query\":\"mutation{podTerminate(input:{podId:\\\"$id\\\"})}\"}" ;;
	stop) request "$1" POST "/v2/pods/$id/action" '{"action":"stop"}' ;;
	graphql_stop) request "$1" POST /graphql "{\"query\":\"mutation{podStop(input:{podId:\\\"$id\\\"}){id}}\"}" ;;
	esac
	case $2 in
	graphql*) accepted_by_graphql ;;
	*) accepted ;;
	esac
}

# Tries all ways and returns at the first accepted one. RunPod may remove GraphQL. A stopped pod still costs its disk and cannot
# retry, so stopping is only for keys that may do nothing better. Gives up on a tool without a reply, or if the API is rate limited.
end_by_all_ways() { # TOOL
	for step in delete terminate graphql stop graphql_stop; do
		case $step in
		*stop) [ -n "$refused" ] || return 1 ;;
		esac
		end_by "$1" $step && return
		case $http in
		000 | 429)
			note_refusal
			return 1
			;;
		esac
		[ $step = graphql ] || [ $step = stop ] || note_refusal
		case "$2 $step $http" in
		'again delete 40'[13]) return 1 ;;
		esac
	done
	return 1
}

# Stopping is only for keys that may do nothing better.
other_way() {
	case $((others % (${refused:+2} + 2))) in
	1) step=terminate ;;
	0) step=graphql ;;
	2) step=stop ;;
	3) step=graphql_stop ;;
	esac
}

vendor_switch() {
	begin_switch "$RUNPOD_POD_ID"
}
