/* strays.h - ends processes that workers left behind. */
#ifndef BURST_JOBS_AGENT_STRAYS_H
#define BURST_JOBS_AGENT_STRAYS_H

#include "agent.h"

/* Ends stray descendants at any depth. A process becomes a child of the agent only when its parent
 * ends, so this searches repeatedly. */
void kill_strays(struct agent *a);

#endif
