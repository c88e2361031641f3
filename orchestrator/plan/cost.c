/* cost.c - what a plan costs and takes: figures of providers, memory of a GPU, cold starts,
 * billed time, waiting */
#include "cost.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"

/* ---- figures of providers from their documents, price pages and other people's reports ---- */

/* Cold starts: seconds, median and slow tenth. RunPod and Modal bill by the second and charge
 * nothing for what is fetched. No vendor publishes how often spot pods are reclaimed: eight hours
 * is our guess, until this ledger has seen some. */
#define SPOT_GUESS_S (8 * 3600.0)
static const struct prior_provider providers[] = {
	{"local",
	 {{0.1, 0.5, 0},
	  {0.5, 2, 0},
	  {0.3, 1, 0},
	  {0.5, 2, 0},
	  {0, 0, 0},
	  [COLD_LOAD] = {0.5, 2, 0}},
	 1,
	 0,
	 0,
	 SPOT_GUESS_S,
	 "2026-11"},
	{"modal",
	 {{5, 60, 0}, {5, 15, 0}, {2, 5, 0}, {3, 10, 0}, {0, 0, 0}, [COLD_LOAD] = {5, 15, 0}},
	 1,
	 0,
	 0.09,
	 SPOT_GUESS_S,
	 "2026-09"},
	{NULL,
	 {{10, 60, 0}, {60, 180, 0}, {2, 5, 0}, {3, 10, 0}, {0, 0, 0}, [COLD_LOAD] = {5, 15, 0}},
	 1,
	 0,
	 0.07,
	 SPOT_GUESS_S,
	 "2026-08"},
};
#define GPU_LOAD_S      20.0 /* beside that, where weights go to a GPU */
#define GPU_LOAD_SLOW_S 60.0

const struct cold_time prior_setup = {230, 690, 0};

const struct prior_provider *prior_of_provider(const char *name)
{
	size_t i = 0;

	if (starts_with(name, "local_")) /* a plug-in around this machine's pods */
		return &providers[0];
	while (providers[i].name && strcmp(providers[i].name, name) != 0)
		i++;
	return &providers[i];
}

struct cold prior_cold(const char *provider, bool gpu)
{
	struct cold c = {0};

	memcpy(c.phase, prior_of_provider(provider)->phase, sizeof(c.phase));
	if (gpu) {
		c.phase[COLD_LOAD].p50_s += GPU_LOAD_S;
		c.phase[COLD_LOAD].p90_s += GPU_LOAD_SLOW_S;
	}
	return c;
}

/* List prices of one GPU on demand, in dollars an hour, as price pages and price trackers showed
 * them last (the month, of RunPod's secure cloud). They move: a run goes by live offers alone. 0:
 * not offered, or no price was found. */
static const struct {
	const char *gpu;
	double secure, community, modal;
	const char *seen;
} prices[] = {
	{"T4", 0, 0, 0.59, "2026-09"},
	{"L4", 0.39, 0, 0.80, "2026-01"},
	{"A10", 0, 0, 1.10, "2026-09"},
	{"RTX A4000", 0.29, 0.17, 0, "2025-07"},
	{"RTX A4500", 0.34, 0.19, 0, "2025-07"},
	{"RTX A5000", 0.26, 0.16, 0, "2025-07"},
	{"RTX A6000", 0.49, 0.33, 0, "2025-07"},
	{"RTX 2000 Ada", 0.24, 0, 0, "2026-01"},
	{"RTX 4000 Ada", 0.26, 0.20, 0, "2026-01"},
	{"RTX 3080", 0, 0.17, 0, "2025-07"},
	{"RTX 3090", 0.43, 0.22, 0, "2025-07"},
	{"RTX 4090", 0.59, 0.34, 0, "2026-01"},
	{"RTX 5090", 0.99, 0.69, 0, "2026-08"},
	{"L40", 0.99, 0.69, 0, "2026-01"},
	{"L40S", 0.86, 0.79, 1.95, "2026-01"},
	{"RTX 6000 Ada", 0.77, 0.74, 0, "2026-01"},
	{"RTX PRO 6000", 1.69, 0, 3.03, "2026-08"},
	{"A40", 0.44, 0, 0, "2026-08"},
	{"A100 40GB", 0, 1.00, 2.10, "2026-08"},
	{"A100 80GB PCIe", 1.79, 1.19, 0, "2026-11"},
	{"A100 80GB SXM", 1.79, 1.39, 2.50, "2026-11"},
	{"H100 PCIe", 2.89, 1.99, 0, "2026-11"},
	{"H100 SXM", 3.99, 2.69, 3.95, "2026-11"},
	{"H100 NVL", 3.19, 2.59, 0, "2026-11"},
	{"H200 SXM", 4.59, 3.59, 4.54, "2026-10"},
	{"H200 NVL", 3.39, 0, 0, "2026-01"},
	{"B200", 6.79, 5.98, 6.25, "2026-10"},
	{"B300", 7.89, 6.94, 7.10, "2026-10"},
};
#define MODAL_SEEN "2026-09"

