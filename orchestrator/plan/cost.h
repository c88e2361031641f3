/* cost.h - what a plan costs and takes: memory of a GPU, cold starts, billed time, waiting. Pure
 */
#ifndef BURST_PLAN_COST_H
#define BURST_PLAN_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "speed.h"
#include "spread.h"

/* What a plan makes small: the cost, the time, or both by what an hour of waiting costs. */
enum plan_goal { PLAN_COST, PLAN_TIME, PLAN_BALANCED };

/* ---- vram ----
 * Decides what fits into the memory of a GPU. Pure. Sizes are GiB (2^30 bytes) unless a name says
 * GB as sold. */

/* Memory of an engine: weights and all that is there once, and what each segment of a batch adds.
 * */
struct vram_need {
	double base_gib;
	double each_gib;
};

/* What a program can use of a card sold with so many GB: the least that a card reports of its label
 * (93 %), less 1 GiB for the driver's context and fragmentation. */
double vram_usable_gib(double label_gb);
/* The largest batch that fits; 0: not even one segment does. INT_MAX where a segment needs nothing.
 * */
int vram_batch_max(const struct vram_need *need, double label_gb);
bool vram_fits(double need_gib, double label_gb);

/* "fp32" 4, "fp16" and "bf16" 2, "int8" and "fp8" 1, "int4" 0.5 bytes a parameter; 0: no such
 * precision. */
double vram_precision_bytes(const char *precision);
/* Before anything was measured: weights plus 30 % for activations and caches. billions: 7 for a 7B
 * model. */
double vram_model_gib(double billions, double bytes_each);

/* ---- hold ----
 * Decides for how long a pod without work is held for the next run. Pure. */

enum {
	HOLD_GAPS_LEAST = 8, /* fewer gaps say nothing */
	HOLD_GAPS_MOST = 20  /* older ones are forgotten */
};

/* A hold is billed until the next run comes, or to its end; then the next run pays for a cold start
 * as well. gaps_ms: the newest times from when a pod had no work until the next run began, in any
 * order. Returns the hold of at most cold_ms that would have cost the least over these gaps; 0:
 * release the pod at once. With too few gaps it is cold_ms (ski rental): hold and cold start
 * together then never exceed twice the better choice. */
int64_t hold_ms(const int64_t *gaps_ms, size_t count, int64_t cold_ms);

/* ---- cold ----
 * The cold start of a pod, from the create call to its first batch, as a median and a 90th
 * percentile per phase. Pure. Plans use the median, promises of an end the 90th percentile.
 */

/* COLD_UNPACK: the environment, to the pod's disk. From COLD_IMPORT on: what workers do until
 * hello, where they tell it apart. COLD_LOAD is what is left of that time: all of it where they do
 * not. */
enum cold_phase {
	COLD_QUEUE,
	COLD_BOOT,
	COLD_CONNECT,
	COLD_SYNC,
	COLD_SETUP,
	COLD_UNPACK,
	COLD_IMPORT,
	COLD_READ,
	COLD_BUILD,
	COLD_WARM_UP,
	COLD_PROBE,
	COLD_LOAD,
	COLD_PHASES
};
const char *cold_phase_name(enum cold_phase phase); /* "queue", "boot", ... */

struct cold_time {
	double p50_s, p90_s;
	int samples; /* that it was learned from; 0: a prior */
};

struct cold {
	struct cold_time phase[COLD_PHASES];
	bool queue_is_free; /* the provider bills nothing before the container starts */
};

/* From seconds measured in earlier runs, in any order; `list` gets sorted. The p90 is that of the
 * next start: as far from the median as the samples and their number say (spread_learn()), and no
 * less than the sample that one start in ten exceeds. So one slow start of six is not forgotten. */
struct cold_time cold_learn(double *list, size_t count, struct cold_time prior);

/* All phases. They are taken as independent (spread.h), so the p90 of their sum is less than the
 * sum of the p90s. The median is the sum of those that were measured, and of priors more than their
 * sum: each may take far longer, but not far less. */
