/* names.c - knows the names of the run's batches, segments and outputs. */
#include <search.h>
#include <stdlib.h>

#include "impl.h"

/* ---- batch ids ---- */

char *batch_id(const struct engine *e, uint32_t number)
{
	return xasprintf("%s-%u", e->client.life, number);
}

uint32_t batch_id_number(const struct engine *e, const char *id)
{
	size_t len = strlen(e->client.life);

	if (strncmp(id, e->client.life, len) || id[len] != '-')
		return UINT32_MAX;
	return (uint32_t)strtoul(id + len + 1, NULL, 10);
}

/* ---- work ----
 * Reads the job's segments, and finds one by its id. */

struct segment_id {
	const char *id; /* of the job */
	uint32_t number;
};

static int compare_ids(const void *a, const void *b)
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
	qsort(w->ids, w->count, sizeof(*w->ids), compare_ids);
}

void work_free(struct engine *e)
{
	free(e->work.ids);
}

int64_t segment_by_id(const struct engine *e, const char *id)
{
	const struct segment_id wanted = {.id = id};
	const struct segment_id *found =
		e->work.count
			? bsearch(&wanted, e->work.ids, e->work.count, sizeof(wanted), compare_ids)
			: NULL;

	return found ? (int64_t)found->number : -1;
}

/* ---- claims ---- */

/* For commands. A name belongs to the first segment that reported it; it is a file of that segment,
 * or a folder that outputs lie in. */
struct claim {
	uint32_t segment;
	bool is_file;
	size_t file;
	size_t below; /* files in this folder and below it */
	char name[];
};

static int compare_claims(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void free_claim_cleanup(struct claim **c)
{
	free(*c);
}

static struct claim *claim_new(const char *name, size_t len)
{
	struct claim *c = xcalloc(1, sizeof(*c) + len + 1);

	memcpy(c->name, name, len);
	return c;
}

/* The claim on the first len characters of name; NULL: none. A tree, because one command may have a
 * hundred thousand outputs. */
static struct claim *find_claim(const struct engine *e, const char *name, size_t len)
{
	CLEANUP(free_claim) struct claim *wanted = claim_new(name, len);
	struct claim **found = tfind(wanted, &e->claims, compare_claims);

	return found ? *found : NULL;
}

static struct claim *find_or_add_claim(struct engine *e, const char *name, size_t len)
{
	struct claim *mine = claim_new(name, len);
	struct claim **found = tsearch(mine, &e->claims, compare_claims);

	if (!found)
		abort();
	if (*found != mine)
		free(mine);
	return *found;
}

static void drop_unused_claim(struct engine *e, struct claim *c)
{
	if (c->is_file || c->below)
		return;
	tdelete(c, &e->claims, compare_claims);
	free(c);
}

/* Steps through the folders of a name: returns the length of the next one; 0: no more. */
static size_t next_folder(const char *name, size_t len)
{
	const char *slash = strchr(name + (len ? len + 1 : 0), '/');

	return slash ? (size_t)(slash - name) : 0;
}

/* The claim that keeps a file of this name from being made, because the name of a file cannot also
 * be that of a folder; NULL: none. */
static const struct claim *claim_in_the_way(const struct engine *e, const char *name)
{
	const struct claim *c = find_claim(e, name, strlen(name));

	if (c && c->below)
		return c;
	for (size_t len = next_folder(name, 0); len; len = next_folder(name, len)) {
		c = find_claim(e, name, len);
		if (c && c->is_file)
			return c;
	}
	return NULL;
}

enum claim_answer claims_take(struct engine *e, uint32_t segment, const char *name, uint32_t *owner)
{
	struct claim *c = find_claim(e, name, strlen(name));

	if (c && c->is_file) {
		*owner = c->segment;
		return c->segment == segment ? CLAIM_TAKEN : CLAIM_OF_ANOTHER;
	}
	const struct claim *other = claim_in_the_way(e, name);
	if (other) {
		*owner = other->segment;
		return CLAIM_IN_THE_WAY;
	}
	for (size_t len = next_folder(name, 0); len; len = next_folder(name, len)) {
		struct claim *folder = find_or_add_claim(e, name, len);
		folder->segment = folder->below++ ? folder->segment : segment;
	}
	c = find_or_add_claim(e, name, strlen(name));
	c->is_file = true;
	c->segment = segment;
	return CLAIM_TAKEN;
}

void claims_drop(struct engine *e, uint32_t segment, const char *name)
{
	struct claim *c = find_claim(e, name, strlen(name));

	if (!c || !c->is_file || c->segment != segment)
		return;
	c->is_file = false;
	drop_unused_claim(e, c);
	for (size_t len = next_folder(name, 0); len; len = next_folder(name, len)) {
		c = find_claim(e, name, len);
		c->below--;
		drop_unused_claim(e, c);
	}
}

void claims_free(struct engine *e)
{
	while (e->claims) {
		struct claim *c = *(struct claim **)e->claims;
		tdelete(c, &e->claims, compare_claims);
		free(c);
	}
}

size_t *claims_file(struct engine *e, uint32_t segment, const char *name)
{
	struct claim *c = find_claim(e, name, strlen(name));

	return c && c->is_file && c->segment == segment ? &c->file : NULL;
}
