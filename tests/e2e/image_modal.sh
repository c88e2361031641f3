#!/bin/bash
# image_modal.sh - Modal builds the job's environment into the image of its sandboxes, and later runs use it.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/modal/client.sh"

setup_job() { # setup_job SETUP: a command that tells where its environment is, and what is in it
	cat >burst.cfg <<-E
		provider = "modal";
		gpu = ["L40S"];
		volume = { name = "v"; create = true; };
		caps = { max_cost = 2.00; max_duration = "10m"; };
		job = { name = "e2e"; type = "command"; run = "mkdir -p out; echo \$BURST_ENV >out/where; cat \$BURST_ENV/word >out/word"; outputs = ["out/**"];
			output = "got"; setup = "$1"; };
	E
}
built() { asked ImageGetOrCreate; }
ran() { # ran FOLDER: a run, whose environment lay below it
	rm -rf got
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(cat got/out/word)" made "what the set-up left"
	case $(cat got/out/where) in "$1"*) ;; *) complain "its environment: $(cat got/out/where), not below $1" ;; esac
}
t_modal_builds_the_environment() {
	cloud || return
	md_control settings '{"carry_out":"sh /usr/local/lib/burst/"}' >/dev/null
	setup_job 'echo made >$BURST_ENV/word'
	ran /var/tmp/burst-env/
	burst plan
	hasnt out.txt 'set-up: none'
	burst image --modal
	is "$STATUS" 0 "exit status of image ($(tail -n 2 err.txt | tr '\n' '|'))"
	grep -qE '^im-[A-Za-z0-9]+: runs of job "e2e" at Modal use this image until its set-up changes$' out.txt || complain "it says: $(cat out.txt)"
	id=$(cut -d: -f1 out.txt)
	has err.txt "modal: image: $id is being built"
	burst plan
	has out.txt "set-up: none, the pods' image has the job's environment"
	ran /usr/local/lib/burst/env/
	has err.txt "its image has the job's environment: no set-up"
	is "$(built)" 2 "images asked for"
	is "$(ledger 'select count(*) from pod where setup_ms > 0')" 1 "pods that set something up"

	# another set-up is on the volume again
	setup_job 'echo made >$BURST_ENV/word; : other'
	burst plan
	hasnt out.txt 'set-up: none'
	ran /var/tmp/burst-env/
	is "$(ledger 'select count(*) from pod where setup_ms > 0')" 2 "pods that set something up, with the other one"
	cloud_over
}
t_a_setup_that_fails_at_modal() {
	cloud || return
	md_control settings '{"carry_out":"sh /usr/local/lib/burst/"}' >/dev/null
	setup_job 'echo no such package; exit 7'
	burst image --modal
	is "$STATUS" 2 "exit status"
	has err.txt 'modal: image: the image cannot be built: '
	has err.txt 'no such package'
	burst plan
	hasnt out.txt 'set-up: none'
	burst image --modal --from debian:12
	is "$STATUS" 2 "exit status with --from"
	cloud_over
}

run_tests "$@"
