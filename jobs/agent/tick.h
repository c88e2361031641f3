/* tick.h - the checks of `serve` that run ten times a second. */
#ifndef BURST_JOBS_AGENT_TICK_H
#define BURST_JOBS_AGENT_TICK_H

#include <stdbool.h>

#include "agent.h"

bool running_something(const struct agent *a);
void report_idle(struct agent *a);
void tick(struct agent *a);

#endif
