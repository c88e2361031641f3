/* allow.h - what the caps over runs (caps.per_day, caps.per_month) leave for one more run. No I/O,
 * no clock.
 *
 * What counts against a cap is what was spent since its period began, and what runs under way may
 * still spend: all of that, also where they may go on after midnight. So whatever they do, no
 * period costs more than its cap: what is reserved at midnight is no more than the cap of the day
 * before, and counts against the new day until it is spent or given up. */
#ifndef BURST_RUNS_ALLOW_H
#define BURST_RUNS_ALLOW_H

#include "base/str.h"
#include "store/store.h"

/* One cap and what stands against it. */
struct allowance {
	const char *key;            /* "per_day", "per_month" */
	const char *where;          /* file:line of the cap */
	bool project;               /* of one project's runs; false: of all runs */
	int64_t begins_ms, ends_ms; /* of the period, wall clock */
	int64_t cap_microusd, spent_microusd, reserved_microusd;
	int holders; /* runs that have something reserved */
};

/* What a pod has cost since that moment, as of at_ms. One that maybe never was counts as in
 * core/budget.c. */
int64_t allow_spent(const struct pod_row *pod, int64_t begins_ms, int64_t at_ms);
/* What it still costs at most, if it gets no further contact. */
int64_t allow_to_come(const struct pod_row *pod, int64_t at_ms);
/* What a run has reserved beside what it has cost. With a client it may rent until its own cap is
 * spent, without another check. Without a client, only existing pods cost more, up to their hard
 * ends. pods: all of the run's. */
int64_t allow_reserved(const struct run_row *run, bool has_client, const struct pod_row *pods,
		       size_t count, int64_t at_ms);

/* At least 0. */
int64_t allow_left(const struct allowance *a);
/* The one that leaves least; NULL: there is no cap. */
const struct allowance *allow_tightest(const struct allowance *list, size_t count);
/* How much of `wanted` a run gets: less where less is left, and 0 where that is below `least`, what
 * it takes to be of any use. */
int64_t allow_give(const struct allowance *list, size_t count, int64_t wanted, int64_t least);

/* "$4.10 of $5.00 today are spent or reserved" */
void allow_say_used(struct str *to, const struct allowance *a);
/* Why nothing is rented, and what to do. least: as above, 0: not known. */
int allow_refuse(const struct allowance *a, int64_t least, struct err *err);

#endif
