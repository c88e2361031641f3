/* measured.h - reads speed, price and cold starts of the newest runs from a ledger */
#ifndef BURST_RUNS_MEASURED_H
#define BURST_RUNS_MEASURED_H

#include "store/store.h"

/* The newest run that rendered speech at a price. */
struct measured_rate {
	char run[24];
	double price_h;        /* dollars */
	double chars_per_hour; /* of computing */
	double duty;           /* share of billed time that computes, at most 1 */
};
/* Returns false if there is none. */
bool measured_rate(struct store *store, struct measured_rate *out);

/* The newest run that computed. */
struct measured_work {
	char run[24];
	double work_s; /* on one pod */
	double cold_s; /* of a pod that the run rented; 0: unknown */
	struct pod_row *pods;
	size_t pod_count;
};
/* Returns false if there is none. The caller frees out->pods. */
bool measured_work(struct store *store, struct measured_work *out);

#endif
