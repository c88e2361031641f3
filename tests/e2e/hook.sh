#!/bin/bash
# hook.sh - `burst hook`: real git in real repositories.
. "$(dirname "$0")/lib.sh"

# ---- a repository with a job ----
git_of_this_test() {
	export GIT_CONFIG_GLOBAL=$T/gitconfig GIT_CONFIG_NOSYSTEM=1
	git config --global user.email t@t && git config --global user.name t && git config --global init.defaultBranch main
	git config --global protocol.file.allow always && git config --global advice.detachedHead false
}
add_job() { # add_job FOLDER: in the folder sub, with its text in shared
	mkdir -p "$1/sub" "$1/shared"
	(
		cd "$1/sub" || exit
		config 'pods = 1;'
		sed -i 's|script.jsonl|../shared/lines.txt|' burst.cfg
		printf 'one line\ntwo lines\n' >../shared/lines.txt
		echo out >.gitignore
	)
}
repository() { # in repo: one commit
	git_of_this_test
	git init -q repo
	add_job repo
	git -C repo add -A && git -C repo commit -qm first
}
install() { # install REPO FLAG...
	burst hook install "$1/sub" "${@:2}"
	is "$STATUS" 0 "hook install ($(tail -n 1 err.txt))"
}
commit() { # commit REPO TEXT: a line more in what the job reads
	echo "$2" >>"$1/shared/lines.txt"
	git -C "$1" commit -qam "$2" || complain "the commit failed"
}
requests() { # requests [WHERE]
	ledger "select count(*) from request ${1:+where $1}" 2>/dev/null
}
has_requests() { [ "$(requests)" -ge "$1" ]; }
last() { # last KEY [REPO]: of the last trigger
	"$BURST" hook status "${2:-repo}/sub" --json 2>/dev/null | jq -r ".last.$1 // \"\""
}
triggered() { # triggered OUTCOME COMMIT [REPO]
	[ "$(last outcome "${3:-repo}") $(last commit "${3:-repo}")" = "$1 $2" ]
}
head_of() { git -C "$1" rev-parse HEAD; }
comes_to() { # comes_to OUTCOME [REPO]: of its HEAD
	wait_for 30 "$1 of $(head_of "${2:-repo}" | cut -c-12) ($(last outcome "${2:-repo}"): $(last why "${2:-repo}"))" triggered "$1" "$(head_of "${2:-repo}")" "${2:-repo}"
}
texts() { # what was rendered, as the manifest says
	jq -rs 'sort_by(.id) | map(.text) | join("|")' "$1/manifest.jsonl" 2>/dev/null
}
says() { [ "$(texts "$1")" = "$2" ]; }
ends_queue() { # nothing waits any more, and nobody works on it
	wait_for 60 "the queue's end" no_open_request
	wait_for 30 "the runner's end" no_runner
}
no_runner() { ! pgrep -f "queue run $T" >/dev/null; }
no_open_request() { [ "$(requests "state in ('pending', 'running')")" = 0 ]; }
drop_requests() {
	local id
	for id in $(ledger "select id from request where state = 'pending'"); do "$BURST" queue rm "$id" >/dev/null 2>&1; done
	wait_for 30 "the runner's end" no_runner
}
folder_of() { # all that is in it: names, kinds, modes, times of change, contents
	(cd "$1" && find . -mindepth 1 -printf '%P %y %m %s %l ' -exec stat -c %Y {} \; | sort && find . -type f -exec sha256sum {} + | sort -k2)
}

# ---- from a commit to a file ----
t_a_commit_is_rendered() {
	repository
	folder_of repo/.git/hooks >before.txt
	install repo --quiet 0
	for hook in post-commit post-merge post-rewrite; do
		[ -x repo/.git/hooks/$hook ] || complain "no $hook"
	done
	echo "uncommitted" >>repo/shared/lines.txt
	git -C repo stash -q
	commit repo "three lines"
	comes_to queued
	echo "uncommitted" >>repo/shared/lines.txt
	wait_for 60 "the render" says repo/sub/out "one line|two lines|three lines"
	ends_queue
	is "$(ledger 'select count(*) from run')" 1 runs
	is "$(ledger 'select commit_id from run')" "$(head_of repo)" "the run's commit"
	burst hook status repo/sub
	is "$STATUS" 0 "status"
	has out.txt "post-commit   installed, current"
	has out.txt "pre-push      not installed"
	has out.txt "quiet        0"
	has out.txt "last trigger: post-commit"
	has out.txt "(main): queued as request"
	has out.txt ": done, run $(ledger 'select id from run')"
	burst ledger "$(ledger 'select id from run')"
	has out.txt "commit    $(head_of repo)"
	burst ledger --json
	schema ledger
	burst hook status repo/sub --json
	schema hook
	git -C repo checkout -q -- .
	# what is no input starts nothing
	echo x >repo/readme.txt && git -C repo add -A && git -C repo commit -qm "no input"
	comes_to skipped
	is "$(last why)" "it changes nothing that the job reads" "why"
	is "$(requests)" 1 requests
	# the config is an input, whatever the commit after it says
	sed -i 's|name = "e2e"|name = "e2f"|' repo/sub/burst.cfg && git -C repo commit -qam "another name"
	comes_to queued
	ends_queue
	is "$(requests)" 2 "requests at last"
	burst hook remove repo/sub
	is "$STATUS" 0 "remove"
	folder_of repo/.git/hooks | diff before.txt - >diff.txt || complain "the hooks folder has changed: $(tail -n 2 diff.txt)"
}

