#!/bin/sh
# nvidia-smi of a pod whose GPUs are imagined: answers --query-gpu as the real one does, from STANDIN_GPU. With -l SECONDS it goes on,
# ten times as often as it is told to, so that tests get samples soon. They are busy by what /tmp/gpu-busy says, in percent (7 without it).
# STANDIN_GPU is written in place of the next line: "COUNT|NAME|MEMORY_MB".
gpu='@GPU@'
count=${gpu%%|*}
name=${gpu#*|}
memory=${name#*|}
name=${name%%|*}
[ "$count" -gt 0 ] || {
	echo "No devices were found"
	exit 6
}
fields='' header=1 units=1 every=''
while [ $# -gt 0 ]; do
	arg=$1
	shift
	case $arg in
	-l)
		every=$1
		shift
		;;
	--query-gpu=*) fields=${arg#*=} ;;
	--format=*noheader*nounits*) header='' units='' ;;
	--format=*noheader*) header='' ;;
	--format=*nounits*) units='' ;;
	-L) fields=list ;;
	esac
done
[ -z "$units" ] || { mb=' MiB' percent=' %'; }
[ -n "$fields" ] || fields=name,memory.total
busy() { cat /tmp/gpu-busy 2>/dev/null || echo 7; }
[ -z "$header" ] || [ "$fields" = list ] || echo "$fields" | sed 's/,/, /g'
rows() {
	i=0
	while [ "$i" -lt "$count" ]; do
		line=''
		for field in $(echo "$fields" | tr ',' ' '); do
			case $field in
			list) value="GPU $i: $name (UUID: GPU-00000000-0000-0000-0000-00000000000$i)" ;;
			index) value=$i ;;
			name | gpu_name) value=$name ;;
			memory.total) value=$memory${mb:-} ;;
			memory.used) value=412${mb:-} ;;
			memory.free) value=$((memory - 412))${mb:-} ;;
			utilization.*) value=$(busy)${percent:-} ;;
			driver_version) value=570.124.06 ;;
			*) value='[N/A]' ;;
			esac
			line="${line:+$line, }$value"
		done
		echo "$line"
		i=$((i + 1))
	done
}
rows
while [ -n "$every" ]; do
	sleep "0.$every"
	rows
done
