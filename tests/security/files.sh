#!/bin/bash
# files.sh - who can read what burst leaves behind, whatever the umask says: its own state is its user's alone; outputs are as
# the umask has them. And nothing is written through links that lie in the output folder.
. "$(dirname "$0")/../e2e/lib.sh"

# what of the state folder others could read; what pods have in their own folders is theirs, below one that is ours alone
open_to_others() { find "$BURST_STATE_DIR" \( -path "$BURST_STATE_DIR/volumes/*" -o -path "$BURST_STATE_DIR/local/pods/*/scratch/*" \) -prune -o ! -type l -perm /077 -print; }
private() { # private WHEN
	is "$(open_to_others | head -n 3 | tr '\n' ' ')" "" "$1: open to others"
}
slow_job() {
	script_lines 6
	slow_worker SLOW=0.3
	JOB+=" ${1:-}"
	config 'code = { path = "code"; };'
}
t_state_is_private_under_any_umask() {
	umask 000
	slow_job 'join = { gap = 0.1; };'
	burst_bg run --json
	wait_for 40 "a file" file_count out 1
	private "while it runs"
	is "$(find "$BURST_STATE_DIR/runs" -name '*.key' -perm 600 | wc -l)" 1 "the pod's client key, 0600"
	burst_wait
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	private "afterwards"
	is "$(stat -c %a "$BURST_STATE_DIR" "$BURST_STATE_DIR"/{runs,volumes,ledger.db} | tr '\n' ' ')" "700 700 700 600 " "modes"
	is "$(stat -c %a out out/*.wav out/manifest.jsonl | sort | uniq -c | tr -s ' ' | tr '\n' ' ')" " 8 666  1 777 " "outputs under umask 000"
	"$BURST" run -d >id.txt 2>>err.txt
	"$BURST" ps >/dev/null
	private "after other commands"
	umask 022
}
t_outputs_are_as_the_umask_says() {
	local mask
	slow_job
	for mask in 022 077; do
		rm -rf out
		umask $mask
		burst run
		is "$STATUS" 0 "exit status"
		is "$(stat -c %a out/*.wav out/manifest.jsonl | sort -u)" "$(printf %o $((0666 & ~0$mask)))" "outputs under umask $mask"
	done
	umask 022
}
t_nothing_is_written_through_links() { # that a repository brought along in its output folder
	slow_job 'join = { gap = 0.1; loudness = -18; subtitles = true; };'
	mkdir -p victims out
	local name n
	# what burst writes there by names that one can know beforehand
	for name in joined.wav .joined.work .joined.part .joined.louder .joined.convert.wav .joined.louder.part joined.srt joined.vtt chapters.txt s001.wav s002.wav.part; do
		echo untouched >"victims/$name"
		ln -s "../victims/$name" "out/$name"
	done
	burst run --force
	is "$STATUS" 0 "exit status ($(tail -n 2 err.txt))"
	for name in victims/* victims/.j*; do is "$(cat "$name")" untouched "$name"; done
	[ ! -e out/.joined.work ] || complain "what joining works in is still there"
	is "$(find out -name '[a-z]*.wav' -type l | wc -l)" 0 "links that are still there in place of outputs"
	rm -rf out
	mkdir out
	echo untouched >victims/profile
	ln -s ../victims/profile out/manifest.jsonl
	burst run --force
	[ "$STATUS" != 0 ] || complain "a manifest was written over a link"
	is "$(cat victims/profile)" untouched "what the manifest's link points at"
	has err.txt "manifest.jsonl: is a link"
	rm -rf out
	mkdir out
	ln -s ../victims/profile "out/.burst-probe-1"
	for n in $(seq 2 400); do ln -s ../victims/profile "out/manifest.jsonl.tmp-$(($$ + n))"; ln -s ../victims/profile "out/.burst-probe-$(($$ + n))"; done
	burst run --force
	is "$STATUS" 0 "exit status"
	is "$(cat victims/profile)" untouched "what links with the names of temporary files point at"
}

t_an_output_folder_that_is_swapped_for_a_link() { # files, manifest, track and delivery come into the folder that was there
	slow_job 'join = { gap = 0.1; loudness = -18; subtitles = true; };'
	echo 'deliver = { run = "echo x >delivered"; outputs = ["delivered"]; };' >>burst.cfg
	mkdir victims
	burst_bg run --json
	wait_for 40 "a file" file_count out 1
	mv out real && ln -s victims out
	burst_wait
	is "$STATUS" 0 "exit status ($(tail -n 3 err.txt))"
	is "$(find victims -mindepth 1)" "" "what came to where the link leads"
	is "$(wavs real)" 6 files
	is "$(jq -r 'select(.former != true).file' real/manifest.jsonl | wc -l)" 7 "lines of the manifest"
	is "$(find real -name 'joined.*' -o -name delivered | sort | tr '\n' ' ')" "real/delivered real/joined.srt real/joined.vtt real/joined.wav " "the rest"
}

run_tests "$@"
