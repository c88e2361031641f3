#!/bin/sh
# Renders this pod's share of 12 "frames": number I of N takes every N-th one. A frame gets its final name when it is whole.
set -eu

index=${BURST_INDEX:-0}
count=${BURST_COUNT:-1}

frame=$index
while [ "$frame" -lt 12 ]; do
	name=$(printf 'out/scene%d/frame%03d.txt' $((frame / 6)) "$frame")
	mkdir -p "$(dirname "$name")"
	awk -v f="$frame" 'BEGIN {
		for (y = 0; y < 12; y++) {
			line = ""
			for (x = 0; x < 40; x++)
				line = line (sin((x + f) / 4) * cos((y - f) / 3) > 0.2 ? "#" : ".")
			print line
		}
	}' >"$name.tmp"
	mv "$name.tmp" "$name"
	echo "frame $frame done"
	frame=$((frame + count))
done
