# client.sh - burst as a client of the stand-in: `. tests/cloud/runpod/client.sh` after tests/e2e/lib.sh.
#
#   cloud, cloud_over       begin and end of a test with one stand-in; cloud skips the test where there can be none
#   rp_config KEY=VALUE;... burst.cfg for it; RUNPOD="..." and JOB="..." add to the groups, GPUS='"none"' is the list
#   cases c_NAME...         runs these functions at once, each in a folder with a stand-in and a state folder of its own (a run
#                           mostly waits for looks that are seconds apart); what one of them complains of is the test's, what
#                           one of them skips is said in a line of its own
#                           (ONLY=regular expression: some of them; VERBOSE=1: how long each took)
#   rp_slow_worker [FAULTS] the job's worker is tests/workers/worker.sh with these faults
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/runpod/lib.sh"
AT_ONCE=${AT_ONCE:-16}
RTX4090='NVIDIA GeForce RTX 4090'

rp_config() {
	local gpus=${GPUS:-'"RTX 4090", "L40S"'}
	cat >burst.cfg <<-E
		provider = "runpod";
		gpu = [$gpus];
		volume = { name = "v"; size_gb = 10; create = true; };
		caps = { max_cost = ${MAX_COST:-2.00}; max_duration = "${DURATION:-10m}"; ${CAPS:-} };
		pod = { image = "${IMAGE:-host/tts:1}"; ${POD:-} };
		job = { name = "e2e"; type = "tts"; engine = "${ENGINE:-espeak}"; input = "script.jsonl"; voice = "en"; output = "out"; ${JOB:-} };
		providers = { runpod = { ${RUNPOD:-} }; };
		$*
	E
}
rp_slow_worker() {
	mkdir -p code
	cp "$ROOT/tests/workers/worker.sh" code/
	ENGINE='test'
	JOB="worker = \"$* sh \\\"\$BURST_CODE/worker.sh\\\"\"; check = { enabled = false; };"
}

cloud() { # or the test is skipped
	local why
	why=$(rp_can) || { skip "$why"; return 1; }
	rp_start || return 1
	rp_control settings '{"quotas":{"minute":6000,"hour":60000,"day":600000}}' >/dev/null
}
cloud_over() { # what must be true at the end of every test
	is "$(rp_pods | wc -l)" 0 "pods that are left: $(rp_pods)"
	rp_invariants
	all_in_ledger
	rp_stop
}
all_in_ledger() { # every pod that ever was, in one ledger or another
	local id
	for id in $(rp_control state | jq -r '.pods[].id'); do
		cat "$T"/*/ledger.db* 2>/dev/null | grep -qaF "$id" || complain "no ledger knows pod $id"
	done
}

# ---- what happened ----

pods_ever() { rp_control state | jq '.pods | length'; }
asked() { # asked OP [JQ CONDITION]: how many such requests
	rp_control requests | jq --arg op "$1" "[.[] | select(.op == \$op and (${2:-true}))] | length"
}
all_done() { # all_done SEGMENTS [PODS THAT EVER WERE]
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(json .status)" done status
	is "$(wavs)" "$1" files
	is "$(json '[.pods[].released] | all')" true "all released"
	[ -z "${2:-}" ] || is "$(pods_ever)" "$2" "pods that ever were"
}
in_vain() { # in_vain EXIT-STATUS PODS
	is "$STATUS" "$1" "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(pods_ever)" "$2" "pods that ever were"
	is "$(wavs)" 0 files
}

# ---- many at once ----

one_case() {
	WHY='' SKIP='' T=$PWD/$1
	mkdir -p "$T/home"
	cd "$T" || return
	export HOME=$T/home XDG_CONFIG_HOME=$T/home/.config BURST_STATE_DIR=$T/state
	if cloud; then
		script_lines 6
		"$1"
		cloud_over
		wait_for 10 "processes to end" no_processes
		! grep -qs "Sanitizer\|runtime error" err*.txt || complain "sanitizer: $(grep -hm 1 "Sanitizer\|runtime error" err*.txt)"
	fi
	[ -z "$WHY" ] || echo "$1: $WHY" >why
	[ -z "$SKIP" ] || echo "$SKIP" >skipped
	echo $SECONDS >over
}
begin_case() { # as soon as fewer than AT_ONCE run
	while [ "$(jobs -rp | wc -l)" -ge "$AT_ONCE" ]; do wait -n; done
	(SECONDS=0 && one_case "$1") &
}
cases_over() { # those that were begun: what they have to say is the test's
	local name ran=0
	wait
	for name; do
		[ -e "$name/over" ] || complain "$name: it did not come to its end"
		if [ -e "$name/skipped" ]; then
			echo "skip $SCRIPT/$name: $(cat "$name/skipped")"
		else
			ran=1
		fi
		[ ! -e "$name/why" ] || complain "$(cat ./*/why | tr '\n' ';')"
		[ -z "${VERBOSE:-}" ] || echo "    $name: $(cat "$name/over") s $(cat "$name/why" 2>/dev/null)" >&2
	done
	[ $ran = 1 ] || skip "none of its cases can run here"
}
cases() {
	local name
	# shellcheck disable=SC2046
	[ -z "${ONLY:-}" ] || set -- $(printf '%s\n' "$@" | grep -E "$ONLY")
	for name; do begin_case "$name"; done
	cases_over "$@"
}

# ---- what the ledger says ----

in_ledger() { sqlite3 -readonly "$BURST_STATE_DIR/ledger.db" "$1" 2>/dev/null; }
# Seconds of each pod that the ledger knows, beside those that the vendor's meter shows: never fewer.
all_paid_for() {
	local id vendor_ms ours_ms
	while read -r id vendor_ms; do
		ours_ms=$(in_ledger "select sum(billed_ms) from pod where id = '$id'")
		[ "${ours_ms:-0}" -ge "$vendor_ms" ] || complain "pod $id: the vendor bills $vendor_ms ms, the ledger knows of ${ours_ms:-none}"
	done < <(rp_control billing | jq -r '.[] | "\(.id) \(.seconds * 1000 | floor)"')
	is "$(in_ledger "select group_concat(id) from pod where compute_ms > billed_ms")" "" "pods that computed longer than they were paid for"
}
no_secrets_in() { # no_secrets_in FILE...: also folders
	local secret
	rp_control requests | jq -r '.[] | .body | objects | .env.BURST_HOST_KEY_B64? // empty' >host_keys
	{
		printf '%s\n' "$RUNPOD_API_KEY" "$RUNPOD_S3_SECRET_KEY"
		rp_control state | jq -r '.pods[].key'
		while read -r secret; do
			echo "$secret"
			base64 -d <<<"$secret" | sed -n 2p
		done <host_keys
	} >secrets
	while read -r secret; do
		[ ${#secret} -ge 20 ] || complain "no secret to look for: \"$secret\""
	done <secrets
	secret=$(grep -rlaF -f secrets -- "$@" 2>/dev/null | head -n 1)
	[ -z "$secret" ] || complain "a secret ($(grep -oaF -f secrets -- "$secret" | head -c 8)...) stands in $secret"
	! grep -rqa "PRIVATE KEY" state || complain "a private key is left in $(grep -rla "PRIVATE KEY" state | head -n 1)"
}
