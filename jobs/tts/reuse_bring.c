/* reuse_bring.c - gives reused files the names that the script requires: orders the renames, then
 * acts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clone.h"
#include "base/path.h"
#include "reuse_state.h"

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
