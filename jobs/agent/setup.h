/* setup.h - `setup` and `install`: run a script and keep its results on the volume. */
#ifndef BURST_JOBS_AGENT_SETUP_H
#define BURST_JOBS_AGENT_SETUP_H

#include "agent.h"
#include "json.h"

void task_start(struct agent *a, const char *kind, const struct json *op);
void task_exited(struct agent *a, int status);

#endif
