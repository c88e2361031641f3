#!/bin/bash
# kokoro.sh DIR - the published Kokoro as a folder of Python packages in DIR, for tests/workers/test_kokoro.py. Some 70 MB, from PyPI;
# made anew when the lock file changes. The packages are those of a pod (jobs/workers/lock/kokoro*.txt); torch is that of
# tests/workers/chatterbox.sh.
set -eu
dir=$1
lock=$(cd "$(dirname "$0")/../.." && pwd)/jobs/workers/lock
cat "$lock/kokoro.txt" "$lock/kokoro-source.txt" | cmp -s - "$dir/.complete" && exit 0
rm -rf "$dir"
pip() { python3 -m pip --disable-pip-version-check -q install --no-deps --require-hashes --target "$dir" "$@"; }
pip -r "$lock/kokoro.txt"
PYTHONPATH=$dir pip --no-build-isolation -r "$lock/kokoro-source.txt"
cat "$lock/kokoro.txt" "$lock/kokoro-source.txt" >"$dir/.complete"
