/* advice.h - derives advice for the next run from a run's figures. */
#ifndef BURST_CMD_SHOW_ADVICE_H
#define BURST_CMD_SHOW_ADVICE_H

#include <stdbool.h>

#include "base/str.h"
#include "store/store.h"

/* Batch sizes of a run. Zeros: unknown. */
struct advice_batches {
	bool padded;  /* the engine renders a batch at once */
	double mean;  /* segments per batch */
	int most;     /* largest batch of its worker */
	double seats; /* throughput at the mean size, relative to the largest */
	int enough;   /* smallest batch with 70 % of that throughput */
};
void advice_batches_of(struct advice_batches *out, struct store *store, const char *run);

/* Appends "used 77%, seats 36%": the share of billed time that computed, and how much of the engine
 * that kept busy. Together they show by what factor the run cost more than full batches without a
 * cold start. Appends nothing unless the engine renders a batch at once and has been measured. */
void advice_add_seats(struct str *to, const struct pod_row *pods, size_t count,
		      const struct advice_batches *batches, int64_t now_ms);

/* Adds a line for each thing worth changing: less than 70 % of billed time used well (with the
 * largest cause, and the pods, batch or work that reach 70 %), pods that hardly made the run
 * faster, GPUs almost idle or fully busy. Adds nothing if all is well or nothing was billed.
 * batches NULL: unknown. */
void advice_add(struct str *to, const struct pod_row *pods, size_t count,
		const struct advice_batches *batches, int64_t now_ms);

#endif
