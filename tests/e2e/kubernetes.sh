#!/bin/bash
# kubernetes.sh - pods on a Kubernetes cluster: the stand-in (tests/cloud/kubernetes), with the real kubectl between.
# shellcheck disable=SC2317 # c_ functions are called by names put together
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/kubernetes/client.sh"

c_a_run() {
	script_lines 6
	kb_config 'pods = 2;' && sed -i '/^volume/d' burst.cfg
	burst run --json
	all_done 6
}
t_runs() { cases c_a_run; }

run_tests "$@"
