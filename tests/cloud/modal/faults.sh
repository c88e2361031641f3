# faults.sh - what tests/e2e/vendor_faults.sh needs of Modal: the stand-in's names of faults, and what Modal alone does to its clients
# when they create sandboxes, wait for them, use them, their volume, and end them.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by vendor_faults.sh

declare -A FAULTS=(
	[create says an error and made it]=error_after
	[create is cut and made it]=lost_reply
	[create hangs]='hangs "ms":50000'
	[create is answered by half]='cut_stream "op":"SandboxCreate","bytes":9'
	[sold out]=exhausted
	[one GPU is closed]='refused "when":{"gpu":"L40S"},"status":"FAILED_PRECONDITION","message":"L40S needs another plan"'
	[wrong host key]=wrong_key
	[no GPU]=no_gpu
	[listed late]='unlisted "ms":8000'
	[never listed]='unlisted "ms":3600000'
	[unknown fields]=strange_fields
	[outlives its end]='slow_end "ms":14000'
	[end fails]='unavailable "op":"SandboxTerminate"'
	[line drops]='drops "bytes":60000,"drops":2'
	[taken back]='preempted "ms":8000'
	[extreme sshd]='{"when":{"op":"SandboxCreate"},"do":{"sandbox":{"door":"ssh_packet_4g"}}}'
)
EXTREMES="SandboxList(V2)?:h2_continuation_endless SandboxList(V2)?:h2_ping_endless:1 SandboxList(V2)?:grpc_lies:2
	SandboxGetTunnels:h2_rst_now SandboxTerminate:h2_headers_100000 SandboxTerminate:grpc_4g:1"
extreme() { # extreme OP NAME [SKIP [TIMES]]
	add_rule "{\"skip\":${3:-0},\"times\":${4:-1},\"when\":{\"op\":\"$1\"},\"do\":{\"wire\":{\"extreme\":\"$2\"}}}"
}
EXTREME_HEAD=h2_header_10m
CREATE=SandboxCreate NEXT_GPU="A100 40GB" HANGS_S=50 END_FAILS=9
FIRST="c_create_says_14_and_made_nothing c_create_is_made_and_listed_late c_never_listed c_goaway_once_each c_create_says_an_error_and_made_it
	c_create_says_14_and_made_it c_create_says_14_and_made_it_where_keys_mean_nothing c_create_is_cut_and_made_it c_create_is_compressed
	c_create_stream_is_reset c_create_is_answered_by_half c_create_without_a_status c_create_name_is_taken c_end_takes_20_s"
AT_ONCE=${AT_ONCE_FAULTS:-26}

