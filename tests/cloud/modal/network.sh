# network.sh - what tests/e2e/vendor_network.sh needs of Modal: its wires, the requests that a rule can name, and its own
# cases.
# With TLS no spoilt byte may ever be taken for data.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317 # used and called by vendor_network.sh, network.sh and random.sh
API_URL=MODAL_SERVER_URL       # the variable that tells burst its address
LARGE_FILE='files~?4000000 ' # the request for a large file, as the relay has it
UPLOAD_ENDS='files~PUT /.2=reset:down:0'
clear_faults() { unspoilt; }
wires() {
	local files
	files=$(cat "$MD_STATE/blocks.url")
	echo "api:${MODAL_SERVER_URL##*:} files:${files##*:}"
}
pods_times() { md_control state | jq -r '.sandboxes[] | select(.started_ms) | "\(.started_ms) \(.ended_ms // "-")"'; }

# ---- named ----

# A call's name stands for its path, as the client writes it.
calls() { sed -E 's|api~([A-Z][A-Za-z0-9]*)\.|api~/modal.client.ModalClient/\1.|g'; }

# A create that nobody heard takes a minute of looks that do not find it.
table < <(calls <<-'E'
	create_is_cut_in_its_preface | done 1 | api~SandboxCreate.1=cut:up:20 | WAIT=2m
	create_is_cut_in_its_body | done 1 | api~SandboxCreate.1=cut:up:1500 | WAIT=2m
	create_is_reset_in_its_body | done 1 | api~SandboxCreate.1=reset:up:2500 | WAIT=2m
	create_answer_is_reset_before_its_first_byte | done 1 | api~SandboxCreate.1=reset:down:0
	create_answer_is_cut_in_a_frames_head | done 1 | api~SandboxCreate.1=cut:down:40
	+create_answer_is_cut_in_its_message | done 1 | api~SandboxCreate.1=cut:down:120
	create_answer_is_reset_in_its_message | done 1 | api~SandboxCreate.1=reset:down:130
	create_answer_is_held_up | done 1 | api~SandboxCreate.1=stall:down:30 | WAIT=2m BOOT_LIMIT=50s
	create_answer_has_a_wrong_byte_in_a_frames_head | truth | api~SandboxCreate.1=flip:down:3
	+create_answer_has_a_wrong_byte_in_its_headers | truth | api~SandboxCreate.1=flip:down:60
	create_answer_has_a_wrong_byte_in_its_message | truth | api~SandboxCreate.1=flip:down:125
	create_answer_has_a_wrong_letter_in_its_message | truth | api~SandboxCreate.1=bit:down:128
	create_answer_lacks_bytes | truth | api~SandboxCreate.1=drop:down:100:30 | WAIT=3m BOOT_LIMIT=90s
	create_answer_has_bytes_twice | truth | api~SandboxCreate.1=dup:down:30:40 | WAIT=3m BOOT_LIMIT=90s
	create_has_a_wrong_byte_in_a_frames_head | truth | api~SandboxCreate.1=flip:up:27 | WAIT=2m
	create_has_a_wrong_byte | truth | api~SandboxCreate.1=flip:up:1500 | WAIT=2m
	create_lacks_bytes | truth | api~SandboxCreate.1=drop:up:1500:20 | WAIT=2m
	create_is_slow | done 1 | api~SandboxCreate.1=delay:2000
E
)
table < <(calls <<-'E'
	+each_is_cut_once | done 1 | api~AuthTokenGet.1=cut:down:30 | api~AppGetOrCreate.1=reset:up:40 | api~VolumeGetOrCreate.1=cut:down:0 | api~ImageGetOrCreate.1=cut:up:300 | api~ImageJoinStreaming.1=cut:down:60 | api~SecretGetOrCreate.1=cut:down:100 | api~SandboxListV2.1=reset:down:20 | api~SandboxTerminate.1=cut:down:0
	each_has_a_wrong_byte_once | done 1 | api~AuthTokenGet.1=flip:down:30 | api~AppGetOrCreate.1=flip:down:3 | api~VolumeGetOrCreate.1=flip:down:70 | api~SandboxList.1=flip:down:12 | api~SandboxTerminate.1=flip:down:8 | WAIT=2m BOOT_LIMIT=90s
	each_lacks_bytes_once | done 1 | api~AuthTokenGet.1=drop:down:30:5 | api~AppGetOrCreate.1=drop:down:0:9 | api~SandboxList.1=drop:down:80:10 | api~SandboxTerminate.1=drop:up:30:8 | WAIT=2m BOOT_LIMIT=90s
	each_has_bytes_twice_once | done 1 | api~AuthTokenGet.1=dup:down:30:5 | api~AppGetOrCreate.1=dup:down:0:9 | api~SandboxList.1=dup:down:80:10 | api~SandboxTerminate.1=dup:up:30:8 | WAIT=2m BOOT_LIMIT=90s
	token_is_held_up | done 1 | api~AuthTokenGet.1=stall:down:0 | BOOT_LIMIT=2m
	list_is_held_up | done 1 | api~SandboxList.2=stall:down:40 | BOOT_LIMIT=2m
	+end_is_cut_again_and_again | done 1 | api~SandboxTerminate.1=cut:up:40 | api~SandboxTerminate.2=reset:down:0 | api~SandboxTerminate.3=cut:down:0 | api~SandboxTerminate.4=cut:down:40
	end_is_held_up | done 1 | api~SandboxTerminate.1=stall:up:40
	first_connections_are_refused | done 1 | api.1=refuse | api.2=refuse | api.5=refuse
	portal_for_a_while | done 1 | api.4=run:portal | api.5=run:portal | api.6=run:portal | WAIT=2m BOOT_LIMIT=90s
	+portal_for_ever | fails 6 | api.*=run:portal
	+volume_is_behind_a_portal | done 1 | files.*=run:portal
	volume_is_refused | done 1 | files.*=refuse
	volume_is_cut | done 1 | files.1=cut:up:100 | files.2=cut:down:0
E
)
# The same to their sshd.
table <<-'E'
	+ssh_is_cut_one_after_another | done 1 | pod.1=cut:down:500 | pod.2=reset:up:5000 | pod.3=cut:down:1500
	ssh_has_a_wrong_byte | done 1 | pod.1=flip:up:5000 | pod.2=bit:down:2000 | BOOT_LIMIT=2m
	ssh_lacks_bytes | done 1 | pod.1=drop:up:4500:100 | pod.2=dup:up:4500:100 | BOOT_LIMIT=2m
	portal_in_the_tunnel | fails 6 | pod.*=run:portal
	tunnel_falls_silent | done 1 | pod.1=stall:up:5000 | BOOT_LIMIT=2m
