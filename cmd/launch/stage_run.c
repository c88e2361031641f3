/* stage_run.c - runs the stages after a render, each with the files that it works on */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "launch.h"
#include "cmd/show/report.h"
#include "cmd/unattended/commit_tree.h"
#include "decide.h"
#include "engine/image.h"
#include "jobs/command/command.h"
#include "runs/volume_gc.h"
#include "stages.h"
#include "store/pod_cost.h"
#include "volume.h"

/* ---- stage files ----
 * The files of a stage: what it gets and where that is, and what the manifest says of what it
 * brought. */

/* ---- whose file it is ---- */

/* Whether the manifest marks this file as one that the latest run of the folder did not make. */
static bool is_of_earlier_run(const struct manifest_entry *e)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);

	return jsonx_bool(line, "former", false);
}

/* Reads the pods of the stage's newest run, perhaps of an earlier client; none if it has not run.
 * The caller frees *pods. Returns 0, or -1 with *err. */
static int read_pods_of_stage(struct stage_work *w, const char *stage, struct pod_row **pods,
			      size_t *count, struct err *err)
{
	const struct order *o = &w->l->order;
	struct run_row run;

	*count = 0;
	*pods = NULL;
	int found = stage_newest(&w->l->ctx->runs, o->config, o->job, stage, false, &run, err);
	return found > 0 ? store_pods(w->l->ctx->store, run.id, false, pods, count, err) : found;
}

static bool is_made_by_pods(const struct manifest_entry *e, const struct pod_row *pods,
			    size_t count)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(jsonx_text(line, "attempt", ""), pods[i].attempt))
			return true;
	return false;
}

/* Sets out[i] for each line of the manifest from a step of which the stage gets no files. */
static int mark_left_out(struct stage_work *w, bool *out, struct err *err)
{
	bool *staged = xcalloc(w->was.count + 1, sizeof(*staged));
	int result = 0;

	for (const struct stage *s = w->stages->list; s < w->s && result == 0; s++) {
		struct pod_row *pods = NULL;
		size_t count = 0;
		result = read_pods_of_stage(w, s->name, &pods, &count, err);
		for (size_t i = 0; i < w->was.count && result == 0; i++)
			if (is_made_by_pods(&w->was.entries[i], pods, count)) {
				staged[i] = true;
				out[i] = !stage_gets_from(w->s, s->name);
			}
		free(pods);
	}
	for (size_t i = 0; i < w->was.count; i++)
		if (is_of_earlier_run(&w->was.entries[i]) ||
		    (!staged[i] && !stage_gets_from(w->s, STAGE_RENDER)))
			out[i] = true;
	free(staged);
	return result;
}

/* ---- inputs ---- */

/* Whether the stage may rent there: the config names the provider, and if a volume has the inputs,
 * it is one of that provider. */
static bool stage_may_go_to(const struct stage_work *w, const char *provider)
{
	const char *const *list = w->l->order.providers;

	if (w->provider[0])
		return !strcmp(w->provider, provider);
	while (*list && strcmp(*list, provider))
		list++;
	return *list != NULL;
}

/* Whether the stage's pods will have the volume on which this pod left its files. If so, the stage
 * runs at that provider. */
static bool volume_has_files_of(struct stage_work *w, const struct pod_row *pod)
{
	const char *volume = w->l->order.volume;

	if (!volume || strcmp(pod->volume_name, volume) || !stage_may_go_to(w, pod->provider) ||
	    volume_gc_is_noted(w->l->ctx->store, pod->run, pod->provider, pod->volume_id))
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

/* Fills w->pod, pod_counts and pod_commands for the pod of this attempt. */
static void look_up_pod(struct stage_work *w, const char *attempt)
{
	struct store *store = w->l->ctx->store;
	struct run_row run;
	struct err none;

	w->pod_commands = w->l->run.setup.job_ops->needs(w->l->run.setup.job)->command;
	w->pod_counts =
		store_pod(store, attempt, &w->pod, &none) == 0 && volume_has_files_of(w, &w->pod);
	if (w->pod_counts && store_run(store, w->pod.run, &run, &none) == 0 && run.stage[0])
		w->pod_commands = true;
	COPY_TEXT(w->pod.attempt, attempt);
}

/* The file's path on the volume; NULL: it is not there. The caller frees it. */
static char *path_on_volume(struct stage_work *w, const struct manifest_entry *e)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);
	const char *attempt = jsonx_text(line, "attempt", "");

	if (!attempt[0])
		return NULL;
	if (strcmp(attempt, w->pod.attempt))
		look_up_pod(w, attempt);
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

