/* usage.h - reads from a ledger when pods ran, and which one a job had last. */
#ifndef BURST_RUNS_USAGE_H
#define BURST_RUNS_USAGE_H

#include "plan/forecast.h"
#include "store/store.h"

/* By the hours of the local time zone, from since_ms (wall clock) or the ledger's first run on,
 * whichever is later. paid: only pods whose time costs something, or may. */
int usage_forecast(struct forecast *out, struct store *store, int64_t since_ms, int64_t now_ms,
		   bool paid, struct err *err);

/* The pod that the job of this config (its real path) rented last and reached. Returns false if
 * there is none in its newest runs. */
bool usage_last_pod(struct pod_row *out, struct store *store, const char *config);

#endif
