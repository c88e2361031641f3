/* test_forecast.c - when pods run and work comes, by the hour of the week. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>

#include <cmocka.h>

#include "base/mem.h"
#include "plan/forecast.h"
#include "plan_bed.h"
#include "rows.h"

#define HOUR INT64_C(3600000)
#define DAY  (24 * HOUR)
#define WEEK (7 * DAY)
#define FROM INT64_C(1793577600000) /* Monday 2026-11-02 00:00 UTC */

static const struct forecast_offset utc[] = {{0, 0}};

static void mondays(void **state)
{
	(void)state;
	/* At 02:00 on the first, second and fourth Monday of four weeks; on the fourth a second
	 * pod runs from 02:30 to 03:30. */
	struct forecast_span spans[] = {
		{FROM + 3 * WEEK + 2 * HOUR + HOUR / 2, FROM + 3 * WEEK + 3 * HOUR + HOUR / 2},
		{FROM + 2 * HOUR, FROM + 3 * HOUR},
		{FROM + WEEK + 2 * HOUR, FROM + WEEK + 3 * HOUR},
		{FROM + 3 * WEEK + 2 * HOUR, FROM + 3 * WEEK + 3 * HOUR},
	};
	struct forecast f;

	forecast_make(&f, spans, ARRAY_LEN(spans), utc, 1, FROM, FROM + 4 * WEEK);
	/* weeks of 1, 1, 0 and 1.5 h: deviation sqrt(1.1875/3), t(3) = 2.353 */
	const struct row rows[] = {
		{"mondays", "days", f.days, 28, ABSOLUTE, 1e-9},
		{"mondays", "hours in use", f.used_h, 3.5, ABSOLUTE, 1e-9},
		{"mondays", "pod hours", f.pod_h, 4, ABSOLUTE, 1e-9},
		{"mondays", "share", f.share, 3.5 / 672, ABSOLUTE, 1e-9},
		{"mondays", "weeks", f.weeks, 4, ABSOLUTE, 0},
		{"mondays", "share at least", f.least, (0.875 - 0.7402) / 168, ABSOLUTE, 1e-6},
		{"mondays", "share at most", f.most, (0.875 + 0.7402) / 168, ABSOLUTE, 1e-6},
		{"mondays", "from 02:00", f.hour[2].used, 0.75, ABSOLUTE, 1e-9},
		{"mondays", "came", f.hour[2].seen, 4, ABSOLUTE, 0},
		{"mondays", "with pods", f.hour[2].busy, 3, ABSOLUTE, 0},
		{"mondays", "at least", f.hour[2].least, 0.3561, ABSOLUTE, 1e-4},
		{"mondays", "at most", f.hour[2].most, 0.9421, ABSOLUTE, 1e-4},
		{"mondays", "from 03:00", f.hour[3].used, 0.125, ABSOLUTE, 1e-9},
		{"mondays", "on Tuesday", f.hour[26].used, 0, ABSOLUTE, 0},
		{"mondays", "on Tuesday at most", f.hour[26].most, 2.706 / 6.706, ABSOLUTE, 1e-4},
		{"mondays", "from a share of 0.9 % on", forecast_reaches(&f, 0.009),
		 FORECAST_UNCLEAR, ABSOLUTE, 0},
		{"mondays", "from 0.97 % on", forecast_reaches(&f, 0.0097), FORECAST_NO, ABSOLUTE,
		 0},
		{"mondays", "from 0.08 % on", forecast_reaches(&f, 0.0008), FORECAST_YES, ABSOLUTE,
		 0},
	};
	check_rows("forecast", rows, ARRAY_LEN(rows));
}

