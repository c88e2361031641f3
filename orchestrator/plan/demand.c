/* demand.c - sizes a pool of pods for arriving requests, and compares renting with its
 * alternatives */
#include "demand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cost.h"

/* ---- demand ----
 * Sizes a pool of pods for arriving requests and compares renting with its alternatives. */

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

/* ---- breakeven ----
 * Compares what renting costs with the list prices of APIs and with spot pods. */

/* As published or reported on the day. */
static const struct breakeven_api apis[] = {
	{"polly-standard", 4, "2026-10"},
	{"xai", 4.20, "2026-04"},
	{"unreal", 8, "2026-11"},
	{"openai-tts-1", 15, "2026-11"},
	{"polly-neural", 16, "2026-10"},
	{"google-wavenet", 16, "2024-06"},
	{"voxtral", 16, "2026-07"},
	{"openai-tts-1-hd", 30, "2026-11"},
	{"polly-generative", 30, "2026-10"},
	{"elevenlabs-flash", 50, "2026-06"},
	{"venice", 50, "2026-11"},
	{"elevenlabs", 100, "2026-06"},
};

const struct breakeven_api *breakeven_apis(size_t *count)
{
	*count = ARRAY_LEN(apis);
	return apis;
}

const struct breakeven_api *breakeven_find_api(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(apis); i++)
		if (!strcmp(name, apis[i].name))
			return &apis[i];
	return NULL;
}

bool breakeven_read_api(const char *text, struct breakeven_api *out)
{
	const char *equals = strchr(text, '=');
	struct breakeven_api api = {.seen = "as given"};
	char *end;

	if (!equals)
		return false;
	snprintf(api.name, sizeof(api.name), "%.*s",
		 (int)MIN(equals - text, (ptrdiff_t)sizeof(api.name) - 1), text);
	api.usd = strtod(equals + 1, &end);
	if (*end || end == equals + 1 || !api.name[0] || !(api.usd > 0 && api.usd < 1e9))
		return false;
	*out = api;
	return true;
}

bool breakeven_rate(double chars, int64_t compute_ms, int64_t billed_ms, int64_t cost_microusd,
		    struct breakeven_rate *out)
{
	double busy_s = (double)compute_ms / 1000;

	if (!(busy_s > 0 && chars > 0 && billed_ms > 0 && cost_microusd > 0))
		return false;
	out->chars_per_hour = chars / busy_s * 3600;
	out->price_h = (double)cost_microusd / 1e6 / ((double)billed_ms / 3600000);
	out->duty = MIN((double)compute_ms / (double)billed_ms, 1.0);
	return true;
}

bool breakeven_read_own(const char *text, double *capex_usd, double *opex_usd_year)
{
	double capex, opex;
	int used = 0;

	if (sscanf(text, "%lf+%lf/y%n", &capex, &opex, &used) != 2 || !used || text[used] ||
	    !(capex > 0 && opex >= 0))
		return false;
	*capex_usd = capex;
	*opex_usd_year = opex;
	return true;
}

bool breakeven_read_share(const char *text, double *share)
{
	char *end;
	double value = strtod(text, &end);
	bool percent = *end == '%';

	if (end == text || end[percent] || !isfinite(value))
		return false;
	if (percent || value > 1)
		value /= 100;
	if (value <= 0 || value > 1)
		return false;
	*share = value;
	return true;
}

double breakeven_spot_worth(const struct breakeven_spot *s)
{
	return cost_spot_worth(s->work_s, s->cold_s, 0, s->checkpoint_s, s->every_s);
}

double breakeven_spot_saving(const struct breakeven_spot *s, double off)
{
	double billed_s = cost_spot_billed_s(s->work_s, s->cold_s, 0, s->checkpoint_s, s->every_s),
	       sure_s = s->work_s + s->cold_s;

	return 1 - (1 - off) * billed_s / sure_s;
}
