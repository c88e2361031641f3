/* allow.h - computes what the caps over runs (caps.per_day, caps.per_month) leave for one more run.
 * No I/O, no clock.
 *
 * A cap covers what was spent since its period began, and all that current runs may still spend,
 * even after midnight. So no period can cost more than its cap: what is reserved at midnight is at
 * most the earlier day's cap, and counts toward the new day until it is spent or given up. */
#ifndef BURST_RUNS_ALLOW_H
#define BURST_RUNS_ALLOW_H

#include "base/str.h"
#include "store/store.h"

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
/* What it can still cost if it has no further contact. */
int64_t allow_to_come(const struct pod_row *pod, int64_t at_ms);
/* What a run has reserved beyond its cost. With a client it may rent until its own cap is spent,
 * without another check. Without a client only existing pods cost more, until their hard ends.
 * pods: all of the run's. */
int64_t allow_reserved(const struct run_row *run, bool has_client, const struct pod_row *pods,
		       size_t count, int64_t at_ms);

/* At least 0. */
int64_t allow_left(const struct allowance *a);
/* The one that leaves least; NULL: no cap. */
const struct allowance *allow_tightest(const struct allowance *list, size_t count);
/* How much of `wanted` a run gets: what is left, or 0 if that is less than `least`, the smallest
 * useful amount. */
int64_t allow_give(const struct allowance *list, size_t count, int64_t wanted, int64_t least);

/* "$4.10 of $5.00 today are spent or reserved" */
void allow_say_used(struct str *to, const struct allowance *a);
/* Sets the error for a run that gets nothing, with what to do. least: as above; 0: unknown. */
int allow_refuse(const struct allowance *a, int64_t least, struct err *err);

#endif
