/* work.h - the job of the engine: its segments and their needs. */
#ifndef BURST_ENGINE_WORK_H
#define BURST_ENGINE_WORK_H

#include "job.h"

struct engine;
struct segment_id;

/* Read once when the engine is made; all NULL and 0 without work (reap, cancel). The job owns the
 * texts. Only work.c writes it. */
struct work {
	const struct segment *segments; /* in the core's order */
	size_t count;
	const struct job_needs *needs;
	struct segment_id *ids; /* sorted */
};

void work_read(struct engine *e);
void work_free(struct engine *e);
/* Index of the segment with this id; -1: none. */
int64_t segment_by_id(const struct engine *e, const char *id);

#endif
