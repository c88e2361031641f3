/* prepare.h - prepares a pod step by step. */
#ifndef BURST_ENGINE_PREPARE_H
#define BURST_ENGINE_PREPARE_H

#include <jansson.h>
#include <stdbool.h>

#include "store/store.h"

struct engine;

/* shared: also what its volume keeps for all pods. */
void prepare_pod(struct engine *e, int pod, bool shared);
/* The code folder has been scanned. */
void prepare_tree_ready(struct engine *e);
/* The agent is in place and has not sent hello yet. */
void prepare_early(struct engine *e, int pod);
/* Of a pod of an earlier client: what its row has. */
void prepare_adopt(struct engine *e, int pod, const struct pod_row *row);
/* An event of its agent. Returns false if it is not about preparing. */
bool prepare_event(struct engine *e, int pod, const char *what, const json_t *event);

#endif
