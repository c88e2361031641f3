/* forecast.c - sums up by the hour when pods ran, what work came, and what pods cost. */
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

/* ---- requests ---- */

/* The 99th percentile of chi-square, for so many classes less one. */
#define CHI_23 41.64
#define CHI_6  16.81

/* Whether chance alone would rarely spread arrivals so unevenly over classes of equal length. */
static bool classes_differ(const double *arrivals, int classes, double limit)
{
	double total = 0, chi = 0;

	for (int i = 0; i < classes; i++)
		total += arrivals[i];
	double expected = total / classes;
	for (int i = 0; i < classes; i++)
		chi += (arrivals[i] - expected) * (arrivals[i] - expected) / expected;
	return chi > limit;
}

static void set_shares(double *out, const double *sums, int classes, bool differ)
{
	double total = 0;

	for (int i = 0; i < classes; i++)
		total += sums[i];
	for (int i = 0; i < classes; i++)
		out[i] = differ && total > 0 ? sums[i] * classes / total : 1;
}

/* The hour of the week; *to_ms: its end. */
static int64_t local_hour(const struct forecast_offset *offsets, size_t count, int64_t at_ms,
			  int64_t *to_ms)
{
	size_t zone = 0;

	while (zone + 1 < count && offsets[zone + 1].from_ms <= at_ms)
		zone++;
	int64_t hour = (at_ms + offsets[zone].offset_ms) / HOUR_MS;
	*to_ms = (hour + 1) * HOUR_MS - offsets[zone].offset_ms;
	return (hour + THURSDAY * 24) % FORECAST_HOURS;
}

/* Sums over the whole weeks, by the hour of the week and by the week. */
struct demand_sums {
	double arrivals[FORECAST_HOURS], busy_s[FORECAST_HOURS];
	double *week_requests, *week_work_s;
};

/* Adds the time in which the arrival's requests keep pods busy, hour by hour. */
static void add_busy(struct demand_sums *sums, const struct forecast_arrival *a,
		     const struct forecast_offset *offsets, size_t offset_count)
{
	int64_t from = a->at_ms, end = from + (int64_t)(a->work_s / a->requests * 1000), to;

	for (; from < end; from = to) {
		int64_t hour = local_hour(offsets, offset_count, from, &to);
		to = MIN(to, end);
		sums->busy_s[hour] += (double)(to - from) / 1000 * a->requests;
	}
}

/* In units of `per`; the interval is by Student's t, with weeks as samples. */
static struct forecast_mean mean_of_weeks(const double *weeks, int count, double per)
{
	double sum = 0, squares = 0;

	for (int i = 0; i < count; i++) {
		sum += weeks[i];
		squares += weeks[i] * weeks[i];
	}
	double variance = MAX(squares - sum * sum / count, 0.0) / (count - 1),
	       half = student_t(count - 1) * sqrt(variance / count), mean = sum / count;
	return (struct forecast_mean){mean / per, MAX(mean - half, 0.0) / per, (mean + half) / per};
}

/* Work of one request: a ratio of sums, whose interval is that of a ratio. */
static struct forecast_mean mean_service(const struct forecast_arrival *list, size_t count,
					 int64_t from_ms, size_t arrivals)
{
	double requests = 0, work_s = 0, squares = 0;

	for (size_t i = 0; i < count; i++)
		if (list[i].at_ms >= from_ms) {
			requests += list[i].requests;
			work_s += list[i].work_s;
		}
	double mean = work_s / requests;
	for (size_t i = 0; i < count; i++) {
		double off = list[i].work_s - mean * list[i].requests;
		squares += list[i].at_ms >= from_ms ? off * off : 0;
	}
	double n = (double)arrivals,
	       half = student_t((int)arrivals - 1) * sqrt(squares / (n * (n - 1))) / (requests / n);
	return (struct forecast_mean){mean, MAX(mean - half, 0.0), mean + half};
}

static void fill_demand(struct forecast_demand *out, const struct demand_sums *sums)
{
	double hours[FORECAST_DAY_HOURS] = {0}, days[FORECAST_WEEK_DAYS] = {0},
	       hour_s[FORECAST_DAY_HOURS] = {0}, day_s[FORECAST_WEEK_DAYS] = {0};

	for (int i = 0; i < FORECAST_HOURS; i++) {
		hours[i % 24] += sums->arrivals[i];
		days[i / 24] += sums->arrivals[i];
		hour_s[i % 24] += sums->busy_s[i];
		day_s[i / 24] += sums->busy_s[i];
	}
	out->hours_differ = classes_differ(hours, FORECAST_DAY_HOURS, CHI_23);
	out->days_differ = classes_differ(days, FORECAST_WEEK_DAYS, CHI_6);
	set_shares(out->by_hour, hour_s, FORECAST_DAY_HOURS, out->hours_differ);
	set_shares(out->by_day, day_s, FORECAST_WEEK_DAYS, out->days_differ);
	out->per_week = mean_of_weeks(sums->week_requests, out->weeks, 1);
	out->load = mean_of_weeks(sums->week_work_s, out->weeks, (double)WEEK_MS / 1000);
}

