/* kit.h - what burst puts on every pod, as it is carried inside the program. */
#ifndef BURST_JOBS_AGENT_KIT_H
#define BURST_JOBS_AGENT_KIT_H

#include "job.h"

/* Lives as long as the process. Not for several threads at first use. */
const struct pod_kit *pod_kit(void);

#endif
