/* volume_files.h - fetches files of a volume without a pod. */
#ifndef BURST_ENGINE_VOLUME_FILES_H
#define BURST_ENGINE_VOLUME_FILES_H

#include <stdint.h>

#include "base/err.h"
#include "rented.h"

struct engine;

/* Fetches the file at path of the pod's volume into the run's folder, under this name. There may be
 * very many, each with a connection of its own: a few run at a time. done() comes exactly once. err
 * NULL: local is the file, which the callee must remove. Otherwise as the provider's OP_FETCH
 * fails, or ERR_INTERRUPTED (volume_files_stop()). */
void volume_files_get(struct engine *e, int pod, const char *path, const char *name,
		      int64_t max_bytes,
		      void (*done)(void *ctx, const char *local, const struct err *err), void *ctx);
void volume_files_from(struct engine *e, int provider, const struct volume *volume,
		       const char *path, const char *name, int64_t max_bytes,
		       void (*done)(void *ctx, const char *local, const struct err *err),
		       void *ctx);
/* Ends everything under way; no further call is allowed. After the caller was freed. */
void volume_files_stop(struct engine *e);

#endif
