#!/bin/sh
# The espeak worker by hand: through the library, through the program, and with neither; and the example of PROTOCOL.md.
#
# shellcheck disable=SC2016,SC2015

here=$(cd "$(dirname "$0")/../.." && pwd)
WORKER=${WORKER:-$here/build/kit/espeak-worker}
top=$(mktemp -d "${TMPDIR:-/tmp}/burst-espeak-test.XXXXXX")
trap 'rm -rf "$top"' EXIT
fails=0
export BURST_OUT="$top"

check() { # WHAT GOT WANT
	if [ "$2" = "$3" ]; then
		echo "ok: $1"
	else
		fails=$((fails + 1))
		echo "not ok: $1: got '$2', want '$3'"
	fi
}

task() { # ID VOICE TEXT OPTIONS
	echo "{\"id\":\"$1\",\"file\":\"$1.wav\",\"text\":\"$3\",\"voice\":\"$2\",\"seed\":1,\"options\":{$4}}"
}

batch() { # TASK...
	list=
	for t; do
		list="$list,$t"
	done
	echo "{\"batch\":\"b1\",\"segments\":[${list#,}],\"more\":[1,{\"x\":\"]\"}]}"
}

bytes() {
	wc -c <"$top/$1.wav"
}

{
	batch "$(task a en 'Hello, world.' '')" "$(task b en 'Hello, world.' '"speed":350,"unknown":[1]')" "$(task c nowhere x '')"
	batch "$(task d de+f3 'Gr\u00fc\u00dfe \"an\" alle' '"pitch":80')" "$(task e en 'Hello, world.' '')"
} | "$WORKER" >"$top/said" 2>"$top/err"
check 'exit at the end of stdin' $? 0
check 'hello' "$(head -n 1 "$top/said" | grep -c '^{"hello":1,"protocol":1,"engine":"espeak","version":"[0-9.]*","sample_rate":22050,"max_batch":64,"gpu":false}$')" 1
check 'segments' "$(grep -c '^{"segment":"[abde]","ok":true,"file":"[abde].wav","ms":[0-9]*}$' "$top/said")" 4
check 'an unknown voice' "$(grep -c '^{"segment":"c","ok":false,"error":"espeak-ng has no voice \\"nowhere\\""' "$top/said")" 1
check 'batches' "$(grep -c '^{"batch":"b1","done":true}$' "$top/said")" 2
check 'the same again gives the same' "$(sha256sum <"$top/a.wav")" "$(sha256sum <"$top/e.wav")"
[ "$(bytes b)" -lt "$(bytes a)" ]
check 'faster is shorter' $? 0
check 'true length in the header' "$(od -An -tu4 -j4 -N4 "$top/a.wav" | tr -d ' ')" $(($(bytes a) - 8))
samples=$(od -An -tu4 -j40 -N4 "$top/a.wav" | tr -d ' ')
check 'the words behind the samples' "$(tail -c +$((45 + samples)) "$top/a.wav" | grep -aoE 'cue |adtl|ltxt|labl|Hello,|world[.]' | tr '\n' ' ')" \
	'cue  adtl ltxt labl Hello, ltxt labl world. '
check 'nothing unfinished' "$(find "$top" -name '*.tmp')" ''

# without the library, then without the program too
lib=$(ldconfig -p 2>/dev/null | sed -n 's/.*libespeak-ng.so.1 .*=> //p' | head -n 1)
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null && [ -n "$lib" ]; then
	printf '#!/bin/sh\n[ "$1" = --version ] && { echo "eSpeak NG text-to-speech: 1.51  Data at: /x"; exit; }\nwhile [ "$1" != -w ]; do shift; done\ncat >"$2"\n' >"$top/espeak-ng"
	chmod 755 "$top/espeak-ng"
	without='mount --bind /dev/null "$(realpath "$1")"; shift; "$@"'
	batch "$(task p en 'by program' '')" | PATH=$top:$PATH unshare -m sh -c "$without" - "$lib" "$WORKER" >"$top/said"
	check 'by the program' "$(cat "$top/p.wav") $(grep -c '"version":"1.51"' "$top/said")" 'by program 1'
	mkdir "$top/bin"
	for t in sh mount realpath env unshare; do
		ln -s "$(command -v $t)" "$top/bin/$t"
	done
	: | PATH=$top/bin unshare -m sh -c "$without" - "$lib" "$WORKER" >"$top/said" 2>/dev/null
	check 'with neither' "$(grep -c '"hello":1.*"error":"neither' "$top/said")" 1
else
	echo 'skipped: without the library (needs root)'
