#!/bin/sh
# http.sh - how a pod ends itself by a request to its vendor's API. Precedes the vendor's end.sh and jobs/agent/start.sh, and uses
# their functions and variables. The end.sh sets $api_key and $api_root and defines
#
#   ask TOOL                sends a harmless request that shows whether the pod's key works
#   end_by TOOL WAY         ends this pod in one way; succeeds if the API accepted it. The way "delete" exists
#   end_by_all_ways TOOL    tries all ways and returns at the first accepted one
#   other_way               sets $step to the way of every second later request
#
# shellcheck disable=SC2317 # the via_ functions are called by names put together
# shellcheck disable=SC2154 # home, log and others are start.sh's, api_key and api_root the end.sh's

# Each via_TOOL METHOD URL BODY prints the HTTP status, or 000 if there was no reply. If possible it writes the reply's headers to
# $head and the body to $reply, which belong to this request alone. A request needs no file, since a job may have filled the disk.
# The key travels by file or stdin, never by argv, and only to this address: no tool follows redirects. The API's firewall refuses
# some tools by their User-Agent, hence our own.
user_agent=burst/1

write_api_files() {
	printf 'Authorization: Bearer %s' "$api_key" >"$home/api.auth"
	printf 'header = "Authorization: Bearer %s"\nheader = "Content-Type: application/json"\nuser-agent = "%s"\n' \
		"$api_key" "$user_agent" >"$home/api.curl"
	printf 'header = Authorization: Bearer %s\nheader = Content-Type: application/json\nuser_agent = %s\n' \
		"$api_key" "$user_agent" >"$home/api.wget"
}

via_curl() {
	if [ -n "$3" ]; then
		curl -q -sS -K "$home/api.curl" -X "$1" --data-binary "$3" --connect-timeout 10 -m 30 \
			-D "$head" -o "$reply" -w '%{http_code}' "$2"
	else
		curl -q -sS -K "$home/api.curl" -X "$1" --connect-timeout 10 -m 30 -D "$head" -o "$reply" -w '%{http_code}' \
			"$2"
	fi
}

via_wget() {
	wget --version 2>/dev/null | grep -q GNU || return
	out=$(bounded 60 wget --config="$home/api.wget" --max-redirect=0 -S -O "$reply" -T 30 -t 1 --method="$1" \
		${3:+"--body-data=$3"} "$2" 2>&1)
	printf '%s\n' "$out" >"$head"
	printf '%s\n' "$out" | sed -n 's/^ *HTTP\/[0-9.]* \([0-9][0-9]*\).*/\1/p' | tail -n 1
}

via_python3() {
	# shellcheck disable=SC2016
	bounded 45 python3 -c '
import sys, urllib.request, urllib.error
method, url, auth, body, agent, head, reply = sys.argv[1:8]
name, value = open(auth).read().split(": ", 1)
class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None
r = urllib.request.Request(url, data=body.encode() or None, method=method,
    headers={name: value, "Content-Type": "application/json", "User-Agent": agent})
try:
    got = urllib.request.build_opener(Stay).open(r, timeout=30)
except urllib.error.HTTPError as e:
    got = e
try:
    open(head, "w").write("Retry-After: %s\n" % got.headers.get("Retry-After", ""))
    open(reply, "wb").write(got.read(65536))
finally:
    print(got.code)' "$1" "$2" "$home/api.auth" "$3" "$user_agent" "$head" "$reply"
}

