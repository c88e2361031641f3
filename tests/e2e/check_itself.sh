#!/bin/bash
# check_itself.sh - tests/check.py: its slices, its counts, its second tries; and who stops it halfway stops all of it: no pod,
# process, mount, namespace or file is left.
. "$(dirname "$0")/lib.sh"

# ---- what it leaves ----

stamps() { # stamps PID...: "PID START" of those that live
	local p
	for p; do
		[ -r "/proc/$p/stat" ] && echo "$p $(sed 's/.*) //' "/proc/$p/stat" 2>/dev/null | cut -d' ' -f20)"
	done
}
pods_work() { # pods_work N: so many sshds of pods serve a session
	[ "$(descendants "$CHECK" | xargs -r ps -o args= -p 2>/dev/null | grep -c '^sshd: ')" -ge "$1" ]
}
stopped_by() { # stopped_by SIGNAL EXIT-STATUS
	local status=0 left
	CHECK_LOGS=$T/logs TMPDIR=$T setsid python3 "$ROOT/tests/check.py" detached/t_stopped_past_the_lease_detached \
		runpod_machine/c_stopped_past_the_lease >check.txt 2>&1 </dev/null &
	CHECK=$!
	wait_for 90 "pods at work" pods_work 2
	# shellcheck disable=SC2046
	stamps $(descendants "$CHECK") >before.txt
	kill "-$1" "$CHECK"
	wait "$CHECK" || status=$?
	is "$status" "$2" "exit status ($(tail -n 2 check.txt | tr '\n' '|'))"
	has check.txt "check: stopped"
	[ "$(wc -l <before.txt)" -ge 6 ] || complain "it ran only $(wc -l <before.txt) processes"
	# shellcheck disable=SC2046
	left=$(stamps $(cut -d' ' -f1 before.txt) | grep -xFf before.txt)
	is "$left" "" "processes left: $(ps -o pid=,args= -p "$(echo "$left" | cut -d' ' -f1 | paste -sd,)" 2>/dev/null | head -n 3 | tr '\n' '|')"
	is "$(pgrep -f -- "$T/bc-" | wc -l)" 0 "processes that were told of its folder"
	is "$(grep -cF "$T/bc-" /proc/self/mounts)" 0 "mounts left"
	is "$(find . -maxdepth 1 -name 'bc-*' | wc -l)" 0 "folders left"
}

# ---- what it chooses ----

chosen() { # chosen ARG...: the names of the cases
	python3 "$ROOT/tests/check.py" --list "$@" || complain "--list $*: exit $?"
}
t_eight_slices_are_all() {
	chosen --slice all >all.txt
	is "$(cut -d' ' -f1 all.txt | sort -u | tr '\n' ' ')" "0 1 2 3 4 5 6 7 core " "slices"
	is "$(cut -d' ' -f1 all.txt | sort | uniq -c | awk '$2 != "core" && $1 * 5 > total {print $2}' total="$(wc -l <all.txt)")" "" \
		"slices with more than a fifth of all"
	chosen --slice 3 >slice.txt
	is "$(grep -E '^(3|core) ' all.txt | sort | comm -3 - <(sort slice.txt))" "" "in one and not in the other"
	is "$(sed 's/#.*//; s/ *$//; /^$/d' "$ROOT/tests/core.txt" | sort | comm -23 - <(sed -n 's/^core //p' slice.txt | sort))" "" \
		"of tests/core.txt, missing"
}

# ---- which files lint reads, and what pages name ----

t_new_files_are_checked() {
	mkdir -p tree/tests tree/cmd
	cp "$ROOT/tests/tree.py" tree/tests/
	git -C tree init -q
	echo '/build' >tree/.gitignore
	touch tree/scratch.c tree/cmd/{new,old,gone}.c
	mkdir tree/build && touch tree/build/made.c
	git -C tree add cmd/old.c cmd/gone.c
	rm tree/cmd/gone.c
	is "$(PYTHONPATH=tree/tests python3 -c 'import tree; print(*tree.files("*.c"))')" "cmd/new.c cmd/old.c" files
}

t_arrows_go_one_way() {
	local pair said=
	for pair in cmd/run.c,cmd/launch/launch.h cmd/launch/launch.c,cmd/show/report.h cmd/show/report.c,cmd/launch/launch.h cmd/show/report.c,cmd/cmd.h \
		orchestrator/runs/run.c,orchestrator/core/core.h orchestrator/core/core.c,orchestrator/engine/engine.h jobs/tts/tts.c,orchestrator/job.h \
		providers/modal/api.c,providers/runpod/impl.h; do
		said+=" $(PYTHONPATH=$ROOT/tests python3 -c 'import lint, sys; print(lint.may_include(*sys.argv[1].split(",")))' "$pair")"
	done
	is "$said" " True True False True True False True False" "what may include what"
}

