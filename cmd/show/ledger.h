/* ledger.h - prints `burst ledger`, and what would have made a run cheaper. */
#ifndef BURST_CMD_SHOW_LEDGER_H
#define BURST_CMD_SHOW_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/str.h"
#include "cmd/cmd.h"
#include "runs/bill.h"
#include "store/store.h"

/* ---- planned and actual ---- */

/* Prints "planned again: " with the reason and the change, for each time; nothing if the plan has
 * held. */
void planned_say_replans(FILE *to, const struct run_row *run);
/* Writes "planned 52s, $0.0210; was 49s, $0.0200 (-6% time, -5% cost)". Returns false if nothing
 * was planned, or the run did not get that far. */
bool planned_compare(char *to, size_t room, const struct run_row *run, const struct pod_row *pods,
		     size_t count);

/* ---- bills of vendors beside our count ---- */

/* Prints a table of the pods on stdout, then why the counts differ; or a list of objects, one for
 * each pod and run. */
void bills_print(bool json, const struct reconciliation *r);

/* ---- advice for the next run ---- */

/* A run and its pods. store NULL: the pods alone are known. */
struct advice_of {
	struct store *store;
	const char *run;
	const struct pod_row *pods;
	size_t count;
	int64_t now_ms;
};

/* Appends "used 77%, seats 36%": the share of billed time that computed, and how much of the engine
 * that kept busy. Together they show by what factor the run cost more than full batches without a
 * cold start. Seats are unknown if the measured batches do not show what larger ones gain. Appends
 * nothing unless the engine renders a batch at once. */
void advice_add_seats(struct str *to, const struct advice_of *of);
/* Adds a line for each thing worth changing: less than 70 % of billed time computed (with the
 * largest cause, and the pods or work that reach 70 %), one long segment at the end, GPUs almost
 * idle or fully busy. Adds nothing if all is well or nothing was billed. */
void advice_add(struct str *to, const struct advice_of *of);

#endif
