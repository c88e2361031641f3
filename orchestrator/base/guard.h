/* guard.h - the process itself: its keys, its limit of descriptors, libraries that it loads late
 */
#ifndef BURST_BASE_GUARD_H
#define BURST_BASE_GUARD_H

#include <signal.h>
#include <stdbool.h>

#include "err.h"
#include "mem.h"

/* ---- late ----
 * Shared libraries that are loaded when they are first needed, and not with the program: together
 * they and what they bring along take longer to load than most commands run. Loaded with the
 * program, libcurl, libssh2, libcrypto and libarchive made "burst --version" take 16.0 ms instead
 * of 1.4, and "burst ps" 14.1 ms of CPU instead of 7.4 (two cores, Debian 12, 40 turns of each in
 * one run). Types and constants come from their headers; only functions are looked up. */

struct late_function {
	const char *name;
	void *to; /* where the pointer to it is kept */
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

/* Raises the soft limit to the hard one, once; what the limit is now. Not a failure when it cannot
 * be raised. */
long files_raise(void);
/* How many are open; a guess where the system does not say. */
int files_open(void);

/* ---- guard ----
 * What keeps the keys in this process's memory and environment to itself: no core dump has them,
 * no other process of this user reads them, no child is handed them. */

/* Call once, at the start. Afterwards a crash writes no core dump. closed: other processes of this
 * user cannot read this one's memory (Linux). A process that makes user namespaces cannot be
 * closed: it must write its own /proc/self/uid_map. */
void guard_begin(bool closed);
/* In a child between fork and exec: it may dump core, and open as many files, as the user has it.
 * Calls nothing that is not safe there. */
void guard_leave(void);
/* In a child between fork and exec, once its 0, 1 and 2 are in place: default signal actions, none
 * of them blocked, no other descriptor of ours after the exec, and guard_leave(). Calls nothing
 * that is not safe there. */
void guard_exec(void);
/* In a child between fork and exec: it is killed when the thread that forked it ends, or has ended
 * already. Does nothing where the system cannot. */
void guard_die_with(pid_t parent);
/* Holds SIGINT, SIGTERM and SIGHUP back until `before`, what was held back until then, is set
 * again: around a fork, and where they change hands. */
void guard_hold_signals(sigset_t *before);
/* Every descriptor above 2 is closed at the next exec. */
void guard_close_at_exec(void);

/* The variable of this name holds a key of ours. Not while other threads run. */
void guard_hide(const char *name);
/* The environment without those variables, as exec needs it, for children that need no keys. The
 * caller frees the array; the texts belong to the environment. */
char **guard_environ(void);

#endif
