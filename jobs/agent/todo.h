/* todo.h - the queue of slow work on files. */
#ifndef BURST_JOBS_AGENT_TODO_H
#define BURST_JOBS_AGENT_TODO_H

#include "agent.h"

struct job *job_add(struct agent *a, enum job_kind kind, const char *id);
void job_done(struct agent *a);

#endif
