/* claims.c - knows which segment an output's name belongs to. */
#include "claims.h"

#include <search.h>
#include <stdlib.h>

#include "impl.h"

/* For commands. A name belongs to the first segment that reported it; it is a file of that segment,
 * or a folder that outputs lie in. */
struct claim {
	uint32_t segment;
	bool is_file;
	size_t file;
	size_t below; /* files in this folder and below it */
	char name[];
};

static int claim_order(const void *a, const void *b)
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

/* Hashed, because one command may have a hundred thousand outputs. len: of the part of name that
 * counts. */
static struct claim *claim_find(const struct engine *e, const char *name, size_t len)
{
	CLEANUP(free_claim) struct claim *wanted = claim_new(name, len);
	struct claim **found = tfind(wanted, &e->claims, claim_order);

	return found ? *found : NULL;
}

static struct claim *claim_make(struct engine *e, const char *name, size_t len)
{
	struct claim *mine = claim_new(name, len);
	struct claim **found = tsearch(mine, &e->claims, claim_order);

	if (!found)
		abort();
	if (*found != mine)
		free(mine);
	return *found;
}

static void claim_drop(struct engine *e, struct claim *c)
{
	if (c->is_file || c->below)
		return;
	tdelete(c, &e->claims, claim_order);
	free(c);
}

/* Steps through the folders of a name: returns the length of the next one; 0: no more. */
static size_t next_folder(const char *name, size_t len)
{
	const char *slash = strchr(name + (len ? len + 1 : 0), '/');

	return slash ? (size_t)(slash - name) : 0;
}

/* The name of a file cannot also be that of a folder. */
static const struct claim *in_the_way(const struct engine *e, const char *name)
{
	const struct claim *c = claim_find(e, name, strlen(name));

	if (c && c->below)
		return c;
	for (size_t len = next_folder(name, 0); len; len = next_folder(name, len)) {
		c = claim_find(e, name, len);
		if (c && c->is_file)
			return c;
	}
	return NULL;
}

enum claim_answer claims_take(struct engine *e, uint32_t segment, const char *name, uint32_t *owner)
{
	struct claim *c = claim_find(e, name, strlen(name));

	if (c && c->is_file) {
		*owner = c->segment;
		return c->segment == segment ? CLAIM_TAKEN : CLAIM_OF_ANOTHER;
	}
	const struct claim *other = in_the_way(e, name);
	if (other) {
		*owner = other->segment;
		return CLAIM_IN_THE_WAY;
	}
	for (size_t len = next_folder(name, 0); len; len = next_folder(name, len)) {
		struct claim *folder = claim_make(e, name, len);
		folder->segment = folder->below++ ? folder->segment : segment;
	}
	c = claim_make(e, name, strlen(name));
	c->is_file = true;
	c->segment = segment;
	return CLAIM_TAKEN;
}

void claims_drop(struct engine *e, uint32_t segment, const char *name)
{
	struct claim *c = claim_find(e, name, strlen(name));

	if (!c || !c->is_file || c->segment != segment)
		return;
	c->is_file = false;
	claim_drop(e, c);
	for (size_t len = next_folder(name, 0); len; len = next_folder(name, len)) {
		c = claim_find(e, name, len);
		c->below--;
		claim_drop(e, c);
	}
}

void claims_free(struct engine *e)
{
	while (e->claims) {
		struct claim *c = *(struct claim **)e->claims;
		tdelete(c, &e->claims, claim_order);
		free(c);
	}
}

size_t *claims_file(struct engine *e, uint32_t segment, const char *name)
{
	struct claim *c = claim_find(e, name, strlen(name));

	return c && c->is_file && c->segment == segment ? &c->file : NULL;
}
