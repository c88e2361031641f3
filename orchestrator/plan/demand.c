/* demand.c - sizes a pool of pods for arriving requests and compares renting with its alternatives. */
#include "demand.h"

#include <math.h>

double demand_waits(int pods, double load)
{
	double blocked = 1; /* Erlang B by its recursion, which cannot overflow as factorials do */

	if (load <= 0)
		return 0;
	if (pods <= load)
		return 1;
	for (int k = 1; k <= pods; k++)
		blocked = load * blocked / (k + load * blocked);
	return blocked / (1 - load / pods * (1 - blocked));
}

double demand_mean_wait_s(int pods, double load, double service_s)
{
	return pods > load ? demand_waits(pods, load) * service_s / (pods - load) : INFINITY;
}

double demand_waits_longer(int pods, double load, double service_s, double wait_s)
{
	return pods > load ? demand_waits(pods, load) * exp(-(pods - load) * wait_s / service_s) : 1;
}

double demand_wait_quantile_s(int pods, double load, double service_s, double share)
{
	double waits = demand_waits(pods, load);

	if (pods <= load)
		return INFINITY;
	return waits > 1 - share ? service_s / (pods - load) * log(waits / (1 - share)) : 0;
}

int demand_pods(double load, double waiting_share)
{
	int pods = (int)floor(load) + 1;

	while (demand_waits(pods, load) > waiting_share)
		pods++;
	return pods;
}

double demand_more_than(int pods, double load)
{
	double term = exp(-load), sum = term;

	for (int k = 1; k <= pods; k++) {
		term *= load / k;
		sum += term;
	}
	return 1 - sum;
}

/* ---- against an API, a machine of one's own, a reservation ---- */

double demand_usd_per_million(double price_h, double chars_per_hour, double duty)
{
	return price_h / chars_per_hour * 1e6 / duty;
}

double demand_api_duty(double price_h, double chars_per_hour, double api_usd_per_million)
{
	return price_h * 1e6 / (api_usd_per_million * chars_per_hour);
}

double demand_own_duty(double capex_usd, double opex_usd_year, double years, double price_h)
{
	return (capex_usd + opex_usd_year * years) / (years * 8760 * price_h);
}

double demand_reserved_duty(double saving)
{
	return 1 - saving;
}
