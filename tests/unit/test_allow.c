/* test_allow.c - caps over runs: what counts as spent and as reserved, what is left of a day, and
 * days that a run crosses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "runs/caps.h"
#include "base/mem.h"

#define HOUR     INT64_C(3600000)
#define DOLLAR   INT64_C(1000000)
#define MIDNIGHT INT64_C(1795219200000) /* 2026-11-21T00:00:00Z */

static void zone(const char *name)
{
	setenv("TZ", name, 1);
	tzset();
}

/* A dollar an hour. */
static struct pod_row living(int64_t create_ms, int64_t hard_end_ms)
{
	struct pod_row pod = {.create_ms = create_ms,
			      .price_microusd_h = DOLLAR,
			      .hard_end_s = hard_end_ms / 1000};

	pod.state = POD_ROW_LIVE;
	return pod;
}

static struct pod_row ended(int64_t create_ms, int64_t hours)
{
	struct pod_row pod = living(create_ms, create_ms + 24 * HOUR);

	pod.released_ms = pod.gone_ms = create_ms + hours * HOUR;
	pod.billed_ms = hours * HOUR;
	pod.cost_microusd = hours * DOLLAR;
	pod.state = POD_ROW_GONE;
	return pod;
}

static struct allowance cap_of(int64_t cap, int64_t spent, int64_t reserved)
{
	return (struct allowance){.key = "per_day",
				  .where = "burst.cfg:3",
				  .cap_microusd = cap,
				  .spent_microusd = spent,
				  .reserved_microusd = reserved,
				  .holders = reserved > 0};
}

static void a_day_gets_its_share_of_a_pod(void **state)
{
	struct pod_row pod = ended(MIDNIGHT - 2 * HOUR, 3),
		       open = living(MIDNIGHT - HOUR, MIDNIGHT + 5 * HOUR);

	(void)state;
	assert_int_equal(allow_spent(&pod, MIDNIGHT, MIDNIGHT + 9 * HOUR), DOLLAR);
	assert_int_equal(allow_spent(&pod, MIDNIGHT - 24 * HOUR, MIDNIGHT + 9 * HOUR), 3 * DOLLAR);
	assert_int_equal(allow_spent(&pod, MIDNIGHT + 2 * HOUR, MIDNIGHT + 9 * HOUR), 0);
	assert_int_equal(allow_spent(&open, MIDNIGHT, MIDNIGHT + HOUR / 2), DOLLAR / 2);
}

/* What the vendor bills beyond our count is spent, in the days in which it arose. */
static void the_vendors_larger_figure_is_spent(void **state)
{
	struct pod_row pod = ended(MIDNIGHT - 2 * HOUR, 2);

	(void)state;
	pod.billed_vendor_ms = 3 * HOUR;
	assert_int_equal(allow_spent(&pod, MIDNIGHT - 24 * HOUR, MIDNIGHT + 9 * HOUR), 3 * DOLLAR);
	assert_int_equal(allow_spent(&pod, MIDNIGHT, MIDNIGHT + 9 * HOUR), DOLLAR);
	pod.cost_vendor_microusd = 6 * DOLLAR;
	assert_int_equal(allow_spent(&pod, MIDNIGHT, MIDNIGHT + 9 * HOUR), 2 * DOLLAR);
}

/* Accepted releases end pods; one that its vendor shows later may live until its hard end. */
static void one_that_outlives_its_release_is_reserved_for(void **state)
{
	struct pod_row pod = living(MIDNIGHT, MIDNIGHT + 5 * HOUR);

	(void)state;
	pod.state = POD_ROW_RELEASING;
	pod.released_ms = MIDNIGHT + HOUR;
	assert_int_equal(allow_to_come(&pod, MIDNIGHT + 2 * HOUR), 0);
	pod.outlived_ms = pod.released_ms + 1000;
	assert_true(allow_to_come(&pod, MIDNIGHT + 2 * HOUR) >= 3 * DOLLAR);
	assert_int_equal(allow_spent(&pod, MIDNIGHT, MIDNIGHT + 2 * HOUR), 2 * DOLLAR);
}

static void a_lost_create_counts(void **state)
{
	struct pod_row pod = living(MIDNIGHT - HOUR, MIDNIGHT + 5 * HOUR);

	(void)state;
	pod.state = POD_ROW_FAILED;
	pod.released_ms = MIDNIGHT + HOUR;
	assert_int_equal(allow_spent(&pod, MIDNIGHT, MIDNIGHT + 3 * HOUR), DOLLAR);
	pod.released_ms = 0; /* its provider refused it: it never was */
	assert_int_equal(allow_spent(&pod, MIDNIGHT, MIDNIGHT + 3 * HOUR), 0);
}

