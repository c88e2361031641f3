/* caps.h - caps over runs: what counts toward them, and the share that a run reserves before it
 * rents. */
#ifndef BURST_RUNS_CAPS_H
#define BURST_RUNS_CAPS_H

#include "allow.h"
#include "runs.h"

enum { CAPS_MOST = 4 };

struct caps {
	struct allowance list[CAPS_MOST];
	size_t count; /* 0: there is no such cap */
};

/* What a run may cost. */
struct run_caps {
	/* Caps over runs: the caller sets key, where, project and cap_microusd of each. */
	struct caps over;
	const char *config;        /* path of the run's config; "": it has none */
	const char *part_of;       /* the run that it is a stage of; NULL: none */
	int64_t max_cost_microusd; /* the run's own cap: lowered to what the others leave */
	int64_t least_microusd;    /* the smallest useful amount; 0: unknown */
	const struct allowance *lowered_by; /* in over.list; NULL: its own cap stands */
};

/* All functions fill in what counts toward the caps over runs.
 *
 * Before a plan: lowers the run's cap to what is left, with a note. ERR_CAP if nothing is left.
 * Reserves nothing; run_caps_begin() decides. */
int run_caps_fit(const struct runs *rs, struct run_caps *c, struct err *err);
/* The same for `burst plan`, which is shown in any case: lowers the cap if something is left and
 * there is something to render. */
int run_caps_plan(const struct runs *rs, struct run_caps *c, bool renders, struct err *err);
/* ERR_CAP if what is left is of no use. least: as above. */
int caps_refuse_least(const struct caps *caps, int64_t least_microusd, struct err *err);
/* Adds the row of a new run if what it may cost is left. Uses one transaction, so that no two runs
 * reserve the same dollars. Lowers the cap as above. ERR_CAP if what is left is of no use. */
int run_caps_begin(struct run *run, struct run_caps *c, struct err *err);
/* The same for a resumed run, whose pods in setup.adopt keep what they may still cost. Never
 * refuses, since files must be fetched and pods released. If nothing is left, the run rents no new
 * pod. */
int run_caps_resume(struct run *run, struct run_caps *c, struct err *err);

#endif
