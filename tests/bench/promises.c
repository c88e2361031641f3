/* promises.c - how often runs keep the 90% that was planned, before the first run and after some,
 * in worlds that the planner does not know (tests/unit/promise_worlds.c), and the least error that
 * any planner could have there. Tests nothing. */
#include <stdio.h>

#include "base/mem.h"
#include "promise_worlds.h"

enum { WORLDS = 3000, BOUND_WORLDS = 1000 };

static void print_points(const char *name, uint64_t seed)
{
	struct promise_point points[PROMISE_POINTS];

	promises_measure(points, WORLDS, seed);
	printf("%s, %d worlds:\n", name, WORLDS);
	for (int i = 0; i < PROMISE_POINTS; i++) {
		const struct promise_point *p = &points[i];
		printf("after %2d runs: %.0f %% of the times and %.0f %% of the costs within the "
		       "90%%, which is %.0f %% and %.0f %% above the median; the median is %.0f %% "
		       "and %.0f %% off (time %+.0f %%)\n",
		       promise_runs[i], 100 * p->time_kept, 100 * p->cost_kept, 100 * p->time_width,
		       100 * p->cost_width, 100 * p->time_error, 100 * p->cost_error,
		       100 * p->time_bias);
	}
}

static void print_bounds(void)
{
	static const struct {
		const char *name;
		unsigned known;
	} predictors[] = {
		{"the ranges of these worlds", KNOWN_NOTHING},
		{"and the length of the set-up", KNOWN_SETUP},
		{"and the speed", KNOWN_SPEED},
		{"and boots and loads", KNOWN_BOOTS},
		{"and all of that", KNOWN_ALL},
	};

	printf("the least median error before the first run that any planner can have, if it "
	       "knows\n");
	for (size_t i = 0; i < ARRAY_LEN(predictors); i++) {
		struct promise_bound b =
			promises_bound(BOUND_WORLDS, PROMISE_SEED_HELD_OUT, predictors[i].known);
		printf("  %s: %.0f %% (time), %.0f %% (cost)\n", predictors[i].name,
		       100 * b.time_error, 100 * b.cost_error);
	}
}

int main(void)
{
	print_points("worlds that the constants were tuned on", PROMISE_SEED_TUNED);
	print_points("held-out worlds", PROMISE_SEED_HELD_OUT);
	print_bounds();
	return 0;
}
