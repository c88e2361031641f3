/* pods.h - keeps the engine's state of each pod of the core. */
#ifndef BURST_ENGINE_PODS_H
#define BURST_ENGINE_PODS_H

struct engine;

/* Makes room for the pods that the core has made. */
void pods_match(struct engine *e);
void pods_free(struct engine *e);

/* For displays and the JSON result. */
const char *engine_phase_detail(const struct engine *e, int pod); /* "syncing code", "" */
/* How much of its image the pod has pulled, in percent, by its provider's log; -1: not known. */
int engine_image_percent(const struct engine *e, int pod);
int engine_pod_rendered(const struct engine *e, int pod); /* segments it has finished */

#endif
