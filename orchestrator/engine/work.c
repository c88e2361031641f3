/* work.c - finds a segment of the job by its id. */
#include "work.h"

#include <stdlib.h>

#include "impl.h"

struct segment_id {
	const char *id; /* the job's */
	uint32_t number;
};

static int by_id(const void *a, const void *b)
{
	const struct segment_id *x = a, *y = b;

	return strcmp(x->id, y->id);
}

void segment_ids_sort(struct engine *e)
{
	e->segment_ids = xcalloc(e->segment_count, sizeof(*e->segment_ids));
	for (uint32_t i = 0; i < e->segment_count; i++)
		e->segment_ids[i] = (struct segment_id){e->segments[i].id, i};
	qsort(e->segment_ids, e->segment_count, sizeof(*e->segment_ids), by_id);
}

void segment_ids_free(struct engine *e)
{
	free(e->segment_ids);
}

int64_t segment_by_id(const struct engine *e, const char *id)
{
	const struct segment_id wanted = {.id = id};
	const struct segment_id *found =
		e->segment_count
			? bsearch(&wanted, e->segment_ids, e->segment_count, sizeof(wanted), by_id)
			: NULL;

	return found ? (int64_t)found->number : -1;
}
