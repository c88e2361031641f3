/* prior.h - what burst knows of providers before this ledger has measured them, each with its date:
 * cold starts, billing, list prices of GPUs. A plan says so where it uses one of these. */
#ifndef BURST_PLAN_PRIOR_H
#define BURST_PLAN_PRIOR_H

#include "cold.h"

/* Mean time between losses of a pod on demand: hosts fail, too, but no
 * vendor publishes how often. For how often to save alone. */
#define PRIOR_ON_DEMAND_S (7 * 86400.0)

struct prior_provider {
	const char *name; /* NULL: any other */
	struct cold_time phase[COLD_PHASES];
	double quantum_s;     /* of billing */
	double egress_usd_gb; /* what is charged for a GB fetched from it */
	double volume_usd_gb_month;
	double interrupted_every_s; /* mean time between interruptions of a spot pod */
	const char *seen;           /* month/year of these figures */
};
const struct prior_provider *prior_of_provider(const char *name);
/* gpu: the job needs one, and its weights go there. */
struct cold prior_cold(const char *provider, bool gpu);

enum market { MARKET_CHEAPEST, MARKET_SECURE, MARKET_COMMUNITY, MARKET_MODAL, MARKETS };
extern const char *const market_names[MARKETS];
/* What one of this GPU is listed at, in dollars an hour, without cores and memory. 0: not offered,
 * or no price was found. *seen: month/year; NULL. MARKET_CHEAPEST is none. */
double prior_list_price(const char *gpu, enum market market, const char **seen);
/* What Modal bills of a sandbox beside its GPU, and what burst requests if the config says
 * nothing. */
#define PRIOR_MODAL_CORE_MICROUSD_H 150000
#define PRIOR_MODAL_GB_MICROUSD_H   30000
enum { PRIOR_MODAL_CORES = 4, PRIOR_MODAL_MEMORY_GB = 16 };
#define PRIOR_PRICES_SEEN "RunPod between 2025-07 and 2026-11, Modal in 2026-09"

/* Speech, by published measurements of 750 to 1000. */
#define PRIOR_CHARS_PER_MINUTE 900
#define PRIOR_SPEECH_SEEN      "2026-11"

#endif
