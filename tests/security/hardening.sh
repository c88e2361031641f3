#!/bin/bash
# hardening.sh - how the programs are linked: what makes a mistake in them harder to use. The agent is a static program of musl
# without -pie: Debian's musl-gcc cannot link a static one that is, and whoever could attack it, a worker, is the same user.
. "$(dirname "$0")/../e2e/lib.sh"
tool() { command -v readelf >/dev/null && command -v objdump >/dev/null || { skip "no binutils"; return 1; }; }
segments() { readelf -lW "$1"; }
entries() { readelf -dW "$1"; }
no_code_on_the_stack() {
	segments "$1" | grep GNU_STACK | grep -q 'RW ' || complain "$1: the stack can be executed"
	! segments "$1" | grep -q 'LOAD.* RWE ' || complain "$1: a segment can be written and executed"
}
guarded_frames() { # by what stands at a function's end, where the symbols are stripped
	objdump -d --no-show-raw-insn "$1" | grep -qE '%fs:0x28|__stack_chk_guard|tpidr_el0' || complain "$1: no stack protector"
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
	[ "$(readelf --dyn-syms -W "$program" | grep -c '_chk@')" -ge 5 ] || complain "no FORTIFY"
}
t_what_pods_are_given() {
	tool || return
	local agent=$ROOT/build/kit/burst-agent worker=$ROOT/build/kit/espeak-worker
	! segments "$agent" | grep -q INTERP || complain "the agent is not static"
	segments "$agent" | grep -q GNU_RELRO || complain "the agent has no RELRO"
	no_code_on_the_stack "$agent"
	guarded_frames "$agent"
	readelf -hW "$worker" | grep -q 'Type:.*DYN' || complain "the worker is no PIE"
	full_relro "$worker"
	no_code_on_the_stack "$worker"
	no_paths "$worker"
	guarded_frames "$worker"
}

run_tests "$@"
