# cloud_runpod_lib.sh - what the tests of the stand-in for RunPod share.
# shellcheck shell=bash

GPU='NVIDIA GeForce RTX 4090'
VENDOR_FILE=$ROOT/../shared/reference/runpod-openapi-v2.json
[ -e "$VENDOR_FILE" ] || VENDOR_FILE=$ROOT/shared/reference/runpod-openapi-v2.json

begin() { # starts one, or skips the test
	local why
	IMAGE=
	why=$(rp_can) || { skip "$why"; return 1; }
	rp_start
}
create() { # create NAME [JSON MEMBERS]: id in $ID
	rp_api POST /v2/pods "{\"name\":\"$1\",\"image\":\"${IMAGE:-runpod/pytorch:1.0.2}\",\"gpu\":{\"id\":\"$GPU\",\"count\":1},\"ports\":[\"22/tcp\"]${2:+,$2}}"
	ID=$(jq -r '.id // ""' reply.json)
}
want() { # want STATUS WHAT
	[ "$HTTP" = "$1" ] || complain "$2: got $HTTP, want $1: $(head -c 300 reply.json)"
}
keys() { ssh-keygen -q -t ed25519 -N '' -C test -f id; }
