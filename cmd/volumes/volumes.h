/* volumes.h - what `burst volume` does with whole volumes, and with single files of them */
#ifndef BURST_CMD_VOLUMES_VOLUMES_H
#define BURST_CMD_VOLUMES_VOLUMES_H

#include "cmd/launch/launch.h"
#include "engine/caller.h"
#include "store/store.h"

/* ---- volume find ----
 * Finds a volume by name, as the providers list it now. */

/* ---- volume files ----
 * `burst volume ls|get|put`: single files of a volume, without a pod. */

/* ---- volume place ----
 * `burst volume ls|get|put VOLUME:PATH`. */

/* Prints the contents of a folder; place is "VOLUME:PATH". */
int volume_place_list(struct launch *l, const char *place, struct err *err);
/* Fetches a file. file NULL: into this folder, under its own name. */
int volume_place_get(struct launch *l, const char *place, const char *file, struct err *err);
/* Stores a file. A place that is a folder ("env/") keeps the file's name. */
int volume_place_put(struct launch *l, const char *file, const char *place, struct err *err);

/* ---- volume tidy ----
 * `burst volume gc`: tidies one volume or all. */

/* Removes what is no longer needed (volume_gc.h). name NULL: from each volume whose provider can do
 * that without a pod. */
int volume_tidy(struct launch *l, const char *name, struct err *err);

/* ---- volume whole ----
 * `burst volume ls`, `create`, `rm` and `warm`: whole volumes. */

/* Prints the volumes of all providers. */
int volume_whole_list(struct launch *l, struct err *err);
/* Creates it at the first provider, with the config's size, unless it exists. */
int volume_whole_create(struct launch *l, const char *name, struct err *err);
/* Prompts, then removes the volume. ERR_USAGE: a pod uses it, or the answer was no. */
int volume_whole_remove(struct launch *l, const char *name, struct err *err);
/* Fills it from a pod without a GPU (volume_warm.h). */
int volume_whole_warm(struct launch *l, const char *name, struct err *err);

#endif
