/* volume_tidy.h - `burst volume gc`: from one volume or from all. */
#ifndef BURST_CMD_VOLUMES_VOLUME_TIDY_H
#define BURST_CMD_VOLUMES_VOLUME_TIDY_H

#include "cmd/launch/launch.h"

/* Removes what is no longer needed (volume_gc.h). name NULL: from each volume whose provider can
 * do it without a pod. */
int volume_tidy(struct launch *l, const char *name, struct err *err);

#endif
