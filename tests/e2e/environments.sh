#!/bin/bash
# environments.sh - what a job's setup leaves, from the pod that makes it to the disks of later pods.
. "$(dirname "$0")/lib.sh"

# A job whose worker needs a small package from its environment, found by the absolute path that the setup baked in.
environment_job() { # environment_job SEGMENTS
	script_lines "$1"
	mkdir -p code
	cp "$ROOT/tests/workers/"{padded,answers}.py code/
	cat >code/setup.sh <<-'E'
		mkdir -p "$BURST_ENV/lib/package" && cd "$BURST_ENV" || exit
		for i in $(seq 300); do echo "VALUE = $i" >"lib/package/m$i.py"; done
		printf '#!/bin/sh\nexec python3 "%s/lib/run.py" "$@"\n' "$BURST_ENV_FINAL" >run
		printf 'import os, runpy, sys, package.m300\nsys.path.insert(0, os.environ["BURST_CODE"])\nprint("value", package.m300.VALUE, flush=True)\nrunpy.run_path(os.environ["BURST_CODE"] + "/padded.py", run_name="__main__")\n' >lib/run.py
		chmod 755 run
	E
	ENGINE=padded
	JOB='worker = "echo environment at $(readlink -f $BURST_ENV); exec $BURST_ENV/run"; check = { enabled = false; };'
	JOB+=" setup = \"$(sed 's/\\/\\\\/g; s/"/\\"/g' code/setup.sh | tr '\n' ';' | sed 's/do;/do /g')\";"
	config 'code = { path = "code"; }; pods = 1;'
}
in_log() { # in_log TEXT [RUN]: the newest run
	grep -qF -- "$1" "$BURST_STATE_DIR/runs/$(ledger 'select id from run order by seq desc limit 1')/log" || complain "the log does not say \"$1\""
}

t_a_later_pod_unpacks_it() {
	environment_job 4
	burst run --json
	is "$STATUS" 0 "the first run ($(tail -n 3 err.txt | tr '\n' '|'))"
	schema run
	script_lines 8
	burst run --json
	is "$STATUS" 0 "the second run ($(tail -n 3 err.txt | tr '\n' '|'))"
	schema run
	[ "${LOCAL_ISOLATION:-}" != auto ] || { SKIP="pods here are no containers"; return; }
	in_log 'value 300'
	in_log 'unpacked the environment: '
	in_log 'environment at /var/tmp/burst-env/'
	is "$(json '.pods[0].load_phases | .unpack_s > 0 and .unpack_bytes > 3000')" true "the phase in the report"
	is "$(ledger 'select count(*) from pod where unpack_ms > 0 and unpack_bytes > 3000')" 2 "pods that unpacked it, in the ledger"
	is "$(ledger 'select count(*) from pod where setup_ms > 0')" 1 "pods that set it up"
	burst ledger "$(ledger 'select id from run order by seq desc limit 1')"
	grep -qE '^load of .*: unpack [0-9.]+s \(1 MB\)' out.txt || complain "no unpack in: $(tail -n 3 out.txt)"
	script_lines 12
	burst plan --explain
	has out.txt '  unpack: '
}

run_tests "$@"
