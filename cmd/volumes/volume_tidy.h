/* volume_tidy.h - `burst volume gc`: tidies one volume or all. */
#ifndef BURST_CMD_VOLUMES_VOLUME_TIDY_H
#define BURST_CMD_VOLUMES_VOLUME_TIDY_H

#include "cmd/launch/launch.h"

/* Removes what is no longer needed (volume_gc.h). name NULL: from each volume whose provider can do
 * that without a pod. */
int volume_tidy(struct launch *l, const char *name, struct err *err);

#endif