double cold_p50_s(const struct cold *c);   /* of a run's first pod, which sets up the environment */
double cold_setup_s(const struct cold *c); /* that part of it */
double cold_p90_s(const struct cold *c);
double cold_billed_p50_s(const struct cold *c); /* without a queue that is free */
struct spread cold_spread(const struct cold *c);
/* the weakest of the phases that take any time */
enum plan_source cold_source(const struct cold *c);

/* A start ahead of a known time, so that the first pod works by then. */
struct cold_ahead {
	double ahead_s;
	double waits_s; /* without it: from the time until the first pod works, in the median */
	double early_s; /* a pod may be up as long before the time; one start in ten is earlier yet
			 */
};
/* ahead_s below 0: the cold start of nine pods in ten, in whole minutes. */
struct cold_ahead cold_ahead(const struct cold *c, double ahead_s);

/* ---- prior ----
 * What burst knows of providers before this ledger has measured them, each with its date: cold
 * starts, billing, list prices of GPUs. A plan says so where it uses one of these. */

/* Mean time between losses of a pod on demand: hosts fail, too, but no
 * vendor publishes how often. For how often to save alone. */
#define PRIOR_ON_DEMAND_S (7 * 86400.0)

struct prior_provider {
	const char *name; /* NULL: any other */
	struct cold_time phase[COLD_PHASES];
	double quantum_s;     /* of billing */
	double egress_usd_gb; /* what is charged for a GB fetched from it */
	double volume_usd_gb_month;
	double interrupted_every_s; /* mean time between interruptions of a spot pod */
	const char *seen;           /* month/year of these figures */
};
const struct prior_provider *prior_of_provider(const char *name);
/* A set-up of unknown length (packages, weights), until it has run once: less than 5 minutes
 * (TheLastBen/fast-stable-diffusion issue 68), more than 30 with a video model
 * (dihan/runpod-hunyuan issue 2). Taken as 1 to 15 minutes, each factor being as likely. */
extern const struct cold_time prior_setup;
/* gpu: the job needs one, and its weights go there. */
struct cold prior_cold(const char *provider, bool gpu);

enum market { MARKET_CHEAPEST, MARKET_SECURE, MARKET_COMMUNITY, MARKET_MODAL, MARKETS };
extern const char *const market_names[MARKETS];
/* What one of this GPU is listed at, in dollars an hour, without cores and memory. 0: not offered,
 * or no price was found. *seen: month/year; NULL. MARKET_CHEAPEST is none. */
double prior_list_price(const char *gpu, enum market market, const char **seen);
/* What Modal bills of a sandbox beside its GPU, and what burst requests if the config says
 * nothing. */
#define PRIOR_MODAL_CORE_MICROUSD_H 150000
#define PRIOR_MODAL_GB_MICROUSD_H   30000
enum { PRIOR_MODAL_CORES = 4, PRIOR_MODAL_MEMORY_GB = 16 };
#define PRIOR_PRICES_SEEN "RunPod between 2025-07 and 2026-11, Modal in 2026-09"

/* Speech, by published measurements of 750 to 1000. */
#define PRIOR_CHARS_PER_MINUTE 900
#define PRIOR_SPEECH_SEEN      "2026-11"

/* ---- cost ----
 * What renting costs: cold starts, billed seconds, width, budgets, storage, spot.
 * Pure.
 *
 * Seconds and dollars are doubles here, since these are estimates; what is booked is in integer
 * micro-dollars elsewhere. The price of a pod is in dollars an hour. `cold_s` is the cold start
 * of one pod, `work_s` the computing of a whole job on one. */

double cost_usd(double price_h, double seconds);
/* Rounded up to the provider's billing quantum; 0: not rounded. */
double cost_quantum_s(double seconds, double quantum_s);

/* The work that makes this share of billed time compute (70 % needs 2.33 cold starts of work). */
double cost_work_for_used_s(double share, double cold_s);

/* The runs a month from which a volume is cheaper than none: its price a month, over what a run
 * costs less with it. INFINITY: it costs no less. */
double cost_volume_break_even(double month_usd, double without_usd, double with_usd);

/* ---- retries ---- */

/* Renders for n good items when this share of them fails its check and is rendered again. */
double cost_attempts(double items, double failing_share);

