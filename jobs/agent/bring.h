/* bring.h - brings what `start` names from the volume to the container's disk, in a child. */
#ifndef BURST_JOBS_AGENT_BRING_H
#define BURST_JOBS_AGENT_BRING_H

#include "agent.h"

/* Runs in a child. Other pods can write to the volume, so what workers run is copied to the
 * container's disk, and used only if the copy is what the client named. An environment without an
 * archive is too large for that and is compared on the volume. Prints what the volume lacks, else
 * what became of the environment and a line for the log. */
int start_check(struct agent *a);

#endif
