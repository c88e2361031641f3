#!/bin/bash
# hardening.sh - how the programs are linked: what makes a mistake in them harder to use. The agent is a static program of musl
# without -pie: Debian's musl-gcc cannot link a static one that is, and whoever could attack it, a worker, is the same user. musl has
# no FORTIFY either, and what starts such a program does not make its RELRO segment read-only: held here is that nothing in it is
# bound later.
. "$(dirname "$0")/../e2e/lib.sh"
tool() { command -v readelf >/dev/null && command -v objdump >/dev/null || { skip "no binutils"; return 1; }; }
segments() { readelf -lW "$1"; }
entries() { readelf -dW "$1"; }
no_code_on_the_stack() {
	segments "$1" | grep GNU_STACK | grep -q 'RW ' || complain "$1: the stack can be executed"
	! segments "$1" | grep -q 'LOAD.* RWE ' || complain "$1: a segment can be written and executed"
}
guarded_frames() { # guarded_frames PROGRAM LEAST: by what stands at a function's end, where the symbols are stripped
	local n least=$2
	[ "$(uname -m)" = x86_64 ] || least=1 # elsewhere the value has a name, which was stripped
	n=$(objdump -d --no-show-raw-insn "$1" | grep -cE '%fs:0x28|__stack_chk_guard|tpidr_el0')
	[ "$n" -ge "$least" ] || complain "$1: no stack protector: $n places look at its value"
}
bound_at_link() { # a static program: what it calls by an address is in the RELRO segment, and no table is left to be filled in
	segments "$1" | sed -n '/Segment Sections/,$p' >sections
	local relro
	relro=$(segments "$1" | sed -n '/^Program Headers/,/^$/p' | grep -E '^  [A-Z]' | grep -v Type | grep -n GNU_RELRO | cut -d: -f1)
	[ -n "$relro" ] || { complain "$1: no RELRO"; return; }
	grep -qE "^ +0*$((relro - 1)) .*\.data\.rel\.ro.* \.got( |\$)" sections || complain "$1: the tables are not in its RELRO segment: $(tail -n 3 sections)"
	! grep -qF .got.plt sections || complain "$1: a table of calls is outside of RELRO"
}
fortified() { # fortified PROGRAM LEAST
	local n
	n=$(readelf --dyn-syms -W "$1" | grep '_chk@' | grep -vc __stack_chk_fail)
	[ "$n" -ge "$2" ] || complain "$1: no FORTIFY: $n calls are checked"
}
full_relro() {
	segments "$1" | grep -q GNU_RELRO || complain "$1: no RELRO"
	entries "$1" | grep -qE 'BIND_NOW|FLAGS_1.*NOW' || complain "$1: not bound at start: RELRO is partial"
}
no_paths() { ! entries "$1" | grep -qE 'R(UN)?PATH' || complain "$1: it has a path of its own for libraries: $(entries "$1" | grep PATH)"; }
t_burst() {
	tool || return
	local program=$ROOT/build/burst
	readelf -hW "$program" | grep -q 'Type:.*DYN' && entries "$program" | grep -q PIE || complain "no PIE"
	full_relro "$program"
	no_code_on_the_stack "$program"
	no_paths "$program"
	readelf --dyn-syms -W "$program" | grep -q __stack_chk_fail || complain "no stack protector"
	fortified "$program" 5
}
t_what_pods_are_given() {
	tool || return
	local agent=$ROOT/build/kit/burst-agent worker=$ROOT/build/kit/espeak-worker
	! segments "$agent" | grep -q INTERP || complain "the agent is not static"
	bound_at_link "$agent"
	no_code_on_the_stack "$agent"
	guarded_frames "$agent" 20
	readelf -hW "$worker" | grep -q 'Type:.*DYN' || complain "the worker is no PIE"
	full_relro "$worker"
	no_code_on_the_stack "$worker"
	no_paths "$worker"
	fortified "$worker" 1
	guarded_frames "$worker" 2
}

run_tests "$@"
