/* keep_pool.h - pods that outlive their run: a client keeps them for a while, and the next suitable
 * run takes them over. */
#ifndef BURST_CMD_LAUNCH_KEEP_POOL_H
#define BURST_CMD_LAUNCH_KEEP_POOL_H

#include "engine/kept.h"
#include "launch.h"

/* Lets this run hand on its pods and take over those of others. Call after
 * launch_conf(). */
void keep_pool(struct launch *l);
/* Number of pods offered by other runs that a run of this launch would take over now, if it took
 * planned_ms. The accounts are open and the job is loaded. */
int keep_warm_pods(struct launch *l, int64_t planned_ms);

#endif
