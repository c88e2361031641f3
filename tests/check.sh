#!/bin/bash
# check.sh - all tests, as CI runs them: lint, unit tests with sanitizers and under valgrind, the simulator, end to end. Ends
# with one line: "N passed, N failed, N skipped". Logs are in build/check/.
set -u
cd "$(dirname "$0")/.." || exit
logs=build/check
rm -rf $logs
mkdir -p $logs
passed=0 failed=0 skipped=0
jobs=$(nproc) lanes=$(nproc)
beside=none # the process that runs beside the lanes
began=$SECONDS

note() { printf '%4ds  %s\n' $((SECONDS - began)) "$*"; }
pass() { passed=$((passed + $1)); }
fail() { # fail HOW-MANY WHAT LOG
	failed=$((failed + $1))
	note "FAILED: $2 (see $3)"
	grep -E "FAILED|error|Sanitizer|not ok|\[  ERROR" "$3" | head -n 15
}
must() { # must WHAT COMMAND...: a step that counts as one test
	local what=$1 log
	log=$logs/$(echo "$what" | tr -c 'a-z0-9\n' _).log
	shift
	"$@" >"$log" 2>&1
	echo $? >"$log.status"
	count_step "$what" "$log"
}
count_step() { # count_step WHAT LOG
	if [ "$(cat "$2.status")" = 0 ]; then
		pass 1
		note "$1"
	else
		fail 1 "$1" "$2"
		return 1
	fi
}

# cmocka says "[  PASSED  ] 12 test(s)."; a program that dies says nothing of the kind and counts as one failure
count_cmocka() { # count_cmocka NAME LOG STATUS
	local p f s
	p=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$2" | awk '{n+=$1} END {print n+0}')
	f=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) test.*/\1/p' "$2" | awk '{n+=$1} END {print n+0}')
	s=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$2" | awk '{n+=$1} END {print n+0}')
	pass "$p"
	skipped=$((skipped + s))
	if [ "$3" != 0 ]; then
		[ "$f" -gt 0 ] || f=1
		fail "$f" "$1" "$2"
	fi
}
count_lines() { # count_lines NAME LOG STATUS: "ok ...", "FAILED ...", "skip ..."
	local f
	pass "$(grep -c '^ok ' "$2")"
	skipped=$((skipped + $(grep -c '^skip ' "$2")))
	grep '^skip ' "$2"
	f=$(grep -c '^FAILED ' "$2")
	[ "$3" = 0 ] || [ "$f" -gt 0 ] || f=1
	[ "$f" = 0 ] || fail "$f" "$1" "$2"
}
# queue NAME COMMAND...: as soon as fewer than $lanes are at work; its log is NAME.log, its status NAME.log.status. What runs beside
# (see below) has no lane.
queue() {
	local log=$logs/$1.log
	shift
	while [ "$(jobs -rp | grep -vcx "$beside")" -ge "$lanes" ]; do wait -n; done
	(
		timeout -k 10 900 "$@" >"$log" 2>&1 </dev/null
		echo $? >"$log.status"
	) &
}

. tests/stop.sh

must "build" make -j"$jobs" BUILD=build all sim podbox e2e-tools || exit 1
must "build with sanitizers" make -j"$jobs" BUILD=build/asan SANITIZE=1 all sim || exit 1
must "build unit tests with sanitizers" make -j"$jobs" BUILD=build/asan SANITIZE=1 unit-build
must "build unit tests" make -j"$jobs" BUILD=build unit-build
must "lint" make lint

export ASAN_OPTIONS=detect_leaks=1:exitcode=99
units=()
for t in tests/unit/test_*.c; do units+=("$(basename "$t" .c)"); done
for t in "${units[@]}"; do queue "$t.asan" "build/asan/unit/$t"; done
wait
for t in "${units[@]}"; do count_cmocka "$t (sanitizers)" "$logs/$t.asan.log" "$(cat "$logs/$t.asan.log.status")"; done
note "unit tests with sanitizers: $passed passed so far"

must "simulator: 50,000 schedules" build/tests/sim --seeds 50000
must "simulator with sanitizers: 2,000 schedules" build/asan/tests/sim --seeds 2000 --from 50001
must "simulator: planted defects are found" build/tests/sim --plants --seeds 20000
must "command line" env TERM=dumb tests/e2e/cli.sh build/asan/burst

