#!/bin/sh
# end.sh - how a pod ends itself at Vast.ai: by a request to its API, with the key of this one instance, which may start, stop and
# destroy it. Follows providers/http.sh, precedes jobs/agent/start.sh, and uses their functions and variables.
#
# shellcheck disable=SC2034,SC2154,SC2317 # http.sh reads the variables, sets others and calls the functions

# The key leaves the environment before any child could inherit it.
api_key=$CONTAINER_API_KEY
unset CONTAINER_API_KEY
api_root=https://console.vast.ai

# To start an instance that runs changes nothing: Vast's own guide tests the key so.
ask() { # TOOL
	request "$1" PUT "/api/v0/instances/$CONTAINER_ID/" '{"state":"running"}'
}

# A refusal may have the status 200. A stopped instance still bills its disk, so there is no other way than DELETE.
end_by() { # TOOL WAY
	request "$1" DELETE "/api/v0/instances/$CONTAINER_ID/" ''
	accepted && ! grep -q '"success": *false' "$reply" 2>/dev/null
}

end_by_all_ways() { # TOOL
	step=delete
	end_by "$1" $step && return
	note_refusal
	return 1
}

other_way() {
	step=delete
}

vendor_switch() {
	begin_switch "$CONTAINER_ID"
}
