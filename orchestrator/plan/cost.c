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

double cost_tall_from_s(double cold_s, double price_ratio, double speed_ratio)
{
	if (speed_ratio <= price_ratio)
		return INFINITY;
	return cold_s * (price_ratio - 1) / (1 - price_ratio / speed_ratio);
}

double cost_work_for_used_s(double share, double cold_s)
{
	return share / (1 - share) * cold_s;
}

/* ---- retries ---- */

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
