#!/bin/sh
# batch.sh - the head of a pod's batch script; the start script follows. The environment comes from a file in the pod's folder, the
# working directory: batch scripts are kept and shown, so they hold no secret. script.c sets burst_home.
# shellcheck disable=SC2154

# A pod that was requeued has lost what it knew, and its client has moved on.
if [ "${SLURM_RESTART_COUNT:-0}" != 0 ]; then
	echo 'burst: Slurm has started this pod again: it ends'
	exit 0
fi
umask 077
# the file "words" came after it, so another start has taken it: a controller that lost its state starts jobs again
tries=0
until [ -r "$PWD/env" ] || [ -e "$PWD/words" ] || [ $tries = 30 ]; do
	tries=$((tries + 1))
	sleep 1
done
if ! [ -r "$PWD/env" ]; then
	echo "burst: $(uname -n) does not see $PWD/env: it was started before, or volume_dir is not shared by login node and compute nodes"
	exit 1
fi
# libraries that find these variables in a worker believe that srun has started it
for name in $(env | sed -n 's/^\(SLURM[A-Z]*_[A-Za-z0-9_]*\)=.*/\1/p'); do
	case $name in
	SLURM_JOB_ID | SLURM_CONF) ;;
	*) unset "$name" ;;
	esac
done
# the folder has this name for all to see: if it exists, it is another user's
if ! mkdir -m 700 "$burst_home"; then
	echo "burst: $(uname -n): $burst_home exists already"
	exit 1
fi
# Ends what is left of the pod, and removes its folder. Its argument must not be in its own environment.
# shellcheck disable=SC2016
pod_clear='for file in $(grep -lsaF "BURST_HOME=$1" /proc/[0-9]*/environ); do
		pid=${file#/proc/}
		kill -9 "${pid%/environ}" 2>/dev/null
	done
	rm -rf "$1"'
# Where Slurm tracks processes by their parents, a killed script leaves some: this one, in a session of its own, follows it.
(setsid sh -c "while kill -0 $$ 2>/dev/null; do sleep 1; done; $pod_clear" clear "$burst_home" </dev/null >/dev/null 2>&1 &)
# shellcheck disable=SC1091
. "$PWD/env"
rm -f "$PWD/env"
pod_folder=$PWD
cd / || exit 1
