/* work.h - what the engine has of its job: the segments, and what they need. */
#ifndef BURST_ENGINE_WORK_H
#define BURST_ENGINE_WORK_H

#include "job.h"

struct engine;
struct segment_id;

/* Read once, when the engine is made; all NULL and 0 if it has no work (reap, cancel). Texts belong
 * to the job. Only work.c writes it. */
struct work {
	const struct segment *segments; /* numbered as in the core */
	size_t count;
	const struct job_needs *needs;
	struct segment_id *ids; /* sorted */
};

void work_read(struct engine *e);
void work_free(struct engine *e);
/* The number of the segment with this id; -1: there is none. */
int64_t segment_by_id(const struct engine *e, const char *id);

#endif
