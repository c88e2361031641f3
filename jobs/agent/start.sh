#!/bin/sh
# start.sh - the first process of every pod, and its dead-man's switch. It starts sshd and watches the clock; when the lease
# or the hard end is over, or when it is told to, it ends the pod in the vendor's way. It never execs away, and what could
# take long (installing, asking the vendor) runs beside it, so that nothing ever stops the watch. The agreement is in
# CONTROL.md. For dash, busybox ash and bash; needs no more than a base system.
#
# shellcheck disable=SC2317 # the via_ functions are called by names put together

umask 077
# What opens doors leaves the environment before anything is started that would be given it.
host_key_b64=$BURST_HOST_KEY_B64 authorized_key=$BURST_AUTHORIZED_KEY api_key=$RUNPOD_API_KEY
unset BURST_HOST_KEY_B64 BURST_AUTHORIZED_KEY RUNPOD_API_KEY
# Handlers, not ignored signals: children get the defaults back. As process 1 nobody inside can kill us otherwise.
trap : HUP INT QUIT TERM USR1 USR2 ALRM PIPE

home=${BURST_HOME:-/run/burst}
if ! mkdir -p "$home" 2>/dev/null || ! [ -w "$home" ]; then
	home=/tmp/burst-$(id -u)
	mkdir -p "$home"
fi
chmod 700 "$home"
volume=${BURST_VOLUME:-/workspace}
mkdir -p "$volume" 2>/dev/null
log=$home/start.log

say() {
	echo "$(date '+%Y-%m-%d %H:%M:%S') $*" >>"$log"
}

is_number() {
	case $1 in
	'' | *[!0-9]* | ?????????????*) return 1 ;;
	esac
}

# ---- the environment: kept for the agent ----

quoted() {
	rest=$1 done=
	while :; do
		case $rest in
		*\'*) done="$done${rest%%\'*}'\\''" rest=${rest#*\'} ;;
		*) break ;;
		esac
	done
	printf "'%s'" "$done$rest"
}

save_env() {
	names=$(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p' | sort -u)
	for name in $names; do
		case $name in
		_ | PWD | OLDPWD | SHLVL) continue ;;
		esac
		# a line inside a longer value can look like a variable; such a name is not set
		eval "[ -n \"\${$name+set}\" ]" || continue
		eval "value=\$$name"
		# shellcheck disable=SC2154
		printf '%s=%s\n' "$name" "$(quoted "$value")"
	done >"$home/env.new"
	mv -f "$home/env.new" "$home/env"
}

save_env
PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin

# ---- the clock ----

look_at_clock() {
	clock=$(date +%s 2>/dev/null)
	is_number "$clock" && now=$clock
	up=
	if [ -r "${BURST_UPTIME_FILE:-/proc/uptime}" ]; then
		read -r up rest <"${BURST_UPTIME_FILE:-/proc/uptime}"
		up=${up%%.*}
		is_number "$up" || up=
	fi
}

set_limits() {
	look_at_clock
	hard_end=$BURST_HARD_END lease_wall=$BURST_FIRST_LEASE_END
	is_number "$lease_wall" || lease_wall=$hard_end
	is_number "$hard_end" || hard_end=$lease_wall
	is_number "$hard_end" || {
		say "no hard end was given: this pod must not live"
		hard_end=$now lease_wall=$now
	}
	lease_up='' hard_up=''
	allow_late_start
	[ -z "$up" ] || {
		hard_up=$((up + hard_end - now))
		lease_up=$((up + lease_wall - now))
	}
	take_old_lease
}

# An image that took long to come leaves little of the first lease, or nothing, while a client that saw it come may be waiting. A
# container that begins anew has the time of its first start.
allow_late_start() {
	is_number "$BURST_LATE_START_S" && is_number "$BURST_LEASE_S" || return
	[ -s "$home/born" ] || echo "$now" >"$home/born"
	read -r born <"$home/born"
	is_number "$born" && [ "$born" -le "$now" ] || return
	late_wall=$((born + BURST_LATE_START_S)) longest=$((lease_wall + BURST_LEASE_S))
	[ "$late_wall" -le "$longest" ] || late_wall=$longest
	[ "$late_wall" -le "$lease_wall" ] || lease_wall=$late_wall
}