static void an_hour_that_comes_twice(void **state)
{
	(void)state;
	/* Berlin: on Sunday 2026-10-25 at 01:00 UTC the clock goes back from 03:00 to 02:00. The
	 * pod runs from 02:00 to the end of the second hour that begins so. */
	const int64_t back = INT64_C(1792890000000), since = INT64_C(1791842400000);
	const struct forecast_offset berlin[] = {{0, 2 * HOUR}, {back, HOUR}};
	struct forecast_span spans[] = {{back - HOUR, back + HOUR}};
	struct forecast f;

	forecast_make(&f, spans, 1, berlin, 2, since, since + 2 * WEEK + HOUR);
	const struct row rows[] = {
		{"autumn", "hours in use", f.used_h, 2, ABSOLUTE, 1e-9},
		{"autumn", "Sunday at 02:00 came", f.hour[146].seen, 3, ABSOLUTE, 0},
		{"autumn", "with pods", f.hour[146].busy, 2, ABSOLUTE, 0},
		{"autumn", "used", f.hour[146].used, 2 / 3.0, ABSOLUTE, 1e-9},
		{"autumn", "at 01:00", f.hour[145].busy, 0, ABSOLUTE, 0},
		{"autumn", "at 03:00", f.hour[147].busy, 0, ABSOLUTE, 0},
		{"autumn", "Tuesday at 00:00 came", f.hour[24].seen, 2, ABSOLUTE, 0},
		{"autumn", "Monday at 23:00 came", f.hour[23].seen, 2, ABSOLUTE, 0},
	};
	check_rows("forecast", rows, ARRAY_LEN(rows));
}

static void an_hour_that_never_comes(void **state)
{
	(void)state;
	/* Berlin: on Sunday 2027-03-28 at 01:00 UTC the clock goes on from 02:00 to 03:00. */
	const int64_t forth = INT64_C(1806195600000);
	const struct forecast_offset berlin[] = {{0, HOUR}, {forth, 2 * HOUR}};
	struct forecast_span spans[] = {{forth - HOUR, forth + HOUR}};
	struct forecast f;

	forecast_make(&f, spans, 1, berlin, 2, forth - WEEK, forth + WEEK);
	const struct row rows[] = {
		{"spring", "hours in use", f.used_h, 2, ABSOLUTE, 1e-9},
		{"spring", "Sunday at 01:00", f.hour[145].busy, 1, ABSOLUTE, 0},
		{"spring", "at 02:00 came, a week before and after", f.hour[146].seen, 2, ABSOLUTE,
		 0},
		{"spring", "with pods", f.hour[146].busy, 0, ABSOLUTE, 0},
		{"spring", "at 03:00", f.hour[147].busy, 1, ABSOLUTE, 0},
	};
	check_rows("forecast", rows, ARRAY_LEN(rows));
}

static void edges(void **state)
{
	(void)state;
	const int64_t now = FROM + 3 * DAY;
	/* one that still runs for 90 minutes; one that began before; one that a wrong clock dates
	 * into the future; one that never ran */
	struct forecast_span spans[] = {
		{now - HOUR - HOUR / 2, 0},
		{FROM - DAY, FROM + HOUR},
		{now + HOUR, now + 2 * HOUR},
		{FROM + DAY, FROM + DAY},
	};
	struct forecast f, none;

	forecast_make(&f, spans, ARRAY_LEN(spans), utc, 1, FROM, now);
	forecast_make(&none, NULL, 0, utc, 1, now, now);
	const struct row rows[] = {
		{"edges", "hours in use", f.used_h, 2.5, ABSOLUTE, 1e-9},
		{"edges", "pod hours", f.pod_h, 2.5, ABSOLUTE, 1e-9},
		{"edges", "days", f.days, 3, ABSOLUTE, 1e-9},
		{"edges", "Wednesday from 22:00", f.hour[70].used, 0.5, ABSOLUTE, 1e-9},
		{"edges", "from 23:00", f.hour[71].used, 1, ABSOLUTE, 1e-9},
		{"edges", "Monday from 00:00", f.hour[0].used, 1, ABSOLUTE, 1e-9},
		{"edges", "three days are enough", forecast_is_enough(&f), 0, ABSOLUTE, 0},
		{"edges", "at least", f.least, 0, ABSOLUTE, 0},
		{"edges", "at most", f.most, 1, ABSOLUTE, 0},
		{"edges", "to tell", forecast_reaches(&f, 0.9), FORECAST_UNCLEAR, ABSOLUTE, 0},
		{"edges", "of no time at all", none.share, 0, ABSOLUTE, 0},
	};
	check_rows("forecast", rows, ARRAY_LEN(rows));
}

/* ---- prices ---- */

