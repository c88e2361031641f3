/* demand.c - sizes a pool of pods for arriving requests and compares renting with its alternatives.
 */
#include "demand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

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
	return pods > load ? demand_waits(pods, load) * exp(-(pods - load) * wait_s / service_s)
			   : 1;
}

double demand_wait_quantile_s(int pods, double load, double service_s, double share)
{
	double waits = demand_waits(pods, load);

	if (pods <= load)
		return INFINITY;
	return waits > 1 - share ? service_s / (pods - load) * log(waits / (1 - share)) : 0;
}

int demand_pods_rule(double load)
{
	return load > 0 ? (int)ceil(load + 1.42 * sqrt(load)) : 1;
}

int demand_pods_for_wait(double load, double service_s, double share, double wait_s)
{
	int pods = (int)floor(load) + 1;

	while (demand_waits_longer(pods, load, service_s, wait_s) > 1 - share)
		pods++;
	return pods;
}

int demand_pods_for_mean(double load, double service_s, double wait_s)
{
	int pods = (int)floor(load) + 1;

	while (demand_mean_wait_s(pods, load, service_s) > wait_s)
		pods++;
	return pods;
}

bool demand_read_rate(const char *text, double *per_s)
{
	static const struct {
		const char *unit;
		double s;
	} units[] = {{"s", 1}, {"min", 60}, {"m", 60}, {"h", 3600}, {"d", 86400}};
	const char *slash = strchr(text, '/');
	char *end;

	if (!slash || strspn(text, "0123456789.") != (size_t)(slash - text))
		return false;
	double count = strtod(text, &end);
	if (end != slash || !(count > 0 && count <= 1e9))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (!strcmp(slash + 1, units[i].unit)) {
			*per_s = count / units[i].s;
			return true;
		}
	return false;
}

bool demand_read_goal(const char *text, struct demand_goal *out)
{
	const char *equals = strchr(text, '=');
	double percent = 0;
	int64_t ms;
	char *end;

	if (!equals || duration_parse(equals + 1, &ms, &(struct err){0}) < 0)
		return false;
	if (strncmp(text, "mean=", 5) != 0) {
		if (text[0] != 'p' ||
		    strspn(text + 1, "0123456789.") != (size_t)(equals - text) - 1)
			return false;
		percent = strtod(text + 1, &end);
		if (end != equals || !(percent > 0 && percent < 100))
			return false;
	} else if (ms == 0) {
		return false; /* no number of pods brings the mean to nothing */
	}
	*out = (struct demand_goal){percent / 100, (double)ms / 1000};
	return true;
}

struct demand_size demand_size(int pods, double load, double service_s)
{
	return (struct demand_size){
		.pods = pods,
		.used = MIN(load / pods, 1.0),
		.waits = demand_waits(pods, load),
		.mean_s = demand_mean_wait_s(pods, load, service_s),
		.p50_s = demand_wait_quantile_s(pods, load, service_s, 0.50),
		.p95_s = demand_wait_quantile_s(pods, load, service_s, 0.95),
		.p99_s = demand_wait_quantile_s(pods, load, service_s, 0.99),
	};
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
