/* guard.h - the process itself: its secrets, its limit of descriptors, late libraries */
#ifndef BURST_BASE_GUARD_H
#define BURST_BASE_GUARD_H

#include <signal.h>
#include <stdbool.h>

#include "err.h"
#include "mem.h"

/* ---- late ----
 * Shared libraries that burst loads when it first needs them, and not with the program: together
 * with their own libraries they take longer to load than most commands run. Loaded with the
 * program, libcurl, libssh2, libcrypto and libarchive made "burst --version" take 16.0 ms instead
 * of 1.4, and "burst ps" 14.1 ms of CPU instead of 7.4 (two cores, Debian 12, 40 turns of each in
 * one run). Types and constants come from their headers; only functions are looked up. */

struct late_function {
	const char *name;
	void *to; /* the function pointer to set */
};

/* A struct's member for `PREFIX##name`, and the row that fills it in. */
#define LATE_MEMBER(prefix, name)  __typeof__(prefix##name) *name;
#define LATE_ROW(of, prefix, name) {#prefix #name, &(of).name},

/* Loads `file` for the rest of the process and looks up all functions. ERR_LOCAL names the Debian
 * package that holds the file, or the missing function. */
int late_load(const char *file, const char *package, const struct late_function *list, size_t count,
	      struct err *err);

/* ---- files ----
 * Raises how many descriptors this process may have. Many systems give a program 1,024 at first
 * and far more on request. Children get the old limit: programs that use select() fail with a
 * high one, and old programs that close every possible descriptor become slow. */

/* Raises the soft limit to the hard one if the system lets it. Returns the limit that holds now. */
long files_raise(void);
/* The number of open descriptors; a guess where the system does not say. */
int files_open(void);

/* ---- guard ----
 * Keeps the secrets in this process's memory and environment from others: no core dump contains
 * them, no other process of this user can read them, no child inherits them. */

/* Call once, at the start. Afterwards a crash writes no core dump. */
void guard_begin(void);
/* From now on other processes of this user cannot read this one's memory (Linux). Not for a process
 * that makes user namespaces, which must write its own /proc/self/uid_map. */
void guard_close_memory(void);
/* In a child between fork and exec: gives it back the limits for core dumps and open files that
 * this process began with. Async-signal-safe. */
void guard_restore_limits(void);
/* In a child between fork and exec, once its descriptors 0, 1 and 2 are in place: sets default
 * signal actions, unblocks all signals, closes other descriptors at the exec, and restores limits.
 * Async-signal-safe. */
void guard_exec(void);
/* In a child between fork and exec: the kernel kills the child when the thread that forked it ends
 * (Linux). Exits 127 if `parent` has ended already. */
void guard_die_with(pid_t parent);
/* Blocks SIGINT, SIGTERM and SIGHUP: around a fork, and where another handler takes over. *before:
 * the old mask, for the caller to restore. */
void guard_hold_signals(sigset_t *before);
/* Closes every descriptor above 2 at the next exec. */
void guard_close_at_exec(void);

/* Marks the environment variable of this name as a secret. Not while other threads run. */
void guard_hide(const char *name);
/* The environment without the variables of guard_hide(), as exec needs it. The caller frees the
 * array; the texts belong to the environment. */
char **guard_environ(void);

#endif
