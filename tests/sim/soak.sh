#!/bin/bash
# soak.sh SIM N [FROM] - N seeds of the simulator, from FROM on or from a random place, split over all cores. Prints the rate, and
# for each seed that breaks an invariant the command that plays it again; status 1 then.
set -u
sim=$1 n=$2 from=${3:-$(od -An -N5 -tu8 /dev/urandom | tr -d " ")}
for number in "$n" "$from"; do
	case $number in '' | *[!0-9]*) echo "soak: N and FROM are whole numbers, not \"$number\"" >&2; exit 2 ;; esac
done
[ "$n" -gt 0 ] || { echo "soak: N must be above 0" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cores=$(nproc)
[ "$cores" -le "$n" ] || cores=$n
began=$(date +%s%N)
echo "soak: $n schedules from seed $from on $cores cores (again: make soak N=$n FROM=$from)"
for ((i = 0; i < cores; i++)); do
	first=$((from + n * i / cores)) last=$((from + n * (i + 1) / cores))
	{
		"$sim" --seeds $((last - first)) --from "$first" --failures 20 >"$work/$i" 2>&1
		echo $? >"$work/$i.status"
	} &
done
wait
took_ms=$((($(date +%s%N) - began) / 1000000))
failed=0
for ((i = 0; i < cores; i++)); do
	[ "$(cat "$work/$i.status")" = 0 ] || failed=1
	while read -r line; do
		case $line in
		"sim: FAILED seed "*)
			echo "$line"
			seed=${line#sim: FAILED seed }
			echo "    again: $sim --seed ${seed%%:*} --trace"
			;;
		"sim: fault "* | *Sanitizer* | *"runtime error"*) echo "$line" ;;
		esac
	done <"$work/$i"
	case $(cat "$work/$i.status") in
	0 | 1) ;;
	*) echo "soak: the simulator died (status $(cat "$work/$i.status")): $(tail -n 1 "$work/$i")" ;;
	esac
done
ran=$(sed -n 's/^sim: \([0-9]*\) schedules.*/\1/p' "$work"/[0-9]* | awk '{n += $1} END {print n + 0}')
echo "soak: $ran schedules in $((took_ms / 1000)).$((took_ms % 1000 / 100)) s, $((ran * 1000 / (took_ms + 1))) schedules/s: $([ $failed = 0 ] && echo "all invariants hold" || echo FAILED)"
exit $failed