const char *const market_names[MARKETS] = {"cheapest", "runpod", "runpod-community", "modal"};

static double price_in(size_t row, enum market market)
{
	switch (market) {
	case MARKET_SECURE: return prices[row].secure;
	case MARKET_COMMUNITY: return prices[row].community;
	case MARKET_MODAL: return prices[row].modal;
	case MARKET_CHEAPEST:
	case MARKETS: break;
	}
	return 0;
}

double prior_list_price(const char *gpu, enum market market, const char **seen)
{
	for (size_t i = 0; i < ARRAY_LEN(prices); i++) {
		if (strcmp(prices[i].gpu, gpu) != 0)
			continue;
		if (seen)
			*seen = market == MARKET_MODAL ? MODAL_SEEN : prices[i].seen;
		return price_in(i, market);
	}
	return 0;
}

/* ---- vram: decides whether a model and a batch fit into a GPU's memory ---- */

#define GIB ((double)(1 << 30))

double vram_usable_gib(double label_gb)
{
	return label_gb * 0.93 - 1.0;
}

bool vram_fits(double need_gib, double label_gb)
{
	return need_gib <= vram_usable_gib(label_gb);
}

int vram_batch_max(const struct vram_need *need, double label_gb)
{
	double room = vram_usable_gib(label_gb) - need->base_gib;

	if (room < need->each_gib)
		return room < 0 || need->each_gib > 0 ? 0 : INT_MAX;
	if (need->each_gib <= 0)
		return INT_MAX;
	double b = floor(room / need->each_gib + 1e-9);
	return b >= INT_MAX ? INT_MAX : (int)b;
}

double vram_precision_bytes(const char *precision)
{
	static const struct {
		const char *name;
		double bytes;
	} known[] = {{"fp32", 4}, {"fp16", 2}, {"bf16", 2}, {"fp8", 1}, {"int8", 1}, {"int4", 0.5}};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strcasecmp(known[i].name, precision))
			return known[i].bytes;
	return 0;
}

double vram_model_gib(double billions, double bytes_each)
{
	return billions * 1e9 * bytes_each / GIB * 1.3;
}

/* ---- hold: decides for how long a pod without work is held for the next run ---- */

/* What this hold would have cost over the gaps, in billed ms. */
static int64_t hold_cost_ms(const int64_t *gaps_ms, size_t count, int64_t hold, int64_t cold_ms)
{
	int64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += gaps_ms[i] <= hold ? gaps_ms[i] : hold + cold_ms;
	return sum;
}

