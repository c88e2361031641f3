/* handed.h - finds out that another run took a pod. */
#ifndef BURST_ENGINE_HANDED_H
#define BURST_ENGINE_HANDED_H

#include "provider.h"
#include "store/store.h"

struct engine;

/* Withdraws the offer of a pod. True: another run has it already, which the core is told. */
bool handed_over(struct engine *e, int pod);
/* Writes the pod's row; *result as of store_put_pod(). True: another run has the pod, and the row
 * was not written. */
bool handed_put(struct engine *e, int pod, const struct pod_row *row, struct err *err, int *result);
/* In each turn of the loop. */
void handed_watch(struct engine *e);
/* Drops from a list what bears our marker and was handed on; returns how many are left. */
size_t handed_drop(struct engine *e, struct pod_view *views, size_t count);

#endif
