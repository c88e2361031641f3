/* stage_files.c - the files of a stage: what it gets and where that is, and what the manifest says
 * of what it brought. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/path.h"
#include "engine/image.h"
#include "runs/volume_gc.h"
#include "stage_parts.h"

/* ---- whose file it is ---- */

static bool is_former(const struct manifest_entry *e)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);

	return jsonx_bool(line, "former", false);
}

/* The pods of a stage's newest run, which an earlier client may have made. */
static int pods_of(struct stage_work *w, const char *stage, struct pod_row **pods, size_t *count,
		   struct err *err)
{
	const struct order *o = &w->l->order;
	struct run_row run;

	*count = 0;
	*pods = NULL;
	int found = stage_newest(&w->l->ctx->runs, o->config, o->job, stage, false, &run, err);
	return found > 0 ? store_pods(w->l->ctx->store, run.id, false, pods, count, err) : found;
}

static bool is_by(const struct manifest_entry *e, const struct pod_row *pods, size_t count)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(jsonx_text(line, "attempt", ""), pods[i].attempt))
			return true;
	return false;
}

/* Marks the lines that are no inputs: of steps that the stage does not get files from. */
static int leave_out(struct stage_work *w, bool *out, struct err *err)
{
	bool *staged = xcalloc(w->was.count + 1, sizeof(*staged));
	int result = 0;

	for (const struct stage *s = w->stages->list; s < w->s && result == 0; s++) {
		struct pod_row *pods = NULL;
		size_t count = 0;
		result = pods_of(w, s->name, &pods, &count, err);
		for (size_t i = 0; i < w->was.count && result == 0; i++)
			if (is_by(&w->was.entries[i], pods, count)) {
				staged[i] = true;
				out[i] = !stage_gets_from(w->s, s->name);
			}
		free(pods);
	}
	for (size_t i = 0; i < w->was.count; i++)
		if (is_former(&w->was.entries[i]) ||
		    (!staged[i] && !stage_gets_from(w->s, STAGE_RENDER)))
			out[i] = true;
	free(staged);
	return result;
}

/* ---- inputs ---- */

bool stage_may_go_to(const struct stage_work *w, const char *provider)
{
	const char *const *list = w->l->order.providers;

	if (w->provider[0])
		return !strcmp(w->provider, provider);
	while (*list && strcmp(*list, provider))
		list++;
	return *list != NULL;
}

/* Whether the stage's pods will have the volume on which this pod left its files. */
static bool pod_counts(struct stage_work *w, const struct pod_row *pod)
{
	const char *volume = w->l->order.volume;

	if (!volume || strcmp(pod->volume_name, volume) || !stage_may_go_to(w, pod->provider) ||
	    volume_gc_took(w->l->ctx->store, pod->run, pod->provider, pod->volume_id))
		return false;
	for (size_t i = 0; i < w->volume_count; i++)
		if (!strcmp(w->volumes[i].provider, pod->provider) &&
		    !strcmp(w->volumes[i].id, pod->volume_id) &&
		    !strcmp(w->volumes[i].name, volume)) {
			COPY_TEXT(w->provider, pod->provider);
			return true;
		}
	return false; /* the volume was removed or recreated since */
}

static void look_up(struct stage_work *w, const char *attempt)
{
	struct store *store = w->l->ctx->store;
	struct run_row run;
	struct err none;

	w->pod_commands = w->l->run.setup.job_ops->needs(w->l->run.setup.job)->command;
	w->pod_counts = store_pod(store, attempt, &w->pod, &none) == 0 && pod_counts(w, &w->pod);
	if (w->pod_counts && store_run(store, w->pod.run, &run, &none) == 0 && run.stage[0])
		w->pod_commands = true;
	COPY_TEXT(w->pod.attempt, attempt);
}

/* The file's path on the volume, or NULL if it is not there. The caller frees it. */
static char *path_there(struct stage_work *w, const struct manifest_entry *e)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);
	const char *attempt = jsonx_text(line, "attempt", "");

	if (!attempt[0])
		return NULL;
	if (strcmp(attempt, w->pod.attempt))
		look_up(w, attempt);
	if (!w->pod_counts)
		return NULL;
	/* its segment may have another name now */
	const char *file = jsonx_text(line, "rendered_as", e->file);
	if (!path_is_safe(file))
		return NULL;
	return w->pod_commands
		       ? xasprintf("runs/%s/%s/out/%s/%s", w->pod.run, w->pod.attempt, e->id, file)
		       : xasprintf("runs/%s/%s/%s", w->pod.run, w->pod.attempt, file);
}

static struct stage_input *add_input(struct stage_work *w, const char *name, const char *sha256)
{
	GROW(w->inputs, w->count, w->cap);
	struct stage_input *in = &w->inputs[w->count++];

