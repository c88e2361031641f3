/* bill.h - fetches the vendors' bills for pods, compares them with our count, and records both */
#ifndef BURST_RUNS_BILL_H
#define BURST_RUNS_BILL_H

#include "provider.h"
#include "runs.h"
#include "store/store.h"

/* ---- bill ----
 * Compares our count of a pod with its vendor's bill. No I/O, no clock. */

enum bill_state {
	BILL_NOT_YET, /* the vendor has no record */
	/* within a second, one percent, the calls' own time, and the precision of four-decimal
	 * dollars */
	BILL_AGREES,
	BILL_DIFFERS, /* within what the pod can have cost until it was gone */
	BILL_EXCESS,  /* beyond that: the user must look into it */
};
const char *bill_state_name(enum bill_state state); /* "not_yet" ... */

struct bill_verdict {
	enum bill_state state;
	bool final;           /* the vendor's record will not change: do not fetch it again */
	int64_t ask_again_ms; /* wall clock, a whole minute; 0: not needed */
	char why[400];        /* one sentence, for messages */
};

/* bill_judge(), bill_whole() and bill_split() are exported for tests. */
/* Judges a pod that is gone and whose row holds the vendor's record of row.vendor_asked_ms. told:
 * its hours and note; NULL: none. */
void bill_judge(const struct pod_row *pod, const struct op_bill *told, struct bill_verdict *out);
bool bill_is_known(const struct pod_row *pod); /* Whether the vendor has a record of it. */
/* Whether the vendor's record has dollars, not only time. */
bool bill_has_dollars(const struct pod_row *pod);
/* "$0.0123" as elsewhere, but amounts below a cent down to the micro-dollar: "$0.000041". Returns
 * `to`. */
char *bill_money(char *to, size_t room, int64_t microusd);
/* Merges the shares of a pod, one row for each run that held it, oldest first. Its vendor bills the
 * pod as a whole, from the first run's create to the last one's release. A single share is the
 * whole. */
struct pod_row bill_whole(const struct pod_row *shares, size_t count);
/* Divides the vendor's bill among the shares by their billed time. The parts sum to the whole. */
void bill_split(const struct pod_row *whole, struct pod_row *shares, size_t count);

/* ---- reconcile ----
 * Fetches the vendors' bills, judges them beside our count and records them. */

enum { RECONCILE_AGE_DAYS = 30 };

struct asked_pod {
	struct pod_row *shares; /* a row for each run that held it, oldest first */
	size_t share_count;
	struct pod_row whole;        /* what its vendor bills: the pod from first to last run */
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

#endif
