/* finished.c - what exists already: finds and renames files that a script can reuse, records new
 * ones, and ends the job */
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

/* ---- the manifest's line of a segment ---- */

static json_t *line_of_segment(const struct job *job, size_t index,
			       const struct segment_result *result)
{
	const struct segment *segment = &job->segments.list[index];
	const struct spoken *spoken = &job->segments.spoken[index];
	const struct script_item *item = &job->script.items[spoken->item];
	json_t *line = manifest_line(segment, result, segment->file, job->commit);

	json_object_set_new(line, "text", json_string(spoken->shown));
	if (strcmp(spoken->shown, spoken->text))
		json_object_set_new(line, "spoken", json_string(spoken->text));
	json_object_set_new(line, "seconds", json_real(result->seconds));
	json_object_set_new(line, "sample_rate", json_integer(result->sample_rate));
	json_object_set_new(line, "engine", json_string(job->engine_name));
	json_object_set_new(line, "voice", json_string(spoken->voice ? spoken->voice : ""));
	if (item->speaker)
		json_object_set_new(line, "speaker", json_string(item->speaker));
	manifest_add_result(line, result);
	if (strcmp(item->id, segment->id))
		json_object_set_new(line, "item", json_string(item->id));
	if (item->chapter >= 0)
		json_object_set_new(line, "chapter",
				    json_string(job->script.chapters[item->chapter]));
	json_object_update_missing(line, item->extra);
	return line;
}

int tts_record(struct job *job, size_t index, const struct segment_result *results, size_t count,
	       struct err *err)
{
	CLEANUP(manifest_lines_free) struct manifest_lines lines = {0};

	for (size_t i = 0; i < count; i++)
		manifest_lines_add(&lines, line_of_segment(job, index, &results[i]));
	return manifest_append(job->output, &lines, err);
}

/* ---- a finished file ---- */

int tts_check_file(const struct job *job, size_t index, const char *file, struct habits *habits,
		   struct check *out, struct err *err)
{
	const struct spoken *spoken = &job->segments.spoken[index];
	struct check_limits limits = job->check;

	limits.habits = habits;
	if (job->engine)
		limits.speed = engine_speed(job->engine, jsonx_number(spoken->options, "speed", 0));
	CLEANUP(free_text)
	char *options_text = json_dumps(spoken->options, JSON_COMPACT | JSON_SORT_KEYS);
	CLEANUP(free_text)
	char *voice = xasprintf("%s %s", spoken->voice ? spoken->voice : "",
				options_text ? options_text : "");
	limits.voice = voice;
	if (check_wav(file, spoken->text, &limits, out, err) < 0)
		return -1;
	if (job->heard && out->ok)
		heard_judge(job, index, file, out);
	return 0;
}

/* ---- the render cache ---- */

/* Names a segment in the render cache by all that decides its sound. That includes the image, but
 * not the engine's set-up, which names all voices of the job: the segment's key has the versions.
 */
static void name_render(const struct job *job, size_t index, char key[SHA256_HEX])
{
	CLEANUP(free_text)
	char *all = xasprintf("%s\n%s", job->segments.list[index].key, job->made_by);

	sha256_hex(all, strlen(all), key);
}

/* Opens the cache's file for a segment and fills *result. Returns a descriptor, or -1: there is
 * none, or it fails this job's check (another job may accept it). */
static int open_render(const struct job *job, size_t index, struct segment_result *result)
{
	char key[SHA256_HEX], sha256[SHA256_HEX];
	CLEANUP(free_text) char *path = NULL;
	struct check check = {0};
	struct stat st;
	struct err err;

	name_render(job, index, key);
	int fd = renders_find(job->renders, key, sha256, &path);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || tts_check_file(job, index, path, NULL, &check, &err) < 0 ||
	    !check.ok) {
		close(fd);
		return -1;
	}
	*result = (struct segment_result){.state = SEGMENT_SAFE,
					  .cached = true,
					  .bytes = st.st_size,
					  .seconds = check.seconds,
					  .sample_rate = check.sample_rate,
					  .tries = 1,
					  .provider = "cache"};
	COPY_TEXT(result->sha256, sha256);
	return fd;
}

