/* forecast.c - sums up by the hour of the week when pods ran. */
#include "forecast.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define HOUR_MS  INT64_C(3600000)
#define WEEK_MS  (FORECAST_HOURS * HOUR_MS)
#define THURSDAY 3 /* the first of January 1970, counted from Monday */
#define Z90      1.645

/* The 90 % interval of a share that was seen k times of n; n 0: 0 to 1. */
static void wilson(int k, int n, double *least, double *most)
{
	const double z2 = Z90 * Z90;

	*least = 0;
	*most = 1;
	if (n <= 0)
		return;
	double p = (double)k / n, scale = 1 + z2 / n, middle = (p + z2 / (2 * n)) / scale,
	       half = Z90 * sqrt(p * (1 - p) / n + z2 / (4.0 * n * n)) / scale;
	*least = MAX(middle - half, 0.0);
	*most = MIN(middle + half, 1.0);
}

/* The 95th percentile of Student's t. */
static double student_t(int freedom)
{
	static const double exact[] = {6.314, 2.920, 2.353, 2.132, 2.015,
				       1.943, 1.895, 1.860, 1.833, 1.812};

	return freedom <= (int)ARRAY_LEN(exact) ? exact[freedom - 1] : Z90 + 1.6 / freedom;
}

static int compare_spans(const void *a, const void *b)
{
	int64_t x = ((const struct forecast_span *)a)->from_ms,
		y = ((const struct forecast_span *)b)->from_ms;

	return (x > y) - (x < y);
}

/* Sorts the spans, cuts them to the time from since_ms to now_ms, and joins those that overlap.
 * Returns how many are left; *total_ms: of all, before they are joined. */
static size_t join_spans(struct forecast_span *spans, size_t count, int64_t since_ms,
			 int64_t now_ms, int64_t *total_ms)
{
	size_t n = 0;

	*total_ms = 0;
	if (count)
		qsort(spans, count, sizeof(*spans), compare_spans);
	for (size_t i = 0; i < count; i++) {
		int64_t from = MAX(spans[i].from_ms, since_ms),
			to = MIN(spans[i].to_ms ? spans[i].to_ms : now_ms, now_ms);
		if (to <= from)
			continue;
		*total_ms += to - from;
		if (n && from <= spans[n - 1].to_ms)
			spans[n - 1].to_ms = MAX(spans[n - 1].to_ms, to);
		else
			spans[n++] = (struct forecast_span){from, to};
	}
	return n;
}

/* How much of the time from `from` to `to` the joined spans cover. *next is the first of them that
 * may reach it: as long as `from` grows from call to call, each is passed once. */
static int64_t covered_ms(const struct forecast_span *spans, size_t count, size_t *next,
			  int64_t from, int64_t to)
{
	int64_t sum = 0;

	while (*next < count && spans[*next].to_ms <= from)
		++*next;
	for (size_t i = *next; i < count && spans[i].from_ms < to; i++)
		sum += MIN(spans[i].to_ms, to) - MAX(spans[i].from_ms, from);
	return sum;
}

/* Sets the interval of the share from the shares of whole weeks. */
static void set_interval(struct forecast *f, const struct forecast_span *spans, size_t count,
			 int64_t now_ms)
{
	double sum = 0, squares = 0;
	size_t next = 0;

	f->least = 0;
	f->most = 1;
	if (!forecast_is_enough(f))
		return;
	for (int week = f->weeks; week > 0; week--) {
		double share = (double)covered_ms(spans, count, &next, now_ms - week * WEEK_MS,
						  now_ms - (week - 1) * WEEK_MS) /
			       WEEK_MS;
		sum += share;
		squares += share * share;
	}
	double variance = MAX(squares - sum * sum / f->weeks, 0.0) / (f->weeks - 1),
	       half = student_t(f->weeks - 1) * sqrt(variance / f->weeks);
	f->least = MAX(f->share - half, 0.0);
	f->most = MIN(f->share + half, 1.0);
}

/* Adds the time from `from` to `to`, which lies within one hour of the local clock. */
static void add_piece(struct forecast_hour *hour, double *exposed_ms, int64_t from, int64_t to,
		      int64_t busy_ms)
{
	*exposed_ms += (double)(to - from);
	hour->used += (double)busy_ms;
	if (to - from < HOUR_MS)
		return;
	hour->seen++;
	hour->busy += busy_ms > 0;
}

/* Walks the time hour by hour of the local clock: an hour that a day skips is never seen, one that
 * it has twice is seen twice. */
static void fill_hours(struct forecast *f, const struct forecast_span *spans, size_t count,
		       const struct forecast_offset *offsets, size_t offset_count, int64_t since_ms,
		       int64_t now_ms)
{
	double exposed_ms[FORECAST_HOURS] = {0};
	size_t next = 0, zone = 0;

	for (int64_t from = since_ms, to; from < now_ms; from = to) {
		while (zone + 1 < offset_count && offsets[zone + 1].from_ms <= from)
			zone++;
		int64_t hour = (from + offsets[zone].offset_ms) / HOUR_MS;
		to = MIN((hour + 1) * HOUR_MS - offsets[zone].offset_ms, now_ms);
		if (zone + 1 < offset_count)
			to = MIN(to, offsets[zone + 1].from_ms);
		size_t at = (size_t)((hour + THURSDAY * 24) % FORECAST_HOURS);
		add_piece(&f->hour[at], &exposed_ms[at], from, to,
			  covered_ms(spans, count, &next, from, to));
	}
	for (size_t i = 0; i < FORECAST_HOURS; i++) {
		struct forecast_hour *h = &f->hour[i];
		h->used = exposed_ms[i] > 0 ? h->used / exposed_ms[i] : 0;
		wilson(h->busy, h->seen, &h->least, &h->most);
	}
}

bool forecast_is_enough(const struct forecast *f)
{
	return f->weeks >= FORECAST_WEEKS_LEAST;
}

void forecast_make(struct forecast *out, struct forecast_span *spans, size_t count,
		   const struct forecast_offset *offsets, size_t offset_count, int64_t since_ms,
		   int64_t now_ms)
{
	int64_t total_ms, window_ms = MAX(now_ms - since_ms, 0), used_ms = 0;

	count = join_spans(spans, count, since_ms, now_ms, &total_ms);
	for (size_t i = 0; i < count; i++)
		used_ms += spans[i].to_ms - spans[i].from_ms;
	*out = (struct forecast){.days = (double)window_ms / (24 * HOUR_MS),
				 .used_h = (double)used_ms / HOUR_MS,
				 .pod_h = (double)total_ms / HOUR_MS,
				 .share = window_ms ? (double)used_ms / (double)window_ms : 0,
				 .weeks = (int)(window_ms / WEEK_MS)};
	set_interval(out, spans, count, now_ms);
	fill_hours(out, spans, count, offsets, offset_count, since_ms, now_ms);
}

enum forecast_answer forecast_reaches(const struct forecast *f, double share)
{
	if (!forecast_is_enough(f))
		return FORECAST_UNCLEAR;
	return f->most < share ? FORECAST_NO : f->least >= share ? FORECAST_YES : FORECAST_UNCLEAR;
}
