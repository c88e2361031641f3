#!/bin/bash
# modal_contract.sh - the providers' conformance suite against a Modal of our own (tests/cloud/modal), on good days and bad.
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/modal/lib.sh"

conforms() { # with what was asked of the stand-in before
	timeout 120 "$ROOT/build/e2e/conform" modal >said.txt 2>&1 || complain "$(grep -m 2 -v '^\[' said.txt | tr '\n' ' ')"
}
asked() { # METHOD: so many times
	md_control requests | jq --arg op "$1" '[.[] | select(.op == $op)] | length'
}
cloud() {
	local why
	why=$(md_can) || { skip "$why"; return 1; }
	md_start || return 1
	make -s -C "$ROOT" BUILD=build e2e-tools || complain "it does not build"
}

t_keeps_the_contract_of_providers() {
	cloud || return
	conforms
	is "$(asked VolumePutFiles2) $(asked VolumeGetFile2)" "8 5" "calls about files" # a block that is there is not put again
	md_stop
}

t_keeps_it_when_addresses_expire() { # of blocks, on the way there and back: they are asked for again
	cloud || return
	md_fault dead_urls '"op":"VolumePutFiles2","times":2'
	md_fault dead_urls '"op":"VolumeGetFile2","times":2'
	conforms
	is "$(asked VolumePutFiles2) $(asked VolumeGetFile2)" "10 7" "calls about files"
	md_stop
}

run_tests "$@"
