/* refuse.h - what no plan can do: one line each, with the exit status of a run, before anything is
 * rented. */
#ifndef BURST_CMD_LAUNCH_REFUSE_H
#define BURST_CMD_LAUNCH_REFUSE_H

#include "estimate.h"

/* ERR_CAP: nothing that is wanted costs so little as the cap on the price of an hour, now or by
 * waiting. floor 0: not known. */
int refuse_price(const struct launch *l, int64_t floor_microusd_h, const char *provider,
		 struct err *err);
/* What is spent at least before a pod is up, in its cheapest place; 0: not known. */
int64_t refuse_least_microusd(const struct estimate *e);
/* -1 with *err where a run with these offers would be for nothing: the deadline or max_cost is over
 * before a pod is up, or no plan meets the deadline. verdict: of `pick`; PLAN_NOTHING_FITS where
 * nothing is known of the engine's speed. */
int refuse_run(const struct launch *l, const struct estimate *e, const struct plan *pick,
	       enum plan_verdict verdict, struct err *err);
/* The same for a plan, which has no numbers to show without an offer that fits, or without an
 * estimate. A run waits for the one, and measures the other. */
int refuse_plan(const struct launch *l, const struct estimate *e, const struct plan *pick,
		enum plan_verdict verdict, struct err *err);

#endif
