/* tick.h - the checks of `serve` that run ten times a second. */
#ifndef BURST_JOBS_AGENT_TICK_H
#define BURST_JOBS_AGENT_TICK_H

#include "agent.h"

void report_idle(struct agent *a);
void tick(struct agent *a);

#endif