void tts_kept(struct job *job, size_t index, const struct segment_result *result)
{
	char key[SHA256_HEX];

	if (!job->renders || !job->check_enabled || result->suspect)
		return;
	CLEANUP(fd_close) int folder = path_open_dir(job->output);
	CLEANUP(fd_close)
	int fd =
		folder < 0 ? -1 : path_open_below(folder, job->segments.list[index].file, O_RDONLY);
	name_render(job, index, key);
	if (fd >= 0)
		renders_put(job->renders, key, fd, result->sha256, job->anew);
}

/* ---- what is there ----
 * A file of the output folder counts if a line of the manifest has its hash. */

/* Prefix of the name under which a file waits until its new name is free. */
#define PARK ".burst-moving-"

enum { NO_INDEX = -1 };

/* A name of the manifest and its file. */
struct owned {
	const char *file;
	enum { UNJUDGED, ABSENT, FOREIGN, OURS } state;
	char sha256[SHA256_HEX];
	const struct manifest_entry *entry; /* OURS: the latest line with this hash */
	ssize_t segment;                    /* the segment with this name; NO_INDEX: none */
	bool in_place;                      /* that segment needs exactly this file */
	size_t wanted;                      /* number of other segments that need it */
	char *parked;                       /* its name while it waits for another; NULL: its own */
};

/* The source of a segment's file. */
struct origin {
	enum { NOWHERE, IN_PLACE, FROM_FOLDER, FROM_CACHE } where;
	size_t owned; /* index; FROM_FOLDER */
};

struct reuse {
	const struct job *job;
	struct manifest m;
	struct owned *owned; /* sorted by name */
	size_t owned_count;
	struct manifest_entry **by_key; /* sorted by key, later lines first */
	struct origin *origins;         /* of each segment */
	struct job_changes changes;
};

void tts_reuse_free(struct reuse *r)
{
	if (!r)
		return;
	for (size_t k = 0; k < r->owned_count; k++)
		free(r->owned[k].parked);
	free(r->origins);
	free(r->owned);
	free(r->by_key);
	manifest_free(&r->m);
	free(r);
}

static inline void tts_reuse_free_cleanup(struct reuse **r)
{
	tts_reuse_free(*r);
}

static int by_file_name(const void *a, const void *b)
{
	return strcmp(((const struct owned *)a)->file, ((const struct owned *)b)->file);
}

static struct owned *owned_find(const struct reuse *r, const char *file)
{
	struct owned wanted = {.file = file};

	return r->owned_count
		       ? bsearch(&wanted, r->owned, r->owned_count, sizeof(*r->owned), by_file_name)
		       : NULL;
}

/* Lists the names of the manifest and which segment has each. lenient: as in manifest_read(). */
static int reuse_open(struct reuse **out, const struct job *job, bool lenient, struct err *err)
{
	CLEANUP(tts_reuse_free) struct reuse *r = xcalloc(1, sizeof(*r));

	r->job = job;
	if (manifest_read(job->output, lenient, &r->m, err) < 0)
		return -1;
	r->owned = xcalloc(r->m.count + 1, sizeof(*r->owned));
	for (size_t i = 0; i < r->m.count; i++)
		if (manifest_is_latest(&r->m, i))
			r->owned[r->owned_count++] =
				(struct owned){.file = r->m.by_file[i]->file, .segment = NO_INDEX};
	for (size_t i = 0; i < job->segments.count; i++) {
		struct owned *o = owned_find(r, job->segments.list[i].file);
		if (o)
			o->segment = (ssize_t)i;
	}
	*out = TAKE(r);
	return 0;
}

/* Sets o->state by the file's hash, once. Returns -1 if the file cannot be read. */
static int judge_file(struct reuse *r, struct owned *o, struct err *err)
{
	bool absent;

	if (o->state != UNJUDGED)
		return 0;
	if (manifest_match(&r->m, r->job->output, o->file, NULL, &o->entry, &absent, err) < 0)
		return -1;
	o->state = absent ? ABSENT : o->entry ? OURS : FOREIGN;
	if (o->entry)
		COPY_TEXT(o->sha256, o->entry->sha256);
	return 0;
}

