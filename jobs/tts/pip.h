/* pip.h - the beginning of a set-up script that makes a Python environment in $BURST_ENV/venv, as text. */
#ifndef BURST_JOBS_TTS_PIP_H
#define BURST_JOBS_TTS_PIP_H

/* Then `get PACKAGE...` installs into the environment, `pip install ...` with what they need, and `borrow PACKAGE...` into $BORROWED, which is gone at the end. What pip
 * prints is shown when it fails, and a pod without a network in words. The certificates are the image's: pip brings its own, which
 * know nothing of a proxy that the image was made for. $shared: options of the environment, set before. */
#define PIP_SETUP                                                                                                                          \
	"set -e\n"                                                                                                                         \
	"certificates=$(ls /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt 2>/dev/null | head -n 1)\n"                 \
	"[ -n \"$PIP_CERT\" ] || [ -z \"$certificates\" ] || export PIP_CERT=\"$certificates\"\n"                                          \
	"BORROWED=$(mktemp -d) && log=$(mktemp)\n"                                                                                         \
	"trap 'rm -rf \"$BORROWED\" \"$log\"' EXIT\n"                                                                                      \
	"python() { \"$BURST_ENV/venv/bin/python\" \"$@\"; }\n"                                                                            \
	"pip() {\n"                                                                                                                        \
	"	python -m pip --disable-pip-version-check --no-cache-dir -q --retries 2 \"$@\" >\"$log\" 2>&1 && return\n"                 \
	"	if grep -qE 'NewConnectionError|name resolution|Network is unreachable' \"$log\"; then\n"                                  \
	"		echo 'no network for Python packages in this pod; a local pod has one with providers.local.network = \"host\" in"  \
	" your own burst.cfg' >&2\n"                                                                                                       \
	"	else\n"                                                                                                                    \
	"		tail -n 4 \"$log\" >&2\n"                                                                                          \
	"	fi\n"                                                                                                                      \
	"	exit 1\n"                                                                                                                  \
	"}\n"                                                                                                                              \
	"get() { pip install --no-deps \"$@\"; }\n"                                                                                        \
	"borrow() { pip install --target \"$BORROWED\" \"$@\"; }\n"                                                                        \
	"python3 -m venv $shared \"$BURST_ENV/venv\"\n"

#endif
