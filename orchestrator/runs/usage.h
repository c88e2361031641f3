/* usage.h - reads from a ledger when pods ran. */
#ifndef BURST_RUNS_USAGE_H
#define BURST_RUNS_USAGE_H

#include "plan/forecast.h"
#include "store/store.h"

/* By the hours of the local time zone, from since_ms (wall clock) or the ledger's first run on,
 * whichever is later. paid: only pods whose time costs something, or may. */
int usage_forecast(struct forecast *out, struct store *store, int64_t since_ms, int64_t now_ms,
		   bool paid, struct err *err);

#endif
