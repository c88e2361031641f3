#!/bin/bash
# vast.sh - burst at Vast.ai, against the stand-in: what only this vendor has.
# shellcheck disable=SC2317 # c_ functions are called by names put together
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/vast/client.sh"

t_conformance() {
	cloud || return
	BURST=$BURST BURST_STATE_DIR=$T/state timeout 120 "$ROOT/build/e2e/conform" vast >conform.txt 2>&1 ||
		complain "conform: $(grep -v "^\[ *\(RUN\|=\)" conform.txt | head -n 3 | tr "\n" "|")"
	is "$(va_pods | wc -l)" 0 "pods that are left"
	va_stop
}

t_a_job_from_offer_to_release() {
	cloud || return
	script_lines 6
	va_config
	burst run --json
	all_done 6 1
	schema run
	is "$(json '.pods[0] | .provider + " " + .gpu')" "vast RTX 4090" "its pod"
	all_paid_for
	no_secrets_in state err.txt out.txt
	cloud_over
}

run_tests "$@"