via_perl() {
	# shellcheck disable=SC2016
	bounded 45 perl -MHTTP::Tiny -e '
my ($method, $url, $auth, $body, $agent, $head, $reply) = @ARGV;
open my $f, "<", $auth or die; my (undef, $value) = split /: /, <$f>, 2;
my %o = (headers => {Authorization => $value, "Content-Type" => "application/json"});
$o{content} = $body if length $body;
my $r = HTTP::Tiny->new(agent => $agent, timeout => 30, verify_SSL => 1, max_redirect => 0)->request($method, $url, \%o);
if (open my $o, ">", $head) { print $o "Retry-After: ", $r->{headers}{"retry-after"} // "", "\n"; close $o }
if (open my $o, ">", $reply) { print $o $r->{content} // ""; close $o }
print $r->{status} == 599 ? "000" : $r->{status}' "$1" "$2" "$home/api.auth" "$3" "$user_agent" "$head" "$reply"
}

via_openssl() {
	case $2 in
	https://*) ;;
	*) return ;;
	esac
	host=${2#https://}
	path=/${host#*/}
	host=${host%%/*}
	name=${host%%:*}
	case $host in
	*:*) ;;
	*) host=$host:443 ;;
	esac
	out=$({
		printf '%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nConnection: close\r\nContent-Type: application/json\r\n' \
			"$1" "$path" "$name" "$user_agent"
		cat "$home/api.auth"
		printf '\r\nContent-Length: %s\r\n\r\n%s' "${#3}" "$3"
	} | bounded 40 openssl s_client -quiet -verify_return_error -verify_hostname "$name" -servername "$name" \
		-connect "$host" 2>>"$log" | tr -d '\r')
	printf '%s\n' "$out" | sed '/^$/,$d' >"$head"
	printf '%s\n' "$out" | sed '1,/^$/d' >"$reply"
	printf '%s\n' "$out" | sed -n '1s/^HTTP\/[0-9.]* \([0-9][0-9]*\).*/\1/p'
}

end_call() {
	[ -z "$call" ] || rm -f "$call".*
}

# Makes the files of one reply. The self-check and the end of the pod may run at the same time, so each has its own names. On a
# full disk the files are /dev/null and only the status is known: curl and wget send nothing if they cannot write a reply.
begin_call() {
	end_call
	calls=$((calls + 1))
	call=$home/api.$caller.$calls
	head=$call.head reply=$call.reply
	{ echo >"$head" && echo >"$reply"; } 2>/dev/null || head=/dev/null reply=/dev/null
}

# Sets $after to the seconds of Retry-After, at most ten minutes; 0 if there is none.
read_retry_after() {
	after=$(sed -n 's/^ *[Rr][Ee][Tt][Rr][Yy]-[Aa][Ff][Tt][Ee][Rr]: *\([0-9][0-9]*\).*/\1/p' "$head" 2>/dev/null | tail -n 1)
	is_number "$after" || after=0
	[ "$after" -le 600 ] || after=600
}

# Sends one request with one tool; sets $http and $after.
request() { # TOOL METHOD PATH BODY
	begin_call
	http=$("via_$1" "$2" "${BURST_API_URL:-$api_root}$3" "$4" 2>>"$log" | tail -n 1)
	case $http in
	[1-5][0-9][0-9]) ;;
	*) http=000 ;;
	esac
	read_retry_after
	say "$1: $2 $3: http $http"
}

accepted() {
	case $http in
	2??) return 0 ;;
	esac
	return 1
}

tools() {
	for tool in curl wget python3 perl openssl; do
		command -v $tool >/dev/null 2>&1 && echo $tool
	done
}

# Sets $tool to the Nth tool, counting in a circle; empty if there is none.
nth_tool() { # N
	nth=$1 tool=
	# shellcheck disable=SC2046
	set -- $(tools)
	[ $# = 0 ] || shift $((nth % $#))
	tool=$1
}

# Prints a pause in seconds: 1, 2, 4 ... up to MOST, or Retry-After if that is longer. Some pods wait a second more, so that pods
# rented together do not send requests together.
backoff() { # ROUND MOST
	pause=$(($1 < 10 ? 1 << $1 : $2))
	[ "$pause" -lt "$2" ] || pause=$2
	pause=$((pause + (seed >> $1 % 32 & 1)))
	[ "${after:-0}" -le "$pause" ] || pause=$after
	echo "$pause"
}

# Checks with a harmless request whether this pod's key can see its own pod. A 403 may be meant for the tool, so this tries every
# tool. Once the API has refused all of them, each call tries one.
check_self() {
	http=000 way=none refused_way=
	if [ -n "$all_refused" ]; then
		nth_tool "$try"
		way=${tool:-none}
		[ -z "$tool" ] || ask "$way"
		return
	fi
	for way in $(tools); do
		ask "$way"
		case $http in
		000) ;;
		403) refused_way=${refused_way:-$way} ;;
		*) return ;;
		esac
	done
	[ -z "$refused_way" ] || http=403 way=$refused_way all_refused=1
}

# Succeeds if the API may have refused only the tools here, and curl can still be installed.
is_for_the_tool() {
	[ "$http" = 403 ] && [ -z "$sought" ] && ! command -v curl >/dev/null 2>&1
}

# The API may not know a new pod yet: for the first minute a 404 means nothing.
is_early() {
	case $http in
	404 | 408 | 429 | 5??) [ "$(date +%s)" -lt "$check_until" ] ;;
	*) return 1 ;;
	esac
}

