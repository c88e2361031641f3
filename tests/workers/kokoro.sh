#!/bin/bash
# kokoro.sh DIR - the published Kokoro as a folder of Python packages in DIR, for tests/workers/test_kokoro.py. Some 300 kB, from PyPI;
# made once. torch and transformers are those of tests/workers/chatterbox.sh.
set -eu
dir=$1
[ ! -e "$dir/.complete" ] || exit 0
python3 -m pip --disable-pip-version-check -q install --no-deps --target "$dir" kokoro==0.9.4 loguru==0.7.3 attrs==25.4.0
touch "$dir/.complete"
