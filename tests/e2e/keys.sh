#!/bin/bash
# keys.sh - a provider whose key is gone or refused, and pods whose end must be known all the same.
. "$(dirname "$0")/lib.sh"

pod_out_of_reach() { # pod_out_of_reach ID SECONDS: the oldest run has a pod at RunPod, too, whose hard end is in so many seconds
	ledger "create temp table t as select * from pod where id not like 'rp%' limit 1;
		update t set seq = null, attempt = '$1' || '_attempt', id = '$1', provider = 'runpod', account = 'x', state = 'live', gone_ms = 0, released_ms = 0,
			hard_end_s = strftime('%s') + $2, create_ms = (strftime('%s') + $2 - 600) * 1000, price_microusd_h = 600000, billed_ms = 0;
		insert into pod select * from t;
		update run set status = 'unreleased' where id = (select run from t)"
}

t_a_vendor_whose_key_is_gone() { # stops what comes after until the pod's hard end, and not for ever
	script_lines 2
	config
	unset RUNPOD_API_KEY
	burst run
	local old
	old=$(ledger 'select id from run')
	pod_out_of_reach rp1 600
	script_lines 4
	burst run
	is "$STATUS" 9 "a run before its hard end: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "pod rp1 of runpod may still be billing"
	# a newer run, which nothing bills for, is not the one that is meant
	ledger "create temp table t as select * from run; update t set seq = null, id = '9999-1', status = 'done', started_ms = started_ms + 1000; insert into run select * from t"
	burst cancel
	is "$STATUS" 9 "cancel: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "pod rp1"
	ledger "update pod set hard_end_s = hard_end_s - 2592000, create_ms = create_ms - 2592000000 where id = 'rp1'"
	burst run
	is "$STATUS" 0 "a run after its hard end: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "pod rp1 of runpod: runpod: no api_key"
	has err.txt "so it counts as gone: check the provider's console"
	is "$(wavs)" 4 files
	is "$(ledger "select state || ' ' || billed_ms || ' ' || cost_microusd from pod where id = 'rp1'")" "gone 600000 100000" "the pod"
	is "$(ledger "select status from run where id = '$old'")" "done" "the old run"
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt | tr '\n' '|'))"
	hasnt err.txt rp1
	# not before, unless somebody says so
	pod_out_of_reach rp2 600
	burst reap rp2 --force
	is "$STATUS" 9 "reap --force: exit status"
	has err.txt "pod rp2 of runpod: counts as gone without confirmation; it may bill until 20"
	is "$(ledger "select state from pod where id = 'rp2'")" gone "the pod"
	burst reap
	is "$STATUS" 0 "reap afterwards ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(ledger "select count(*) from run where status = 'unreleased'")" 0 "runs that are not released"
}

stub_of_the_vendor() { # its pid in $STUB, its address in the caller's RUNPOD_API_URL
	perl "$ROOT/tests/e2e/http_stub.pl" "$T/port" "$T/asked" "$T/codes" &
	STUB=$!
	wait_for 10 "a stub of the vendor's" test -s port
	RUNPOD_API_URL=http://127.0.0.1:$(cat port)
}

stub_over() {
	kill "$STUB"
	wait "$STUB" 2>/dev/null
}

refused_keys() { # refused_keys TIMES: a run where RunPod refuses the key, and has two pods of an old run by the ledger
	ledger "create temp table t as select * from pod where id = 'rp1'; update t set seq = null, attempt = 'b', id = 'rp2'; insert into pod select * from t"
	echo 'GET /v2/pods.* 401' >codes
	local -x RUNPOD_API_KEY=revoked RUNPOD_API_URL
	stub_of_the_vendor
	script_lines 4
	LIMIT=60
	burst run
	stub_over
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "HTTP 401 from RunPod (is the API key correct and not expired? RunPod's console makes one: Settings, API Keys); its hard end was"
	is "$(grep -c "GET /v2/pods" asked)" "$1" "how often it was asked"
	is "$(wavs)" 4 files
	is "$(ledger "select group_concat(distinct state) from pod where id like 'rp%'")" gone "the pods"
}

t_a_vendor_whose_key_is_refused() { # that it is there does not help
	script_lines 2
	config
	burst run
	pod_out_of_reach rp1 -864000
	refused_keys 2 # once for its pods, once for those that no row names
}

t_a_vendor_whose_key_is_refused_to_a_detached_run() { # whose pods would be left to finish its queue
	script_lines 2
	config
	burst run
	pod_out_of_reach rp1 -864000
	ledger "update run set status = 'running', detached = 1"
	refused_keys 3 # and once for the time there
	is "$(ledger "select status from run order by seq limit 1")" interrupted "the run"
}

t_by_its_vendors_clock_one_of_two_pods_works_on() { # ours is two hours ahead: the last of their ends counts, not the first
	script_lines 2
	config
	burst run
	pod_out_of_reach rp1 -864000
	ledger "create temp table t as select * from pod where id = 'rp1'; update t set seq = null, attempt = 'b', id = 'rp2', hard_end_s = strftime('%s') - 3600;
		insert into pod select * from t; update run set status = 'running', detached = 1"
	echo 'GET /v2/pods.* 200' >codes
	echo '{"pods":[]}' >codes.reply
	echo -7200 >codes.date
	local -x RUNPOD_API_KEY=k RUNPOD_API_URL
	stub_of_the_vendor
	script_lines 4
	burst run
	is "$STATUS" 7 "while one may be at work: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has asked "GET /v2/pods"
	echo 0 >codes.date
	burst run
	is "$STATUS" 0 "when both are over: exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(ledger "select group_concat(distinct state) from pod where id like 'rp%'")" gone "the pods"
	stub_over
}

run_tests "$@"
