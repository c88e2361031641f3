/* gaps.h - records how long pods without work have waited for the next run, as facts in the ledger.
 * pool: what the pods are good for (kept.h); only its environment counts. Times are wall clock ms.
 * A failed read or write changes nothing else. */
#ifndef BURST_ENGINE_GAPS_H
#define BURST_ENGINE_GAPS_H

#include "store/store.h"

/* A pod has no work left. */
void gaps_note_free(struct store *store, const char *pool, int64_t now_ms);
/* A run begins that could take such a pod. */
void gaps_note_start(struct store *store, const char *pool, int64_t now_ms);
/* How long to hold a pod whose cold start took cold_ms, in ms; 0: not at all. */
int64_t gaps_hold_ms(struct store *store, const char *pool, int64_t cold_ms);

#endif
