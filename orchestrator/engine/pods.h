/* pods.h - keeps the engine's state of each pod of the core. */
#ifndef BURST_ENGINE_PODS_H
#define BURST_ENGINE_PODS_H

#include "core/core.h"
#include "store/store.h"

struct engine;

/* What a pod was made with; of an adopted pod, what its row says. Only pods.c writes it. */
struct origin {
	char account[64]; /* of an adopted pod; "": ours */
	char image[96];   /* "": the provider's own */
	char setup[20];   /* the key of its set-up, as in its row; "": none */
};

/* Makes room for the pods that the core has made. */
void pods_match(struct engine *e);
/* Adds a pod of an earlier client or of another run to the core and the engine; returns its number.
 * of_row: the pod as core_pod_of_row() read it from this row. */
int pods_adopt(struct engine *e, const struct core_pod *of_row, const struct pod_row *row);
void pods_free(struct engine *e);

/* For displays and the JSON result. */
const char *engine_phase_detail(const struct engine *e, int pod); /* "syncing code", "" */
/* How much of its image the pod has pulled, in percent, by its provider's log; -1: not known. */
int engine_image_percent(const struct engine *e, int pod);
int engine_pod_rendered(const struct engine *e, int pod); /* segments it has finished */

#endif
