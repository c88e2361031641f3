#!/bin/sh
# The start script with RunPod's end.sh, and a stand-in for the vendor's API: which tools it takes, what answers it gets.
#
# shellcheck disable=SC2013,SC2046,SC2016,SC2015,SC2086,SC2154
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/start_script_lib.sh"

# A PATH with the base system's tools and of the five only those named; nothing is installed on the machine of the tests.
only_tools() {
	farm=$top/farm-$(echo "$*" | tr ' ' -)
	mkdir -p "$farm"
	for d in /bin /usr/bin /sbin /usr/sbin; do
		ln -s "$d"/* "$farm/" 2>/dev/null
	done
	for f in curl wget 'python3*' 'perl*' openssl dpkg apt-get apk dnf microdnf; do
		rm -f "$farm"/$f
	done
	for t; do
		real=$(command -v "$t")
		printf '#!/bin/sh\necho "$*" >>"%s/argv"\nexec "%s" "$@"\n' "$top" "$real" >"$farm/$t"
		chmod 755 "$farm/$t"
	done
	POD_PATH=$farm
}

# The script itself adds the system's folders to PATH: in these tests it must not find them.
runpod() { # CODES... [NAME=VALUE...]
	[ -n "$api" ] || start_api
	printf '%s\n' "$@" | grep -v '^[A-Z_]*=' >"$top/codes"
	: >"$top/requests"
	sed "s|^PATH=.*|PATH=\$PATH|; s|/usr/sbin/policy-rc.d|$top/policy-rc.d|" "$SCRIPT" >"$top/start.sh"
	SCRIPT=$top/start.sh
	pod runpod 60 60 RUNPOD_POD_ID=pod7x RUNPOD_API_KEY=rpa_secret BURST_API_URL="http://127.0.0.1:$api" BURST_SWITCH_PAUSE_S=0 \
		$(printf '%s\n' "$@" | grep '^[A-Z_]*=')
	SCRIPT=$here/jobs/agent/start.sh
}

asked() { # REGEX [TIMES]
	[ "$(grep -c -- "$1" "$top/requests")" -ge "${2:-1}" ]
}

start_api() {
	perl "$here/tests/e2e/http_stub.pl" "$top/port" "$top/requests" "$top/codes" &
	echo $! >>"$top/pids"
	for _ in $(seq 100); do
		[ -e "$top/port" ] && break
		sleep 0.05
	done
	api=$(cat "$top/port")
}

test_runpod() {
	for tool in curl wget python3 perl; do
		command -v $tool >/dev/null || continue
		: >"$top/argv"
		only_tools $tool
		runpod 'GET /v2/pods/pod7x 200' 'DELETE /v2/pods/pod7x 204'
		until_true test -e "$dir/home/switch"
		check "switch by $tool" "$(cat "$dir/home/switch")" "unproven http 200 $tool"
		check 'the key is not in what sessions and workers get' "$(grep -c 'RUNPOD_API_KEY\|rpa_secret' "$dir/home/env")" 0
		echo over >"$dir/home/end"
		until_true asked '^DELETE /v2/pods/pod7x Bearer rpa_secret $' 2
		until_true grep -q "^ok http 204 $tool" "$dir/home/switch"
		alive || fail "it went away although the pod was still there ($tool)"
		grep -q rpa_secret "$top/argv" && fail "the key stood in argv of $tool"
		kill -9 $pid
	done
	check 'what the tools call themselves' "$(sort -u "$top/requests.agents")" burst/1
	POD_PATH=
}

# A tool that is refused with everything it asks; what it was told on stdin is kept.
refused_tool() { # NAME
	printf '#!/bin/sh\necho "%s" >>"%s/refused"\necho 403\n' "$1" "$top" >"$farm/$1"
	chmod 755 "$farm/$1"
}

# 403 may be meant for the tool: the next one is asked with, and where there is none, curl is installed.
test_runpod_refuses_the_tool() {
	: >"$top/refused"
	only_tools perl
	refused_tool python3
	runpod 'GET /v2/pods/pod7x 200' 'DELETE /v2/pods/pod7x 204'
	until_true test -e "$dir/home/switch"
	check 'switch' "$(cat "$dir/home/switch")" 'unproven http 200 perl'
	echo over >"$dir/home/end"
	until_true grep -q '^ok http 204 perl' "$dir/home/switch"
	check 'who was refused' "$(sort -u "$top/refused")" python3
	kill -9 $pid
	rm -f "$farm/python3"

	only_tools
	refused_tool python3
	rm -f "$farm/apt-get" "$farm/curl"
	printf '#!/bin/sh\necho 0\n' >"$farm/id.new"
	printf '#!/bin/sh\n[ "$1" = add ] && ln -s "%s" "%s/curl"\n' "$(command -v curl)" "$farm" >"$farm/apk.new"
	for f in id apk; do chmod 755 "$farm/$f.new" && mv -f "$farm/$f.new" "$farm/$f"; done
	runpod 'GET /v2/pods/pod7x 200'
	until_true test -e "$dir/home/switch"
	check 'switch after an install' "$(cat "$dir/home/switch")" 'unproven http 200 curl'
	kill -9 $pid
	rm -f "$farm/curl" "$farm/python3" "$farm/apk"
	POD_PATH=
}

# An apt whose last run was cut off by an end of the container.
test_install_was_cut_off() {
	only_tools
	touch "$top/half" "$top/unmet"
	rm -f "$farm/apt-get" "$farm/dpkg" "$farm/id" "$farm/curl"
	printf '#!/bin/sh\necho 0\n' >"$farm/id"
	printf '#!/bin/sh\n[ "$*" != "--configure -a" ] || rm -f "%s"\n' "$top/half" >"$farm/dpkg"
	cat >"$farm/apt-get" <<-END
		#!/bin/sh
		[ ! -e "$top/half" ] || { echo "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'"; exit 100; }
		case " \$* " in
		*' update '*) exit 0 ;;
		*' -f install ') rm -f "$top/unmet" ;;
		esac
		[ ! -e "$top/unmet" ] || { echo "E: Unmet dependencies."; exit 100; }
		ln -sf "$(command -v curl)" "$farm/curl"
	END
	chmod 755 "$farm/id" "$farm/dpkg" "$farm/apt-get"
	runpod 'GET /v2/pods/pod7x 200'
	until_true test -e "$dir/home/switch"
	until_true grep -q '^unproven http 200 curl' "$dir/home/switch"
	check 'what is left of it' "$(ls "$top/half" "$top/unmet" "$top/policy-rc.d" 2>/dev/null)" ''
	kill -9 $pid
	rm -f "$farm/curl" "$farm/id" "$farm/dpkg" "$farm/apt-get"
	POD_PATH=
}

test_openssl_says_who_it_is() {
	only_tools
	printf '#!/bin/sh\ncat >>"%s/openssl.said"\nprintf "HTTP/1.1 200 OK\\r\\n"\n' "$top" >"$farm/openssl"
	chmod 755 "$farm/openssl"
	sed "s|^PATH=.*|PATH=\$PATH|" "$here/jobs/agent/start.sh" >"$top/start.sh"
	SCRIPT=$top/start.sh
	pod runpod 60 60 RUNPOD_POD_ID=pod7x RUNPOD_API_KEY=rpa_secret BURST_API_URL=https://localhost:1
	until_true grep -q '^unproven http 200 openssl' "$dir/home/switch"
	tr -d '\r' <"$top/openssl.said" | grep -qx 'User-Agent: burst/1' || fail 'no User-Agent by openssl'
	kill -9 $pid
	rm -f "$farm/openssl"
	SCRIPT=$here/jobs/agent/start.sh POD_PATH=
}

# The key goes nowhere but to the address that we gave.
test_runpod_leads_elsewhere() {
	for tool in curl wget python3 perl; do
		command -v $tool >/dev/null || continue
		only_tools $tool
		runpod "GET /v2/pods/pod7x 302 http://localhost:$api/elsewhere" 'GET /elsewhere 200'
		until_true grep -q "bad http 302 $tool" "$dir/home/switch"
		check "requests by $tool that went elsewhere" "$(grep -c ' /elsewhere ' "$top/requests")" 0
		kill -9 $pid
	done
	POD_PATH=
}

test_runpod_refused() {
	only_tools curl
	runpod 'GET /v2/pods/pod7x 403' 'POST /v2/pods/pod7x/action 500' 'POST /graphql 500' 'DELETE /v2/pods/pod7x 403'
	until_true grep -q 'bad http 403 curl' "$dir/home/switch"
	echo 'GET /v2/pods/pod7x 200' >"$top/codes.new"
	cat "$top/codes" >>"$top/codes.new" && mv "$top/codes.new" "$top/codes"
	until_true grep -q 'unproven http 200 curl' "$dir/home/switch"
	echo over >"$dir/home/end"
	until_true asked '^POST /v2/pods/pod7x/action .*{"action":"terminate"}' 2
	until_true asked '^POST /v2/pods/pod7x/action .*{"action":"stop"}' 2
	until_true asked '^POST /graphql .*{"query":"mutation{podTerminate(input:{podId:\\"pod7x\\"})}"}' 2
	until_true asked '^POST /graphql .*podStop' 2
	until_true grep -q '^bad ending this pod is refused: http 500 curl' "$dir/home/switch"
	kill -9 $pid
	POD_PATH=
}

# An openssl that reads the request and answers as the codes say; TLS itself is the next test's subject.
made_up_openssl() {
	cat >"$farm/openssl" <<-END
		#!/bin/sh
		read -r method path rest
		while read -r line && [ "\$line" != "\$(printf '\r')" ]; do :; done
		read -r body
		echo "\$method \$path - \$body" >>"$top/requests"
		code=\$(sed -n "s|^\$method \$path \([0-9]*\)\$|\1|p" "$top/codes")
		printf 'HTTP/1.1 %s X\r\nNel: {"data":1,"errors":0}\r\n\r\n' "\$code"
		cat "$top/codes.reply"
	END
	chmod 755 "$farm/openssl"
}

# That the vendor is busy or out of order for a while is no reason to stop, which costs the disk and leaves nobody to ask again.
test_runpod_is_busy() {
	only_tools curl
	for busy in 429 503; do
		runpod 'GET /v2/pods/pod7x 200' "DELETE /v2/pods/pod7x $busy,204" "POST /v2/pods/pod7x/action $busy" "POST /graphql $busy"
		until_true grep -q '^unproven' "$dir/home/switch"
		echo over >"$dir/home/end"
		until_true grep -q '^ok http 204 curl' "$dir/home/switch"
		asked '^DELETE' 2 || fail "no DELETE after $busy"
		check "asked to stop after $busy" "$(grep -c 'stop\|podStop' "$top/requests")" 0
		check "the switch was bad after $busy" "$(grep -c 'switch: bad' "$dir/home/start.log")" 0
		kill -9 $pid
	done
	# but where it stays so
	runpod 'GET /v2/pods/pod7x 200' 'DELETE /v2/pods/pod7x 500' 'POST /v2/pods/pod7x/action 500,500,500,500,200' 'POST /graphql 500'
	until_true grep -q '^unproven' "$dir/home/switch"
	echo over >"$dir/home/end"
	until_true asked '{"action":"stop"}'
	asked '^DELETE' 5 || fail 'it gave up at once'
	until_true grep -q '^ok http 200 curl' "$dir/home/switch"
	kill -9 $pid
	POD_PATH=
}

# ... nor is it the doing of the tool that asked: another one would only take more of what the vendor grants its user.
test_runpod_is_busy_for_every_tool() {
	command -v perl >/dev/null || { echo "skipped: no perl here"; return 0; }
	only_tools curl perl
	runpod 'GET /v2/pods/pod7x 200' 'DELETE /v2/pods/pod7x 503,429,204' 'POST /v2/pods/pod7x/action 503' 'POST /graphql 503'
	until_true grep -q '^unproven' "$dir/home/switch"
	echo over >"$dir/home/end"
	until_true grep -q '^ok http 204 curl' "$dir/home/switch"
	check 'what another tool asked for' "$(grep ' perl: ' "$dir/home/start.log")" ''
	kill -9 $pid
	# where it stays so, they are asked: it may be meant for the one
	runpod 'GET /v2/pods/pod7x 200' 'DELETE /v2/pods/pod7x 503' 'POST /v2/pods/pod7x/action 503' 'POST /graphql 503'
	until_true grep -q '^unproven' "$dir/home/switch"
	echo over >"$dir/home/end"
	until_true grep -q '^bad ending this pod is refused: http 503 curl' "$dir/home/switch"
	until_true grep -q ' perl: DELETE' "$dir/home/start.log"
	kill -9 $pid
	POD_PATH=
}

# How many requests the log names within SECONDS of the first that matches.
requests_within() { # SECONDS REGEX
	sed -n 's/^[0-9-]* \([0-9]*\):\([0-9]*\):\([0-9]*\) \([a-z0-9]*: [A-Z]* [^ ]*: http\)/\1 \2 \3 \4/p' "$dir/home/start.log" |
		awk -v most="$1" -v re="$2" '$0 ~ re { t = $1 * 3600 + $2 * 60 + $3; if (first == "") first = t; if ((t - first + 86400) % 86400 < most) n++ } END { print n + 0 }'
}

# All pods of an account share what it may ask for. A key that is refused everything asks about itself, and for its end, less and
# less often, and each end is asked for by the thorough way in turns with the others.
test_runpod_refused_key_backs_off() {
	for code in 401 403; do
		only_tools curl wget python3 perl
		runpod "GET /v2/pods/pod7x $code" "DELETE /v2/pods/pod7x $code" "POST /v2/pods/pod7x/action $code" "POST /graphql $code" \
			BURST_SWITCH_PAUSE_S=60
		until_true grep -q "^bad http $code" "$dir/home/switch"
		echo over >"$dir/home/end"
		until_true grep -q 'switch: bad ending this pod is refused' "$dir/home/start.log" # the next self-check's word replaces it
		until_true asked '^DELETE' 6
		alone=$(grep -c 'GET' "$top/requests")
		[ "$alone" -le 14 ] || fail "the self-check asked $alone times in some 15 s ($code)"
		ends=$(requests_within 60 'DELETE|POST')
		[ "$ends" -le 14 ] || fail "an end was asked for $ends times in some 15 s ($code)"
		kill -9 $pid
	done
	POD_PATH=
}

# The self-check may run while the pod asks for its end: what the one sends is never the other's.
test_runpod_asks_twice_at_a_time() {
	for tool in curl wget; do
		command -v $tool >/dev/null || continue
		only_tools $tool
		sed -i 's/^exec/sleep 0.5; exec/' "$farm/$tool" # what it was given to send lies there as long
		runpod 'GET /v2/pods/pod7x 404' 'DELETE /v2/pods/pod7x 500' 'POST /v2/pods/pod7x/action 500' 'POST /graphql 500'
		until_true asked '^GET'
		echo over >"$dir/home/end"
		until_true asked '^POST' 8
		check "bodies by $tool that are empty" "$(grep -c '^POST [^ ]* Bearer rpa_secret $' "$top/requests")" 0
		check "bodies by $tool where none belongs" "$(grep -c '^[GD][^ ]* [^ ]* Bearer rpa_secret ..*' "$top/requests")" 0
		kill -9 $pid
	done
	POD_PATH=
}

# Another pod on the volume has put a link where the log goes: what it leads to stays as it is, and the log comes all the same.
test_runpod_log_goes_through_no_link() {
	only_tools curl
	runpod 'GET /v2/pods/pod7x 200' 'DELETE /v2/pods/pod7x 204'
	until_true test -e "$dir/home/switch"
	mkdir -p "$dir/volume/runs/r1/att1"
	echo precious >"$dir/precious"
	ln -s "$dir/precious" "$dir/volume/runs/r1/att1/start.log"
	ln -s "$dir/precious" "$dir/volume/runs/r1/att1/start.log.new"
	echo over >"$dir/home/end"
	until_true grep -qs 'ending this pod' "$dir/volume/runs/r1/att1/start.log"
	check 'what the link led to' "$(cat "$dir/precious")" precious
	kill -9 $pid
	POD_PATH=
}

# A job fills the disk that the script's files are on, once with files and once with bytes: the pod is ended all the same.
test_runpod_disk_is_full() {
	[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || { echo "skipped: no disk to fill here"; return 0; }
	mkdir -p "$top/small"
	for tool in curl wget python3 perl; do
		command -v $tool >/dev/null || continue
		for what in files bytes; do
			mount -t tmpfs -o size=1m,nr_inodes=100 none "$top/small" || return
			only_tools $tool
			runpod 'GET /v2/pods/pod7x 200' 'DELETE /v2/pods/pod7x 403' 'POST /v2/pods/pod7x/action 204' BURST_HOME="$top/small"
			until_true grep -q unproven "$top/small/switch"
			echo over >"$top/small/end.later"
			if [ $what = files ]; then
				i=0
				while (: >"$top/small/more$i") 2>/dev/null; do i=$((i + 1)); done
			else
				cat /dev/zero >"$top/small/more" 2>/dev/null
			fi
			mv "$top/small/end.later" "$top/small/end"
			until_true asked '^DELETE /v2/pods/pod7x Bearer rpa_secret $'
			until_true asked '^POST /v2/pods/pod7x/action Bearer rpa_secret {"action":"terminate"}$'
			alive || fail "it went away although the pod was still there ($tool, no room for $what)"
			kill -9 $pid
			umount -l "$top/small"
		done
	done
	POD_PATH=
}

# What the vendor asks for counts: one that names a time is not asked before it, but an end at least once in the longest pause.
test_runpod_names_a_time() {
	only_tools curl
	echo 'Retry-After: 8' >"$top/codes.head"
	runpod 'GET /v2/pods/pod7x 429' 'DELETE /v2/pods/pod7x 429,204' 'POST /v2/pods/pod7x/action 429' 'POST /graphql 429' \
		BURST_SWITCH_PAUSE_S=60
	until_true asked '^GET'
	echo over >"$dir/home/end"
	until_true asked '^DELETE' 2
	apart=$(requests_within 7 DELETE)
	check 'within the time that the vendor named' "$apart" 1
	check 'other ways after a 429' "$(grep -c '^POST' "$top/requests")" 0
	until_true grep -q '^ok http 204 curl' "$dir/home/switch"
	kill -9 $pid
	rm -f "$top/codes.head"
	POD_PATH=
}

# One refusal of everything, as of a vendor that is restarted, costs seconds and not a minute.
test_runpod_is_away_for_a_moment() {
	only_tools curl
	runpod 'GET /v2/pods/pod7x 200' 'DELETE /v2/pods/pod7x 503,503,204' 'POST /v2/pods/pod7x/action 503' 'POST /graphql 503' \
		BURST_SWITCH_PAUSE_S=60
	until_true grep -q '^unproven' "$dir/home/switch"
	echo over >"$dir/home/end"
	until_true asked '^DELETE' 2
	until_true grep -q '^ok http 204 curl' "$dir/home/switch" # the pauses are 2 and 4 s, and one more at most
	asked '^DELETE' 3 || fail 'no third DELETE'
	kill -9 $pid
	POD_PATH=
}

# GraphQL refuses with a 200: only what it says in the body tells. A pod that may stop itself and no more does that.
test_runpod_graphql_refuses() {
	for tool in curl wget python3 perl openssl; do
		command -v $tool >/dev/null || continue
		only_tools $tool
		url=
		[ $tool != openssl ] || { made_up_openssl; url=BURST_API_URL=https://localhost:1; }
		echo '{"errors":[{"message":"not allowed"}],"data":{"podTerminate":null,"podStop":null}}' >"$top/codes.reply"
		runpod 'GET /v2/pods/pod7x 200' 'DELETE /v2/pods/pod7x 403' 'POST /v2/pods/pod7x/action 403' 'POST /graphql 200' $url
		until_true grep -q "^unproven http 200 $tool" "$dir/home/switch"
		echo over >"$dir/home/end"
		until_true asked '^POST /graphql .*podStop'
		asked '^POST /v2/pods/pod7x/action .*{"action":"stop"}' || fail "no stop was asked for by $tool"
		until_true grep -q "^bad ending this pod is refused: http 200 $tool" "$dir/home/switch"
		grep -q 'switch: ok' "$dir/home/start.log" && fail "errors were taken for success ($tool)"
		: >"$top/codes.reply"
		again=$(grep -c podStop "$top/requests")
		until_true asked podStop $((again + 2))
		grep -q 'switch: ok' "$dir/home/start.log" && fail "nothing was taken for success ($tool)"
		echo '{"data":{"podTerminate":null}}' >"$top/codes.reply"
		until_true grep -q "^ok http 200 $tool" "$dir/home/switch"
		kill -9 $pid
		rm -f "$farm/openssl" "$top/codes.reply"
	done
	POD_PATH=
}

# openssl alone, over TLS: a certificate that is not trusted is no answer, and the key does not go there.
test_runpod_openssl() {
	command -v openssl >/dev/null || { echo "skipped: no openssl here"; return 0; }
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
		-keyout "$top/tls.key" -out "$top/tls.crt" 2>/dev/null
	tls=$(free_port)
	openssl s_server -quiet -www -accept "127.0.0.1:$tls" -key "$top/tls.key" -cert "$top/tls.crt" >/dev/null 2>&1 </dev/null &
	echo $! >>"$top/pids"
	only_tools openssl
	rm -f "$farm/apt-get" "$farm/apk" "$farm/dnf" "$farm/microdnf" # nothing else is to be had
	sed "s|^PATH=.*|PATH=\$PATH|" "$here/jobs/agent/start.sh" >"$top/start.sh"
	SCRIPT=$top/start.sh
	: >"$top/argv"
	for trust in "$top/tls.crt" /dev/null; do
		pod runpod 60 60 RUNPOD_POD_ID=pod7x RUNPOD_API_KEY=rpa_secret BURST_API_URL="https://localhost:$tls" \
			SSL_CERT_FILE="$trust" SSL_CERT_DIR=/nonexistent
		case $trust in
		/dev/null) until_true grep -q '^bad no answer from the API (openssl)' "$dir/home/switch" ;;
		*) until_true grep -q '^unproven http 200 openssl' "$dir/home/switch" ;;
		esac
		kill -9 $pid
	done
	grep -q rpa_secret "$top/argv" && fail 'the key stood in argv of openssl'
	SCRIPT=$here/jobs/agent/start.sh POD_PATH=
}

test_runpod_without_id() {
	pod runpod 60 60 RUNPOD_API_KEY=k
	until_true grep -q 'bad this pod does not know its id' "$dir/home/switch"
	kill -9 $pid
	pod runpod 60 60 RUNPOD_POD_ID=../x RUNPOD_API_KEY=k
	until_true grep -q 'bad' "$dir/home/switch"
	kill -9 $pid
	pod runpod 60 60 RUNPOD_POD_ID=x
	until_true grep -q 'bad this pod has no key' "$dir/home/switch"
	kill -9 $pid
}

under_each_shell
