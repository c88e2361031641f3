/* glance.h - a ledger at a glance: the last success and failure, what runs, what bills, today's
 * dollars. It reads the ledger and the locks alone. */
#ifndef BURST_RUNS_GLANCE_H
#define BURST_RUNS_GLANCE_H

#include "runs.h"

struct glance_run {
	struct run_row row;
	bool client; /* a process holds its lock */
};

struct glance {
	int64_t now_ms;       /* wall */
	struct run_row *runs; /* the newest; what success and failure point into */
	size_t count;
	const struct run_row *success; /* the newest that is done; NULL: none among them */
	/* the newest of the last day that failed, whose job has not succeeded since; NULL: none */
	const struct run_row *failure;
	struct glance_run *running;
	size_t running_count;
	int unwatched_runs; /* of those: no client, and not handed over */
	int bill, alone;    /* pods; alone: of a run without a client */
	int64_t price_microusd_h, today_microusd;
};

/* Fills *g, whose now_ms is set and whose rest is 0. A success of a run of the type `trial` is
 * none: it rendered for a measurement. Free with glance_free(), also after an error. */
int glance_read(struct glance *g, const struct runs *rs, const char *trial, struct err *err);
void glance_free(struct glance *g);

#endif