/* Adds a look at 14:00 for 1 dollar, and one at each of these hours for the price, on this day. */
static size_t add_day(struct forecast_price *to, size_t n, int day, int from, int hours,
		      int64_t microusd_h)
{
	for (int h = from; h < from + hours; h++)
		to[n++] = (struct forecast_price){day * DAY + h * HOUR + 300000, microusd_h};
	to[n++] = (struct forecast_price){day * DAY + 14 * HOUR, 1000000};
	return n;
}

static void cheap_nights(void **state)
{
	(void)state;
	struct forecast_price looks[64];
	struct forecast_cheaper night, none;
	size_t n = 0;
	int days, reached;

	/* eleven days: at 02:00 it costs 0.82 on ten of them, else as much as at 14:00 */
	for (int day = 0; day < 11; day++)
		n = add_day(looks, n, 20000 + day, 2, 1, day == 4 ? 1000000 : 820000);
	assert_true(forecast_cheaper(&night, looks, n, 1000000));
	const struct row rows[] = {
		{"night", "from", night.from_hour, 2, ABSOLUTE, 0},
		{"night", "to", night.to_hour, 3, ABSOLUTE, 0},
		{"night", "saving", night.saving, 0.18, ABSOLUTE, 1e-9},
		{"night", "days", night.days, 11, ABSOLUTE, 0},
		{"night", "cheaper", night.cheaper, 10, ABSOLUTE, 0},
		/* 9 of 11 are three of four, so 0.82 is reached, on ten */
		{"night", "reached", (double)forecast_reached(looks, n, &days, &reached), 820000,
		 ABSOLUTE, 0},
		{"night", "on", reached, 10, ABSOLUTE, 0},
		{"night", "of", days, 11, ABSOLUTE, 0},
		/* the same price now, or little more: there is nothing to wait for */
		{"night", "at 0.85 now", forecast_cheaper(&none, looks, n, 850000), 0, ABSOLUTE, 0},
		{"night", "at 0.87 now", forecast_cheaper(&none, looks, n, 870000), 1, ABSOLUTE, 0},
		/* the first six days alone */
		{"night", "after six days", forecast_cheaper(&none, looks, 12, 1000000), 0,
		 ABSOLUTE, 0},
		{"night", "reached after six", (double)forecast_reached(looks, 12, &days, &reached),
		 0, ABSOLUTE, 0},
	};
	check_rows("prices", rows, ARRAY_LEN(rows));
}

static void between_which_prices(void **state)
{
	(void)state;
	struct forecast_price looks[19];
	struct forecast_prices none, few, nine, all;

	/* 0.50 to 0.68 dollars, in no order, two looks on each of ten days */
	for (int i = 0; i < 19; i++)
		looks[i] = (struct forecast_price){(20000 + i / 2) * DAY + i % 2 * HOUR,
						   500000 + 10000 * (i * 7 % 19)};
	forecast_prices(&none, looks, 0);
	forecast_prices(&few, looks, 3); /* 0.50, 0.57, 0.64 */
	forecast_prices(&nine, looks, 9);
	forecast_prices(&all, looks, 19);
	const struct row rows[] = {
		{"none", "looks", none.looks + (int)none.most, 0, ABSOLUTE, 0},
		{"three", "least", (double)few.least, 500000, ABSOLUTE, 0},
		{"three", "most", (double)few.most, 640000, ABSOLUTE, 0},
		{"three", "days", few.days, 2, ABSOLUTE, 0},
		/* the tenth look exceeds the highest of nine one time in ten */
		{"nine", "most", (double)nine.most, 680000, ABSOLUTE, 0},
		/* and the twentieth the second highest of 19 */
		{"all", "least", (double)all.least, 510000, ABSOLUTE, 0},
		{"all", "most", (double)all.most, 670000, ABSOLUTE, 0},
		{"all", "looks", all.looks, 19, ABSOLUTE, 0},
		{"all", "days", all.days, 10, ABSOLUTE, 0},
	};
	check_rows("prices", rows, ARRAY_LEN(rows));
}

