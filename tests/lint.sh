#!/bin/bash
# lint.sh - the rules of the house that a compiler does not see: which folder may include which, and that each third-party
# library is known to one file or folder. Then everything that must be portable is compiled against musl's headers, with gcc
# and with clang, and shell scripts go through shellcheck.
set -u
cd "$(dirname "$0")/.." || exit
bad=0
complain() { printf 'lint: %s\n' "$*" >&2; bad=1; }

includes() { # includes FILE: the quoted includes, as paths from the root
	sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$1" | while read -r inc; do
		dir=$(dirname "$1")
		for at in "$dir/$inc" "$inc" "orchestrator/$inc"; do
			[ -f "$at" ] && realpath --relative-to=. "$at" && break
		done
	done
}

layer() {
	case $1 in
	cmd/*) echo cmd;;
	providers/*/*) echo "providers/$(echo "$1" | cut -d/ -f2)";;
	providers/*) echo providers;;
	jobs/*) echo jobs;;
	config/*) echo config;;
	orchestrator/base/*) echo base;;
	orchestrator/core/*) echo core;;
	orchestrator/net/*) echo net;;
	orchestrator/sync/*) echo sync;;
	orchestrator/store/*) echo store;;
	orchestrator/engine/*) echo engine;;
	orchestrator/*.h | orchestrator/*.c) echo contract;;
	*) echo other;;
	esac
}

allowed() { # allowed FROM TO
	[ "$1" = "$2" ] && return 0
	case "$1 $2" in
	cmd\ *) return 0;;
	providers\ providers/*) return 0;;
	providers*\ base | providers*\ contract) return 0;;
	jobs\ base | jobs\ contract) return 0;;
	config\ base | config\ contract) return 0;;
	contract\ base) return 0;;
	core\ base | core\ contract) return 0;;
	net\ base | net\ contract) return 0;;
	sync\ base | store\ base) return 0;;
	engine\ core | engine\ net | engine\ sync | engine\ store | engine\ base | engine\ contract) return 0;;
	esac
	return 1
}

for file in $(git ls-files -- '*.c' '*.h' | grep -v '^tests/'); do
	from=$(layer "$file")
	for inc in $(includes "$file"); do
		to=$(layer "$inc")
		allowed "$from" "$to" || complain "$file includes $inc: $from may not know $to"
	done
done

only_in() { # only_in PATTERN WHERE...: system includes that belong to one place
	pattern=$1; shift
	for file in $(git ls-files -- '*.c' '*.h' | grep -v '^tests/' | xargs grep -lE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]$pattern" 2>/dev/null); do
		for place in "$@"; do case $file in $place*) continue 2;; esac; done
		complain "$file includes $pattern: that library belongs to $*"
	done
}
only_in 'curl/' orchestrator/net/http
only_in 'libssh2' orchestrator/net/ssh
only_in 'sqlite3' orchestrator/store/sqlite.c
only_in 'libconfig' config/config.c
only_in 'openssl/' orchestrator/base/crypto.c
only_in 'archive' orchestrator/sync/pack.c
only_in '(protobuf-c/|modal\.pb-c)' providers/modal/
# what exists on Linux alone stays with the local provider (the agent and the workers run on Linux pods)
# and one call of base/guard.c, behind #ifdef
only_in 'sys/(epoll|signalfd|eventfd|timerfd|inotify|sendfile|prctl|mount|pidfd)\.h' providers/local/ jobs/agent/ jobs/workers/ orchestrator/base/guard.c

for top in $(git ls-files | cut -d/ -f1 | sort -u); do
	case $top in
	Makefile | README.md | cmd | orchestrator | providers | jobs | config | tests | .*) ;;
	*) complain "$top: no such top-level entry belongs here";;
	esac
done

# The core decides: no clock, no file, no random number of its own.
if grep -nE '\b(clock_(boot|wall)_ms|time|gettimeofday|fopen|open|read|write|socket|rand|random_(bytes|u64|hex))\(' \
	orchestrator/core/*.c; then complain "orchestrator/core does I/O or looks at a clock"; fi

# Portability: POSIX with musl's headers; with clang as a second opinion.
flags=(-std=gnu17 -D_GNU_SOURCE '-DBURST_VERSION="lint"' -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes
	-Wno-missing-field-initializers -I. -Iorchestrator -fsyntax-only)
if command -v musl-gcc >/dev/null; then
	for file in orchestrator/base/{mem,err,str,clock,log,path,section,glob,pattern,guard}.c orchestrator/core/*.c orchestrator/provider.c \
		orchestrator/net/{loop,pool,child,grpc_wire}.c orchestrator/sync/{ignore,receive}.c jobs/agent/agent.c; do
		[ -f "$file" ] || continue
		musl-gcc "${flags[@]}" -Wno-format-truncation "$file" || complain "$file does not compile with musl"
	done
else
	complain "musl-gcc is missing (make deps)"
fi
if command -v clang >/dev/null; then
	read -ra inc < <(pkg-config --cflags libcurl libssh2 jansson libconfig sqlite3 libcrypto libarchive libprotobuf-c)
	make -s build/gen/modal.pb-c.h || complain "Modal's messages cannot be compiled"
	inc+=(-Ibuild/gen)
	for file in $(git ls-files -- 'cmd/*.c' 'orchestrator/**/*.c' 'providers/**/*.c' 'config/*.c' 'jobs/*.c' 'jobs/**/*.c' 'tests/fuzz/*.c'); do
		case $file in orchestrator/store/sqlite.c | jobs/agent/kit.c | jobs/workers/embed.c | jobs/tts/chatterbox_file.c) continue;; esac
		clang "${flags[@]}" -Wno-gnu "${inc[@]}" "$file" || complain "$file does not compile with clang"
	done
fi
if command -v shellcheck >/dev/null; then
	git ls-files -- '*.sh' .ci/run | xargs shellcheck -S warning -e SC2034,SC1010 || complain "shellcheck"
fi
# what README says happens is what a test shows: `FILE/NAME` of the end-to-end scripts (a case may be a line "+NAME | ..." of a
# table), or `tests/PATH NAME`, a function that is run, or what a `check` says; never a file alone
is_shown() { # is_shown PATH NAME
	case "$1 $2" in
	*.c\ *) grep -qE "(cmocka_unit_test[a-z_]*|T)\\($2[,)]" "$1" 2>/dev/null;;
	*.sh\ check\ *) grep -qF -- "$2 " "$1" 2>/dev/null;;
	*.sh\ *) grep -q "^$2() {" "$1" 2>/dev/null;;
	*) return 1;;
	esac
}
for name in $(grep -oE '`[a-z_]+/[tc]_[a-z0-9_]+`' README.md | tr -d '`'); do
	grep -qE "(^|[^a-z0-9_])${name#*/}([^a-z0-9_]|\$)|^[[:space:]]*\+${name#*/c_} \|" tests/{e2e,security}/"${name%%/*}.sh" 2>/dev/null ||
		complain "README.md names the test $name, which is not there"
done
while read -r file name; do
	is_shown "$file" "$name" || complain "README.md names the test \"$file $name\", which is not there"
done < <(sed -n '/^## What happens when/,/^## /s/^|.*|\([^|]*\)|$/\1/p' README.md | grep -oE '`tests/[^`]*`' | tr -d '`' | sort -u)
while read -r row; do
	complain "README.md: no test stands behind: $row"
done < <(sed -n '/^## What happens when/,/^## /p' README.md | sed -n '4,$s/^| //p' | grep -vE '^(when|---) |\| (`[a-z_]+/[tc]_[a-z0-9_]+`|`tests/[^`]*`)(, (`[a-z_]+/[tc]_[a-z0-9_]+`|`tests/[^`]*`))* \|$')
[ $bad = 0 ] && echo "lint: fine"
exit $bad
