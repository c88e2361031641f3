/* bill.h - our own count of a pod beside its vendor's bill, and why they differ. No I/O, no clock.
 */
#ifndef BURST_RUNS_BILL_H
#define BURST_RUNS_BILL_H

#include "provider.h"
#include "store/store.h"

enum bill_state {
	BILL_NOT_YET, /* the vendor has no record */
	/* within a second, a hundredth, the calls' own time, and what dollars of four decimals can
	   tell */
	BILL_AGREES,
	BILL_EXPLAINED, /* they differ as they may */
	BILL_EXCESS,    /* more than can be explained: the user must look */
};
const char *bill_state_name(enum bill_state state); /* "not_yet" ... */

struct bill_verdict {
	enum bill_state state;
	bool final;           /* the vendor has had its time: no need to ask again */
	int64_t ask_again_ms; /* wall clock, a whole minute; 0: no need */
	char why[700];        /* for people */
};

/* Of a pod that is gone, whose row holds what the vendor said at row.vendor_asked_ms; told: its
 * hours and words, NULL: none. */
void bill_judge(const struct pod_row *pod, const struct op_bill *told, struct bill_verdict *out);
/* The vendor's last word is in the row. */
bool bill_is_final(const struct pod_row *pod);
bool bill_is_known(const struct pod_row *pod); /* the vendor has a record of it */
/* The vendor's record says what it cost, not only how long it was. */
bool bill_has_dollars(const struct pod_row *pod);
/* "$0.0123" as elsewhere, but what is below a cent to the micro-dollar: "$0.000041". Returns `to`.
 */
char *bill_money(char *to, size_t room, int64_t microusd);
/* A pod that several runs held, one after the other, has a row for each of them: its shares, oldest
 * first. Its vendor bills the pod as a whole: from the first run's create call to the last one's
 * release. One share is its own whole. */
struct pod_row bill_whole(const struct pod_row *shares, size_t count);
/* Divides what the vendor billed for the whole among the shares, by their billed time. The parts
 * sum to the whole. */
void bill_split(const struct pod_row *whole, struct pod_row *shares, size_t count);
/* What the vendor billed in an hour, the part of this share: as much of it as its run had of our
 * count of that hour. */
int64_t bill_hour_of(const struct pod_row *shares, size_t count, const struct pod_row *share,
		     const struct bill_hour *hour);
/* What we count in [start_s, end_s), in micro-dollars. */
int64_t bill_ours_between(const struct pod_row *pod, int64_t start_s, int64_t end_s);

#endif
