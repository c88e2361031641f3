/* task.h - the one setup, install or start that is running. */
#ifndef BURST_JOBS_AGENT_TASK_H
#define BURST_JOBS_AGENT_TASK_H

#include <stdbool.h>

#include "agent.h"

void task_forget(struct task *t);
bool task_read(struct agent *a, int rounds);
bool task_begin_own(struct agent *a, int (*work)(struct agent *));

#endif
