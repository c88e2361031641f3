/* launch.c - from a config to a run that is over: its flags, caps, life and result */
#include "launch.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "base/program.h"
#include "cmd/cmd.h"
#include "cmd/show/ledger.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "cmd/show/view.h"
#include "cmd/unattended/commit_tree.h"
#include "cmd/unattended/unattended.h"
#include "config/trust.h"
#include "jobs/excerpt/excerpt.h"
#include "jobs/warm/warm.h"
#include "net/http_trace.h"
#include "stages.h"
#include "sync/tree.h"
#include "decide.h"

/* ---- caps ---- */

/* Adds the caps over runs that the config's files set: the user's, then the project's. */
static void add_caps_over_runs(struct caps *out, const struct config *config)
{
	static const char *const keys[] = {"per_day", "per_month"};

	for (size_t i = 0; i < 2 * ARRAY_LEN(keys); i++) {
		const char *key = keys[i % ARRAY_LEN(keys)];
		bool project = i >= ARRAY_LEN(keys);
		struct config_cap cap =
			project ? config_project_cap(config, key) : config_user_cap(config, key);
		if (cap.set)
			out->list[out->count++] = (struct allowance){.key = key,
								     .where = cap.where,
								     .project = project,
								     .cap_microusd = cap.microusd};
	}
}

/* The run's own cap and the caps over runs, for the functions run_caps_...(). */
static struct run_caps caps_of(const struct launch *l)
{
	struct run_caps c = {
		.config = l->order.config,
		.part_of = l->order.part_of,
		.max_cost_microusd = l->order.max_cost_microusd,
		.least_microusd = l->least_microusd,
	};

	add_caps_over_runs(&c.over, l->ctx->config);
	return c;
}

/* If the call that returned status has lowered the run's cap in *c, lowers max_cost of the order
 * too, and notes why. Returns status. */
static int take_lowered_cap(struct launch *l, const struct run_caps *c, int status)
{
	const struct allowance *a = c->lowered_by;
	char cap[32];

	if (!a)
		return status;
	snprintf(l->order.cap_words, sizeof(l->order.cap_words), "caps.%s (%s%s)", a->key,
		 money_show(cap, sizeof(cap), a->cap_microusd),
		 a->project ? " in this project" : "");
	l->order.max_cost_microusd = c->max_cost_microusd;
	return status;
}

/* ERR_CAP: the caps over runs leave nothing. */
static int lower_to_caps_left(struct launch *l, struct err *err)
{
	struct run_caps c = caps_of(l);

	return take_lowered_cap(l, &c, run_caps_fit(&l->ctx->runs, &c, err));
}

int caps_plan(struct caps *out, struct launch *l, bool renders, struct err *err)
{
	struct run_caps c = caps_of(l);
	int status = run_caps_plan(&l->ctx->runs, &c, renders, err);

	*out = c.over;
	return take_lowered_cap(l, &c, status);
}

/* Adds the cap to the error of a run that ended at a lowered max_cost. */
static void caps_explain(const struct launch *l, struct err *err)
{
	static const char words[] = "; its cap was the remainder of ";
	size_t len = strlen(err->msg);

	if (err->kind == ERR_CAP && l->order.cap_words[0] &&
	    len + strlen(l->order.cap_words) + sizeof(words) <= sizeof(err->msg))
		snprintf(err->msg + len, sizeof(err->msg) - len, "%s%s", words, l->order.cap_words);
}

/* ---- run flags ---- */

enum { FLAGS_MAX_BYTES = 1 << 20 };

/* Returns an empty object if the file is missing, and NULL with *err if it cannot be read. */
static json_t *read_flags(const char *path, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	json_t *flags;

	if (path_read(path, FLAGS_MAX_BYTES, &text, err) < 0) {
		if (err->kind != ERR_NOT_FOUND)
			return NULL;
		err_clear(err);
		return json_object();
	}
	flags = jsonx_parse(str_text(&text), text.len, err);
	if (!flags)
		err_wrap(err, "%s", path);
	return flags;
}

/* The text to keep for a key, which this command gave `value`. Lists of allowances grow with each
 * resume. Paths become absolute, since a run can be resumed from another folder. */
