/* deal.h - deals batches to workers, and watches over these. */
#ifndef BURST_JOBS_AGENT_DEAL_H
#define BURST_JOBS_AGENT_DEAL_H

#include "agent.h"

void worker_exited(struct agent *a, struct worker *w, int status);

/* Silence is a hang; so is talk without any progress for ten times as long. */
void worker_look(struct agent *a, struct worker *w);
void dispatch(struct agent *a);

#endif