# ---- what was there before ----
t_hooks_that_were_there_run_first() {
	repository
	cd repo/.git/hooks || return
	printf '#!/bin/sh\necho "commit $# ${1:-}" >>"%s/ran.txt"\nexit 3\n' "$T" >post-commit
	printf '#!/bin/sh\n{ echo "rewrite $*"; cat; } >>"%s/ran.txt"\n' "$T" >post-rewrite
	printf '#!/bin/sh\n{ echo "push $*"; cat; } >>"%s/ran.txt"\ntest ! -e "%s/refuse"\n' "$T" "$T" >pre-push
	chmod 755 post-commit && chmod 700 post-rewrite pre-push
	touch -d '2020-02-02 02:02:02' post-commit
	cp "$(type -P true)" post-merge # a program
	printf '#!/bin/sh\n' >pre-commit && chmod +x pre-commit # not one of ours
	cd "$T" || return
	folder_of repo/.git/hooks >before.txt
	install repo --quiet 1h --on post-commit,post-merge,post-rewrite,pre-push
	install repo --quiet 1h --on post-commit,post-merge,post-rewrite,pre-push # again: nothing is chained twice
	commit repo three
	comes_to queued
	is "$(cat ran.txt)" "commit 0 " "what the old hook was told"
	(cd repo && ./.git/hooks/post-commit)
	is $? 3 "exit status of the old hook"
	echo four >>repo/shared/lines.txt
	git -C repo commit -qa --amend -m four
	comes_to queued
	has ran.txt "rewrite amend"
	has ran.txt "$(head_of repo)" # what git writes to its stdin
	git init -q --bare far.git
	git -C repo push -q "$T/far.git" main 2>push.txt || complain "push: $(cat push.txt)"
	has ran.txt "push $T/far.git $T/far.git"
	has ran.txt "refs/heads/main $(head_of repo) refs/heads/main"
	touch refuse
	commit repo five
	! git -C repo push -q "$T/far.git" main 2>push.txt || complain "the old hook's refusal was lost"
	is "$(git -C far.git log -1 --format=%s main)" four "what was pushed"
	comes_to queued
	drop_requests
	burst hook remove repo/sub
	folder_of repo/.git/hooks | diff before.txt - >diff.txt || complain "the hooks folder has changed: $(tail -n 2 diff.txt)"
}

t_what_is_in_the_way() {
	repository
	printf 'not executable\n' >repo/.git/hooks/post-merge
	burst hook install repo/sub --on post-commit,post-merge
	is "$STATUS" 1 "one of two"
	has err.txt "post-merge exists but is not executable"
	is "$(cat repo/.git/hooks/post-merge)" "not executable" "the file"
	burst hook install repo/sub --on post-merge
	is "$STATUS" 2 "none of one"
	# another program writes its hook over ours
	printf '#!/bin/sh\nexit 0\n' >repo/.git/hooks/post-commit
	burst hook status repo/sub
	has out.txt "post-commit   only another program's"
	printf '#!/bin/sh\n# first\n' >repo/.git/hooks/post-rewrite
	chmod +x repo/.git/hooks/post-rewrite repo/.git/hooks/post-commit
	install repo --on post-rewrite
	cp repo/.git/hooks/post-commit repo/.git/hooks/post-rewrite
	burst hook status repo/sub
	is "$STATUS" 1 "status of one that was replaced"
	has out.txt "post-rewrite  replaced by another program"
	burst hook install repo/sub --on post-rewrite
	is "$STATUS" 2 "two old hooks"
	has err.txt "both exist"
	# the very hook that it was before: as tools do that write theirs anew
	cp repo/.git/hooks/post-rewrite.before-burst repo/.git/hooks/post-rewrite
	install repo --on post-rewrite
	# a program of another version, or elsewhere
	sed -i "s|^burst=.*|burst='/nowhere/burst'|" repo/.git/hooks/post-rewrite
	burst hook status repo/sub
	is "$STATUS" 1 "status of an old one"
	has out.txt "post-rewrite  installed by another version of burst"
	git -C repo commit -q --amend -m again 2>said.txt
	has said.txt "burst: /nowhere/burst is gone, so nothing is rendered"
	sed -i 's|^# job .*|# job {"config"|' repo/.git/hooks/post-rewrite
	burst hook remove repo/sub
	is "$STATUS" 2 "settings that are none"
	has err.txt "post-rewrite: line 3:"
}

