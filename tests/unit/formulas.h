/* formulas.h - closed formulas of queueing and cost, against which tests hold what the planner
 * computes. The planner itself needs none of them: it counts batches and pods. */
#ifndef BURST_TESTS_FORMULAS_H
#define BURST_TESTS_FORMULAS_H

#include <math.h>

#include "base/mem.h"
#include "plan/cost.h"

/* N pods share the work evenly. Each further pod costs one more cold start. */
static inline double cost_wide_billed_s(int pods, double cold_s, double work_s)
{
	return pods * cold_s + work_s;
}

/* N pods share the work evenly, and all begin at once. */
static inline double cost_wide_makespan_s(int pods, double cold_s, double work_s)
{
	return cold_s + work_s / pods;
}

/* The fewest pods that meet the deadline; 0: none does, since the cold start alone takes as long.
 */
static inline int cost_pods_for_deadline(double deadline_s, double cold_s, double work_s)
{
	if (deadline_s <= cold_s)
		return 0;
	return (int)MAX(1.0, ceil(work_s / (deadline_s - cold_s) - 1e-9));
}

/* The most pods that the budget pays for; 0: not even one. */
static inline int cost_pods_for_budget(double budget_usd, double price_h, double cold_s,
				       double work_s)
{
	double left_s = budget_usd / price_h * 3600 - work_s;

	if (left_s < cold_s)
		return 0;
	return cold_s > 0 ? (int)MIN(floor(left_s / cold_s + 1e-9), 1e6) : 1000000;
}

/* The width at which one more pod costs as much as the time is worth that it saves: sqrt(v W / (p
 * C)), in dollars an hour. At least 1. */
static inline double cost_pods_for_value(double value_h, double price_h, double cold_s,
					 double work_s)
{
	return MAX(1.0, sqrt(value_h * work_s / (price_h * cold_s)));
}

/* Share of billed time that computes. */
static inline double cost_used(int pods, double cold_s, double work_s)
{
	return work_s / cost_wide_billed_s(pods, cold_s, work_s);
}

/* Work, in seconds on the small card, from which on a tall card is cheaper: C (q - 1) / (1 - q/k),
 * with q the ratio of prices and k that of speeds. INFINITY: never (it is dearer than it is
 * faster). */
static inline double cost_tall_from_s(double cold_s, double price_ratio, double speed_ratio)
{
	if (speed_ratio <= price_ratio)
		return INFINITY;
	return cold_s * (price_ratio - 1) / (1 - price_ratio / speed_ratio);
}

/* The share of the price that a spot offer must save to be worth it. */
static inline double cost_spot_worth(double work_s, double cold_s, double save_s, double every_s,
				     double between_s)
{
	return 1 -
	       (work_s + cold_s) / cost_spot_billed_s(work_s, cold_s, save_s, every_s, between_s);
}

/* The use from which on a reservation with this saving is cheaper. */
static inline double demand_reserved_duty(double saving)
{
	return 1 - saving;
}

/* The fewest pods with which at most this share of requests waits. */
static inline int demand_pods(double load, double waiting_share)
{
	int pods = (int)floor(load) + 1;

	while (demand_waits(pods, load) > waiting_share)
		pods++;
	return pods;
}

/* For a published sweep that reports only the gain S(b) at one b: r = c/a of t(b) = a + c b. */
static inline double speed_ratio_of_gain(double b, double gain)
{
	return (b - gain) / (b * (gain - 1));
}

#endif
