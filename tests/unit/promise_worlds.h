/* promise_worlds.h - hidden worlds in which plans are kept or not: each has a true speed, true
 * boots, prices and set-ups that the planner does not know. A plan is made before the first run and
 * after some runs, each with what a ledger would have learned by then, and one run is simulated.
 * For tests/bench/promises.c and test_promises.c. */
#ifndef BURST_TESTS_PROMISE_WORLDS_H
#define BURST_TESTS_PROMISE_WORLDS_H

#include <stdint.h>

enum { PROMISE_POINTS = 4 };
extern const int promise_runs[PROMISE_POINTS]; /* 0, 1, 3 and 10 runs before */

struct promise_point {
	double time_kept, cost_kept;   /* share of runs within the plan's 90% */
	double time_width, cost_width; /* from the median to the 90%, as a share of the median */
	double time_error, cost_error; /* of the plan's median, as a share of what came out */
	double time_bias;              /* the median of log(came out / planned) */
};

/* So many worlds, the same for the same seed. */
void promises_measure(struct promise_point out[PROMISE_POINTS], int worlds, uint64_t seed);

#endif
