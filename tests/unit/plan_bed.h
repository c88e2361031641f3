/* plan_bed.h - what tests and benchmarks of the planner share: one plan worked out for a given
 * machine, numbers that are near each other, and a sequence of random ones. */
#ifndef BURST_TESTS_PLAN_BED_H
#define BURST_TESTS_PLAN_BED_H

#include <stdint.h>

#include "plan/choose.h"

/* The plan of machines[machine] with so many pods and batches of at most batch_most, where the
 * planner has no choice left. The wish's pods, deadline and budget do not count. */
void plan_given(struct plan *out, const struct plan_work *w, const struct plan_machine *machines,
		int machine, int pods, int batch_most, const struct plan_wish *wish);

void assert_near(double got, double expected, double tolerance);

extern uint64_t seed; /* of the sequence; a test sets it */
double random_between(double least, double most);
/* Of this process: other work on the machine is no part of it. */
double cpu_ms(void);

#endif
