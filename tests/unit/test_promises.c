/* test_promises.c - nine runs in ten keep the plan's 90%, before the first run and after some, in
 * worlds that the planner does not know, and which had no part in tuning it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "promise_worlds.h"

enum { WORLDS = 1500, BOUND_WORLDS = 300 };

static void nine_runs_in_ten_keep_the_promise(void **state)
{
	(void)state;
	struct promise_point points[PROMISE_POINTS];

	promises_measure(points, WORLDS, PROMISE_SEED_HELD_OUT);
	for (int i = 0; i < PROMISE_POINTS; i++) {
		const struct promise_point *p = &points[i];
		print_message("after %d runs: kept %.3f and %.3f, width %.3f and %.3f, error %.3f "
			      "and %.3f\n",
			      promise_runs[i], p->time_kept, p->cost_kept, p->time_width,
			      p->cost_width, p->time_error, p->cost_error);
		assert_true(p->time_kept >= .85 && p->time_kept <= .97);
		assert_true(p->cost_kept >= .85 && p->cost_kept <= .97);
		if (i) {
			assert_true(p->time_width < points[i - 1].time_width);
			assert_true(p->cost_width < points[i - 1].cost_width);
			assert_true(p->time_error < points[0].time_error / 2);
		}
	}
	/* wide before the first run, narrow after three */
	assert_true(points[0].time_width > .7 && points[2].time_width < .4);
	assert_true(points[2].time_error < .12 && points[2].cost_error < .12);
}

/* Before the first run, what the worlds hide is the only error left: no planner does better. */
static void the_first_plan_is_about_as_good_as_any_can_be(void **state)
{
	(void)state;
	struct promise_point points[PROMISE_POINTS];
	struct promise_bound least =
		promises_bound(BOUND_WORLDS, PROMISE_SEED_HELD_OUT, KNOWN_NOTHING);
	struct promise_bound chance =
		promises_bound(BOUND_WORLDS, PROMISE_SEED_HELD_OUT, KNOWN_ALL);

	promises_measure(points, WORLDS, PROMISE_SEED_HELD_OUT);
	print_message("before the first run: error %.3f and %.3f, at least %.3f and %.3f; chance "
		      "alone %.3f and %.3f\n",
		      points[0].time_error, points[0].cost_error, least.time_error,
		      least.cost_error, chance.time_error, chance.cost_error);
	assert_true(points[0].time_error < least.time_error * 1.15);
	assert_true(points[0].cost_error < least.cost_error * 1.15);
	assert_true(points[2].time_error < chance.time_error * 1.35);
	assert_true(chance.time_error < least.time_error / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nine_runs_in_ten_keep_the_promise),
		cmocka_unit_test(the_first_plan_is_about_as_good_as_any_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
