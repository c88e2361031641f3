/* work.c - reads the job's segments, and finds one by its id. */
#include "work.h"

#include <stdlib.h>

#include "impl.h"

struct segment_id {
	const char *id; /* of the job */
	uint32_t number;
};

static int by_id(const void *a, const void *b)
{
	const struct segment_id *x = a, *y = b;

	return strcmp(x->id, y->id);
}

void work_read(struct engine *e)
{
	const struct engine_setup *setup = e->setup;
	struct work *w = &e->work;

	if (!setup->job_ops)
		return;
	w->segments = setup->job_ops->segments(setup->job, &w->count);
	w->needs = setup->job_ops->needs(setup->job);
	w->ids = xcalloc(w->count, sizeof(*w->ids));
	for (uint32_t i = 0; i < w->count; i++)
		w->ids[i] = (struct segment_id){w->segments[i].id, i};
	qsort(w->ids, w->count, sizeof(*w->ids), by_id);
}

void work_free(struct engine *e)
{
	free(e->work.ids);
}

int64_t segment_by_id(const struct engine *e, const char *id)
{
	const struct segment_id wanted = {.id = id};
	const struct segment_id *found =
		e->work.count ? bsearch(&wanted, e->work.ids, e->work.count, sizeof(wanted), by_id)
			      : NULL;

	return found ? (int64_t)found->number : -1;
}
