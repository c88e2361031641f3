/* bill.h - compares our count of a pod with its vendor's bill and explains the difference. No I/O,
 * no clock. */
#ifndef BURST_RUNS_BILL_H
#define BURST_RUNS_BILL_H

#include "provider.h"
#include "store/store.h"

enum bill_state {
	BILL_NOT_YET, /* the vendor has no record */
	/* within a second, one percent, the calls' own time, and the precision of four-decimal
	 * dollars */
	BILL_AGREES,
	BILL_EXPLAINED, /* the difference has a known cause */
	BILL_EXCESS,    /* the difference has no known cause: the user must look into it */
};
const char *bill_state_name(enum bill_state state); /* "not_yet" ... */

struct bill_verdict {
	enum bill_state state;
	bool final;           /* the vendor's record will not change: do not fetch it again */
	int64_t ask_again_ms; /* wall clock, a whole minute; 0: not needed */
	char why[700];        /* for messages */
};

/* Judges a pod that is gone and whose row holds the vendor's record of row.vendor_asked_ms. told:
 * its hours and words; NULL: none. */
void bill_judge(const struct pod_row *pod, const struct op_bill *told, struct bill_verdict *out);
/* Whether the row holds the vendor's final record. */
bool bill_is_final(const struct pod_row *pod);
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
/* The share's part of the vendor's bill for an hour, in proportion to our count of that hour. */
int64_t bill_hour_of(const struct pod_row *shares, size_t count, const struct pod_row *share,
		     const struct bill_hour *hour);
/* Our count for [start_s, end_s), in micro-dollars. */
int64_t bill_ours_between(const struct pod_row *pod, int64_t start_s, int64_t end_s);

#endif
