/* volume_files.h - fetches finished files from a volume without a pod. */
#ifndef BURST_ENGINE_VOLUME_FILES_H
#define BURST_ENGINE_VOLUME_FILES_H

#include "request.h"

/* Fetches the files of this segment that are not here yet. */
void volume_files_get(struct engine *e, int pod, uint32_t segment);

/* A request for a file of the pod's volume; it arrives in the run's folder as local_name. */
struct request *volume_files_new(struct engine *e, int pod, const char *path,
				 const char *local_name);
/* There may be very many, each with a connection of its own: a few at a time. done(a) calls
 * volume_files_over() at its end. */
void volume_files_begin(struct request *a,
			void (*done)(void *ctx, struct op_result *result, const struct err *err));
void volume_files_over(struct request *a);

#endif
