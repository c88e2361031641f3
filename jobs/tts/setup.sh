# shellcheck shell=sh
# setup.sh - the start of each engine's set-up. A failure prints one line that begins with "burst: "; the agent reports only that line.
set -e
# pip and uv use the image's certificates, because an image made for a proxy has that proxy's there.
certificates=$(ls /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt 2>/dev/null | head -n 1)
[ -n "$PIP_CERT" ] || [ -z "$certificates" ] || export PIP_CERT="$certificates"
[ -n "$SSL_CERT_FILE" ] || [ -z "$certificates" ] || export SSL_CERT_FILE="$certificates"
BORROWED=$(mktemp -d) && log=$(mktemp)
trap 'rm -rf "$BORROWED" "$log"' EXIT
python() { "$BURST_ENV/venv/bin/python" "$@"; }
say() { echo "burst: $*" >&2; exit 1; }
failed() {
	wrong=$(sed -nE 's/^ *([A-Za-z0-9_.-]+==[^ ]+).* from .*/\1/p; s/.*[Hh]ash mismatch for `([^`]+)`.*/\1/p' "$log" | head -n 1)
	if grep -qiE 'do not match the hashes|hash mismatch' "$log"; then
		say "a Python package is not the one that was locked: the SHA-256 of ${wrong:-a file} differs; look at the index that pip uses"
	elif grep -qiE 'NewConnectionError|name resolution|Network is unreachable|dns error|failed to lookup|Connection refused' "$log"; then
		say 'no network for Python packages in this pod: this machine is offline, or a local pod needs' \
			'providers = { local = { network = "host"; }; }; in ~/.config/burst/burst.cfg'
	elif grep -qiE 'No space left on device|Errno 28' "$log"; then
		say "the pod's disk is full: raise pod.disk_gb"
	fi
	tail -n 4 "$log" >&2
	exit 1
}

# install FILE [--target DIR] installs the packages of a lock file and checks their hashes. uv is much faster, but ignores pip's
# settings, so pip installs if there are any. Compile now: files on the volume are never compiled later.
pip_is_plain() { [ -z "$PIP_NO_INDEX$PIP_INDEX_URL$PIP_EXTRA_INDEX_URL$PIP_FIND_LINKS" ] && ! [ -e /etc/pip.conf ]; }
pip_install() {
	python -m pip --disable-pip-version-check --no-cache-dir -q --retries 2 install --no-deps --require-hashes -r "$@"
}
install() {
	if pip_is_plain && command -v uv >/dev/null; then
		uv pip install -q --python "$BURST_ENV/venv/bin/python" --no-config --no-cache --compile-bytecode --no-deps \
			--require-hashes -r "$@" >"$log" 2>&1 || failed
	else
		pip_install "$@" >"$log" 2>&1 || failed
	fi
}
# build FILE: packages that come as source. What builds them is installed before.
build() { pip_install "$@" --no-build-isolation >"$log" 2>&1 || failed; }
bring_uv() {
	pip_is_plain && ! command -v uv >/dev/null || return 0
	pip_install "$BORROWED/uv.txt" --target "$BORROWED/uv" >"$log" 2>&1 || echo 'uv is not available: pip installs the packages'
	PATH=$BORROWED/uv/bin:$PATH
}

# The image's torch, which the packages must not replace.
torch() { python -c 'import torch; print(torch.__version__)'; }
need_torch() { # need_torch ENGINE
	torch_before=$(torch 2>/dev/null) || say "this image has no torch: $1 needs an image with torch 2.8 or later (pod.image)"
}
need_torchaudio() { # need_torchaudio ENGINE
	python -c 'import torchaudio' 2>/dev/null && return
	grep "^torchaudio==${torch_before%%+*} " "$BORROWED/torchaudio.txt" >"$BORROWED/its-torchaudio.txt" ||
		say "this image has torch $torch_before without torchaudio, which $1 needs: take an image with both (pod.image)"
	install "$BORROWED/its-torchaudio.txt"
}
keep_torch() {
	torch_after=$(torch)
	[ "$torch_after" = "$torch_before" ] || say "the packages replaced torch $torch_before by $torch_after"
}
