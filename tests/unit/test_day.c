/* test_day.c - pools for requests whose rate changes over the day. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "plan/cost.h"
#include "rows.h"

static void a_sine(void **state)
{
	(void)state;
	const struct day_goal rule = {0}, half_second = {.set = true, .wait_s = 0.5};
	double curve[DAY_HOURS], flat[DAY_HOURS];
	struct day day, same, tight;

	day_sine(curve, 0.5, 14);
	day_size(&day, curve, 10, 10, &rule);
	day_size(&tight, curve, 10, 10, &half_second);
	day_sine(flat, 0, 0);
	day_size(&same, flat, 10, 10, &rule);
	/* load + 1.42 sqrt(load), rounded up: 8.18 for 5, 14.49 for 10, 20.50 for 15 */
	const struct row rows[] = {
		{"F-5", "pods at the peak", day.pods[14], 21, ABSOLUTE, 0},
		{"F-5", "which is at", day.peak, 14, ABSOLUTE, 0},
		{"F-5", "pods twelve hours later", day.pods[2], 9, ABSOLUTE, 0},
		{"F-5", "which is the trough", day.trough, 2, ABSOLUTE, 0},
		{"F-5", "pods between", day.pods[8], 15, ABSOLUTE, 0},
		{"F-5", "load there", day.load[20], 10, ABSOLUTE, 1e-9},
		{"F-5", "a fixed pool is used", day.fixed_used, 0.476, ABSOLUTE, 0.001},
		{"F-5", "mean pods", day.mean_pods, 15, ABSOLUTE, 1e-9},
		{"F-5", "that follow are used", day.following_used, 0.667, ABSOLUTE, 0.001},
		{"F-2", "without day and night", same.fixed_used, 0.667, ABSOLUTE, 0.001},
		{"F-2", "pods", same.mean_pods, 15, ABSOLUTE, 1e-9},
		{"F-3", "half a second on average, at 10", tight.pods[8], 14, ABSOLUTE, 0},
		{"F-3", "as sized alone", tight.pods[14], demand_pods_for_mean(15, 10, 0.5),
		 ABSOLUTE, 0},
	};
	check_rows("F", rows, ARRAY_LEN(rows));
}

static void hourly_rates(void **state)
{
	(void)state;
	const struct day_goal rule = {0};
	double rates[DAY_HOURS] = {[9] = 30, [10] = 18}, curve[DAY_HOURS];
	struct day day;

	assert_true(day_from_rates(curve, rates));
	day_size(&day, curve, 2, 60, &rule);
	/* 48 in all: 2 a hour on average; loads of 30 (37.8) and 18 (24.02), else 0 and one pod */
	const struct row rows[] = {
		{"rates", "load from 09:00", day.load[9], 30, ABSOLUTE, 1e-9},
		{"rates", "pods", day.pods[9], 38, ABSOLUTE, 0},
		{"rates", "pods from 10:00", day.pods[10], 25, ABSOLUTE, 0},
		{"rates", "pods of an empty hour", day.pods[0], 1, ABSOLUTE, 0},
		{"rates", "mean pods", day.mean_pods, (38 + 25 + 22) / 24.0, ABSOLUTE, 1e-9},
		{"rates", "a fixed pool is used", day.fixed_used, 2 / 38.0, ABSOLUTE, 1e-9},
	};
	check_rows("day", rows, ARRAY_LEN(rows));
	rates[3] = -1;
	assert_false(day_from_rates(curve, rates));
	assert_false(day_from_rates(curve, (const double[DAY_HOURS]){0}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sine),
		cmocka_unit_test(hourly_rates),
	};

	return cmocka_run_group_tests(tests, NULL, print_count);
}
