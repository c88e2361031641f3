/* measured.h - what the newest runs of a ledger have shown of speed, price and cold starts. */
#ifndef BURST_RUNS_MEASURED_H
#define BURST_RUNS_MEASURED_H

#include "plan/breakeven.h"
#include "store/store.h"

/* Of the newest run that rendered speech at a price: characters of its batches over the hours of
 * its pods. False: there is none. */
bool measured_rate(struct store *store, struct breakeven_rate *out, char run[24]);

/* Of the newest run that computed. */
struct measured_work {
	char run[24];
	double work_s; /* on one pod */
	double cold_s; /* of a pod that the run rented; 0: not known */
	struct pod_row *pods;
	size_t pod_count;
};
/* False: there is none. Free out->pods. */
bool measured_work(struct store *store, struct measured_work *out);

#endif
