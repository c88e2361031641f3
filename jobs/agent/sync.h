/* sync.h - makes what was written outlive the pod, and ends the pod. */
#ifndef BURST_JOBS_AGENT_SYNC_H
#define BURST_JOBS_AGENT_SYNC_H

#include <stdbool.h>

#include "agent.h"

/* Nobody watches: true once all that there is outlives the pod. What fails is tried again for a
 * while, since work of hours may be at stake; a volume that keeps nothing by then is the end of
 * this pod's work. */
bool sync_alone(struct agent *a);
void end_pod(struct agent *a, const char *reason);
void sync_start(struct agent *a, int turn);

/* A volume may take its time, and the pod has more to do. */
void sync_ended(struct agent *a, int status);

#endif
