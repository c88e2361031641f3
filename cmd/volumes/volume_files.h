/* volume_files.h - `burst volume ls|get|put`: single files of a volume, without a pod. */
#ifndef BURST_CMD_VOLUMES_VOLUME_FILES_H
#define BURST_CMD_VOLUMES_VOLUME_FILES_H

#include "engine/caller.h"
#include "store/store.h"

/* "tts-cache:env/x": the part before the colon, or NULL where there is none, to be freed; *path is
 * what follows. ERR_USAGE: the path cannot be one of a volume. */
int volume_split(const char *text, char **name, const char **path, struct err *err);
/* Prints what is in a folder. */
int volume_list_folder(const struct engine_provider *p, const struct volume_row *v,
		       const char *path, struct err *err);
/* Into a file that must not be there yet. */
int volume_get_file(const struct engine_provider *p, const struct volume_row *v, const char *path,
		    const char *file, struct err *err);
/* A file there with this name is replaced. */
int volume_put_file(const struct engine_provider *p, const struct volume_row *v, const char *file,
		    const char *path, struct err *err);

#endif
