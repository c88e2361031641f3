#!/bin/bash
# wheels.sh DIR LOCK... - the files of these lock files (names in jobs/workers/lock/, or paths from the root) as this machine's Python takes them, in DIR/wheels. Made
# once; needs PyPI, and that once. Exits 1 with a line on stderr when it cannot be; after that it is not tried again for ten minutes.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
dir=$1
shift
fail() { echo "$*" >&2; exit 1; }
mkdir -p "$dir"
exec 9>"$dir/lock"
flock 9
files=()
for lock; do
	case $lock in
	*/*) files+=("$here/$lock") ;;
	*) files+=("$here/jobs/workers/lock/$lock.txt") ;;
	esac
done
wanted=$(cat "${files[@]}" | sha256sum)
[ "$(cat "$dir/wheels/.made-for" 2>/dev/null)" != "$wanted" ] || exit 0
[ -z "$(find "$dir/failed" -mmin -10 2>/dev/null)" ] || fail "$(cat "$dir/failed") (remove $dir/failed to try again)"
python3 -m pip --version >/dev/null 2>&1 || fail "no pip (Debian package python3-pip)"
rm -rf "$dir/wheels"
mkdir -p "$dir/wheels"
for file in "${files[@]}"; do
	timeout -k 5 "${PIP_SECONDS:-300}" python3 -m pip download -q --no-deps --require-hashes -d "$dir/wheels" -r "$file" >"$dir/log" 2>&1 9>&- || {
		echo "the packages of $(basename "$file" .txt) cannot be had: $(grep -m 1 -i error "$dir/log" || tail -n 1 "$dir/log")" >"$dir/failed"
		fail "$(cat "$dir/failed")"
	}
done
rm -f "$dir/failed"
echo "$wanted" >"$dir/wheels/.made-for"