check_key() {
	caller=check try=0 sought='' all_refused=
	# an image without any tool needs an install first; report a failure if that takes too long
	{
		sleep 120
		[ -e "$home/switch" ] || report_switch 'bad no answer from the API in two minutes'
	} &
	check_until=$(($(date +%s) + 60))
	while [ $try -lt 200 ]; do
		try=$((try + 1))
		check_self
		if is_for_the_tool; then
			sought=1
			install_in_turn curl ca-certificates >>"$log" 2>&1 && all_refused='' && continue
		fi
		case $http in
		000)
			[ -z "$sought" ] || report_switch "bad no answer from the API ($way)"
			sought=1
			install_in_turn curl ca-certificates >>"$log" 2>&1
			;;
		2??)
			report_switch "unproven http $http $way"
			end_call
			return
			;;
		*) is_early || report_switch "bad http $http $way" ;;
		esac
		if is_early; then
			sleep "$(backoff $((try - 1)) 15)"
		else
			sleep "$(backoff $((try - 1)) 300)"
		fi
	done
}

# A busy or failing API has not refused, unless it stays so.
note_refusal() {
	case $http in
	000) ;;
	401 | 403 | 404 | 405 | 409 | 410) refused=1 ;;
	429 | 5??)
		busy=1
		[ "$round" -lt 8 ] || refused=1 # some three minutes
		;;
	*) [ "$round" -lt 8 ] || refused=1 ;;
	esac
}

# The first round tries everything. A 403 may be meant for the tool; then one request with the next tool shows whether that one
# does better. A busy API is busy for all tools.
end_first() {
	again=''
	for way in $(tools); do
		end_by_all_ways "$way" $again && return
		[ -z "$busy" ] || [ -n "$refused" ] || break
		[ "$http" = 000 ] || again=again
	done
	return 1
}

# A later round is one request, since all pods of an account share its rate limit: in the way that was accepted, else by DELETE in
# turns with the other ways.
end_again() {
	if [ -n "$good" ]; then
		# shellcheck disable=SC2086
		end_by $good && return
		good=
		return 1
	fi
	nth_tool $((${#refused} * round / 2))
	way=${tool:-none} step=delete
	if [ $((round % 2)) = 1 ]; then
		others=$((others + 1))
		other_way
	fi
	http=000
	[ -n "$tool" ] || return 1
	end_by "$way" $step && return
	note_refusal
	return 1
}

vendor_end() {
	caller=end round=0 others=0 good='' refused='' busy='' refusal=''
	while :; do
		ended='' round=$((round + 1))
		if [ $round = 1 ]; then
			end_first && ended=1
		else
			end_again && ended=1
		fi
		# report to an attached client whether this key can end its pod
		if [ -n "$ended" ]; then
			good="$way $step"
			report_switch "ok http $http $way"
		elif [ -n "$refused" ] && [ -z "$refusal" ]; then
			refusal="http $http ${way:-none}"
			report_switch "bad ending this pod is refused: $refusal"
		fi
		copy_log_to_volume &
		[ -n "$ended" ] || [ "$(date +%s)" -lt "${install_after:-0}" ] || {
			install_after=$(($(date +%s) + 600))
			install_in_turn curl ca-certificates >>"$log" 2>&1 &
		}
		sleep "$(pause_of_round)"
	done
}

# Prints the seconds until the next round: few at first, since the pod bills meanwhile. Ignores a Retry-After beyond the longest
# pause.
pause_of_round() {
	longest=${BURST_SWITCH_PAUSE_S:-60}
	[ -z "$ended" ] && [ "$after" -le "$longest" ] || after=0
	backoff $((round < 6 && ${#ended} == 0 ? round : 10)) "$longest"
}

# For vendor_switch(): checks the key of the pod with this id.
begin_switch() { # ID
	caller=watch calls=0 call='' after=0
	seed=$(printf %s "$BURST_ATTEMPT" | cksum 2>/dev/null)
	seed=${seed%% *}
	is_number "$seed" || seed=0
	rm -f "$home"/api.check.* "$home"/api.end.*
	case $1 in
	'' | *[!A-Za-z0-9_-]*)
		report_switch 'bad this pod does not know its id'
		return
		;;
	esac
	if [ -n "$api_key" ]; then
		write_api_files
		check_key &
	else
		report_switch 'bad this pod has no key for the API'
	fi
}
