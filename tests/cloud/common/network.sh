# network.sh - for scripts that spoil the lines between burst and some vendor to the byte: those to its API, to its storage and to
# its pods, each a connection through tests/e2e/relay.c. Named cases from a table, and rounds of a walk by a seed.
#
# To be read after common/random.sh, lib.sh and the vendor's client.sh. The vendor's script says, beside what random.sh wants:
#   wires                      "api:PORT files:PORT": the ports that are no pods, by their names
#   API_URL                    the variable that tells burst the API's address
#   CALLS=(WIRE~TEXT ...)      requests that a rule can name, as the relay has it
#   OUTAGES=(WIRES ...)        (or not) which of them can be away at once
#   bad_line, good_line        (or not) what else is to be done when the line goes bad and is good again
#   pods_times                 a line "BEGAN ENDED" in ms (or -) for each pod that ever was
# shellcheck shell=bash
# shellcheck disable=SC2317 # c_ functions are called by names put together
ENDS_OF=40
OUTAGES=(api files "api files")
OTHER_END=2/failed # a request that is spoilt without TLS may be refused as wrong
PORTAL='HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 51\r\nConnection: close\r\n\r\n<html><body><h1>Welcome! Log in</h1></body></html>\n'
TLS_ALERT='\025\003\001\000\002\002\106'

# ---- a line of that kind ----

spoil() { # spoil RULE...: from here on the client goes through the relay; away and no-names in $T switch ports and names off
	! declare -F bad_line >/dev/null || bad_line
	WIRES=$(wires)
	export DETOUR_AWAY=$T/away DETOUR_NAMES=$T/no-names
	echo leak:libssh2_session_handshake >lsan.supp # it forgets the host key of a handshake whose signature is wrong
	export LSAN_OPTIONS=suppressions=$T/lsan.supp:print_suppressions=0
	[[ $ASAN_OPTIONS == *fast_unwind* ]] || ASAN_OPTIONS+=:fast_unwind_on_malloc=0
	printf "printf '%s'; exec cat >/dev/null\n" "$PORTAL" >portal
	printf "printf '%s'; exec cat >/dev/null\n" "$TLS_ALERT" >alert
	through "$@"
}
unspoilt() {
	relay_stop
	CLIENT=
	rm -f away no-names
	! declare -F good_line >/dev/null || good_line
}
ports_of() { # ports_of WIRE...
	local wire name ports=
	for wire in $(wires); do
		for name; do [ "${wire%:*}" != "$name" ] || ports="$ports ${wire#*:}"; done
	done
	echo "$ports "
}
away() { # away WIRE...: until the file is removed; what stands is cut
	ports_of "$@" >away
	kill -USR1 "$RELAY_PID"
}

# ---- what must be true afterwards ----

# No two pods at once where one was wanted, unless that is said.
never_more_than() { # never_more_than PODS
	local most
	most=$(pods_times | awk '{ print $1, 1; if ($2 != "-") print $2, -1 }' | sort -k1,1n -k2,2n |
		awk '{ n += $2; if (n > most) most = n } END { print most + 0 }')
	[ "$most" -le "$1" ] || grep -qhE "(^|Z )warning: (pod |.*looking for the pod)" err.txt err.[0-9] 2>/dev/null ||
		complain "$most pods at once where $1 were wanted, and not a word of it: $(tail -n 3 err.txt | tr '\n' '|')"
}
clear_words() { # what did not go well is said in one line that begins with our name
	case $STATUS in 0 | 137 | 143) return ;; esac # done, or ended by us
	grep -q '^burst: .' err.txt || complain "exit $STATUS and no word of it: $(tail -n 2 err.txt | tr '\n' '|')"
	[ "$(json '.error.message // ""' | wc -l)" = 1 ] && [ "$(json '.error.message // "" | length')" -gt 10 ] ||
		complain "exit $STATUS and the message is \"$(json .error.message)\""
	! json '.error.message // ""' | grep -qE '<html|<body|\(null\)' || complain "the message is \"$(json .error.message)\""
}
judge_too() {
	never_more_than "${pods:-1}"
	clear_words
}
had_their_chance() { # had_their_chance RULE...: each was met by a connection or a request, and fired if it is one that fires
	local rule words word n
	for rule; do
		case $rule in
		*=cut:* | *=reset:* | *=stall:* | *=flip:* | *=bit:* | *=drop:* | *=dup:*) words=fired ;;
		*) words="open meets" ;;
		esac
		n=0
		for word in $words; do n=$((n + $(came_to "$word" "$rule"))); done
		[ $n -gt 0 ] || complain "$rule: the line was never spoilt by it"
	done
}
line_over() { # with a good line again nothing is left, and all is known
	unspoilt
	burst reap
	is "$STATUS" 0 "reap ($(tail -n 2 err.txt))"
	is "$(pods_alive)" "" "pods after reap"
	all_paid_for
	no_secrets_in err* out* state
}
# WANT is "done [PODS]", "truth" (whatever it says is so), or "fails EXIT WORDS".
one_spoilt() { # one_spoilt WANT RULE...
	local want=$1
	shift
	slow_worker
	vendor_config "code = { path = \"code\"; }; wait = \"${WAIT:-20s}\"; boot_limit = \"${BOOT_LIMIT:-20s}\";"
	spoil "$@"
	LIMIT=300 burst run --json -v
	ended_as "$want"
	had_their_chance "$@"
	line_over
}
ended_as() { # ended_as WANT
	local want words
	read -r want words <<<"$1"
	cp err.txt err.1
	case $want in
	done)
		# shellcheck disable=SC2086
		all_done 6 $words
		all_right 6
		;;
	fails)
		is "$STATUS" "${words%% *}" "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
		json '.error.message' >message
		[ "$words" = "${words#* }" ] || has message "${words#* }"
		;;
	esac
	judge 6
}

