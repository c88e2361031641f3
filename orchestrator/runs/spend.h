/* spend.h - sums time and cost of the ledger's pods by day, project, GPU or provider. No I/O, no
 * clock. */
#ifndef BURST_RUNS_SPEND_H
#define BURST_RUNS_SPEND_H

#include "store/store.h"

enum spend_by { SPEND_BY_DAY, SPEND_BY_PROJECT, SPEND_BY_GPU, SPEND_BY_PROVIDER };

struct spend_row {
	char key[520];
	int64_t runs, pods;
	int64_t billed_ms, compute_ms, wasted_ms;
	int64_t cost_microusd, counted_microusd; /* pod_row_cost(), pod_row_counted() */
};

/* Returns false unless the word is "day", "project", "gpu" or "provider". */
bool spend_by_named(const char *word, enum spend_by *out);
/* The last midnight in the local time zone at or before this moment. */
int64_t spend_day_ms(int64_t wall_ms);
/* The next midnight in the local time zone after this moment. Days of DST changes have 23 or 25
 * hours. */
int64_t spend_next_day_ms(int64_t wall_ms);
/* The same for months: the month's first midnight, and the next month's. */
int64_t spend_month_ms(int64_t wall_ms);
int64_t spend_next_month_ms(int64_t wall_ms);
/* The part of a pod's cost since that moment. The cost arose in spread_ms from its create on. */
int64_t spend_since(int64_t cost_microusd, int64_t spread_ms, int64_t create_ms, int64_t since_ms);
/* Returns a new array that the caller frees: days newest first, other keys by falling cost. Days
 * are in the local time zone. A pod billed over midnight counts for each day in proportion to its
 * billed time there; the parts sum to the pod. */
struct spend_row *spend_sum(enum spend_by by, const struct run_row *runs, size_t run_count,
			    const struct pod_row *pods, size_t pod_count, int64_t now_ms,
			    size_t *count);

#endif
