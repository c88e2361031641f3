/* handed.h - finds out that another run took a pod. */
#ifndef BURST_ENGINE_HANDED_H
#define BURST_ENGINE_HANDED_H

#include "provider.h"
#include "store/store.h"

struct engine;

/* Withdraws the offer of a pod. Returns true if another run already has it; the core then gets an
 * event. */
bool handed_over(struct engine *e, int pod);
/* Writes the pod's row; *result as of store_put_pod(). Returns true if another run has the pod; the
 * row was not written. */
bool handed_put(struct engine *e, int pod, const struct pod_row *row, struct err *err, int *result);
/* Call it in each turn of the loop. */
void handed_watch(struct engine *e);
/* Drops from a list the pods with our marker that were handed on; returns how many are left. */
size_t handed_drop(struct engine *e, struct pod_view *views, size_t count);

#endif
