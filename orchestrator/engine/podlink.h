/* podlink.h - makes, watches and ends the connection to one agent. */
#ifndef BURST_ENGINE_PODLINK_H
#define BURST_ENGINE_PODLINK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;

void podlink_connect(struct engine *e, int pod);
void podlink_close(struct engine *e, int pod);
/* Tells its agent to end the pod, over the present connection or else (unless standing_only) a new
 * one. */
void podlink_finish(struct engine *e, int pod, bool standing_only);
void podlink_watch(
	struct engine *e); /* In each turn: ends the connection of pods that fell silent. */
/* By how many ms the pod's clock differs from ours at wall_ms, negative: behind; from its hello, 0
 * if that does not report it. */
int64_t podlink_clock_off(const json_t *hello, int64_t wall_ms);

#endif