# Fails where there is none for us.
read_lease_file() {
	[ -r "$home/lease" ] || return
	who='' wall='' upto='' rest=''
	read -r who wall upto rest <"$home/lease"
	[ "$who" = "$BURST_ATTEMPT" ] && is_number "$wall" && is_number "$upto" && [ -z "$rest" ]
}

# A container that starts again finds the lease that it had. Its uptime may have begun anew meanwhile: of that lease the wall
# clock counts, once, or the uptime where that is over sooner.
take_old_lease() {
	old_lease=
	read_lease_file || return
	old_lease="$wall $upto" lease_wall=$wall
	[ -n "$up" ] || return
	lease_up=$((up + wall - now))
	[ "$upto" -ge "$lease_up" ] || lease_up=$upto
}

read_lease() {
	read_lease_file && [ "$wall $upto" != "$old_lease" ] || return 0
	lease_wall=$wall lease_up=$upto old_lease=
}

# Sets $reason when this pod's time is over.
must_end() {
	look_at_clock
	read_lease
	if [ -e "$home/end" ]; then
		reason='the agent says so'
		read -r reason <"$home/end"
	elif [ "$now" -ge "$hard_end" ]; then
		reason='the hard end has come'
	elif [ -n "$up" ] && [ -n "$hard_up" ] && [ "$up" -ge "$hard_up" ]; then
		reason='the hard end has come (uptime)'
	elif [ -n "$up" ] && [ -n "$lease_up" ]; then
		[ "$up" -ge "$lease_up" ] || return 1
		reason='the lease is over'
	else
		[ "$now" -ge "$lease_wall" ] || return 1
		reason='the lease is over (wall clock)'
	fi
}

# ---- sshd ----

bounded() { # SECONDS COMMAND...
	if command -v timeout >/dev/null 2>&1; then
		timeout "$@"
	else
		shift
		"$@"
	fi
}

find_sshd() {
	for sshd in /usr/sbin/sshd /usr/local/sbin/sshd /usr/local/bin/sshd /usr/bin/sshd /sbin/sshd; do
		[ -x "$sshd" ] && return 0
	done
	sshd=$(command -v sshd)
}

is_root() {
	[ "$(id -u)" = 0 ]
}

# A local pod may be a mere group of processes on somebody's machine: nothing of the system is changed there.
is_local() {
	[ "${BURST_VENDOR:-local}" = local ]
}

# A container that is started again in the middle of an install has packages that are half there: nothing is installed until those
# are settled.
apt_install() { # PACKAGE...
	export DEBIAN_FRONTEND=noninteractive
	bounded 300 dpkg --configure -a
	bounded 300 apt-get -q update
	set -- -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 install "$@"
	bounded 600 apt-get "$@" && return
	bounded 600 apt-get -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 -f install
	bounded 600 apt-get "$@"
}

install_packages() { # PACKAGE...
	is_root || return 1
	is_local && return 1
	if command -v apt-get >/dev/null 2>&1; then
		# a package's own sshd must not take the port
		policy=/usr/sbin/policy-rc.d
		[ -e "$policy" ] && policy= || printf '#!/bin/sh\nexit 101\n' >"$policy"
		[ -z "$policy" ] || chmod 755 "$policy"
		apt_install "$@"
		status=$?
		[ -z "$policy" ] || rm -f "$policy"
		return $status
	elif command -v apk >/dev/null 2>&1; then
		bounded 300 apk add --no-cache "$@"
	elif command -v dnf >/dev/null 2>&1; then
		bounded 600 dnf -y -q install "$@"
	elif command -v microdnf >/dev/null 2>&1; then
		bounded 600 microdnf -y install "$@"
	else
		return 1
	fi
}

# One install at a time: the switch may want curl while sshd is on its way.
install_in_turn() {
	turn=0
	until mkdir "$home/installing" 2>/dev/null; do
		turn=$((turn + 1))
		[ $turn -gt 900 ] && break
		sleep 1
	done
	install_packages "$@"
	status=$?
	rmdir "$home/installing" 2>/dev/null
	return $status
}

install_sshd() {
	try=0
	while [ $try -lt 10 ] && ! find_sshd; do
		try=$((try + 1))
		say "no sshd here: installing one, try $try"
		install_in_turn openssh-server >>"$log" 2>&1 || sleep $((try * 3))
	done
}