	*in = (struct stage_input){.name = xstrdup(name)};
	COPY_TEXT(in->sha256, sha256);
	return in;
}

static bool is_plain(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < ' ' || *name == '\\')
			return false;
	return true;
}

/* What joins the rendered files was made here. A stage gets it only if it asks for it. */
static int add_joined(struct stage_work *w, struct err *err)
{
	const struct engine_setup *s = &w->l->run.setup;
	const char *const *names =
		s->job_ops->finish_names ? s->job_ops->finish_names(s->job) : NULL;
	CLEANUP(fd_close) int folder = path_open_dir(w->l->run.output_dir);
	char hash[SHA256_HEX];

	for (; names && *names && stage_gets_from(w->s, STAGE_RENDER); names++) {
		if (!stage_gets(w->s, *names, true) || faccessat(folder, *names, R_OK, 0) < 0)
			continue;
		CLEANUP(fd_close) int fd = path_open_plain_at(folder, *names, *names, err);
		if (fd < 0)
			return -1;
		if (sha256_fd(fd, hash, NULL) < 0)
			return err_set(err, ERR_LOCAL, "%s: %m", *names);
		add_input(w, *names, hash);
		w->missing++;
	}
	return 0;
}

static int add_inputs(struct stage_work *w, const bool *left_out, struct err *err)
{
	for (size_t i = 0; i < w->was.count; i++) {
		const struct manifest_entry *e = &w->was.entries[i];
		if (left_out[i] || !stage_gets(w->s, e->file, false))
			continue;
		if (!is_plain(e->file))
			return err_set(err, ERR_JOB,
				       "an output's name contains a control character or a "
				       "backslash and cannot be passed to stage %s",
				       w->s->name);
		struct stage_input *in = add_input(w, e->file, e->sha256);
		in->path = path_there(w, e);
		w->missing += !in->path;
	}
	return add_joined(w, err);
}

static void make_hash(struct stage_work *w)
{
	struct sha256 *h = sha256_new();
	const char *run = section_text(w->s->conf, "run");

	sha256_add(h, run, strlen(run) + 1);
	for (size_t i = 0; i < w->count; i++) {
		sha256_add(h, w->inputs[i].name, strlen(w->inputs[i].name) + 1);
		sha256_add(h, w->inputs[i].sha256, strlen(w->inputs[i].sha256) + 1);
	}
	sha256_finish(h, w->input);
}

int stage_read_inputs(struct stage_work *w, struct err *err)
{
	if (store_volumes(w->l->ctx->store, &w->volumes, &w->volume_count, err) < 0 ||
	    manifest_read(w->l->run.output_dir, true, &w->was, err) < 0)
		return -1;
	bool *left_out = xcalloc(w->was.count + 1, sizeof(*left_out));
	int result = leave_out(w, left_out, err) < 0 ? -1 : add_inputs(w, left_out, err);
	free(left_out);
	make_hash(w);
	return result;
}

/* ---- the job's code ---- */

