/* stage.h - puts the code on a volume before there is a pod, if the vendor can take it. */
#ifndef BURST_ENGINE_STAGE_H
#define BURST_ENGINE_STAGE_H

#include "upsync.h"

struct engine;

/* This provider's volume is known. post_volume_ready() follows: now, or after an upload that takes
 * long. */
void stage_volume(struct engine *e, int provider);
void stage_tree_ready(struct engine *e);
/* A pod needs the code now. Returns true if the volume has it; *want then describes it. Otherwise
 * staging stops. */
bool stage_take(struct engine *e, int provider, struct upsync_want *want);
void stage_stop(struct engine *e, int provider);
void stage_free(struct engine *e);

#endif
