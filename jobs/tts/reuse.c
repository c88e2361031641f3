/* reuse.c - finds finished files that a script can reuse, and gives them the names that it
 * requires */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "jobs/foreign.h"
#include "state.h"

/* ---- reuse ----
 * Finds finished files of the output folder and the render cache that a script can reuse. */

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

/* Matches the file under the segment's own name. */
static void match_in_place(struct reuse *r, size_t i, struct owned *o,
			   struct segment_result *result)
{
	const struct segment *s = &r->want.segments[i];
	size_t count = 0;
	struct manifest_entry *const *lines = manifest_find(&r->m, o->file, &count);

	for (size_t k = 0; k < count; k++) {
		if (strcmp(lines[k]->sha256, o->sha256) || strcmp(lines[k]->key, s->key))
			continue;
		manifest_restore(lines[k], result);
		o->in_place = true;
		r->origins[i].where = IN_PLACE;
	}
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
	for (size_t k = first_of_key(r, key); k < r->m.count && !strcmp(r->by_key[k]->key, key);
	     k++) {
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
	const struct manifest_entry *entry;
	struct owned *o;

	if (find_of_key(r, r->want.segments[i].key, &entry, &o, err) < 0)
		return -1;
	if (!o)
		return 0;
	manifest_restore(entry, result);
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

/* Returns whether an interrupted move left the file under this name. */
static bool reuse_is_parked(const char *file)
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

/* ---- reuse bring ----
 * Gives reused files the names that the script requires: orders the renames, then acts. */

#define BEGUN ".burst-copy-"

/* One step: gives a file to a name. */
struct step {
	enum { RENAME, COPY, FETCH, PARK_IT } how;
	char *from, *to;                    /* from is NULL for FETCH */
	ssize_t segment;                    /* owner of the name `to`; NO_INDEX: a parked file */
	const struct manifest_entry *entry; /* line of a parked file */
};

struct moving {
	struct reuse *r;
	struct step *steps;
	size_t count, cap;
	size_t *ready; /* segments whose names are free */
	size_t ready_count;
	bool *done;    /* for each segment */
	char **parked; /* for each owned file: its name while parked; NULL: its own */
	size_t left, parks;
};

static void moving_free_cleanup(struct moving *m)
{
	for (size_t i = 0; i < m->count; i++) {
		free(m->steps[i].from);
		free(m->steps[i].to);
	}
	for (size_t k = 0; m->parked && k < m->r->owned_count; k++)
		free(m->parked[k]);
	free(m->steps);
	free(m->ready);
	free(m->done);
	free(m->parked);
}

static void add_step(struct moving *m, struct step step)
{
	GROW(m->steps, m->count, m->cap);
	m->steps[m->count++] = step;
}

/* Returns the file under the segment's name if another segment still needs it; NULL: the name is
 * free. */
static struct owned *in_the_way(const struct moving *m, size_t i)
{
	ssize_t k = m->r->origins[i].own_name;
	struct owned *o = k == NO_INDEX ? NULL : &m->r->owned[k];

	return o && o->wanted && !m->parked[k] ? o : NULL;
}

static void take_from_folder(struct moving *m, size_t i)
{
	struct reuse *r = m->r;
	size_t k = r->origins[i].owned;
	struct owned *o = &r->owned[k];
	const char *from = m->parked[k] ? m->parked[k] : o->file;
	/* a name without a segment may be another job's file */
	bool ours = m->parked[k] || reuse_is_parked(o->file) ||
		    (o->segment != NO_INDEX && !o->in_place);
	bool last = --o->wanted == 0;

	add_step(m, (struct step){.how = ours && last ? RENAME : COPY,
				  .from = xstrdup(from),
				  .to = xstrdup(r->want.segments[i].file),
				  .segment = (ssize_t)i});
	if (last && o->segment != NO_INDEX && !m->done[o->segment] && !m->parked[k])
		m->ready[m->ready_count++] = (size_t)o->segment;
}

static bool is_to_come(const struct moving *m, size_t i)
{
	return !m->done[i] &&
	       (m->r->origins[i].where == FROM_FOLDER || m->r->origins[i].where == FROM_CACHE);
}

static void take(struct moving *m, size_t i)
{
	struct reuse *r = m->r;

	if (!is_to_come(m, i))
		return;
	m->done[i] = true;
	m->left--;
	if (r->origins[i].where == FROM_FOLDER)
		take_from_folder(m, i);
	else
		add_step(m, (struct step){.how = FETCH,
					  .to = xstrdup(r->want.segments[i].file),
					  .segment = (ssize_t)i});
}

static void take_ready(struct moving *m)
{
	while (m->ready_count)
		take(m, m->ready[--m->ready_count]);
}

/* Parks the file under this segment's name: all remaining segments wait for each other. */
static void park(struct moving *m, size_t i)
{
	struct owned *o = in_the_way(m, i);
	size_t k = (size_t)(o - m->r->owned);

	m->parked[k] = xasprintf(REUSE_PARK "%.16s-%zu.wav", o->sha256, m->parks++);
	add_step(m, (struct step){.how = PARK_IT,
				  .from = xstrdup(o->file),
				  .to = xstrdup(m->parked[k]),
				  .segment = NO_INDEX,
				  .entry = o->entry});
	m->ready[m->ready_count++] = i;
}

/* Orders the steps so that none destroys a file that a later one needs. */
static void order_steps(struct moving *m)
{
	struct reuse *r = m->r;

	m->ready = xcalloc(r->want.count + r->owned_count + 1, sizeof(*m->ready));
	m->done = xcalloc(r->want.count + 1, sizeof(*m->done));
	m->parked = xcalloc(r->owned_count + 1, sizeof(*m->parked));
	for (size_t i = 0; i < r->want.count; i++)
		m->left += is_to_come(m, i);
	for (size_t i = 0; i < r->want.count; i++) {
		if (!is_to_come(m, i) || in_the_way(m, i))
			continue;
		m->ready[m->ready_count++] = i;
		take_ready(m);
	}
	for (size_t i = 0; i < r->want.count && m->left; i++) {
		if (!is_to_come(m, i))
			continue;
		if (in_the_way(m, i))
			park(m, i);
		else
			m->ready[m->ready_count++] = i;
		take_ready(m);
	}
}

/* Writes the lines of all new names before the first rename: a line without its file is harmless, a
 * file without a line counts as foreign. */
static int write_lines(const struct moving *m, const struct segment_result *results,
		       struct err *err)
{
	CLEANUP(manifest_lines_free) struct manifest_lines lines = {0};

	for (size_t s = 0; s < m->count; s++) {
		const struct step *step = &m->steps[s];
		json_t *line;
		if (step->segment != NO_INDEX) {
			line = m->r->want.line(m->r->want.job, (size_t)step->segment,
					       &results[step->segment]);
		} else {
			line = manifest_entry_json(step->entry);
			if (!json_object_get(line, "rendered_as"))
				json_object_set_new(line, "rendered_as", json_string(step->from));
			json_object_set_new(line, "file", json_string(step->to));
			json_object_set_new(line, "former", json_true());
		}
		manifest_lines_add(&lines, line);
	}
	return manifest_append(m->r->want.dir, &lines, err);
}

/* Writes a synced copy beside the target, then renames it. *full: why it could not be written. */
static int copy_to(int folder, int from, const char *to, struct err *full)
{
	CLEANUP(free_text) char *begun = xasprintf(BEGUN "%s", to);
	CLEANUP(fd_close) int fd = path_open_new_at(folder, begun, O_RDWR, 0666);

	if (fd >= 0 && fd_clone(from, fd) == 0 && fsync(fd) == 0 &&
	    renameat(folder, begun, folder, to) == 0)
		return 0;
	err_set(full, ERR_LOCAL, "%s: %s", to, strerror(errno));
	(void)unlinkat(folder, begun, 0);
	return -1;
}

static int open_origin(const struct reuse *r, int folder, const struct step *step,
		       const struct segment_result *result)
{
	struct segment_result again = {0};

	if (step->how == COPY)
		return path_open_below(folder, step->from, O_RDONLY);
	int fd = r->want.cached(r->want.job, (size_t)step->segment, &again);
	if (fd < 0 || !strcmp(again.sha256, result->sha256))
		return fd;
	close(fd);
	return -1;
}

/* A failed copy costs one render. A failed rename costs nothing: every file is where it was. */
static int act(const struct reuse *r, int folder, const struct step *step,
	       struct segment_result *results, struct err *full, struct err *err)
{
	if (step->how == RENAME || step->how == PARK_IT) {
		if (renameat(folder, step->from, folder, step->to) == 0)
			return 0;
		return err_set(err, ERR_LOCAL, "%s/%s: cannot be renamed to %s: %s", r->want.dir,
			       step->from, step->to, strerror(errno));
	}
	CLEANUP(fd_close) int from = open_origin(r, folder, step, &results[step->segment]);
	if (from < 0 || copy_to(folder, from, step->to, full) < 0)
		results[step->segment] = (struct segment_result){0};
	return 0;
}

static void drop_begun(int folder)
{
	int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);

	if (own >= 0 && !dir)
		close(own);
	for (struct dirent *e; dir && (e = readdir(dir));)
		if (!strncmp(e->d_name, BEGUN, sizeof(BEGUN) - 1))
			(void)unlinkat(folder, e->d_name, 0);
	if (dir)
		closedir(dir);
}

int reuse_bring(struct reuse *r, struct segment_result *results, struct str *notes, struct err *err)
{
	CLEANUP(moving_free) struct moving m = {.r = r};
	CLEANUP(fd_close) int folder = path_open_dir(r->want.dir);
	struct err full = {0};

	if (folder < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", r->want.dir, strerror(errno));
	drop_begun(folder);
	order_steps(&m);
	if (!m.count)
		return 0;
	if (write_lines(&m, results, err) < 0)
		return -1;
	for (size_t s = 0; s < m.count; s++)
		if (act(r, folder, &m.steps[s], results, &full, err) < 0)
			return -1;
	(void)fsync(folder); /* both names have lines, so either file may survive */
	if (full.kind)
		str_addf(notes,
			 "%s/%s: renders that are there cannot all be copied, so they are rendered "
			 "again\n",
			 r->want.dir, full.msg);
	return 0;
}
