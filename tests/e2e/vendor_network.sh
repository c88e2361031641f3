#!/bin/bash
# vendor_network.sh [SECONDS [SEED]] - the lines to the API of VENDOR (modal, runpod or vast), to its storage and to its pods are cut, reset,
# held up and spoilt at chosen bytes, refused, answered by a captive portal or by something that speaks TLS: named cases, then rounds
# that draw by a seed. Whatever the line does, the outputs are right and the pods gone, or the exit status and one line say what is so.
#
# A round that fails prints its seed; `VENDOR=modal vendor_network.sh 0 SEED` plays it again. NAMED=all: all cases of the tables;
# ONLY=expression: some of them; VERBOSE=1: how long each took; AT_ONCE=so many at once. tests/cloud/VENDOR/network.sh has the cases
# of one vendor alone.
# shellcheck disable=SC2317 # called by random.sh and network.sh
. "$(dirname "$0")/../cloud/common/random.sh"
. "$(dirname "$0")/lib.sh"
# shellcheck source=/dev/null
. "$ROOT/tests/cloud/$VENDOR/client.sh"
. "$ROOT/tests/cloud/common/network.sh"
port_of() { local rest=${1#*://}; rest=${rest%%/*}; echo "${rest##*:}"; }
# shellcheck source=/dev/null
. "$ROOT/tests/cloud/$VENDOR/network.sh"

table <<-'E'
	+whole_line_is_slow | done 1 | *.*=delay:150
	+api_speaks_tls | fails 6 | api.*=run:alert
	api_says_nothing | fails 6 | api.*=silent
E

# Large files by way of the storage, where there is one; small ones come by it, too, and before them.
c_uploads_are_cut() { large_files 'files~PUT /.1=cut:up:3000000' "$UPLOAD_ENDS"; }
c_an_upload_has_a_wrong_byte() { large_files 'files~PUT /.1=flip:up:5000000'; }
c_an_upload_lacks_bytes() { large_files 'files~PUT /.1=drop:up:4000000:1000'; }
c_an_upload_is_held_up() { large_files 'files~PUT /.1=stall:up:2000000'; }
c_downloads_are_cut() { large_files "$LARGE_FILE.1=cut:down:1000000" "$LARGE_FILE.2=reset:down:2500000" "$LARGE_FILE.3=cut:down:100"; }
c_downloads_have_wrong_bytes() { large_files "$LARGE_FILE.1=flip:down:1000000" "$LARGE_FILE.2=bit:down:3999999" "$LARGE_FILE.3=bit:down:20"; }
c_downloads_have_bytes_twice_and_lack_others() { large_files "$LARGE_FILE.1=dup:down:1000000:500" "$LARGE_FILE.2=drop:down:2000000:500"; }
c_a_download_is_held_up() { large_files "$LARGE_FILE.1=stall:down:1000000" "$LARGE_FILE.2=stall:down:1000000" "$LARGE_FILE.3=stall:down:1000000"; }
[ -n "${NO_VOLUMES:-}" ] || also +uploads_are_cut an_upload_has_a_wrong_byte an_upload_lacks_bytes an_upload_is_held_up +downloads_are_cut +downloads_have_wrong_bytes \
	downloads_have_bytes_twice_and_lack_others a_download_is_held_up

# ---- names, and who answers there ----

c_its_name_is_unknown() { nowhere "https://api.$VENDOR.invalid" "resolve"; }
c_it_does_not_speak_tls() { nowhere "https://127.0.0.1:$(port_of "${!API_URL}")" "127.0.0.1"; }
c_nobody_listens_there() { nowhere http://127.0.0.1:1 "127.0.0.1"; }
# It is away when the pods are to be given back: they are, as soon as it is back.
c_it_is_away_at_the_end() {
	slow_worker
	vendor_config 'code = { path = "code"; };'
	spoil 'pod.*=delay:1'
	burst_bg run --json --trace
	wait_for 60 "the last file" file_count out 5
	away api
	wait_for 60 "a release that is not heard" grep -q "connect to server" err.txt
	rm -f away
	burst_wait
	all_done 6 1
	line_over
}
also +its_name_is_unknown +it_does_not_speak_tls nobody_listens_there +it_is_away_at_the_end

some_rounds 1 3 4
t_lines() { cases "${NAMES[@]}"; }
if [ -n "$LONG" ]; then
	t_random_lines() { random_faults; }
fi
run_tests "${ARGS[@]}"
