/* replan.h - decides during a run whether another width, or another GPU for the rest, is clearly
 * better than to continue, or whether to continue is useless. For runs whose measurements or prices
 * are far from their plan. Pure.
 *
 * The model is a flow: a pod renders `rate` of weight a second from when it is ready until all is
 * done, and bills all that time. Money that is spent does not count; each cold start that is still
 * to come does. As in plan/choose.c, nine runs in ten keep a deadline: cold starts and speeds may
 * be off, each by what is known of it. */
#ifndef BURST_PLAN_REPLAN_H
#define BURST_PLAN_REPLAN_H

#include "choose.h"

/* A plan is off when batches take more than this factor longer or shorter than planned, or an
 * offer's price moved by more than this share. */
#define REPLAN_SPEED_FACTOR 2.0
#define REPLAN_PRICE_SHARE  0.10
bool replan_speed_is_off(double measured_s, double planned_s);
bool replan_price_is_off(double now_h, double planned_h);

struct replan_pod { /* one that is rented */
	double price_h;
	double rate;   /* weight a second, of all its workers */
	double cold_s; /* until it is up; 0: it works */
	double one_s;  /* for the lightest segment that is left */
	double life_s; /* until it takes no more work */
	int offer;     /* index of the offer that has its GPU; -1: none */
	double sigma;  /* how far its rate may be off, as spread_of_factor() takes it */
};

struct replan_offer { /* that could be rented now */
	double price_h, rate, cold_s, cold_p90_s, one_s;
	double sigma; /* of the rate */
};

struct replan_case {
	double work;                   /* weight that is left */
	const struct replan_pod *pods; /* by cold_s: those that work first */
	size_t pod_count;
	const struct replan_offer *offers;
	size_t offer_count;
	/* goal and value of time; limits of time and money as what is left of them from now on */
	struct plan_wish wish;
	/* this run has measured how fast its pods are; without that nothing is stopped */
	bool is_measured;
	bool within_is_must; /* the user named it: no use to go on without it */
	double late_ok_s;    /* a result this late is better than none */
	double room_usd;     /* of the budget, what no pod holds; INFINITY: no budget */
	int pods_most;       /* at a time, those that are rented included */
	bool width_open;     /* fewer may do; else the user has named how many */
	bool gpus_open;      /* another GPU may take the place of those that work */
};

enum replan_verb {
	REPLAN_KEEP,
	REPLAN_ADD,     /* `pods` more, of `offer` */
	REPLAN_RELEASE, /* `pods` of those that come up, the furthest first */
	/* `pods` of `offer`; those of other GPUs are drained when these work */
	REPLAN_REPLACE,
	/* the old pods are drained first: pods or budget leave no room for both */
	REPLAN_REPLACE_AFTER,
	REPLAN_STOP_LATE,
	REPLAN_STOP_BUDGET, /* it does not pay for one more segment */
};

struct replan_choice {
	enum replan_verb verb;
	int offer, pods;
	double makespan_s, cost_usd;           /* from now on */
	double keep_makespan_s, keep_cost_usd; /* if nothing is changed */
};
void replan_choose(struct replan_choice *out, const struct replan_case *of);

#endif
