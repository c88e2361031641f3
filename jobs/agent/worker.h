/* worker.h - starts workers and ends them. */
#ifndef BURST_JOBS_AGENT_WORKER_H
#define BURST_JOBS_AGENT_WORKER_H

#include "agent.h"

/* unfit: the part of the pod to blame ("card"); NULL: the worker names none. */
void worker_failed(struct agent *a, struct worker *w, const char *error, const char *unfit);
void worker_start(struct agent *a, struct worker *w);
void worker_kill(struct agent *a, struct worker *w, const char *why);
void worker_write(struct worker *w);
void worker_close(struct worker *w);

#endif
