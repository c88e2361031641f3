# local_pod_lib.sh - what the tests of hostile jobs on this machine share: who starts them, and what came of each attack.
# shellcheck shell=bash

USER_ID=64321 # an ordinary user: no account has this number

may_be_user() { # whether an ordinary user can be played here
	[ "$(id -u)" = 0 ] || return 1
	setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups test -x "$BURST" || return 1
	contained user
}
contained() { # contained WHO: pods of that user can have namespaces
	as "$1" "$BURST" local-cloud check "$T/check-$1" <<<'{}' 2>/dev/null | grep -q 'ok: pods are namespaces'
}
as() { # as WHO COMMAND...
	local who=$1
	shift
	if [ "$who" = user ] && [ "$(id -u)" = 0 ]; then
		setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups "$@"
	else
		"$@"
	fi
}
# attacked_by WHO: runs ./attack.sh as a job; what it wrote is out/report
attacked_by() {
	cat >burst.cfg <<-E2
		provider = "local";
		volume = { name = "v"; size_gb = 1; create = true; };
		caps = { max_cost = 1.00; max_duration = "5m"; };
		job = { name = "attack"; type = "command"; run = "sh attack.sh >report 2>&1; exit 0"; outputs = ["report"]; output = "out"; };
		code = { path = "."; };
		pod = { worker_root = true; }; # the most that a job can have
		${LOCAL:+providers = { local = { $LOCAL \}; \};}
	E2
	rm -rf out
	[ "$1" != user ] || [ "$(id -u)" != 0 ] || chown -R $USER_ID:$USER_ID .
	STATUS=0
	# shellcheck disable=SC2086
	as "$1" ${BEFORE:-} timeout -k 5 90 "$BURST" run --allow-volume v >"$T/out.txt" 2>"$T/err.txt" </dev/null || STATUS=$?
	is "$STATUS" 0 "$1: exit status of the job ($(tail -n 3 "$T/err.txt" | tr '\n' '|'))"
	[ -s out/report ] || complain "$1: no report"
	cp out/report "$T/report-$1" 2>/dev/null
}
# each_user FUNCTION: calls FUNCTION WHO for root and for an ordinary user, each in a project and with a state of its own; it
# writes attack.sh, calls attacked_by and looks at out/report
each_user() {
	local who whos=user
	[ "$(id -u)" = 0 ] && whos="root user"
	local -x LOCAL_ISOLATION=namespaces HOME BURST_STATE_DIR XDG_CONFIG_HOME
	chmod 755 "$WORK" "$T"
	for who in $whos; do
		mkdir -p "$T/check-$who"
		[ "$who" = root ] || [ "$(id -u)" != 0 ] || chown $USER_ID "$T/check-$who"
		if [ "$who" = user ] && [ "$(id -u)" = 0 ] && ! may_be_user; then
			[ "$whos" = "root user" ] || skip "no ordinary user can be played here"
			continue
		fi
		contained "$who" || { skip "no containment here: $(as "$who" "$BURST" local-cloud check "$T/check-$who" <<<'{}')"; return; }
		mkdir -p "$T/$who/home" "$T/$who/project"
		HOME=$T/$who/home XDG_CONFIG_HOME=$T/$who/home/.config BURST_STATE_DIR=$T/$who/state
		[ "$who" = root ] || [ "$(id -u)" != 0 ] || chown -R $USER_ID:$USER_ID "$T/$who"
		cd "$T/$who/project" || return
		"$1" "$who"
		wait_for 20 "$who: the pod to be gone" no_pods
		[ -z "$(find "$BURST_STATE_DIR/local" -name 'probe-*')" ] || complain "$who: a trial pod is left"
		cd "$T" || return
	done
}
