/* ops.h - handles the client's requests. */
#ifndef BURST_JOBS_AGENT_OPS_H
#define BURST_JOBS_AGENT_OPS_H

#include <stddef.h>

#include "agent.h"

void obey(struct agent *a, const char *line, size_t len);
void obey_deferred(struct agent *a);

#endif
