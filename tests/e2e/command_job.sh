#!/bin/bash
# command_job.sh - jobs of the type command: which outputs come home, under which names, and what is run again.
. "$(dirname "$0")/lib.sh"

t_many_outputs_are_synced_together() { # each before it has its name, what is written of them before that, their folders after it
	command -v strace >/dev/null || { skip "no strace"; return; }
	case $BURST in */asan/*) ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 ;; esac
	cat >burst.cfg <<-'E'
		provider = "local";
		caps = { max_cost = 1.00; max_duration = "10m"; };
		job = { name = "many"; type = "command"; output = "out"; outputs = ["a/*", "b/*"];
			run = "mkdir a b; for i in $(seq 120); do echo $i >a/$i; echo $i >b/$i; done"; };
	E
	STATUS=0
	timeout -k 5 120 strace -f -y -o calls -e trace=fsync,fdatasync,rename,renameat,renameat2 "$BURST" run >out.txt 2>err.txt </dev/null || STATUS=$?
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(find out/a out/b -type f -size +0 | wc -l)" 240 files
	is "$(jq -r '.sha256 + "  out/" + .file' out/manifest.jsonl | sha256sum -c --quiet 2>&1 | wc -l)" 0 "files that the manifest does not know"
	# the first line of a call tells its order; the pods' own folder is not looked at
	awk -v out="$T/out" 'index($0, out "/") || index($0, out ">") {
		part = ""
		if (match($0, /\/[ab]\/[0-9]+\.part>/)) part = substr($0, RSTART + 1, RLENGTH - 7)
		if (/fsync\(/ && part != "") synced[part] = 1
		if (/fsync\(/ && /manifest\.jsonl>/) written++
		if (/fsync\(/ && /\/out\/[ab]>/) folders++
		if (/renameat\(/ && match($0, /\/[ab]>, "[0-9]+\.part"/)) {
			split(substr($0, RSTART + 1, RLENGTH - 7), of, />, "/)
			named++
			if (!synced[of[1] "/" of[2]]) early++
			if (!written) unwritten++
		}
	}
	END {print named + 0, early + 0, unwritten + 0; print written + 0, folders + 0}' calls >counted
	is "$(head -n 1 counted)" "240 0 0" "renames, those before the file was synced, those before the manifest was"
	[ "$(tail -n 1 counted | awk '{print $1 + $2}')" -le 120 ] || complain "the manifest and the folders are synced so often: $(tail -n 1 counted)"
}

t_the_manifest_is_in_natural_order() { # frame 2 before frame 10, and the same after a second run
	cat >burst.cfg <<-'E'
		provider = "local";
		job = { name = "frames"; type = "command"; output = "out"; outputs = ["*.png"];
			run = "for i in 10 2 1 100; do echo $i >frame$i.png; done"; };
	E
	burst run --quiet
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(jq -r .file out/manifest.jsonl | tr '\n' ' ')" "frame1.png frame2.png frame10.png frame100.png " "order"
	burst run --quiet
	is "$(jq -r .file out/manifest.jsonl | tr '\n' ' ')" "frame1.png frame2.png frame10.png frame100.png " "order after another run"
}

t_outputs_that_match_nothing() { # the pod is gone with what it wrote: that is no success
	cat >burst.cfg <<-'E2'
		provider = "local"; pods = 2;
		job = { name = "c"; type = "command"; run = "[ $BURST_INDEX = 0 ] && echo x >film.MP4; true"; outputs = ["*.mp4"]; output = "out"; };
	E2
	burst run --quiet
	is "$STATUS" 1 "exit status"
	has err.txt 'no file of its folder matches outputs (*.mp4): nothing was fetched'
	sed -i 's/film.MP4/film.mp4/' burst.cfg
	burst run --quiet
	is "$STATUS" 0 "one pod of two has one ($(tail -n 2 err.txt))"
	is "$(cat err.txt)" "" "what is said then"
	rm -rf out
	sed -i 's/film.mp4/&; exit 3/' burst.cfg
	burst run --quiet
	has err.txt "exit code 3"
}

t_a_job_in_another_folder() { # its outputs are beside its config where that does not say where, also when it is resumed from elsewhere
	mkdir project
	cat >project/burst.cfg <<-'E2'
		provider = "local";
		job = { name = "c"; type = "command"; run = "echo $((6 * 7)) >f"; outputs = ["f"]; };
	E2
	burst run project
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(cat project/out/f)" 42 "its output"
	[ ! -e out ] || complain "a folder here"
	is "$(ledger 'select output from run')" "$T/project/out" "what the ledger says"
}

t_two_parts_make_the_same_file() { # one of the two would be lost: said, and not rendered again
	cat >burst.cfg <<-'E'
		provider = "local";
		pods = 3;
		job = { name = "t"; type = "command"; run = "echo $BURST_INDEX >same.txt"; outputs = ["*.txt"]; output = "out"; };
	E
	burst run --json
	is "$STATUS" 1 "exit status"
	is "$(json .segments.rendered),$(json .segments.failed)" 1,2 "one made it"
	grep -q 'makes same.txt, as command-[0-2] does: put $BURST_INDEX into the name' err.txt || complain "said: $(tail -n 3 err.txt)"
	is "$(cat out/same.txt | wc -l)" 1 "the file that is there"
}

odd_names() { # a run of the commands on stdin
	mkdir -p code && cat >code/go.sh
	cat >burst.cfg <<-'E'
		provider = "local";
		code = { path = "code"; };
		job = { name = "t"; type = "command"; run = "sh go.sh"; outputs = ["*.txt", "f/**"]; output = "out"; };
	E
	echo "$*" >>burst.cfg
	burst run --json
}

t_outputs_with_odd_names() { # come home, as long as they are
	odd_names <<-'E'
		echo 1 >' a b.txt'; echo 2 >-c.txt; echo 3 >'~d.txt'; echo 4 >'é.txt'; echo 5 >'e:?*".txt'; : >empty.txt
		echo 6 >"$(printf 'x%.0s' $(seq 251)).txt"; d=f/$(printf 'y%.0s' $(seq 255)); mkdir -p "$d"; echo 7 >"$d/$(printf 'z%.0s' $(seq 255))"
	E
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(find out -type f -not -name manifest.jsonl | wc -l)" 8 "files"
	is "$(cat "out/$(printf 'x%.0s' {1..251}).txt")" 6 "the longest name"
	burst run --json
	is "$STATUS" 0 "again: over its own"
}

t_outputs_that_cannot_come() { # by the name they have: the segment fails, and says which; the others come
	local name
	for name in 'a\377.txt' 'b\nc.txt' 'd\\e.txt' 'f\342\200\256.txt' 'f/.git/config' 'f/x.part'; do
		rm -rf out
		odd_names <<-E
			mkdir -p f/.git; echo 1 >"\$(printf '$name')"; echo 2 >good.txt
		E
		is "$STATUS" 1 "$name: exit status ($(tail -n 2 err.txt))"
		has err.txt "which is not a valid name here: rename it, or leave it out of job.outputs"
		is "$(grep -c 'not a valid name here' err.txt)" 2 "$name: said" # as it happens, and at the end
		is "$(json '.pods | length')" 1 "$name: pods"
		is "$(cat out/good.txt; jq -r .file out/manifest.jsonl)" $'2\ngood.txt' "$name: the good one"
	done
}

t_output_that_the_volume_does_not_take() { # something is in its way: the command has not done its work, and is run again
	odd_names 'pod = { worker_root = true; };' <<-'E'
		b=$BURST_VOLUME/runs/$BURST_RUN/$BURST_ATTEMPT/out/$BURST_SEGMENT; mkdir -p "$b" f; echo 1 >f/a
		if [ -e "$b/f" ]; then rm -rf "$b/f"; else echo 2 >"$b/f"; fi
	E
	is "$STATUS" 0 "once: exit status ($(tail -n 2 err.txt))"
	has err.txt "output f/a could not be kept: "
	is "$(cat out/f/a)" 1 "the file"
	rm -rf out
	odd_names 'pod = { worker_root = true; };' <<-'E'
		b=$BURST_VOLUME/runs/$BURST_RUN/$BURST_ATTEMPT/out/$BURST_SEGMENT; mkdir -p "$b" f; echo 1 >f/a; rm -rf "$b/f"; echo 2 >"$b/f"
	E
	is "$STATUS" 1 "for good: exit status"
	is "$(json .segments.rendered),$(json .segments.failed)" 0,1 "segments"
	is "$(grep -c "the command ended with exit code 0: output f/a could not be kept: " err.txt)" 4 "said in $(grep -E 'warning|failed' err.txt | tr '\n' '|')" # each time, and at the end
}

brought() { # what each of them wrote, in short
	sha256sum out/*.txt | cut -c1-8 | tr '\n' ' '
}

t_what_is_safe_of_a_command_is_not_run_again() { # by whoever resumes its run; what is gone is
	mkdir code
	cat >burst.cfg <<-'E'
		provider = "local"; pods = 3; code = { path = "code"; }; providers = { local = { price_per_hour = 0.69; }; };
		job = { name = "t"; type = "command"; outputs = ["*.txt"]; output = "out";
			run = "[ $BURST_INDEX != 1 ] || [ -e ok ] || exit 4; [ $BURST_INDEX = 2 ] || head -c 16 /dev/urandom >$BURST_INDEX.txt"; };
	E
	burst run --json
	is "$STATUS" 1 "exit status"
	local was first second pods run
	run=$(json .run)
	was=$(brought)
	pods=$(json '.pods | length')
	touch code/ok
	burst resume "$run" --json
	is "$STATUS" 0 "resumed: exit status ($(tail -n 2 err.txt))"
	is "$(json '.pods | length')" $((pods + 1)) "pods, with the one for what had failed"
	is "$(json '"\(.segments.rendered) \(.segments.cached) \(.segments.failed)"')" "3 0 0" "segments"
	read -r first second <<<"$(brought)"
	is "$first " "$was" "what was safe"
	[ -n "$second" ] || complain "nothing came of what had failed"
	is "$(jq -r .file out/manifest.jsonl | tr '\n' ' ')" "0.txt 1.txt " "files in the manifest"
	ledger "update run set status = 'partial' where id = '$run'" # as one that has something left to do
	rm out/0.txt
	burst resume "$run" --json
	is "$STATUS" 0 "resumed without a file: exit status ($(tail -n 2 err.txt))"
	is "$(brought | wc -w) $(brought | cut -d ' ' -f 2)" "2 $second" "the other one"
	is "$(json '.pods | length')" $((pods + 2)) "pods, with the one for what was gone"
	local went
	for went in "mv out out.before" "rm -r out" "rm out/0.txt"; do
		ledger "update run set status = 'partial' where id = '$run'"
		$went
		if [ "$went" = "rm out/0.txt" ]; then # and the first one that resumes gets nowhere
			burst resume "$run" --max-cost 0.000001
			is "$STATUS" 5 "resumed with too little ($(tail -n 2 err.txt))"
		fi
		burst resume "$run" --max-cost 1
		is "$STATUS" 0 "resumed after $went: exit status ($(tail -n 2 err.txt))"
		is "$(brought | wc -w)" 2 "files after $went"
	done
	burst run --force -q # another run writes over both
	is "$STATUS" 0 "another run: exit status ($(tail -n 2 err.txt))"
	was=$(brought)
	ledger "update run set status = 'partial' where id = '$run'"
	burst resume "$run"
	is "$STATUS" 0 "resumed after another run: exit status ($(tail -n 2 err.txt))"
	is "$(brought | wc -w) $(brought | tr ' ' '\n' | grep -cxF -f <(tr ' ' '\n' <<<"$was" | grep .))" "2 0" "files, and those that stayed as the other run made them"
	was=$(brought)
	echo mine >out/0.txt
	ledger "update run set status = 'partial' where id = '$run'"
	burst resume "$run"
	is "$STATUS $(cat out/0.txt)" "2 mine" "resumed after a change by hand ($(tail -n 2 err.txt))"
	has err.txt "0.txt is there and was not made by this job; use --force"
	burst resume "$run" --force
	is "$STATUS" 0 "... with --force: exit status ($(tail -n 2 err.txt))"
	is "$(brought | cut -d ' ' -f 2)" "$(cut -d ' ' -f 2 <<<"$was")" "the other one, which stays"
	! grep -aqx mine out/0.txt || complain "it was not written over"
}

t_a_log_beside_the_code() { # `burst run -v >log 2>&1` in the folder that travels: what is written meanwhile does not
	mkdir code
	cat >code/burst.cfg <<-'E'
		provider = "local"; code = { path = "."; };
		job = { name = "t"; type = "command"; outputs = ["names"]; run = "ls >names"; };
	E
	for round in 1 2; do
		(cd code && timeout 60 "$BURST" run -v -o ../out >>log 2>&1 </dev/null) || complain "round $round: exit $? ($(tail -n 2 code/log))"
	done
	has code/log "code: log skipped (what this command writes)"
	is "$(tr '\n' ' ' <out/names)" "burst.cfg names " "what travelled"
}

t_values_of_variables() { # arrive as they are, whatever text they are; others are no value
	cat >burst.cfg <<-'E'
		provider = "local";
		job = { name = "t"; type = "command"; run = "printf %s \"$V\" >v.txt"; outputs = ["v.txt"]; output = "out"; env = ["V"]; };
	E
	V=$'two\nlines "q" \'s\' \\ $x `id` é \001 ' burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(cat out/v.txt; echo .)" $'two\nlines "q" \'s\' \\ $x `id` é \001 .' "the value"
	V=$'a\xff' burst run
	is "$STATUS" 2 "no text: exit status"
	has err.txt "the value of V in your environment is not UTF-8 text and cannot be sent to pods"
	burst volume create v
	V=$'a\xff' burst volume warm v
	is "$STATUS" 2 "no text, volume warm: exit status"
	has err.txt "the value of V in your environment is not UTF-8 text"
	is "$("$BURST" ledger --json | jq length)" 1 "runs"
}

t_progress_bars() { # of a line that is written over the last state is told
	cat >burst.cfg <<-'E'
		provider = "local";
		job = { name = "t"; type = "command"; no_outputs = true; output = "out";
			run = "for i in $(seq 3000); do printf '\\r%5d of 3000 |##########          |' $i; done; printf '\\rall of it\\r\\n'; printf '1 %%\\r2 %%\\n' >&2"; };
	E
	burst run -v
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(grep -o '| .*' err.txt | grep -E 'all of it|%|of 3000' | tr '\n' ,)" "| all of it,| 2 %," "told"
}

t_a_streamed_file_that_is_replaced() { # what it is in the end comes home
	cat >burst.cfg <<-'E'
		provider = "local";
		job = { name = "t"; type = "command"; stream = true; outputs = ["a.txt"]; output = "out";
			run = "sleep 1; echo first >x; mv x a.txt; sleep 2; echo second and last >x; mv x a.txt; sleep 1"; };
	E
	burst run
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	is "$(cat out/a.txt)" "second and last" "the file"
	is "$(jq -r 'select(.file == "a.txt") | .sha256' out/manifest.jsonl | tail -n 1)" "$(sha256sum <out/a.txt | cut -d' ' -f1)" "its hash"
}

t_words_that_are_no_text() { # whatever bytes it prints are its log, and no fault of the pod's
	cat >burst.cfg <<-'E'
		provider = "local";
		pods = 1;
		job = { name = "t"; type = "command"; run = "printf 'a\\000b\\377\\033[2Jc\\n'; printf 'd\\000\\n' >&2; head -c 3000 /dev/urandom; echo 1 >$BURST_INDEX.txt";
			outputs = ["*.txt"]; output = "out"; };
	E
	burst run --json
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(json .segments.failed)" 0 "failed"
	is "$(cat out/*.txt | wc -l)" "$(json .segments.total)" "files"
	burst logs "$(json .run)"
	LC_ALL=C grep -q '[[:cntrl:]]' out.txt && complain "the log drives a terminal"
	has out.txt "a"
}

t_a_larger_input_takes_longer() { # job.size: three earlier runs of other sizes give the time of this one
	mkdir -p data/sub
	seq 60 >data/a.txt
	seq 40 >data/sub/b.txt
	printf 'no end' >data/c.txt
	ln -s /etc/passwd data/d.txt
	cat >burst.cfg <<-'E'
		provider = "local"; pods = 2;
		providers = { local = { price_per_hour = 3.60; }; };
		job = { name = "c"; type = "command"; run = "echo x >out-$BURST_INDEX.txt"; outputs = ["out-*.txt"]; output = "out"; size = "lines of data/**.txt"; };
	E
	burst run
	is "$STATUS" 0 "a run ($(tail -n 1 err.txt))"
	# each pod had half of the 101 lines
	is "$(ledger "select count(*), min(sum), max(longest) from batch")" "2|50.5|50.5" "commands, lines of a pod"
	# as after three runs on one pod each, over 20, 60 and 140 lines: 1 s and 0.01 s for each line
	ledger "update speed set n = 3, longest = 220, sum = 220, longest2 = 23600, longest_sum = 23600, sum2 = 23600, t = 5.2,
		longest_t = 456, sum_t = 456, batches = 3"
	seq 5900 >data/a.txt
	burst plan
	# 5941 lines on two pods: 2970.5 each, which take 1 + 29.705 s
	has out.txt 'size: 5941 lines; a pod takes 1 s and 0.01 s for each of its lines (measured: no GPU at local, 3 commands, '
	burst plan --json
	is "$(json '.pick.work_s * 10 | round') $(json .pick.pods)" "614 2" "work of two pods, in tenths of a second"
	burst plan --pods 1 --json
	is "$(json '.pick.work_s * 10 | round')" "604" "1 + 59.41 s on one"
	burst plan --what-if
	has out.txt 'with more of the same lines:'
	# other units, and what is none
	sed -i 's/size = "[^"]*"/size = "bytes of data\/c.txt"/' burst.cfg
	burst plan
	has err.txt "the speed of this command is not known"
	while IFS=$'\t' read -r size why; do
		sed -i "s/size = \"[^\"]*\"/size = \"${size//\//\\/}\"/" burst.cfg
		burst plan
		is "$STATUS" 2 "size = \"$size\""
		has err.txt "burst.cfg:3: job.size$why"
	done <<-'E'
		lines of nothing/*	: no file matches "nothing/*"
		lines of ../x	 = "lines of ../x": it must be "bytes of PATTERN", "lines of PATTERN" or "files of PATTERN" with a path inside the project, or a number above 0
		rows of data/a.txt	 = "rows of data/a.txt": it must be
		0	 = "0": it must be
		12 lines	 = "12 lines": it must be
	E
}

run_tests "$@"