decode_base64() {
	if command -v base64 >/dev/null 2>&1; then
		base64 -d
	elif command -v openssl >/dev/null 2>&1; then
		openssl base64 -d -A
	elif command -v python3 >/dev/null 2>&1; then
		python3 -c 'import base64,sys;sys.stdout.write(base64.b64decode(sys.stdin.read()).decode())'
	else
		perl -MMIME::Base64 -e 'undef $/;print decode_base64(<STDIN>)'
	fi
}

write_keys() {
	printf '%s\n' "$host_key_b64" | decode_base64 >"$home/host_key"
	printf '%s\n' "$authorized_key" >"$home/authorized_keys"
	chmod 600 "$home/host_key" "$home/authorized_keys"
	host_key_b64=
}

write_sshd_config() {
	cat >"$home/sshd_config" <<-END
		Port ${BURST_SSH_PORT:-22}
		HostKey "$home/host_key"
		AuthorizedKeysFile "$home/authorized_keys"
		PidFile "$home/sshd.pid"
		AuthenticationMethods publickey
		PubkeyAuthentication yes
		PasswordAuthentication no
		KbdInteractiveAuthentication no
		PermitRootLogin prohibit-password
		UsePAM no
		StrictModes no
		UseDNS no
		PrintMotd no
		PrintLastLog no
		PermitUserRC no
		X11Forwarding no
		LoginGraceTime 60
		MaxStartups 100:30:200
		MaxSessions 100
		ClientAliveInterval 30
		ClientAliveCountMax 10
		Subsystem sftp internal-sftp
	END
	is_local && echo "ListenAddress 127.0.0.1" >>"$home/sshd_config"
	cp "$home/sshd_config" "$home/sshd_config.plain"
	echo "SetEnv \"BURST_HOME=$home\" \"BURST_VOLUME=$volume\"" >>"$home/sshd_config"
	"$sshd" -t -f "$home/sshd_config" >>"$log" 2>&1 && return
	# before OpenSSH 7.8
	mv "$home/sshd_config.plain" "$home/sshd_config"
	echo "PermitUserEnvironment yes" >>"$home/sshd_config"
	printf 'environment="BURST_HOME=%s",environment="BURST_VOLUME=%s" %s\n' "$home" "$volume" \
		"$authorized_key" >"$home/authorized_keys"
}

# What sshd wants of the system when it runs as root: its folder, its user, and ours not locked.
prepare_root() {
	mkdir -p /run/sshd /var/empty 2>/dev/null
	chmod 755 /run/sshd /var/empty 2>/dev/null
	is_local && return
	grep -q '^sshd:' /etc/passwd 2>/dev/null ||
		echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd
	if grep -q '^root:!' /etc/shadow 2>/dev/null; then
		sed 's/^root:![^:]*:/root:*:/' /etc/shadow >"$home/shadow" && cat "$home/shadow" >/etc/shadow
		rm -f "$home/shadow"
	fi
}

start_sshd() {
	is_root && prepare_root
	write_sshd_config
	sshd_starts=$((sshd_starts + 1))
	"$sshd" -D -e -f "$home/sshd_config" >>"$home/sshd.log" 2>&1 </dev/null &
	sshd_pid=$!
	say "sshd started on port ${BURST_SSH_PORT:-22}, time $sshd_starts"
}

# Called once a second; must not block.
keep_sshd() {
	[ -n "$sshd_pid" ] && kill -0 "$sshd_pid" 2>/dev/null && return
	[ -n "$install_pid" ] && kill -0 "$install_pid" 2>/dev/null && return
	if ! find_sshd; then
		[ -z "$install_pid" ] || {
			[ -n "$gave_up" ] || say 'there is no way to get an sshd here'
			gave_up=1
			return
		}
		install_sshd &
		install_pid=$!
		return
	fi
	[ "$sshd_starts" -lt 200 ] || return
	[ "$tick" -ge "$sshd_next_tick" ] || return
	# at once, then with longer and longer pauses
	sshd_next_tick=$((tick + (sshd_starts < 30 ? sshd_starts : 30)))
	start_sshd
}

# ---- the vendor's way of ending a pod ----

tell_switch() {
	say "switch: $*"
	echo "$*" >"$home/switch.new" && mv -f "$home/switch.new" "$home/switch"
}

