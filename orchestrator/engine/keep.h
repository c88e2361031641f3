/* keep.h - offers pods of this run to other runs. */
#ifndef BURST_ENGINE_KEEP_H
#define BURST_ENGINE_KEEP_H

#include <stdbool.h>
#include <stdint.h>

struct engine;

/* EV_NOT_WANTED follows if no run would take the pod, or the ledger could not be written; EV_TAKEN
 * (handed.h) if one does. keep_ms: how long it may be kept for the next run; 0: only for one that
 * waits. */
void keep_offer(struct engine *e, int pod, int64_t keep_ms);
/* A pod is on offer: the loop turns more often. */
bool keep_waits(const struct engine *e);

#endif