static void parts_of_days_sum_to_the_pod(void **state)
{
	(void)state;
	for (int64_t cost = 1; cost < 10000000; cost = cost * 3 + 1) {
		struct pod_row pod = ended(MIDNIGHT - 7 * HOUR, 30);
		pod.cost_microusd = cost;
		int64_t all = allow_spent(&pod, 0, MIDNIGHT + 99 * HOUR),
			tail = allow_spent(&pod, MIDNIGHT, MIDNIGHT + 99 * HOUR);
		assert_int_equal(all, cost);
		/* rounded up: never too little */
		assert_true(tail >= cost * 23 / 30 && tail <= cost * 23 / 30 + 1);
	}
}

static void days_of_a_changed_clock_are_whole(void **state)
{
	static const struct {
		int64_t noon_ms;
		int64_t hours;
	} days[] = {
		{INT64_C(1774778400000), 23}, /* 2026-03-29, where DST begins */
		{INT64_C(1792926000000), 25}, /* 2026-10-25, where it ends */
		{INT64_C(1793012400000), 24},
	};

	(void)state;
	zone("Europe/Berlin");
	for (size_t i = 0; i < ARRAY_LEN(days); i++) {
		int64_t begins = spend_period_ms(days[i].noon_ms, false, false),
			ends = spend_period_ms(days[i].noon_ms, false, true);
		/* a dollar an hour, from an hour before until an hour after it */
		struct pod_row pod = ended(begins - HOUR, days[i].hours + 2);
		assert_int_equal(ends - begins, days[i].hours * HOUR);
		assert_int_equal(allow_spent(&pod, begins, ends + 9 * HOUR) -
					 allow_spent(&pod, ends, ends + 9 * HOUR),
				 days[i].hours * DOLLAR);
		assert_int_equal(allow_spent(&pod, ends, ends + 9 * HOUR), DOLLAR);
	}
}

static void a_run_holds_what_it_may_still_spend(void **state)
{
	struct run_row run = {.max_cost_microusd = 5 * DOLLAR};
	struct pod_row pods[] = {ended(MIDNIGHT, 1), living(MIDNIGHT + HOUR, MIDNIGHT + 3 * HOUR)};
	int64_t now = MIDNIGHT + 2 * HOUR;

	(void)state;
	/* 1 on the first pod, 1 on the second so far: 3 of its cap are left, whatever its pods'
	 * ends are */
	assert_int_equal(allow_reserved(&run, true, pods, 2, now), 3 * DOLLAR);
	/* nobody rents for it any more: the second may live for an hour and ten seconds */
	assert_int_equal(allow_reserved(&run, false, pods, 2, now), DOLLAR + 2778);
	/* a cap that was lowered since does not end pods */
	run.max_cost_microusd = DOLLAR;
	assert_int_equal(allow_reserved(&run, true, pods, 2, now), DOLLAR + 2778);
	pods[1].released_ms = now; /* accepted: it bills no more, though it is in lists */
	assert_int_equal(allow_reserved(&run, false, pods, 2, now), 0);
	assert_int_equal(allow_reserved(&run, false, NULL, 0, now), 0);
	run.max_cost_microusd = 5 * DOLLAR;
	assert_int_equal(allow_reserved(&run, true, NULL, 0, now), 5 * DOLLAR);
}

static void what_is_left_is_given(void **state)
{
	static const struct {
		int64_t cap, spent, reserved, wanted, least, given; /* cents */
	} cases[] = {
		{500, 0, 0, 200, 1, 200},
		{500, 410, 0, 200, 1, 90},
		{500, 200, 210, 200, 1, 90},
		{500, 500, 0, 200, 1, 0},
		{500, 700, 0, 200, 1, 0},
		{500, 0, 500, 200, 1, 0},
		{500, 410, 0, 200, 100, 0},
		{500, 410, 0, 200, 90, 90},
		/* all that it wanted: not ours to judge */
		{500, 410, 0, 200, 0, 90},
		{0, 0, 0, 200, 0, 0},
		{500, 410, 0, 90, 100, 90},
		{500, 410, 0, 90, 90, 90},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct allowance a = cap_of(cases[i].cap * 10000, cases[i].spent * 10000,
					    cases[i].reserved * 10000);
		if (allow_give(&a, 1, cases[i].wanted * 10000, cases[i].least * 10000) !=
		    cases[i].given * 10000)
			fail_msg("case %zu: %lld", i,
				 (long long)allow_give(&a, 1, cases[i].wanted * 10000,
						       cases[i].least * 10000));
	}
	assert_int_equal(allow_give(NULL, 0, 7, 0), 7);
}

static void the_tightest_cap_decides(void **state)
{
	struct allowance list[] = {cap_of(5 * DOLLAR, DOLLAR, 0),
				   cap_of(50 * DOLLAR, 48 * DOLLAR, 0), cap_of(9 * DOLLAR, 0, 0)};

	(void)state;
	assert_ptr_equal(allow_tightest(list, 3), &list[1]);
	assert_int_equal(allow_give(list, 3, 5 * DOLLAR, 0), 2 * DOLLAR);
	assert_null(allow_tightest(list, 0));
}

