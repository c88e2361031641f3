/* pool.h - pods that pass from run to run on one machine. */
#ifndef BURST_TESTS_SIM_POOL_H
#define BURST_TESTS_SIM_POOL_H

#include <jansson.h>

#include "client.h"

/* This run had the pod before another one took it. */
bool pool_held(const struct client *cl, const struct machine *m);
/* As ACT_OFFER and ACT_SEEK are carried out. */
void pool_offer(struct client *cl, const struct action *a);
void pool_seek(struct client *cl, const struct action *a);
/* Before a release. True: another run has the pod, so it is not released. */
bool pool_withdraw(struct client *cl, int pod);
/* True: another run has the pod, and this run must not write its row. */
bool pool_saved(struct client *cl, int pod);
void pool_taken(struct client *cl, struct happening *h); /* W_TAKEN */
/* Drops pods from a list that were handed on and that this life does not know. */
size_t pool_drop(struct client *cl, struct pod_view *views, size_t count);
json_t *pool_want(struct client *cl); /* as run_row.wants; json_decref() it */
void plan_pool(struct plan *p);

#endif