static void no_cheap_hours(void **state)
{
	(void)state;
	struct forecast_price looks[96];
	struct forecast_cheaper some;
	size_t n = 0, half, little;
	int days, reached;

	/* on six of eight nights: chance does so in one of seven */
	for (int day = 0; day < 8; day++)
		n = add_day(looks, n, 20000 + day, 2, 1, day < 6 ? 820000 : 1000000);
	half = forecast_cheaper(&some, looks, n, 1000000);
	n = 0; /* by 4 % every night */
	for (int day = 0; day < 8; day++)
		n = add_day(looks, n, 20000 + day, 2, 1, 960000);
	little = forecast_cheaper(&some, looks, n, 1000000);
	n = 0; /* from 22:00 to 02:00, over midnight */
	for (int day = 0; day < 8; day++) {
		n = add_day(looks, n, 20000 + day, 0, 2, 500000);
		for (int h = 10; h < 13; h++)
			looks[n++] =
				(struct forecast_price){(20000 + day) * DAY + h * HOUR, 1000000};
		for (int h = 22; h < 24; h++)
			looks[n++] =
				(struct forecast_price){(20000 + day) * DAY + h * HOUR, 500000};
	}
	assert_true(forecast_cheaper(&some, looks, n, 1000000));
	const struct row rows[] = {
		{"six of eight", "holds", (double)half, 0, ABSOLUTE, 0},
		{"4 %", "holds", (double)little, 0, ABSOLUTE, 0},
		{"over midnight", "from", some.from_hour, 22, ABSOLUTE, 0},
		{"over midnight", "to", some.to_hour, 2, ABSOLUTE, 0},
		{"over midnight", "saving", some.saving, 0.5, ABSOLUTE, 1e-9},
		{"none", "reached", (double)forecast_reached(NULL, 0, &days, &reached), 0, ABSOLUTE,
		 0},
	};
	check_rows("prices", rows, ARRAY_LEN(rows));
}

/* Prices that move at random, each hour's by itself or each from the last one, in 10 to 35 days: no
 * advice in 95 % of the ledgers. A real discount is seen. */
static void chance_gives_no_advice(void **state)
{
	(void)state;
	enum { LEDGERS = 400 };
	static struct forecast_price looks[35 * 24];
	struct forecast_cheaper some;
	int wrong[2] = {0}, found = 0;

	seed = 7;
	for (int i = 0; i < LEDGERS; i++) {
		int days = 10 + i % 26, n = days * 24, walks = i % 2;
		double price = 1e6;
		for (int k = 0; k < n; k++) {
			double step = random_between(-.3, .3);
			price = walks ? MAX(MIN(price * exp(step / 3), 4e6), 2e5) : 1e6 * exp(step);
			looks[k] = (struct forecast_price){20000 * DAY + k * HOUR, (int64_t)price};
		}
		wrong[walks] += forecast_cheaper(&some, looks, (size_t)n, 1500000);
		for (int k = 3; k < n; k += 24)
			looks[k].microusd_h = looks[k].microusd_h / 2;
		found += !walks && forecast_cheaper(&some, looks, (size_t)n, 1500000) &&
			 some.from_hour == 3;
	}
	/* of 200 each: 5 % */
	assert_in_range(wrong[0], 0, 10);
	assert_in_range(wrong[1], 0, 10);
	assert_true(found > LEDGERS / 2 * 9 / 10);
}

