/* process.h - identifies processes of this machine, so that a reused pid is never mistaken for the
 * intended process. */
#ifndef BURST_PROVIDERS_LOCAL_PROCESS_H
#define BURST_PROVIDERS_LOCAL_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
	pid_t pid;      /* 0: none */
	uint64_t start; /* start time in clock ticks since boot; with the pid, unique until the next
			   boot */
	char boot[40];  /* the kernel's boot id */
};

/* Identifies a running process. The result's pid is 0 if it does not run. */
struct process process_of(pid_t pid);
/* Sends the signal to exactly this process. Returns -1 if it is gone. */
int process_signal(const struct process *p, int sig);
/* Waits at most ms for its end. Returns true once it has ended. */
bool process_wait_end(const struct process *p, int64_t ms);

/* Kills and reaps everything below the calling process, which must be a child subreaper. Repeats
 * until nothing is left, since processes may fork meanwhile. Returns -1 if one still runs after ms.
 */
int process_kill_below(int64_t ms);
/* Kills processes of other parents: those whose initial environment has this "NAME=value", and all
 * below them. Needed if both supervisors of a pod were killed. Returns -1 if one still runs after
 * ms. */
int process_kill_by_env(const char *assignment, int64_t ms);

/* Closes every descriptor from 3 on except the listed ones. Ignores entries of -1. */
void process_close_all_but(const int *keep, int count);

#endif