# Each via_TOOL METHOD URL BODY prints the HTTP status, 000 when there was none. It puts the answer's headers, where it can, into
# $head and the answer's body into $reply; nothing else writes to files of that name. No file is needed to ask, since a job may
# have filled the disk. The key goes by file or stdin, and to this address alone: redirects are not followed. What guards the API
# refuses some tools by the name they give themselves.
calls_itself=burst/1

write_api_files() {
	printf 'Authorization: Bearer %s' "$api_key" >"$home/api.auth"
	printf 'header = "Authorization: Bearer %s"\nheader = "Content-Type: application/json"\nuser-agent = "%s"\n' \
		"$api_key" "$calls_itself" >"$home/api.curl"
	printf 'header = Authorization: Bearer %s\nheader = Content-Type: application/json\nuser_agent = %s\n' \
		"$api_key" "$calls_itself" >"$home/api.wget"
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
	said=$(bounded 60 wget --config="$home/api.wget" --max-redirect=0 -S -O "$reply" -T 30 -t 1 --method="$1" \
		${3:+"--body-data=$3"} "$2" 2>&1)
	printf '%s\n' "$said" >"$head"
	printf '%s\n' "$said" | sed -n 's/^ *HTTP\/[0-9.]* \([0-9][0-9]*\).*/\1/p' | tail -n 1
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
    print(got.code)' "$1" "$2" "$home/api.auth" "$3" "$calls_itself" "$head" "$reply"
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
print $r->{status} == 599 ? "000" : $r->{status}' "$1" "$2" "$home/api.auth" "$3" "$calls_itself" "$head" "$reply"
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
	said=$({
		printf '%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nConnection: close\r\nContent-Type: application/json\r\n' \
			"$1" "$path" "$name" "$calls_itself"
		cat "$home/api.auth"
		printf '\r\nContent-Length: %s\r\n\r\n%s' "${#3}" "$3"
	} | bounded 40 openssl s_client -quiet -verify_return_error -verify_hostname "$name" -servername "$name" \
		-connect "$host" 2>>"$log" | tr -d '\r')
	printf '%s\n' "$said" | sed '/^$/,$d' >"$head"
	printf '%s\n' "$said" | sed '1,/^$/d' >"$reply"
	printf '%s\n' "$said" | sed -n '1s/^HTTP\/[0-9.]* \([0-9][0-9]*\).*/\1/p'
}

end_call() {
	[ -z "$call" ] || rm -f "$call".*
}

# The files of one answer. The self-check and the end of the pod may ask at the same time: each has names of its own. Where the
# disk takes no more files, the answer's status has to do: curl and wget ask nothing when they cannot write an answer.
begin_call() {
	end_call
	calls=$((calls + 1))
	call=$home/api.$asker.$calls
	head=$call.head reply=$call.reply
	{ echo >"$head" && echo >"$reply"; } 2>/dev/null || head=/dev/null reply=/dev/null
}

# Seconds that the vendor wants us to wait, at most ten minutes; 0 where it names none.
read_retry_after() {
	after=$(sed -n 's/^ *[Rr][Ee][Tt][Rr][Yy]-[Aa][Ff][Tt][Ee][Rr]: *\([0-9][0-9]*\).*/\1/p' "$head" 2>/dev/null | tail -n 1)
	is_number "$after" || after=0
	[ "$after" -le 600 ] || after=600
}

