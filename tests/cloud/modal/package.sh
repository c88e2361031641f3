#!/bin/bash
# package.sh DIR - the vendor's npm package (its version is in package-lock.json beside this) in DIR/node_modules. Made once;
# needs npm and, that once, the network. Exits 1 with a line on stderr when it cannot be; after that it is not tried again for
# ten minutes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$1
fail() { echo "$*" >&2; exit 1; }
mkdir -p "$dir"
exec 9>"$dir/lock"
flock 9
! cmp -s "$here/package-lock.json" "$dir/node_modules/.made-from" || exit 0
[ -z "$(find "$dir/failed" -mmin -10 2>/dev/null)" ] || fail "$(cat "$dir/failed") (remove $dir/failed to try again)"
command -v npm >/dev/null || fail "no npm (Debian package npm)"
cp "$here/package.json" "$here/package-lock.json" "$dir/"
cd "$dir"
if ! timeout -k 5 "${NPM_SECONDS:-120}" npm ci --ignore-scripts --no-audit --no-fund --prefer-offline --fetch-retries=1 --fetch-timeout=30000 >log 2>&1 9>&-; then
	echo "the vendor's npm package cannot be had: npm ci: $(grep -m 1 -iE 'code|errno|network' log || tail -n 1 log)" >failed
	fail "$(cat failed)"
fi
rm -f failed
cp package-lock.json node_modules/.made-from
