/* demand.h - how many pods a stream of requests needs, and when renting beats an API or an own
 * machine. Pure */
#ifndef BURST_PLAN_DEMAND_H
#define BURST_PLAN_DEMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- demand ----
 * How many pods a stream of requests needs, and when renting beats an API or an own machine.
 * Pure.
 *
 * `load` is in erlang: requests a second times the seconds that each takes, the pods that are
 * busy on average. */

#define DEMAND_LOAD_MOST 100000.0 /* above it, sizing is slow and the result does not change */

/* Erlang C: the chance that a request waits with N pods and exponential service times. 1 where N
 * does not exceed the load. */
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
/* "1/s", "20/min", "50/h", "50/d": requests a second. false: it is none of these, or not above 0.
 */
bool demand_read_rate(const char *text, double *per_s);
/* What requests wait for at most: "p95=2s" (share .95), "mean=500ms" (share 0: the mean). */
struct demand_goal {
	double share, wait_s;
};
bool demand_read_goal(const char *text, struct demand_goal *out);

/* One line of the table: a pool of so many pods. The quantiles are INFINITY where pods does not
 * exceed the load. */
struct demand_size {
	int pods;
	double used; /* share of the time that a pod is busy */
	double waits, mean_s, p50_s, p95_s, p99_s;
};
struct demand_size demand_size(int pods, double load, double service_s);

/* ---- against an API, a machine of one's own, a reservation ---- */

/* Dollars per million characters at full load; duty: the share of paid time that computes. */
double demand_usd_per_million(double price_h, double chars_per_hour, double duty);
/* The duty from which on renting is cheaper than an API; above 1: never. */
double demand_api_duty(double price_h, double chars_per_hour, double api_usd_per_million);
/* The use from which on an own GPU is cheaper than renting, over so many years. */
double demand_own_duty(double capex_usd, double opex_usd_year, double years, double price_h);
/* The use from which on a reservation with this saving is cheaper. */
double demand_reserved_duty(double saving);

/* ---- breakeven ----
 * What a million characters cost on rented pods beside APIs and spot pods: list prices, rates and
 * savings. Pure. The formulas are in demand.h and cost.h. */

enum { BREAKEVEN_NAME = 48 };

/* An API that speaks text. */
struct breakeven_api {
	char name[BREAKEVEN_NAME];
	double usd;       /* per million characters */
	const char *seen; /* month of the list price, or "as given" */
};
/* Those whose list prices are known, by price. */
const struct breakeven_api *breakeven_apis(size_t *count);
/* NULL: no list price is known. */
const struct breakeven_api *breakeven_find_api(const char *name);
/* "openai-tts-1=12": any name with a price in dollars. False: it is not that. */
bool breakeven_read_api(const char *text, struct breakeven_api *out);

/* What renting one kind of pod gives. */
struct breakeven_rate {
	double price_h;        /* dollars */
	double chars_per_hour; /* of computing */
	double duty;           /* share of billed time that computes, at most 1 */
};
/* From what a run rendered and took. False: one of these is 0, so that the run shows no rate. */
bool breakeven_rate(double chars, int64_t compute_ms, int64_t billed_ms, int64_t cost_microusd,
		    struct breakeven_rate *out);

/* "18750+2000/y": what a card of one's own costs, once and each year. False: it is not that. */
bool breakeven_read_own(const char *text, double *capex_usd, double *opex_usd_year);
/* "40%", "40" or "0.4": a share above 0, and 1 at most. False: it is not that. */
bool breakeven_read_share(const char *text, double *share);

/* Work on one spot pod; seconds. */
struct breakeven_spot {
	double work_s, cold_s;
	double every_s;      /* between interruptions */
	double checkpoint_s; /* between fetched files */
};
/* The share of the price that a spot pod must be cheaper by. */
double breakeven_spot_worth(const struct breakeven_spot *s);
/* The share of the cost that spot pods save at this share off the price; below 0: they lose. */
double breakeven_spot_saving(const struct breakeven_spot *s, double off);

#endif
