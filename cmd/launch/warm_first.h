/* warm_first.h - fills a run's volume from a pod without a GPU before the run rents GPUs. */
#ifndef BURST_CMD_LAUNCH_WARM_FIRST_H
#define BURST_CMD_LAUNCH_WARM_FIRST_H

#include "estimate.h"

/* Whether a pod without a GPU should run the job's set-up first: the plan's first GPU pod would run
 * it, any pod could, and the result would be kept on a volume. */
bool warm_first_due(struct launch *l, const struct estimate *e, const struct plan *pick);
/* Runs `burst volume warm` as a client of its own, on the volume of the plan's provider. Creates
 * the volume if the config allows. Subtracts its cost from this run's max_cost; *spent_microusd has
 * it even on failure. Returns 1 if the volume is ready, 0 if no pod without a GPU is free (the GPU
 * pod then runs the set-up, and a note says so), -1 with *err if no GPU may be rented. */
int warm_first(struct launch *l, const struct estimate *e, const struct plan *pick,
	       int64_t *spent_microusd, struct err *err);

#endif
