#!/bin/bash
# servers.sh - whom a key is shown to: servers that prove who they are, by TLS 1.2 or newer; nobody in the clear but this
# machine; and nobody that a server leads to.
. "$(dirname "$0")/../e2e/lib.sh"
KEYS='rpa_FORONEALONE0123456789|as-FORONEALONE0123456789|rps_FORONEALONE0123456789'
SERVERS=

serve() { # serve NAME KIND [ARGUMENTS]: its port in $PORT, what it hears in NAME/heard
	local name=$1
	shift
	mkdir -p "$name"
	mkfifo "$name/port"
	node "$ROOT/tests/security/tls_server.js" "$name" "$@" >"$name/port" 2>"$name/err" &
	SERVERS="$SERVERS $!"
	read -rt 20 PORT <"$name/port" || complain "$name did not start: $(tail -n 2 "$name/err")"
	: >>"$name/heard"
}
servers_end() {
	# shellcheck disable=SC2086
	[ -z "$SERVERS" ] || { kill $SERVERS; wait $SERVERS; } 2>/dev/null
	SERVERS=
}
with_keys() {
	export RUNPOD_API_KEY=rpa_FORONEALONE0123456789 MODAL_TOKEN_ID=ak-0123456789012345 MODAL_TOKEN_SECRET=as-FORONEALONE0123456789
	unset RUNPOD_S3_ACCESS_KEY RUNPOD_S3_SECRET_KEY RUNPOD_S3_URL RUNPOD_API_URL MODAL_SERVER_URL CURL_CA_BUNDLE SSL_CERT_FILE
	export MODAL_CONFIG_PATH=/nonexistent
}
never_heard() { # never_heard NAME WHAT
	[ ! -s "$1/heard" ] || complain "$2: it heard $(grep -oE "$KEYS" "$1/heard" | head -n 1) $(head -c 300 "$1/heard")"
}
can() { command -v node >/dev/null && command -v openssl >/dev/null || { skip "no node or openssl"; return 1; }; }

