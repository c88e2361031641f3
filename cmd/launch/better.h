/* better.h - names a choice of GPU and pods that is clearly better than the one that the config or
 * a flag fixes. */
#ifndef BURST_CMD_LAUNCH_BETTER_H
#define BURST_CMD_LAUNCH_BETTER_H

#include "estimate.h"

struct better {
	bool found;
	char line[400]; /* "2 pods cost $0.0040; 1 pod would cost $0.0021 and take 12s longer" */
	struct plan plan;
	struct offer offer; /* of the plan's machine */
};

/* e: what the given GPUs and pods would take, pick the plan for them. Where GPUs are named,
 * providers are asked for what else they have, offers_ms each at most; 0: none is asked. */
void better_find(struct better *out, struct launch *l, const struct estimate *e,
		 const struct plan *pick, int64_t offers_ms);

#endif
