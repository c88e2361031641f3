/* stage_run.c - runs the stages that follow a render, each as a run of its own in this process, and
 * judges their ends. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "caps.h"
#include "cmd/show/report.h"
#include "cmd/unattended/commit_tree.h"
#include "decide.h"
#include "find_run.h"
#include "jobs/command/command.h"
#include "runs/volume_gc.h"
#include "stage_parts.h"
#include "store/pod_cost.h"
#include "volume_trust.h"
#include "wish.h"

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

/* The report of the pod with this index, and the folder where it lies. -1: there is none. */
static int open_report(const struct launch *l, int index, char name[64], struct str *text)
{
	int folder = path_open_dir(l->run.output_dir);

	snprintf(name, 64, STAGE_ABSENT "%d", index);
	if (folder >= 0 &&
	    path_read_plain_at(folder, name, name, ABSENT_MAX_BYTES, text, NULL) == 0)
		return folder;
	fd_close(folder);
	return -1;
}

/* Number of needed files that its pods did not find. */
static size_t count_absent(const struct launch *l)
{
	size_t lines = 0;

	for (int i = 0; i < l->stage->s->pods; i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		char name[64];
		CLEANUP(fd_close) int folder = open_report(l, i, name, &text);
		for (const char *at = str_text(&text); folder >= 0 && *at; at++)
			lines += *at == '\n';
	}
	return lines;
}

/* For a stage's own run: records whether its command succeeded, if it began. */
static int stage_judge(struct launch *l, struct err *err)
{
	size_t absent = count_absent(l);
	struct run_row row = l->run.row;

	if (absent)
		return err_set(err, ERR_JOB,
			       "stage %s did not run: %zu of the needed files are no longer on the "
			       "volume",
			       l->stage->s->name, absent);
	if (stage_note_brought(l, err) < 0)
		return -1;
	row.stage_done = l->run.row.stage_done = true;
	return store_put_run(l->ctx->store, &row, err);
}

/* ---- the run of a stage ---- */

/* A stage may cost what is left of max_cost after the run and its stages so far; if nothing is
 * left, its own run reports that. max_duration applies to each pod. */