# Asks with one tool; sets $http and $after.
ask() { # TOOL METHOD PATH BODY
	begin_call
	http=$("via_$1" "$2" "${BURST_API_URL:-https://api.runpod.io}$3" "$4" 2>>"$log" | tail -n 1)
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

# GraphQL says 200 to what it refuses; what it has done is in the answer.
accepted_by_graphql() {
	accepted && grep -q '"data"' "$reply" 2>/dev/null && ! grep -q '"errors"' "$reply"
}

tools() {
	for tool in curl wget python3 perl openssl; do
		command -v $tool >/dev/null 2>&1 && echo $tool
	done
}

# Sets $tool to the Nth tool, counted round and round; empty: there is none.
nth_tool() { # N
	nth=$1 tool=
	# shellcheck disable=SC2046
	set -- $(tools)
	[ $# = 0 ] || shift $((nth % $#))
	tool=$1
}

# Seconds: 1, 2, 4 ... up to MOST, and a second more for some, so that pods that were rented together do not ask together. The
# vendor may want more.
backoff() { # ROUND MOST
	pause=$(($1 < 10 ? 1 << $1 : $2))
	[ "$pause" -lt "$2" ] || pause=$2
	pause=$((pause + (seed >> $1 % 32 & 1)))
	[ "${after:-0}" -le "$pause" ] || pause=$after
	echo "$pause"
}

# Tries every tool here on one harmless question: may this pod's key see its own pod? A 403 may be meant for the tool. Once all
# have been refused, one a time is asked with.
ask_about_self() {
	http=000 way=none refused_way=
	if [ -n "$all_refused" ]; then
		nth_tool "$try"
		way=${tool:-none}
		[ -z "$tool" ] || ask "$way" GET "/v2/pods/$RUNPOD_POD_ID" ''
		return
	fi
	for way in $(tools); do
		ask "$way" GET "/v2/pods/$RUNPOD_POD_ID" ''
		case $http in
		000) ;;
		403) refused_way=${refused_way:-$way} ;;
		*) return ;;
		esac
	done
	[ -z "$refused_way" ] || http=403 way=$refused_way all_refused=1
}

# Something else to ask with may be answered. False: there is nothing.
is_for_the_tool() {
	[ "$http" = 403 ] && [ -z "$sought" ] && ! command -v curl >/dev/null 2>&1
}

# A pod that was just made may be unknown for a while to the API that made it: for a minute that is no answer.
is_early() {
	case $http in
	404 | 408 | 429 | 5??) [ "$(date +%s)" -lt "$check_until" ] ;;
	*) return 1 ;;
	esac
}

check_runpod() {
	asker=check try=0 sought='' all_refused=
	# an image may lack all it takes: until something was installed there is no answer, but not for long
	{
		sleep 120
		[ -e "$home/switch" ] || tell_switch 'bad no answer from the API in two minutes'
	} &
	check_until=$(($(date +%s) + 60))
	while [ $try -lt 200 ]; do
		try=$((try + 1))
		ask_about_self
		if is_for_the_tool; then
			sought=1
			install_in_turn curl ca-certificates >>"$log" 2>&1 && all_refused='' && continue
		fi
		case $http in
		000)
			[ -z "$sought" ] || tell_switch "bad no answer from the API ($way)"
			sought=1
			install_in_turn curl ca-certificates >>"$log" 2>&1
			;;
		2??)
			tell_switch "unproven http $http $way"
			end_call
			return
			;;
		*) is_early || tell_switch "bad http $http $way" ;;
		esac
		if is_early; then
			sleep "$(backoff $((try - 1)) 15)"
		else
			sleep "$(backoff $((try - 1)) 300)"
		fi
	done
}

# What may end this pod, the thorough ways first. True: it was accepted.
end_by() { # TOOL WAY
	id=$RUNPOD_POD_ID
	case $2 in
	delete) ask "$1" DELETE "/v2/pods/$id" '' ;;
	terminate) ask "$1" POST "/v2/pods/$id/action" '{"action":"terminate"}' ;;
	graphql) ask "$1" POST /graphql "{\"query\":\"mutation{podTerminate(input:{podId:\\\"$id\\\"})}\"}" ;;
	stop) ask "$1" POST "/v2/pods/$id/action" '{"action":"stop"}' ;;
	graphql_stop) ask "$1" POST /graphql "{\"query\":\"mutation{podStop(input:{podId:\\\"$id\\\"}){id}}\"}" ;;
	esac
	case $2 in
	graphql*) accepted_by_graphql ;;
	*) accepted ;;
	esac
}

# That the vendor is busy or out of order is no refusal, unless it stays so.
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

# Returns at the first way that is accepted. GraphQL may be gone. A stopped pod still costs its disk, and cannot ask again: only
# where nothing better is allowed. To ask on where there is no answer, or not before a while, helps nobody.
end_by_all_ways() { # TOOL
	for step in delete terminate graphql stop graphql_stop; do
		case $step in
		*stop) [ -n "$refused" ] || return 1 ;;
		esac
		end_by "$1" $step && return
		case $http in
		000 | 429)
			note_refusal
			return 1
			;;
		esac
		[ $step = graphql ] || [ $step = stop ] || note_refusal
		case "$2 $step $http" in
		'again delete 40'[13]) return 1 ;;
		esac
	done
	return 1
}

