#!/bin/sh
# A worker for tests, with faults on request. It "speaks" by writing the segment's id as a tiny WAV.
#
#	CRASH_ON=id   dies when it comes to this segment          HANG_ON=id    says nothing more
#	GARBAGE_ON=id reports a segment nobody gave it            OOM_OVER=n    out of memory for batches larger than n
#	KILL_ON=id    is killed as by the kernel                  MISSING_ON=id reports a file that it did not write
#	LINK_ON=id    reports a symbolic link                     ESCAPE_ON=id  reports a path outside
#	HUGE_ON=id    writes a line without end                   REFUSE_ON=id  says that it cannot
#	SLOW=s        takes this long for each segment            CHATTY=1      writes log on both channels
#	SILENT=1      never says hello                            BAD_HELLO=1   says hello with an error
#	MAX_BATCH=n   in its hello (8)                            FORGET_ON=id  never mentions this segment
#	BAR=n         draws a bar of n states before it says something
#	NOISE=1       speaks noise, not silence               SILENCE_ON=id but silence here
#	RENDERED=name a line "ID UPTIME" for each segment that it begins, in the file NAME.ATTEMPT of its volume
# Faults named ONCE_* happen only the first time (a file in BURST_OUT remembers).

say() {
	printf '%s\n' "$1"
}

once() { # NAME
	[ -e "$BURST_OUT/.once-$1" ] && return 1
	: >"$BURST_OUT/.once-$1"
}

# 44 bytes of header for 8000 Hz, 16 bit, mono, then 800 samples: 0.1 s
wav() { # ID
	printf 'RIFF\144\006\000\000WAVEfmt \020\000\000\000\001\000\001\000\100\037\000\000\200\076\000\000\002\000\020\000data\100\006\000\000'
	samples=/dev/zero
	[ -z "$NOISE" ] || [ "$1" = "$SILENCE_ON" ] || samples=/dev/urandom
	dd if=$samples bs=1600 count=1 2>/dev/null
}

fault() { # ID
	[ "$1" = "$CRASH_ON" ] && exit 3
	[ "$1" = "$ONCE_CRASH_ON" ] && once crash && exit 3
	[ "$1" = "$KILL_ON" ] && kill -9 $$
	[ "$1" = "$HANG_ON" ] && exec sleep 1000
	[ "$1" = "$ONCE_HANG_ON" ] && once hang && exec sleep 1000
	[ "$1" = "$GARBAGE_ON" ] && say '{"segment":"nobody","ok":true}'
	[ "$1" = "$HUGE_ON" ] && head -c 3000000 /dev/zero | tr '\0' x
	return 0
}

speak() { # ID
	[ -z "$RENDERED" ] || { read -r up _ </proc/uptime && echo "$1 $up" >>"$BURST_VOLUME/$RENDERED.$BURST_ATTEMPT"; }
	fault "$1"
	[ -z "$SLOW" ] || sleep "$SLOW"
	[ -z "$BAR" ] || awk -v n="$BAR" 'BEGIN { for (i = 1; i <= n; i++) printf "\r%60d of %d", i, n; printf "\r" }'
	[ -z "$CHATTY" ] || { say "now $1"; echo "err $1" >&2; }
	case $1 in
	"$REFUSE_ON") say "{\"segment\":\"$1\",\"ok\":false,\"error\":\"cannot say that\"}"; return ;;
	"$FORGET_ON") return ;;
	"$MISSING_ON") ;;
	"$LINK_ON") ln -sf /etc/passwd "$BURST_OUT/$1.wav" ;;
	"$ESCAPE_ON") say "{\"segment\":\"$1\",\"ok\":true,\"file\":\"../../$1.wav\"}"; return ;;
	*) wav "$1" >"$BURST_OUT/$1.wav.tmp" && mv "$BURST_OUT/$1.wav.tmp" "$BURST_OUT/$1.wav" ;;
	esac
	say "{\"segment\":\"$1\",\"ok\":true,\"file\":\"$1.wav\"}"
}

[ -n "$SILENT" ] && exec sleep 1000
[ -n "$BAD_HELLO" ] && { say '{"hello":1,"protocol":1,"error":"no voice today"}'; exit 1; }
say "{\"hello\":1,\"protocol\":1,\"engine\":\"test\",\"version\":\"1\",\"sample_rate\":8000,\"max_batch\":${MAX_BATCH:-8},\"gpu\":false}"

while read -r line; do
	batch=$(printf '%s' "$line" | sed 's/^{"batch":"\([^"]*\)".*/\1/')
	ids=$(printf '%s' "$line" | grep -o '{"id":"[^"]*"' | cut -d'"' -f4)
	# shellcheck disable=SC2086
	set -- $ids
	if [ -n "$OOM_OVER" ] && [ $# -gt "$OOM_OVER" ]; then
		say "{\"oom\":true,\"batch\":\"$batch\"}"
		continue
	fi
	for id; do
		speak "$id"
	done
	say "{\"batch\":\"$batch\",\"done\":true}"
done
