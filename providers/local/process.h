/* process.h - processes of this machine, named so that a recycled pid is never taken for the one
 * that was meant. */
#ifndef BURST_PROVIDERS_LOCAL_PROCESS_H
#define BURST_PROVIDERS_LOCAL_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
	pid_t pid;      /* 0: none */
	uint64_t start; /* clock ticks since boot at which it began: with the pid, unique until the
			   next boot */
	char boot[40];  /* the kernel's boot id */
};

/* Of a process that runs now; pid 0 in the result if it does not. */
struct process process_of(pid_t pid);
/* Sends the signal to exactly this process; -1 when it is gone. */
int process_signal(const struct process *p, int sig);
/* Waits at most ms for its end; true when it has ended. */
bool process_wait_end(const struct process *p, int64_t ms);

/* Kills and reaps everything below the calling process, which must be a child subreaper, until
 * nothing is left; the next round catches what forks meanwhile. -1 if a process still runs after
 * ms. */
int process_kill_below(int64_t ms);
/* The same for strangers' children: processes whose initial environment holds this "NAME=value",
 * and all below them, as after both supervisors of a pod were killed. -1 if a process still runs
 * after ms. */
int process_kill_by_env(const char *assignment, int64_t ms);

/* Closes every descriptor from 3 on except the listed ones; -1 entries are ignored. */
void process_close_all_but(const int *keep, int count);

#endif
