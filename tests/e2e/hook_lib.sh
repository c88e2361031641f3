# hook_lib.sh - what the tests of `burst hook` share: repositories with a job.
# shellcheck shell=bash
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
