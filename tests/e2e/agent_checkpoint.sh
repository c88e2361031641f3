#!/bin/sh
# agent_checkpoint.sh - the agent's part of $BURST_CHECKPOINT: snapshots, what they hold, where they continue.
# shellcheck disable=SC2016,SC2013,SC2015,SC2086,SC2154 # pod-side $ stays; paths of our own making have no blanks
. "$(dirname "$0")/agent_lib.sh"

begin() { # MORE-OF-CHECKPOINT
	tell "{\"op\":\"start\",\"workers\":1,\"command\":true,\"checkpoint\":{$1}}"
	expect '"engine":"command"'
}

command() { # BATCH COMMAND [CHECKPOINT]
	tell "{\"op\":\"batch\",\"id\":\"$1\",\"segments\":[{\"id\":\"c1\",\"run\":\"$2\"${3:+,\"checkpoint\":$3}}]}"
}

field() { # NAME: of the newest snapshot
	grep -a '"ev":"checkpoint"' "$said" | grep '"number"' | tail -n 1 | sed "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/"
}

holds() { # the names in the newest snapshot
	tar -tf "$P/checkpoint/c1.$(field number)" | sort | tr '\n' ' '
}

# A snapshot holds what is renamed into the folder, never a file under way; the one before it goes only then.
test_snapshots() {
	begin '"every_ms":200,"volume":true'
	command b1 'cd \"$BURST_CHECKPOINT\"; echo half >next.tmp; mkdir part.tmp; echo x >part.tmp/y; echo 1 >one; mkdir d; ln -s ../one d/l; until [ -e \"$OLDPWD/go\" ]; do sleep 0.05; done; echo 2 >two; sleep 100'
	expect '"ev":"checkpoint","id":"c1","number":[0-9]*,"bytes":[0-9]*,"sha256":"[0-9a-f]*","ms":[0-9]*,"durable":true'
	equal 'holds' "$(holds)" 'd d/l one '
	equal 'hash' "$(field sha256)" "$(sha256sum <"$P/checkpoint/c1.$(field number)" | cut -d' ' -f1)"
	equal 'bytes' "$(field bytes)" "$(wc -c <"$P/checkpoint/c1.$(field number)")"
	: >"$BURST_HOME/work/segment.c1/go"
	expect '"durable":true' 2
	equal 'holds then' "$(holds)" 'd d/l one two '
	equal 'files' "$(ls "$P/checkpoint" | wc -l)" 1
}