static int64_t left_microusd(const struct stage_work *w)
{
	struct launch *l = w->l;
	struct run_row run = l->run.row;
	int64_t left = l->order.max_cost_microusd, now = clock_wall_ms();
	struct pod_row *pods = NULL;
	size_t count = 0;
	struct err none;

	if (run.id[0] && stages_add(&l->ctx->runs, &run, now, &none) >= 0 &&
	    store_pods(l->ctx->store, run.id, false, &pods, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			left -= pod_row_may_have_cost(&pods[i]);
	free(pods);
	left -= run.cost_microusd;
	for (size_t i = 0; !run.id[0] && i < json_array_size(l->stages); i++)
		left -= (int64_t)(1e6 * jsonx_number(json_array_get(l->stages, i), "cost_usd", 0));
	return MAX(left, 1);
}

/* Of the render's order, a stage keeps where it may rent, the caps, and how far pods are trusted.
 */
static void narrow(struct stage_work *w, struct order *o)
{
	const char **there = xcalloc(order_count(o->providers) + 1, sizeof(*there));
	size_t n = 0;

	for (size_t i = 0; o->providers[i]; i++)
		if (stage_may_go_to(w, o->providers[i]))
			there[n++] = o->providers[i];
	order_providers(o, there);
	free(there);
	o->job = w->job;
	o->spot = false;
	o->keep_on_failure_ms = o->keep_warm_ms = 0;
	o->max_cost_microusd = o->max_cost_microusd ? left_microusd(w) : 0;
	o->code = w->dir;
	stage_shape(o, w->s);
}

/* A stage follows the wishes of its run, but a deadline that has passed holds for it no more. */
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
	wish_name(row, &own->order);
	return 0;
}

static int make_job(struct stage_work *w, struct launch *own, struct err *err)
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

/* Returns the exit status, or -1 if it did not begin. */
static int run_own(struct stage_work *w, struct launch *own, struct err *err)
{
	own->stage = w;
	own->finish = stage_judge;
	narrow(w, &own->order);
	if (copy_wishes(own, w->l, err) < 0 || make_job(w, own, err) < 0 ||
	    launch_check_width(own, err) < 0 || launch_open_providers(own, err) < 0 ||
	    runs_settle(&own->ctx->runs, NULL, err) < 0)
		return -1;
	/* settling may have released signals, and the run has yet to record its end */
	engine_hold_signals();
	own->run.setup.ignore_hangup = w->l->run.setup.ignore_hangup;
	run_lend_output(&own->run, &w->l->run);
	if (caps_fit(own, err) < 0 || launch_check_balance(own, err) < 0 ||
	    launch_check_files(own, err) < 0 || launch_decide(own, err) < 0 ||
	    launch_begin(own, false, err) < 0)
		return -1;
	return launch_run(own);
}

static int run_it(struct stage_work *w, struct err *err)
{
	struct launch own;
	struct err why = {0};

	launch_within(&own, w->l);
	int status = run_own(w, &own, &why);
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
	engine_hold_signals();
	if (status == 0)
		return 0;
	err_set(err,
		status == 9    ? ERR_UNRELEASED
		: status > 128 ? ERR_INTERRUPTED
			       : ERR_JOB,
		"all outputs fetched, but stage %s failed (exit status %d): %s", w->s->name, status,
		why.msg[0] ? why.msg : "see above");
	if (status > 128)
		err->signal = status - 128;
	return status;
}

/* ---- files that another command or user removed from the volume ---- */

/* Counts the inputs and code that the pods report absent. Their numbers are not trusted. */
static size_t read_absent(struct stage_work *w)
{
	size_t told = 0, len;

	for (int i = 0; i < w->s->pods; i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		char name[64];
		CLEANUP(fd_close) int folder = open_report(w->l, i, name, &text);
		if (folder < 0)
			continue;
		unlinkat(folder, name, 0);
		for (const char *at = str_text(&text), *line; (line = str_next_line(&at, &len));) {
			unsigned long number = strtoul(line, NULL, 10);
			if (number == 0 && w->tree[0]) {
				w->tree[0] = '\0';
				w->missing++;
				told++;
			} else if (number > 0 && number <= w->count && w->inputs[number - 1].path) {
				stage_record_absent(w, number - 1);
				told++;
			}
		}
	}
	return told;
}

/* Without a render there is no run to resume; another `burst run` finds all outputs rendered. */
static const char *what_repeats(const struct launch *l)
{
	return l->run.row.id[0] ? "resume" : "run";
}

static void say_begin(const struct stage_work *w)
{
	const struct section *pod = w->s->pod;
	bool gpu = !w->s->is_deliver && (section_count(pod, "gpu") || section_count(pod, "needs"));

	log_line(LOG_NOTE, "stage %s: %zu file%s, on %d pod%s %s GPU%s", w->s->name, w->count,
		 w->count == 1 ? "" : "s", w->s->pods, w->s->pods == 1 ? "" : "s",
		 gpu ? "with a" : "without a",
		 w->missing ? " (files missing on the volume are uploaded with it)" : "");
}

static int go(struct stage_work *w, struct err *err)
{
	int number = engine_held_signal();

	if (number) {
		log_line(LOG_NOTE,
			 "interrupted before stage %s: all outputs fetched; run `burst %s` to "
			 "continue",
			 w->s->name, what_repeats(w->l));
		err_set(err, ERR_INTERRUPTED, "interrupted before stage %s", w->s->name);
		err->signal = number;
		return -1;
	}
	read_absent(w); /* an earlier pod's report */
	if (stage_make_folder(w, err) < 0)
		return -1;
	say_begin(w);
	return run_it(w, err);
}

static int go_until_all_is_there(struct stage_work *w, struct err *err)
{
	int status = go(w, err);
	size_t absent = read_absent(w);

	if (!absent || status != err_exit_status(err) || err->kind != ERR_JOB)
		return status;
	err_clear(err);
	log_line(LOG_NOTE,
		 "%zu of the needed files were removed from the volume: stage %s again with copies "
		 "from here",
		 absent, w->s->name);
	status = go(w, err);
	return read_absent(w) && err->kind == ERR_JOB
		       ? err_set(err, ERR_JOB,
				 "all outputs fetched, but files keep disappearing from the "
				 "volume during stage %s",
				 w->s->name)
		       : status;
}

/* ---- one after the other ---- */

/* A stage whose client was killed continues by itself, with the inputs of its begin; they must not
 * change under it. */
static int may_go(struct stage_work *w, struct err *err)
{
	struct launch *l = w->l;
	struct run_row newest;

	int found = stage_newest(&l->ctx->runs, l->order.config, l->order.job, w->s->name, false,
				 &newest, err);
	if (found < 0 || volume_trust(l, l->run.row.id, err) < 0)
		return -1;
	if (found && run_is_alive(&l->ctx->runs, newest.id))
		return err_set(err, ERR_BUSY,
			       "all outputs fetched, but run %s still works on earlier ones as "
			       "stage %s (see `burst attach %s`); run `burst %s` when it has ended",
			       newest.id, w->s->name, newest.id, what_repeats(l));
	return stages_check_output(l, err) < 0
		       ? err_wrap(err,
				  "all outputs fetched, but stage %s did not run (run `burst %s`)",
				  w->s->name, what_repeats(l))
		       : 0;
}

/* Whether it has succeeded with this command and these inputs, and its files are still here. */
static int is_done(struct stage_work *w, bool *done, struct err *err)
{
	const struct launch *l = w->l;
	struct run_row run;
	int found = stage_newest(&l->ctx->runs, l->order.config, l->order.job, w->s->name, true,
				 &run, err);

	*done = found > 0 && !strcmp(run.stage_input, w->input) && !stage_lost_a_file(w, &run);
	if (*done)
		json_array_append_new(l->stages, report_stage_json(w->s->name, NULL, NULL));
	return found < 0 ? -1 : 0;
}

/* The run of this process, or the newest one of its job: nothing was left to render. */
static void find_whole(struct stage_work *w)
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

static int run_stage(struct launch *l, const struct stages *stages, size_t at, struct err *err)
{
	CLEANUP(work_free) struct stage_work w = {.l = l, .stages = stages, .s = &stages->list[at]};
	char key[RUN_JOB_KEY];
	bool done = false;

	stage_job(w.job, l->order.job, w.s->name);
	find_whole(&w);
	if (stage_read_inputs(&w, err) < 0)
		return -1;
	if (!w.count)
		return 0;
	run_job_key(l->order.config, w.job, key);
	/* this run holds the job's lock; after a failure the folder stays for `burst resume` */
	w.dir = xasprintf("%s/jobs/%s", l->ctx->state_dir, key);
	if (is_done(&w, &done, err) < 0)
		return -1;
	if (!done)
		stage_find_code(&w);
	int status = done ? 0 : may_go(&w, err) < 0 ? -1 : go_until_all_is_there(&w, err);
	struct err why;
	if (stage_mend_manifest(&w, &why) < 0)
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

	if (!stage_whole(&ctx->runs, run, &whole))
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
	bool known = stage_whole(&ctx->runs, &found, out);
	if (known && run_is_alive(&ctx->runs, out->id))
		return 0;
	if (run_is_alive(&ctx->runs, found.id)) { /* it is the only one to watch */
		*out = found;
		return 0;
	}
	bool means_whole = known && (out->status != RUN_DONE || found.status == RUN_DONE);
	return means_whole ? 0 : stage_refuse(ctx, &found, err);
}
