#!/bin/bash
# qwen3.sh DIR - a Python environment in DIR with the published Qwen3-TTS and torch, for tests/workers/test_qwen3.py. Some 5 GB, from
# PyPI; made once. The packages are those of a pod (jobs/workers/lock/qwen3*.txt).
set -eu
dir=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
[ ! -e "$dir/.complete" ] || exit 0
python3 -m venv "$dir"
pip() { "$dir/bin/python" -m pip --disable-pip-version-check -q "$@"; }
pip install torch==2.8.0 torchaudio==2.8.0
pip install --no-deps --require-hashes -r "$here/jobs/workers/lock/qwen3.txt"
pip install --no-deps --require-hashes --no-build-isolation -r "$here/jobs/workers/lock/qwen3-source.txt"
touch "$dir/.complete"
