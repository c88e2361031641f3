/* joint.h - one plan over all jobs that wait: which of them share pods, on which offer, how many
 * pods, and when each group starts. Pure: plan again when a job arrives, a pod boots, or a price
 * moves.
 *
 * Times are seconds from now, money is dollars. What a group takes and costs is what plan_choose()
 * says of its segments together; burst hands the pods from job to job, and each handover adds what
 * a job sets up on a pod that is up (joint_handover_s()).
 *
 * Of two plans the better one leaves out fewer jobs (no offer fits, or money is short), then has
 * fewer jobs that are late, then is less late in all, then costs less. */
#ifndef BURST_PLAN_JOINT_H
#define BURST_PLAN_JOINT_H

#include "choose.h"

enum {
	JOINT_EXACT_MOST = 8, /* jobs up to which every partition counts */
	JOINT_UP_MOST = 2     /* groups of pods that are up, beside these jobs */
};

/* Jobs of one kind can share pods: the same engine, image, volume and size of pod. */
struct joint_kind {
	const struct plan_machine *machines;
	size_t machine_count;
	/* canary, staged, failing_share and pods_most count; the rest is the plan's */
	struct plan_wish wish;
};

struct joint_job {
	int kind;
	const struct plan_work *work;
	double ready_s;    /* no sooner: its quiet time, its next try */
	double by_s;       /* nine times in ten it should end by then; INFINITY: no such time */
	double begin_by_s; /* it should begin by then; INFINITY: it may wait */
	double budget_usd; /* 0: none */
};

/* Pods of a run that another job can take over when that run is done with them. */
struct joint_up {
	int kind;
	struct plan_machine machine; /* with the cold start of a new pod */
	int pods;
	double free_s;
};

struct joint_case {
	const struct joint_kind *kinds;
	const struct joint_job *jobs;
	size_t job_count;
	const struct joint_up *ups;
	size_t up_count;
	double budget_usd; /* for all of them together; INFINITY: none */
};

enum joint_why {
	JOINT_KEPT,
	JOINT_LATE,          /* no plan ends, or begins, in time */
	JOINT_NOTHING_FITS,  /* left out: no offer has the memory or a known speed */
	JOINT_OWN_BUDGET,    /* left out: its own budget pays for no plan */
	JOINT_SHARED_BUDGET, /* left out: the others use up the shared budget */
};

struct joint_group {
	int kind, machine; /* machine -1: takes over case.ups[up] */
	int up;            /* -1: rents its own pods */
	int pods, batch;
	double start_s;          /* its pods are created, or taken over */
	double end_s, end_p90_s; /* of its last job */
	double latest_s;         /* the latest start that makes no job later; INFINITY: any */
	double work_s;           /* computing on all its pods together */
	double idle_s;           /* its pods wait so long for jobs that are not ready */
	double cost_usd;
	size_t first, count; /* its jobs: plan.order[first...] */
};

/* What becomes of a job. */
struct joint_fate {
	int group; /* -1: left out */
	double begin_s, end_s, end_p90_s;
	double late_s; /* 0: in time */
	double cost_usd;
	enum joint_why why;
};

struct joint_score {
	int left_out, late;
	double late_s, cost_usd;
};

struct joint_plan {
	struct joint_group *groups; /* by start */
	size_t group_count;
	int *order;               /* jobs, by group and then as they render */
	struct joint_fate *fates; /* of each job */
	struct joint_score score;
	bool exact; /* no other plan is better; else a search found none */
};

/* Fills *out; the caller frees it with joint_free(). Exact for up to JOINT_EXACT_MOST jobs. */
void joint_choose(struct joint_plan *out, const struct joint_case *of);
/* The same by the search that larger queues get; exported for tests and measurements. */
void joint_search(struct joint_plan *out, const struct joint_case *of);
void joint_free(struct joint_plan *p);

/* Scores of two simpler ways, to compare with: each job on pods of its own, and all jobs of a kind
 * on the same pods. */
struct joint_score joint_one_by_one(const struct joint_case *of);
struct joint_score joint_all_pooled(const struct joint_case *of);

/* Seconds that a job takes on a pod that is up until its first batch. */
double joint_handover_s(const struct plan_machine *m);
/* "late", "budget", ...; "" for JOINT_KEPT. Static. */
const char *joint_why_name(enum joint_why why);

#endif
