/* test_promises.c - nine runs in ten keep the plan's 90%, before the first run and after some, in
 * worlds that the planner does not know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "promise_worlds.h"

enum { WORLDS = 600, SEED = 2 };

static void nine_runs_in_ten_keep_the_promise(void **state)
{
	(void)state;
	struct promise_point points[PROMISE_POINTS];

	promises_measure(points, WORLDS, SEED);
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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(nine_runs_in_ten_keep_the_promise)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
