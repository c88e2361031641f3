/* promise_worlds.h - hidden worlds in which plans are kept or not: each has a true speed, true
 * boots, prices and set-ups that the planner does not know. A plan is made before the first run and
 * after some runs, each with what a ledger would have learned by then, and one run is simulated.
 * For tests/bench/promises.c and test_promises.c. */
#ifndef BURST_TESTS_PROMISE_WORLDS_H
#define BURST_TESTS_PROMISE_WORLDS_H

#include <stdint.h>

enum { PROMISE_POINTS = 4 };
extern const int promise_runs[PROMISE_POINTS]; /* 0, 1, 3 and 10 runs before */

/* The planner's constants were looked at with the worlds of the first seed. Those of the second one
 * had no part in that: what is reported and tested is theirs. */
enum { PROMISE_SEED_TUNED = 1, PROMISE_SEED_HELD_OUT = 2611 };

struct promise_point {
	double time_kept, cost_kept;   /* share of runs within the plan's 90% */
	double time_width, cost_width; /* from the median to the 90%, as a share of the median */
	double time_error, cost_error; /* of the plan's median, as a share of what came out */
	double time_bias;              /* the median of log(came out / planned) */
};

/* So many worlds, the same for the same seed. */
void promises_measure(struct promise_point out[PROMISE_POINTS], int worlds, uint64_t seed);

/* What a predictor knows of a world beside what the planner sees before the first run. */
enum promise_known {
	KNOWN_NOTHING = 0,
	KNOWN_SPEED = 1,
	KNOWN_SETUP = 2,
	KNOWN_BOOTS = 4, /* and loads */
	KNOWN_ALL = 7,   /* left is chance: hosts, batches, failed boots, interruptions */
};
/* The least median error that any prediction of the first run can have in such worlds. The
 * predictor knows the distributions from which the worlds are drawn, and what `known` says. */
struct promise_bound {
	double time_error, cost_error;
};
struct promise_bound promises_bound(int worlds, uint64_t seed, unsigned known);

#endif