static char *value_to_keep(const struct cmd_context *ctx, const json_t *flags, const char *key,
			   const char *value)
{
	const char *before = jsonx_text(flags, key, "");

	if (!strcmp(key, "job.output"))
		return xstrdup(section_text(config_job(ctx->config), "output"));
	CLEANUP(free_text)
	char *added =
		config_key_accumulates(key) ? config_absolute_items(key, value) : xstrdup(value);
	return config_key_accumulates(key) && before[0] ? xasprintf("%s,%s", before, added)
							: TAKE(added);
}

/* Adds this command's options to those that the run has. */
static int run_flags_write(const struct cmd_context *ctx, const char *run_dir, struct err *err)
{
	const struct opt *o = ctx->cmd->opts;
	CLEANUP(free_text) char *path = path_join(run_dir, "flags");
	CLEANUP(json_decref) json_t *flags = read_flags(path, err);

	if (!flags)
		return -1;
	for (size_t i = 0; ctx->values && o && o[i].name; i++) {
		const char *value = ctx->values[i];
		if (!o[i].key || !value)
			continue;
		CLEANUP(free_text)
		char *text = value_to_keep(ctx, flags, o[i].key, o[i].arg ? value : "true");
		if (json_object_set_new(flags, o[i].key, json_string(text)) < 0)
			return err_set(err, ERR_USAGE, "--%s: its value is not UTF-8 text",
				       o[i].name);
	}
	if (ctx->overwrite)
		json_object_set_new(flags, "force", json_string("true"));
	if (ctx->anew)
		json_object_set_new(flags, "anew", json_string("true"));
	if (ctx->prune)
		json_object_set_new(flags, "prune", json_string("true"));
	CLEANUP(free_text) char *line = jsonx_line(flags);
	return path_write(path, line, strlen(line), 0600, err);
}

