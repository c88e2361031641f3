/* release.h - releases a pod. */
#ifndef BURST_ENGINE_RELEASE_H
#define BURST_ENGINE_RELEASE_H

struct engine;

/* EV_RELEASED follows, unless another run has taken the pod (handed.h). Only its provider's log may
 * say why a pod never came up: the first time, a log that ends with the pod is read before. */
void release_pod(struct engine *e, int pod);

#endif
