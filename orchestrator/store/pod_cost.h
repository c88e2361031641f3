/* pod_cost.h - computes a pod's cost from its row of the ledger, by the rule of base/clock.h. A
 * pod that several runs held has a row for each of them, each with its own share. Pure. */
#ifndef BURST_STORE_POD_COST_H
#define BURST_STORE_POD_COST_H

#include "store.h"

/* Its release was accepted, but a list showed it running later and none has omitted it since. */
bool pod_row_outlives(const struct pod_row *row);
/* Since when it bills, in wall ms: its create, or its start where waiting for that is free; 0: it
 * has not begun. */
int64_t pod_row_bills_from(const struct pod_row *row);
/* Waiting is free, and no view has shown that it has started. */
bool pod_row_is_unstarted(const struct pod_row *row);
/* How long it can still bill from at_ms (wall clock) to its hard end; below 0: that has passed. */
int64_t pod_row_to_come_ms(const struct pod_row *row, int64_t at_ms);
/* Our count of its billed time in ms, and of its cost in micro-dollars: as recorded once the pod is
 * released, until now while it may bill. 0 for a pod that never existed; so below. */
int64_t pod_row_billed_ms(const struct pod_row *row, int64_t now_ms);
int64_t pod_row_counted(const struct pod_row *row, int64_t now_ms);
/* The vendor's figure; 0: it gave none. */
int64_t pod_row_vendor(const struct pod_row *row);
/* The larger of our count and the vendor's figure: all caps and sums go by it. */
int64_t pod_row_cost(const struct pod_row *row, int64_t now_ms);
/* Its billed time if neither its provider nor a bill says what that costs; else 0. */
int64_t pod_row_unpriced_ms(const struct pod_row *row, int64_t now_ms);
/* The time in which that cost arose, in ms from pod_row_bills_from() on. */
int64_t pod_row_spread_ms(const struct pod_row *row, int64_t now_ms);
/* The possible cost of a pod whose create reply was lost and that may have ended before its id was
 * known, or that may have started after it was last seen waiting for free. pod_row_cost() does not
 * include it; caps count it as spent. 0 for all other pods. */
int64_t pod_row_may_have_cost(const struct pod_row *row);
/* Records that the pod was billed until end_ms (wall clock). What was recorded before stands if it
 * is more: a clock that was set back makes nothing cheaper. */
void pod_row_bill(struct pod_row *row, int64_t end_ms);

#endif
