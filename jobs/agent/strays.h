/* strays.h - ends what workers left behind. */
#ifndef BURST_JOBS_AGENT_STRAYS_H
#define BURST_JOBS_AGENT_STRAYS_H

#include "agent.h"

/* What our workers left behind, however deep: one whose parent is being ended becomes our child
 * only when that is over. */
void kill_strays(struct agent *a);

#endif