bool forecast_demand(struct forecast_demand *out, const struct forecast_arrival *list, size_t count,
		     const struct forecast_offset *offsets, size_t offset_count, int64_t now_ms)
{
	int64_t first_ms = now_ms, to_ms;

	for (size_t i = 0; i < count; i++)
		first_ms = MIN(first_ms, list[i].at_ms);
	*out = (struct forecast_demand){.days = (double)(now_ms - first_ms) / (24 * HOUR_MS),
					.weeks = (int)((now_ms - first_ms) / WEEK_MS)};
	int64_t from_ms =
		out->weeks < FORECAST_WEEKS_LEAST ? first_ms : now_ms - out->weeks * WEEK_MS;
	struct demand_sums sums = {.week_requests = xcalloc((size_t)out->weeks + 1, sizeof(double)),
				   .week_work_s = xcalloc((size_t)out->weeks + 1, sizeof(double))};
	for (size_t i = 0; i < count; i++) {
		const struct forecast_arrival *a = &list[i];
		if (a->at_ms < from_ms || a->at_ms >= now_ms)
			continue;
		int64_t hour = local_hour(offsets, offset_count, a->at_ms, &to_ms),
			week = (a->at_ms - from_ms) / WEEK_MS;
		out->arrivals++;
		out->requests[hour] += a->requests;
		sums.arrivals[hour]++;
		sums.week_requests[week] += a->requests;
		sums.week_work_s[week] += a->work_s;
		add_busy(&sums, a, offsets, offset_count);
	}
	bool enough =
		out->weeks >= FORECAST_WEEKS_LEAST && out->arrivals >= FORECAST_ARRIVALS_LEAST;
	if (enough) {
		fill_demand(out, &sums);
		out->service_s = mean_service(list, count, from_ms, out->arrivals);
	}
	free(sums.week_requests);
	free(sums.week_work_s);
	return enough;
}

/* ---- prices ---- */

#define DAY_MS        (24 * HOUR_MS)
#define WORTH_WAITING 0.05

enum { DAYS_MOST = 64 };

/* The mean price in each hour of each day; 0: no look. */
struct price_days {
	double hour[DAYS_MOST][24];
	int days;
};

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the list. */
static double median(double *list, int count)
{
	qsort(list, (size_t)count, sizeof(*list), compare_doubles);
	return count % 2 ? list[count / 2] : (list[count / 2 - 1] + list[count / 2]) / 2;
}

/* Looks that are DAYS_MOST days older than the newest one count for nothing. */
static void fill_days(struct price_days *p, const struct forecast_price *looks, size_t count)
{
	int looked[DAYS_MOST][24] = {{0}};
	int64_t last = count ? looks[count - 1].local_ms / DAY_MS : 0;

	*p = (struct price_days){0};
	for (size_t i = 0; i < count; i++) {
		int64_t ago = last - looks[i].local_ms / DAY_MS;
		if (ago < 0 || ago >= DAYS_MOST || looks[i].microusd_h <= 0)
			continue;
		int hour = (int)(looks[i].local_ms % DAY_MS / HOUR_MS);
		double *mean = &p->hour[ago][hour];
		int n = ++looked[ago][hour];
		*mean += ((double)looks[i].microusd_h - *mean) / n;
		p->days = MAX(p->days, (int)ago + 1);
	}
}

/* The median of the day's hours but this one; 0: no look in another one. */
static double other_hours(const double day[24], int hour)
{
	double list[24];
	int n = 0;

	for (int h = 0; h < 24; h++)
		if (h != hour && day[h] > 0)
			list[n++] = day[h];
	return n ? median(list, n) : 0;
}

/* How likely k heads or more are in n throws of a coin. */
static double coin_tail(int k, int n)
{
	double term = exp2(-n), sum = 0; /* of n heads, then of one less */

	for (int heads = n; heads >= k; heads--) {
		sum += term;
		term *= (double)heads / (n - heads + 1);
	}
	return sum;
}

