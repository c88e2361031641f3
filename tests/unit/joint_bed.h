/* joint_bed.h - random jobs and offers for tests of the joint plan. */
#ifndef BURST_TESTS_JOINT_BED_H
#define BURST_TESTS_JOINT_BED_H

#include <stdbool.h>

#include "plan/joint.h"

enum { BED_KINDS = 2, BED_MACHINES = 20, BED_JOBS = 200 };

struct joint_bed {
	struct plan_machine machines[BED_KINDS][BED_MACHINES];
	struct joint_kind kinds[BED_KINDS];
	struct plan_work *works;
	struct joint_job *jobs;
	struct joint_up up;
	struct joint_case of;
};

/* Draws a case from `seed` (plan_bed.h): of two kinds, most with deadlines, some with a budget, in
 * every third pods that are up. No shared budget. Free it. */
void joint_bed_random(struct joint_bed *bed, size_t jobs, size_t machines, int pods_most);
/* Sets a shared budget of about what the exact plan would cost without one. */
void joint_bed_budget(struct joint_bed *bed);
void joint_bed_free(struct joint_bed *bed);

/* Below 0: a is better. */
int joint_compare(const struct joint_score *a, const struct joint_score *b);
/* Whether a plan is as good as the exact one, but for 2 % of its lateness or its cost. */
bool joint_is_near(const struct joint_score *found, const struct joint_score *exact);
/* The work of both, as the plan adds it. */
void joint_add(struct plan_work *to, const struct plan_work *from);

#endif
