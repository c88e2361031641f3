/* better.h - finds a choice of GPU and pods that is clearly better than the one that the config or
 * a flag fixes. */
#ifndef BURST_CMD_LAUNCH_BETTER_H
#define BURST_CMD_LAUNCH_BETTER_H

#include "cmd/show/plan_show.h"
#include "estimate.h"

/* e: estimate for the given GPUs and pods; pick: the plan for them. If the config names GPUs, asks
 * providers for other offers, for offers_ms each at most; 0: asks none. */
void better_find(struct better *out, struct launch *l, const struct estimate *e,
		 const struct plan *pick, int64_t offers_ms);

#endif