meter() { md_get "$(json '.pods[0].id')" .usd; } # dollars of its pod until now
wrong_key() { export MODAL_TOKEN_SECRET=as-NOBODYKNOWSTHIS; }
is_avoided() { :; }
looked_up_by_its_id() { :; }
says_it_was_taken_back() {
	has err.txt "the vendor reclaimed it (preempted)"
	[ "$(json .wasted_seconds | cut -d. -f1)" -lt 10 ] || complain "wasted: $(json .wasted_seconds)"
}
render() { # render [CONFIG...]
	slow_worker
	md_config 'code = { path = "code"; };' "$@"
	LIMIT=300 burst run --json "${HOW:--v}" # others may be at work here, and some wait for a minute
}
# What is sent again is the same call with the same key, and says so.
repeats() { # repeats METHOD [COUNTER]: how many were
	md_control requests | jq --arg m "$1" --arg h "x-${2:-retry}-attempt" '
		[.[] | select(.op == $m)] | group_by(.headers["x-idempotency-key"]) | map(sort_by(.n) | map(.headers[$h] // "0" | tonumber)) |
		if any(. != [range(length)]) then error("attempts: \(.)") else map(length - 1) | add // 0 end'
}

# ---- creates ----

c_create_says_14_and_made_it() { # it is sent again with the same key, which makes no second one
	md_fault error_after '"status":"UNAVAILABLE"'
	render
	all_done 6 1
	is "$(repeats SandboxCreate)" 1 "repeats of it"
}
c_create_says_14_and_made_it_where_keys_mean_nothing() { # its name is taken, by the first
	md_control settings '{"dedupe":false}' >/dev/null
	md_fault error_after '"status":"UNAVAILABLE"'
	render
	all_done 6 1
	is "$(asked SandboxCreate)" 2 creates
	has err.txt "looking for the pod, and for a second one, until "
}
c_create_stream_is_reset() {
	md_fault rst_stream '"op":"SandboxCreate"'
	render
	adopted
}
c_create_without_a_status() {
	md_fault no_status '"op":"SandboxCreate"'
	render
	adopted
}
c_create_is_compressed() { # which we never asked for: its id cannot be read
	md_fault compressed '"op":"SandboxCreate"'
	render
	adopted
}
c_create_name_is_taken() { # by a try of ours that was heard after all
	add_rule '{"when":{"op":"SandboxCreate"},"do":{"after":true,"status":"ALREADY_EXISTS","message":"Sandbox with name already exists."}}'
	render
	adopted
}
c_create_is_made_and_listed_late() {
	md_fault lost_reply
	add_rule '{"when":{"op":"SandboxCreate"},"do":{"sandbox":{"unlisted_ms":12000}}}'
	render
	adopted
}
c_create_says_14_and_made_nothing() {
	md_fault unavailable '"op":"SandboxCreate"'
	local began=$SECONDS
	render
	all_done 6 1
	is "$(asked SandboxCreate)" 2 creates
	is "$(repeats SandboxCreate)" 1 "repeats of it"
	is "$(asked SecretGetOrCreate)" 1 secrets
	[ $((SECONDS - began)) -lt 50 ] || complain "it took $((SECONDS - began)) s"
}
c_creates_are_put_off() { # the server says when: the same call again
	md_fault throttled '"op":"SandboxCreate","times":2,"retry_after_s":1.5'
	local began=$SECONDS
	render
	all_done 6 1
	is "$(asked SandboxCreate)" 3 creates
	is "$(repeats SandboxCreate throttle-retry)" 2 "repeats of it"
	[ $((SECONDS - began)) -ge 3 ] || complain "it did not wait as long as it was told to"
}
c_one_gpu_is_used_up() { # and no rate is named: the next kind of GPU is tried at once
	md_fault exhausted '"times":-1,"when":{"gpu":"L40S"},"message":"No L40S is available now"'
	render
	all_done 6 1
	is "$(gpus_used)" "A100 40GB" "where it went"
	is "$(asked SandboxCreate)" 2 creates
}
c_all_gpus_are_used_up() {
	md_fault exhausted '"times":-1,"message":"Workspace GPU limit reached"'
	render 'wait = "12s";'
	in_vain 4 0
	is "$(json .error.code)" no_capacity code
	has err.txt "Workspace GPU limit reached"
	[ "$(asked SandboxCreate)" -le 6 ] || complain "$(asked SandboxCreate) creates in 12 s"
	is "$(asked SecretGetOrCreate)" "$(asked SandboxCreate)" "secrets, of which each create needs its own"
}
c_three_at_once_where_one_a_second_may_be() {
	md_control settings '{"creates_per_s":1}' >/dev/null
	script_lines 60
	slow_worker SLOW=0.6 MAX_BATCH=2
	md_config 'pods = 3; code = { path = "code"; };'
	burst run --json
	all_done 60 3
}
c_budget_of_the_workspace_is_spent() {
	md_fault refused '"times":-1'
	render 'wait = "5s";'
	is "$(pods_ever)" 0 "pods that ever were"
	is "$STATUS $(json .error.code)" "3 balance" "what it ends with"
	has err.txt "Workspace budget limit reached (the workspace may not spend more: "
	is "$(md_control requests | jq -r '[.[] | select(.op == "SandboxCreate") | .message.definition.resources.gpuConfig.gpuType] | length - (unique | length)')" 0 \
		"kinds of GPU that were asked for twice"
}
c_what_we_ask_for_is_wrong() {
	md_fault refused '"times":-1,"status":"INVALID_ARGUMENT","message":"Invalid mount path"'
	render 'wait = "5s";'
	in_vain 6 0
	[ "$(asked SandboxCreate)" -le 3 ] || complain "$(asked SandboxCreate) creates" # one of each kind of GPU
	has err.txt "Invalid mount path"
}
c_create_is_not_for_this_token() {
	md_fault refused '"times":-1,"status":"PERMISSION_DENIED","message":"no access"'
	render 'wait = "5s";'
	in_vain 6 0
	has err.txt "the token has no access to this"
}
c_volume_is_not_for_this_token() {
	add_rule '{"times":-1,"when":{"op":"VolumeGetOrCreate"},"do":{"status":"PERMISSION_DENIED","message":"no access"}}'
	render
	in_vain 3 0
	has err.txt "the token has no access to this"
}
c_old_client() {
	mkdir -p home/.config/burst
	echo 'providers = { modal = { client_version = "0.1.0"; }; };' >home/.config/burst/burst.cfg
	render
	in_vain 2 0
	has err.txt "Old client"
	has err.txt "providers.modal.client_version"
}

# ---- sandboxes that do not come up ----

c_never_scheduled() { # ended at our own limit: it must not begin later; then the next kind of GPU
	md_fault never_scheduled
	render 'boot_limit = "6s";'
	another_did "no L40S was free at modal within"
	is "$(gpus_used)" "L40S,A100 40GB" "what was tried"
	[ "$(asked SandboxTerminate)" -ge 2 ] || complain "the one that waits was not ended"
	is "$(json '.pods[] | select(.gpu == "L40S") | "\(.billed_seconds) \(.cost_usd)"')" "0 0" "what the queue has cost"
	burst offers --json
	is "$(json '[.[] | select(.avoided)] | length')" 0 "offers that are avoided"
}
c_never_scheduled_for_ever() { # with whatever GPU: it is waited for within `wait`, and nothing is billed
	md_fault never_scheduled '"times":-1'
	render 'wait = "24s";'
	is "$STATUS" 4 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	is "$(json .error.code)" no_capacity code
	is "$(json '"\(.billed_seconds) \(.cost_usd)"')" "0 0" "what the queue has cost"
	is "$(gpus_used | cut -d, -f1,2)" "L40S,A100 40GB" "what was tried"
	[ "$(pods_ever)" -le 6 ] || complain "$(pods_ever) sandboxes in 24 s"
}
c_queued_for_long() { # nothing else is wanted: it keeps its place
	md_fault late_schedule '"ms":12000'
	GPUS='"L40S"' render
	all_done 6 1
}
gave_it_up() { # the client, or the pod itself, whose first lease ends at the same moment
	grep -qF -e "did not boot within" -e "its start script ended" err.txt || complain "why: $(grep warning err.txt | tr '\n' '|')"
}
c_scheduled_and_never_starts() {
	md_fault never_starts
	render 'boot_limit = "14s";'
	another_did
	gave_it_up
}
c_scheduled_late() {
	md_fault late_schedule '"ms":7000'
	render
	all_done 6 1
	[ "$(json '.pods[0].phases | .queue_s + .boot_s | floor')" -ge 6 ] || complain "the phases do not show it"
}
c_running_without_a_tunnel() {
	md_fault no_tunnel
	render 'boot_limit = "14s";'
	another_did
	gave_it_up
}
lists() { # lists TASKS: its rows say so much of a sandbox's task, and nothing of tunnels
	md_control settings "{\"list_tasks\":\"$1\",\"list_tunnels\":false}" >/dev/null
	render 'boot_limit = "60s";'
	all_done 6 1
	[ "$(asked SandboxGetTunnels)" -ge 1 ] || complain "nobody asked for its address"
	[ "$(asked SandboxGetTunnels)" -le 13 ] || complain "$(asked SandboxGetTunnels) questions for its address"
}
c_lists_do_not_say_when_it_started() {
	lists unstarted
}
c_lists_say_nothing_of_the_task() {
	lists none
}
c_only_the_tunnel_with_tls() {
	md_fault tls_only
	render 'boot_limit = "14s";'
	another_did
	gave_it_up
}
c_sshd_listens_late() {
	md_fault late_sshd '"ms":6000'
	render
	all_done 6 1
}
c_first_connections_are_reset() {
	md_fault reset_conns '"count":4'
	render
	all_done 6 1
}
c_connections_are_reset_for_ever() {
	md_fault reset_conns '"count":1000'
	render 'boot_limit = "8s";'
	another_did
	gave_it_up
}
c_it_cannot_be_set_up() {
	md_fault init_failure
	render
	another_did "failed to mount the image"
}
c_every_one_cannot_be_set_up() { # and the next one could not either
	md_fault init_failure '"times":-1'
	render
	in_vain 2 2
	has err.txt "it could not be set up: failed to mount the image; check pod.image"
}
c_list_is_empty_once() { # one look without it is no proof
	md_fault empty_list '"skip":2'
	slowly 16
	burst run --json
	all_done 16 1
}
c_list_is_away_behind_a_proxy() {
	add_rule '{"when":{"op":"SandboxListV2"},"times":3,"do":{"wire":{"http":504}}}'
	render
	all_done 6 1
}
c_a_better_gpu_than_asked_for() {
	md_fault other_gpu
	render
	all_done 6 1
	is "$(json '.pods[0].gpu')" "H200 SXM" "the GPU that it got"
}

# ---- at work ----

at_work() { # at_work N [CONFIG...]: burst renders in the background; its sandbox in $ID
	slowly "$@"
	burst_bg run --json
	wait_for 60 "the first files" file_count out 2
	ID=$(md_sandboxes | head -n 1 | cut -d' ' -f1)
}
c_evicted_for_its_memory() {
	md_fault evicted '"ms":9000'
	slowly 20
	burst run --json
	all_done 20 2
	has err.txt "raise pod.memory_gb"
}
ended_at_work() { # ended_at_work STATUS WORDS [MEMBERS]: by the service, in a batch
	at_work 20
	md_control "sandboxes/$ID" "{\"end\":\"$1\"${3:-}}" >/dev/null
	burst_wait
	all_done 20 2
	has err.txt "$2"
}
c_its_lifetime_is_over() { ended_at_work TIMEOUT "its lifetime ended"; }
c_it_fails_inside() { ended_at_work INTERNAL_FAILURE "worker lost" ',"exception":"worker lost"'; }
c_its_start_script_is_killed() {
	at_work 20
	md_control "sandboxes/$ID" '{"kill":9}' >/dev/null
	burst_wait
	all_done 20 2
	is "$(md_get "$ID" .ended)" FAILURE "how the first ended"
}
c_its_files_are_lost() { # those that are home stay home
	md_fault lose_unsynced
	at_work 20
	stamp >stamp.txt
	md_control "sandboxes/$ID" '{"end":"TERMINATED","hard":true}' >/dev/null
	burst_wait
	all_done 20 2
	unchanged stamp.txt
	all_right 20
}

# ---- the volume ----

# The line to the sandboxes is slow, so the last files come from the volume, with the GPU given back: after a `sync`, and
# by nothing else, since the end of these sandboxes commits nothing.
large_files() { # large_files: of one sandbox, 24 MB
	md_fault lose_unsynced
	md_config
	sed -i '/^job = /d' burst.cfg
	# shellcheck disable=SC2016
	echo 'job = { name = "e2e"; type = "command"; run = "for i in 1 2 3 4 5 6; do head -c 4000000 /dev/urandom >$i.bin; done; sha256sum *.bin >sums"; outputs = ["*.bin", "sums"]; output = "out"; };' >>burst.cfg
	export DETOUR_NOT=" ${MODAL_SERVER_URL##*:} ${MD_SIDE_URL##*:} "
	through '*.*=delay:80'
	LIMIT=300 burst run --json -v
	relay_stop
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	(cd out && sha256sum -c --quiet sums >/dev/null 2>&1) || complain "a file is not what it was in the sandbox"
	is "$(pods_ever)" 1 "sandboxes that ever were"
}
from_the_volume() {
	has err.txt "are fetched from there after it is released"
	[ "$(asked block:GET '.status == 200')" -ge 2 ] || complain "nothing was read from the volume"
}
c_files_come_from_the_volume() {
	large_files
	from_the_volume
}
c_addresses_of_the_volume_expire() {
	md_fault dead_urls '"times":2'
	large_files
	from_the_volume
	[ "$(asked block:GET '.status == 403')" -ge 2 ] || complain "no address had expired"
}
c_volume_is_away_at_first() {
	md_fault unavailable '"op":"VolumeGetFile2","times":9'
	large_files
	from_the_volume
}
c_sync_fails() { # then nothing on the volume is safe: they come by way of the sandbox, which lives so long
	md_fault sync_fails
	large_files
	has err.txt "cannot be synced: its files are fetched through the pod"
	is "$(asked block:GET)" 0 "blocks read from the volume"
}

# ---- how soon it is reached ----

reached_within() { # reached_within MS WHEN AFTER_MS: of so long after its container began to run, or its tunnel was up
	local late
	all_done 6 1
	late=$(($(ledger 'select reached_ms from pod') - $(md_get "$(json '.pods[0].id')" "$2" | cut -d. -f1) - $3))
	[ "$late" -ge 0 ] && [ "$late" -le "$1" ] || complain "it was reached $late ms after it could be"
	[ -z "${VERBOSE:-}" ] || echo "reached after $late ms" >&2
}
c_reached_when_its_sshd_listens() { # its tunnel is up long before
	md_fault late_sshd '"ms":9000'
	render
	reached_within 800 .started_ms 9000
}
c_reached_when_its_tunnel_is_up() { # it boots slowly, and lists are seconds apart by then
	md_control settings '{"boot":{"start_ms":30000}}' >/dev/null
	render
	reached_within 900 .tunnel_ms 0
}

# ---- the end ----

c_end_takes_20_s() { # it bills until it is over
	md_fault slow_end
	render
	all_done 6 1
	[ "$(json '.pods[0].phases.release_s | floor')" -ge 20 ] || complain "it was taken for gone before its end"
	[ "$(json '.pods[0].released')" = true ] || complain "not released"
	RUN=$(json .run)
	burst ledger --reconcile # on a busy machine the run may have ended without Modal's figure
	burst ledger "$RUN"
	has out.txt "UTC: counted until "
	burst ledger "$RUN" --json
	[ "$(json '.pods[0] | .billed_seconds - .billed_vendor_s | floor')" -ge 0 ] || complain "Modal's own figure: $(json '.pods[0] | "\(.billed_seconds) \(.billed_vendor_s)"')"
}
c_end_is_refused_for_ever() { # its agent is told to end it, and the lists of a minute prove that it did
	md_fault unavailable '"op":"SandboxTerminate","times":-1'
	LIMIT=240 render
	all_done 6 1
	has err.txt "asking its agent to end it"
	[ "$(json '.pods[0] | .billed_seconds - (.phases | .queue_s + .boot_s + .connect_s + .sync_s + .load_s + .compute_s + .idle_s + .fetch_s) | floor')" -lt 40 ] ||
		complain "it billed for long after its work: $(json -c '.pods[0]')"
}
c_end_is_put_off() {
	md_fault throttled '"op":"SandboxTerminate","times":3,"retry_after_s":1'
	render
	all_done 6 1
}
c_end_of_one_that_is_over() {
	add_rule '{"when":{"op":"SandboxTerminate"},"do":{"after":true,"status":"NOT_FOUND","message":"Sandbox not found."}}'
	render
	all_done 6 1
}
