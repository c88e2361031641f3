# client.sh - what is the same for burst as a client of any stand-in: sourced by each vendor's own client.sh, which has
# cloud, cloud_over and pods_ever.
#
#   cases c_NAME...         runs these functions at once, each in a folder with a stand-in and a state folder of its own (a run
#                           mostly waits for looks that are seconds apart); what one of them complains of is the test's, what
#                           one of them skips is said in a line of its own
#                           (ONLY=regular expression: some of them; VERBOSE=1: how long each took)
# shellcheck shell=bash
AT_ONCE=${AT_ONCE:-16}

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

# each_says STATUS WORDS: run, plan, offers, reap and doctor, in a whole line, where the vendor answers the same to all of them
each_says() {
	local command
	for command in "run --json" plan offers reap; do
		# shellcheck disable=SC2086
		LIMIT=60 burst $command
		is "$STATUS" "$1" "$2: exit status of $command ($(tail -n 1 err.txt))"
		has err.txt "$2"
	done
	burst doctor
	is "$STATUS" 1 "$2: exit status of doctor"
	has out.txt "bad  $VENDOR: "
	has out.txt "$2"
}
# other_reasons URL_VARIABLE FAULTS: its API has no address, which is the network's fault; then it answers well, and has nothing to rent
other_reasons() {
	local root=${!1} host="api.$VENDOR.invalid"
	printf -v "$1" %s "https://$host"
	each_says 6 "$host cannot be found: is this machine on a network? ("
	burst run
	grep -qE "no network: $VENDOR: .*$host cannot be found: .*; next try in [0-9.]+s, giving up in [0-9.]+s \([0-9:]+ UTC\)\$" err.txt ||
		complain "the wait: $(grep network: err.txt | tail -n 1)"
	printf -v "$1" %s "$root"
	answers '{}'
	curl -qsS -X DELETE "$2" >/dev/null
	sold_out
	burst run --json
	is "$STATUS" 4 "sold out"
	is "$(json .error.code)" no_capacity code
	has err.txt "another provider, or a longer wait can help"
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
	[ $# -gt 0 ] || return 0
	for name; do begin_case "$name"; done
	cases_over "$@"
}

in_ledger() { ledger "$1" 2>/dev/null; }
intent_is_known() { [ "$(in_ledger "select count(*) from pod where id = ''")" = 1 ]; } # and its pod is not
# paid_for: lines "ID MS [TOLD]", what the vendor's meter shows for each pod that anybody could learn of; the ledger has never fewer.
# TOLD false: no list ever showed it, so that it is unknown where the answer to its create was lost.
paid_for() {
	local id vendor_ms told ours_ms
	while read -r id vendor_ms told; do
		ours_ms=$(in_ledger "select sum(billed_ms) from pod where id = '$id'")
		[ -n "$ours_ms" ] || [ "$told" != false ] || continue
		[ "${ours_ms:-0}" -ge "$vendor_ms" ] || complain "pod $id: the vendor bills $vendor_ms ms, the ledger knows of ${ours_ms:-none}"
	done
	is "$(in_ledger "select group_concat(id) from pod where compute_ms > billed_ms")" "" "pods that computed longer than they were paid for"
}
host_keys() { # of lines that hold one in base 64: each as it is, and from within it what no other one has
	local key
	while read -r key; do
		echo "$key"
		base64 -d <<<"$key" | sed -n 2p
	done
}
untold() { # untold FILE...: also folders; none holds a line of the file "secrets"
	local secret
	while read -r secret; do
		[ ${#secret} -ge 20 ] || complain "no secret to look for: \"$secret\""
	done <secrets
	secret=$(grep -rlaF -f secrets -- "$@" 2>/dev/null | head -n 1)
	[ -z "$secret" ] || complain "a secret ($(grep -oaF -f secrets -- "$secret" | head -c 8)...) stands in $secret"
	! grep -rqa "PRIVATE KEY" state || complain "a private key is left in $(grep -rla "PRIVATE KEY" state | head -n 1)"
}
ids_in_ledger() { # ids_in_ledger ID...: every one, in one ledger or another
	local id
	for id; do
		cat "$T"/*/ledger.db* 2>/dev/null | grep -qaF "$id" || complain "no ledger knows pod $id"
	done
}