# ---- beside all that follows, which mostly waits, and with what that leaves of the processor: valgrind and the fuzzers ----
# The suites that start real servers, pods or thousands of children are left to the sanitizers.
under_valgrind=()
for t in "${units[@]}"; do
	case $t in test_local_cloud | test_ssh | test_child | test_agent | test_join) continue ;; esac
	under_valgrind+=("$t")
done
valgrind=(env IN_VALGRIND=1 valgrind -q --error-exitcode=98 --leak-check=full --errors-for-leak-kinds=definite --child-silent-after-fork=yes)
(
	renice -n 19 $BASHPID >/dev/null
	lanes=$jobs
	for t in "${under_valgrind[@]}"; do queue "$t.valgrind" "${valgrind[@]}" "build/unit/$t"; done
	wait
	make -j"$jobs" fuzz FUZZ_SECONDS=15 >$logs/fuzzers.log 2>&1
	echo $? >$logs/fuzzers.log.status
) &
beside=$!

# ---- end to end ----
# Each is a command to which names of tests can be added; what a false clock and the sanitizers cannot do together is done without.
declare -A e2e only
for t in tests/e2e/*.sh tests/security/*.sh; do
	case $t in */lib.sh | */cli.sh | */agent*.sh | */espeak_worker.sh | */start_script.sh) continue ;; esac
	e2e[$(basename "$t" .sh)]="env BURST=$PWD/build/asan/burst bash $t"
done
for t in client runpod_machine modal_machine; do
	e2e[$t.clock]="env BURST=$PWD/build/burst bash tests/e2e/$t.sh"
	only[$t.clock]=$(sed -n 's/^\(t_[a-z_]*clock[a-z_]*\)() .*/\1/p' tests/e2e/$t.sh)
done
export CHECKING=1
lanes=$((2 * jobs)) # they wait more than they compute
queue agent_and_start_script make check-agent
mapfile -t names < <(printf '%s\n' "${!e2e[@]}" | sort)
for t in "${names[@]}"; do
	# shellcheck disable=SC2086 # words
	queue "$t.e2e" ${e2e[$t]} ${only[$t]:-}
done
wait
# what failed is run once more, alone, and said aloud: a fault that comes back fails, one that does not is to be looked into
again() { # again NAME
	local name log=$logs/$1.e2e.log
	# shellcheck disable=SC2013 # names
	for name in $(sed -n 's/^FAILED [^/]*\/\(t_[a-z0-9_]*\):.*/\1/p' "$log"); do
		grep "^FAILED .*/$name:" "$log"
		# shellcheck disable=SC2086
		if timeout -k 10 300 ${e2e[$1]} "$name" >"$log.$name" 2>&1 </dev/null; then
			note "FLAKY: $name failed once and passed alone"
			sed -i "s|^FAILED \([^/]*\)/$name:|ok \1/$name (at the second try):|" "$log"
			grep -q '^FAILED ' "$log" || echo 0 >"$log.status"
		fi
	done
}
for t in "${names[@]}"; do again "$t"; done
for t in "${under_valgrind[@]}"; do
	log=$logs/$t.valgrind.log
	[ "$(cat "$log.status")" = 0 ] && continue
	grep -E "FAILED|[Ee]rror" "$log" | head -n 15
	mv "$log" "$log.first"
	queue "$t.valgrind" "${valgrind[@]}" "build/unit/$t"
	wait
	[ "$(cat "$log.status")" != 0 ] || note "FLAKY: $t (valgrind) failed once and passed alone"
done
for t in "${names[@]}"; do count_lines "$t" "$logs/$t.e2e.log" "$(cat "$logs/$t.e2e.log.status")"; done
note "end to end"

for t in "${under_valgrind[@]}"; do count_cmocka "$t (valgrind)" "$logs/$t.valgrind.log" "$(cat "$logs/$t.valgrind.log.status")"; done
count_step "agent and start script" $logs/agent_and_start_script.log
count_step "fuzzers: 15 s each" $logs/fuzzers.log

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
