/* work.h - finds a segment of the job by its id. */
#ifndef BURST_ENGINE_WORK_H
#define BURST_ENGINE_WORK_H

#include <stdint.h>

struct engine;

void segment_ids_sort(struct engine *e);
void segment_ids_free(struct engine *e);
/* The number of the segment with this id; -1: there is none. */
int64_t segment_by_id(const struct engine *e, const char *id);

#endif
