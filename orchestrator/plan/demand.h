/* demand.h - how many pods a stream of requests needs, and when renting beats an API or an own
 * machine. Pure.
 *
 * `load` is in erlang: requests a second times the seconds that each takes, the pods that are busy
 * on average. */
#ifndef BURST_PLAN_DEMAND_H
#define BURST_PLAN_DEMAND_H

#include <stdbool.h>

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

#endif
