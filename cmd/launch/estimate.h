/* estimate.h - estimates for what the config wishes of a plan. */
#ifndef BURST_CMD_LAUNCH_ESTIMATE_H
#define BURST_CMD_LAUNCH_ESTIMATE_H

#include "launch.h"
#include "runs/estimate.h"

/* The job is loaded; reads the wishes first (wish.h). Free with estimate_free(). */
int estimate_make(struct estimate *out, struct launch *l, const struct offer *offers, size_t count,
		  struct err *err);

#endif
