/* test_spend.c - sums over pods: days of the local time zone, DST, the ends of months, and what a
 * run counts for. */
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

#define HOUR        INT64_C(3600000)
#define NOON_21_NOV INT64_C(1795262400000) /* 2026-11-21T12:00:00Z */

static void zone(const char *name)
{
	setenv("TZ", name, 1);
	tzset();
}

static struct pod_row pod_of(const char *run, int64_t create_ms, int64_t billed_ms, int64_t cost)
{
	struct pod_row pod = {.create_ms = create_ms,
			      .rented_ms = create_ms,
			      .released_ms = create_ms + billed_ms,
			      .gone_ms = create_ms + billed_ms,
			      .billed_ms = billed_ms,
			      .compute_ms = billed_ms / 2,
			      .cost_microusd = cost};

	COPY_TEXT(pod.run, run);
	pod.state = POD_ROW_GONE;
	COPY_TEXT(pod.provider, "local");
	return pod;
}

static void a_day_is_as_long_as_it_is_there(void **state)
{
	/* hours from noon in UTC to the second next midnight, less those to the next */
	static const struct {
		const char *zone;
		int64_t noon_ms; /* of the day before */
		int64_t hours;
	} cases[] = {
		{"UTC", NOON_21_NOV, 24},
		/* 2026-03-28; DST begins on the 29th */
		{"Europe/Berlin", INT64_C(1774699200000), 23},
		{"Europe/Berlin", INT64_C(1792843200000), 25}, /* 2026-10-24; it ends on the 25th */
		{"America/New_York", NOON_21_NOV, 24},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		zone(cases[i].zone);
		int64_t begins = spend_period_ms(cases[i].noon_ms, false, true);
		assert_int_equal(spend_period_ms(begins, false, true) - begins,
				 cases[i].hours * HOUR);
		assert_int_equal(spend_period_ms(begins - 1, false, true), begins);
	}
}

static void parts_sum_to_the_pod(void **state)
{
	(void)state;
	zone("UTC");
	/* three days and a month's end, at an odd price: 2026-11-29T22:00 to 2026-12-01T01:00 */
	struct pod_row pod =
		pod_of("r1", NOON_21_NOV + 8 * 24 * HOUR + 10 * HOUR, 27 * HOUR, 1000001);
	size_t count = 0;
	struct spend_row *rows =
		spend_sum(SPEND_BY_DAY, NULL, 0, &pod, 1, pod.gone_ms + HOUR, &count);

	assert_int_equal(count, 3);
	assert_string_equal(rows[0].key, "2026-12-01");
	assert_string_equal(rows[1].key, "2026-11-30");
	assert_string_equal(rows[2].key, "2026-11-29");
	assert_int_equal(rows[0].billed_ms, HOUR);
	assert_int_equal(rows[1].billed_ms, 24 * HOUR);
	assert_int_equal(rows[2].billed_ms, 2 * HOUR);
	assert_int_equal(rows[0].cost_microusd + rows[1].cost_microusd + rows[2].cost_microusd,
			 1000001);
	assert_int_equal(rows[0].compute_ms + rows[1].compute_ms + rows[2].compute_ms,
			 pod.compute_ms);
	assert_int_equal(rows[1].runs, 1);
	free(rows);
}

static void living_pods_count_until_now(void **state)
{
	(void)state;
	zone("UTC");
	struct pod_row pod = pod_of("r1", NOON_21_NOV, 0, 0);
	size_t count = 0;

	pod.state = POD_ROW_LIVE;
	pod.released_ms = pod.gone_ms = 0;
	pod.price_microusd_h = 500000;
	struct spend_row *rows =
		spend_sum(SPEND_BY_DAY, NULL, 0, &pod, 1, NOON_21_NOV + 2 * HOUR, &count);
	assert_int_equal(count, 1);
	assert_int_equal(rows[0].cost_microusd, 1000000);
	free(rows);
}

static void runs_are_counted_once(void **state)
{
	(void)state;
	zone("UTC");
	struct run_row runs[2] = {0};
	struct pod_row pods[4] = {
		pod_of("r1", NOON_21_NOV, HOUR, 100), pod_of("r2", NOON_21_NOV, HOUR, 1000),
		pod_of("r1", NOON_21_NOV, HOUR, 10), pod_of("lost", NOON_21_NOV, HOUR, 1)};
	size_t count = 0;

	COPY_TEXT(runs[0].id, "r1");
	COPY_TEXT(runs[0].config, "/home/a/burst.cfg");
	COPY_TEXT(runs[1].id, "r2");
	COPY_TEXT(runs[1].config, "/burst.cfg");
	struct spend_row *rows =
		spend_sum(SPEND_BY_PROJECT, runs, 2, pods, 4, NOON_21_NOV + HOUR, &count);
	assert_int_equal(count, 3);
	assert_string_equal(rows[0].key, "/"); /* the dearest */
	assert_string_equal(rows[1].key, "/home/a");
	assert_string_equal(rows[2].key, "unknown");
	assert_int_equal(rows[1].runs, 1);
	assert_int_equal(rows[1].pods, 2);
	assert_int_equal(rows[1].cost_microusd, 110);
	free(rows);
	rows = spend_sum(SPEND_BY_PROVIDER, runs, 2, pods, 4, NOON_21_NOV + HOUR, &count);
	assert_int_equal(count, 1);
	assert_int_equal(rows[0].runs, 3);
	assert_int_equal(rows[0].pods, 4);
	free(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_day_is_as_long_as_it_is_there),
		cmocka_unit_test(parts_sum_to_the_pod),
		cmocka_unit_test(living_pods_count_until_now),
		cmocka_unit_test(runs_are_counted_once),
	};

	return cmocka_run_group_tests_name("spend", tests, NULL, NULL);
}
