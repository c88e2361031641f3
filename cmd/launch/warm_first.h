/* warm_first.h - fills a run's volume from a pod without a GPU before the run rents GPUs. */
#ifndef BURST_CMD_LAUNCH_WARM_FIRST_H
#define BURST_CMD_LAUNCH_WARM_FIRST_H

#include "estimate.h"

/* Whether the first GPU pod of this plan would run the job's setup, which any pod could run, and
 * would leave the result on a volume: then a pod without a GPU does it first. */
bool warm_first_due(struct launch *l, const struct estimate *e, const struct plan *pick);
/* Runs `burst volume warm` as a client of its own, on the volume of the plan's provider; creates
 * the volume if the config says so. What it cost lowers this run's max_cost and is left in
 * *spent_microusd, also on failure. Returns 1 if the volume is ready, 0 if no pod without a GPU is
 * free (then the GPU pod runs the setup, and a note says so), -1 with *err: no GPU is to be
 * rented. */
int warm_first(struct launch *l, const struct estimate *e, const struct plan *pick,
	       int64_t *spent_microusd, struct err *err);

#endif
