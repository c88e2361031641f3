/* files.h - volumes of the local vendor: folders, and access to their files without a pod. */
#ifndef BURST_PROVIDERS_LOCAL_FILES_H
#define BURST_PROVIDERS_LOCAL_FILES_H

#include "record.h"

/* Makes the volume if `create`. ERR_NOT_FOUND, ERR_REFUSED (an unsafe name). */
int volume_ensure(const struct store *store, const char *name, bool create, struct err *err);
int volume_remove(const struct store *store, const char *name, struct err *err);
/* Returns an array of {"name","used_bytes"}; used_bytes are bytes on disk. */
json_t *volume_list(const struct store *store);

/* Copy one file and follow no link in the path: a pod may have put links there. max 0: no limit.
 * *moved: bytes copied. stage reads stdin, writes under another name, syncs and renames;
 * ERR_REFUSED if more than max bytes arrive. fetch writes at most max bytes from offset on to
 * stdout. */
int volume_stage(const struct store *store, const char *name, const char *path, int64_t max,
		 int64_t *moved, struct err *err);
int volume_fetch(const struct store *store, const char *name, const char *path, int64_t offset,
		 int64_t max, int64_t *moved, struct err *err);

/* Returns an array of {"name","folder","bytes","files","changed_s"}, one for each entry of the
 * folder; a folder's numbers include all below it. Follows no link. ERR_NOT_FOUND if the folder is
 * missing. */
int volume_measure_folder(const struct store *store, const char *name, const char *path,
			  json_t **out, struct err *err);
/* Removes a file, or a folder with all below it. Succeeds if it is missing. */
int volume_delete(const struct store *store, const char *name, const char *path, struct err *err);

#endif
