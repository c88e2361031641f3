/* guard.h - what keeps the keys in this process's memory and environment to itself: no core dump
 * has them, no other process of this user reads them, no child is handed them. */
#ifndef BURST_BASE_GUARD_H
#define BURST_BASE_GUARD_H

#include <signal.h>
#include <stdbool.h>

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
