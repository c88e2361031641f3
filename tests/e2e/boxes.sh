#!/bin/bash
# boxes.sh - pods on own boxes, which OpenSSH's client reaches: real sshds on loopback, ordinary users.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/boxes_lib.sh"

t_a_run() {
	boxes b1 || return
	script_lines 12
	box_config 'pods = 1;'
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 12
	is "$(ledger 'select count(*) from pod where id like "b1:%" and state = "gone"')" 1 "pods"
	boxes_gone
}

t_it_conforms() {
	boxes b1 || return
	gpus b1 "NVIDIA GeForce RTX 4090" "NVIDIA GeForce RTX 4090" "NVIDIA L40S" "NVIDIA L40S"
	box_config
	mkdir -p "$BURST_STATE_DIR"
	BURST=$BURST timeout 120 "$ROOT/build/e2e/conform" ssh >said.txt 2>&1 || complain "conform: $(grep -m 2 -v '^\[' said.txt | tr '\n' ' ')"
	boxes_gone
}
# The job of the first page in small: two pods on two hosts, each with one slot.
t_two_boxes() {
	boxes b1 b2 || return
	slow_segments 16
	box_config 'pods = 2; code = { path = "code"; };'
	burst run
	is $STATUS 0 "exit status ($(tail -n 3 err.txt))"
	all_right 16
	is "$(ledger 'select group_concat(region) from (select distinct region from pod where state = "gone" order by region)')" b1,b2 "hosts"
	boxes_gone
}

run_tests "$@"
