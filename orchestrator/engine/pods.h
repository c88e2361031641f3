/* pods.h - keeps the engine's state of each pod of the core. */
#ifndef BURST_ENGINE_PODS_H
#define BURST_ENGINE_PODS_H

struct engine;

/* Makes room for the pods that the core has made. */
void pods_match(struct engine *e);
void pods_free(struct engine *e);

#endif