# certificate NAME SUBJECT-ALTERNATIVE [PROGRAM IN FRONT]: by the authority "ca"
certificate() {
	local name=$1 san=$2
	shift 2
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$name.key" -out "$name.csr" -subj "/CN=$name" 2>/dev/null &&
		"$@" openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile <(echo "subjectAltName=$san") \
			-out "$name.crt" 2>/dev/null || complain "certificate $name"
}
authority() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -days 3650 -subj /CN=ours 2>/dev/null
}
asks() { # asks VENDOR URL: what a command that shows a key says; its status in $STATUS
	case $1 in
	runpod) RUNPOD_API_URL=$2 burst offers -p runpod ;;
	modal) MODAL_SERVER_URL=$2 burst reap -p modal ;;
	s3) RUNPOD_S3_URL=$2 burst volume gc v --older-than 0s ;; # of a stand-in's volume
	esac
}
untrusted() { # untrusted NAME HOST WORDS: no key is shown there, and the message says why
	local vendor
	for vendor in ${VENDORS:-runpod modal}; do
		: >"$1/heard"
		asks $vendor "https://$2:$PORT"
		is "$STATUS" 6 "$vendor, $1: exit status ($(tail -n 1 err.txt))"
		grep -qiE "$3" err.txt || complain "$vendor, $1: it says $(tail -n 1 err.txt)"
		never_heard "$1" "$vendor, $1"
	done
}
certificates() { # of an authority that nobody knows, and of others; what is right but for the authority is "good"
	authority
	certificate good IP:127.0.0.1,DNS:localhost
	certificate other DNS:other.example
	command -v faketime >/dev/null && certificate expired IP:127.0.0.1 faketime -f -400d
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout self.key -out self.crt -days 2 -subj /CN=self \
		-addext subjectAltName=IP:127.0.0.1 2>/dev/null
}
wrong_ones() { # with the authority known
	serve other tls other.crt other.key
	untrusted other 127.0.0.1 'name|IP address'
	untrusted other localhost 'name'
	if [ -e expired.crt ]; then
		serve expired tls expired.crt expired.key
		untrusted expired 127.0.0.1 'expired'
	fi
	serve self tls self.crt self.key
	untrusted self 127.0.0.1 'self.signed'
}
t_servers_must_prove_who_they_are() {
	can || return
	with_keys
	certificates
	serve good tls good.crt good.key
	untrusted good 127.0.0.1 'certificate'
	export CURL_CA_BUNDLE=$T/ca.crt
	for host in 127.0.0.1 localhost; do
		asks runpod "https://$host:$PORT"
		is "$STATUS" 3 "a good server at $host refuses the key ($(tail -n 1 err.txt))"
	done
	grep -q rpa_FORONEALONE good/heard || complain "the good server did not hear the key: nothing was tested"
	wrong_ones
	servers_end
}
t_old_tls_is_refused() { # also where this machine's own settings would allow it
	can || return
	with_keys
	authority
	certificate good IP:127.0.0.1
	cat >openssl.cnf <<-'E2'
		openssl_conf = init
		[init]
		ssl_conf = ssl
		[ssl]
		system_default = all
		[all]
		MinProtocol = TLSv1
		CipherString = DEFAULT@SECLEVEL=0
	E2
	export CURL_CA_BUNDLE=$T/ca.crt OPENSSL_CONF=$T/openssl.cnf
	serve old tls good.crt good.key TLSv1.1
	curl -qsS --cacert ca.crt "https://127.0.0.1:$PORT/" >/dev/null 2>curl.err || { servers_end; skip "nobody here speaks TLS 1.1: $(cat curl.err)"; return; }
	untrusted old 127.0.0.1 'protocol|version|tls|ssl'
	servers_end
}
t_keys_travel_in_the_clear_to_this_machine_alone() {
	local url vendor
	with_keys
	for url in http://127.0.0.1.example.com http://localhost.example.com http://localhost@example.com http://127.0.0.1:80@example.com \
		'http://example.com#@127.0.0.1' 'http://example.com?@127.0.0.1' http://example.com http://10.0.0.1 'http://[::2]' \
		http://0.0.0.0 http://128.0.0.1 http://126.255.255.255 'http://[::ffff:10.0.0.1]' HTTP://example.com ftp://127.0.0.1 \
		file:///etc/passwd http:/127.0.0.1 'http://127.0.0.1\@example.com' 'http://127.0.0.1 .example.com' //example.com example.com; do
		for vendor in runpod modal; do
			asks $vendor "$url"
			is "$STATUS" 2 "$vendor: $url: exit status ($(tail -n 1 err.txt))"
			hasnt err.txt FORONEALONE
		done
		RUNPOD_API_URL=http://127.0.0.1:9 RUNPOD_S3_URL=$url RUNPOD_S3_ACCESS_KEY=user_x RUNPOD_S3_SECRET_KEY=rps_FORONEALONE0123456789 \
			burst offers -p runpod
		is "$STATUS" 2 "S3: $url: exit status"
	done
	# this machine, however it is written: asked, and nobody answers; or not taken
	for url in http://127.0.0.1:9 'http://[::1]:9' http://localhost:9 http://127.9.9.9:9; do
		asks runpod "$url"
		is "$STATUS" 6 "$url: exit status ($(tail -n 1 err.txt))"
	done
	for url in http://2130706433:9 http://0x7f000001:9 http://127.1:9 http://017700000001:9 http://LOCALHOST:9; do
		asks runpod "$url"
		[ "$STATUS" = 2 ] || [ "$STATUS" = 6 ] || complain "$url: exit status $STATUS"
	done
}
t_no_key_follows_a_redirect() {
	can || return
	local status
	with_keys
	serve there plain
	local there=http://127.0.0.1:$PORT
	for status in 301 302 303 307 308; do
		serve "api$status" redirect $status "$there/elsewhere"
		asks runpod "http://127.0.0.1:$PORT"
		[ "$STATUS" != 0 ] || complain "$status: exit status 0"
		grep -q rpa_FORONEALONE "api$status/heard" || complain "$status: the API was not asked"
		serve "grpc$status" redirect2 $status "$there/elsewhere"
		asks modal "http://127.0.0.1:$PORT"
		[ "$STATUS" != 0 ] || complain "Modal, $status: exit status 0"
		grep -q as-FORONEALONE "grpc$status/heard" || complain "$status: Modal was not asked"
	done
	never_heard there "whom a server leads to"
	servers_end
}

