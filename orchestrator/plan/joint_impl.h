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

/* ---- what all searches of a case look up ---- */

struct joint_machine {
	struct plan_machine m; /* of pods that are up: without a cold start */
	struct plan_basis basis;
	double handover_s;
	bool is_up;
};
struct joint_facts {
	const struct joint_case *of;
	struct joint_machine **machines; /* by kind */
	struct joint_machine *ups;
};
/* Frees with joint_facts_free(). */
void joint_facts_init(struct joint_facts *f, const struct joint_case *of);
void joint_facts_free(struct joint_facts *f);
/* The machine of a variant. */
struct variant;
const struct joint_machine *joint_machine(const struct joint_facts *f, int kind,
					  const struct variant *v);

/* ---- order and work ---- */

/* The job's order in any group: by when it should be done or begun, then by when it is ready. */
void joint_sort(const struct joint_case *of, int *jobs, size_t count);
/* The jobs of both, in their order; the caller frees them. */
int *joint_join(const struct joint_case *of, const int *a, size_t a_count, const int *b,
		size_t b_count);
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
void joint_step(struct step *out, const struct joint_kind *kind, const struct joint_machine *on,
		int width, const struct plan_work *prefix, size_t before);

/* Places the jobs in time, as late as costs nothing. Returns false if a job's own budget does not
 * pay its share. group and fates (by job) may be NULL. */
bool joint_place(const struct joint_facts *f, const int *jobs, size_t count,
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
/* A group's work up to the job at this place. */
struct mark {
	size_t at;
	const struct plan_work *work;
	const struct least *least;
};
enum { MARKS_MOST = 9 };
struct outline {
	const struct joint_facts *f;
	const int *jobs; /* sorted, of one kind */
	size_t count;
	struct mark marks[MARKS_MOST]; /* rising; the last one's job is the last one */
	size_t mark_count;
};
/* What no plan of the group on this machine is below that asks for `width` pods and rents at least
 * `fewest`. */
struct rank joint_floor(const struct outline *o, const struct joint_machine *on, int width,
			int fewest);
/* How many pods such a plan rents at least, if those with fewer have been looked at: one in stages
 * may rent fewer than it asks for. width_below: the next narrower width; 0: none. */
int joint_fewest(const struct joint_kind *kind, int width, int width_below);

/* A machine that fits, and what no plan of the group on it is below. */
struct promising {
	struct rank least;
	int machine;
};
/* All of the kind, the best first; the caller frees the list. */
struct promising *joint_order_machines(const struct outline *o, size_t *count);

/* ---- solutions ---- */

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
/* Moves the last one into its place. */
void gangs_remove(struct gangs *g, size_t i);
void gangs_copy(struct gangs *to, const struct gangs *from);

struct rank gangs_rank(const struct gangs *g, size_t jobs); /* jobs: of the case */
/* The steps of a group, one for each job. The caller frees them. */
struct step *joint_steps(const struct joint_facts *f, const struct gang *g);

/* Whether joint_exact() takes the case. */
bool joint_is_small(const struct joint_case *of);
/* All add to an empty *out. Jobs that no gang has are left out. */
void joint_exact(struct gangs *out, const struct joint_facts *f);
void joint_many(struct gangs *out, const struct joint_facts *f);
/* Simple solutions, each group with its best variant. pooled: all jobs of a kind together. */
void joint_simple(struct gangs *out, const struct joint_facts *f, bool pooled);

/* ---- the search among many ---- */

struct many {
	const struct joint_facts *f;
	const struct joint_case *of;
	double budget_usd; /* INFINITY: it does not bind, or not yet */
	bool by_cost;      /* cost alone counts */
	int effort;        /* so far; a plan that was worked out is 10 */
	int effort_most;
	bool *up_used;       /* by groups that are not in question */
	struct alone *alone; /* by job */
	uint64_t *failed;    /* moves that did not help */
	size_t failed_count;
	uint64_t random;
};
void many_init(struct many *m, const struct joint_facts *f);
void many_free(struct many *m);
bool many_may_go_on(const struct many *m);

extern const struct rank rank_worst;

struct query {
	const int *jobs;
	size_t count;
	double usd_most;   /* INFINITY: no limit */
	struct rank below; /* the answer must be better */
};
/* Finds the best way to render these jobs together. Returns false if there is none. */
bool many_find(struct many *m, const struct query *q, struct variant *best);
/* Values the group with another job, on the same offer and as wide, or wider where it would be
 * late. Returns false if a job's budget does not pay for it. */
bool many_extend(struct many *m, const struct gang *g, int job, struct variant *v);

double gangs_usd(const struct gangs *g);
/* Notes what the groups take over, but a and b; SIZE_MAX: none. */
void many_note_ups(struct many *m, const struct gangs *g, size_t a, size_t b);

/* Improves a solution that keeps the budget by moves, until none helps. */
void many_improve(struct many *m, struct gangs *g);
/* Moves some jobs at random, whatever that costs. */
void many_shake(struct many *m, struct gangs *g);

#endif
