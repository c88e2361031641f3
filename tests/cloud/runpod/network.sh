# network.sh - what tests/e2e/vendor_network.sh needs of RunPod: its wires, the requests that a rule can name, and its own
# cases.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by vendor_network.sh, network.sh and random.sh
API_URL=RUNPOD_API_URL            # the variable that tells burst its address
LARGE_FILE='files~.bin ' # the request for a large file, as the relay has it
UPLOAD_ENDS='files~HEAD /.1=reset:down:0'
clear_faults() { unspoilt; }
wires() { echo "api:$(port_of "$RUNPOD_API_URL") files:$(port_of "$RUNPOD_S3_URL")"; }
pods_times() { rp_control state | jq -r '.pods[] | "\(.created_ms) \(.ended_ms // "-")"'; }

# ---- named ----

# A create that nobody heard takes a minute of looks that do not find it.
table <<-'E'
	create_is_cut_in_its_body | done 1 | api~POST /v2/pods .1=cut:up:900 | WAIT=2m
	create_is_cut_in_its_head | done 1 | api~POST /v2/pods .1=cut:up:40 | WAIT=2m
	create_is_reset_before_its_first_byte | done 1 | api~POST /v2/pods .1=reset:up:0 | WAIT=2m
	create_answer_is_reset_before_its_first_byte | done 1 | api~POST /v2/pods .1=reset:down:0
	create_answer_is_cut_before_its_first_byte | done 1 | api~POST /v2/pods .1=cut:down:0
	create_answer_is_cut_in_its_head | done 1 | api~POST /v2/pods .1=cut:down:60
	+create_answer_is_cut_in_its_body | done 1 | api~POST /v2/pods .1=cut:down:700
	create_answer_is_reset_in_its_body | done 1 | api~POST /v2/pods .1=reset:down:500
	create_answer_is_held_up | done 1 | api~POST /v2/pods .1=stall:down:100 | WAIT=4m BOOT_LIMIT=90s
	create_is_held_up | done 1 | api~POST /v2/pods .1=stall:up:500 | WAIT=4m BOOT_LIMIT=90s
	+create_answer_has_a_wrong_byte_in_its_json | done 1 | api~POST /v2/pods .1=flip:down:520
	create_answer_has_a_wrong_byte_in_its_head | truth | api~POST /v2/pods .1=flip:down:3 | WAIT=2m
	create_answer_lacks_bytes | done 1 | api~POST /v2/pods .1=drop:down:520:20 | WAIT=3m BOOT_LIMIT=90s
	create_answer_has_bytes_twice | truth | api~POST /v2/pods .1=dup:down:500:40 | WAIT=3m BOOT_LIMIT=90s
	create_has_a_wrong_byte | truth | api~POST /v2/pods .1=flip:up:800 | WAIT=2m
	create_lacks_bytes | truth | api~POST /v2/pods .1=drop:up:800:20 | WAIT=2m
	create_is_slow | done 1 | api~POST /v2/pods .1=delay:2000
