# network.sh - what tests/e2e/vendor_network.sh needs of Vast.ai: its wires, the requests that a rule can name, and its own
# cases.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by vendor_network.sh, network.sh and random.sh
API_URL=VAST_API_URL # the variable that tells burst its address
OUTAGES=(api)        # there is no storage
CREATES='api~PUT /api/v0/asks/' LISTS='api~GET /api/v1/instances/' SHOWS='api~GET /api/v0/instances/' DELETES='api~DELETE /api/v0/instances/'
SEARCHES='api~POST /api/v0/bundles/'
calls() { sed "s|CREATE\\.|$CREATES.|g; s|LIST\\.|$LISTS.|g; s|DELETE\\.|$DELETES.|g; s|SEARCH\\.|$SEARCHES.|g"; }
clear_faults() { unspoilt; }
va_invariants() { # a request may have lost letters on its way
	local broken
	broken=$(va_control invariants | jq -r '.broken[] | select(contains("is to no endpoint") | not)')
	[ -z "$broken" ] || complain "$broken"
}
wires() { echo "api:$(port_of "$VAST_API_URL")"; }
pods_times() { va_control state | jq -r '.pods[] | "\(.created_ms) \(.ended_ms // "-")"'; }

# ---- named ----

# A create that nobody heard takes a minute of looks that do not find it.
table < <(calls <<-'E'
	create_is_cut_in_its_body | done 1 | CREATE.1=cut:up:9000 | WAIT=2m
	create_is_cut_in_its_head | done 1 | CREATE.1=cut:up:40 | WAIT=2m
	create_is_reset_before_its_first_byte | done 1 | CREATE.1=reset:up:0 | WAIT=2m
	create_answer_is_reset_before_its_first_byte | done 1 | CREATE.1=reset:down:0
	create_answer_is_cut_before_its_first_byte | done 1 | CREATE.1=cut:down:0
	create_answer_is_cut_in_its_head | done 1 | CREATE.1=cut:down:60
	+create_answer_is_cut_in_its_body | done 1 | CREATE.1=cut:down:200
	create_answer_is_reset_in_its_body | done 1 | CREATE.1=reset:down:210
	create_answer_is_held_up | done 1 | CREATE.1=stall:down:100 | WAIT=4m BOOT_LIMIT=90s
	create_is_held_up | done 1 | CREATE.1=stall:up:500 | WAIT=4m BOOT_LIMIT=90s
	create_answer_names_another_instance | truth | CREATE.1=bit:down:195 | WAIT=2m BOOT_LIMIT=90s
	create_answer_has_a_wrong_byte_in_its_json | done 1 | CREATE.1=flip:down:190
	create_answer_has_a_wrong_byte_in_its_head | truth | CREATE.1=flip:down:3 | WAIT=2m
	create_answer_lacks_bytes | done 1 | CREATE.1=drop:down:190:10 | WAIT=3m BOOT_LIMIT=90s
	create_answer_has_bytes_twice | truth | CREATE.1=dup:down:180:40 | WAIT=3m BOOT_LIMIT=90s
	create_has_a_wrong_byte | truth | CREATE.1=flip:up:9000 | WAIT=2m
	create_has_a_wrong_letter | truth | CREATE.1=bit:up:9000 | WAIT=2m
	create_lacks_bytes | truth | CREATE.1=drop:up:9000:20 | WAIT=2m
	create_is_slow | done 1 | CREATE.1=delay:2000
E
)
table < <(calls <<-'E'
	+each_is_cut_once | done 1 | SEARCH.1=cut:down:200 | LIST.1=cut:down:10 | DELETE.1=reset:down:0
	each_has_a_wrong_byte_once | done 1 | SEARCH.1=flip:down:700 | LIST.2=flip:down:500 | WAIT=2m BOOT_LIMIT=90s
	each_lacks_bytes_once | done 1 | SEARCH.1=drop:down:500:9 | LIST.1=drop:down:100:40 | DELETE.1=drop:up:5:7 | WAIT=2m BOOT_LIMIT=90s
	each_has_bytes_twice_once | done 1 | SEARCH.1=dup:down:500:9 | LIST.1=dup:down:100:40 | DELETE.1=dup:up:5:7 | WAIT=2m BOOT_LIMIT=90s
	+answers_lack_bytes | done 1 | SEARCH.1=drop:down:0:9 | LIST.1=drop:down:4:8 | DELETE.1=drop:down:0:12
	answers_have_bytes_twice | done 1 | LIST.1=dup:down:300:40 | DELETE.1=dup:down:0:9
	list_is_held_up | done 1 | LIST.1=stall:down:50 | BOOT_LIMIT=2m
	+delete_is_cut_again_and_again | done 1 | DELETE.1=cut:up:10 | DELETE.2=reset:down:0 | DELETE.3=cut:down:0 | DELETE.4=cut:down:30
	delete_is_held_up | done 1 | DELETE.1=stall:up:20
	first_connections_are_refused | done 1 | api.1=refuse | api.2=refuse
	portal_for_a_while | done 1 | api.1=run:portal | api.2=run:portal | api.3=run:portal | WAIT=2m BOOT_LIMIT=90s
	+portal_for_ever | fails 6 the answer cannot be read: not JSON | api.*=run:portal
E
)
# The same to their sshd.
table <<-'E'
	+ssh_is_cut_one_after_another | done 1 | pod.1=cut:down:500 | pod.2=reset:up:100000 | pod.3=cut:down:1500
	ssh_has_a_wrong_byte | done 1 | pod.1=flip:up:120000 | pod.2=bit:down:2000 | BOOT_LIMIT=2m
	+ssh_lacks_bytes | done 1 | pod.1=drop:up:50000:100 | pod.2=dup:up:30000:100 | BOOT_LIMIT=2m
	portal_at_the_pods | fails 6 | pod.*=run:portal
	ssh_falls_silent | done 1 | pod.1=stall:up:170000 | BOOT_LIMIT=2m
E
also +it_is_away_for_good

# ---- the walk ----

WIRES_KNOWN=(api api pod pod)
CALLS=("$CREATES" "$CREATES" "$LISTS" "$LISTS" "$DELETES" "$SEARCHES" "$SHOWS")
BLOWS_KNOWN=('{"destroy":true}' '{"outbid":true}' '{"drop_ssh":true}')
NOW_AND_THEN='spot = true;'
what_goes_wrong() { the_line_goes_wrong; }