static void work_by_the_hour(void **state)
{
	(void)state;
	/* Each day of four weeks at 09:30 a request of 90 minutes, on Mondays three more; in the
	 * last week none on Sunday. */
	struct forecast_arrival list[64];
	const int64_t now = FROM + 4 * WEEK + 10 * HOUR;
	struct forecast_demand f;
	size_t n = 0;

	for (int day = 0; day < 28; day++)
		for (int i = 0; i < (day % 7 == 0 ? 8 : 1) - (day == 27); i++)
			list[n++] = (struct forecast_arrival){
				FROM + day * DAY + 9 * HOUR + HOUR / 2, 1, 5400};
	assert_true(forecast_demand(&f, list, n, utc, 1, now));
	/* the whole weeks begin at 10:00 on the first Monday, whose eight are left out; weeks of
	 * 14, 14, 14 and 5: mean 11.75, deviation 4.5, t(3) = 2.353 */
	const struct row rows[] = {
		{"work", "arrivals", (double)f.arrivals, 47, ABSOLUTE, 0},
		{"work", "weeks", f.weeks, 4, ABSOLUTE, 0},
		{"work", "a week", f.per_week.mean, 11.75, ABSOLUTE, 1e-9},
		{"work", "at least", f.per_week.least, 11.75 - 2.353 * 2.25, ABSOLUTE, 1e-9},
		{"work", "at most", f.per_week.most, 11.75 + 2.353 * 2.25, ABSOLUTE, 1e-9},
		{"work", "of one", f.service_s.mean, 5400, ABSOLUTE, 1e-9},
		{"work", "of one at most", f.service_s.most, 5400, ABSOLUTE, 1e-9},
		{"work", "load", f.load.mean, 11.75 * 1.5 / 168, ABSOLUTE, 1e-9},
		{"work", "from 09:00", f.by_hour[9], 24 / 3.0, ABSOLUTE, 1e-9},
		{"work", "from 10:00", f.by_hour[10], 48 / 3.0, ABSOLUTE, 1e-9},
		{"work", "from 11:00", f.by_hour[11], 0, ABSOLUTE, 1e-9},
		{"work", "on Mondays at 09:00", f.requests[9], 24, ABSOLUTE, 0},
		{"work", "on Mondays", f.by_day[0], 24 * 7 / 47.0, ABSOLUTE, 1e-9},
		{"work", "on Sundays", f.by_day[6], 3 * 7 / 47.0, ABSOLUTE, 1e-9},
	};
	check_rows("demand", rows, ARRAY_LEN(rows));
}

static void work_at_random(void **state)
{
	(void)state;
	struct forecast_arrival list[20];
	struct forecast_demand f;

	/* every 25 h: each hour of the day once, in 20 days; ten requests each, of 60 s and of 120
	 * s */
	for (int i = 0; i < 20; i++)
		list[i] = (struct forecast_arrival){FROM + i * 25 * HOUR, 10, i % 2 ? 600 : 1200};
	assert_true(forecast_demand(&f, list, 20, utc, 1, FROM + 3 * WEEK));
	/* residuals of 300 s each: 300 x sqrt(20 / 19) / sqrt(20) / 10, t(19) = 1.645 + 1.6 / 19 */
	const struct row rows[] = {
		{"random", "hours differ", f.hours_differ, 0, ABSOLUTE, 0},
		{"random", "days differ", f.days_differ, 0, ABSOLUTE, 0},
		{"random", "from 03:00", f.by_hour[3], 1, ABSOLUTE, 0},
		{"random", "on Tuesdays", f.by_day[1], 1, ABSOLUTE, 0},
		{"random", "of one", f.service_s.mean, 90, ABSOLUTE, 1e-9},
		{"random", "of one at least", f.service_s.least, 90 - 1.72921 * 6.88247, ABSOLUTE,
		 1e-3},
		{"random", "a week", f.per_week.mean, 200 / 3.0, ABSOLUTE, 1e-9},
	};
	check_rows("demand", rows, ARRAY_LEN(rows));
	assert_false(forecast_demand(&f, list, 20, utc, 1, FROM + 14 * DAY - 1));
	assert_int_equal(f.weeks, 1);
	assert_int_equal(f.arrivals, 14);
	assert_false(forecast_demand(&f, list + 11, 9, utc, 1, FROM + 5 * WEEK));
	assert_int_equal(f.arrivals, 6); /* in the last three weeks */
	assert_false(forecast_demand(&f, NULL, 0, utc, 1, FROM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mondays),
		cmocka_unit_test(an_hour_that_comes_twice),
		cmocka_unit_test(an_hour_that_never_comes),
		cmocka_unit_test(edges),
		cmocka_unit_test(work_by_the_hour),
		cmocka_unit_test(work_at_random),
		cmocka_unit_test(between_which_prices),
		cmocka_unit_test(cheap_nights),
		cmocka_unit_test(no_cheap_hours),
		cmocka_unit_test(chance_gives_no_advice),
	};

	return cmocka_run_group_tests(tests, NULL, print_count);
}
