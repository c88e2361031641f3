/* decide.h - what a run decides before it rents */
#ifndef BURST_CMD_LAUNCH_DECIDE_H
#define BURST_CMD_LAUNCH_DECIDE_H

#include "cmd/show/plan_show.h"
#include "offers.h"
#include "runs/estimate.h"

struct launch;

/* ---- wish ----
 * What the config wishes of a run: goal, deadline, pods, GPUs. */

/* Reads the wishes into l->choice, once: later calls change nothing. A deadline counts from the
 * start of the command. ERR_CONFIG: a value is invalid. */
int wish_read(struct launch *l, struct err *err);
/* Notes invalid values of goal, value_of_time and deadline. */
void wish_check(const struct config *config, struct mistakes *m);

/* ---- estimate ----
 * Estimates for what the config wishes of a plan. */

/* Estimates what a plan with these offers takes, for the loaded job. Reads the wishes first, with
 * the errors of wish_read(); ERR_CAP: the deadline has passed. Free with estimate_free(). */
int estimate_make(struct estimate *out, struct launch *l, const struct offer *offers, size_t count,
		  struct err *err);
/* The same for what a run wants, with the pods that other runs keep. */
int estimate_wanted(struct estimate *out, struct launch *l, const struct wanted *w,
		    struct err *err);

/* ---- better ----
 * Finds a choice of GPU and pods that is clearly better than the one that the config or a flag
 * fixes. */

/* Sets out->found, and then the plan, its offer and a line about it. e: estimate for the given GPUs
 * and pods; pick: the plan for them. If the config names GPUs, asks providers for other offers, for
 * offers_ms each at most; 0: asks none. */
void better_find(struct better *out, struct launch *l, const struct estimate *e,
		 const struct plan *pick, int64_t offers_ms);

/* ---- refuse ----
 * Refuses what no plan can do, with one line and the exit status of a run, before anything is
 * rented. */

/* Adds the pods that other runs keep to what this run wants. Call last. */
void kept_pods_add(struct launch *l, struct wanted *w);
/* Chooses among offers. If no pod that is rented keeps the deadline and the caps, kept ones may. */
enum plan_verdict choose_plan(struct launch *l, const struct estimate *e, struct plan *pick);
/* Changes the plan to one that takes kept pods over first. Returns how many it may take. */
int plan_take_kept(struct launch *l, const struct estimate *e, struct plan *pick);
/* Returns -1 with *err if a run with these offers cannot succeed: the deadline or max_cost ends
 * before a pod is up, or no plan meets the deadline. verdict: of `pick`; PLAN_NOTHING_FITS if the
 * engine's speed is unknown. */
int refuse_run(const struct launch *l, const struct estimate *e, const struct plan *pick,
	       enum plan_verdict verdict, struct err *err);

/* ---- decide ----
 * Decides before renting what the config leaves open. */

/* Fetches offers, plans, and reports the plan in one line. Sets the number of pods if the config
 * has none, and the order of GPUs if the config has none and the job needs one. Records the plan in
 * the run's row. May fill the volume first (warm_first()). ERR_CAP, ERR_NO_CAPACITY: the run cannot
 * succeed, so nothing is rented. Keeps the config's values if offers or estimates are missing. */
int launch_decide(struct launch *l, struct err *err);
/* For a resumed run: reads what it decided when it began. A deadline that its user changed since
 * counts from the start of this command; one that cannot be kept is dropped with a warning, or is
 * ERR_CAP if this command gave it. */
int launch_read_decision(struct launch *l, const struct run_row *row, struct err *err);

#endif
