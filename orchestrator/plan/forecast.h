/* forecast.h - what the past says of when pods run, by the hour of the week, of how much work comes
 * when, and of when pods are cheap, by the hour of the day. Pure. Times are wall clock ms. */
#ifndef BURST_PLAN_FORECAST_H
#define BURST_PLAN_FORECAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FORECAST_HOURS = 168,     /* of a week; 0 is Monday from 00:00, local time */
	FORECAST_WEEKS_LEAST = 2, /* fewer whole weeks say nothing */
};

/* A time in which a pod ran; to_ms 0: it still runs. */
struct forecast_span {
	int64_t from_ms, to_ms;
};

/* Local time minus UTC from this moment on, until the next one of the list. */
struct forecast_offset {
	int64_t from_ms, offset_ms;
};

struct forecast_hour {
	double used;        /* mean share of this hour in which a pod ran */
	int seen, busy;     /* how often this hour came; in how many of them a pod ran */
	double least, most; /* 90 % interval of busy/seen (Wilson) */
};

struct forecast {
	double days;        /* that it is from */
	double used_h;      /* in which at least one pod ran */
	double pod_h;       /* each pod's hours, added up */
	double share;       /* used_h of all hours */
	int weeks;          /* whole ones, up to the end */
	double least, most; /* 90 % interval of share, with weeks as samples; 0 and 1 if too few */
	struct forecast_hour hour[FORECAST_HOURS];
};

/* From the spans between since_ms and now_ms; sorts them. offsets: at least one, the first one from
 * since_ms or before. */
void forecast_make(struct forecast *out, struct forecast_span *spans, size_t count,
		   const struct forecast_offset *offsets, size_t offset_count, int64_t since_ms,
		   int64_t now_ms);
bool forecast_is_enough(const struct forecast *f);

enum forecast_answer { FORECAST_NO, FORECAST_YES, FORECAST_UNCLEAR };
/* Whether pods run for at least this share of all hours: clear where the interval is on one side.
 */
enum forecast_answer forecast_reaches(const struct forecast *f, double share);

/* ---- requests ---- */

enum {
	FORECAST_DAY_HOURS = 24,
	FORECAST_WEEK_DAYS = 7,       /* 0 is Monday */
	FORECAST_ARRIVALS_LEAST = 10, /* fewer in the whole weeks say nothing */
};

/* Requests that came at the same moment, each of which kept one pod busy for work_s / requests. */
struct forecast_arrival {
	int64_t at_ms;
	double requests, work_s;
};

/* A mean and its 90 % interval. */
struct forecast_mean {
	double mean, least, most;
};

struct forecast_demand {
	double days; /* since the first arrival */
	int weeks;   /* whole ones, up to now; all that follows is from these */
	size_t arrivals;
	struct forecast_mean per_week;   /* requests */
	struct forecast_mean service_s;  /* of one request */
	struct forecast_mean load;       /* pods that are busy, on average */
	double requests[FORECAST_HOURS]; /* that came in each hour of the week */
	/* load of each hour of the day and each day of the week, as multiples of the mean. All 1
	 * where chance alone would make arrivals differ as much in one ledger of a hundred
	 * (chi-square). */
	double by_hour[FORECAST_DAY_HOURS], by_day[FORECAST_WEEK_DAYS];
	bool hours_differ, days_differ;
};

/* Returns false, with days, weeks and arrivals set, if there are too few. offsets: as above, the
 * first one from the first arrival or before. */
bool forecast_demand(struct forecast_demand *out, const struct forecast_arrival *list, size_t count,
		     const struct forecast_offset *offsets, size_t offset_count, int64_t now_ms);

/* ---- prices ---- */

enum { FORECAST_DAYS_LEAST = 7 }; /* fewer days with looks say nothing */

/* One look at what a pod costs; local_ms: the moment plus the local offset. */
struct forecast_price {
	int64_t local_ms, microusd_h;
};

struct forecast_cheaper {
	int from_hour, to_hour; /* of the day; the second one is not included */
	double saving;          /* median, in the best of these hours */
	int days, cheaper;      /* with looks in that hour; of them, at least 5 % cheaper */
};
/* The hours in which a pod usually costs less than on the same day's other hours. That takes looks
 * on FORECAST_DAYS_LEAST days in that hour, 5 % on so many of them that chance alone would do so in
 * one ledger of twenty, by any of the hours (Bonferroni), and a median 5 % below the price now.
 * looks: the oldest first. */
bool forecast_cheaper(struct forecast_cheaper *out, const struct forecast_price *looks,
		      size_t count, int64_t now_microusd_h);

/* The prices between which eight looks of ten found it; of fewer than nine looks, all. */
struct forecast_prices {
	int64_t least, most; /* 0: no look */
	int looks, days;     /* days: on which there were looks */
};
void forecast_prices(struct forecast_prices *out, const struct forecast_price *looks, size_t count);

/* The lowest price that three of four days reached in some hour; *days: with looks; *reached: of
 * them, so cheap. 0: too few days. */
int64_t forecast_reached(const struct forecast_price *looks, size_t count, int *days, int *reached);

#endif