/* Whatever order runs begin, spend and end in, and whenever the day changes, no day costs more than
 * its cap. */
static void no_day_costs_more_than_its_cap(void **state)
{
	enum { RUNS = 40, STEPS = 4000 };
	struct {
		bool on;
		int64_t cap, cost;
	} runs[RUNS];
	uint32_t random = 1;
	const int64_t day_cap = 5 * DOLLAR;

	(void)state;
	for (int seed = 0; seed < 50; seed++) {
		int64_t day = 0;
		memset(runs, 0, sizeof(runs));
		for (int step = 0; step < STEPS; step++) {
			random = random * 1664525 + 1013904223;
			int at = (int)((random >> 8) % RUNS), what = (int)((random >> 20) % 100);
			if (what == 0) { /* midnight */
				day = 0;
			} else if (!runs[at].on) {
				struct allowance a = cap_of(day_cap, day, 0);
				for (int i = 0; i < RUNS; i++)
					a.reserved_microusd +=
						runs[i].on ? runs[i].cap - runs[i].cost : 0;
				int64_t given = allow_give(&a, 1, 2 * DOLLAR, DOLLAR / 100);
				runs[at].on = given > 0;
				runs[at].cap = given;
				runs[at].cost = 0;
			} else if (what < 80) {
				int64_t more =
					(int64_t)(random >> 4) % (runs[at].cap - runs[at].cost + 1);
				runs[at].cost += more;
				day += more;
			} else {
				runs[at].on = false;
			}
			assert_true(day <= day_cap);
		}
	}
}

static void refusals_say_what_to_do(void **state)
{
	struct allowance a = cap_of(5 * DOLLAR, 31 * DOLLAR / 10, DOLLAR);
	struct err err = {0};

	(void)state;
	zone("Europe/Berlin");
	/* 2026-10-24T20:20Z; a day of 25 hours follows */
	a.ends_ms = spend_period_ms(INT64_C(1792875600000), false, true);
	assert_int_equal(allow_refuse(&a, 2 * DOLLAR, &err), -1);
	assert_int_equal(err.kind, ERR_CAP);
	assert_string_equal(
		err.msg,
		"burst.cfg:3: $4.10 of $5.00 today are spent or reserved (caps.per_day); $1.00 of "
		"that is reserved by 1 run in progress (see `burst ps`); $0.9000 is left, but "
		"$2.00 is spent before a pod is ready: wait until 2026-10-25 00:00 or until those "
		"have ended, or raise caps.per_day; nothing was rented");
	a = cap_of(5 * DOLLAR, 6 * DOLLAR, 0);
	a.key = "per_month";
	a.project = true;
	a.ends_ms = spend_period_ms(INT64_C(1792875600000), true, true);
	allow_refuse(&a, 0, &err);
	assert_string_equal(err.msg, "burst.cfg:3: $6.00 of $5.00 this month in this project are "
				     "spent or reserved (caps.per_month): wait until 2026-11-01 "
				     "00:00, or raise caps.per_month; nothing was rented");
}

static void months_begin_where_they_do_here(void **state)
{
	(void)state;
	zone("America/New_York");
	/* 2026-03-01T00:00-05:00 to 2026-04-01T00:00-04:00: DST begins between them */
	assert_int_equal(spend_period_ms(INT64_C(1773500000000), true, false),
			 INT64_C(1772341200000));
	assert_int_equal(spend_period_ms(INT64_C(1773500000000), true, true),
			 INT64_C(1775016000000));
	assert_int_equal(spend_period_ms(INT64_C(1772341200000), true, false),
			 INT64_C(1772341200000));
	assert_int_equal(spend_period_ms(INT64_C(1772341199999), true, false),
			 INT64_C(1769922000000));
	zone("UTC");
	/* the end of 2026 */
	assert_int_equal(spend_period_ms(INT64_C(1798761599000), true, true),
			 INT64_C(1798761600000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_day_gets_its_share_of_a_pod),
		cmocka_unit_test(a_lost_create_counts),
		cmocka_unit_test(the_vendors_larger_figure_is_spent),
		cmocka_unit_test(one_that_outlives_its_release_is_reserved_for),
		cmocka_unit_test(parts_of_days_sum_to_the_pod),
		cmocka_unit_test(days_of_a_changed_clock_are_whole),
		cmocka_unit_test(a_run_holds_what_it_may_still_spend),
		cmocka_unit_test(what_is_left_is_given),
		cmocka_unit_test(the_tightest_cap_decides),
		cmocka_unit_test(no_day_costs_more_than_its_cap),
		cmocka_unit_test(refusals_say_what_to_do),
		cmocka_unit_test(months_begin_where_they_do_here),
	};

	return cmocka_run_group_tests_name("allow", tests, NULL, NULL);
}
