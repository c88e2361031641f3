/* choose.h - chooses GPU, number of pods and batch size for a job: all plans, the best one, and
 * the few worth showing */
#ifndef BURST_PLAN_CHOOSE_H
#define BURST_PLAN_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>

#include "cost.h"
#include "speed.h"

/* ---- choose ----
 * Chooses GPU, number of pods and batch size for a job: all plans, the best one, and the few
 * worth showing. Pure. Seconds and dollars are estimates in doubles; see cost.h. */

enum { PLAN_BATCHES_MAX = 12, PLAN_FRONT_MAX = 16, PLAN_FEW_BATCHES = 64, PLAN_PODS_MOST = 1000 };

/* The lengths of the segments to render, summed up once for every batch size that is considered. */
struct plan_work {
	size_t count;
	double sum;     /* of all lengths */
	double audio_s; /* in seconds of rendered sound; 0: unknown */
	int sizes;      /* batch sizes considered: 1, 2, 4, ... */
	int size[PLAN_BATCHES_MAX];
	/* sum over batches of that size, sorted by length, of the longest in each */
	double longest[PLAN_BATCHES_MAX];
	double heaviest[PLAN_BATCHES_MAX]; /* all lengths in the first of these batches */
	/* all in so many batches of one size, sorted by length: the mean of the longest in each */
	double few[PLAN_FEW_BATCHES + 1];
	double few_least[PLAN_FEW_BATCHES + 1]; /* the least of few[1] to few[i] */
	double longest_one;
};
/* lengths: of `count` segments, in any order; it gets sorted, the longest first. batch_max: the
 * largest batch of any machine. */
void plan_work_init(struct plan_work *w, double *lengths, size_t count, int batch_max,
		    double audio_s);

/* One offer with all that is expected of it. */
struct plan_machine {
	int id; /* the caller's */
	double price_h;
	double price_p90_h; /* nine times in ten it is no more when the run begins; 0: price_h */
	double quantum_s;   /* of billing; 0: none */
	double per_run_usd; /* egress, delivery: what does not grow with pods */
	/* a command that saves its state: how long a save takes, and how often; 0: it does not */
	double save_s, save_every_s;
	/* spot: mean time between interruptions; 0: it is not interrupted */
	double interrupted_every_s;
	int interruptions; /* that this time was learned from */
	struct cold cold;
	struct speed speed;
	/* how far all of it may be off, as spread_of_factor() takes it; 0: it is exact */
	double speed_sigma;
	enum plan_source speed_source;
	bool gain_unknown;    /* what larger batches gain; `speed` then assumes nothing */
	int speed_runs;       /* measured: in so many runs */
	double host_share;    /* of batch times that no GPU shortens; 1: the GPU plays no part */
	int workers;          /* processes per pod, at least 1 */
	int batch_max;        /* by engine and memory, at least 1; 0: does not fit */
	int pods_max;         /* pods at most; 0: no limit */
	int creates_a_minute; /* the provider's limit: further pods are created a minute later; 0:
				 none */
	double tail_s;        /* per pod, from its last batch to its last file */
	/* per pod, from then until it bills no more; below 0 where files come without it */
	double release_s;
};

struct plan_wish {
	enum plan_goal goal;
	double value_of_time_h; /* PLAN_BALANCED: what an hour of waiting costs */
	/* until the deadline; 0: none. Nine runs in ten keep it (makespan_p90_s) */
	double within_s;
	/* caps.max_duration; 0: none. A run is expected to keep it (makespan_p50_s): one that does
	 * not ends there with what it has, and resuming costs a cold start, no more than another
	 * pod. So the cap alone makes no plan dearer that will probably keep it. */
	double cap_s;
	double budget_usd;    /* 0: none */
	double failing_share; /* of segments that are rendered again */
	int pods;             /* exactly so many; 0: the planner chooses */
	int pods_most;        /* at most so many; 0: PLAN_PODS_MOST */
	int canary;           /* so many segments are checked first, in one batch */
	/* further pods are rented only when these are good, and only if they have work for long
	 * enough; else all are rented and work at once, and bad ones stop them */
	bool staged;
};

