#!/bin/bash
# vendor.sh - a vendor whose answers attack the client: what it names as an address is no option of ssh, whoever asks later.
# shellcheck disable=SC2317 # c_ functions are called by names put together
. "$(dirname "$0")/../e2e/lib.sh"
. "$ROOT/tests/cloud/runpod/client.sh"

# Every answer names this as the sshd of the first pod.
direct() { # direct MEMBERS
	rp_control fault "{\"times\":${TIMES:-1},\"when\":{\"op\":\"getPod|listPods|createPod\"},\"do\":{\"set\":{\"status\":\"RUNNING\",\"ssh\":{\"proxy\":null,\"direct\":{$1}}}}}" >/dev/null ||
		complain "no such fault"
}
another_did() { # another_did WORDS
	script_lines 3
	rp_config
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "$1"
	is "$(json '[.pods[].released] | all')" true released
	is "$(pods_ever)" 2 "pods that ever were"
	is "$(ledger "select count(*) from pod where user like '-%' or host like '-%' or host like '% %'")" 0 "such addresses in the ledger"
}
c_a_user_that_is_an_option() {
	direct "\"host\":\"127.0.0.1\",\"port\":22,\"username\":\"-oProxyCommand=touch owned\""
	another_did 'answer cannot be trusted: it names "-oProxyCommand=touch owned'
}
c_a_host_that_is_an_option() {
	direct '"host":"-oProxyCommand=x","port":22,"username":"root"'
	another_did 'it names "-oProxyCommand=x" as its host for ssh'
}
c_a_ledger_of_an_older_version() { # which believed it
	script_lines 20
	slow_worker SLOW=0.5
	rp_config 'code = { path = "code"; };'
	burst_bg run --json
	wait_for 90 "the first files" file_count out 1
	ledger "update pod set user = '-oProxyCommand=touch $T/owned;false'"
	local pod
	pod=$(rp_pods | cut -d' ' -f1 | head -n 1)
	burst ssh "$pod" true
	is "$STATUS" 6 "exit status of ssh ($(cat err.txt))"
	has err.txt "its user"
	kill "$PID"
	burst_wait
	[ ! -e owned ] || complain "the command ran"
}
t_addresses_that_are_options() {
	cases c_a_user_that_is_an_option c_a_host_that_is_an_option c_a_ledger_of_an_older_version
}

run_tests "$@"
