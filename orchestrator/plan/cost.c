/* cost.c - computes what a plan costs and how long it takes. */
#include "cost.h"

#include <math.h>

#include "base/mem.h"

double cost_usd(double price_h, double seconds)
{
	return price_h * seconds / 3600;
}

double cost_quantum_s(double seconds, double quantum_s)
{
	return quantum_s > 0 ? ceil(seconds / quantum_s - 1e-9) * quantum_s : seconds;
}

/* ---- wide or tall ---- */

double cost_wide_billed_s(int pods, double cold_s, double work_s)
{
	return pods * cold_s + work_s;
}

double cost_wide_makespan_s(int pods, double cold_s, double work_s)
{
	return cold_s + work_s / pods;
}

int cost_pods_for_deadline(double deadline_s, double cold_s, double work_s)
{
	if (deadline_s <= cold_s)
		return 0;
	return (int)MAX(1.0, ceil(work_s / (deadline_s - cold_s) - 1e-9));
}

int cost_pods_for_budget(double budget_usd, double price_h, double cold_s, double work_s)
{
	double left_s = budget_usd / price_h * 3600 - work_s;

	if (left_s < cold_s)
		return 0;
	return cold_s > 0 ? (int)MIN(floor(left_s / cold_s + 1e-9), 1e6) : 1000000;
}

double cost_pods_for_value(double value_h, double price_h, double cold_s, double work_s)
{
	return MAX(1.0, sqrt(value_h * work_s / (price_h * cold_s)));
}

double cost_tall_from_s(double cold_s, double price_ratio, double speed_ratio)
{
	if (speed_ratio <= price_ratio)
		return INFINITY;
	return cold_s * (price_ratio - 1) / (1 - price_ratio / speed_ratio);
}

double cost_used(int pods, double cold_s, double work_s)
{
	return work_s / cost_wide_billed_s(pods, cold_s, work_s);
}

double cost_work_for_used_s(double share, double cold_s)
{
	return share / (1 - share) * cold_s;
}

/* ---- a volume against downloads, retries ---- */

double cost_volume_break_even(double volume_usd_month, double without_usd, double with_usd)
{
	double saved = without_usd - with_usd;

	return saved > 0 ? volume_usd_month / saved : INFINITY;
}

double cost_attempts(double items, double failing_share)
{
	return items / (1 - failing_share);
}

/* ---- spot ---- */

double cost_spot_billed_s(double work_s, double cold_s, double save_s, double every_s,
			  double between_s)
{
	double saving = every_s > 0 ? save_s / every_s : 0;
	double interruptions = between_s > 0 ? work_s / between_s : 0;

	return work_s * (1 + saving) + cold_s + interruptions * (cold_s + every_s / 2);
}

double cost_spot_worth(double work_s, double cold_s, double save_s, double every_s,
		       double between_s)
{
	double billed_s = cost_spot_billed_s(work_s, cold_s, save_s, every_s, between_s);

	return 1 - (work_s + cold_s) / billed_s;
}
