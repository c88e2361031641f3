/* podlink.h - the connection to one agent. */
#ifndef BURST_ENGINE_PODLINK_H
#define BURST_ENGINE_PODLINK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;

void podlink_connect(struct engine *e, int pod);
void podlink_close(struct engine *e, int pod);
/* Its agent is told to end it, over the connection that stands or else (unless standing_only) a new
 * one. */
void podlink_finish(struct engine *e, int pod, bool standing_only);
void podlink_watch(struct engine *e); /* in each turn: pods that fell silent are let go */
/* How far the pod's clock is off from ours at wall_ms, negative: behind; by its hello, 0 when that
 * does not say. */
int64_t podlink_clock_off(const json_t *hello, int64_t wall_ms);

#endif