# ---- the table: lines "NAME | WANT | RULE | RULE...", a "+" before a NAME for those that `make check` runs;
#      in a rule's place also WAIT=2m BOOT_LIMIT=50s ----

NAMES=()
table() { # reads it: each line is a case in NAMES
	local name want rules
	while IFS='|' read -r name want rules; do
		name=$(tr -d ' \t' <<<"$name")
		wanted "$name" || continue
		name=c_${name#+}
		eval "$name() { table_case '$want' '$rules'; }"
		NAMES+=("$name")
	done
}
wanted() { [ -n "$1" ] && { [ "${1#+}" != "$1" ] || [ "${NAMED:-}" = all ]; }; }
also() { # also NAME...: cases that are functions, with a "+" or without
	local name
	for name; do
		! wanted "$name" || NAMES+=("c_${name#+}")
	done
}
# All of them at once, and a few rounds of the walk: most of the time a case waits for looks that are seconds apart, and after a lost
# create for a minute.
some_rounds() { # some_rounds SEED...: of the walk; each is a case in NAMES
	local seed
	for seed; do
		eval "c_$seed() { DURATION_S=0 round $seed; }"
		NAMES+=("c_$seed")
	done
}
table_case() { # table_case WANT 'RULE | RULE'
	local list rules=() rule want
	IFS='|' read -ra list <<<"$2"
	for rule in "${list[@]}"; do
		rule=${rule# }
		while [ "${rule% }" != "$rule" ]; do rule=${rule% }; done
		case $rule in
		[A-Z]*) eval "$rule" ;;
		*) rules+=("${rule/run:/run:$T/}") ;;
		esac
	done
	read -r want <<<"$1"
	one_spoilt "$want" "${rules[@]}"
}

# ---- the walk ----

