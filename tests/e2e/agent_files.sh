#!/bin/sh
# `burst-agent tree`, `send`, `ls` and `rm` in a folder of their own, with tar streams made by the system's tar, and the
# bootstrap command (BOOTSTRAP: a program that prints it) with good and bad volumes. AGENT=path.
#
# shellcheck disable=SC2016,SC2015,SC2086,SC2012,SC2002

here=$(cd "$(dirname "$0")/../.." && pwd)
AGENT=${AGENT:-$here/build/kit/burst-agent}
top=$(mktemp -d "${TMPDIR:-/tmp}/burst-files-test.XXXXXX")
fails=0
cleanup() {
	umount -l "$top"/volume/code/*/m 2>/dev/null
	chmod -R u+w "$top" 2>/dev/null
	rm -rf "$top"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# as in a session of the pod's sshd: what else there is to know stands in the file that the start script has left
export BURST_HOME=$top/home BURST_VOLUME=$top/volume
unset BURST_RUN BURST_ATTEMPT
mkdir "$BURST_HOME" "$BURST_VOLUME"
printf "BURST_RUN='r'\nBURST_ATTEMPT='0123456789abcdef'\n" >"$BURST_HOME/env"
V=$BURST_VOLUME

check() { # WHAT GOT WANT
	if [ "$2" = "$3" ]; then
		echo "ok: $1"
	else
		fails=$((fails + 1))
		echo "not ok: $1: got '$2', want '$3'"
	fi
}

listing() { # of a tree: names, modes, links, contents
	(cd "$1" && find . -mindepth 1 ! -path ./.burst-tree -printf '%y %m %p %l\n' | grep -v '^l' | sort && find . -type l -printf '%p %l\n' | sort &&
		find . -type f ! -path ./.burst-tree -exec sha256sum {} + | sort)
}

# ---- a tree with everything in it
mkdir -p "$top/src/deep/er" "$top/src/empty"
echo one >"$top/src/one.txt"
echo two >"$top/src/deep/er/two.sh"
chmod 755 "$top/src/deep/er/two.sh"
head -c 3000000 /dev/urandom >"$top/src/big"
ln -s deep/er "$top/src/link"
long=$(printf 'x%.0s' $(seq 120))
mkdir -p "$top/src/$long/$long"
echo far >"$top/src/$long/$long/far"
: >"$top/src/zero"
printf 'umlaut' >"$top/src/gr$(printf '\303\274')n"

said=$(tar -C "$top/src" --format=pax -cf - . | "$AGENT" tree --dir code --id t1)
check 'tree says what it made' "$said" '{"tree":"t1","files":7}'
check 'a pax tree' "$(listing "$V/code/t1")" "$(listing "$top/src")"
tar -C "$top/src" --format=gnu -cf - . | "$AGENT" tree --dir code --id t2 >/dev/null
check 'a GNU tree' "$(listing "$V/code/t2")" "$(listing "$top/src")"
tar -C "$top/src" --format=pax -cf - . | zstd -1 -q | "$AGENT" tree --dir code --id t3 --zstd >/dev/null
check 'a zstd tree' "$(listing "$V/code/t3")" "$(listing "$top/src")"
check 'times are kept' "$(stat -c %Y "$V/code/t1/one.txt")" "$(stat -c %Y "$top/src/one.txt")"

# ---- the same over lanes: the stream cut into frames
cat >"$top/frames.py" <<'EOF'
import os, random, struct, subprocess, sys
agent, tree_id, archive, lanes, fault = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]
stream = open(archive, "rb").read()
random.seed(7)
parts, at = [], 0
while at < len(stream):
    n = random.choice([1, 11, 512, 70000, 300000])
    parts.append(stream[at:at + n])
    at += n
def frame(i, part):
    packed = 0
    if fault == "none" and lanes > 1 and part and i // 3 % 2: # three frames in a row are zstd's, three are not
        part = subprocess.run(["zstd", "-1", "-q", "-c"], input=part, stdout=subprocess.PIPE, check=True).stdout
        packed = 1 << 31
    return struct.pack(">QI", i, packed | len(part)) + part
lead = subprocess.Popen([agent, "tree", "--dir", "code", "--id", tree_id, "--lanes"], stdin=subprocess.PIPE)
sock = os.path.join(os.environ["BURST_HOME"], "tree-%s.sock" % tree_id)
while not os.path.exists(sock) and lead.poll() is None:
    pass
others = []
while len(others) < lanes and lead.poll() is None:
    p = subprocess.Popen([agent, "lane", tree_id], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if p.stdout.readline() == b"ready\n":
        others.append(p)
mine = {c: b"" for c in range(lanes + 1)}
for i, part in enumerate(parts):
    c = random.randrange(lanes + 1)
    if fault == "lost" and i == len(parts) // 2:
        continue
    mine[c] += frame(i, part)
if fault == "back":
    mine[0] = frame(0, b"x") + frame(0, b"x")
if fault != "endless":
    mine[0] += frame(len(parts), b"")
if fault == "cut":
    mine[lanes] = mine[lanes][:len(mine[lanes]) // 2]
# each is fed by a process of its own, so that none waits for another
carriers = [lead] + others
for c, p in enumerate(carriers):
    if os.fork() == 0:
        for q in carriers:
            if q is not p:
                q.stdin.close()
        try:
            p.stdin.write(mine[c])
            p.stdin.close()
        except BrokenPipeError:
            pass
        os._exit(0)
for p in carriers:
    p.stdin.close()
status = lead.wait()
for p in others:
    p.wait()
sys.exit(status)
EOF
tar -C "$top/src" --format=pax -cf "$top/src.tar" .
over_lanes() { # ID LANES FAULT
	timeout 60 python3 "$top/frames.py" "$AGENT" "$1" "$top/src.tar" "$2" "$3" >/dev/null 2>"$top/err"
}
for lanes in 0 1 5 15; do
	over_lanes "lanes$lanes" $lanes none
	check "$lanes lanes" "$?$(listing "$V/code/lanes$lanes")" "0$(listing "$top/src")"
done
python3 -c 'import struct, sys
sys.stdout.buffer.write(struct.pack(">QI", 0, 1 << 31 | 13) + b"no zstd frame" + struct.pack(">QI", 1, 0))' |
	"$AGENT" tree --dir code --id unpackable --lanes 2>"$top/err"
check 'frames that zstd cannot unpack' "$?$(grep -c 'zstd could not unpack' "$top/err")" 11
for fault in lost back endless cut; do
	over_lanes "lanes-$fault" 3 $fault
	check "a stream that is $fault" "$?" 1
	check "... says so" "$(grep -c 'burst-agent: tree: ' "$top/err" | sed 's/[1-9]/some/')" some
	check "... leaves nothing" "$(find "$V/code" "$BURST_HOME" -name "*lanes-$fault*" | wc -l)" 0
done
"$AGENT" lane nothing-like-it </dev/null >/dev/null 2>&1
check 'a lane that joins nothing' $? 1
rm -rf "$V"/code/lanes*

"$AGENT" tree --dir code --id t1 </dev/null
check 'already there' $? 98
"$AGENT" tree --dir code --id t9 --base none </dev/null
check 'no such base' $? 99

# ---- while it is built its name is no other pod's: they may share the volume, and a number of a process
mkfifo "$top/held"
"$AGENT" tree --dir code --id held <"$top/held" >/dev/null &
held=$!
exec 4>"$top/held"
for _ in $(seq 400); do
	[ -n "$(find "$V/code" -name '.held.*')" ] && break
	sleep 0.05
done
check 'a tree that is being built' "$(find "$V/code" -maxdepth 1 -name '*held*' -printf '%f')" ".held.0123456789abcdef.$held"
cat "$top/src.tar" >&4
exec 4>&-
wait $held
check 'a tree that was held up' "$?$(listing "$V/code/held")" "0$(listing "$top/src")"
rm -r "$V/code/held"

# ---- a difference
cp -a "$top/src" "$top/new"
echo changed >"$top/new/one.txt"
rm -r "$top/new/deep/er/two.sh" "$top/new/empty"
rm "$top/new/link" && mkdir "$top/new/link" && echo now >"$top/new/link/file"
rm "$top/new/zero" && ln -s one.txt "$top/new/zero"
mkdir "$top/delta"
printf 'deep/er/two.sh\0empty\0not/there\0' >"$top/delta/.burst-delete"
(cd "$top" && tar --format=pax -cf delta.tar -C delta .burst-delete -C ../new one.txt link zero)
said=$("$AGENT" tree --dir code --id t4 --base t1 <"$top/delta.tar")
check 'a difference says' "$said" '{"tree":"t4","files":3}'
check 'a difference' "$(listing "$V/code/t4")" "$(listing "$top/new")"
check 'the base is as it was' "$(listing "$V/code/t1")" "$(listing "$top/src")"
check 'what did not change is shared' "$(stat -c %i "$V/code/t4/big")" "$(stat -c %i "$V/code/t1/big")"

# ---- ... where workers of an earlier run are at work in the base: what they write beside the code comes and goes
mkdir -p "$top/busy/cache"
for i in $(seq 200); do echo "$i" >"$top/busy/cache/keep$i"; done
tar -C "$top/busy" -cf - . | "$AGENT" tree --dir code --id busy >/dev/null
perl -e 'my ($d, $n) = (@ARGV, 0);
	while (-d $d) {
		$n = ($n + 1) % 50;
		open my $f, ">", "$d/t.$n" or next;
		close $f;
		mkdir "$d/dir.$n";
		rename "$d/t.$n", "$d/c.$n";
		rmdir "$d/dir.$n";
	}' "$V/code/busy/cache" &
busy=$!
sound=0
for i in $(seq 40); do
	head -c 10240 /dev/zero | "$AGENT" tree --dir code --id "of-busy$i" --base busy >/dev/null 2>>"$top/of-busy"
	case $? in
	0) [ "$(cat "$V/code/of-busy$i"/cache/keep* | sha256sum)" = "$(cat "$top"/busy/cache/keep* | sha256sum)" ] && sound=$((sound + 1)) ;;
	99) [ -e "$V/code/of-busy$i" ] || sound=$((sound + 1)) ;;
	esac
done
kill "$busy"
check "a base that changes ($(sort -u "$top/of-busy" | head -n 1))" "$sound" 40
rm -rf "$V"/code/busy "$V"/code/of-busy*

# ---- ... or is removed meanwhile: files in a file system of their own are no links, and who opens one can be held up
mkdir -p "$V/code/lossy/m"
{
	printf 'burst-tree 1\nd m\n'
	for i in $(seq 40); do echo "f $(echo "$i" | sha256sum | cut -c1-64) m/f$i"; done | LC_ALL=C sort -k 3
} >"$V/code/lossy/.burst-tree"
from_lossy() { # COMMAND, which is run in the middle of it; prints the exit status
	mount -t tmpfs none "$V/code/lossy/m"
	for i in $(seq 40); do echo "$i" >"$V/code/lossy/m/f$i"; done
	mkfifo "$top/holds"
	python3 "$here/tests/e2e/hold_up.py" "$V/code/lossy/m" "$1" >"$top/holds" &
	holder=$!
	read -r _ <"$top/holds"
	rm "$top/holds"
	head -c 10240 /dev/zero | "$AGENT" tree --dir code --id of-lossy --base lossy >/dev/null 2>>"$top/of-lossy.err"
	echo "$? $(cat "$V"/code/of-lossy/m/f* 2>/dev/null | wc -l)"
	wait $holder
	echo "$?" >>"$top/of-lossy.err"
	umount "$V/code/lossy/m" 2>/dev/null || umount "$V/code/elsewhere/m"
	rm -rf "$V/code/of-lossy"
}
if unshare -m true 2>/dev/null && mount -t tmpfs none "$V/code/lossy/m" 2>/dev/null && umount "$V/code/lossy/m"; then
	check 'a base of which a file is held up' "$(from_lossy :)" '0 40'
	check 'a base that loses files' "$(from_lossy 'for f in f*; do [ $f = $HELD ] || rm $f; done')" '99 0'
	check 'a base that is renamed' "$(from_lossy 'mv ../../lossy ../../elsewhere')" '0 40'
	mv "$V/code/elsewhere" "$V/code/lossy"
	mount -t tmpfs none "$V/code/lossy/m"
	"$AGENT" rm code/lossy 2>/dev/null # its mount point cannot go
	check 'a tree that cannot be removed whole has no name' "$? $(ls -A "$V/code" | sed 's/[0-9]*$//' | tr '\n' ' ')" '1 .lossy.gone. t t t t '
	umount "$V"/code/.lossy.gone.*/m
	rm -r "$V"/code/.lossy.gone.*
else
	echo "skipped: nothing can be mounted here"
fi
rm -rf "$V/code/lossy"

# ---- a tree whose name is a hash is what it says, or is not there
mkdir -p "$top/plain/d"
echo a >"$top/plain/a"
echo b >"$top/plain/d/b"
chmod 755 "$top/plain/d/b"
ln -s d/b "$top/plain/l"
hash_of() { sha256sum <"$1" | cut -c1-64; }
plain=$(printf 'burst-tree 1\nf %s a\nd d\nx %s d/b\nl l\td/b\n' "$(hash_of "$top/plain/a")" "$(hash_of "$top/plain/d/b")" | sha256sum | cut -c1-64)
send_plain() { tar -C "$top/plain" -cf - . | "$AGENT" tree --dir code --id "$1" >/dev/null 2>"$top/err"; }
send_plain "$plain"
check 'a tree by its hash' "$? $(listing "$V/code/$plain")" "0 $(listing "$top/plain")"
other=$(echo "$plain" | tr 0-9a-f 1-9a-f0)
send_plain "$other"
check 'a tree that is not what its name says' "$? $(find "$V/code" -maxdepth 1 -name "*$other*")" '1 '
grep -q "what came is not tree $other" "$top/err" || check 'and why' "$(cat "$top/err")" 'what came is not tree'
mkdir "$top/next"
echo changed >"$top/next/a"
echo new >"$top/next/e"
ln -s a "$top/next/l"
next=$(printf 'burst-tree 1\nf %s a\nf %s e\nl l\ta\n' "$(hash_of "$top/next/a")" "$(hash_of "$top/next/e")" | sha256sum | cut -c1-64)
printf 'd/b\0d\0' >"$top/next/.burst-delete"
tar -C "$top/next" -cf - .burst-delete a e l | "$AGENT" tree --dir code --id "$next" --base "$plain" >/dev/null
rm "$top/next/.burst-delete"
check 'a difference by its hash' "$? $(listing "$V/code/$next")" "0 $(listing "$top/next")"
rm -rf "$V/code/$next"
echo 'f 0 x' >>"$V/code/$plain/.burst-tree"
head -c 10240 /dev/zero | "$AGENT" tree --dir code --id "$other" --base "$plain" >/dev/null 2>&1
check 'a base that was tampered with is none' $? 99
send_plain "$plain"
check 'a tree that was tampered with is put there again' "$? $(listing "$V/code/$plain")" "0 $(listing "$top/plain")"
rm -rf "$V/code/$plain"
mkdir "$V/code/$plain"
echo evil >"$V/code/$plain/a"
send_plain "$plain"
check 'a folder that only has its name' "$? $(listing "$V/code/$plain")" "0 $(listing "$top/plain")"
mkdir -p "$top/elsewhere"
mv "$V/code/$plain" "$top/elsewhere/$plain" && ln -s "$top/elsewhere/$plain" "$V/code/$plain"
send_plain "$plain"
check 'nor a link' "$? $(find "$V/code/$plain" -maxdepth 0 -type d | wc -l)" '0 1'
mkdir -p "$top/copied/d"
echo mine >"$top/copied/d/mine"
echo old >"$top/copied/l"
"$AGENT" copy "code/$plain" "$top/copied"
check 'copy' "$? $(rm "$top/copied/d/mine"; listing "$top/copied")" "0 $(listing "$top/plain")"
echo evil >"$V/code/$plain/a"
mkdir "$top/copied2"
"$AGENT" copy "code/$plain" "$top/copied2" 2>"$top/err"
check 'copy of what was tampered with' "$? $(find "$top/copied2" -mindepth 1) $(cat "$top/err")" \
	"1  burst-agent: copy: code/$plain: it is not what was put there"
"$AGENT" copy "code/$other" "$top/copied2" 2>/dev/null
check 'copy of what is not there' "$? $(find "$top/copied2" -mindepth 1)" '1 '
mv "$V/code" "$top/code" && ln -s "$top/code" "$V/code"
"$AGENT" copy "code/$plain" "$top/copied2" 2>/dev/null
check 'copy by way of a link' "$? $(find "$top/copied2" -mindepth 1)" '1 '
send_plain "$other"
check 'nothing is built by way of a link' "$? $(cat "$top/err" | grep -c 'Too many\|Not a dir')" '1 1'
rm "$V/code" && mv "$top/code" "$V/code"
rm -rf "$V/code/$plain"

# ---- a stream that was put on the volume beforehand, in parts
stage() { # stage FILE NAME: in parts of a megabyte
	mkdir -p "$V/staged"
	split -b 1000000 -d -a 1 "$1" "$V/staged/$2."
	parts=$(find "$V/staged" -name "$2.*" | wc -l)
	sum=$(sha256sum <"$1" | cut -d' ' -f1)
}
tar -C "$top/src" --format=pax -cf "$top/src.tar" .
stage "$top/src.tar" p1
[ "$parts" -gt 2 ] || check 'it is in parts' "$parts" 4
said=$("$AGENT" tree --dir code --id p1 --from p1 --parts "$parts" --sha256 "$sum" </dev/null)
check 'a staged tree says what it made' "$said" '{"tree":"p1","files":7}'
check 'a staged tree' "$(listing "$V/code/p1")" "$(listing "$top/src")"
check 'the parts are gone' "$(ls "$V/staged")" ''
stage "$top/src.tar" p1
"$AGENT" tree --dir code --id p1 --from p1 --parts "$parts" --sha256 "$sum" </dev/null
check 'staged, but there already' $? 98
check 'the parts are gone again' "$(ls "$V/staged")" ''
stage "$top/delta.tar" p2
said=$("$AGENT" tree --dir code --id p2 --base t1 --from p2 --parts 1 --sha256 "$sum" </dev/null)
check 'a staged difference' "$(listing "$V/code/p2")" "$(listing "$top/new")"
stage "$top/src.tar" p3
rm "$V/staged/p3.1"
"$AGENT" tree --dir code --id p3 --from p3 --parts "$parts" --sha256 "$sum" </dev/null 2>"$top/err"
check 'a part is missing' $? 97
check 'and says so in a line' "$(grep -c '^burst-agent: tree: ' "$top/err")" 1
stage "$top/src.tar" p3
printf 'not what was there' | dd of="$V/staged/p3.1" bs=1 seek=500000 conv=notrunc status=none
"$AGENT" tree --dir code --id p3 --from p3 --parts "$parts" --sha256 "$sum" </dev/null 2>/dev/null
check 'a part is spoilt' $? 97
stage "$top/src.tar" p3
truncate -s 900000 "$V/staged/p3.0"
"$AGENT" tree --dir code --id p3 --from p3 --parts "$parts" --sha256 "$sum" </dev/null 2>/dev/null
check 'a part is short' $? 97
rm "$V/staged/p3.0" && ln -s /etc/passwd "$V/staged/p3.0"
"$AGENT" tree --dir code --id p3 --from p3 --parts 1 --sha256 "$sum" </dev/null 2>/dev/null
check 'a part is a link' $? 97
check 'none of these became a tree' "$(find "$V/code" -maxdepth 1 -name '*p3*')" ''
"$AGENT" tree --dir code --id p3 --from ../p3 --parts 1 --sha256 "$sum" </dev/null 2>/dev/null
check 'a name that leads elsewhere' $? 2
"$AGENT" tree --dir code --id p3 --from p3 --parts 1 </dev/null 2>/dev/null
check 'without its hash' $? 2
rm -r "$V/staged" "$V/code/p1" "$V/code/p2"

# ---- what must not be
printf 'garbage' | "$AGENT" tree --dir code --id bad 2>/dev/null
check 'garbage is refused' $? 1
head -c 2000000 /dev/zero | tr '\0' 'x' | "$AGENT" tree --dir code --id bad --zstd 2>/dev/null
check 'garbage is no zstd' $? 1
tar -C "$top/src" -cf - . | head -c 1000000 | "$AGENT" tree --dir code --id bad 2>"$top/err"
check 'a cut stream is refused' $? 1
check 'and says so in a line' "$(cat "$top/err")" 'burst-agent: tree: the stream ended early'
(cd "$top" && tar -P -cf - ../"$(basename "$top")"/src/one.txt) | "$AGENT" tree --dir code --id bad 2>/dev/null
check 'a parent is refused' $? 1
ln -s /etc/passwd "$top/delta/out"
tar -C "$top/delta" -cf - out | "$AGENT" tree --dir code --id bad 2>/dev/null
check 'a link out is refused' $? 1
mkfifo "$top/delta/fifo"
tar -C "$top/delta" -cf - fifo | "$AGENT" tree --dir code --id bad 2>/dev/null
check 'a fifo is refused' $? 1
printf '../../home\0' >"$top/delta/.burst-delete"
tar -C "$top/delta" -cf - .burst-delete | "$AGENT" tree --dir code --id bad 2>/dev/null
check 'a deletion outside is refused' $? 1
for id in ../x a/b .hidden ''; do
	"$AGENT" tree --dir code --id "$id" </dev/null 2>/dev/null
	check "the name '$id' is refused" $? 2
done
check 'nothing of it is left' "$(ls -A "$V/code" | tr '\n' ' ')" 't1 t2 t3 t4 '

# ---- send
mkdir -p "$V/runs/r"
head -c 100000 /dev/urandom >"$V/runs/r/a"
ln -s /etc/passwd "$V/runs/r/l"
printf '%s\n' '{"path":"runs/r/a","offset":0,"length":-1}' '{"path":"runs/r/a","offset":99990}' \
	'{"path":"runs/r/none"}' '{"path":"runs/r/l"}' '{"path":"runs/r"}' '{"path":"runs/r/a","offset":10,"length":5}' \
	'{"path":"runs/r/a","offset":200000}' 'nonsense' | "$AGENT" send >"$top/sent"
{
	echo '{"path":"runs/r/a","offset":0,"bytes":100000}'
	cat "$V/runs/r/a"
	echo '{"path":"runs/r/a","offset":99990,"bytes":10}'
	tail -c 10 "$V/runs/r/a"
	echo '{"path":"runs/r/none","error":"No such file or directory"}'
	grep -a -o '{"path":"runs/r/l","error":"[^"]*"}' "$top/sent"
	echo '{"path":"runs/r","error":"not a plain file"}'
	echo '{"path":"runs/r/a","offset":10,"bytes":5}'
	tail -c +11 "$V/runs/r/a" | head -c 5
	echo '{"path":"runs/r/a","offset":200000,"bytes":0}'
	echo '{"path":"","error":"no path was given"}'
} >"$top/want"
check 'send' "$(sha256sum <"$top/sent")" "$(sha256sum <"$top/want")"

# ---- ls and rm
check 'ls' "$("$AGENT" ls runs/r | grep -o '"name":"a","folder":false,"bytes":100000,"files":1')" \
	'"name":"a","folder":false,"bytes":100000,"files":1'
"$AGENT" ls nowhere 2>/dev/null
check 'ls of nothing' $? 1
"$AGENT" rm code/t2 runs/r/l not/there
check 'rm' "$? $(ls -A "$V/code" | tr '\n' ' ')" '0 t1 t3 t4 '
check 'rm takes the link, not what it names' "$(ls /etc/passwd)" /etc/passwd
"$AGENT" rm ../home 2>/dev/null
check 'rm outside' "$? $(ls -d "$BURST_HOME")" "1 $BURST_HOME"
ln -s "$top/home" "$V/escape"
"$AGENT" rm escape/x 2>/dev/null
check 'rm through a link' $? 1

# ---- the bootstrap command
[ -n "$BOOTSTRAP" ] || { [ $fails = 0 ]; exit; }
command=$("$BOOTSTRAP")
hash=$(sha256sum "$AGENT" | cut -d' ' -f1)

# A PATH on which `sh` is this one, with busybox' own tools beside its shell.
with_shell() {
	shell_path=$top/bin-$1
	mkdir -p "$shell_path"
	if [ "$1" = busybox ]; then
		busybox --install -s "$shell_path"
	else
		ln -sf "$(command -v "$1")" "$shell_path/sh"
		shell_path=$shell_path:$PATH
	fi
}

# boot SHELL [FILE]: runs it, gives it FILE, then an attach line; prints what it said up to hello.
boot() {
	with_shell "$1"
	mkfifo "$top/in"
	PATH=$shell_path sh -c "$command" <"$top/in" >"$top/out" 2>"$top/err" &
	booted=$!
	exec 3>"$top/in"
	rm "$top/in"
	[ -z "$2" ] || cat "$2" >&3
	echo '{"op":"attach","from":0}' >&3
	for _ in $(seq 200); do
		grep -q '"ev":"hello"' "$top/out" && break
		kill -0 $booted 2>/dev/null || break
		sleep 0.05
	done
	exec 3>&-
	wait $booted
	grep -o '^BURST [a-z]*\|"ev":"hello"' "$top/out" | tr '\n' ' '
}

fresh() {
	for p in /proc/[0-9]*; do
		[ "$(readlink "$p/cwd" 2>/dev/null)" = "$BURST_HOME" ] && kill "${p#/proc/}" 2>/dev/null
	done
	export BURST_HOME=$top/home$1
	mkdir -p "$BURST_HOME"
}

for shell in dash bash busybox; do
	rm -rf "$V/agent"
	fresh "1-$shell"
	check "need, and what follows is for the agent ($shell)" "$(boot "$shell" "$AGENT")" 'BURST need "ev":"hello" '
	check "have on the container's disk ($shell)" "$(boot "$shell")" 'BURST have "ev":"hello" '
	for _ in $(seq 100); do [ -e "$V/agent/$hash" ] && break; sleep 0.05; done
	fresh "2-$shell"
	check "have from the volume ($shell)" "$(boot "$shell")" 'BURST have "ev":"hello" '
done
export BURST_IMAGE=$top/image
mkdir -p "$BURST_IMAGE"
mv "$V/agent/$hash" "$BURST_IMAGE/$hash"
fresh 7
check "have from the image" "$(boot dash)" 'BURST have "ev":"hello" '
check "it runs from the container's disk" "$(cmp "$AGENT" "$BURST_HOME/burst-agent-$hash" && echo same)" same
mv "$BURST_IMAGE/$hash" "$V/agent/$hash"
printf x >"$BURST_IMAGE/$hash"
fresh 8
check "another one in the image is passed over" "$(boot dash)" 'BURST have "ev":"hello" '
fresh 3
printf x | dd of="$V/agent/$hash" bs=1 seek=5000 conv=notrunc 2>/dev/null
check 'a spoilt one on the volume is not run' "$(boot dash "$AGENT")" 'BURST need "ev":"hello" '
fresh 4
export BURST_VOLUME=/proc/nowhere
check 'a volume that takes nothing' "$(boot dash "$AGENT")" 'BURST need "ev":"hello" '
fresh 5
head -c 1000 "$AGENT" >"$top/part"
{ cat "$top/part" | sh -c "$command"; } >"$top/out" 2>"$top/err"
check 'an agent that does not arrive whole' "$? $(cat "$top/out")" '1 BURST need'
fresh 9
printf '#!/bin/sh\necho aarch64\n' >"$top/bin-dash/uname"
chmod 755 "$top/bin-dash/uname"
arm=$here/build/kit/burst-agent-aarch64
PATH=$top/bin-dash:$PATH sh -c "$command" <"$arm" >"$top/out" 2>"$top/err"
if [ -s "$arm" ]; then
	check 'an arm64 pod asks for an agent of its own' "$(head -n 1 "$top/out")" 'BURST need aarch64'
	check '... and gets it' "$(cmp "$arm" "$BURST_HOME/burst-agent-$(sha256sum "$arm" | cut -d' ' -f1)" && echo same)" same
else
	check 'an arm64 pod hears that there is no agent for it' "$(cat "$top/err")" 'this burst was built without an agent for aarch64'
fi
fresh 6
[ $fails = 0 ]