struct plan {
	int machine;     /* index */
	int pods, batch; /* batch: segments in each */
	double work_s;   /* computing on all pods together */
	double makespan_p50_s, makespan_p90_s;
	double billed_s; /* all pods */
	double pods_usd; /* what caps and the ledger count */
	double cost_usd; /* with what the run costs beside its pods */
	double cost_p90_usd;
	/* what the pods cost nine times in ten until the first segments have been checked, if all
	 * work at once; 0: one pod alone renders these */
	double at_risk_usd;
	double used;  /* share of billed time that computes */
	double seats; /* throughput at this batch, of that at the largest batch; 0: unknown */
};

enum plan_verdict {
	PLAN_FOUND,
	PLAN_NOTHING_FITS,  /* no machine has the memory */
	PLAN_TOO_SLOW,      /* no plan ends in time; *out is the fastest */
	PLAN_TOO_EXPENSIVE, /* none is within the budget; *out is the cheapest */
	/* some end in time and others the budget, none both; *out is the cheapest in time */
	PLAN_NEITHER,
};
enum plan_verdict plan_choose(struct plan *out, const struct plan_work *w,
			      const struct plan_machine *machines, size_t count,
			      const struct plan_wish *wish);

/* What all plans of one machine have in common, whatever they render; in seconds. It takes longer
 * to work out than a plan. */
struct plan_basis {
	double cold_p50, cold_billed, setup;
	double cold_slack;    /* how much longer than cold_p50 in the slow tenth, with no work */
	struct spread cold;   /* what it may take */
	struct spread factor; /* of all computing */
	struct spread price;  /* as a multiple of price_h */
	bool cold_is_measured;
};
void plan_basis_init(struct plan_basis *out, const struct plan_machine *m);
/* What plan_choose() finds for wish->pods pods of this one machine with PLAN_COST and no limit of
 * time or money, in a fraction of the time. Returns false if nothing fits. */
bool plan_at_width(struct plan *out, const struct plan_work *w, const struct plan_machine *m,
		   const struct plan_basis *basis, const struct plan_wish *wish);

/* How badly a plan serves the goal of the wish, whatever its limits: less is better. A little of
 * the other quantity settles ties. */
double plan_badness(const struct plan *p, const struct plan_wish *wish);

/* How many pods of this machine a plan may have. */
int plan_widest(const struct plan_work *w, const struct plan_machine *m,
		const struct plan_wish *wish);

/* The plans that no other one beats in both time and cost, the cheapest first, each machine's best
 * widths and batches included. At most `room`; returns how many. */
size_t plan_front(struct plan *out, size_t room, const struct plan_work *w,
		  const struct plan_machine *machines, size_t count, const struct plan_wish *wish);
/* The best plan of one machine for each number of pods 1, 2, 4, ...: the curve of cost per item. */
size_t plan_widths(struct plan *out, size_t room, const struct plan_work *w,
		   const struct plan_machine *machines, size_t machine,
		   const struct plan_wish *wish);

/* What holds a plan back most. */
enum plan_bottleneck {
	PLAN_BY_COLD_START,
	PLAN_BY_LONGEST, /* one segment: its worker ends long after all others */
	PLAN_BY_BANDWIDTH,
	PLAN_BY_COMPUTE,
	PLAN_BY_HOST
};
enum plan_bottleneck plan_bottleneck(const struct plan *p, const struct plan_work *w,
				     const struct plan_machine *m);

/* ---- better ----
 * Compares the user's own choice of GPUs or number of pods with the planner's, and reports a plan
 * that is clearly better. Pure. */

/* Clearly: a fifth less of what the goal makes small, without missing a limit of time or money that
 * the given plan keeps; or a fifth faster at no more cost. Less than five seconds or a twentieth of
 * a cent is not worth a word. The machines are all that there are; wish.pods is ignored. False:
 * there is none. */
bool plan_better(struct plan *out, const struct plan *given, const struct plan_work *w,
		 const struct plan_machine *machines, size_t count, const struct plan_wish *wish);

#endif
