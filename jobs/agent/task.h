/* task.h - the setup, install or start that is running; there is at most one. */
#ifndef BURST_JOBS_AGENT_TASK_H
#define BURST_JOBS_AGENT_TASK_H

#include <stdbool.h>

#include "agent.h"

void task_forget(struct task *t);

/* Reads what the task printed, at most `rounds` pieces so that the loop goes on. Returns false once
 * the output is closed. */
bool task_read(struct agent *a, int rounds);

/* Runs `work` in a child of the agent, whose output becomes task.result. Returns false if it cannot
 * start. */
bool task_begin_own(struct agent *a, int (*work)(struct agent *));

#endif
