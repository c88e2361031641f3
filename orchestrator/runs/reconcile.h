/* reconcile.h - what the vendors billed, beside our count: asked for, judged and written down. */
#ifndef BURST_RUNS_RECONCILE_H
#define BURST_RUNS_RECONCILE_H

#include "bill.h"
#include "runs.h"

enum { RECONCILE_AGE_DAYS = 30 };

struct asked_pod {
	struct pod_row *shares; /* a row for each run that held it, oldest first */
	size_t share_count;
	struct pod_row whole;        /* what its vendor bills: the pod from first to last */
	struct op_bill told;         /* with the hours */
	bool asked, other_key;       /* other_key: it was not rented with this one */
	struct bill_verdict verdict; /* when asked */
	char why_not[560];           /* why there is no verdict, when not asked */
};

/* Filled by reconcile_find(). */
struct reconciliation {
	struct run accounts; /* only to open them */
	char run[24];        /* only its shares are shown; "": all */
	struct asked_pod *pods;
	size_t count;
	/* left out: no record and too old to ask for by itself, and not given back yet */
	size_t old, alive;
	struct err failure; /* the first of a vendor: what it says of its pods is not known */
	char failed[CORE_PROVIDERS_MAX][PROVIDER_NAME_MAX]; /* not asked any more */
	int failed_count;
};

/* The pods of one run (an id, or part of one), or, with run NULL, all of the last
 * RECONCILE_AGE_DAYS that have no final record. Free *r with reconcile_free(), also after an error.
 * -1: the ledger failed, or no run is meant. */
int reconcile_find(struct reconciliation *r, const struct runs *rs, const char *run,
		   struct err *err);
/* Asks for each and writes down what it hears. A vendor that cannot be asked is in r->failure. -1:
 * the ledger failed. */
int reconcile_fetch_bills(struct reconciliation *r, struct err *err);
void reconcile_free(struct reconciliation *r);
/* Is this row of a pod among what was asked for? */
bool reconcile_shows(const struct reconciliation *r, const struct pod_row *share);
/* How many runs its rows are of. */
size_t reconcile_count_runs(const struct reconciliation *r);

#endif
