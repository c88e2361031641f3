/* joint_impl.h - what the parts of the joint plan share: the value of a group. */
#ifndef BURST_PLAN_JOINT_IMPL_H
#define BURST_PLAN_JOINT_IMPL_H

#include <stdint.h>

#include "joint.h"

/* joint_score with lateness in ms, so that sums do not depend on their order. */
struct rank {
	int out, late;
	int64_t late_ms;
	double usd;
};
struct rank rank_sum(const struct rank *a, const struct rank *b);
int rank_compare(const struct rank *a, const struct rank *b);

/* ---- order and work ---- */

/* The job's order in any group: by when it should be done or begun, then by when it is ready. */
void joint_sort(const struct joint_case *of, int *jobs, size_t count);
/* Adds the segments of another job of the kind. *to may be zeroed. */
void joint_add_work(struct plan_work *to, const struct plan_work *from);

/* ---- a group ---- */

/* A way to render a group. */
struct variant {
	int machine, up; /* one of them is -1 */
	int width;       /* pods asked for */
	struct rank rank;
};

/* The plan of the first k+1 jobs of a group at one offer and width, handovers included. */
struct step {
	double p50_s, p90_s; /* from the start to the end of job k */
	double usd;          /* of all pods until then */
	int pods, batch;
	int width; /* pods asked for */
	double work_s;
};
/* Works out one step. before: how many jobs of the group come before it. */
void joint_step(struct step *out, const struct joint_kind *kind, const struct plan_machine *m,
		bool is_up, int width, const struct plan_work *prefix, size_t before);

/* Places the jobs in time, as late as costs nothing. Returns false if a job's own budget does not
 * pay its share. group and fates (by job) may be NULL. */
bool joint_place(const struct joint_case *of, const int *jobs, size_t count,
		 const struct variant *v, const struct step *steps, struct rank *rank,
		 struct joint_group *group, struct joint_fate *fates);

/* Widths that count, in rising order. Returns 0 at the end. */
int joint_width(const struct joint_kind *kind, const struct plan_machine *m,
		const struct plan_work *w, int index);

/* For bounds on a group's plans. */
struct least {
	double longest[PLAN_FEW_BATCHES + 2]; /* by number of batches: sum of their longest */
};
void joint_least_init(struct least *l, const struct plan_work *w);
/* What no plan on this machine is below; usd rises with the width. */
struct floor {
	int64_t late_ms; /* above 0: at least one job is late */
	double usd;
};
/* width_below: the next narrower width; 0: none. */
struct floor joint_floor(const struct least *l, const struct joint_case *of, const int *jobs,
			 size_t count, const struct plan_machine *m, const struct plan_work *w,
			 int width, int width_below);

/* The kind's machines that fit, those first that may be cheap: their plans rule others out. The
 * caller frees the list. */
int *joint_order_machines(const struct least *l, const struct joint_case *of, const int *jobs,
			  size_t count, const struct plan_work *w, size_t *machines);

/* The machine of a variant. */
const struct plan_machine *joint_machine(const struct joint_case *of, int kind,
					 const struct variant *v);

/* ---- the searches ---- */

/* A group of a solution. */
struct gang {
	int *jobs; /* sorted */
	size_t count;
	struct variant best;
};
struct gangs {
	struct gang *list;
	size_t count, cap;
};
void gangs_free(struct gangs *g);
/* Adds a copy of the jobs. */
struct gang *gangs_add(struct gangs *g, const int *jobs, size_t count, const struct variant *best);

struct rank gangs_rank(const struct gangs *g, size_t jobs); /* jobs: of the case */
/* The steps of a group, one for each job. The caller frees them. */
struct step *joint_steps(const struct joint_case *of, const struct gang *g);

/* Whether joint_exact() takes the case. */
bool joint_is_small(const struct joint_case *of);
/* All add to an empty *out. Jobs that no gang has are left out. */
void joint_exact(struct gangs *out, const struct joint_case *of);
void joint_many(struct gangs *out, const struct joint_case *of);
/* Simple solutions, each group with its best variant. pooled: all jobs of a kind together. */
void joint_simple(struct gangs *out, const struct joint_case *of, bool pooled);

#endif