fi

if command -v python3 >/dev/null; then
	# of its listings the whole worker
	awk '/^```python$/ { on = 1; text = ""; next }
		/^```$/ { if (on && text ~ /engine="silence"/) printf "%s", text; on = 0; next }
		on { text = text $0 "\n" }' "$here/jobs/PROTOCOL.md" >"$top/worker.py"
	batch "$(task s en hello '')" | python3 "$top/worker.py" >"$top/said"
	check 'the example of PROTOCOL.md' "$(bytes s) $(sed 's/ //g' "$top/said" | tail -n 2 | tr '\n' ' ')" \
		'8044 {"segment":"s","ok":true,"file":"s.wav"} {"batch":"b1","done":true} '
fi

# Its packages, on a pod where somebody else is installing some: apt says so and gives up, except for the last of its locks.
# LOCKED (how often apt-get finds a lock) WORDS [STATE...: espeak-ng is there, half of it, or what it needs is unmet]
install_it() {
	rm -rf "$top/apt" "$top/keep"
	mkdir -p "$top/apt/bin" "$top/keep"
	echo 0 >"$top/apt/updates"
	for f in $3; do : >"$top/apt/$f"; done
	cat >"$top/apt/bin/apt-get" <<-END
		#!/bin/sh
		case " \$* " in
		*' update '*)
			n=\$(cat "$top/apt/updates")
			echo \$((n + 1)) >"$top/apt/updates"
			[ "\$n" -ge $1 ] || { echo "E: $2"; exit 100; }
			exit 0
			;;
		esac
		[ -e "$top/apt/settled" ] || { echo "E: dpkg was interrupted"; exit 100; }
		case " \$* " in
		*' -f install ') rm -f "$top/apt/unmet" ;;
		*' install espeak-ng ')
			[ ! -e "$top/apt/unmet" ] || { echo "E: Unmet dependencies."; exit 100; }
			rm -f "$top/apt/half"
			: >"$top/apt/espeak-ng"
			for a; do case \$a in Dir::Cache::archives=*) echo deb >"\${a#*=}/a.deb" ;; esac done
			;;
		esac
	END
	printf '#!/bin/sh\n[ ! -e "%s" ] || echo unpacked\n' "$top/apt/half" >"$top/apt/bin/dpkg-query"
	printf '#!/bin/sh\n[ "$1" != --configure ] || : >"%s"\n[ "$1" != -i ] || : >"%s"\necho amd64\n' "$top/apt/settled" \
		"$top/apt/espeak-ng" >"$top/apt/bin/dpkg"
	printf '#!/bin/sh\necho 0\n' >"$top/apt/bin/id"
	chmod 755 "$top"/apt/bin/*
	"$KIT_PRINT" install espeak | sed "s#/[^ ]*/libespeak#$top/apt/libespeak#g; s#command -v espeak-ng#[ -e '$top/apt/espeak-ng' ]#" \
		>"$top/install.sh"
	PATH=$top/apt/bin:$PATH BURST_KEEP=$top/keep BURST_KEPT=$top/kept sh "$top/install.sh" >"$top/said" 2>&1
	echo "status $? updates $(cat "$top/apt/updates") words $(grep -c "$2" "$top/said")"
}

KIT_PRINT=${KIT_PRINT:-$here/build/e2e/kit_print}
if [ -x "$KIT_PRINT" ]; then
	check 'packages while others are installed' \
		"$(install_it 2 'Could not get lock /var/lib/apt/lists/lock. It is held by process 123 (apt-get)')" 'status 0 updates 3 words 0'
	check 'packages that are there' "$(install_it 0 E: espeak-ng)" 'status 0 updates 0 words 0'
	check 'packages that are there by half' "$(install_it 0 E: 'espeak-ng half')" 'status 0 updates 1 words 0'
	check 'packages that lack others' "$(install_it 0 E: 'espeak-ng half unmet')" 'status 0 updates 1 words 0'
	check 'what of them is kept' "$(ls "$top/keep"/*)" a.deb
	mv "$top/keep" "$top/kept"
	check 'packages that were kept' "$(install_it 9 'Temporary failure resolving' unmet)" 'status 0 updates 0 words 0'
	check 'are not kept again' "$(ls "$top/keep")" ''
	rm -r "$top/kept"
	check 'packages without a network' "$(install_it 9 'Temporary failure resolving')" 'status 1 updates 1 words 1'
else
	echo "skipped: the packages of espeak (no $KIT_PRINT: make check T=espeak_worker)"
fi
[ $fails = 0 ]
