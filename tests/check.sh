#!/bin/bash
# check.sh - all tests, as CI runs them: lint, unit tests with sanitizers and under valgrind, the simulator, end to end. Ends
# with one line: "N passed, N failed, N skipped". Logs are in build/check/.
set -u
cd "$(dirname "$0")/.." || exit
logs=build/check
rm -rf $logs
mkdir -p $logs
passed=0 failed=0 skipped=0
jobs=$(nproc)
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
	if "$@" >"$log" 2>&1; then
		pass 1
		note "$what"
	else
		fail 1 "$what" "$log"
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
# in_parallel SUFFIX COMMAND-PREFIX... -- FILE...: each FILE as an argument, $jobs at once; logs NAME.SUFFIX.log and .status
in_parallel() {
	local suffix=$1 prefix=() file
	shift
	while [ "$1" != -- ]; do prefix+=("$1"); shift; done
	shift
	for file in "$@"; do
		while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
		(
			log=$logs/$(basename "$file").$suffix.log
			timeout -k 10 900 "${prefix[@]}" "$file" >"$log" 2>&1 </dev/null
			echo $? >"$log.status"
		) &
	done
	wait
}

must "build" make -j"$jobs" BUILD=build all sim podbox e2e-tools || exit 1
must "build with sanitizers" make -j"$jobs" BUILD=build/asan SANITIZE=1 all sim || exit 1
must "build unit tests with sanitizers" make -j"$jobs" BUILD=build/asan SANITIZE=1 unit-build
must "build unit tests" make -j"$jobs" BUILD=build unit-build
must "lint" make lint

export ASAN_OPTIONS=detect_leaks=1:exitcode=99
units=()
for t in tests/unit/test_*.c; do units+=("$(basename "$t" .c)"); done
in_parallel asan -- "${units[@]/#/build/asan/unit/}"
for t in "${units[@]/#/build/asan/unit/}"; do
	log=$logs/$(basename "$t").asan.log
	count_cmocka "$(basename "$t") (sanitizers)" "$log" "$(cat "$log.status")"
done
note "unit tests with sanitizers: $passed passed so far"

# The suites that start real servers, pods or thousands of children are left to the sanitizers.
under_valgrind=()
for t in "${units[@]/#/build/unit/}"; do
	case $t in *test_local_cloud | *test_ssh | *test_child | *test_agent | *test_join) continue ;; esac
	under_valgrind+=("$t")
done
in_parallel valgrind env IN_VALGRIND=1 valgrind -q --error-exitcode=98 --leak-check=full --errors-for-leak-kinds=definite \
	--child-silent-after-fork=yes -- "${under_valgrind[@]}"
for t in "${under_valgrind[@]}"; do
	log=$logs/$(basename "$t").valgrind.log
	count_cmocka "$(basename "$t") (valgrind)" "$log" "$(cat "$log.status")"
done
note "unit tests under valgrind"

must "simulator: 50,000 schedules" build/tests/sim --seeds 50000
must "simulator with sanitizers: 2,000 schedules" build/asan/tests/sim --seeds 2000
must "simulator: planted defects are found" build/tests/sim --plants --seeds 5000
must "fuzzers: 10 s each" make -j"$jobs" fuzz
must "agent and start script" make check-agent
must "command line" env TERM=dumb tests/e2e/cli.sh build/asan/burst

e2e=()
for t in tests/e2e/*.sh tests/security/*.sh; do
	case $t in */lib.sh | */cli.sh | */agent*.sh | */espeak_worker.sh | */start_script.sh) continue ;; esac
	e2e+=("$t")
done
export BURST=$PWD/build/asan/burst CHECKING=1
# they wait more than they compute: one more than there are cores
jobs=$((jobs + 1)) in_parallel e2e bash -- "${e2e[@]}"
# what failed is run once more, alone, and said aloud: a fault that comes back fails, one that does not is to be looked into
again() { # again SCRIPT LOG
	local name
	for name in $(sed -n 's/^FAILED [^/]*\/\(t_[a-z0-9_]*\):.*/\1/p' "$2"); do
		grep "^FAILED .*/$name:" "$2"
		if timeout -k 10 300 bash "$1" "$name" >"$2.$name" 2>&1 </dev/null; then
			note "FLAKY: $name failed once and passed alone"
			sed -i "s|^FAILED \([^/]*\)/$name:|ok \1/$name (at the second try):|" "$2"
			grep -q '^FAILED ' "$2" || echo 0 >"$2.status"
		fi
	done
}
for t in "${e2e[@]}"; do again "$t" "$logs/$(basename "$t").e2e.log"; done
# what a false clock and the sanitizers cannot do together
clocks() {
	BURST=$PWD/build/burst bash tests/e2e/client.sh t_clock_a_day_ahead t_clock_jumps_ahead t_clock_jumps_back &
	BURST=$PWD/build/burst bash tests/e2e/runpod_machine.sh t_its_clock_is_wrong &
	BURST=$PWD/build/burst bash tests/e2e/modal_machine.sh t_its_clock_is_wrong &
	local pid result=0
	for pid in $(jobs -p); do wait "$pid" || result=1; done
	return $result
}
clocks >"$logs/clocks.e2e.log" 2>&1 </dev/null
echo $? >"$logs/clocks.e2e.log.status"
count_lines "clocks" "$logs/clocks.e2e.log" "$(cat "$logs/clocks.e2e.log.status")"
for t in "${e2e[@]}"; do
	log=$logs/$(basename "$t").e2e.log
	count_lines "$(basename "$t")" "$log" "$(cat "$log.status")"
done
note "end to end"

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
