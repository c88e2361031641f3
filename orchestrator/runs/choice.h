/* choice.h - what a run takes from its plan: its pods, the order of GPUs, and what it later
 * compares its progress with. */
#ifndef BURST_RUNS_CHOICE_H
#define BURST_RUNS_CHOICE_H

#include "core/core.h"
#include "estimate.h"

/* What the user leaves to the plan. */
struct run_open {
	bool pods, gpus;     /* their number; their order */
	int64_t deadline_ms; /* from now; 0: there is none */
};

struct run_choice {
	int pods;     /* 0: as the user has it */
	bool at_once; /* the plan starts with all of them */
	char **gpus;  /* NULL-terminated; NULL: as the user has it, or the job needs or fits none */
	struct core_plan plan;           /* what the run may change later */
	struct core_forecast *forecasts; /* of plan */
};

/* From the plan `pick` of an estimate. GPUs are ordered by the job's cost on them, the cheapest
 * first. Raises the limit of descriptors if the number of pods is open. Free with
 * run_choice_free(). */
void run_choose(struct run_choice *out, const struct estimate *e, const struct plan *pick,
		const struct job_needs *needs, const struct run_open *open);
void run_choice_free(struct run_choice *c);

#endif