E

# ---- with TLS, as Modal is in earnest: one connection for all, and nothing spoilt is ever taken for data ----

eval "any_$(declare -f cloud)"
cloud() { # for a case tls_..., and for every other round, one that speaks TLS
	case ${T##*/} in
	c_tls_* | c_*[13579]) CLOUD_OPTIONS=--tls ;;
	esac
	any_cloud || return
	allow_volumes v # or a connection before the run's first one asks for it
	[ -z "${CLOUD_OPTIONS:-}" ] || export CURL_CA_BUNDLE=$MD_STATE/cert.pem
}
bad_line() { MODAL_SERVER_URL=${MODAL_SERVER_URL/localhost/modal.test}; } # a name that detour.so knows
good_line() { MODAL_SERVER_URL=${MODAL_SERVER_URL/modal.test/localhost}; }
table <<-'E'
	tls_is_cut_now_and_then | done 1 | api.1=cut:down:3000 | api.2=reset:down:2500 | api.3=cut:up:6000 | WAIT=3m BOOT_LIMIT=2m
	tls_is_cut_in_its_handshake | done 1 | api.1=cut:down:100 | api.2=reset:up:30 | api.3=cut:down:900
	+tls_has_wrong_bytes | done 1 | api.1=flip:down:1500 | api.2=bit:up:550 | api.3=bit:down:1200 | api.4=flip:down:20
	tls_lacks_bytes | done 1 | api.1=drop:down:3000:10 | api.2=dup:up:550:30 | api.3=dup:down:1200:50 | WAIT=3m BOOT_LIMIT=2m
	tls_stands_still | done 1 | api.1=stall:down:2500 | WAIT=3m BOOT_LIMIT=2m
	+tls_gives_way_to_a_portal | fails 6 modal.test | api.*=run:portal
	tls_gives_way_to_plain_for_a_while | done 1 | api.1=cut:down:3000 | api.2=run:portal | api.3=run:portal | WAIT=2m BOOT_LIMIT=90s
E
# Names are not known at first.
c_tls_names_come_late() {
	slow_worker
	md_config 'code = { path = "code"; };'
	spoil 'api.1=cut:down:5000'
	: >no-names
	burst_bg run --json --trace
	wait_for 60 "the line to be missed" grep -q "resolve" err.txt
	rm no-names
	burst_wait
	all_done 6 1
	line_over
}
c_tls_certificate_of_somebody_else() {
	unset CURL_CA_BUNDLE
	slow_worker
	md_config 'code = { path = "code"; }; wait = "3s";'
	burst run --json
	in_vain 6 0
	judge 6
	json .error.message >message
	has message certificate
}
also +tls_names_come_late +tls_certificate_of_somebody_else

# ---- the walk ----

WIRES_KNOWN=(api api files pod pod)
SERVICE=/modal.client.ModalClient
CALLS=("api~$SERVICE/SandboxCreate" "api~$SERVICE/SandboxCreate" "api~$SERVICE/SandboxList" "api~$SERVICE/SandboxList" "api~$SERVICE/SandboxTerminate"
	"api~$SERVICE/SandboxGetTunnels" "api~$SERVICE/AuthTokenGet" "api~$SERVICE/Image" "api~$SERVICE/Volume" "api~$SERVICE/App" 'files~PUT /' 'files~GET /')
BLOWS_KNOWN=('{"end":"TERMINATED","hard":true}' '{"drop":true}')
what_goes_wrong() { the_line_goes_wrong; }
