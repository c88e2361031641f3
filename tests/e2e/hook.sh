#!/bin/bash
# hook.sh - `burst hook`: where hooks go, what they run, what is in their way. Real git in real repositories.
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/hook_lib.sh"

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
	has err.txt "/plain is not in a git repository (\`git init\` makes one)"
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
}

t_a_folder_of_somebody_else() {
	[ "$(id -u)" = 0 ] || { skip "only root can be somebody else"; return; }
	repository
	chmod -R go+rX "$T" && chmod 755 "$WORK" && mkdir bin other && chown 65534:65534 other
	others_enter "$T" || { skip "only root can reach $T"; return; }
	cp "$BURST" bin/burst
	git config --global --add safe.directory '*'
	HOME=$T/other XDG_CONFIG_HOME=$T/other/.config BURST_STATE_DIR=$T/other/state setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$T/bin/burst" hook install repo/sub >out.txt 2>err.txt
	is $? 1 "status"
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

# A name with a line break is shown in one line, whatever is said of it.
t_a_folder_with_a_line_break() {
	repository
	local odd=$'re\npo' command
	mv repo "$odd"
	for command in 'hook install --quiet 1h' 'hook status' 'plan' 'submit --quiet 1h' 'init new -y'; do
		(cd "$odd/sub" && burst $command && echo "$STATUS" >"$T/status" && cp err.txt out.txt "$T")
		is "$(cat status)" 0 "$command ($(tail -n 1 err.txt))"
		! grep -q '^po' err.txt out.txt || complain "$command broke a line: $(cat err.txt out.txt)"
	done
	commit "$odd" three
	comes_to queued "$odd"
	drop_requests
	(cd "$odd/sub" && burst hook remove && cp err.txt "$T")
	is "$(grep -c . err.txt)" 1 "lines of remove"
	ln -s nowhere "$odd/.git/hooks/post-commit"
	(cd "$odd/sub" && burst hook install && cp err.txt "$T")
	! grep -q '^po' err.txt || complain "install broke a line: $(cat err.txt)"
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

run_tests "$@"
