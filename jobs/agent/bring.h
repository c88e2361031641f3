/* bring.h - brings what `start` names from the volume to the container's disk, in a child. */
#ifndef BURST_JOBS_AGENT_BRING_H
#define BURST_JOBS_AGENT_BRING_H

#include "agent.h"

/* In a child. What workers run lies on the volume, where other pods can write: it is copied to the
 * container's disk and runs only if what arrived is what the client named. An environment without
 * an archive is too large for that and is compared where it lies. Prints what the volume lacks,
 * else what became of the environment and a line for the log. */
int start_check(struct agent *a);

#endif
