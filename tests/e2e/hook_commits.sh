#!/bin/bash
# hook_commits.sh - what a hook's trigger makes of commits: which of them are rendered, from which files.
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/hook_lib.sh"

# A rebase, an amend and a merge end in one state, which is queued.
t_rebase_and_merge() {
	repository
	install repo --quiet 1h
	git -C repo checkout -q -b side
	echo "a side's line" >repo/shared/more.txt && git -C repo add -A && git -C repo commit -qm side1
	comes_to skipped # no input
	commit repo "a line of the side"
	comes_to queued
	git -C repo checkout -q main
	sed -i '1i a line on top' repo/shared/lines.txt && git -C repo commit -qam top
	comes_to queued
	git -C repo checkout -q side
	git -C repo rebase -q main 2>rebase.txt || complain "rebase: $(tail -n 1 rebase.txt)"
	comes_to queued
	is "$(last hook)" post-rewrite "the hook that queued it"
	is "$(requests "commit_id not in ('$(head_of repo)', '$(git -C repo rev-parse main)', '$(git -C repo rev-parse 'side@{1}')')")" 0 "commits in between"
	git -C repo checkout -q main && git -C repo merge -q --no-ff -m merged side
	wait_for 30 "the merge" triggered skipped "$(head_of repo)" # the same text as after the rebase
	is "$(last hook)" post-merge "the hook of the merge"
	drop_requests
}

