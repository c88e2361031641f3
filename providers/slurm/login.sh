#!/bin/sh
# login.sh - what runs on the login node: one function for each operation. script.c puts assignments above it (dir, job, name, ...)
# and a call below it. Answers go to stdout between two lines of ours, since a login shell may print something too; the words of
# Slurm's commands go to stderr. Runs in any POSIX shell.
# shellcheck disable=SC2154 # script.c sets them

LC_ALL=C SLURM_TIME_FORMAT=%s PATH=$PATH:/usr/sbin
export LC_ALL SLURM_TIME_FORMAT PATH
# filters of the user's own would make lists incomplete
unset SQUEUE_ACCOUNT SQUEUE_ALL SQUEUE_ARRAY SQUEUE_FORMAT SQUEUE_FORMAT2 SQUEUE_LICENSES SQUEUE_NAMES SQUEUE_PARTITION \
	SQUEUE_PRIORITY SQUEUE_QOS SQUEUE_SORT SQUEUE_STATES SQUEUE_USERS SINFO_ALL SINFO_FORMAT SINFO_PARTITION \
	SBATCH_ARRAY_INX SBATCH_EXPORT SBATCH_DEPENDENCY SBATCH_REQUEUE 2>/dev/null
s=$(printf '\037')

answer() { # COMMAND...
	echo
	echo 'burst: begin'
	"$@"
	status=$?
	echo "burst: end $status"
	exit $status
}

jobs_of() { # OPTION...: one line for each job; read.c knows the fields
	squeue -h -t all -o "%i$s%j$s%T$s%r$s%V$s%S$s%e$s%N$s%P$s%b$s%u$s%Z$s%k" "$@"
}

# ---- pods ----

# A name works once: a job of this name is the answer, and the folder is made by one call alone.
rent() {
	mkdir -p "$dir/pods" || return
	found=$(jobs_of --me -n "$name") || return
	[ -z "$found" ] || { printf '%s\n' "$found"; return; }
	umask 077
	# of pods that no burst has released
	find "$dir/pods" -mindepth 1 -maxdepth 1 -name 'burst1.*' -mtime +30 -exec rm -rf {} + 2>/dev/null
	folder=$dir/pods/$marker
	mkdir "$folder" || return
	if ! cat >"$folder/env" <<-END
		$env
	END
	then
		rm -rf "$folder"
		return 1
	fi
	submit "$@" || return
	await_start
}

submit() { # OPTION...
	now=$(date +%s)
	[ "$run_s" -gt 0 ] || run_s=$((hard_end - now))
	# The pod ends itself. This is for one that cannot, or never starts: whole minutes, and some seconds for Slurm to notice.
	if job=$(sbatch "$@" --parsable --time=$(((run_s + 59) / 60)) --deadline="now+$((hard_end - now + 120))seconds" \
		--job-name="$name" --comment="$marker" --no-requeue --nodes=1 --ntasks=1 --chdir="$folder" \
		--output="$folder/log" --open-mode=append 2>"$folder/words" <<-END
			$batch
		END
	); then
		cat "$folder/words" >&2
		job=${job%%;*}
		return 0
	fi
	# several lines tell more than the last one alone
	sed 's/^sbatch: error: //' "$folder/words" | awk '{ printf "%s%s", sep, $0; sep = "; " } END { print "" }' >&2
	# after a timeout the controller may have the job all the same
	grep -q 'timed out' "$folder/words" || rm -rf "$folder"
	return 1
}

# An idle cluster starts a job at once: worth a second, since the next look at the queue is some seconds away.
await_start() {
	row=
	for pause in 0.4 0.8; do
		sleep $pause 2>/dev/null || sleep 1
		row=$(jobs_of -j "$job" 2>/dev/null)
		case $row in
		'' | *"${s}PENDING$s"*) ;;
		*) break ;;
		esac
	done
	printf '%s\n' "${row:-$job$s$name${s}PENDING$s$s$s$s$s$s$s$s$s$s$marker}"
}

# The job as accounting knows it, once it has ended: "sacct", its seconds, then the fields of jobs_of. A line without an end may be
# stale: the controller alone knows what runs.
accounted() {
	sacct -X -n -P --delimiter="$s" -j "$job" --name="$name" \
		-o ElapsedRaw,JobIDRaw,JobName,State,Reason,Submit,Start,End,NodeList,Partition,AllocTRES,User,WorkDir,Comment 2>/dev/null |
		awk -F "$s" -v s="$s" '$8 ~ /^[0-9]+$/ { print "sacct" s $0 }'
}

list() {
	jobs_of --me
}

inspect() {
	row=$(jobs_of -j "$job" 2>&1)
	status=$?
	case $status$row in
	*"$s$name$s"*) ;;
	0* | *'Invalid job id'*) # the controller forgets a job some minutes after its end (MinJobAge)
		ended=$(accounted)
		[ -z "$ended" ] || row=$ended status=0
		;;
	esac
	[ $status = 0 ] || { printf '%s\n' "$row" >&2; return $status; }
	printf '%s\n' "$row"
}

