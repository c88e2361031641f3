/* refuse.h - refuses what no plan can do, with one line and the exit status of a run, before
 * anything is rented. */
#ifndef BURST_CMD_LAUNCH_REFUSE_H
#define BURST_CMD_LAUNCH_REFUSE_H

#include "estimate.h"

/* ERR_CAP: no wanted offer is as cheap as the cap on the price of an hour, now or later. floor 0:
 * unknown. */
int refuse_price(const struct launch *l, int64_t floor_microusd_h, const char *provider,
		 struct err *err);
/* The least that is spent before a pod is up, at the cheapest offer; 0: unknown. */
int64_t refuse_least_microusd(const struct estimate *e);
/* Returns -1 with *err if a run with these offers cannot succeed: the deadline or max_cost ends
 * before a pod is up, or no plan meets the deadline. verdict: of `pick`; PLAN_NOTHING_FITS if the
 * engine's speed is unknown. */
int refuse_run(const struct launch *l, const struct estimate *e, const struct plan *pick,
	       enum plan_verdict verdict, struct err *err);
/* The same for a plan, which has nothing to show without a fitting offer or an estimate. A run
 * would wait for the offer, and measure the speed. */
int refuse_plan(const struct launch *l, const struct estimate *e, const struct plan *pick,
		enum plan_verdict verdict, struct err *err);

#endif
