/* reconcile.h - fetches the vendors' bills, judges them beside our count and records them. */
#ifndef BURST_RUNS_RECONCILE_H
#define BURST_RUNS_RECONCILE_H

#include "bill.h"
#include "runs.h"

enum { RECONCILE_AGE_DAYS = 30 };

struct asked_pod {
	struct pod_row *shares; /* a row for each run that held it, oldest first */
	size_t share_count;
	struct pod_row whole;        /* what its vendor bills: the pod from first to last run */
	struct op_bill told;         /* includes its hours */
	bool asked, other_key;       /* other_key: it was rented with another key */
	struct bill_verdict verdict; /* if asked */
	char why_not[560];           /* why there is no verdict, if not asked */
};

/* Filled by reconcile_find(). */
struct reconciliation {
	struct run accounts; /* used only to open accounts */
	char run[24];        /* show only this run's shares; "": all */
	struct asked_pod *pods;
	size_t count;
	/* skipped: old ones without a record, and those that are not released yet */
	size_t old, alive;
	struct err failure; /* the first error of a vendor, whose pods are unknown then */
	char failed[CORE_PROVIDERS_MAX]
		   [PROVIDER_NAME_MAX]; /* vendors that are skipped after an error */
	int failed_count;
};

/* Finds the pods of one run (an id, or part of one), or if run is NULL, all of the last
 * RECONCILE_AGE_DAYS without a final record. Free *r with reconcile_free(), also after an error.
 * Returns -1 if the ledger failed or no run matches. */
int reconcile_find(struct reconciliation *r, const struct runs *rs, const char *run,
		   struct err *err);
/* Fetches and records each bill. r->failure holds the error of a vendor that cannot be reached.
 * Returns -1 if the ledger failed. */
int reconcile_fetch_bills(struct reconciliation *r, struct err *err);
void reconcile_free(struct reconciliation *r);
/* Whether the row belongs to a pod in the reconciliation. */
bool reconcile_shows(const struct reconciliation *r, const struct pod_row *share);
/* Number of runs that its rows belong to. */
size_t reconcile_count_runs(const struct reconciliation *r);

#endif
