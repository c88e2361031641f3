/* workers.h - what a pod's workers report: ready, failed, how they loaded, on which GPU. */
#ifndef BURST_ENGINE_WORKERS_H
#define BURST_ENGINE_WORKERS_H

#include <jansson.h>
#include <stdbool.h>

#include "provider.h"
#include "store/store.h"

struct engine;

/* Of one pod. The counts begin with workers_expect() or workers_found() and follow the agent's
 * events; a lost connection leaves them. What the pod says of itself stays known. Only workers.c
 * writes it. */
struct workers {
	int ready, failed;
	char gpu[GPU_MAX]; /* as an agent reports it, by the name that offers use; "": not yet */
	char version[40];  /* of the engine; "": no worker was ready yet */
	int64_t load_ms[LOAD_PHASES], unpack_bytes; /* as its first worker reported */
};

/* Workers are about to be started: none is ready, none has failed. */
void workers_expect(struct engine *e, int pod);
/* A hello reports so many that run already. */
void workers_found(struct engine *e, int pod, int running);
/* An agent's event "worker". Returns true if one is ready. */
bool workers_event(struct engine *e, int pod, const json_t *event);
/* Which GPU an agent reports; "": none. */
void workers_saw_gpu(struct engine *e, int pod, const char *said);
/* Of a pod of an earlier client: what its row has. */
void workers_adopt(struct engine *e, int pod, const struct pod_row *row);

#endif
