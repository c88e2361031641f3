/* release.h - releases a pod. */
#ifndef BURST_ENGINE_RELEASE_H
#define BURST_ENGINE_RELEASE_H

struct engine;

/* Why a pod never came up stands, if anywhere, in its provider's log. Where that ends with the pod
 * it is asked for first. */
void release_pod(struct engine *e, int pod);

#endif