int64_t hold_ms(const int64_t *gaps_ms, size_t count, int64_t cold_ms)
{
	int64_t best = 0;

	if (count < HOLD_GAPS_LEAST)
		return cold_ms;
	/* between two gaps, the longer hold only costs more */
	for (size_t i = 0; i < count; i++)
		if (gaps_ms[i] <= cold_ms && hold_cost_ms(gaps_ms, count, gaps_ms[i], cold_ms) <
						     hold_cost_ms(gaps_ms, count, best, cold_ms))
			best = gaps_ms[i];
	/* the next gap is rarely the same to the millisecond */
	return best ? MIN(best + best / 4, cold_ms) : 0;
}

/* ---- cold: learns how long pods take to come up ---- */

const char *cold_phase_name(enum cold_phase phase)
{
	static const char *const names[] = {"queue", "boot",    "connect", "sync",
					    "setup", "unpack",  "import",  "read",
					    "build", "warm-up", "probe",   "load"};

	return phase < COLD_PHASES ? names[phase] : "";
}

static int compare_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Between two samples, on a straight line. sorted: ascending, at least one. */
static double quantile(const double *sorted, size_t count, double q)
{
	double at = q * (double)(count - 1);
	size_t below = (size_t)at;
	double part = at - (double)below;

	return below + 1 < count ? sorted[below] * (1 - part) + sorted[below + 1] * part
				 : sorted[below];
}

/* A prior's slow tenth is one of all accounts, regions and images. Starts of a single one differ
 * less: as a standard deviation, by so much of it. */
#define SAME_PLACE_SHARE 0.4
/* For a phase without a prior. */
#define PLACE_SIGMA 0.25

struct cold_time cold_learn(double *list, size_t count, struct cold_time prior)
{
	double sigma = PLACE_SIGMA;

	if (count == 0)
		return prior;
	qsort(list, count, sizeof(*list), compare_size);
	if (prior.p50_s > 0 && prior.p90_s > prior.p50_s)
		sigma = SAME_PLACE_SHARE * log(prior.p90_s / prior.p50_s) / SPREAD_Z90;
	sigma = spread_learn(list, count, sigma);
	/* the next start exceeds k of n with the chance (n + 1 - k) / (n + 1) */
	double before = (double)count - 1, at = 0.9 * (before + 2) - 1;
	double p50_s = quantile(list, count, 0.5),
	       slow_s = quantile(list, count, at < before ? at / before : 1);
	return (struct cold_time){.samples = (int)count,
				  .p50_s = p50_s,
				  .p90_s = MAX(slow_s, p50_s * exp(SPREAD_Z90 * sigma))};
}

struct spread cold_spread(const struct cold *c)
{
	struct spread sum = {0};

	for (int i = 0; i < COLD_PHASES; i++) {
		struct spread part = spread_of(c->phase[i].p50_s, c->phase[i].p90_s);
		spread_add(&sum, &part);
	}
	return sum;
}

double cold_p50_s(const struct cold *c)
{
	struct spread priors = {0};
	double medians_s = 0, guessed_s = 0;

	for (int i = 0; i < COLD_PHASES; i++) {
		const struct cold_time *t = &c->phase[i];
		struct spread part = spread_of(t->p50_s, t->p90_s);
		if (!t->samples)
			spread_add(&priors, &part);
		*(t->samples ? &medians_s : &guessed_s) += t->p50_s;
	}
	return medians_s + MAX(spread_quantile(&priors, 0), guessed_s);
}

double cold_setup_s(const struct cold *c)
{
	return c->phase[COLD_SETUP].p50_s;
}

double cold_p90_s(const struct cold *c)
{
	struct spread sum = cold_spread(c);

	return MAX(spread_quantile(&sum, SPREAD_Z90), cold_p50_s(c));
}

double cold_billed_p50_s(const struct cold *c)
{
	return cold_p50_s(c) - (c->queue_is_free ? c->phase[COLD_QUEUE].p50_s : 0);
}

struct cold_ahead cold_ahead(const struct cold *c, double ahead_s)
{
	double p50_s = cold_p50_s(c), p90_s = cold_p90_s(c);

