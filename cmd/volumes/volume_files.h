/* volume_files.h - `burst volume ls|get|put`: single files of a volume, without a pod. */
#ifndef BURST_CMD_VOLUMES_VOLUME_FILES_H
#define BURST_CMD_VOLUMES_VOLUME_FILES_H

#include "engine/caller.h"
#include "store/store.h"

/* Splits "tts-cache:env/x": the part before the colon, which the caller frees, or NULL; *path is
 * the rest. ERR_USAGE: the path cannot be on a volume. */
int volume_split(const char *text, char **name, const char **path, struct err *err);
/* Prints the contents of a folder. */
int volume_list_folder(const struct engine_provider *p, const struct volume_row *v,
		       const char *path, struct err *err);
/* Writes a new file; fails if it exists. */
int volume_get_file(const struct engine_provider *p, const struct volume_row *v, const char *path,
		    const char *file, struct err *err);
/* Replaces a file of this name. */
int volume_put_file(const struct engine_provider *p, const struct volume_row *v, const char *file,
		    const char *path, struct err *err);

#endif
