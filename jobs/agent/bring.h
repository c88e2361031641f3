/* bring.h - brings what `start` names from the volume to the container's disk, in a child. */
#ifndef BURST_JOBS_AGENT_BRING_H
#define BURST_JOBS_AGENT_BRING_H

#include "agent.h"

/* Runs in a child. Other pods can write to the volume, so the agent copies what workers run to the
 * container's disk and uses the copy only if its id matches the client's. An environment without an
 * archive is too large to copy and is compared on the volume. Prints what the volume lacks, else
 * the result for the environment and a line for the log. */
int start_check(struct agent *a);

#endif