E
table <<-'E'
	+each_is_cut_once | done 1 | api~GET /v2/catalog.1=cut:down:200 | api~GET /v2/network-volumes.1=reset:up:30 | api~POST /v2/network-volumes.1=cut:down:80 | api~GET /v2/pods .1=cut:down:10 | api~DELETE /v2/pods/.1=reset:down:0
	each_has_a_wrong_byte_once | done 1 | api~GET /v2/catalog.1=flip:down:700 | api~GET /v2/network-volumes.1=flip:down:2 | api~GET /v2/pods .2=flip:down:500 | WAIT=2m BOOT_LIMIT=90s
	each_lacks_bytes_once | done 1 | api~GET /v2/catalog.1=drop:down:500:9 | api~GET /v2/pods .1=drop:down:100:40 | api~DELETE /v2/pods/.1=drop:up:5:7 | WAIT=2m BOOT_LIMIT=90s
	each_has_bytes_twice_once | done 1 | api~GET /v2/catalog.1=dup:down:500:9 | api~GET /v2/pods .1=dup:down:100:40 | api~DELETE /v2/pods/.1=dup:up:5:7 | WAIT=2m BOOT_LIMIT=90s
	+answers_lack_bytes | done 1 | api~GET /v2/catalog.1=drop:down:0:9 | api~GET /v2/pods .1=drop:down:4:8 | api~DELETE /v2/pods/.1=drop:down:0:12
	+answers_have_bytes_twice | done 1 | api~GET /v2/pods .1=dup:down:500:40 | api~DELETE /v2/pods/.1=dup:down:0:9
	list_is_held_up | done 1 | api~GET /v2/pods .1=stall:down:50 | BOOT_LIMIT=2m
	+delete_is_cut_again_and_again | done 1 | api~DELETE /v2/pods/.1=cut:up:10 | api~DELETE /v2/pods/.2=reset:down:0 | api~DELETE /v2/pods/.3=cut:down:0 | api~DELETE /v2/pods/.4=cut:down:30
	delete_is_held_up | done 1 | api~DELETE /v2/pods/.1=stall:up:20
	first_connections_are_refused | done 1 | api.1=refuse | api.2=refuse
	portal_for_a_while | done 1 | api.1=run:portal | api.2=run:portal | api.3=run:portal | WAIT=2m BOOT_LIMIT=90s
	+portal_for_ever | fails 6 the answer cannot be read: not JSON | api.*=run:portal
	+storage_is_behind_a_portal | done 1 | files.*=run:portal
	storage_is_refused | done 1 | files.*=refuse
	storage_is_cut | done 1 | files.1=cut:up:300 | files.2=cut:down:0
E
# The same to their sshd.
table <<-'E'
	+ssh_is_cut_one_after_another | done 1 | pod.1=cut:down:500 | pod.2=reset:up:100000 | pod.3=cut:down:1500
	ssh_has_a_wrong_byte | done 1 | pod.1=flip:up:120000 | pod.2=bit:down:2000 | BOOT_LIMIT=2m
	+ssh_lacks_bytes | done 1 | pod.1=drop:up:50000:100 | pod.2=dup:up:30000:100 | BOOT_LIMIT=2m
	portal_at_the_pods | fails 6 | pod.*=run:portal
	ssh_falls_silent | done 1 | pod.1=stall:up:170000 | BOOT_LIMIT=2m
E

# Large files by way of the storage; small ones come by it, too, and before them.
c_an_upload_has_bytes_twice() { large_files 'files~PUT /.1=dup:up:4000000:500'; }
c_downloads_have_bytes_twice_or_no_head() { large_files 'files~.bin .1=dup:down:1000000:500' 'files~.bin .2=drop:down:0:12'; }
c_storage_is_slow() { large_files 'files.*=delay:300'; }
also +an_upload_has_bytes_twice +downloads_have_bytes_twice_or_no_head +storage_is_slow

# ---- names, and who answers there ----

c_its_storage_is_unknown() {
	slow_worker
	rp_config 'code = { path = "code"; };'
	RUNPOD_S3_URL=https://s3.runpod.invalid burst run --json -v
	all_done 6 1
}
also +its_storage_is_unknown +it_is_away_for_good

# ---- the walk ----

WIRES_KNOWN=(api api files pod pod)
CALLS=('api~POST /v2/pods ' 'api~POST /v2/pods ' 'api~GET /v2/pods ' 'api~GET /v2/pods ' 'api~DELETE /v2/pods/' 'api~GET /v2/catalog' 'api~/v2/network-volumes'
	'api~POST /graphql' 'files~PUT /' 'files~GET /' 'files~HEAD /')
BLOWS_KNOWN=('{"preempt":"TERMINATED"}' '{"preempt":"EXITED"}' '{"drop_ssh":true}')
NOW_AND_THEN='spot = true;'
what_goes_wrong() { the_line_goes_wrong; }
