/* glance.h - summarizes a ledger: last success and failure, running and billing pods, today's
 * dollars. Reads only the ledger and the locks. */
#ifndef BURST_RUNS_GLANCE_H
#define BURST_RUNS_GLANCE_H

#include "runs.h"

struct glance_run {
	struct run_row row;
	bool client; /* a process holds its lock */
};

struct glance {
	int64_t now_ms;       /* wall time */
	struct run_row *runs; /* the newest runs; success and failure point into them */
	size_t count;
	const struct run_row *success; /* the newest that is done; NULL: none among them */
	/* the newest failure of the last day, unless its job has succeeded since; NULL: none */
	const struct run_row *failure;
	struct glance_run *running;
	size_t running_count;
	int unwatched_runs; /* of those: without a client, and not handed over */
	int bill, alone;    /* pods that bill; alone: those of a run without a client */
	int64_t price_microusd_h, today_microusd;
};

/* Fills *g. The caller sets now_ms and zeroes the rest. Ignores successes of type `trial`, which
 * are measurements. Free with glance_free(), also after an error. */
int glance_read(struct glance *g, const struct runs *rs, const char *trial, struct err *err);
void glance_free(struct glance *g);

#endif
