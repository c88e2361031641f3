/* reuse.c - finds finished files of the output folder and the render cache that a script can reuse.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/jsonx.h"
#include "base/path.h"
#include "jobs/foreign.h"
#include "reuse_state.h"

void reuse_free(struct reuse *r)
{
	if (!r)
		return;
	free(r->origins);
	free(r->owned);
	free(r->by_key);
	manifest_free(&r->m);
	free(r);
}

static inline void reuse_free_cleanup(struct reuse **r)
{
	reuse_free(*r);
}

/* ---- what is there ---- */

static void list_owned(struct reuse *r)
{
	r->owned = xcalloc(r->m.count + 1, sizeof(*r->owned));
	for (size_t i = 0; i < r->m.count; i++)
		if (manifest_is_latest(&r->m, i))
			r->owned[r->owned_count++] = (struct owned){.file = r->m.by_file[i]->file,
								    .segment = NO_INDEX,
								    .first = NO_INDEX};
}

static int owned_by_file(const void *a, const void *b)
{
	return strcmp(((const struct owned *)a)->file, ((const struct owned *)b)->file);
}

static struct owned *owned_find(const struct reuse *r, const char *file)
{
	struct owned wanted = {.file = file};

	return r->owned_count ? bsearch(&wanted, r->owned, r->owned_count, sizeof(*r->owned),
					owned_by_file)
			      : NULL;
}

static int by_key_latest_first(const void *a, const void *b)
{
	const struct manifest_entry *x = *(struct manifest_entry *const *)a,
				    *y = *(struct manifest_entry *const *)b;
	int order = strcmp(x->key, y->key);

	return order ? order : (x < y) - (x > y);
}

static void list_keys(struct reuse *r)
{
	r->by_key = xcalloc(r->m.count + 1, sizeof(*r->by_key));
	for (size_t i = 0; i < r->m.count; i++)
		r->by_key[i] = &r->m.entries[i];
	if (r->m.count)
		qsort(r->by_key, r->m.count, sizeof(*r->by_key), by_key_latest_first);
}

/* Hashes the file once. */
static int judge_file(struct reuse *r, struct owned *o, struct err *err)
{
	bool absent;

	if (o->state != UNJUDGED)
		return 0;
	if (manifest_match(&r->m, r->want.dir, o->file, NULL, &o->entry, &absent, err) < 0)
		return -1;
	o->state = absent ? ABSENT : o->entry ? OURS : FOREIGN;
	if (o->entry)
		COPY_TEXT(o->sha256, o->entry->sha256);
	return 0;
}