/* The new input has no path yet. */
static struct stage_input *add_input(struct stage_work *w, const char *name, const char *sha256)
{
	GROW(w->inputs, w->count, w->cap);
	struct stage_input *in = &w->inputs[w->count++];

	*in = (struct stage_input){.name = xstrdup(name)};
	COPY_TEXT(in->sha256, sha256);
	return in;
}

/* Whether the name fits into a list of files with one name a line. */
static bool can_be_listed(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < ' ' || *name == '\\')
			return false;
	return true;
}

/* Adds the joined files that the stage asks for. They were made here: no volume has them. */
static int add_joined_files(struct stage_work *w, struct err *err)
{
	const struct engine_setup *s = &w->l->run.setup;
	const char *const *names =
		s->job_ops->finish_names ? s->job_ops->finish_names(s->job) : NULL;
	CLEANUP(fd_close) int folder = path_open_dir(w->l->run.output_dir);
	char hash[SHA256_HEX];

	for (; names && *names && stage_gets_from(w->s, STAGE_RENDER); names++) {
		if (!stage_asks_for(w->s, *names) || faccessat(folder, *names, R_OK, 0) < 0)
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

/* left_out: for each line of the manifest. ERR_JOB: a name cannot be passed to the stage. */
static int add_inputs(struct stage_work *w, const bool *left_out, struct err *err)
{
	for (size_t i = 0; i < w->was.count; i++) {
		const struct manifest_entry *e = &w->was.entries[i];
		if (left_out[i] || !stage_gets(w->s, e->file))
			continue;
		if (!can_be_listed(e->file))
			return err_set(err, ERR_JOB,
				       "an output's name contains a control character or a "
				       "backslash and cannot be passed to stage %s",
				       w->s->name);
		struct stage_input *in = add_input(w, e->file, e->sha256);
		in->path = path_on_volume(w, e);
		w->missing += !in->path;
	}
	return add_joined_files(w, err);
}

/* Sets w->input, by which a later run recognizes that nothing changed. */
static void hash_inputs(struct stage_work *w)
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

/* Fills w->inputs from the manifest of the output folder, in its order, and w->input. ERR_JOB: a
 * file's name cannot be passed on. */
static int read_inputs(struct stage_work *w, struct err *err)
{
	if (store_volumes(w->l->ctx->store, &w->volumes, &w->volume_count, err) < 0 ||
	    manifest_read(w->l->run.output_dir, true, &w->was, err) < 0)
		return -1;
	bool *left_out = xcalloc(w->was.count + 1, sizeof(*left_out));
	int result = mark_left_out(w, left_out, err) < 0 ? -1 : add_inputs(w, left_out, err);
	free(left_out);
	hash_inputs(w);
	return result;
}

/* ---- the job's code ---- */

/* Whether a pod of this run synced its code to the volume: that code made the files. */
static bool pods_had_volume(struct stage_work *w, const struct volume_row *v)
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

/* Sets w->provider, tree and as_rendered by the volume that the pods will get: the newest of that
 * name. If no volume has any input, the stage uses a provider with a volume, since another one
 * would have to be made. */
static void find_code_on_volume(struct stage_work *w)
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
	w->as_rendered = w->l->run.had_work && pods_had_volume(w, newest);
	if (!engine_code_there(w->l->ctx->store, &w->l->run.row, w->provider, newest->id, w->tree))
		w->tree[0] = '\0';
}

/* Makes w->dir, which the pods get as their code. After a render, its code is what the render's
 * pods had; without one, or in a resumed run, the current local code. */
static int make_stage_folder(struct stage_work *w, struct err *err)
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

/* A pod reported that the volume lacks this input: the next try uploads it, and later stages do
 * not expect files of its pod there. */
static void record_absent_input(struct stage_work *w, size_t input)
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

/* Adds the lines of earlier steps' files, except those that the stage (pods) has overwritten. */
static void add_lines_of_earlier_steps(const struct stage_work *w, const struct manifest *now,
				       const struct pod_row *pods, size_t count,
				       struct manifest_lines *lines)
{
	for (size_t i = 0; i < w->was.count; i++) {
		const struct manifest_entry *e = &w->was.entries[i];
		size_t same;
		struct manifest_entry *const *latest = manifest_find(now, e->file, &same);
		if (!is_of_earlier_run(e) && latest && !is_made_by_pods(*latest, pods, count))
			manifest_lines_add(lines, manifest_entry_json(e));
	}
}

/* Adds a line for each file of the stage that is in the output folder with the right hash. */
static int add_lines_of_stage(const struct stage_work *w, const struct manifest *now,
			      const struct pod_row *pods, size_t count,
			      struct manifest_lines *lines, struct err *err)
{
	for (size_t i = 0; i < now->count; i++) {
		const struct manifest_entry *kept, *latest = now->by_file[i];
		bool absent;
		if (!manifest_is_latest(now, i) || !is_made_by_pods(latest, pods, count))
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

/* Writes the manifest anew from the lines of earlier steps and of this stage, since the stage's
 * run has written it as if the output folder were its own. The output folder is locked. */
static int mend_manifest(struct stage_work *w, struct err *err)
{
	const char *dir = w->l->run.output_dir;
	CLEANUP(manifest_free) struct manifest now = {0};
	CLEANUP(manifest_lines_free) struct manifest_lines lines = {0};
	struct pod_row *pods = NULL;
	size_t count = 0;

	int status = read_pods_of_stage(w, w->s->name, &pods, &count, err);
	if (status == 0)
		status = manifest_read(dir, true, &now, err);
	if (status == 0) {
		add_lines_of_earlier_steps(w, &now, pods, count, &lines);
		status = add_lines_of_stage(w, &now, pods, count, &lines, err);
	}
	free(pods);
	return status < 0 ? -1 : manifest_rewrite(dir, &lines, err);
}

/* ---- which files a stage has fetched ---- */

/* In the folder of its run, a name on each line. */
#define FETCHED_LIST "brought"

enum { FETCHED_MAX_BYTES = 16 << 20 };

/* Writes the list of files that this run of a stage, which has succeeded, made. */
static int note_fetched_files(struct launch *l, struct err *err)
{
	CLEANUP(manifest_free) struct manifest m = {0};
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(free_text) char *path = path_join(l->run.dir, FETCHED_LIST);
	size_t count = 0;
	struct pod_row *pods = run_pods(&l->run, &count);
	int result = manifest_read(l->run.output_dir, true, &m, err);

	for (size_t i = 0; i < m.count && result == 0; i++)
		if (is_made_by_pods(&m.entries[i], pods, count) &&
		    !starts_with(m.entries[i].file, STAGE_ABSENT))
			str_addf(&text, "%s\n", m.entries[i].file);
	free(pods);
	return result < 0 ? -1 : path_write(path, str_text(&text), text.len, 0600, err);
}

/* Whether a file that this run of the stage fetched is missing in the output folder. */
static bool has_lost_a_file(const struct stage_work *w, const struct run_row *run)
{
	CLEANUP(free_text) char *path = run_path(&w->l->ctx->runs, run->id, FETCHED_LIST);
	CLEANUP(fd_close) int folder = path_open_dir(w->l->run.output_dir);
	CLEANUP(str_free) struct str text = STR_INIT;
	size_t len;

	if (path_read(path, FETCHED_MAX_BYTES, &text, NULL) < 0)
		return false;
	for (const char *at = str_text(&text), *line; (line = str_next_line(&at, &len));) {
		CLEANUP(free_text) char *name = xstrndup(line, len);
		if (faccessat(folder, name, F_OK, 0) < 0)
			return true;
	}
	return false;
}

/* ---- stage run ----
 * Runs the stages that follow a render, each as a run of its own in this process, and judges
 * their ends. */

enum { ABSENT_MAX_BYTES = 16 << 20 };

static void work_free(struct stage_work *w)
{
	for (size_t i = 0; i < w->count; i++) {
		free(w->inputs[i].name);
		free(w->inputs[i].path);
	}
	manifest_free(&w->was);
	free(w->inputs);
	free(w->volumes);
	free(w->dir);
}

static inline void work_free_cleanup(struct stage_work *w)
{
	work_free(w);
}

/* ---- the end of a stage's own run ---- */

/* Reads the list of absent files that the pod with this index wrote, and returns a descriptor of
 * the folder with it; -1: there is none. */
static int open_absent_report(const struct launch *l, int index, char name[64], struct str *text)
{
	int folder = path_open_dir(l->run.output_dir);

	snprintf(name, 64, STAGE_ABSENT "%d", index);
	if (folder >= 0 &&
	    path_read_plain_at(folder, name, name, ABSENT_MAX_BYTES, text, NULL) == 0)
		return folder;
	fd_close(folder);
	return -1;
}

/* Number of needed files that the pods of this stage's run did not find. */
static size_t count_absent_files(const struct launch *l)
{
	size_t lines = 0;

	for (int i = 0; i < l->stage->s->pods; i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		char name[64];
		CLEANUP(fd_close) int folder = open_absent_report(l, i, name, &text);
		for (const char *at = str_text(&text); folder >= 0 && *at; at++)
			lines += *at == '\n';
	}
	return lines;
}

/* launch.finish of a stage's run: records success; ERR_JOB: files were absent, so nothing ran. */
static int judge_end_of_stage(struct launch *l, struct err *err)
{
	size_t absent = count_absent_files(l);
	struct run_row row = l->run.row;

	if (absent)
		return err_set(err, ERR_JOB,
			       "stage %s did not run: %zu of the needed files are no longer on the "
			       "volume",
			       l->stage->s->name, absent);
	if (note_fetched_files(l, err) < 0)
		return -1;
	row.stage_done = l->run.row.stage_done = true;
	return store_put_run(l->ctx->store, &row, err);
}

/* ---- the run of a stage ---- */

/* What max_cost leaves for this stage after the run and its stages so far, at least 1: if nothing
 * is left, the stage's own run reports that. (max_duration applies to each pod.) */
static int64_t max_cost_left_microusd(const struct stage_work *w)
{
	struct launch *l = w->l;
	struct run_row run = l->run.row;
	int64_t left = l->order.max_cost_microusd, now = clock_wall_ms();
	struct pod_row *pods = NULL;
	size_t count = 0;
	struct err none;

	if (run.id[0] && stages_add_costs(&l->ctx->runs, &run, now, &none) >= 0 &&
	    store_pods(l->ctx->store, run.id, false, &pods, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			left -= pod_row_may_have_cost(&pods[i]);
	free(pods);
	left -= run.cost_microusd;
	for (size_t i = 0; !run.id[0] && i < json_array_size(l->stages); i++)
		left -= (int64_t)(1e6 * jsonx_number(json_array_get(l->stages, i), "cost_usd", 0));
	return MAX(left, 1);
}

/* Turns the render's order into the stage's: where it may rent, caps and trust stay. */
static void narrow_order(struct stage_work *w, struct order *o)
{
	const char **there = xcalloc(order_count(o->providers) + 1, sizeof(*there));
	size_t n = 0;

	for (size_t i = 0; o->providers[i]; i++)
		if (stage_may_go_to(w, o->providers[i]))
			there[n++] = o->providers[i];
	order_providers(o, there);
	free(there);
	o->job = w->job;
	o->part_of = w->part_of;
	o->spot = false;
	o->keep_on_failure_ms = o->keep_warm_ms = 0;
	o->max_cost_microusd = o->max_cost_microusd ? max_cost_left_microusd(w) : 0;
	o->code = w->dir;
	stage_shape_order(o, w->s);
}

/* Copies goal and deadline of the run. A deadline that has passed does not bind the stage. */
static int copy_wishes(struct launch *own, struct launch *l, struct err *err)
{
	struct choice_row *row = &own->choice.row;

	if (wish_read(l, err) < 0)
		return -1;
	*row = (struct choice_row){.decided_ms = clock_wall_ms(),
				   .value_of_time_microusd = l->choice.row.value_of_time_microusd,
				   .gpus_open = !own->order.gpus};
	COPY_TEXT(row->goal, l->choice.row.goal);
	if (l->choice.row.deadline_ms > clock_wall_ms()) {
		COPY_TEXT(row->deadline, l->choice.row.deadline);
		row->deadline_ms = l->choice.row.deadline_ms;
	}
	order_override_choice(&own->order, row);
	return 0;
}

static int make_stage_job(struct stage_work *w, struct launch *own, struct err *err)
{
	const struct section *conf = w->s->conf;
	CLEANUP(free_text) char *run = xasprintf(STAGE_BEGIN "%s", section_text(conf, "run"));
	struct job *job = command_make(&(struct command_want){
		.output = w->l->run.output_dir,
		.run = run,
		.outputs = conf,
		.also = STAGE_ABSENT "*",
		.env = section_has(conf, "env") ? conf : config_job(w->l->ctx->config),
		.pods = w->s->pods,
		.commit = w->l->ctx->tree ? w->l->ctx->tree->commit : NULL});

	own->run.output_dir = xstrdup(w->l->run.output_dir);
	launch_replace_job(own, &job_command, job);
	return launch_check_env(conf, job_command.needs(job), err);
}

/* Runs the stage as `own`. Returns the exit status, or -1 with *err if it did not begin. */
static int run_stage_once(struct stage_work *w, struct launch *own, struct err *err)
{
	own->stage = w;
	own->finish = judge_end_of_stage;
	narrow_order(w, &own->order);
	if (copy_wishes(own, w->l, err) < 0 || make_stage_job(w, own, err) < 0 ||
	    launch_check_width(own, err) < 0 ||
	    launch_open_providers(&own->order, &own->run, err) < 0)
		return -1;
	own->run.setup.ignore_hangup = w->l->run.setup.ignore_hangup;
	run_lend_output(&own->run, &w->l->run);
	if (launch_check_can_rent(own, err) < 0)
		return -1;
	/* settling may have released signals, and the run has yet to record its end */
	engine_block_signals();
	if (launch_decide(own, err) < 0 || launch_begin(own, false, err) < 0)
		return -1;
	return launch_run(own);
}

/* Runs the stage, and adds its object to those for --json. Returns the exit status; *err is set if
 * it is not 0. Signals are held on return. */
static int run_and_report_stage(struct stage_work *w, struct err *err)
{
	struct launch own;
	struct err why = {0};

	launch_within(&own, w->l);
	int status = run_stage_once(w, &own, &why);
	if (status < 0) {
		config_place_error(w->l->ctx->config, &why);
		status = err_exit_status(&why);
	} else {
		why = own.run.err;
	}
	json_t *object = launch_result_json(&own);
	json_array_append_new(w->l->stages, report_stage_json(w->s->name, object, &why));
	json_decref(object);
	launch_free(&own);
	engine_block_signals();
	if (status == 0)
		return 0;
	err_set(err,
		status == UNRELEASED_STATUS ? ERR_UNRELEASED
		: status > SIGNAL_STATUS    ? ERR_INTERRUPTED
					    : ERR_JOB,
		"all outputs fetched, but stage %s failed (exit status %d): %s", w->s->name, status,
		why.msg[0] ? why.msg : "see above");
	if (status > SIGNAL_STATUS)
		err->signal = status - SIGNAL_STATUS;
	return status;
}

/* ---- files that another command or user removed from the volume ---- */

/* Marks the inputs and code that the pods report absent from the volume, and removes the reports.
 * Returns how many. Numbers in them are not trusted. */
static size_t take_absent_reports(struct stage_work *w)
{
	size_t marked = 0, len;

	for (int i = 0; i < w->s->pods; i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		char name[64];
		CLEANUP(fd_close) int folder = open_absent_report(w->l, i, name, &text);
		if (folder < 0)
			continue;
		unlinkat(folder, name, 0);
		for (const char *at = str_text(&text), *line; (line = str_next_line(&at, &len));) {
			unsigned long number = strtoul(line, NULL, 10);
			if (number == 0 && w->tree[0]) {
				w->tree[0] = '\0';
				w->missing++;
				marked++;
			} else if (number > 0 && number <= w->count && w->inputs[number - 1].path) {
				record_absent_input(w, number - 1);
				marked++;
			}
		}
	}
	return marked;
}

/* Without a render there is no run to resume: another `burst run` finds all outputs rendered. */
static const char *command_that_repeats(const struct launch *l)
{
	return l->run.row.id[0] ? "resume" : "run";
}

static void say_begin(const struct stage_work *w)
{
	const struct section *pod = w->s->pod;
	bool gpu = !w->s->is_deliver && (section_count(pod, "gpu") || section_count(pod, "needs"));
	const char *sent = !w->missing      ? ""
			   : w->provider[0] ? " (files missing on the volume are uploaded with it)"
					    : " (all of them are uploaded with it)";

	log_line(LOG_NOTE, "stage %s: %zu file%s, on %d pod%s %s GPU%s", w->s->name, w->count,
		 w->count == 1 ? "" : "s", w->s->pods, w->s->pods == 1 ? "" : "s",
		 gpu ? "with a" : "without a", sent);
}

/* Unless a signal came, runs the stage. Returns the exit status, or -1; *err says why not 0. */
static int try_stage(struct stage_work *w, struct err *err)
{
	int number = engine_take_signal();

	if (number) {
		log_line(LOG_NOTE,
			 "interrupted before stage %s: all outputs fetched; run `burst %s` to "
			 "continue",
			 w->s->name, command_that_repeats(w->l));
		err_set(err, ERR_INTERRUPTED, "interrupted before stage %s", w->s->name);
		err->signal = number;
		return -1;
	}
	take_absent_reports(w); /* an earlier pod's report */
	if (make_stage_folder(w, err) < 0)
		return -1;
	say_begin(w);
	return run_and_report_stage(w, err);
}

/* Like try_stage(), but if the volume lacked files, tries again with copies from here. */
static int try_stage_twice(struct stage_work *w, struct err *err)
{
	int status = try_stage(w, err);
	size_t absent = take_absent_reports(w);

	if (!absent || status != err_exit_status(err) || err->kind != ERR_JOB)
		return status;
	err_clear(err);
	log_line(LOG_NOTE,
		 "%zu of the needed files were removed from the volume: stage %s again with copies "
		 "from here",
		 absent, w->s->name);
	status = try_stage(w, err);
	return take_absent_reports(w) && err->kind == ERR_JOB
		       ? err_set(err, ERR_JOB,
				 "all outputs fetched, but files keep disappearing from the "
				 "volume during stage %s",
				 w->s->name)
		       : status;
}

/* ---- one after the other ---- */

/* ERR_BUSY: an earlier client of this stage was killed, and its run continues by itself; its
 * inputs must not change meanwhile. ERR_CONFIG: the stage may not use its volume, or would
 * overwrite a file of the user. */
static int check_may_begin(struct stage_work *w, struct err *err)
{
	struct launch *l = w->l;
	struct run_row newest;

	int found = stage_newest(&l->ctx->runs, l->order.config, l->order.job, w->s->name, false,
				 &newest, err);
	if (found < 0 || volume_trust(l->ctx, &l->order, &l->run, l->run.row.id, err) < 0)
		return -1;
	if (found && run_is_alive(&l->ctx->runs, newest.id))
		return err_set(err, ERR_BUSY,
			       "all outputs fetched, but run %s still works on earlier ones as "
			       "stage %s (see `burst attach %s`); run `burst %s` when it has ended",
			       newest.id, w->s->name, newest.id, command_that_repeats(l));
	return stages_check_output(l, err) < 0
		       ? err_wrap(err,
				  "all outputs fetched, but stage %s did not run (run `burst %s`)",
				  w->s->name, command_that_repeats(l))
		       : 0;
}

/* *done: the stage has succeeded with this command and these inputs, and its files are still here.
 * If so, adds its object to those for --json. */
static int find_whether_done(struct stage_work *w, bool *done, struct err *err)
{
	const struct launch *l = w->l;
	struct run_row run;
	int found = stage_newest(&l->ctx->runs, l->order.config, l->order.job, w->s->name, true,
				 &run, err);

	*done = found > 0 && !strcmp(run.stage_input, w->input) && !has_lost_a_file(w, &run);
	if (*done)
		json_array_append_new(l->stages, report_stage_json(w->s->name, NULL, NULL));
	return found < 0 ? -1 : 0;
}

/* Sets w->part_of: this process's run or, if it had nothing to render, the job's newest. */
static void find_run_of_stage(struct stage_work *w)
{
	const struct launch *l = w->l;
	struct run_row *rows = NULL;
	size_t count = 0;

	COPY_TEXT(w->part_of, l->run.row.id);
	if (w->part_of[0] ||
	    store_runs(l->ctx->store, l->order.config, false, 0, &rows, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count && !w->part_of[0]; i++)
		if (!strcmp(rows[i].job, l->order.job) &&
		    !strcmp(rows[i].type, l->run.setup.job_ops->type))
			COPY_TEXT(w->part_of, rows[i].id);
	free(rows);
}

/* Runs stage `at`, unless it is done or gets no files. Returns like try_stage(). */
static int run_stage(struct launch *l, const struct stages *stages, size_t at, struct err *err)
{
	CLEANUP(work_free) struct stage_work w = {.l = l, .stages = stages, .s = &stages->list[at]};
	char key[RUN_JOB_KEY];
	bool done = false;

	stage_job_name(w.job, l->order.job, w.s->name);
	find_run_of_stage(&w);
	if (read_inputs(&w, err) < 0)
		return -1;
	if (!w.count)
		return 0;
	run_job_key(l->order.config, w.job, key);
	/* this run holds the job's lock; after a failure the folder stays for `burst resume` */
	w.dir = xasprintf("%s/jobs/%s", l->ctx->state_dir, key);
	if (find_whether_done(&w, &done, err) < 0)
		return -1;
	if (!done)
		find_code_on_volume(&w);
	int status = done ? 0 : check_may_begin(&w, err) < 0 ? -1 : try_stage_twice(&w, err);
	struct err why;
	if (mend_manifest(&w, &why) < 0)
		log_line(LOG_WARN,
			 "manifest.jsonl not updated: its entries stay \"former\" until the next "
			 "run: %s",
			 why.msg);
	if (status == 0)
		path_remove_tree(w.dir, NULL);
	return status;
}

int stages_run(struct launch *l, struct err *err)
{
	struct stages stages;
	int status = 0;

	stages_read(&stages, l->ctx->config);
	json_decref(l->stages);
	l->stages = stages.count ? json_array() : NULL;
	for (size_t i = 0; i < stages.count && status == 0; i++)
		status = run_stage(l, &stages, i, err);
	free(stages.list);
	return status;
}

/* ---- finding a run ---- */

int stage_refuse(struct cmd_context *ctx, const struct run_row *run, struct err *err)
{
	struct run_row whole;

	if (!stage_find_whole(&ctx->runs, run, &whole))
		return err_set(err, ERR_USAGE,
			       "run %s is stage %s of a job; to repeat it, use `burst run` for "
			       "that job",
			       run->id, run->stage);
	if (whole.status == RUN_DONE)
		return err_set(err, ERR_USAGE,
			       "run %s is stage %s of run %s, which is done; to repeat what has "
			       "changed, run `burst run %s`",
			       run->id, run->stage, whole.id, whole.config);
	return err_set(err, ERR_USAGE,
		       "run %s is stage %s of run %s; to repeat what is missing, run `burst resume "
		       "%s`",
		       run->id, run->stage, whole.id, whole.id);
}

int stage_find_run(struct cmd_context *ctx, const char *name, struct run_row *out, struct err *err)
{
	struct run_row found;

	if (run_find(ctx, name, out, err) < 0)
		return -1;
	if (name || !out->stage[0])
		return 0;
	found = *out;
	bool known = stage_find_whole(&ctx->runs, &found, out);
	if (known && run_is_alive(&ctx->runs, out->id))
		return 0;
	if (run_is_alive(&ctx->runs, found.id)) { /* it is the only one to watch */
		*out = found;
		return 0;
	}
	bool means_whole = known && (out->status != RUN_DONE || found.status == RUN_DONE);
	return means_whole ? 0 : stage_refuse(ctx, &found, err);
}
