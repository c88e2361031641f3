/* serve.h - the loop of `serve`. */
#ifndef BURST_JOBS_AGENT_SERVE_H
#define BURST_JOBS_AGENT_SERVE_H

#include "agent.h"

void agent_free(struct agent *a);
int agent_serve(void);

#endif