static bool is_there(const struct reuse *r, const char *file)
{
	CLEANUP(fd_close) int folder = path_open_dir(r->want.dir);
	struct stat st;

	return folder >= 0 && fstatat(folder, file, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- who gets what ---- */

static bool has_key(const struct manifest_entry *e, const struct segment *s)
{
	return !strcmp(e->key, s->key) || (s->former_key[0] && !strcmp(e->key, s->former_key));
}

static void restore(const struct manifest_entry *e, const struct segment *s,
		    struct segment_result *result)
{
	manifest_restore(e, result);
	if (strcmp(e->key, s->key))
		COPY_TEXT(result->key, e->key);
}

/* Matches the file under the segment's own name. Prefers a line with the present key to one with
 * the former key. */
static void match_in_place(struct reuse *r, size_t i, struct owned *o,
			   struct segment_result *result)
{
	const struct segment *s = &r->want.segments[i];
	const struct manifest_entry *fits = NULL;
	size_t count = 0;
	struct manifest_entry *const *lines = manifest_find(&r->m, o->file, &count);

	for (size_t k = 0; k < count; k++)
		if (!strcmp(lines[k]->sha256, o->sha256) && has_key(lines[k], s) &&
		    (!fits || !strcmp(lines[k]->key, s->key)))
			fits = lines[k];
	if (!fits)
		return;
	restore(fits, s, result);
	o->in_place = true;
	r->origins[i].where = IN_PLACE;
}

/* *foreign: the first file in the way. */
static int match_own_names(struct reuse *r, struct segment_result *results, const char **foreign,
			   size_t *more, struct err *err)
{
	for (size_t i = 0; i < r->want.count; i++) {
		const char *file = r->want.segments[i].file;
		struct owned *o = owned_find(r, file);
		if (o && judge_file(r, o, err) < 0)
			return -1;
		r->origins[i].own_name = o ? o - r->owned : NO_INDEX;
		if (o)
			o->segment = (ssize_t)i;
		if (o && o->state == OURS && !r->want.anew)
			match_in_place(r, i, o, &results[i]);
		if (r->want.force || (o ? o->state != FOREIGN : !is_there(r, file)))
			continue;
		*more += *foreign != NULL;
		*foreign = *foreign ? *foreign : file;
	}
	return 0;
}

static size_t first_of_key(const struct reuse *r, const char *key)
{
	size_t low = 0, high = r->m.count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (strcmp(r->by_key[mid]->key, key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Returns a file of this key: an unused one if possible, else a shared one; NULL: none. */
static int find_of_key(struct reuse *r, const char *key, const struct manifest_entry **entry,
		       struct owned **out, struct err *err)
{
	*out = NULL;
	for (size_t k = first_of_key(r, key);
	     key[0] && k < r->m.count && !strcmp(r->by_key[k]->key, key); k++) {
		struct owned *o = owned_find(r, r->by_key[k]->file);
		if (judge_file(r, o, err) < 0)
			return -1;
		if (o->state != OURS || strcmp(o->sha256, r->by_key[k]->sha256) || *out == o)
			continue;
		bool is_free = !o->in_place && !o->wanted;
		if (*out && !is_free)
			continue;
		*out = o;
		*entry = r->by_key[k];
		if (is_free)
			return 0;
	}
	return 0;
}

static int match_folder(struct reuse *r, size_t i, struct segment_result *result, struct err *err)
{
	const struct segment *s = &r->want.segments[i];
	const struct manifest_entry *entry;
	struct owned *o;

	if (find_of_key(r, s->key, &entry, &o, err) < 0 ||
	    (!o && find_of_key(r, s->former_key, &entry, &o, err) < 0))
		return -1;
	if (!o)
		return 0;
	restore(entry, s, result);
	r->origins[i].where = FROM_FOLDER;
	r->origins[i].owned = (size_t)(o - r->owned);
	r->origins[i].next = o->first;
	o->first = (ssize_t)i;
	o->wanted++;
	return 0;
}

static int match_elsewhere(struct reuse *r, struct segment_result *results, struct err *err)
{
	for (size_t i = 0; i < r->want.count && !r->want.anew; i++)
		if (r->origins[i].where == NOWHERE && match_folder(r, i, &results[i], err) < 0)
			return -1;
	for (size_t i = 0; i < r->want.count && !r->want.anew && r->want.cached; i++) {
		if (r->origins[i].where != NOWHERE)
			continue;
		int fd = r->want.cached(r->want.job, i, &results[i]);
		if (fd >= 0)
			r->origins[i].where = FROM_CACHE;
		fd_close(fd);
	}
	return 0;
}

/* ---- what changed ---- */

bool reuse_is_parked(const char *file)
{
	return !strncmp(file, REUSE_PARK, sizeof(REUSE_PARK) - 1) && !strchr(file, '/');
}

/* Leaves out files that a delivery fetched and other types of job. *former: the line's file had no
 * segment at the time. */
static bool is_speech(const struct manifest_entry *e, bool *former)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);

	*former = jsonx_bool(line, "former", false);
	return json_is_string(json_object_get(line, "text")) &&
	       json_is_string(json_object_get(line, "voice"));
}

static int count_old(struct reuse *r, struct err *err)
{
	for (size_t k = 0; k < r->owned_count; k++) {
		struct owned *o = &r->owned[k];
		bool former;
		if (judge_file(r, o, err) < 0)
			return -1;
		if (o->state != OURS || o->in_place || (o->segment != NO_INDEX && o->wanted) ||
		    !is_speech(o->entry, &former))
			continue;
		if (o->segment == NO_INDEX && !(o->wanted && reuse_is_parked(o->file)))
			r->changes.stale++; /* a segment that needs the file gets a copy */
		if (o->wanted || former)
			continue;
		if (o->segment != NO_INDEX && r->origins[o->segment].where == NOWHERE)
			r->changes.changed++;
		else
			r->changes.gone++;
	}
	return 0;
}

static int count_changes(struct reuse *r, struct err *err)
{
	struct job_changes *c = &r->changes;

	for (size_t i = 0; i < r->want.count; i++) {
		c->added += r->origins[i].where == NOWHERE;
		c->moved += r->origins[i].where == FROM_FOLDER;
		c->from_cache += r->origins[i].where == FROM_CACHE;
		c->unchanged += r->origins[i].where != NOWHERE;
	}
	if (count_old(r, err) < 0)
		return -1;
	c->added -= c->changed;
	return 0;
}

void reuse_count(const struct reuse *r, struct job_changes *out)
{
	*out = r->changes;
}

int reuse_find(struct reuse **out, const struct reuse_want *want, struct segment_result *results,
	       struct err *err)
{
	CLEANUP(reuse_free) struct reuse *r = xcalloc(1, sizeof(*r));
	const char *foreign = NULL;
	size_t more = 0;

	r->want = *want;
	r->origins = xcalloc(want->count + 1, sizeof(*r->origins));
	for (size_t i = 0; i < want->count; i++)
		r->origins[i] = (struct origin){.next = NO_INDEX};
	if (manifest_read(want->dir, want->force, &r->m, err) < 0)
		return -1;
	list_owned(r);
	list_keys(r);
	if (match_own_names(r, results, &foreign, &more, err) < 0)
		return -1;
	if (foreign)
		return foreign_refuse(want->dir, foreign, more, err);
	if (match_elsewhere(r, results, err) < 0 || count_changes(r, err) < 0)
		return -1;
	*out = TAKE(r);
	return 0;
}

/* ---- names that no segment has ---- */

int reuse_stale(const struct reuse_want *want, struct reuse_names *out, struct err *err)
{
	CLEANUP(reuse_free) struct reuse *r = xcalloc(1, sizeof(*r));

	r->want = *want;
	if (manifest_read(want->dir, true, &r->m, err) < 0)
		return -1;
	list_owned(r);
	for (size_t i = 0; i < want->count; i++) {
		struct owned *o = owned_find(r, want->segments[i].file);
		if (o)
			o->segment = (ssize_t)i;
	}
	for (size_t k = 0; k < r->owned_count; k++) {
		struct owned *o = &r->owned[k];
		bool former;
		if (o->segment != NO_INDEX)
			continue;
		if (judge_file(r, o, err) < 0)
			return -1;
		if (o->state != OURS || !is_speech(o->entry, &former))
			continue;
		GROW(out->list, out->count, out->cap);
		out->list[out->count++] = xstrdup(o->file);
	}
	return 0;
}

void reuse_names_free(struct reuse_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i]);
	free(names->list);
	*names = (struct reuse_names){0};
}
