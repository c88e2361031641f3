/* plan_bed.h - one plan, worked out for a given machine, number of pods and batch. */
#ifndef BURST_TESTS_PLAN_BED_H
#define BURST_TESTS_PLAN_BED_H

#include "plan/choose.h"

/* The plan of machines[machine] with so many pods and batches of at most batch_most, where the
 * planner has no choice left. The wish's pods, deadline and budget do not count. */
static inline void plan_given(struct plan *out, const struct plan_work *w,
			      const struct plan_machine *machines, int machine, int pods,
			      int batch_most, const struct plan_wish *wish)
{
	struct plan_machine m = machines[machine];
	struct plan_wish only = *wish;

	m.batch_max = batch_most;
	only.pods = pods;
	only.goal = PLAN_COST;
	only.deadline_s = only.budget_usd = 0;
	assert_int_equal(plan_choose(out, w, &m, 1, &only), PLAN_FOUND);
	out->machine = machine;
}

#endif
