/* plan_bed.c - works out one plan for a given machine, compares numbers, makes random ones, and
 * reads a clock. */
#include "plan_bed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

void plan_given(struct plan *out, const struct plan_work *w, const struct plan_machine *machines,
		int machine, int pods, int batch_most, const struct plan_wish *wish)
{
	struct plan_machine m = machines[machine];
	struct plan_wish only = *wish;

	m.batch_max = batch_most;
	only.pods = pods;
	only.goal = PLAN_COST;
	only.within_s = only.cap_s = only.budget_usd = 0;
	assert_int_equal(plan_choose(out, w, &m, 1, &only), PLAN_FOUND);
	out->machine = machine;
}

void assert_near(double got, double expected, double tolerance)
{
	if (fabs(got - expected) > tolerance)
		fail_msg("got %.6g, expected %.6g", got, expected);
}

uint64_t seed;

double random_between(double least, double most)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return least + (most - least) * (double)(seed >> 11) / 9007199254740992.0;
}

double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
