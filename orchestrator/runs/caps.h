/* caps.h - sums a ledger: what pods cost, caps over runs, the share that a run reserves */
#ifndef BURST_RUNS_CAPS_H
#define BURST_RUNS_CAPS_H

#include "base/str.h"
#include "runs.h"
#include "store/store.h"

/* ---- spend ----
 * Sums time and cost of the ledger's pods by day, project, GPU or provider. No I/O, no clock. */

enum spend_by { SPEND_BY_DAY, SPEND_BY_PROJECT, SPEND_BY_GPU, SPEND_BY_PROVIDER };

struct spend_row {
	char key[520];
	int64_t runs, pods;
	int64_t billed_ms, compute_ms, wasted_ms;
	int64_t cost_microusd, counted_microusd; /* pod_row_cost(), pod_row_counted() */
	int64_t unpriced_ms;                     /* pod_row_unpriced_ms() */
	const struct pod_row *last;              /* the pod that was added last */
};

/* Returns false unless the word is "day", "project", "gpu" or "provider". */
bool spend_by_named(const char *word, enum spend_by *out);
/* When the local day or month of this moment began, or when the next one begins. Days of DST
 * changes have 23 or 25 hours. */
int64_t spend_period_ms(int64_t wall_ms, bool month, bool next);
/* Returns a new array that the caller frees: days newest first, other keys by falling cost. Days
 * are in the local time zone. A pod billed over midnight counts for each day in proportion to its
 * billed time there; the parts sum to the pod. */
struct spend_row *spend_sum(enum spend_by by, const struct run_row *runs, size_t run_count,
			    const struct pod_row *pods, size_t pod_count, int64_t now_ms,
			    size_t *count);

/* ---- allow ----
 * Computes what the caps over runs (caps.per_day, caps.per_month) leave for one more run. No I/O,
 * no clock.
 *
 * A cap covers what was spent since its period began, and all that current runs may still spend,
 * even after midnight. So no period can cost more than its cap: what is reserved at midnight is
 * at most the earlier day's cap, and counts toward the new day until it is spent or given up. */

/* One cap and what counts toward it. */
struct allowance {
	const char *key;            /* "per_day", "per_month" */
	const char *where;          /* file:line of the cap */
	bool project;               /* covers one project's runs; false: all runs */
	int64_t begins_ms, ends_ms; /* of the period, in wall time */
	int64_t cap_microusd, spent_microusd, reserved_microusd;
	int holders; /* number of runs that have a reservation */
};

/* What a pod has cost since begins_ms, as of at_ms. A pod that may not exist counts as in
 * core/budget.c. */
int64_t allow_spent(const struct pod_row *pod, int64_t begins_ms, int64_t at_ms);
/* From here to allow_give(), and allow_refuse(): exported for tests, but for allow_left(). What a
 * pod can still cost if no client reaches it again. */
int64_t allow_to_come(const struct pod_row *pod, int64_t at_ms);
/* What a run has reserved beyond its cost. With a client it may rent until its own cap is spent,
 * without another check. Without a client only existing pods cost more, until their hard ends.
 * pods: all of the run's. */
int64_t allow_reserved(const struct run_row *run, bool has_client, const struct pod_row *pods,
		       size_t count, int64_t at_ms);

/* What is left of the cap, at least 0. */
int64_t allow_left(const struct allowance *a);
/* The cap of which least is left; NULL: there is no cap. */
const struct allowance *allow_tightest(const struct allowance *list, size_t count);
/* How much of `wanted` a run gets: what is left, or 0 if that is less than `least`, the smallest
 * useful amount. */
int64_t allow_give(const struct allowance *list, size_t count, int64_t wanted, int64_t least);

/* "$4.10 of $5.00 today are spent or reserved" */
void allow_add_used(struct str *to, const struct allowance *a);
/* Sets the error for a run that gets nothing, with what to do. least: as above; 0: unknown. */
int allow_refuse(const struct allowance *a, int64_t least, struct err *err);

/* ---- caps ----
 * Caps over runs: what counts toward them, and the share that a run reserves before it rents. */

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
