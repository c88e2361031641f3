/* volume_whole.h - `burst volume ls`, `create`, `rm` and `warm`: whole volumes. */
#ifndef BURST_CMD_VOLUMES_VOLUME_WHOLE_H
#define BURST_CMD_VOLUMES_VOLUME_WHOLE_H

#include "cmd/launch/launch.h"

/* Prints the volumes of all providers. */
int volume_whole_list(struct launch *l, struct err *err);
/* Creates it at the first provider, with the config's size, unless it exists. */
int volume_whole_create(struct launch *l, const char *name, struct err *err);
/* Prompts, then removes the volume. ERR_USAGE: a pod uses it, or the answer was no. */
int volume_whole_remove(struct launch *l, const char *name, struct err *err);
/* Fills it from a pod without a GPU (volume_warm.h). */
int volume_whole_warm(struct launch *l, const char *name, struct err *err);

#endif
