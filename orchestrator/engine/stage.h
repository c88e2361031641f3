/* stage.h - the code on a volume before there is a pod, where the vendor can take it. */
#ifndef BURST_ENGINE_STAGE_H
#define BURST_ENGINE_STAGE_H

#include "upsync.h"

struct engine;

/* This provider's volume is known. post_volume_ready() follows: now, or when what takes long is
 * there. */
void stage_volume(struct engine *e, int provider);
void stage_tree_ready(struct engine *e);
/* A pod wants the code now: true when it can be taken from the volume, *want then says how. Else
 * staging is given up. */
bool stage_take(struct engine *e, int provider, struct upsync_want *want);
void stage_stop(struct engine *e, int provider);
void stage_free(struct engine *e);

#endif