/* Advice from prices that move at random, which are as often below the day's other hours as above:
 * in at most so many ledgers, whatever number of hours they have looks in. */
#define WRONG_MOST 0.05

/* Returns false if the evidence for this hour, one of `hours`, does not hold. Sets days, cheaper
 * and saving. */
static bool is_cheaper(struct forecast_cheaper *out, const struct price_days *p, int hour,
		       int hours, double now)
{
	double savings[DAYS_MOST], prices[DAYS_MOST];
	int n = 0, cheaper = 0;

	for (int d = 0; d < p->days; d++) {
		double price = p->hour[d][hour], others = other_hours(p->hour[d], hour);
		if (price <= 0 || others <= 0)
			continue;
		prices[n] = price;
		savings[n++] = 1 - price / others;
		cheaper += 1 - price / others >= WORTH_WAITING;
	}
	if (n < FORECAST_DAYS_LEAST)
		return false;
	out->days = n;
	out->cheaper = cheaper;
	out->saving = median(savings, n);
	return coin_tail(cheaper, n) <= WRONG_MOST / hours &&
	       median(prices, n) <= (1 - WORTH_WAITING) * now;
}

/* In how many hours there are looks on enough days. */
static int count_hours(const struct price_days *p)
{
	int hours = 0;

	for (int h = 0; h < 24; h++) {
		int days = 0;
		for (int d = 0; d < p->days; d++)
			days += p->hour[d][h] > 0;
		hours += days >= FORECAST_DAYS_LEAST;
	}
	return MAX(hours, 1);
}

bool forecast_cheaper(struct forecast_cheaper *out, const struct forecast_price *looks,
		      size_t count, int64_t now_microusd_h)
{
	struct price_days p;
	bool holds[24];
	int best = -1;

	fill_days(&p, looks, count);
	int hours = count_hours(&p);
	*out = (struct forecast_cheaper){0};
	for (int h = 0; h < 24; h++) {
		struct forecast_cheaper one = {.from_hour = h};
		holds[h] = is_cheaper(&one, &p, h, hours, (double)now_microusd_h);
		if (holds[h] && (best < 0 || one.saving > out->saving)) {
			*out = one;
			best = h;
		}
	}
	if (best < 0)
		return false;
	out->to_hour = (best + 1) % 24;
	while (holds[out->to_hour] && out->to_hour != best)
		out->to_hour = (out->to_hour + 1) % 24;
	while (holds[(out->from_hour + 23) % 24] && (out->from_hour + 23) % 24 != out->to_hour)
		out->from_hour = (out->from_hour + 23) % 24;
	return true;
}

static int compare_prices(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void forecast_prices(struct forecast_prices *out, const struct forecast_price *looks, size_t count)
{
	int64_t *list = xcalloc(count + 1, sizeof(*list)), day = -1;
	int n = 0;

	*out = (struct forecast_prices){0};
	for (size_t i = 0; i < count; i++) {
		if (looks[i].microusd_h <= 0)
			continue;
		out->days += looks[i].local_ms / DAY_MS != day;
		day = looks[i].local_ms / DAY_MS;
		list[n++] = looks[i].microusd_h;
	}
	qsort(list, (size_t)n, sizeof(*list), compare_prices);
	/* the next look finds a price above k of n with the chance (n + 1 - k) / (n + 1) */
	int beyond = (n + 1) / 10;
	out->looks = n;
	if (n) {
		out->least = list[MAX(beyond - 1, 0)];
		out->most = list[MIN(n - beyond, n - 1)];
	}
	free(list);
}

int64_t forecast_reached(const struct forecast_price *looks, size_t count, int *days, int *reached)
{
	struct price_days p;
	double lowest[DAYS_MOST];
	int n = 0;

	fill_days(&p, looks, count);
	for (int d = 0; d < p.days; d++) {
		double low = 0;
		for (int h = 0; h < 24; h++)
			if (p.hour[d][h] > 0 && (low <= 0 || p.hour[d][h] < low))
				low = p.hour[d][h];
		if (low > 0)
			lowest[n++] = low;
	}
	*days = n;
	*reached = (3 * n + 3) / 4;
	if (n < FORECAST_DAYS_LEAST)
		return 0;
	qsort(lowest, (size_t)n, sizeof(*lowest), compare_doubles);
	while (*reached < n && lowest[*reached] <= lowest[*reached - 1])
		++*reached;
	return (int64_t)ceil(lowest[*reached - 1]);
}
