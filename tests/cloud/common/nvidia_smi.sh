#!/bin/sh
# nvidia-smi of a pod whose GPUs are imagined: answers --query-gpu as the real one does, from STANDIN_GPU.
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
fields='' header=1 units=1
for arg; do
	case $arg in
	--query-gpu=*) fields=${arg#*=} ;;
	--format=*noheader*nounits*) header='' units='' ;;
	--format=*noheader*) header='' ;;
	--format=*nounits*) units='' ;;
	-L) fields=list ;;
	esac
done
[ -z "$units" ] || { mb=' MiB' percent=' %'; }
[ -n "$fields" ] || fields=name,memory.total
i=0
[ -z "$header" ] || [ "$fields" = list ] || echo "$fields" | sed 's/,/, /g'
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
		utilization.*) value=7${percent:-} ;;
		driver_version) value=570.124.06 ;;
		*) value='[N/A]' ;;
		esac
		line="${line:+$line, }$value"
	done
	echo "$line"
	i=$((i + 1))
done