t_bare_repository() {
	repository
	git init -q --bare far.git
	cd far.git || return
	burst hook install sub --into "$T/served"
	is "$STATUS" 2 "before the first push"
	has err.txt "has no commit yet: push one"
	git -C ../repo push -q "$T/far.git" main
	burst hook install sub/burst.cfg --quiet 0
	is "$STATUS" 2 "without a folder"
	has err.txt "--into DIR"
	local what status words flags
	while IFS='|' read -r what status words flags; do
		# shellcheck disable=SC2086
		burst hook ${flags//SERVED/$T/served}
		is "$STATUS" "$status" "$what ($(tail -n 1 err.txt))"
		has err.txt "$words"
		[ ! -e "$T/served" ] && [ ! -e worktrees ] && [ ! -e hooks/post-receive ] || complain "$what: something is left"
		rm -rf "$T/served" worktrees
	done <<-'E'
		status without a folder|2|--into DIR|status
		remove without a folder|2|--into DIR|remove sub/burst.cfg
		a path of this machine|2|give the config's path inside the repository|install /sub/burst.cfg --into SERVED
		a config that no commit has|2|has no nosuch/burst.cfg|install nosuch/burst.cfg --into SERVED
		a duration that is none|2|"xx" is not a duration|install sub/burst.cfg --into SERVED --quiet xx
		a hook that is none|2|--on nohook|install sub/burst.cfg --into SERVED --on nohook
		a folder for status|2|--into is a flag of install|status --into SERVED
	E
	burst hook install sub/burst.cfg --into "$T/repo"
	is "$STATUS" 2 "a working tree of another repository"
	has err.txt "of another repository"
	[ ! -e "$T/repo/.git/hooks/post-commit" ] && [ -e "$T/repo/.git" ] || complain "a hook in the other repository"
	burst hook install sub/burst.cfg --into "$T/served" --quiet 0
	is "$STATUS" 0 "install ($(tail -n 1 err.txt))"
	[ -x hooks/post-receive ] && [ ! -e hooks/post-commit ] || complain "the wrong hooks"
	rm -f out.txt err.txt
	cd ..
	is "$(ls -A served)" .git "files in the folder for outputs"
	commit repo "pushed"
	git -C repo push -q "$T/far.git" main 2>push.txt || complain "push: $(cat push.txt)"
	wait_for 60 "the render" says served/sub/out "one line|two lines|pushed"
	ends_queue
	git -C repo checkout -q -b other && commit repo "of another branch"
	git -C repo push -q "$T/far.git" other
	burst hook status served/sub/burst.cfg
	is "$STATUS" 0 "status ($(tail -n 1 err.txt))"
	wait_for 30 "the second push" triggered skipped "$(head_of repo)" served
	git -C repo push -q "$T/far.git" --delete other
	burst hook status served # where there is no burst.cfg
	has out.txt "post-receive  installed for another burst.cfg only"
	burst hook status served --json
	schema hook
	burst hook remove served/sub
	is "$STATUS" 0 "remove ($(tail -n 1 err.txt))"
	is "$(find served -name '*.wav' | wc -l)" 3 "outputs that stay"
	[ ! -e served/.git ] && [ ! -e far.git/worktrees ] || complain "the working tree is left"
	[ ! -e far.git/hooks/post-receive ] || complain "the hook is left"
}

# A clone without history: what cannot be compared is queued.
t_shallow_clone_and_no_commit() {
	repository
	commit repo three
	git clone -q --depth 1 "file://$T/repo" shallow
	install shallow --quiet 1h
	echo x >shallow/readme.txt && git -C shallow add -A && git -C shallow commit -qm "no input"
	comes_to skipped shallow # its parent is there
	git -C shallow commit -q --amend -m "again"
	comes_to skipped shallow
	git -C shallow fetch -q --depth 1 && git -C shallow reset -q --hard origin/main
	commit shallow four
	comes_to queued shallow
	drop_requests
	git_of_this_test
	git init -q fresh && add_job fresh
	install fresh --quiet 1h
	burst hook status fresh/sub
	has out.txt "no trigger yet"
	git -C fresh add -A && git -C fresh commit -qm root
	comes_to queued fresh
	drop_requests
}

# Programs with windows start git without a PATH, and wait for what holds their pipes.
t_without_a_path() {
	repository
	install repo --quiet 1h
	echo three >>repo/shared/lines.txt
	local git
	git=$(command -v git)
	(cd repo && env -i HOME="$HOME" PATH= BURST_STATE_DIR="$BURST_STATE_DIR" GIT_CONFIG_GLOBAL="$GIT_CONFIG_GLOBAL" "$git" commit -qam three) >said.txt 2>&1
	is $? 0 "the commit ($(tail -n 1 said.txt))"
	is "$(cat said.txt)" "" "what it said"
	comes_to queued
	is "$(tr '\0' '\n' <"/proc/$(pgrep -f "queue run $T/repo" | head -n 1)/environ" | grep -c '^PATH=.*/usr/bin')" 1 "a PATH for the run"
	drop_requests
}

# The commit is rendered, whatever the working tree has when its turn comes.
t_another_branch_meanwhile() {
	repository
	git -C repo checkout -q -b empty && git -C repo rm -qr sub shared && git -C repo commit -qm nothing
	git -C repo checkout -q main
	install repo --quiet 3s --branch main
	commit repo three
	git -C repo checkout -q empty
	wait_for 60 "the render" says repo/sub/out "one line|two lines|three"
	ends_queue
	is "$(ledger "select count(*) from request where state = 'done'")" 1 "requests done"
}

t_paths_and_links() {
	repository
	install repo --quiet 1h --path 'shared/*.txt,docs'
	commit repo three
	comes_to queued
	sed -i 's|name = "e2e"|name = "e2f"|' repo/sub/burst.cfg && git -C repo commit -qam "the config is not in --path"
	comes_to skipped
	drop_requests
	# more paths than anybody counts: the last one matters, too
	install repo --quiet 1h --path "$(seq -f 'none%.0f' -s , 80),shared"
	commit repo many
	comes_to queued
	drop_requests
	# a job that reads through a link: every change may matter
	mkdir repo/real && mv repo/shared/lines.txt repo/real && ln -s ../real/lines.txt repo/shared/lines.txt
	git -C repo add -A && git -C repo commit -qm linked
	install repo --quiet 1h
	echo four >>repo/real/lines.txt && git -C repo commit -qam four
	comes_to queued
	drop_requests
}

# A filter that nothing can pass is a mistake, or worth a warning: the hook would render nothing, and say nothing.
t_filters_that_nothing_passes() {
	repository
	local words
	for words in "--branch a..b" "--branch main,x~" "--path /etc" "--path shared,../../x"; do
		# shellcheck disable=SC2086
		burst hook install repo/sub $words
		is "$STATUS" 2 "$words ($(cat err.txt))"
		has err.txt "${words%% *} ${words##*[ ,]}: "
	done
	[ ! -e repo/.git/hooks/post-commit ] || complain "a hook was installed"
	install repo --branch 'main,mian,rel/*' --path shared,shraed
	has err.txt "warning: --branch mian: there is no such branch yet"
	has err.txt "warning: --branch rel/*: there is no such branch yet"
	has err.txt "warning: --path shraed: no commit has it yet"
	is "$(grep -c warning err.txt)" 3 "warnings"
	git init -q -b fresh empty
	add_job empty
	install empty --branch fresh --path shared # before the first commit
	hasnt err.txt warning
}

# ---- the whole story ----
# kill_burst WORDS: every burst of this test that runs these words, with no chance to say goodbye.
kill_burst() {
	local p
	for p in $(pgrep -f "$1"); do
		[[ $(readlink "/proc/$p/cwd") == "$T"* || $(tr '\0' ' ' <"/proc/$p/cmdline") == *"$T"* ]] && kill -9 "$p" 2>/dev/null
	done
}
lines_of() { paste -sd'|' "$1/shared/lines.txt"; }

# Twenty commits in ten seconds, a client, its runner and some triggers killed in the middle, a rebase, and a working tree beside the first:
# the final text is there, by three runs at most, nothing was rendered twice, and the runs share one pod.
t_the_story() {
	local i
	export BURST_CACHE_DIR=$T/cache
	repository
	allow_volumes v # the other working tree is a project of its own
	seq -f 'line %.0f of the first text, which is there from the start' 80 >repo/shared/lines.txt
	sed -i '1i keep_warm = "2m";' repo/sub/burst.cfg
	install repo --quiet 3s --branch 'main,tree/*'
	git -C repo commit -qam "the first text"
	wait_for 60 "a few files" file_count repo/sub/out 3
	for i in $(seq 20); do
		commit repo "line $i that was added"
		[ "$i" != 3 ] || { kill_burst "queue run"; kill_burst "burst run"; }
		[ "$i" != 9 ] || kill_burst "hook fire"
		read -rt 0.35 <> <(:) || :
	done
	git -C repo checkout -q -b side HEAD~4
	for i in 1 2 3; do
		sed -i "1i line $i on top" repo/shared/lines.txt && git -C repo commit -qam "top $i"
	done
	git -C repo checkout -q main
	git -C repo rebase -q side 2>rebase.txt || complain "rebase: $(tail -n 1 rebase.txt)"
	wait_for 120 "the final text ($(last outcome): $(last why))" says repo/sub/out "$(lines_of repo)"
	ends_queue
	is "$(wc -l <repo/shared/lines.txt)" 103 "lines of the final text"
	git -C repo worktree add -q -b tree/one "$T/tree"
	commit tree "a line of the other working tree"
	wait_for 120 "the text of the tree" says tree/sub/out "$(lines_of tree)"
	ends_queue
	local runs pods
	runs=$(ledger "select count(*) from run where type <> 'keep'")
	[ "$runs" -le 3 ] || complain "$runs runs"
	pods=$(ledger "select count(distinct id) from pod where id <> ''")
	is "$pods" 1 "pods for all runs, which pass it on ($(ledger "select p.run || ' ' || p.id || ' from ' || p.handed_from || ' to ' || p.handed_to || ' ' || p.error from pod p" | tr '\n' '|'))"
	burst cancel "$(ledger "select id from run where type = 'keep' and status = 'running'")"
	is "$STATUS" 0 "the pod that is kept for the next run is released ($(cat err.txt))"
	is "$(ledger "select count(*) from run where status <> 'done'")" 0 "runs that did not end well"
	is "$(ledger "select count(*) from request where state <> 'done'")" 0 "requests that are not done"
	# a file that came home as its client was killed, before the ledger knew, counts as found: fewer is right, more is not
	local rendered
	rendered=$(ledger 'select sum(rendered) from run')
	[ "$rendered" -le 104 ] || complain "$rendered segments were rendered by all runs, of 104"
	[ "$rendered" -ge 90 ] || complain "only $rendered segments were rendered by all runs, of 104"
	is "$(ledger "select count(*) - count(distinct key) from segment where attempt <> ''")" 0 "segments rendered twice"
	is "$(ledger "select commit_id from run where type <> 'keep' order by started_ms desc limit 1")" "$(head_of tree)" "the last run's commit"
	"$BURST" reap -y >/dev/null 2>&1 || complain "something still bills"
}

run_tests "$@"