	if (ahead_s < 0)
		ahead_s = 60 * ceil(p90_s / 60 - 1e-9);
	return (struct cold_ahead){ahead_s, p50_s, MAX(ahead_s - spread_p10(p50_s, p90_s), 0.0)};
}

enum plan_source cold_source(const struct cold *c)
{
	for (int i = 0; i < COLD_PHASES; i++)
		if (!c->phase[i].samples && c->phase[i].p90_s > 0)
			return PLAN_PRIOR;
	return PLAN_MEASURED;
}

/* ---- cost: computes what a plan costs and how long it takes ---- */

double cost_usd(double price_h, double seconds)
{
	return price_h * seconds / 3600;
}

double cost_quantum_s(double seconds, double quantum_s)
{
	return quantum_s > 0 ? ceil(seconds / quantum_s - 1e-9) * quantum_s : seconds;
}

double cost_work_for_used_s(double share, double cold_s)
{
	return share / (1 - share) * cold_s;
}

double cost_volume_break_even(double month_usd, double without_usd, double with_usd)
{
	return without_usd > with_usd ? month_usd / (without_usd - with_usd) : INFINITY;
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

/* The chance of at most `events` where `mean` are expected. */
static double poisson_at_most(int events, double mean)
{
	double sum = 0;

	for (int i = 0; i <= events; i++)
		sum += exp(i * log(mean) - mean - lgamma(i + 1));
	return sum;
}

/* The mean at which the chance of at most `events` is `chance`. It falls as the mean grows. */
static double poisson_mean(int events, double chance)
{
	double low = 1e-9, high = 10 + 3.0 * events;

	for (int i = 0; i < 100; i++) {
		double mean = (low + high) / 2;
		if (poisson_at_most(events, mean) > chance)
			low = mean;
		else
			high = mean;
	}
	return (low + high) / 2;
}

struct between_limits cost_between_limits(int events, double lived_s, double one_side)
{
	return (struct between_limits){
		.low_s = lived_s / poisson_mean(events, one_side),
		.high_s = events > 0 ? lived_s / poisson_mean(events - 1, 1 - one_side) : INFINITY,
	};
}

/* ---- demand: sizes a pool of pods for arriving requests ---- */

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

/* ---- requests whose rate changes over the day ---- */

int day_pods(const struct day_goal *goal, double load, double service_s)
{
	if (!goal->set)
		return demand_pods_rule(load);
	return goal->share > 0 ? demand_pods_for_wait(load, service_s, goal->share, goal->wait_s)
			       : demand_pods_for_mean(load, service_s, goal->wait_s);
}

void day_sine(double curve[DAY_HOURS], double amplitude, int peak_hour)
{
	for (int h = 0; h < DAY_HOURS; h++)
		curve[h] = 1 + amplitude * cos(2 * M_PI * (h - peak_hour) / DAY_HOURS);
}

bool day_from_rates(double curve[DAY_HOURS], const double rates[DAY_HOURS])
{
	double sum = 0;

	for (int h = 0; h < DAY_HOURS; h++) {
		if (!(rates[h] >= 0))
			return false;
		sum += rates[h];
	}
	for (int h = 0; h < DAY_HOURS; h++)
		curve[h] = sum > 0 ? rates[h] * DAY_HOURS / sum : 0;
	return sum > 0 && isfinite(sum);
}

void day_size(struct day *out, const double curve[DAY_HOURS], double load, double service_s,
	      const struct day_goal *goal)
{
	double pod_hours = 0;

	*out = (struct day){0};
	for (int h = 0; h < DAY_HOURS; h++) {
		out->load[h] = load * curve[h];
		out->pods[h] = day_pods(goal, out->load[h], service_s);
		pod_hours += out->pods[h];
		if (curve[h] > curve[out->peak])
			out->peak = h;
		if (curve[h] < curve[out->trough])
			out->trough = h;
	}
	out->mean_pods = pod_hours / DAY_HOURS;
	out->fixed_used = load / out->pods[out->peak];
	out->following_used = load / out->mean_pods;
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