static bool exists_in_output(const struct reuse *r, const char *file)
{
	CLEANUP(fd_close) int folder = path_open_dir(r->job->output);
	struct stat st;

	return folder >= 0 && fstatat(folder, file, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- who gets what ---- */

/* Matches the file under the segment's own name. */
static void match_in_place(struct reuse *r, size_t i, struct owned *o,
			   struct segment_result *result)
{
	const struct segment *s = &r->job->segments.list[i];
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

/* Matches each segment with the file of its name. Without `force`, *foreign is the first file that
 * the job did not make and would overwrite (NULL: none), *more the number of the others. */
static int match_own_names(struct reuse *r, bool force, struct segment_result *results,
			   const char **foreign, size_t *more, struct err *err)
{
	for (size_t i = 0; i < r->job->segments.count; i++) {
		const char *file = r->job->segments.list[i].file;
		struct owned *o = owned_find(r, file);
		if (o && judge_file(r, o, err) < 0)
			return -1;
		if (o && o->state == OURS && !r->job->anew)
			match_in_place(r, i, o, &results[i]);
		if (force || (o ? o->state != FOREIGN : !exists_in_output(r, file)))
			continue;
		*more += *foreign != NULL;
		*foreign = *foreign ? *foreign : file;
	}
	return 0;
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

/* Index in by_key of the first line with this key, or where it would be. */
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

/* Sets *out to a file of this key and *entry to its line: an unused file if possible, else a shared
 * one; NULL: there is none. Returns -1 if a file cannot be read. */
static int find_file_of_key(struct reuse *r, const char *key, const struct manifest_entry **entry,
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

/* Looks for the segment's sound under another name of the folder. If it is there, fills *result and
 * counts the segment among those that need that file. 0: found or not; -1: a file cannot be read.
 */
static int match_other_name(struct reuse *r, size_t i, struct segment_result *result,
			    struct err *err)
{
	const struct manifest_entry *entry;
	struct owned *o;

	if (find_file_of_key(r, r->job->segments.list[i].key, &entry, &o, err) < 0)
		return -1;
	if (!o)
		return 0;
	manifest_restore(entry, result);
	r->origins[i].where = FROM_FOLDER;
	r->origins[i].owned = (size_t)(o - r->owned);
	o->wanted++;
	return 0;
}

/* Looks for segments without a file: under other names of the folder, then in the render cache. */
static int match_elsewhere(struct reuse *r, struct segment_result *results, struct err *err)
{
	for (size_t i = 0; i < r->job->segments.count; i++)
		if (r->origins[i].where == NOWHERE && match_other_name(r, i, &results[i], err) < 0)
			return -1;
	for (size_t i = 0; i < r->job->segments.count && r->job->renders; i++) {
		if (r->origins[i].where != NOWHERE)
			continue;
		int fd = open_render(r->job, i, &results[i]);
		if (fd >= 0)
			r->origins[i].where = FROM_CACHE;
		fd_close(fd);
	}
	return 0;
}

/* ---- what changed ---- */

/* Returns whether an interrupted move left the file under this name. */
static bool is_parked(const char *file)
{
	return !strncmp(file, PARK, sizeof(PARK) - 1) && !strchr(file, '/');
}

/* Returns whether this type of job made the line; a delivery and other types of job add lines, too.
 * *former: the line's file had no segment when the line was written. */
static bool is_speech(const struct manifest_entry *e, bool *former)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);

	*former = jsonx_bool(line, "former", false);
	return json_is_string(json_object_get(line, "text")) &&
	       json_is_string(json_object_get(line, "voice"));
}

/* Counts files of earlier runs that the script no longer needs: stale, changed, gone. */
static int count_replaced(struct reuse *r, struct err *err)
{
	for (size_t k = 0; k < r->owned_count; k++) {
		struct owned *o = &r->owned[k];
		bool former;
		if (judge_file(r, o, err) < 0)
			return -1;
		if (o->state != OURS || o->in_place || (o->segment != NO_INDEX && o->wanted) ||
		    !is_speech(o->entry, &former))
			continue;
		if (o->segment == NO_INDEX && !(o->wanted && is_parked(o->file)))
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

	for (size_t i = 0; i < r->job->segments.count; i++) {
		c->added += r->origins[i].where == NOWHERE;
		c->moved += r->origins[i].where == FROM_FOLDER;
		c->from_cache += r->origins[i].where == FROM_CACHE;
		c->unchanged += r->origins[i].where != NOWHERE;
	}
	if (count_replaced(r, err) < 0)
		return -1;
	c->added -= c->changed;
	return 0;
}

int tts_find_cached(struct job *job, struct segment_result *results, bool force, struct err *err)
{
	CLEANUP(tts_reuse_free) struct reuse *r = NULL;
	const char *foreign = NULL;
	size_t more = 0;

	tts_reuse_free(TAKE(job->reuse));
	if (!force && join_check_folder(job, err) < 0)
		return -1;
	if (reuse_open(&r, job, force, err) < 0)
		return -1;
	r->origins = xcalloc(job->segments.count + 1, sizeof(*r->origins));
	list_keys(r);
	if (match_own_names(r, force, results, &foreign, &more, err) < 0)
		return -1;
	if (foreign)
		return foreign_refuse(job->output, foreign, more, err);
	if ((!job->anew && match_elsewhere(r, results, err) < 0) || count_changes(r, err) < 0)
		return -1;
	job->reuse = TAKE(r);
	return 0;
}

void tts_changes(const struct job *job, struct job_changes *out)
{
	*out = job->reuse->changes;
}

/* ---- moving ----
 * Gives reused files the names that the script requires. A file whose name belongs to another
 * segment is first parked under a third name, so any files may swap names. Lines of all new names
 * are written first: at each moment each file is complete and listed in the manifest. A file
 * without a segment's name may be another job's, so it is copied. */

/* Prefix of an unfinished copy's name. */
#define BEGUN ".burst-copy-"

/* One step: gives a file to a name. */
struct step {
	enum { RENAME, COPY, FETCH } how;
	const char *from, *to;     /* from is NULL for FETCH */
	ssize_t segment;           /* owner of the name `to`; NO_INDEX: a parked file */
	const struct owned *owned; /* NULL for FETCH */
};

struct steps {
	struct step *list;
	size_t count, cap;
};

static void steps_free_cleanup(struct steps *steps)
{
	free(steps->list);
}

static void add_step(struct steps *to, struct step step)
{
	GROW(to->list, to->count, to->cap);
	to->list[to->count++] = step;
}

/* Adds the step that gives a file to a segment, and counts its users down. The last user gets the
 * file itself if no other job can own it, the others a copy. */
static void give_to_segment(struct steps *to, struct owned *o, const char *name, size_t segment)
{
	bool ours = o->parked || is_parked(o->file), last = --o->wanted == 0;

	add_step(to, (struct step){.how = ours && last ? RENAME : COPY,
				   .from = o->parked ? o->parked : o->file,
				   .to = name,
				   .segment = (ssize_t)segment,
				   .owned = o});
}

/* A name that no line of the manifest has: a file parked before may still be needed. */
static char *name_parked(const struct reuse *r, const struct owned *o)
{
	for (size_t n = (size_t)(o - r->owned);; n += r->owned_count) {
		CLEANUP(free_text) char *name = xasprintf(PARK "%.16s-%zu.wav", o->sha256, n);
		if (!owned_find(r, name))
			return TAKE(name);
	}
}

/* Orders the steps so that none destroys a file that a later one needs. */
static void order_steps(struct steps *to, struct reuse *r)
{
	for (size_t k = 0; k < r->owned_count; k++) {
		struct owned *o = &r->owned[k];
		if (!o->wanted || o->segment == NO_INDEX || o->in_place)
			continue;
		o->parked = name_parked(r, o);
		add_step(to, (struct step){.how = RENAME,
					   .from = o->file,
					   .to = o->parked,
					   .segment = NO_INDEX,
					   .owned = o});
	}
	for (size_t i = 0; i < r->job->segments.count; i++) {
		const char *name = r->job->segments.list[i].file;
		if (r->origins[i].where == FROM_FOLDER)
			give_to_segment(to, &r->owned[r->origins[i].owned], name, i);
		else if (r->origins[i].where == FROM_CACHE)
			add_step(to,
				 (struct step){.how = FETCH, .to = name, .segment = (ssize_t)i});
	}
}

static json_t *line_of_parked(const struct step *step)
{
	json_t *line = manifest_entry_json(step->owned->entry);

	if (!json_object_get(line, "rendered_as"))
		json_object_set_new(line, "rendered_as", json_string(step->from));
	json_object_set_new(line, "file", json_string(step->to));
	json_object_set_new(line, "former", json_true());
	return line;
}

/* Writes the lines of all new names. Called before the first rename: a line without its file is
 * harmless, a file without a line counts as foreign. */
static int write_lines(const struct job *job, const struct steps *steps,
		       const struct segment_result *results, struct err *err)
{
	CLEANUP(manifest_lines_free) struct manifest_lines lines = {0};

	for (size_t s = 0; s < steps->count; s++) {
		const struct step *step = &steps->list[s];
		manifest_lines_add(&lines, step->segment == NO_INDEX
						   ? line_of_parked(step)
						   : line_of_segment(job, (size_t)step->segment,
								     &results[step->segment]));
	}
	return manifest_append(job->output, &lines, err);
}

/* Renames a file of the output folder, and makes the folders of its new name. Follows no links.
 * Returns -1 and errno. */
static int rename_below(int folder, const char *from, const char *to)
{
	const char *old, *new;

	for (const char *p = to; (p = strchr(p, '/')); p++) {
		CLEANUP(free_text) char *above = xstrndup(to, (size_t)(p - to));
		CLEANUP(fd_close) int parent = path_open_parent(folder, above, &new);
		if (parent >= 0)
			(void)mkdirat(parent, new, 0777);
	}
	CLEANUP(fd_close) int at = path_open_parent(folder, from, &old);
	CLEANUP(fd_close) int place = path_open_parent(folder, to, &new);
	return at < 0 || place < 0 ? -1 : renameat(at, old, place, new);
}

/* Writes a synced copy in the output folder, then renames it. *full: why it could not be written.
 */
static int copy_to(int folder, int from, const char *to, struct err *full)
{
	CLEANUP(free_text) char *begun = xasprintf(BEGUN "%s", path_base(to));
	CLEANUP(fd_close) int fd = path_open_new_at(folder, begun, O_RDWR, 0666);

	if (fd >= 0 && fd_clone(from, fd) == 0 && fsync(fd) == 0 &&
	    rename_below(folder, begun, to) == 0)
		return 0;
	err_set(full, ERR_LOCAL, "%s: %s", to, strerror(errno));
	(void)unlinkat(folder, begun, 0);
	return -1;
}

/* Opens what a COPY or FETCH step copies; -1: it is gone, or the cache has another by now. */
static int open_origin(const struct job *job, int folder, const struct step *step,
		       const struct segment_result *result)
{
	struct segment_result again = {0};

	if (step->how == COPY)
		return path_open_below(folder, step->from, O_RDONLY);
	int fd = open_render(job, (size_t)step->segment, &again);
	if (fd < 0 || !strcmp(again.sha256, result->sha256))
		return fd;
	close(fd);
	return -1;
}

/* Returns -1 if a rename fails; then every file is where it was. A failed copy only resets the
 * segment's result, so that it is rendered again, and sets *full. */
static int perform_step(const struct job *job, int folder, const struct step *step,
			struct segment_result *results, struct err *full, struct err *err)
{
	if (step->how == RENAME) {
		if (rename_below(folder, step->from, step->to) == 0)
			return 0;
		return err_set(err, ERR_LOCAL, "%s/%s: cannot be renamed to %s: %s", job->output,
			       step->from, step->to, strerror(errno));
	}
	CLEANUP(fd_close) int from = open_origin(job, folder, step, &results[step->segment]);
	if (from < 0 || copy_to(folder, from, step->to, full) < 0)
		results[step->segment] = (struct segment_result){0};
	return 0;
}

/* Removes copies that an interrupted run began. */
static void remove_begun_copies(int folder)
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

int tts_bring(struct job *job, struct segment_result *results, struct str *notes, struct err *err)
{
	CLEANUP(steps_free) struct steps steps = {0};
	CLEANUP(fd_close) int folder = path_open_dir(job->output);
	struct err full = {0};

	if (folder < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", job->output, strerror(errno));
	remove_begun_copies(folder);
	order_steps(&steps, job->reuse);
	if (steps.count && write_lines(job, &steps, results, err) < 0)
		return -1;
	for (size_t s = 0; s < steps.count; s++)
		if (perform_step(job, folder, &steps.list[s], results, &full, err) < 0)
			return -1;
	if (steps.count)
		(void)fsync(folder); /* both names have lines, so either file may survive */
	if (full.kind)
		str_addf(notes,
			 "%s/%s: renders that are there cannot all be copied, so they are rendered "
			 "again\n",
			 job->output, full.msg);
	renders_report(job->renders, notes);
	return 0;
}

/* ---- the end of the job ---- */

#define LISTED_MOST  20
#define STALE_LISTED 5

void tts_read_as(const struct job *job, struct str *to)
{
	script_tell_read(&job->script, to);
}

void tts_left_out(const struct job *job, struct str *to)
{
	CLEANUP(str_free) struct str silent = STR_INIT;

	script_tell_silent(&job->script, &silent);
	if (silent.len)
		str_addf(to, "not spoken: %s", str_text(&silent));
}

static int write_manifest(const struct job *job, const struct segment_result *results,
			  struct err *err)
{
	CLEANUP(manifest_lines_free) struct manifest_lines lines = {0};

	for (size_t i = 0; i < job->segments.count; i++)
		if (results[i].state == SEGMENT_SAFE) {
			json_t *line = line_of_segment(job, i, &results[i]);
			heard_tell(job, i, line);
			manifest_lines_add(&lines, line);
		}
	return manifest_rewrite(job->output, &lines, err);
}

enum doubt { DOUBT_FAILED, DOUBT_SUSPECT };

/* Lists the segments that failed, or those kept although their check failed. */
static void note_doubtful(const struct job *job, const struct segment_result *results,
			  enum doubt doubt, struct str *notes)
{
	bool suspects = doubt == DOUBT_SUSPECT;
	size_t listed = 0, all = 0;

	for (size_t i = 0; i < job->segments.count; i++) {
		const struct segment_result *r = &results[i];
		bool bad = suspects ? r->state == SEGMENT_SAFE && r->suspect
				    : r->state == SEGMENT_FAILED;
		all += bad;
		if (!bad || listed == LISTED_MOST)
			continue;
		listed++;
		str_addf(notes, "%s: %s: ", job->segments.list[i].id,
			 suspects ? "kept, but" : "failed");
		str_add_printable(notes, r->reason, strlen(r->reason), 0);
		str_addc(notes, '\n');
		if (suspects && job->heard)
			heard_note_suspect(job, i, notes);
	}
	if (all > listed)
		str_addf(notes, "and %zu more %s\n", all - listed,
			 suspects ? "kept with doubts" : "failed");
}

static void note_partial(const struct job *job, size_t count, struct str *notes)
{
	CLEANUP(fd_close) int folder = path_open_dir(job->output);
	CLEANUP(free_text) char *whole = xasprintf("%s.wav", job->joined_as);
	struct stat st;
	bool kept = folder >= 0 && fstatat(folder, whole, &st, AT_SYMLINK_NOFOLLOW) == 0;

	str_addf(notes, "%zu of %zu segments are missing in %s.partial.wav%s%s%s\n",
		 job->segments.count - count, job->segments.count, job->joined_as, kept ? "; " : "",
		 kept ? whole : "", kept ? " is an earlier whole track" : "");
}

static int join_track(const struct job *job, const struct segment_result *results,
		      struct str *notes, struct err *err)
{
	struct join_piece *pieces = xcalloc(job->segments.count, sizeof(*pieces));
	struct join_options as = job->join_as;
	size_t count = 0;

	for (size_t i = 0; i < job->segments.count; i++) {
		const struct spoken *spoken = &job->segments.spoken[i];
		if (results[i].state == SEGMENT_SAFE)
			pieces[count++] =
				(struct join_piece){job->segments.list[i].file,
						    spoken->shown,
						    spoken->border,
						    job->script.items[spoken->item].chapter,
						    spoken->before_s,
						    results[i].seconds,
						    spoken->language,
						    spoken->text,
						    job->fit,
						    spoken->at_s,
						    spoken->until_s,
						    job->script.items[spoken->item].heading};
	}
	as.partial = count < job->segments.count;
	as.lexicon = job->lexicon;
	int result =
		join_pieces(job->output, pieces, count, (const char *const *)job->script.chapters,
			    job->script.chapter_count, &as, notes, err);
	if (as.partial && count)
		note_partial(job, count, notes);
	free(pieces);
	return result;
}

static bool all_are_safe(const struct job *job, const struct segment_result *results)
{
	for (size_t i = 0; i < job->segments.count; i++)
		if (results[i].state != SEGMENT_SAFE)
			return false;
	return true;
}

/* Returns 1 if burst made the file and no segment has its name, 0 if not, -1 on an error. */
static int judge_stale(struct reuse *r, struct owned *o, struct err *err)
{
	bool former;

	if (o->segment != NO_INDEX)
		return false;
	if (judge_file(r, o, err) < 0)
		return -1;
	return o->state == OURS && is_speech(o->entry, &former);
}

static int remove_output(const struct job *job, int folder, const char *file, struct err *err)
{
	const char *base;
	CLEANUP(fd_close) int parent = path_open_parent(folder, file, &base);

	if (parent >= 0 && unlinkat(parent, base, 0) < 0 && errno != ENOENT)
		return err_set(err, ERR_LOCAL, "%s/%s: cannot be removed: %s", job->output, file,
			       strerror(errno));
	return 0;
}

/* Lists burst's old outputs without a segment. With --prune removes them, but only once nothing
 * remains to render: until then they may be the only ones. */
static int list_or_prune_stale(const struct job *job, const struct segment_result *results,
			       struct str *notes, struct err *err)
{
	CLEANUP(tts_reuse_free) struct reuse *r = NULL;
	CLEANUP(fd_close) int folder = path_open_dir(job->output);
	CLEANUP(str_free) struct str names = STR_INIT;
	bool prune = job->prune && all_are_safe(job, results);
	size_t count = 0;

	if (reuse_open(&r, job, true, err) < 0)
		return -1;
	for (size_t k = 0; k < r->owned_count; k++) {
		const char *file = r->owned[k].file;
		int stale = judge_stale(r, &r->owned[k], err);
		if (stale < 0 || (stale && prune && remove_output(job, folder, file, err) < 0))
			return -1;
		count += (size_t)stale;
		if (!stale || count > STALE_LISTED)
			continue;
		str_add(&names, count > 1 ? ", " : "");
		str_add_printable(&names, file, strlen(file), 60);
	}
	if (count)
		str_addf(notes, "%s%zu old output%s without a segment: %s%s%s\n",
			 prune ? "removed " : "", count, count == 1 ? "" : "s", str_text(&names),
			 count > STALE_LISTED ? ", ..." : "",
			 prune ? "" : " (see `burst run --prune`)");
	return 0;
}

int tts_finish(struct job *job, const struct segment_result *results, struct str *notes,
	       struct err *err)
{
	size_t before = notes->len;

	tts_left_out(job, notes);
	if (notes->len > before)
		str_addc(notes, '\n');
	note_doubtful(job, results, DOUBT_FAILED, notes);
	note_doubtful(job, results, DOUBT_SUSPECT, notes);
	heard_note_unheard(job, results, notes);
	renders_trim(job->renders);
	renders_report(job->renders, notes);
	if (list_or_prune_stale(job, results, notes, err) < 0 ||
	    write_manifest(job, results, err) < 0)
		return -1;
	return job->join ? join_track(job, results, notes, err) : 0;
}
