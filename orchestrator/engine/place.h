/* place.h - records fetched files and renames them into place. */
#ifndef BURST_ENGINE_PLACE_H
#define BURST_ENGINE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "job.h"
#include "sync/receive.h"

struct engine;

/* Only after EV_FETCHED: takes the fetched files from outfiles.c. EV_LOCAL (journal.h) or
 * EV_FETCH_FAILED follows. suspect: they failed their check. */
void place_files(struct engine *e, uint32_t segment, bool suspect);

/* Places those outputs of a command that are fetched, whatever the command does. outfiles_placed()
 * follows for each. */
void place_outputs(struct engine *e, uint32_t segment);

/* Places the files of one segment, which are complete, verified and checked: first the manifest's
 * lines, then the renames. A line without its file is harmless; a file without a line looks
 * foreign. Syncs the manifest and each folder once. May be called in a worker thread. */
int place_verified(const struct job_ops *ops, struct job *job, size_t index,
		   const struct segment_result *results, struct receive **list, size_t count,
		   struct err *err);

#endif
