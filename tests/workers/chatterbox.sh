#!/bin/bash
# chatterbox.sh DIR - a Python environment in DIR with the published Chatterbox and torch, for tests/workers/test_chatterbox.py.
# Some 5 GB, from PyPI; made once.
set -eu
dir=$1
[ ! -e "$dir/.complete" ] || exit 0
python3 -m venv "$dir"
pip() { "$dir/bin/python" -m pip --disable-pip-version-check -q "$@"; }
pip install torch==2.8.0 torchaudio==2.8.0
pip install --no-deps chatterbox-tts==0.1.7 conformer==0.3.2 diffusers==0.29.0 s3tokenizer==0.3.0 resemble-perth==1.0.1
pip install transformers==5.2.0 librosa==0.11.0 omegaconf==2.4.0 safetensors==0.8.0 einops==0.8.2 pyloudnorm==0.2.0 soundfile==0.14.0 \
	pillow requests importlib_metadata onnx 'setuptools<81'
touch "$dir/.complete"
