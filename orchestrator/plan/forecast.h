/* forecast.h - what the past says of when pods run, by the hour of the week. Pure. Times are wall
 * clock ms. */
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

#endif
