# switch.sh - what tests/e2e/vendor_switch.sh needs of Vast.ai: its words, and the ways in which only a pod there can end.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by vendor_switch.sh
export RP_IMAGE_CACHE=${RP_IMAGE_CACHE:-$ROOT/build/minimal}

BOOT=40s             # boot_limit
ENDS_WITHIN_S=25     # after its client's last word
CREATE=createInstance # the request
DROP_LINE=drop_ssh   # what the stand-in calls it
ITS_OWN_ENDS="c_key_without_rights c_api_is_away_when_it_is_time c_image_without_curl c_image_with_its_own_entrypoint"
TWO_MACHINES_N=60   # so many segments are not done before the second machine has its pod
ITS_OWN_NEXT=c_changed_at_the_console

is_well_set_up() { :; }
ends_asked_for() { asked destroyInstance '.key == "account"'; }
is_gone() { [ "$(va_get "$1" '.ended_ms != null')" = true ]; }

ended_itself() { # ended_itself [SECONDS]: since it was killed, with the pod's own key
	wait_for "${1:-70}" "instance $ID to be gone" is_gone "$ID"
	is "$(ends_asked_for)" 0 "ends that another client asked for"
	[ $((SECONDS - KILLED)) -le "${1:-70}" ] || complain "it took $((SECONDS - KILLED)) s"
}
ended_alone() { # with its own key
	is "$(va_control requests | jq -r --argjson id "$ID" '[.[] | select(.op == "destroyInstance" and .pod == $id and .status == 200)] | length')" 1 \
		"ends asked for by the pod itself"
}
was_ended() { # was_ended ID WHAT
	is "$(va_get "$1" '.ended_ms != null')" true "$2"
}

# ---- the pod itself ----

c_key_without_rights() { # such a pod gets no work
	va_control settings '{"instance_key":{"start":false,"destroy":false,"show":false}}' >/dev/null
	slow_worker
	vendor_config 'code = { path = "code"; }; boot_limit = "40s"; wait = "5s";'
	LIMIT=150 burst run --json
	is "$(wavs)" 0 files
	has err.txt "http 403"
}
c_api_is_away_when_it_is_time() { # it asks again
	working
	add_rule '{"times":3,"when":{"op":"destroyInstance","key":"instance"},"do":{"status":503}}'
	killed
	ended_itself 60
	reap
}
c_image_without_curl() { # a minimal system: the switch installs what it needs
	[ -e "$RP_IMAGE_CACHE/root/.complete" ] || { skip "the minimal image is not built"; return; }
	IMAGE=debian:12
	LIMIT=200 BOOT=120s working
	killed
	ended_itself 60
	reap
}
c_image_with_its_own_entrypoint() { # which would never have come to our command
	IMAGE=entered/serving:1
	working
	killed
	ended_itself 25
	reap
}

# ---- another machine ----

somebody_elses_account() { :; }
rented() { # rented LABEL: by another client; its id in $ID
	va_control market '{"gpu":"RTX 3090","rentable":true}' >/dev/null
	va_api PUT /api/v0/asks/7000003/ "{\"image\":\"host/x\",\"label\":\"$1\",\"runtype\":\"args\",\"args\":[\"sleep\",\"600\"]}"
	ID=$(jq -r .new_contract reply.json)
}
marked() { # marked ATTEMPT HARD-END: a pod of a machine that is no more; its id in $ID
	rented "burst-$1/elsewhere/1101-000000-aaaa/$2"
}
ended_by_hand() { va_api DELETE "/api/v0/instances/$1/"; }
half_of_its_marker() { # its label was cut at the console
	rented burst-0123456789abcded
	reap
	has out.txt "pod $ID of vast: skipped: its name is burst-0123456789abcded, but its marker is missing"
	is "$(va_pods | wc -l)" 2 "pods that it left alone"
	reap "$ID" --force
}
c_changed_at_the_console() { # renamed and stopped: it is released all the same, and its work done elsewhere
	working 20
	strike "$ID" '{"label":"my pod"}' >/dev/null
	is "$(va_get "$ID" .label)" "my pod" "what Vast.ai calls it"
	reclaim "$ID"
	burst_wait
	all_done 20 2
	was_ended "$ID" "the one that was stopped"
}
