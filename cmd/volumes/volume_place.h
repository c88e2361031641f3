/* volume_place.h - `burst volume ls|get|put VOLUME:PATH`. */
#ifndef BURST_CMD_VOLUMES_VOLUME_PLACE_H
#define BURST_CMD_VOLUMES_VOLUME_PLACE_H

#include "cmd/launch/launch.h"

/* Prints the contents of a folder; place is "VOLUME:PATH". */
int volume_place_list(struct launch *l, const char *place, struct err *err);
/* Fetches a file. file NULL: into this folder, under its own name. */
int volume_place_get(struct launch *l, const char *place, const char *file, struct err *err);
/* Stores a file. A place that is a folder ("env/") keeps the file's name. */
int volume_place_put(struct launch *l, const char *file, const char *place, struct err *err);

#endif
