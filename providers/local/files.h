/* files.h - volumes of the local vendor: folders, and their files without a pod. */
#ifndef BURST_PROVIDERS_LOCAL_FILES_H
#define BURST_PROVIDERS_LOCAL_FILES_H

#include "record.h"

/* Makes it when create. ERR_NOT_FOUND, ERR_REFUSED (a name that is not safe). */
int volume_ensure(const struct store *store, const char *name, bool create, struct err *err);
int volume_remove(const struct store *store, const char *name, struct err *err);
/* An array of {"name","used_bytes"}; used_bytes are those on disk. */
json_t *volume_list(const struct store *store);

/* One file, opened part by part from the volume's folder without following any link, since a pod
 * may have put links there. max 0: no limit. *moved counts bytes. stage: from stdin, written
 * beside, fsynced and renamed into place; ERR_REFUSED when more than max come. fetch: to stdout
 * from offset on, at most max bytes. */
int volume_stage(const struct store *store, const char *name, const char *path, int64_t max,
		 int64_t *moved, struct err *err);
int volume_fetch(const struct store *store, const char *name, const char *path, int64_t offset,
		 int64_t max, int64_t *moved, struct err *err);

/* An array of {"name","folder","bytes","files","changed_s"}, one for each thing in the folder;
 * those of a folder count all below it. No link is followed. ERR_NOT_FOUND without the folder. */
int volume_measure_folder(const struct store *store, const char *name, const char *path,
			  json_t **out, struct err *err);
/* The file, or the folder with all below it; absent is success. */
int volume_delete(const struct store *store, const char *name, const char *path, struct err *err);

#endif
