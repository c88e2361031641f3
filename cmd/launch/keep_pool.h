/* keep_pool.h - pods that outlive their run: kept for a while by a client of their own, and taken
 * over by the next run that can use them. */
#ifndef BURST_CMD_LAUNCH_KEEP_POOL_H
#define BURST_CMD_LAUNCH_KEEP_POOL_H

#include "engine/kept.h"
#include "launch.h"

/* keep_warm as the core has it: ms, 0: none, KEEP_WARM_AUTO. */
int64_t keep_warm_ms(const struct config *config);
/* The pods of this run may be handed on, and those of others be taken over. After
 * launch_conf_from_config(). */
void keep_pool(struct launch *l);
/* How many pods that other runs offer a run of this launch would take over now, if it took
 * planned_ms. The accounts are open and the job is read. */
int keep_warm_pods(struct launch *l, int64_t planned_ms);

#endif