a_byte() { # a byte of the head, of the body, or far into what is large: in $D
	one_of 3 40 400 400 3000 3000 20000 400000
	draw "$D"
}
a_direction() { one_of up down down; }
a_deed() { # in DEED, for a rule of that WIRE
	local way at
	a_direction; way=$D
	a_byte; at=$D
	draw 19
	case $D in
	0 | 1 | 2) DEED=cut:$way:$at ;;
	3 | 4 | 5) DEED=reset:$way:$at ;;
	6 | 7) DEED=flip:$way:$at ;;
	8 | 9) DEED=bit:$way:$at ;;
	10 | 11) one_of 1 7 100 1000; DEED=drop:$way:$at:$D ;;
	12 | 13) one_of 1 9 100 1000; DEED=dup:$way:$at:$D ;;
	14) DEED=stall:$way:$at ;;
	15) one_of 50 300 1500; DEED=delay:$D ;;
	16) DEED=run:$T/portal ;;
	17) DEED=refuse ;;
	18) one_of silent "run:$T/alert"; DEED=$D ;;
	esac
}
a_rule() { # in RULE
	local where
	a_deed
	draw 3
	if [ "$D" = 0 ] || [ -n "${CLOUD_OPTIONS:-}" ] || [[ $DEED =~ ^(run|refuse|silent) ]]; then
		one_of "${WIRES_KNOWN[@]}"; where=$D
		one_of 1 1 2 3 5 8 13 20; where=$where.$D
	else
		one_of "${CALLS[@]}"; where=$D
		one_of 1 1 1 2 3; where=$where.$D
	fi
	RULE="$where=$DEED"
}
# Some lines are refused, or names are not known, for a while; ends with the round.
an_outage() {
	local from=$1 for_ms=$2 what=$3
	( at_ms "$from" && if [ "$what" = names ]; then : >no-names; else away $what; fi
	at_ms $((from + for_ms)); rm -f away no-names ) &
}
at_ms() { # since the round began
	until [ $(((${EPOCHREALTIME/./} - ROUND_BEGAN) / 1000)) -ge "$1" ]; do
		read -rt 0.1 <> <(:) || :
		[ -e going ] || [ $(((${EPOCHREALTIME/./} - ROUND_BEGAN) / 1000)) -lt 2000 ] || return
	done
}
the_line_goes_wrong() {
	local rules=() n
	draw 3
	n=$((D + 1))
	while [ ${#rules[@]} -lt $n ]; do
		a_rule
		rules+=("$RULE")
		plan "  $RULE"
	done
	! one_in 4 || { draw 400; head -c $((D * 1000)) /dev/urandom >code/blob; }
	! one_in 12 || head -c 9000000 /dev/urandom >code/blob
	spoil "${rules[@]}"
	ROUND_BEGAN=${EPOCHREALTIME/./}
	if one_in 3; then
		draw 8000; n=$D
		draw 9000
		local for_ms=$D
		one_of "${OUTAGES[@]}"
		plan "  $D away from $n ms on for $for_ms ms"
		an_outage "$n" "$for_ms" "$D"
	fi
}

# ---- jobs of cases ----

# Large files by way of the storage: the line to the pods is slow. Never a wrong one under its name.
large_files() { # large_files RULE...
	mkdir -p code
	head -c 9000000 /dev/urandom >code/blob # goes first
	sha256sum <code/blob >blob.sum
	vendor_config 'code = { path = "code"; };'
	sed -i '/^job = /d' burst.cfg
	# shellcheck disable=SC2016
	echo 'job = { name = "e2e"; type = "command"; run = "sha256sum <blob >blob.sum; for i in 1 2 3 4 5 6; do head -c 4000000 /dev/urandom >$i.bin; done; sha256sum *.bin >sums"; outputs = ["*.bin", "sums", "blob.sum"]; output = "out"; };' >>burst.cfg
	spoil "$@" 'pod.*=delay:80'
	LIMIT=300 burst run --json -v
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt | tr '\n' '|'))"
	(cd out && sha256sum -c --quiet sums >/dev/null 2>&1) || complain "a file is not what it was in the pod"
	is "$(cat out/blob.sum)" "$(cat blob.sum)" "what the pod had been sent"
	[ -z "$(find out -name '*.part')" ] || complain "half files: $(find out -name '*.part')"
	is "$(pods_ever)" 1 "pods that ever were"
	had_their_chance "$@"
	line_over
}
# At this address there is nobody, or somebody else: nothing is rented, and the message says so.
nowhere() { # nowhere URL WORDS
	slow_worker
	vendor_config 'code = { path = "code"; }; wait = "3s";'
	local there=${!API_URL}
	export "$API_URL=$1"
	burst run --json
	export "$API_URL=$there"
	is "$(wavs)" 0 files
	is "$(pods_ever)" 0 "pods that ever were"
	is "$STATUS" 6 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	judge 6
	json .error.message >message
	has message "$2"
}
# For good: it says what may still bill, and how to end it.
c_it_is_away_for_good() {
	slow_worker SLOW=1 MAX_BATCH=1
	DURATION=3m vendor_config 'code = { path = "code"; };'
	spoil 'pod.*=delay:1'
	LIMIT=200 burst_bg run --json -v # exit 9 names the pod and the command; the next `burst run` or `reap` does it too
	wait_for 60 "the first files" file_count out 3
	away api
	wait_for 90 "the first words of it" grep -q "not released yet, retrying until it is gone" err.txt
	until has_ended; do # the first to stop, the second to do it at once, the third to leave it; more of them change nothing
		kill -INT "$PID" 2>/dev/null
		read -rt 0.002 <> <(:) || :
	done
	burst_wait
	is "$STATUS" 9 "exit status ($(tail -n 2 err.txt | tr '\n' '|'))"
	has err.txt "burst reap"
	is "$(wavs)" 6 files
	judge 6
	line_over
}
has_ended() { ! running_as "$PID"; }