# What was finished before a snapshot is reported before it; what is being written is not.
test_outputs_before_a_snapshot() {
	tell '{"op":"start","workers":1,"command":true,"outputs":["out/*"],"checkpoint":{"every_ms":200}}'
	expect '"engine":"command"'
	command b1 'mkdir out; echo 1 >out/one; echo x >out/x.tmp; exec 5>out/open; echo half >&5; echo 1 >\"$BURST_CHECKPOINT/step\"; until [ -e go ]; do sleep 0.05; done; echo 2 >out/two; echo 2 >\"$BURST_CHECKPOINT/step\"; sleep 100'
	expect '"ev":"checkpoint","id":"c1","number"'
	equal 'at the first' "$(grep -aE '"ev":"(checkpoint|output)"' "$said" | sed 's/.*"ev":"\([a-z]*\)"[^}]*"name":"\([^"]*\)".*/\2/; s/.*"ev":"\([a-z]*\)".*/\1/' | tr '\n' ' ')" 'out/one checkpoint '
	: >"$BURST_HOME/work/segment.c1/go"
	expect '"ev":"checkpoint","id":"c1","number"' 2
	equal 'at the second' "$(grep -aE '"ev":"(checkpoint|output)"' "$said" | sed 's/.*"ev":"\([a-z]*\)"[^}]*"name":"\([^"]*\)".*/\2/; s/.*"ev":"\([a-z]*\)".*/\1/' | tr '\n' ' ')" 'out/one checkpoint out/two checkpoint '
}

# What it leaves when it fails is there for the next attempt; what it leaves when it succeeds goes.
test_last_snapshot() {
	begin '"every_ms":100000'
	command b1 'echo 5 >\"$BURST_CHECKPOINT/step\"; exit 3'
	expect '"ev":"segment","id":"c1".*"code":3'
	equal 'before the report' "$(grep -nE '"ev":"(checkpoint|segment)"' "$said" | sed 's/.*"ev":"\([a-z]*\)".*/\1/' | tr '\n' ' ')" 'checkpoint segment '
	sha=$(field sha256) number=$(field number)
	command b2 'cat \"$BURST_CHECKPOINT/step\"; echo 6 >\"$BURST_CHECKPOINT/step\"'
	expect '"line":"5"'
	expect '"id":"c1".*"ok":true'
	for _ in $(seq 100); do
		ls "$BURST_HOME"/checkpoint/r1/c1 >/dev/null 2>&1 || break
		sleep 0.05
	done
	ls -d "$BURST_HOME"/checkpoint/r1/c1* 2>/dev/null && fail 'its folder is still there'
	command b3 'cat \"$BURST_CHECKPOINT/step\"; exit 4' "{\"path\":\"runs/r1/$BURST_ATTEMPT/checkpoint/c1.$number\",\"sha256\":\"$sha\",\"attempt\":\"other\"}"
	expect '"line":"5"' 2
	expect '"id":"c1".*"code":4'
}

# One that was changed, or that leaves its folder, is not given to the command: it begins anew, and the client is told.
test_bad_snapshots() {
	begin '"every_ms":100000'
	mkdir -p "$dir/made" "$dir/out"
	echo 7 >"$dir/made/step"
	tar -C "$dir/made" -cf "$dir/volume/good" step
	tar -C "$dir/made" -cf "$dir/volume/cut" step
	truncate -s 700 "$dir/volume/cut"
	tar -C "$dir/made" --transform 's,^,../,' -P -cf "$dir/volume/above" step
	ln -s /etc/passwd "$dir/made/l"
	tar -C "$dir/made" -cf "$dir/volume/link" l
	mkfifo "$dir/made/f"
	tar -C "$dir/made" -cf "$dir/volume/pipe" f
	ln -s good "$dir/volume/symbolic"
	k=0
	for one in good:7: cut:: above:: link:: pipe:: symbolic:: absent:: ../volume/good:: good::0000000000000000000000000000000000000000000000000000000000000000; do
		k=$((k + 1))
		file=${one%%:*} want=${one#*:} sha=${one##*:}
		[ -n "$sha" ] || sha=$(sha256sum "$dir/volume/$file" 2>/dev/null | cut -d' ' -f1)
		command b$k "echo $k has \$(cat \\\"\$BURST_CHECKPOINT/step\\\" 2>/dev/null | grep -c 7), \$(ls -A \\\"\$BURST_CHECKPOINT\\\" | wc -l); rm -rf \\\"\$BURST_CHECKPOINT\\\"/*" "{\"path\":\"$file\",\"sha256\":\"$sha\",\"attempt\":\"other\"}"
		case $want in
		7:) expect "\"line\":\"$k has 1, 1\"" ;;
		*) expect "\"line\":\"$k has 0, 0\"" ;;
		esac
		expect "\"id\":\"c1\",\"batch\":\"b$k\".*\"ok\":true"
	done
	equal 'told' "$(count '"ev":"checkpoint","id":"c1","error":"lost"')" 8
	[ -e "$BURST_HOME/checkpoint/r1/step" ] && fail 'a file above its folder'
	[ -n "$(find "$BURST_HOME/checkpoint/r1" -name '*.new')" ] && fail 'a half-filled folder is left'
}

# A snapshot of this pod that could not be unpacked may hold more than the newer one: it stays. Each says what it began with.
test_what_it_began_with() {
	begin '"every_ms":100000'
	command b1 'echo 5 >\"$BURST_CHECKPOINT/step\"; exit 3'
	expect '"ev":"segment","id":"c1".*"code":3'
	equal 'the first began with' "$(field from)" ''
	sha=$(field sha256) number=$(field number)
	given() { # HASH
		printf '{"path":"runs/r1/%s/checkpoint/c1.%s","sha256":"%s","attempt":"%s"}' "$BURST_ATTEMPT" "$number" "$1" "$BURST_ATTEMPT"
	}
	command b2 'echo 6 >\"$BURST_CHECKPOINT/step\"; sleep 0.2; exit 4' "$(given "$sha")"
	expect '"ev":"segment","id":"c1".*"code":4'
	equal 'the second began with' "$(field from)" "$sha"
	[ "$(field ran_ms)" -ge 200 ] || fail "it ran $(field ran_ms) ms"
	number=$(field number)
	rm -rf "$BURST_HOME/checkpoint/r1/c1"
	command b3 'echo 1 >\"$BURST_CHECKPOINT/step\"; exit 5' "$(given "$sha")"
	expect '"error":"lost"'
	expect '"ev":"segment","id":"c1".*"code":5'
	equal 'the third began with' "$(field from)" ''
	equal files "$(ls "$P/checkpoint" | sort | tr '\n' ' ')" "$(printf 'c1.%s\n' "$number" "$(field number)" | sort | tr '\n' ' ')"
}

# What cannot travel is told in one line, and the command goes on; the snapshot before stays.
test_what_cannot_travel() {
	begin '"every_ms":100,"most_bytes":20000'
	command b1 'cd \"$BURST_CHECKPOINT\"; echo 1 >one; until [ -e \"$OLDPWD/go\" ]; do sleep 0.05; done; ln -s /etc/passwd l; until [ -e \"$OLDPWD/go2\" ]; do sleep 0.05; done; rm l; head -c 30000 /dev/zero >big; exit 2'
	expect '"ev":"checkpoint","id":"c1","number"'
	: >"$BURST_HOME/work/segment.c1/go"
	expect '"error":"unfit","words":"l is a link that leaves the folder: use a relative one"'
	tar -tf "$P/checkpoint/c1.$(field number)" | grep -q '^l$' && fail 'it holds the link'
	: >"$BURST_HOME/work/segment.c1/go2"
	expect '"error":"large"'
	expect '"id":"c1".*"code":2'
	[ -n "$(find "$P/checkpoint" -name '*part*')" ] && fail 'a part is left'
	return 0
}

# Another agent on this pod begins anew: some outputs were perhaps finished, and died with the first agent.
test_another_agent() {
	begin '"every_ms":100000'
	command b1 'echo 1 >\"$BURST_CHECKPOINT/step\"; sleep 100'
	for _ in $(seq 100); do
		[ -e "$BURST_HOME/checkpoint/r1/c1/step" ] && break
		sleep 0.05
	done
	another_agent
	begin '"every_ms":100000'
	command b2 'echo has now $(cat \"$BURST_CHECKPOINT/step\")'
	expect '"line":"has now"'
}

run_tests "$@"
