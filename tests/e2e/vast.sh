#!/bin/bash
# vast.sh - burst at Vast.ai, against the stand-in: what only this vendor has.
# shellcheck disable=SC2317 # c_ functions are called by names put together
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$ROOT/tests/cloud/vast/client.sh"

t_conformance() {
	cloud || return
	BURST=$BURST BURST_STATE_DIR=$T/state timeout 120 "$ROOT/build/e2e/conform" vast >conform.txt 2>&1 ||
		complain "conform: $(grep -v "^\[ *\(RUN\|=\)" conform.txt | head -n 3 | tr "\n" "|")"
	is "$(va_pods | wc -l)" 0 "pods that are left"
	va_stop
}

t_a_job_from_offer_to_release() {
	cloud || return
	script_lines 6
	va_config
	burst run --json --trace
	all_done 6 1
	schema run
	is "$(json '.pods[0] | .provider + " " + .gpu')" "vast RTX 4090" "its pod"
	all_paid_for
	no_secrets_in state err.txt out.txt
	cloud_over
}

# A host is a stranger: secrets are refused before anything is asked of the vendor, unless the user's own file allows them.
t_secrets_are_refused_before_renting() {
	cloud || return
	script_lines 1
	export HF_TOKEN=hf_abcdefghijklmnop
	JOB='env = ["HF_TOKEN"];' va_config
	burst run --json
	is "$STATUS" 2 "exit status ($(tail -n 1 err.txt))"
	has err.txt "job.env: HF_TOKEN is a secret, which the owner of a machine at Vast.ai can read"
	has err.txt "providers.vast.allow_secrets = true"
	is "$(asked createInstance)" 0 creates
	# of several providers the others are used
	sed -i 's/^provider = .*/provider = ["vast", "local"];/; s/^gpu = .*//' burst.cfg
	burst run --json
	all_done 1 0
	is "$(json '.pods[0].provider')" local "where it went"
	hasnt err.txt hf_abcdefghijklmnop
	rm -rf out
	mkdir -p "$XDG_CONFIG_HOME/burst"
	echo 'providers = { vast = { allow_secrets = true; }; };' >"$XDG_CONFIG_HOME/burst/burst.cfg"
	JOB='env = ["HF_TOKEN"];' va_config
	burst run --json
	all_done 1 1
	cloud_over
}
# The login for a private image goes to strangers: only if the user's own file says so, and only for images below its prefix.
private_image() { # its token in $TOKEN
	TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ
	va_control settings "{\"logins\":{\"host/tts:1\":\"-u me -p $TOKEN docker.io\"}}" >/dev/null
	script_lines 1
	va_config 'wait = "5s";'
	mkdir -p "$XDG_CONFIG_HOME/burst"
}
own_file() { (umask 077 && echo "providers = { vast = { $* }; };" >"$XDG_CONFIG_HOME/burst/burst.cfg"); }
last_login() { va_control requests | jq -r '[.[] | select(.op == "createInstance")] | last | .body.image_login'; }
t_a_private_image_and_its_login() {
	cloud || return
	private_image
	own_file 'registry = ["hos=me"]; allow_secrets = true;' "registry_token = \"$TOKEN\";"
	burst run --json
	is "$STATUS" 2 "without a login ($(tail -n 1 err.txt))"
	has err.txt "pull access denied for host/tts:1"
	is "$(last_login)" null "the login for another name"
	own_file 'registry = ["other=me", "host=me"]; allow_secrets = true;'
	VAST_REGISTRY_TOKEN=$TOKEN burst run --json --trace
	all_done 1
	is "$(last_login)" "-u me -p $TOKEN docker.io" "the login"
	echo "$TOKEN" >secrets
	untold state err.txt out.txt
	cloud_over
}
t_a_login_that_cannot_be_used() {
	cloud || return
	private_image
	refused() { # refused WORDS: before anything is rented
		burst run --json
		is "$STATUS" 2 "$1: exit status ($(tail -n 1 err.txt))"
		has err.txt "$1"
		is "$(asked createInstance)" 0 "$1: creates"
		hasnt err.txt "$TOKEN"
	}
	own_file 'registry = ["host=me"];' "registry_token = \"$TOKEN\";"
	refused "image \"host/tts:1\" needs the login of providers.vast.registry, which the owner of a machine at Vast.ai can read"
	has err.txt "providers.vast.allow_secrets = true"
	own_file 'registry = ["host=me"]; allow_secrets = true;'
	refused "set providers.vast.registry_token in your own file, or VAST_REGISTRY_TOKEN"
	own_file 'registry = ["host=me"]; allow_secrets = true;' "registry_token = \"$TOKEN\\\$x\";"
	refused "providers.vast.registry_token: a token has letters"
	own_file 'registry = ["host=m;e"]; allow_secrets = true;'
	refused 'providers.vast.registry: "host=m;e": a user'
	cloud_over
}
# A stage rents when the render is paid for, so what Vast.ai never has is told before: pods without a GPU, secrets.
t_a_stage_that_it_can_never_have() {
	cloud || return
	script_lines 1
	export HF_TOKEN=hf_abcdefghijklmnop
	JOB='then = ({ name = "up"; run = "true"; outputs = ["up.txt"]; });' va_config
	burst run --json
	is "$STATUS" 2 "exit status ($(tail -n 1 err.txt))"
	has err.txt 'burst.cfg:5: job.then: stage "up": gpu = ["none"]: Vast.ai rents no pods without a GPU'
	JOB='then = ({ name = "up"; run = "true"; outputs = ["up.txt"]; env = ["HF_TOKEN"]; pod = { needs = ["gpu"]; }; });' va_config
	burst run --json
	is "$STATUS" 2 "exit status ($(tail -n 1 err.txt))"
	has err.txt 'burst.cfg:5: job.then: stage "up": job.env: HF_TOKEN is a secret'
	is "$(asked searchOffers)" 0 searches
	cloud_over
}
# The files of Vast's own client, the newer one first.
t_the_key_of_vasts_own_client() {
	cloud || return
	local key=$VAST_API_KEY
	unset VAST_API_KEY
	script_lines 1
	va_config
	burst doctor
	has out.txt "set VAST_API_KEY"
	(umask 077 && echo "$key" >"$HOME/.vast_api_key")
	burst doctor
	has out.txt "vast: $VAST_API_URL accepts the key"
	mkdir -p "$XDG_CONFIG_HOME/vastai"
	(umask 077 && echo 0000another0key0000 >"$XDG_CONFIG_HOME/vastai/vast_api_key")
	burst doctor
	has out.txt "Invalid user key"
	hasnt out.txt 0000another0key0000
	(umask 077 && echo "two words" >"$XDG_CONFIG_HOME/vastai/vast_api_key")
	burst doctor
	has out.txt "contains a blank or a control character"
	export VAST_API_KEY=$key
	cloud_over
}
t_a_volume_is_a_mistake() {
	cloud || return
	script_lines 1
	va_config 'volume = { name = "v"; size_gb = 10; create = true; };'
	burst run --json
	is "$STATUS" 2 "exit status ($(tail -n 1 err.txt))"
	has err.txt 'volume "v": a volume at Vast.ai is tied to one machine'
	is "$(asked searchOffers)" 0 searches
	cloud_over
}

# ---- Vast's own client, from PyPI: what it understands of the stand-in, and of burst's pods ----

theirs() { # theirs WHAT...: status in $STATUS, words in theirs.txt
	STATUS=0
	timeout 60 python3 "$ROOT/tests/cloud/vast/client.py" "$ROOT/build/vastai" "$VAST_API_URL" "$@" >theirs.txt 2>theirs.err || STATUS=$?
	is "$STATUS" 0 "Vast's client: $* ($(tail -n 1 theirs.err))"
}
has_their_client() {
	[ -e "$ROOT/build/vastai/.complete" ] && return
	skip "Vast's own client is not there (make vast-client)"
	return 1
}
t_vasts_own_client_at_the_stand_in() {
	has_their_client && cloud || return
	theirs first
	is "$(jq -cS . theirs.txt)" "$(jq -cS . <<-'E'
		{"user": 25.5, "offers": ["RTX 4090"], "bids": 3, "listed": [[true, "theirs", {"A": "b", "-p 22:22": "1"}]], "shown": "RTX 4090", "started": true,
		"renamed": true, "label": "renamed", "log": true, "charges": [[true, "instance"]], "destroyed": true, "left": 0, "gone": null}
	E
	)" "what it says"
	va_control requests | jq -r '.[] | select(.status >= 400 and .op != "logFile") | "\(.method) \(.url): \(.reply)"' >refused.txt
	is "$(cat refused.txt)" "" "requests of Vast's client that the stand-in refuses"
	va_stop
}
t_vasts_own_client_ends_a_pod() { # the run sees it gone, and goes on elsewhere
	has_their_client && cloud || return
	script_lines 20
	slow_worker SLOW=0.5 MAX_BATCH=1
	va_config 'code = { path = "code"; };'
	LIMIT=200 burst_bg run --json
	wait_for 60 "a file" file_count out 1
	theirs list
	is "$(jq -r 'length' theirs.txt)" 1 "pods that it lists"
	is "$(jq -r '.[] | split("/")[0]' theirs.txt)" "$(ledger "select name from pod")" "the name that it shows"
	theirs destroy "$(jq -r 'keys[0]' theirs.txt)"
	burst_wait
	all_done 20 2
	cloud_over
}

run_tests "$@"