t_what_a_page_names_exists() {
	sed 's/@/_/g' >page.md <<-'END' # no source may spell these names: this script is one
		`http*.c`, `core_step()` (`orchestrator/core/core.c`), `struct cmd`, `ACT_SAVE`, `RUNPOD_API_KEY`, `core/core.c`, `providers/NAME/`,
		`tests/e2e`, `run@ended@long@ago()`, `struct no@such`, `ACT_NO@SUCH`, `core/no_such.c`, `no_such*.c`, `jobs/no_such/`, `tests/no_such`,
		`core_step()` in `orchestrator/core/pods.c`, `start.sh`, `cmd/run.c`, `perform.c`, `cmd/line/parse.c`, `perform.c`
	END
	python3 "$ROOT/tests/named.py" "$T/page.md" >said.txt && complain "it finds nothing"
	sed -i "s|^$T/page.md ||; s/, which.*//" said.txt
	is "$(sort said.txt | tr '\n' '|')" "looks for core_step() in orchestrator/core/pods.c|names the constant or variable$(
		sed 's/@/_/g' <<<' ACT_NO@SUCH|names the file core/no@such.c|names the file no@such*.c|names the file perform.c behind one of cmd|names the file tests/no@such')$(
		sed 's/@/_/g' <<<'|names the folder jobs/no@such/|names the function run@ended@long@ago()|names the struct no@such|')" "faults"
}

# ---- how it counts: in a small tree of its own, whose cases do what their names say ----

small_tree() {
	mkdir -p tree/tests/{e2e,security,unit,fuzz,cloud,workers}
	cp "$ROOT/tests/check.py" tree/tests/
	: | tee tree/tests/core.txt tree/tests/e2e/agent.sh >tree/tests/e2e/start_script.sh
	echo "### What can cost money" >tree/tests/README.md
	printf '.DEFAULT:\n\t@:\nall:\n\t@:\n' >tree/Makefile
	cat >tree/tests/e2e/x.sh <<-E
		#!/bin/bash
		[ -z "\${LIST:-}" ] || { echo $*; exit; }
		case \$1 in
		*_well) echo "ok x/\$1 (1 s)" ;;
		*_skips) echo "skip x/\$1: no such thing here" ;;
		*_dies) exit 3 ;;
		*_badly) echo "FAILED x/\$1: it is bad"; exit 1 ;;
		*_once) if mkdir "$T/\$1" 2>/dev/null; then echo "FAILED x/\$1: at first"; exit 1; else echo "ok x/\$1 (1 s)"; fi ;;
		esac
	E
}
small_check() { # small_check NAME...: the last lines in check.txt, the exit status in STATUS
	small_tree "$@"
	STATUS=0
	TMPDIR=$T CHECK_LOGS=logs python3 tree/tests/check.py x >check.txt 2>&1 </dev/null || STATUS=$?
}
t_it_counts() {
	small_check t_one_well t_two_well t_skips
	is "$STATUS $(tail -n 1 check.txt)" "0 3 passed, 0 failed, 1 skipped" "when all is well, the build counted"
	has check.txt "skipped: no such thing here: x/t_skips (1)"
	small_check t_one_well t_badly t_dies
	is "$STATUS $(tail -n 1 check.txt)" "1 2 passed, 2 failed, 0 skipped" "when two fail"
	has check.txt "FAILED: x/t_badly: FAILED x/t_badly: it is bad"
	has check.txt "FAILED: x/t_dies: exit 3"
}
t_a_second_try_is_told() {
	small_check t_a_well t_b_once t_c_once t_d_once
	is "$STATUS $(tail -n 1 check.txt)" "0 5 passed, 0 failed, 0 skipped" "with three flaky cases"
	is "$(grep -c '^flaky: x/t_._once: passed at its second try' check.txt)" 3 "flaky cases that it lists"
	rm -rf t_?_once
	small_check t_a_once t_b_once t_c_once t_d_once
	is "$STATUS $(tail -n 1 check.txt)" "1 5 passed, 4 failed, 0 skipped" "with four"
	has check.txt "4 flaky cases: more than 3 fail the check"
}

# ---- stopped halfway ----

t_stopped_by_a_signal() { stopped_by TERM 143; }
t_stopped_at_the_keyboard() { stopped_by INT 130; }

run_tests "$@"
