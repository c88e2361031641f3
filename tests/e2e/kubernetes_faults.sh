#!/bin/bash
# kubernetes_faults.sh - what an API server, the nodes behind it and whatever lies between do to a client: the run goes on, or ends with
# one clear line, and no pod is left. The stand-in (tests/cloud/kubernetes), with the real kubectl between.
# shellcheck disable=SC2317 # c_ functions are called by names put together
. "$(dirname "$0")/kubernetes_lib.sh"

# ---- replies ----

GONE='{"status":410,"reason":"Expired","message":"The provided continue parameter is too old to display a consistent list result."}'
c_a_page_expires() { # each pod is on a page of its own
	fault "list pods" '{"page":1}' -1
	kb_fault '{"when":{"op":"list pods","page":"next"},"times":2,"do":'"$GONE"'}'
	script_lines 12
	slow_worker SLOW=0.5 MAX_BATCH=1
	kb_config 'pods = 2; code = { path = "code"; };'
	no_volume
	burst run --goal time --json
	all_done 12 2
	[ "$(asked "list pods" '.status == 410')" = 2 ] || complain "no page has expired"
}
c_replies_are_cut() { # the create's, too, which made its pod
	fault "list pods" '{"cut":true}' 2
	fault "create pods" '{"cut":true}'
	fault "delete pods" '{"cut":true}'
	one_pod
}
c_told_to_wait() {
	fault "create pods" '{"status":429,"reason":"TooManyRequests","message":"slow down","retry_after":1}' 2
	fault "list pods" '{"status":429,"reason":"TooManyRequests","message":"slow down","retry_after":1}' 2
	fault "delete pods" '{"status":429,"reason":"TooManyRequests","message":"slow down","retry_after":1}' 2
	one_pod
}
c_told_to_wait_for_good() {
	fault "create pods" '{"status":429,"reason":"TooManyRequests","message":"slow down","retry_after":1}' -1
	script_lines 2
	kb_config 'pods = 1; wait = "6s";'
	no_volume
	burst run --json
	fails 4 "slow down"
}
c_requests_get_no_answer() {
	fault "list pods" '{"delay_ms":3600000}'
	fault "create pods" '{"delay_ms":3600000}'
	one_pod
}
t_replies() { cases c_requests_get_no_answer c_a_page_expires c_replies_are_cut c_told_to_wait c_told_to_wait_for_good; }

# ---- lines ----

exec_fault() { kb_fault "{\"when\":{\"op\":\"exec\"},\"skip\":${2:-0},\"times\":${3:-1},\"do\":{\"exec\":$1}}"; }
c_an_exec_never_ends() { exec_fault '{"no_end":true}'; one_pod; } # that of the keys
c_no_exec_passes_the_end_of_its_input_on() { exec_fault '{"no_eof":true}' 0 -1; one_pod; }
c_an_idle_line_is_cut() { # while the pod is silent for longer
	exec_fault '{"idle_cut_ms":1500}' 0 -1
	script_lines 2
	slow_worker SLOW=5 MAX_BATCH=1
	kb_config 'pods = 1; code = { path = "code"; };'
	no_volume
	burst run --json
	all_done 2 1
}
c_a_line_is_mute() { exec_fault '{"mute":true}' 1; LIMIT=150 one_pod; }
c_every_line_is_mute() {
	exec_fault '{"mute":true}' 0 -1
	script_lines 2
	GPUS='"L40S"' kb_config 'pods = 1; boot_limit = "20s"; wait = "20s";'
	no_volume
	LIMIT=150 burst run --json
	fails 6 "did not boot"
}
t_lines() { cases c_every_line_is_mute c_a_line_is_mute c_an_exec_never_ends c_no_exec_passes_the_end_of_its_input_on c_an_idle_line_is_cut; }

# ---- the server ----

away() { kb_control away "{\"ms\":$1}" >/dev/null; }
c_it_restarts() {
	rendered 12
	wait_for 60 "the first file" is_working
	away 3000
	burst_wait
	all_done 12 1
}
c_it_is_away_when_pods_are_to_be_released() {
	rendered 4
	wait_for 60 "all files but some" file_count out 2
	away 12000
	burst_wait
	all_done 4 1
}
clock_is() { # clock_is MS: and nothing of the bill depends on it
	kb_control clock "{\"ahead_ms\":$1}" >/dev/null
	one_pod
	is "$(json '.billed_seconds > 0 and .billed_seconds < 60')" true "billed seconds: $(json .billed_seconds)"
	burst doctor
	has out.txt "this machine's clock is"
}
c_its_clock_is_an_hour_ahead() { clock_is 3600000; }
c_its_clock_is_an_hour_behind() { clock_is -3600000; }
t_the_server() { cases c_it_is_away_when_pods_are_to_be_released c_it_restarts c_its_clock_is_an_hour_ahead c_its_clock_is_an_hour_behind; }

run_tests "$@"
