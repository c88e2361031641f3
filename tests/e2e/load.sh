#!/bin/bash
# load.sh - wide runs and long jobs in a small form; `make bench BENCH=load` has them large.
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/runpod/wide.sh"

t_sixty_pods() {
	local why
	why=$(wide_can) || { skip "$why"; return; }
	wide_run 60 600 400 3 && wide_right 60 600
	rp_stop
}

run_tests "$@"