# The first round: everything. A 403 may be meant for the tool; then one question tells whether another tool does better. That the
# vendor is busy is meant for all.
end_runpod_first() {
	again=''
	for way in $(tools); do
		end_by_all_ways "$way" $again && return
		[ -z "$busy" ] || [ -n "$refused" ] || break
		[ "$http" = 000 ] || again=again
	done
	return 1
}

# A round after that is one request, since all pods of an account share what it may ask for: the way that was accepted, else the
# thorough one in turns with the others.
end_runpod_again() {
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
		case $((others % (${refused:+2} + 2))) in
		1) step=terminate ;;
		0) step=graphql ;;
		2) step=stop ;;
		3) step=graphql_stop ;;
		esac
	fi
	http=000
	[ -n "$tool" ] || return 1
	end_by "$way" $step && return
	note_refusal
	return 1
}

end_runpod() {
	asker=end round=0 others=0 good='' refused='' busy='' refusal=''
	while :; do
		ended='' round=$((round + 1))
		if [ $round = 1 ]; then
			end_runpod_first && ended=1
		else
			end_runpod_again && ended=1
		fi
		# whoever still looks on learns it now: this key can end its pod, or cannot
		if [ -n "$ended" ]; then
			good="$way $step"
			tell_switch "ok http $http $way"
		elif [ -n "$refused" ] && [ -z "$refusal" ]; then
			refusal="http $http ${way:-none}"
			tell_switch "bad ending this pod is refused: $refusal"
		fi
		copy_log_to_volume &
		[ -n "$ended" ] || [ "$(date +%s)" -lt "${install_after:-0}" ] || {
			install_after=$(($(date +%s) + 600))
			install_in_turn curl ca-certificates >>"$log" 2>&1 &
		}
		sleep "$(pause_of_round)"
	done
}

# Seconds until the next round: few at first, since it bills meanwhile. However long the vendor wants us to wait, an end is asked
# for once in the longest pause.
pause_of_round() {
	longest=${BURST_SWITCH_PAUSE_S:-60}
	[ -z "$ended" ] && [ "$after" -le "$longest" ] || after=0
	backoff $((round < 6 && ${#ended} == 0 ? round : 10)) "$longest"
}

# Beside the watch: a volume that hangs must not keep the pod alive. Other pods write to it: a link there is not written through.
copy_log_to_volume() {
	dir=$volume/runs/$BURST_RUN/$BURST_ATTEMPT
	[ -d "$dir" ] || return
	rm -f "$dir/start.log.new" "$dir/start.log"
	(set -C && cat "$log" >"$dir/start.log.new") 2>/dev/null && mv -f "$dir/start.log.new" "$dir/start.log"
}

prepare_switch() {
	case $BURST_VENDOR in
	runpod)
		case $RUNPOD_POD_ID in
		'' | *[!A-Za-z0-9_-]*) tell_switch 'bad this pod does not know its id' ;;
		*)
			if [ -n "$api_key" ]; then
				write_api_files
				check_runpod &
			else
				tell_switch 'bad this pod has no key for the API'
			fi
			;;
		esac
		;;
	local | modal) tell_switch 'ok exit' ;;
	*) tell_switch 'unproven exit' ;;
	esac
}

end_pod() {
	say "ending this pod: $reason"
	case $BURST_VENDOR in
	runpod) end_runpod ;;
	esac
	[ -n "$sshd_pid" ] && kill "$sshd_pid" 2>/dev/null
	exit 0
}

# ---- the watch ----

now=0 tick=0 reason=
asker=watch calls=0 call='' after=0
seed=$(printf %s "$BURST_ATTEMPT" | cksum 2>/dev/null)
seed=${seed%% *}
is_number "$seed" || seed=0
sshd_pid='' install_pid='' sshd_starts=0 sshd_next_tick=0 gave_up=''
rmdir "$home/installing" 2>/dev/null
rm -f "$home"/api.check.* "$home"/api.end.*
set_limits
write_keys
prepare_switch
say "attempt $BURST_ATTEMPT of run $BURST_RUN: $((hard_end - now)) s to the hard end, $((lease_wall - now)) s of lease"
until must_end; do
	keep_sshd
	sleep 1
	tick=$((tick + 1))
done
end_pod