t_folders_that_cannot_be_used() {
	repository
	mkdir plain && cp repo/sub/burst.cfg plain
	burst hook install plain
	is "$STATUS" 2 "no repository"
	has err.txt "is not in a git repository"
	burst hook install repo
	is "$STATUS" 2 "no burst.cfg"
	burst hook isntall repo/sub
	is "$STATUS" 2 "no such word"
	burst hook install repo/sub --on pre-commit
	is "$STATUS" 2 "no such hook"
	burst hook install repo/sub --quiet often
	is "$STATUS" 2 "no duration"
	git -C repo config core.hooksPath /dev/null
	burst hook install repo/sub
	is "$STATUS" 1 "no folder"
	has err.txt "core.hooksPath must name a folder"
	git -C repo config --unset core.hooksPath
	mkdir bin && ln -s "$(command -v timeout)" bin/timeout
	PATH=$T/bin burst hook install repo/sub
	is "$STATUS" 1 "no git"
	has err.txt "the program git is not in PATH"
	[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || return
	chmod -R go+rX "$T" && chmod 755 "$WORK" && mkdir other && chown 65534:65534 other
	cp "$BURST" bin/burst
	git config --global --add safe.directory '*'
	HOME=$T/other XDG_CONFIG_HOME=$T/other/.config BURST_STATE_DIR=$T/other/state setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$T/bin/burst" hook install repo/sub >out.txt 2>err.txt
	is $? 1 "a folder of somebody else"
	has err.txt "git's hooks folder must be writable"
	is "$(wc -l <err.txt)" 1 "lines of it"
}

# A folder that other tools or other repositories use.
t_core_hooks_path() {
	repository
	mkdir repo/.husky && echo '*' >repo/.husky/.gitignore
	git -C repo config core.hooksPath .husky
	printf '#!/bin/sh\necho husky >>"%s/ran.txt"\n' "$T" >repo/.husky/post-commit
	chmod +x repo/.husky/post-commit
	install repo --quiet 1h
	has err.txt "belongs to another program (core.hooksPath)"
	commit repo three
	comes_to queued
	is "$(cat ran.txt)" husky "the tool's own hook"
	burst hook remove repo/sub
	rm repo/.husky/.gitignore
	install repo --quiet 1h
	has err.txt "is a folder of the project (core.hooksPath): do not commit this hook"
	burst hook remove repo/sub
	rm -r repo/.husky
	git -C repo config --unset core.hooksPath
	# one folder for all repositories, which is not there yet
	git config --global core.hooksPath "$T/hooks"
	install repo --quiet 1h --on post-commit
	has err.txt "serves other repositories, too"
	git init -q two && add_job two && git -C two add -A && git -C two commit -qm first
	is "$(last outcome two)" "" "a trigger of a repository without a hook"
	install two --quiet 2h --on post-commit
	is "$(grep -c '^# job' hooks/post-commit)" 2 "jobs in one file"
	commit two 'three "of two"'
	comes_to queued two
	is "$(ledger 'select distinct quiet_ms from request order by 1')" "$(printf '3600000\n7200000')" "whose settings"
	drop_requests
	burst hook remove repo/sub
	is "$(grep -c '^# job' hooks/post-commit)" 1 "jobs left"
	burst hook remove two/sub
	[ ! -e hooks ] || complain "the folder that it made is left"
}

# ---- places ----
t_worktree_and_submodule() {
	repository
	install repo --quiet 1h --branch 'main,side/*'
	git -C repo worktree add -q -b side/one "$T/tree"
	commit tree "of the tree"
	comes_to queued tree
	is "$(ledger "select config from request")" "$T/tree/sub/burst.cfg" "whose job"
	git -C repo worktree add -q -b other "$T/tree2"
	commit tree2 "of another branch"
	comes_to skipped tree2
	is "$(last why tree2)" "the hook is not for its branch" why
	drop_requests
	git init -q super && git -C super submodule --quiet add "$T/repo" lib && git -C super commit -qm sub
	burst hook install super/lib/sub --quiet 1h
	is "$STATUS" 0 "in a submodule ($(tail -n 1 err.txt))"
	[ -x super/.git/modules/lib/hooks/post-commit ] || complain "no hook in the submodule's own folder"
	commit super/lib "of the submodule"
	comes_to queued super/lib
	drop_requests
	burst hook remove super/lib/sub
	[ ! -e super/.git/modules/lib/hooks/post-commit ] || complain "its hook is left"
}

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

# What cannot be queued is told by `status`, and queued by the next commit.
t_a_trigger_that_fails() {
	repository
	install repo --quiet 1h
	sed -i "s|^# job {|# job {\"min_segments\":\"many\",|" repo/.git/hooks/post-commit
	commit repo three
	comes_to failed
	has <(last why) "min-segments"
	burst hook status repo/sub
	is "$STATUS" 1 "status"
	has out.txt "last trigger: post-commit"
	has out.txt "failed: "
	install repo --quiet 1h
	echo x >repo/readme.txt && git -C repo add -A && git -C repo commit -qm "no input of its own"
	comes_to queued
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
