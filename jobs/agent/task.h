/* task.h - the one setup, install or start that is running. */
#ifndef BURST_JOBS_AGENT_TASK_H
#define BURST_JOBS_AGENT_TASK_H

#include <stdbool.h>

#include "agent.h"

void task_forget(struct task *t);

/* Takes what the task printed, at most `rounds` pieces so that the loop has its turn. False: it has
 * closed its output. */
bool task_read(struct agent *a, int rounds);

/* Runs `work` in a child of the agent; what it prints is its result (task.said). False: it could
 * not be started. */
bool task_begin_own(struct agent *a, int (*work)(struct agent *));

#endif
