/* test_meter.c - the rate of an upload's line, from what has left this machine by when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/link.h"

static struct meter started(void)
{
	struct meter m;

	meter_start(&m);
	assert_int_equal(m.rate, -1);
	assert_int_equal(meter_add(&m, 1000, 0, 1 << 20, 0), MEASURED_NOTHING);
	assert_int_equal(meter_add(&m, 1010, 1000, 8 << 20, 0), MEASURED_NOTHING);
	return m;
}

/* The first window fills sshd's buffer at once, whatever the line carries. */
static void a_far_line_sends_a_window_in_each_round_trip_at_most(void **state)
{
	struct meter m = started();

	(void)state;
	assert_int_equal(meter_add(&m, 1020, METER_WINDOW / 2 - 1, 8 << 20, 100), MEASURED_NOTHING);
	assert_int_equal(meter_add(&m, 1020, METER_WINDOW, 8 << 20, 100), MEASURED_FIRST_WINDOW);
	assert_int_equal(m.rate, (int64_t)METER_WINDOW * 10);
}

static void a_slow_first_window_is_the_rate(void **state)
{
	struct meter m = started();

	(void)state;
	assert_int_equal(meter_add(&m, 3010, 1000 + METER_WINDOW / 2, 8 << 20, 100),
			 MEASURED_FIRST_WINDOW);
	assert_int_equal(m.rate, METER_WINDOW / 4);
}

static void later_rates_take_two_round_trips_and_100_ms(void **state)
{
	struct meter m = started();
	int64_t gone = METER_WINDOW, sent = INT64_C(1) << 30;

	(void)state;
	assert_int_equal(meter_add(&m, 2000, gone, sent, 80), MEASURED_FIRST_WINDOW);
	assert_int_equal(meter_add(&m, 2159, gone + 1000, sent, 80), MEASURED_NOTHING);
	assert_int_equal(meter_add(&m, 2160, gone + 1600, sent, 80), MEASURED_RATE);
	assert_int_equal(m.rate, 10000);
	assert_int_equal(meter_add(&m, 2259, gone + 2000, sent, 1), MEASURED_NOTHING);
	assert_int_equal(meter_add(&m, 2260, gone + 2000, sent, 1), MEASURED_RATE);
	assert_int_equal(m.rate, 4000);
}

/* A line that had to wait for us carries more than we saw. */
static void a_starved_line_is_not_measured(void **state)
{
	struct meter m = started();
	int64_t gone = METER_WINDOW, sent = INT64_C(1) << 30;

	(void)state;
	assert_int_equal(meter_add(&m, 2000, gone, sent, 0), MEASURED_FIRST_WINDOW);
	int64_t rate = m.rate;
	assert_int_equal(meter_add(&m, 2050, gone + 10, gone + 10, 0), MEASURED_NOTHING);
	assert_int_equal(meter_add(&m, 2200, gone + 20, sent, 0), MEASURED_NOTHING);
	assert_int_equal(m.rate, rate);
	assert_int_equal(meter_add(&m, 2300, gone + 120, sent, 0), MEASURED_RATE);
	assert_int_equal(m.rate, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_far_line_sends_a_window_in_each_round_trip_at_most),
		cmocka_unit_test(a_slow_first_window_is_the_rate),
		cmocka_unit_test(later_rates_take_two_round_trips_and_100_ms),
		cmocka_unit_test(a_starved_line_is_not_measured),
	};

	return cmocka_run_group_tests_name("meter", tests, NULL, NULL);
}
