/* caps.h - caps over runs: what the ledger says stands against them, and the share that a run takes
 * before it rents. */
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
	int64_t max_cost_microusd; /* the run's own cap: lowered to what is left of the others */
	int64_t least_microusd;    /* what it takes to be of any use; 0: not known */
	const struct allowance *lowered_by; /* of over.list; NULL: the run has its own cap */
};

/* All of them fill in what stands against the caps over runs.
 *
 * Before a run is planned: lowers its cap to what is left, with a note; ERR_CAP where that is
 * nothing. It reserves nothing: run_caps_begin() decides. */
int run_caps_fit(const struct runs *rs, struct run_caps *c, struct err *err);
/* The same for a plan, which is shown all the same: lowers the cap where something is left, and
 * something is to be rendered. */
int run_caps_plan(const struct runs *rs, struct run_caps *c, bool renders, struct err *err);
/* ERR_CAP where nothing of use is left of them. least: as above. */
int caps_refuse_least(const struct caps *caps, int64_t least_microusd, struct err *err);
/* Puts the row of a new run, if what it may cost is left, in one transaction, so that of many runs
 * at once no two take the same dollars. Lowers the cap as above; ERR_CAP where what is left is of
 * no use. */
int run_caps_begin(struct run *run, struct run_caps *c, struct err *err);
/* The same for a run that is resumed, whose pods are those of setup.adopt: they keep what they may
 * still cost. It is never refused, as files wait to be fetched and pods to be released; where
 * nothing is left it rents nothing new. */
int run_caps_resume(struct run *run, struct run_caps *c, struct err *err);

#endif
