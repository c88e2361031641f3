#!/bin/bash
# ntfy_server.sh FILE - the published ntfy server as the program FILE, for tests/e2e/notify.sh; about two minutes of compiling. Needs Go,
# and its module proxy or the modules already on this machine.
set -eu
file=$1
module=heckel.io/ntfy/v2
version=v2.13.0
[ -e "$file" ] && exit 0
command -v go >/dev/null || { echo "burst: Go is not installed" >&2; exit 1; }
mkdir -p "$(dirname "$file")"
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
said=$(cd "$source" && go mod download -json "$module@$version" || true)
dir=$(sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' <<<"$said")
[ -n "$dir" ] || { echo "burst: $module@$version cannot be downloaded: $(sed -n 's/^\t"Error": "\(.*\)"$/\1/p' <<<"$said")" >&2; exit 1; }
cp -r "$dir/." "$source"
chmod -R u+w "$source"
mkdir -p "$source/server/docs" "$source/server/site" # its web pages, which the module lacks and a server compiles in
touch "$source/server/docs/index.html" "$source/server/site/app.html"
(cd "$source" && go build -tags osusergo,netgo -o ntfy .)
mv "$source/ntfy" "$file"
