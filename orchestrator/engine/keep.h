/* keep.h - offers pods of this run to other runs. */
#ifndef BURST_ENGINE_KEEP_H
#define BURST_ENGINE_KEEP_H

#include <stdbool.h>
#include <stdint.h>

struct engine;

void keep_offer(struct engine *e, int pod, int64_t keep_ms);
/* A pod is on offer: the loop turns more often. */
bool keep_waits(const struct engine *e);

#endif