/* ---- spot ---- */

/* Billed seconds of work_s with interruptions every between_s on average: each one costs a cold
 * start and half an interval. Segments that are fetched as they finish are checkpoints that cost
 * nothing: save_s 0, every_s the time of a batch. */
double cost_spot_billed_s(double work_s, double cold_s, double save_s, double every_s,
			  double between_s);

/* Limits of the mean time between events of which `events` came in lived_s: beyond each it is with
 * the chance one_side. Exact for a Poisson count (Garwood 1936). high: INFINITY without an event.
 */
struct between_limits {
	double low_s, high_s;
};
struct between_limits cost_between_limits(int events, double lived_s, double one_side);

/* ---- demand ----
 * How many pods a stream of requests needs, and when renting beats an API or an own machine. Pure.
 * `load` is in erlang: requests a second times the seconds that each takes, the pods that are busy
 * on average. */

#define DEMAND_LOAD_MOST 100000.0 /* above it, sizing is slow and the result does not change */

/* demand_waits() to demand_wait_quantile_s() are exported for tests. Erlang C: the chance that a
 * request waits with N pods and exponential service times. 1 where N does not exceed the load. */
double demand_waits(int pods, double load);
double demand_mean_wait_s(int pods, double load, double service_s);
double demand_waits_longer(int pods, double load, double service_s, double wait_s);
/* The wait that this share of requests does not exceed (.95: p95). */
double demand_wait_quantile_s(int pods, double load, double service_s, double share);
/* Square-root rule: about a tenth of the requests waits. */
int demand_pods_rule(double load);
/* The fewest pods with which this share of requests (below 1) waits no longer than wait_s. */
int demand_pods_for_wait(double load, double service_s, double share, double wait_s);
/* The fewest with which the mean wait is no longer than wait_s. */
int demand_pods_for_mean(double load, double service_s, double wait_s);
/* One line of the table: a pool of so many pods. The quantiles are INFINITY where pods does not
 * exceed the load. */
struct demand_size {
	int pods;
	double used; /* share of the time that a pod is busy */
	double waits, mean_s, p50_s, p95_s, p99_s;
};
struct demand_size demand_size(int pods, double load, double service_s);

/* ---- requests whose rate changes over the day ---- */

enum { DAY_HOURS = 24 };

/* How long requests may wait: wait_s, for this share of them (below 1), else (share 0) on average.
 * Not set: about a tenth of them waits. */
struct day_goal {
	bool set;
	double share, wait_s;
};
/* The fewest pods for this load (erlang) that meet the goal. */
int day_pods(const struct day_goal *goal, double load, double service_s);

/* The rate in each hour as a multiple of the day's mean. A sine: amplitude (at most 1) above the
 * mean at its peak, and as far below it 12 hours later. */
void day_sine(double curve[DAY_HOURS], double amplitude, int peak_hour);
/* From rates in any unit. Returns false if one is below 0, or all are 0. */
bool day_from_rates(double curve[DAY_HOURS], const double rates[DAY_HOURS]);

struct day {
	double load[DAY_HOURS];
	int pods[DAY_HOURS]; /* of a pool that follows the curve, hour by hour */
	int peak, trough;    /* the hours with the highest and the lowest load */
	double mean_pods;    /* of that pool */
	/* shares of their time in which pods are busy: in a pool of the peak's size all day, and in
	 * one that follows the curve */
	double fixed_used, following_used;
};
/* load: of the whole day, in erlang. */
void day_size(struct day *out, const double curve[DAY_HOURS], double load, double service_s,
	      const struct day_goal *goal);

/* ---- against an API, a machine of one's own, a reservation ---- */

/* Dollars per million characters at full load; duty: the share of paid time that computes. */
double demand_usd_per_million(double price_h, double chars_per_hour, double duty);
/* The duty from which on renting is cheaper than an API; above 1: never. */
double demand_api_duty(double price_h, double chars_per_hour, double api_usd_per_million);
/* The use from which on an own GPU is cheaper than renting, over so many years. */
double demand_own_duty(double capex_usd, double opex_usd_year, double years, double price_h);

#endif