release() {
	words=$(scancel --name="$name" "$job" 2>&1)
	status=$?
	[ -z "$words" ] || printf '%s\n' "$words" >&2
	case $words in
	*'Invalid job id'*)
		case $(jobs_of -j "$job" 2>/dev/null) in
		*"$s$name$s"*) echo taken ;;
		*) echo absent ;;
		esac
		;;
	*)
		[ $status = 0 ] || return $status
		echo taken
		;;
	esac
	rm -rf "$dir"/pods/*."${name#burst-}".*
}

billing() {
	jobs_of -j "$job" 2>/dev/null
	accounted
	return 0
}

pod_log() {
	for file in "$dir"/pods/*."${name#burst-}".*/log; do
		[ ! -f "$file" ] || tail -c 200000 "$file" | sed 's/^/container: /'
	done
	[ "$(squeue -h -t all -j "$job" -o %T 2>/dev/null)" = RUNNING ] || return 0
	srun --overlap --jobid="$job" -N1 -n1 --mem=0 --gres=none tail -c 200000 "/tmp/$name/start.log" 2>/dev/null | sed 's/^/container: /'
	return 0
}

# ---- what there is ----

# With by_billing also what partitions bill by: "=weights", partition, default memory, weights; and "=flags".
offers() {
	sinfo -h -o "%P$s%G$s%t$s%l$s%a$s%m" || return
	[ "$by_billing" = 1 ] || return 0
	conf=$(scontrol show config) || return
	printf '=flags%s%s\n' "$s" "$(conf_value PriorityFlags)"
	partitions=$(scontrol -o show partition) || return
	printf '%s\n' "$partitions" | awk -v s="$s" '{
		name = memory = weights = ""
		for (i = 1; i <= NF; i++) {
			value = substr($i, index($i, "=") + 1)
			if ($i ~ /^PartitionName=/) name = value
			if ($i ~ /^DefMemPer(CPU|Node)=/) memory = $i
			if ($i ~ /^TRESBillingWeights=/) weights = value
		}
		if (name != "") print "=weights" s name s memory s weights
	}'
}

volume() {
	mkdir -p "$dir/volumes" || return
	if [ ! -d "$dir/volumes/$volume" ]; then
		[ "$create" = 1 ] || { echo "burst: no volume of this name in $dir" >&2; return 1; }
		mkdir "$dir/volumes/$volume" || return
	fi
	printf '%s\n' "$volume"
}

volumes() {
	for folder in "$dir"/volumes/*/; do
		folder=${folder%/}
		[ ! -d "$folder" ] || printf '%s\n' "${folder##*/}"
	done
}

volume_remove() {
	rm -rf "$dir/volumes/$volume"
}

# ---- files of a volume ----

# Sets $at to $path; fails if a link is on the way: pods write to volumes.
find_in_volume() {
	[ -d "$dir/volumes/$volume" ] || { echo "burst: no volume of this name in $dir" >&2; return 1; }
	cd "$dir/volumes/$volume" || return
	at=. rest=$path
	while [ -n "$rest" ]; do
		at=$at/${rest%%/*}
		case $rest in
		*/*) rest=${rest#*/} ;;
		*) rest= ;;
		esac
		[ ! -L "$at" ] || { echo "burst: $path: a link is in the way" >&2; return 1; }
	done
}

# The bytes alone go to stdout, their number to stderr: noise of a login shell would not fit it.
fetch() {
	find_in_volume || exit
	[ -f "$at" ] || { echo "burst: no such file on the volume: $path" >&2; exit 1; }
	bytes=$(($(wc -c <"$at") - offset))
	tail -c +$((offset + 1)) "$at" || exit
	echo "burst: fetched $bytes" >&2
}

# A line for each entry: kind, bytes and files in it, newest change, name. Names of several lines are left out.
volume_ls() {
	find_in_volume || return
	[ -d "$at" ] || { echo "burst: no such folder on the volume: $path" >&2; return 1; }
	find "$at" -mindepth 1 -maxdepth 1 ! -name '*
*' | while IFS= read -r entry; do
		kind='file'
		[ -L "$entry" ] || [ ! -d "$entry" ] || kind='folder'
		find "$entry" -printf '%y %s %C@\n' | awk -v kind="$kind" -v s="$s" \
			'$1 == "f" { bytes += $2; files++ } $3 > newest { newest = $3 }
			END { printf "%s%s%.0f%s%d%s%d%s", kind, s, bytes, s, files, s, newest, s }'
		printf '%s\n' "${entry##*/}"
	done
}

volume_delete() {
	[ -d "$dir/volumes/$volume" ] || return 0
	find_in_volume && rm -rf "$at"
}

# ---- doctor ----

conf_value() { # NAME
	printf '%s\n' "$conf" | sed -n "s/^$1 *= *//p"
}

check() {
	version=$(sinfo --version) || return
	conf=$(scontrol show config) || return
	echo "ok: $version; $(conf_value ProctrackType); KillWait $(conf_value KillWait)"
	[ "$(conf_value ProctrackType)" = proctrack/cgroup ] ||
		echo "warn: this cluster does not track processes by control groups: what leaves a job's process group may outlive it"
	sinfo -h -o '%R %l %G' | sort -u | while read -r partition limit gres; do
		echo "ok: partition $partition: $gres, at most $limit"
	done
	check_folder
	check_submit "$@"
}

check_folder() {
	if mkdir -p "$dir/pods" "$dir/volumes" 2>/dev/null && [ -w "$dir/volumes" ]; then
		echo "ok: volumes are in $dir ($(df -Pk "$dir" | awk 'NR == 2 { printf "%d GB free", $4 / 1048576 }'))"
	else
		echo "bad: volume_dir: $dir cannot be written to on this node"
	fi
}

check_submit() { # OPTION...
	if words=$(printf '#!/bin/sh\n' | sbatch --test-only --nodes=1 --ntasks=1 --time=1 "$@" 2>&1); then
		echo "ok: jobs can be submitted"
	else
		echo "bad: jobs cannot be submitted: $(printf '%s' "$words" | tail -n 1)"
	fi
}
