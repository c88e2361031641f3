/* cost.h - what renting costs: cold starts, billed seconds, width, deadlines, budgets, storage,
 * spot. Pure.
 *
 * Seconds and dollars are doubles here, since these are estimates; what is booked is in integer
 * micro-dollars elsewhere. The price of a pod is in dollars an hour. `cold_s` is the cold start of
 * one pod, `work_s` the computing of a whole job on one. */
#ifndef BURST_PLAN_COST_H
#define BURST_PLAN_COST_H

#include <stddef.h>

double cost_usd(double price_h, double seconds);
/* Rounded up to the provider's billing quantum; 0: not rounded. */
double cost_quantum_s(double seconds, double quantum_s);

/* ---- wide or tall ---- */

/* Work, in seconds on the small card, from which on a tall card is cheaper: C (q - 1) / (1 - q/k),
 * with q the ratio of prices and k that of speeds. INFINITY: never (it is dearer than it is
 * faster). */
double cost_tall_from_s(double cold_s, double price_ratio, double speed_ratio);
/* The work that makes this share of billed time compute (70 % needs 2.33 cold starts of work). */
double cost_work_for_used_s(double share, double cold_s);

/* ---- retries ---- */

/* Renders for n good items when this share of them fails its check and is rendered again. */
double cost_attempts(double items, double failing_share);

/* ---- spot ---- */

/* Billed seconds of work_s with interruptions every between_s on average: each one costs a cold
 * start and half an interval. Segments that are fetched as they finish are checkpoints that cost
 * nothing: save_s 0, every_s the time of a batch. */
double cost_spot_billed_s(double work_s, double cold_s, double save_s, double every_s,
			  double between_s);
/* The share of the price that a spot offer must save to be worth it. */
double cost_spot_worth(double work_s, double cold_s, double save_s, double every_s,
		       double between_s);

#endif
