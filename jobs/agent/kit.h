/* kit.h - what burst puts on every pod, embedded in the program. */
#ifndef BURST_JOBS_AGENT_KIT_H
#define BURST_JOBS_AGENT_KIT_H

#include "job.h"

/* Valid for the life of the process. The first call is not thread-safe. */
const struct pod_kit *pod_kit(void);

#endif