int run_flags_apply(struct cmd_context *ctx, const char *run_dir, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(run_dir, "flags");
	CLEANUP(json_decref) json_t *flags = read_flags(path, err);
	const char *key;
	json_t *value;

	if (!flags)
		return -1;
	json_object_foreach (flags, key, value) {
		if (!json_is_string(value))
			return err_set(err, ERR_LOCAL, "%s: %s is not text", path, key);
		if (!strcmp(key, "force"))
			ctx->overwrite = true;
		else if (!strcmp(key, "anew"))
			ctx->anew = true;
		else if (!strcmp(key, "prune"))
			ctx->prune = true;
		else if (config_override(ctx->config, key, json_string_value(value), path, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- launch result ----
 * A run's result: where its files are, and the JSON object of --json, on_exit and notices. */

enum { ERRORS_MOST = 100 };

/* Adds failed segments and why; only the first ones of many. */
static void add_failures(struct launch *l, json_t *errors)
{
	const struct engine_setup *s = &l->run.setup;
	const struct segment *list;
	size_t count = 0;

	if (!s->job || !s->results)
		return;
	list = s->job_ops->segments(s->job, &count);
	for (size_t i = 0; i < count && json_array_size(errors) < ERRORS_MOST; i++) {
		if (s->results[i].state != SEGMENT_FAILED)
			continue;
		CLEANUP(free_text)
		char *text = xasprintf("%s: %s", list[i].id, s->results[i].reason);
		json_array_append_new(errors, report_error_json(err_kind_name(ERR_JOB), text, ""));
	}
}

/* The run's own figure plus those under this key in the objects of its stages. */
static double sum_with_stages(const struct launch *l, const char *key, double own)
{
	for (size_t i = 0; i < json_array_size(l->stages); i++)
		own += jsonx_number(json_array_get(l->stages, i), key, 0);
	return own;
}

static int64_t total_ms(const struct launch *l, const char *key_s, int64_t own_ms)
{
	return (int64_t)(1000 * sum_with_stages(l, key_s, (double)own_ms / 1000) + 0.5);
}

static int64_t total_microusd(const struct launch *l, const char *key_usd, int64_t own_microusd)
{
	return (int64_t)(1e6 * sum_with_stages(l, key_usd, (double)own_microusd / 1e6) + 0.5);
}

static json_t *total_json(const struct launch *l)
{
	const struct run_row *r = &l->run.row;

	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o}", "billed_seconds",
		report_seconds(total_ms(l, "billed_seconds", r->billed_ms)), "compute_seconds",
		report_seconds(total_ms(l, "compute_seconds", r->compute_ms)), "cost_usd",
		report_dollars(total_microusd(l, "cost_usd", r->cost_microusd)), "unpriced_seconds",
		report_seconds(total_ms(l, "unpriced_seconds", r->unpriced_ms)), "cost_counted_usd",
		report_dollars(total_microusd(l, "cost_counted_usd", r->counted_microusd)));
}

json_t *launch_result_json(struct launch *l)
{
	size_t count = 0;
	struct pod_row *pods = run_pods(&l->run, &count);

	json_t *object = report_run_json(&l->run.row, pods, count, clock_wall_ms());
	free(pods);
	add_failures(l, json_object_get(object, "errors"));
	if (l->stages) {
		json_t *deliver = report_delivery_json(l->stages);
		json_object_set(object, "stages", l->stages);
		if (deliver)
			json_object_set_new(object, "deliver", deliver);
		json_object_set_new(object, "total", total_json(l));
	}
	return object;
}

/* Prints the object of `--json`, if requested. */
static void print_result_json(struct launch *l)
{
	if (l->ctx->json && !l->within)
		output_json(launch_result_json(l));
	cmd_flush(NULL);
}

void launch_failed(struct cmd_context *ctx, const struct err *err)
{
	struct launch l = {.ctx = ctx};

	l.run.row.status = err->kind == ERR_INTERRUPTED  ? RUN_INTERRUPTED
			   : err->kind == ERR_UNRELEASED ? RUN_UNRELEASED
			   : err->kind == ERR_CAP        ? RUN_CAPPED
							 : RUN_FAILED;
	COPY_TEXT(l.run.row.error_code, err_kind_name(err->kind));
	COPY_TEXT(l.run.row.error, err->msg);
	json_t *result = launch_result_json(&l), *errors = json_object_get(result, "errors");
	for (size_t i = 0; i < ctx->mistakes.count; i++)
		json_array_append_new(
			errors, report_error_json(err_kind_name(ctx->mistakes.list[i].err.kind),
						  ctx->mistakes.list[i].err.msg, ""));
	if (!json_array_size(errors))
		json_array_append_new(errors,
				      report_error_json(err_kind_name(err->kind), err->msg, ""));
	output_json(result);
	cmd_flush(NULL);
}

char *launch_files_in(const struct run_row *run)
{
	CLEANUP(free_text) char *manifest = path_join(run->output, "manifest.jsonl");
	struct stat st;
	/* a failed command's finished files are results, too */
	bool any = run->rendered + run->cached ||
		   (run->failed && stat(manifest, &st) == 0 && st.st_size);

	return any ? xasprintf("; files in %s", run->output) : xstrdup("");
}

/* ---- launch ---- */

enum { SECRET_LEAST = 8, PODS_MOST = 1000 };

void launch_init(struct launch *l, struct cmd_context *ctx)
{
	*l = (struct launch){.ctx = ctx, .starter = -1};
	order_read(&l->order, ctx->config);
	run_init(&l->run, &ctx->runs);
	trust_keep_back(tree_keep_back);
}

void launch_within(struct launch *out, const struct launch *l)
{
	*out = (struct launch){.ctx = l->ctx, .starter = -1, .within = l};
	order_copy(&out->order, &l->order);
	free(out->order.stages);
	out->order.stages = NULL;
	out->order.part_of = NULL;
	run_init(&out->run, &l->ctx->runs);
}

void launch_free(struct launch *l)
{
	run_free(&l->run);
	free(l->renders_dir);
	order_free(&l->order);
	run_choice_free(&l->choice);
	json_decref(l->stages);
}

/* ---- providers ---- */

int launch_open_providers(const struct order *o, struct run *run, struct err *err)
{
	size_t count = order_count(o->providers);

	for (size_t i = 0; i < count; i++) {
		if (run_open_account(run, o->providers[i], err) == 0)
			continue;
		if (!err_is_credentials(err->kind) || count == 1)
			return -1;
		log_line(LOG_WARN, "%s; continuing without it", err->msg);
	}
	if (!run->setup.provider_count)
		return -1;
	err_clear(err);
	return 0;
}

const struct engine_provider *launch_provider(const struct run *run, const char *name)
{
	for (int i = 0; i < run->setup.provider_count; i++)
		if (!strcmp(run->setup.providers[i].ops->name, name))
			return &run->setup.providers[i];
	return NULL;
}

/* ---- the job ---- */

/* Checks the variables for pods, which travel as JSON: a value that is not UTF-8 would arrive
 * empty. Then hides the values from logs, traces, errors and the ledger, except short ones without
 * a secret name ("1", "debug"), which would garble other text. */
int launch_check_env(const struct section *conf, const struct job_needs *needs, struct err *err)
{
	for (const char *const *name = needs->env_names; name && *name; name++) {
		const char *value = getenv(*name);
		if (value && (strlen(value) >= SECRET_LEAST || http_trace_hides(*name)))
			log_secret(value);
		if (value && !utf8_valid(value, strlen(value)))
			return err_set(err, ERR_CONFIG,
				       "%s: job.env: the value of %s in your environment is not "
				       "UTF-8 text and cannot be sent to pods",
				       section_where(conf, "env"), *name);
	}
	return 0;
}

static int may_read_for_job(void *ctx, const char *key, const char *real, struct err *err)
{
	return config_may_read(ctx, key, real, err);
}

int launch_read_job(struct launch *l, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	const struct section *top = config_top(ctx->config);
	struct engine_setup *s = &l->run.setup;
	const struct section *job = config_job(ctx->config);

	free(l->run.output_dir);
	l->run.output_dir = path_join(config_dir(ctx->config), l->order.output);
	free(l->renders_dir);
	l->renders_dir = config_renders_dir();
	struct job_setup setup = {
		.conf = job,
		.base_dir = config_read_dir(ctx->config),
		.output_dir = l->run.output_dir,
		.name = config_job_name(ctx->config),
		.pods = (int)MIN(MAX(l->order.pods, 0), PODS_MOST),
		.verbose = ctx->verbose > 0,
		.weights_url = section_text(top, "weights_url"),
		.may_read = may_read_for_job,
		.ctx = ctx->config,
		.commit = ctx->tree ? ctx->tree->commit : NULL,
		.renders_dir = l->renders_dir,
		.renders_max_bytes = section_int(top, "render_cache_mb") * 1000000,
		.image = l->order.image,
		.code = l->order.code != NULL,
		.anew = ctx->anew &&
			ctx->cmd ==
				&cmd_run, /* a resumed run has begun already: see run_resume() */
		.prune = ctx->prune,
		.mistakes = &ctx->mistakes,
	};
	s->job_ops = config_job_ops(ctx->config);
	if (s->job_ops->load(&s->job, &setup, err) < 0)
		return -1;
	l->order.vram_gb = s->job_ops->needs(s->job)->vram_gb;
	return launch_check_env(job, s->job_ops->needs(s->job), err);
}

void launch_make_results(struct launch *l)
{
	struct engine_setup *s = &l->run.setup;
	size_t count;

	s->output_dir = l->run.output_dir;
	s->job_ops->segments(s->job, &count);
	s->results = xcalloc(count, sizeof(*s->results));
}

void launch_replace_job(struct launch *l, const struct job_ops *ops, struct job *job)
{
	l->run.setup.job_ops = ops;
	l->run.setup.job = job;
	l->order.vram_gb = ops->needs(job)->vram_gb;
	launch_make_results(l);
}

/* ---- runs in the ledger ---- */

void launch_set_engine_conf(struct launch *l)
{
	const struct order *o = &l->order;
	struct engine_setup *s = &l->run.setup;
	struct core_conf *c = &s->conf;
	size_t segments = 0;

	s->job_ops->segments(s->job, &segments);
	order_override_choice(o, &l->choice.row);
	run_choice_apply(&l->choice, s, clock_wall_ms());
	c->pods = MIN((size_t)c->pods, MAX(segments, 1));
	c->plan.pods_most = MAX(c->plan.pods_most, c->pods);
	c->canary = !s->job_ops->needs(s->job)->command;
	c->max_cost_microusd = o->max_cost_microusd;
	c->max_duration_ms = o->max_duration_ms;
	c->max_price_microusd_h = o->max_price_microusd_h;
	c->wait_ms = o->wait_ms;
	c->retry_until_up = o->retry_until_up;
	c->lease_ms = o->lease_ms;
	c->boot_limit_ms = o->boot_limit_ms;
	c->keep_ms = o->keep_on_failure_ms;
	c->unproven_ok = o->unproven_ok;
	c->check_tries = MAX(s->job_ops->needs(s->job)->tries, 1);
	s->want_spot = o->spot;
	s->volume_name = o->volume;
	s->volume_gb = o->volume_gb;
	s->volume_create = o->volume_create;
	s->code_path = o->code;
	s->more_to_come = o->stages || l->stage; /* its end is written once it is judged */
	s->image = o->image;
	s->worker_root = o->worker_root;
	s->disk_gb = o->disk_gb;
	s->cpu = o->cpu;
	s->memory_gb = o->memory_gb;
	s->card = o->card;
}

/* run_want.keep of a new run. */
static int keep_flags_and_quick(void *at, struct run *run, struct err *err)
{
	struct launch *l = at;

	if (l->within) /* it is not resumed by itself */
		return 0;
	return run_flags_write(l->ctx, run->dir, err) < 0
		       ? -1
		       : quick_keep_with_run(l->ctx, run->dir, err);
}

/* run_want.reserve of a new run. */
static int reserve_cost(void *at, struct run *run, struct err *err)
{
	struct launch *l = at;
	struct run_caps c = caps_of(l);

	return take_lowered_cap(l, &c, run_caps_begin(run, &c, err));
}

int launch_begin(struct launch *l, bool detached, struct err *err)
{
	const struct stage_work *stage = l->stage;
	struct run_want want = {
		.id = l->id,
		.job = l->order.job,
		.config = l->order.config,
		.stage = stage ? stage->s->name : NULL,
		.part_of = l->order.part_of,
		.stage_input = stage ? stage->input : NULL,
		.commit = l->ctx->tree ? l->ctx->tree->commit : "",
		.keep = keep_flags_and_quick,
		.reserve = reserve_cost,
		.ctx = l,
	};

	launch_set_engine_conf(l);
	l->run.choice = &l->choice;
	l->run.setup.conf.detached = detached;
	return run_begin(&l->run, &want, err);
}

/* run_want.keep of a resumed run. */
static int keep_flags(void *at, struct run *run, struct err *err)
{
	struct launch *l = at;

	return run_flags_write(l->ctx, run->dir, err);
}

/* run_want.reserve of a resumed run. */
static int reserve_cost_of_resumed(void *at, struct run *run, struct err *err)
{
	struct launch *l = at;
	struct run_caps c = caps_of(l);

	return take_lowered_cap(l, &c, run_caps_resume(run, &c, err));
}

int launch_resume(struct launch *l, const struct run_row *row, struct err *err)
{
	struct run_want want = {.anew = l->ctx->anew,
				.keep = keep_flags,
				.reserve = reserve_cost_of_resumed,
				.ctx = l};

	launch_set_engine_conf(l);
	return run_resume(&l->run, row, &want, err);
}

/* ---- checks of the config's values ---- */

int launch_check_width(struct launch *l, struct err *err)
{
	return run_check_width(&l->run, MAX(l->order.pods, 1), err);
}

int launch_check_can_rent(struct launch *l, struct err *err)
{
	bool has_files = l->run.setup.job_ops != &job_warm;

	if (runs_settle(&l->ctx->runs, NULL, err) < 0 || lower_to_caps_left(l, err) < 0 ||
	    run_check_balance(&l->run, l->order.max_cost_microusd, err) < 0)
		return -1;
	return has_files ? run_check_files(&l->run, l->order.volume, err) : 0;
}

/* ---- launch run ----
 * Drives a run's engine to its end and reports the result. */

static struct progress *progress_shown;

static void on_progress(void *ctx, const struct engine *e)
{
	progress_draw(progress_shown, e);
	detach_watch_starter(ctx, e);
}

static void on_pod_output(void *ctx, const char *pod, const char *line)
{
	(void)ctx;
	output_line(stderr, "%s | %s", pod, line);
}

/* Prints the totals of the run and its stages; the phases above are those of the render. */
static void say_total(const struct launch *l)
{
	const struct run_row *r = &l->run.row;
	char billed[32], compute[32], cost[40];

	if (!json_array_size(l->stages) || l->ctx->quiet)
		return;
	output_line(
		stderr, "run %s with its stages: %s billed, %s compute, %s in total", r->id,
		duration_show(billed, sizeof(billed), total_ms(l, "billed_seconds", r->billed_ms)),
		duration_show(compute, sizeof(compute),
			      total_ms(l, "compute_seconds", r->compute_ms)),
		cost_show(cost, sizeof(cost), total_microusd(l, "cost_usd", r->cost_microusd),
			  total_ms(l, "unpriced_seconds", r->unpriced_ms)));
}

/* Runs on_exit of the config with the run's object on stdin. Its result does not matter, but its
 * time is limited: the job's lock is held meanwhile. */
static void run_on_exit_command(struct launch *l)
{
	const struct section *top = config_top(l->ctx->config);
	const char *const argv[] = {"/bin/sh", "-c", section_text(top, "on_exit"), NULL};
	struct err err = {0};

	if (!argv[2] || l->within)
		return;
	fflush(NULL);
	CLEANUP(json_decref) json_t *result = launch_result_json(l);
	CLEANUP(free_text) char *text = output_json_line(result);
	struct program p = {.argv = argv,
			    .input = text,
			    .output_fd = STDERR_FILENO,
			    .environment = environ, /* with our keys: it may call burst */
			    .limit_ms = section_int(top, "on_exit_limit")};
	int status = program_run(&p, NULL, NULL, &err);
	if (status < 0)
		log_line(LOG_WARN, "on_exit: %s", err.msg);
	else if (status)
		log_line(LOG_WARN, "on_exit: the command ended with %d", status);
}

static void send_notice_of_end(struct launch *l)
{
	CLEANUP(json_decref) json_t *said = launch_result_json(l);

	notify_ended(l->ctx, &l->run.row, said);
}

/* Whether a run of this type leaves files: others fill a volume, measure
 * an engine or are listened to. */
static bool brings_files(const struct run_row *run)
{
	return strcmp(run->type, JOB_WARM) && !excerpt_is(run->type);
}

/* Prints how many segments are done and where, and how to continue if some are left to render. */
static void say_outputs(const struct run_row *r)
{
	bool stopped = r->status == RUN_INTERRUPTED || r->status == RUN_CAPPED;
	CLEANUP(free_text) char *files = launch_files_in(r);

	output_line(stderr, "run %s: %s: %lld rendered, %lld cached, %lld failed of %lld%s", r->id,
		    r->status != RUN_RUNNING ? run_status_word(r->status) : "all fetched",
		    (long long)r->rendered, (long long)r->cached, (long long)r->failed,
		    (long long)r->total, files);
	if (stopped && r->rendered + r->cached < r->total)
		output_line(stderr, "run %s: continue with `burst resume %s`", r->id, r->id);
}

/* Prints phases, plan and actual cost, advice, pods that may still bill, and the files. */
static void say_end(struct launch *l)
{
	size_t count = 0;
	struct pod_row *pods = run_pods(&l->run, &count);
	struct run_row *r = &l->run.row;
	CLEANUP(str_free) struct str advice = STR_INIT;
	char compared[200];

	if (!l->ctx->quiet && count) {
		report_print_phases(stderr, pods, count, clock_wall_ms());
		fputc('\n', stderr);
		if (planned_compare(compared, sizeof(compared), r, pods, count))
			output_line(stderr, "%s", compared);
		planned_say_replans(stderr, r);
		if (r->cost_microusd > 0 && r->status == RUN_DONE && brings_files(r)) {
			const struct advice_of of = {l->ctx->store, r->id, pods, count,
						     clock_wall_ms()};
			advice_add_seats(&advice, &of);
			advice_add(&advice, &of);
		}
		output_lines(stderr, str_text(&advice));
	}
	if (r->status == RUN_UNRELEASED)
		report_unreleased(pods, count);
	if (!l->ctx->quiet && brings_files(r))
		say_outputs(r);
	free(pods);
}

/* Warns about kept suspect files: the exit status counts them as done. */
static void say_suspects(const struct launch *l)
{
	size_t count = 0, suspects = 0, first = 0;
	const struct segment *list = l->run.setup.job_ops->segments(l->run.setup.job, &count);

	for (size_t i = count; i-- > 0;)
		if (l->run.setup.results[i].state == SEGMENT_SAFE &&
		    l->run.setup.results[i].suspect) {
			suspects++;
			first = i;
		}
	if (suspects)
		log_line(LOG_WARN,
			 "%zu of %zu files %s suspect and %s kept (%s%s: %s): see \"suspect\" in "
			 "manifest.jsonl; remove a file to render it again",
			 suspects, count, suspects == 1 ? "is" : "are",
			 suspects == 1 ? "was" : "were", list[first].id,
			 suspects == 1 ? "" : " first", l->run.setup.results[first].reason);
}

/* Does what is left once all segments are safe (l->finish). Returns the exit status; the run's
 * row has its end. Signals are held on return. */
static int finish_and_record(struct launch *l, struct err *err)
{
	/* a stage's own run handles signals; drop those that came when nothing was left to
	 * stop */
	engine_block_signals();
	int status = l->finish ? l->finish(l, err) : 0;

	if (status < 0)
		status = err_exit_status(err);
	if (status || l->run.row.status == RUN_RUNNING)
		run_write_end(&l->run, status, err);
	while (engine_take_signal())
		;
	return status;
}

/* For a stage's own run whose segments are all safe: records its success, even if its pod's
 * release is unconfirmed or a signal came during the release. */
static void keep_finished_stage(struct launch *l)
{
	struct err none;

	if (l->stage && l->run.row.rendered + l->run.row.cached == l->run.row.total &&
	    l->finish(l, &none) == 0)
		engine_note_unfinished(l->ctx->store, l->run.row.id, false);
}

/* Adds file and line to an error about a key of the config, also in the run's row. */
static void place_error_of_run(struct launch *l)
{
	config_place_error(l->ctx->config, &l->run.err);
	if (l->run.err.kind && l->run.row.error[0])
		COPY_TEXT(l->run.row.error, l->run.err.msg);
}

int launch_run(struct launch *l)
{
	struct run_watch watch = {.progress = on_progress, .output = on_pod_output, .ctx = l};
	struct progress *p = progress_new(l->ctx);

	progress_shown = p;
	output_stamp(!l->ctx->live);
	int status = run_go(&l->run, &watch);
	output_stamp(false);
	progress_free(p);
	progress_shown = NULL;
	place_error_of_run(l);
	caps_explain(l, &l->run.err);
	say_end(l);
	say_suspects(l);
	if (status == 0 && brings_files(&l->run.row))
		status = finish_and_record(l, &l->run.err);
	else if ((status == UNRELEASED_STATUS || status > SIGNAL_STATUS) && l->run.finished_well)
		keep_finished_stage(l);
	if (!l->within) /* else that run continues, and a signal must not interrupt it */
		engine_unblock_signals();
	say_total(l);
	if (l->run.err.kind && l->run.err.kind != ERR_INTERRUPTED)
		output_error(l->ctx, &l->run.err);
	run_on_exit_command(l);
	send_notice_of_end(l);
	detach_on_run_ended(l);
	print_result_json(l);
	return status;
}

/* ---- rendered already ----
 * Ends a job whose segments earlier runs have rendered. */

int launch_finish_rendered(struct launch *l, struct err *err)
{
	CLEANUP(str_free) struct str notes = STR_INIT;
	const struct job_ops *ops = l->run.setup.job_ops;
	size_t count = 0;

	if (runs_settle(&l->ctx->runs, NULL, err) < 0)
		return -1;
	ops->segments(l->run.setup.job, &count);
	l->run.row.total = l->run.row.cached = (int64_t)count;
	COPY_TEXT(l->run.row.job, l->order.job);
	COPY_TEXT(l->run.row.config, l->order.config);
	COPY_TEXT(l->run.row.output, l->run.output_dir);
	l->run.row.status = RUN_DONE;
	if (!l->ctx->quiet) { /* first: joining a long book takes minutes */
		if (count == 1)
			output_line(stderr, "the segment is already rendered: nothing rented");
		else
			output_line(stderr, "all %zu segments are already rendered: nothing rented",
				    count);
	}
	if (ops->finish(l->run.setup.job, l->run.setup.results, &notes, err) < 0)
		return -1;
	if (!l->ctx->quiet)
		output_lines(stderr, str_text(&notes));
	say_suspects(l);
	int status = finish_and_record(l, &l->run.err);
	engine_unblock_signals();
	if (l->run.err.kind && l->run.err.kind != ERR_INTERRUPTED)
		output_error(l->ctx, &l->run.err);
	print_result_json(l);
	return status;
}
