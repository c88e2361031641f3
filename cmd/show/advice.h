/* advice.h - what a run's figures say about the next one. */
#ifndef BURST_CMD_SHOW_ADVICE_H
#define BURST_CMD_SHOW_ADVICE_H

#include <stdbool.h>

#include "base/str.h"
#include "store/store.h"

/* How large the batches of a run were. Zeros: not known. */
struct advice_batches {
	bool padded;  /* the engine renders a batch at once */
	double mean;  /* segments in each */
	int most;     /* that its worker takes */
	double seats; /* throughput at the mean, of that at the most */
	int enough;   /* the smallest batch with 70 % of that throughput */
};
void advice_batches_of(struct advice_batches *out, struct store *store, const char *run);

/* "used 77%, seats 36%": how much of the billed time computed, and how much of its engine that kept
 * busy: together, by what factor the run cost more than full batches without a cold start. Nothing
 * is added unless the engine renders a batch at once and has been measured. */
void advice_add_seats(struct str *to, const struct pod_row *pods, size_t count,
		      const struct advice_batches *batches, int64_t now_ms);

/* Adds a line for each thing worth changing: less than 70 % of billed time used well (the largest
 * cause, and the pods, the batch or the work that reach 70 %), pods that hardly made the run
 * faster, GPUs that had next to nothing to do, or nothing but. Adds nothing where all is well, or
 * nothing was billed. batches NULL: not known. */
void advice_add(struct str *to, const struct pod_row *pods, size_t count,
		const struct advice_batches *batches, int64_t now_ms);

#endif
