/* breakeven.h - what a million characters cost on rented pods beside APIs and spot pods: list
 * prices, rates and savings. Pure. The formulas are in demand.h and cost.h. */
#ifndef BURST_PLAN_BREAKEVEN_H
#define BURST_PLAN_BREAKEVEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
