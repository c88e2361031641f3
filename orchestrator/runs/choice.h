/* choice.h - what a run decides before it rents: goal, deadline, pods, the order of GPUs, and what
 * it expects of them. Made once, stored with the run's first row; every later client reads it. */
#ifndef BURST_RUNS_CHOICE_H
#define BURST_RUNS_CHOICE_H

#include "engine/engine.h"
#include "estimate.h"
#include "store/store.h"

struct run_choice {
	struct choice_row row; /* decided_ms 0: nothing is decided */
	struct forecast_row *forecasts;
	size_t forecast_count;
	/* the same as an engine takes it; filled by run_choice_apply() */
	char **gpus;
	struct core_forecast *expected;
};

/* Fills in what row leaves open (pods_open, gpus_open) from the plan `pick` of an estimate. The
 * pick's GPU comes first, then those whose best plan keeps the limits, the best by the goal first.
 * Raises the limit of descriptors if the number of pods is open. */
void run_choose(struct run_choice *c, const struct estimate *e, const struct plan *pick,
		const struct job_needs *needs);
/* Call within the transaction that adds the run's row. Writes nothing if nothing is decided. */
int run_choice_write(const struct run_choice *c, struct store *s, const char *run, struct err *err);
/* *out has decided_ms 0, without an error, if the ledger has no decision of the run. Free it. */
int run_choice_read(struct run_choice *out, struct store *s, const char *run, struct err *err);
/* Sets pods, plan and GPUs of an engine that starts now; `setup` borrows from the choice. */
void run_choice_apply(struct run_choice *c, struct engine_setup *setup, int64_t wall_ms);
/* When a deadline that is a time of day is: it holds for a run that waits as well. 0: there is
 * none, or it counts from the run's start. */
int64_t run_choice_due_ms(const struct choice_row *row);
/* Whether even the quickest start of a pod would end after the deadline. has_pods: some are up. */
bool run_choice_is_late(const struct run_choice *c, bool has_pods, int64_t wall_ms);
void run_choice_free(struct run_choice *c);

/* "cost", "time", "balanced"; returns false for other words. */
bool plan_goal_find(const char *name, enum plan_goal *out);

#endif
