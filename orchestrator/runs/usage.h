/* usage.h - reads from a ledger when pods ran and work came, and which pod a job had last. */
#ifndef BURST_RUNS_USAGE_H
#define BURST_RUNS_USAGE_H

#include "plan/cost.h"
#include "plan/forecast.h"
#include "store/store.h"

/* By the hours of the local time zone, from since_ms (wall clock) or the ledger's first run on,
 * whichever is later. paid: only pods whose time costs something, or may. */
int usage_forecast(struct forecast *out, struct store *store, int64_t since_ms, int64_t now_ms,
		   bool paid, struct err *err);

/* The pod that the job of this config (its real path) rented last and reached. Returns false if
 * there is none in its newest runs. */
bool usage_last_pod(struct pod_row *out, struct store *store, const char *config);

/* All pods that its newest runs rented and reached, the newest run first. The caller frees *out. */
int usage_pods(struct pod_row **out, size_t *count, struct store *store, const char *config,
	       struct err *err);

/* What the ledger expects of the cold start of a pod like this one. */
int usage_cold_start(struct cold *out, struct store *store, const struct pod_row *pod,
		     struct err *err);

struct usage_demand {
	char job[64];     /* its name in its newest run; "": none has computed */
	char config[512]; /* of that run */
	struct forecast_demand of;
	bool enough; /* else only days, weeks and arrivals of `of` count */
};
/* The requests of a job in the last eight weeks: its runs that have ended and computed, or their
 * segments. config: its real path; NULL: of all jobs with this name. */
int usage_demand(struct usage_demand *out, struct store *store, const char *config,
		 const char *name, bool segments, int64_t now_ms, struct err *err);

#endif