/* Whether a pod of this run had the volume: then its code is the one that made the files. */
static bool had_volume(struct stage_work *w, const struct volume_row *v)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	bool had = false;

	if (!w->l->run.row.id[0] ||
	    store_pods(w->l->ctx->store, w->l->run.row.id, false, &pods, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		had = had || (!strcmp(pods[i].provider, v->provider) &&
			      !strcmp(pods[i].volume_id, v->id) && pods[i].synced_ms);
	free(pods);
	return had;
}

/* Finds the volume that the pods will get: the newest of that name. If no volume has any input, the
 * stage uses a provider with a volume, since another one would have to be made. */
void stage_find_code(struct stage_work *w)
{
	const char *name = w->l->order.volume;
	const struct volume_row *newest = NULL;

	for (size_t i = 0; name && i < w->volume_count; i++) {
		const struct volume_row *v = &w->volumes[i];
		if (stage_may_go_to(w, v->provider) && !strcmp(v->name, name) &&
		    (!newest || v->seen_ms > newest->seen_ms))
			newest = v;
	}
	if (!newest)
		return;
	COPY_TEXT(w->provider, newest->provider);
	w->as_rendered = w->l->run.had_work && had_volume(w, newest);
	if (!engine_code_there(w->l->ctx->store, &w->l->run.row, w->provider, newest->id, w->tree))
		w->tree[0] = '\0';
}

/* After a render, the code is what its pods had. Without one, or in a resumed run, it is the
 * current local code. */
int stage_make_folder(struct stage_work *w, struct err *err)
{
	const char *code = w->l->order.code;
	CLEANUP(free_text) char *runs = path_join(w->l->ctx->state_dir, "runs");
	CLEANUP(free_text)
	char *scan = code && !w->as_rendered ? engine_scan_path(runs, code) : NULL;
	struct stage_folder f = {.dir = w->dir,
				 .output_dir = w->l->run.output_dir,
				 .inputs = w->inputs,
				 .count = w->count,
				 .code_path = code,
				 .tree = w->tree,
				 .scan_path = scan,
				 .reports_always = !stage_count(w->s, "outputs")};

	return stage_folder_make(&f, err);
}

void stage_record_absent(struct stage_work *w, size_t input)
{
	struct store *store = w->l->ctx->store;
	CLEANUP(free_text) char *path = TAKE(w->inputs[input].path);
	char attempt[ATTEMPT_MAX] = "";

	w->missing++;
	if (sscanf(path, "runs/%*[^/]/%19[^/]", attempt) != 1 ||
	    (!strcmp(attempt, w->pod.attempt) && !w->pod_counts))
		return; /* recorded already */
	w->pod_counts = false;
	if (store_pod(store, attempt, &w->pod, NULL) == 0)
		volume_gc_note(store, w->pod.run, w->pod.provider, w->pod.volume_id, NULL);
}

/* ---- the manifest ---- */

/* Adds the files of the steps before, except those that the stage has overwritten. */
static void add_earlier(const struct stage_work *w, const struct manifest *now,
			const struct pod_row *pods, size_t count, struct manifest_lines *lines)
{
	for (size_t i = 0; i < w->was.count; i++) {
		const struct manifest_entry *e = &w->was.entries[i];
		size_t same;
		struct manifest_entry *const *latest = manifest_find(now, e->file, &same);
		if (!is_former(e) && latest && !is_by(*latest, pods, count))
			manifest_lines_add(lines, manifest_entry_json(e));
	}
}

static int add_brought(const struct stage_work *w, const struct manifest *now,
		       const struct pod_row *pods, size_t count, struct manifest_lines *lines,
		       struct err *err)
{
	for (size_t i = 0; i < now->count; i++) {
		const struct manifest_entry *kept, *latest = now->by_file[i];
		bool absent;
		if (!manifest_is_latest(now, i) || !is_by(latest, pods, count))
			continue;
		if (manifest_match(now, w->l->run.output_dir, latest->file, latest->key, &kept,
				   &absent, err) < 0)
			return -1;
		if (kept != latest)
			continue;
		json_t *line = manifest_entry_json(latest);
		json_object_del(line, "former");
		manifest_lines_add(lines, line);
	}
	return 0;
}

int stage_mend_manifest(struct stage_work *w, struct err *err)
{
	const char *dir = w->l->run.output_dir;
	CLEANUP(manifest_free) struct manifest now = {0};
	CLEANUP(manifest_lines_free) struct manifest_lines lines = {0};
	struct pod_row *pods = NULL;
	size_t count = 0;

	int status = pods_of(w, w->s->name, &pods, &count, err);
	if (status == 0)
		status = manifest_read(dir, true, &now, err);
	if (status == 0) {
		add_earlier(w, &now, pods, count, &lines);
		status = add_brought(w, &now, pods, count, &lines, err);
	}
	free(pods);
	return status < 0 ? -1 : manifest_rewrite(dir, &lines, err);
}

/* ---- what a stage has brought ---- */

/* In the folder of its run, a name on each line. */
#define BROUGHT "brought"

enum { BROUGHT_MAX_BYTES = 16 << 20 };

int stage_note_brought(struct launch *l, struct err *err)
{
	CLEANUP(manifest_free) struct manifest m = {0};
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(free_text) char *path = path_join(l->run.dir, BROUGHT);
	size_t count = 0;
	struct pod_row *pods = run_pods(&l->run, &count);
	int result = manifest_read(l->run.output_dir, true, &m, err);

	for (size_t i = 0; i < m.count && result == 0; i++)
		if (is_by(&m.entries[i], pods, count) &&
		    !starts_with(m.entries[i].file, STAGE_ABSENT))
			str_addf(&text, "%s\n", m.entries[i].file);
	free(pods);
	return result < 0 ? -1 : path_write(path, str_text(&text), text.len, 0600, err);
}

bool stage_lost_a_file(const struct stage_work *w, const struct run_row *run)
{
	CLEANUP(free_text) char *path = run_path(&w->l->ctx->runs, run->id, BROUGHT);
	CLEANUP(fd_close) int folder = path_open_dir(w->l->run.output_dir);
	CLEANUP(str_free) struct str text = STR_INIT;
	size_t len;

	if (path_read(path, BROUGHT_MAX_BYTES, &text, NULL) < 0)
		return false;
	for (const char *at = str_text(&text), *line; (line = str_next_line(&at, &len));) {
		CLEANUP(free_text) char *name = xstrndup(line, len);
		if (faccessat(folder, name, F_OK, 0) < 0)
			return true;
	}
	return false;
}