# ---- S3, and the addresses that Modal names for files ----
c_s3_leads_elsewhere() {
	SERVERS=''
	script_lines 2
	rp_config
	rp_api POST /v2/network-volumes '{"name":"v","size":10,"dataCenter":"EU-RO-1"}'
	serve there plain
	serve s3 redirect 307 "http://127.0.0.1:$PORT/elsewhere"
	RUNPOD_S3_URL=http://127.0.0.1:$PORT burst volume gc v --older-than 0s
	[ "$STATUS" != 0 ] || complain "exit status 0"
	grep -q AWS4-HMAC s3/heard || complain "S3 was not asked"
	never_heard there "whom S3 leads to"
	touch "$BURST_STATE_DIR/ledger.db"
	servers_end
}
c_s3_must_prove_who_it_is() {
	SERVERS='' VENDORS=s3
	script_lines 2
	rp_config
	rp_api POST /v2/network-volumes '{"name":"v","size":10,"dataCenter":"EU-RO-1"}'
	certificates
	serve good tls good.crt good.key
	untrusted good 127.0.0.1 'certificate'
	export CURL_CA_BUNDLE=$T/ca.crt
	asks s3 "https://127.0.0.1:$PORT"
	grep -q AWS4-HMAC good/heard || complain "the good server was not asked: nothing was tested"
	wrong_ones
	touch "$BURST_STATE_DIR/ledger.db"
	servers_end
}
t_storage_that_leads_elsewhere_or_is_somebody_else() {
	can || return
	. "$ROOT/tests/cloud/runpod/client.sh"
	cases c_s3_leads_elsewhere c_s3_must_prove_who_it_is
}
c_tokens_stay_with_the_api() { # addresses of files carry rights of their own
	script_lines 3
	slow_worker SLOW=0.1
	md_config 'code = { path = "code"; };'
	burst run --json
	all_done 3
	md_control requests >requests.json
	jq -c '.[] | select(.op // "" | startswith("block:")) | .headers' requests.json >blocks
	[ -s blocks ] || complain "no block was put or read"
	! grep -qiE "x-modal|authorization|cookie|$MODAL_TOKEN_ID|$MODAL_TOKEN_SECRET" blocks || complain "a token went to an address of files: $(sort -u blocks | head -n 2)"
}
# Blocks go to no server that does not prove who it is: then they take another way.
blocks_at() { # blocks_at CERTIFICATE: the API says that they go there
	SERVERS=''
	certificates
	serve there tls "$1.crt" "$1.key"
	md_control settings "{\"blocks_at\":\"https://127.0.0.1:$PORT\"}" >/dev/null
	script_lines 3
	slow_worker SLOW=0.1
	md_config 'code = { path = "code"; };'
	burst run --json -v
	all_done 3
	[ "$(asked VolumePutFiles2)" -gt 0 ] || complain "nothing was to be put"
	servers_end
}
c_blocks_of_an_unknown_authority() {
	blocks_at good
	[ -s there/met ] || complain "nobody was there: nothing was tested"
	never_heard there "whom nobody vouches for"
}
c_blocks_of_another_name() {
	export CURL_CA_BUNDLE=$T/ca.crt
	blocks_at other
	[ -s there/met ] || complain "nobody was there: nothing was tested"
	never_heard there "who has another name"
}
c_blocks_of_one_that_proves_it() {
	export CURL_CA_BUNDLE=$T/ca.crt
	blocks_at good
	grep -q '^PUT /blocks/' there/heard || complain "it was not asked: $(head -n 2 there/heard)"
}
t_tokens_stay_with_modals_api_and_blocks_with_whom_it_names() {
	can || return
	. "$ROOT/tests/cloud/modal/client.sh"
	cases c_tokens_stay_with_the_api c_blocks_of_an_unknown_authority c_blocks_of_another_name c_blocks_of_one_that_proves_it
}

run_tests "$@"
