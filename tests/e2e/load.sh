#!/bin/bash
# load.sh - wide runs and long jobs in a small form; `make bench BENCH=load` has them large.
. "$(dirname "$0")/lib.sh"
. "$ROOT/tests/cloud/runpod/wide.sh"

t_more_pods_than_fit() { # refused with the number that fits; and so many do fit, each with many outputs that wait for its command
	local fit
	# shellcheck disable=SC2016
	JOB='name = "wide"; type = "command"; output = "out"; outputs = ["*.txt"];
		run = "for i in $(seq 120); do echo $i >$BURST_INDEX-$i.txt; done";'
	cat >burst.cfg <<-E
		provider = "local";
		caps = { max_cost = 1.00; max_duration = "10m"; };
		job = { $JOB };
		volume = { name = "v"; size_gb = 1; create = true; };
		providers = { local = { capacity = 64; }; };
	E
	(
		ulimit -Sn 150
		ulimit -Hn 180
		burst run --pods 500
		echo $STATUS >status
	)
	is "$(cat status)" 2 "exit status of too many"
	is "$(wc -l <err.txt)" 1 "lines it says: $(tr '\n' '|' <err.txt)"
	has err.txt 'pods: 500 are too many: this process may open 180 files (`ulimit -n`), enough for '
	fit=$(sed -n 's/.* enough for \([0-9]*\) pods;.*/\1/p' err.txt)
	[ "${fit:-0}" -ge 3 ] && [ "$fit" -le 12 ] || { complain "fit: $fit"; return; }
	(
		ulimit -Sn 150
		ulimit -Hn 180
		burst run --pods "$fit" --json
		echo $STATUS >status
	)
	is "$(cat status)" 0 "exit status of as many as fit ($(tail -n 3 err.txt | tr '\n' '|'))"
	is "$(json '.pods | length')" "$fit" pods
	is "$(find out -name '*.txt' | wc -l)" $((fit * 120)) outputs
	(
		ulimit -Sn 150
		ulimit -Hn 180
		burst resume --json
		burst run --pods 500 --dry-run
		echo $STATUS >status
	)
	is "$(cat status)" 2 "exit status of a plan of too many"
}

t_five_thousand_segments() {
	mkdir few
	cd few || return
	BURST_STATE_DIR=$T/few/state long_job 1000 2
	is "$STATUS" 0 "exit status of few ($(tail -n 3 err.txt | tr '\n' '|'))"
	cd .. || return
	long_job 5000 2
	long_right 5000 2
	local kb fds
	kb=$(jq -n --slurpfile few few/watch.json --slurpfile many watch.json '($many[0].most_kb - $few[0].most_kb) / 4000')
	fds=$(jq .most_fds watch.json)
	case $BURST in
	*/asan/*) ;; # it keeps what was freed
	*) jq -ne "$kb < 10" >/dev/null || complain "$kb kB for each segment" ;;
	esac
	[ "$fds" -le 250 ] || complain "$fds descriptors at once"
	[ -z "${VERBOSE:-}" ] || echo "    $kb kB for each segment, $fds descriptors at most" >&2
	burst run --json
	is "$(json '.segments | "\(.rendered) \(.cached)"')" "0 5000" "the second time"
}

t_sixteen_real_pods() { # the bench has a hundred
	long_job 320 16 500
	long_right 320 16
}

t_sixty_pods() { # no lost event, each segment once, no more requests a minute than the account has
	local why
	why=$(wide_can) || { skip "$why"; return; }
	wide_run 60 600 1000 3 && wide_right 60 600
	is "$(jq ".pods_used >= 40" wide.json)" true "pods that had work ($(jq .pods_used wide.json))"
	rp_stop
}

run_tests "$@"
