/* workers.h - handles what a pod's workers report. */
#ifndef BURST_ENGINE_WORKERS_H
#define BURST_ENGINE_WORKERS_H

#include <jansson.h>

struct engine;

/* An agent's event "worker". */
void workers_event(struct engine *e, int pod, const json_t *event);

#endif
