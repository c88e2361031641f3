/* deal.h - gives batches to workers, and watches the workers. */
#ifndef BURST_JOBS_AGENT_DEAL_H
#define BURST_JOBS_AGENT_DEAL_H

#include "agent.h"

void worker_exited(struct agent *a, struct worker *w, int status);

/* Treats silence as a hang, and also output without progress for ten times as long. */
void worker_check_hang(struct agent *a, struct worker *w);
void dispatch(struct agent *a);

#endif
