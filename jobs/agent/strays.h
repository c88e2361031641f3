/* strays.h - ends processes that workers left behind. */
#ifndef BURST_JOBS_AGENT_STRAYS_H
#define BURST_JOBS_AGENT_STRAYS_H

#include "agent.h"

/* Ends descendants at any depth: one whose parent is being ended becomes a child of the agent only
 * after that. */
void kill_strays(struct agent *a);

#endif
