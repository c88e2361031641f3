#!/bin/bash
# kokoro.sh DIR - the published Kokoro as a folder of Python packages in DIR, for tests/workers/test_kokoro.py. Some 40 MB, from PyPI;
# made once. torch and transformers are those of tests/workers/chatterbox.sh.
set -eu
dir=$1
[ ! -e "$dir/.complete" ] || exit 0
python3 -m pip --disable-pip-version-check -q install --target "$dir" phonemizer-fork==3.3.2 espeakng-loader==0.2.4
python3 -m pip --disable-pip-version-check -q install --no-deps --target "$dir" kokoro==0.9.4 misaki==0.9.4 loguru==0.7.3
touch "$dir/.complete"
