/* promises.c - how often runs keep the 90% that was planned, before the first run and after some,
 * in worlds that the planner does not know (tests/unit/promise_worlds.c). Prints one line for each
 * number of runs; tests nothing. */
#include <stdio.h>

#include "promise_worlds.h"

enum { WORLDS = 3000, SEED = 1 };

int main(void)
{
	struct promise_point points[PROMISE_POINTS];

	promises_measure(points, WORLDS, SEED);
	printf("%d worlds\n", WORLDS);
	for (int i = 0; i < PROMISE_POINTS; i++) {
		const struct promise_point *p = &points[i];
		printf("after %2d runs: %.0f %% of the times and %.0f %% of the costs within the "
		       "90%%, which is %.0f %% and %.0f %% above the median; the median is %.0f %% "
		       "and %.0f %% off (time %+.0f %%)\n",
		       promise_runs[i], 100 * p->time_kept, 100 * p->cost_kept, 100 * p->time_width,
		       100 * p->cost_width, 100 * p->time_error, 100 * p->cost_error,
		       100 * p->time_bias);
	}
	return 0;
}
