/* launch.c - reads a run's settings from the config and passes them to the library of runs. */
#include "launch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/path.h"
#include "caps.h"
#include "check.h"
#include "cmd/unattended/commit_tree.h"
#include "config/trust.h"
#include "net/http_trace.h"
#include "quick.h"
#include "run_flags.h"
#include "stage_parts.h"
#include "sync/tree.h"
#include "wish.h"

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

int launch_open_providers(struct launch *l, struct err *err)
{
	size_t count = order_count(l->order.providers);

	for (size_t i = 0; i < count; i++) {
		if (run_open_account(&l->run, l->order.providers[i], err) == 0)
			continue;
		if (!err_is_credentials(err->kind) || count == 1)
			return -1;
		log_line(LOG_WARN, "%s; continuing without it", err->msg);
	}
	if (!l->run.setup.provider_count)
		return -1;
	err_clear(err);
	return 0;
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

static int may_read(void *ctx, const char *key, const char *real, struct err *err)
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
		.may_read = may_read,
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
	launch_make_results(l);
}

/* ---- runs in the ledger ---- */

void launch_conf(struct launch *l)
{
	const struct order *o = &l->order;
	struct engine_setup *s = &l->run.setup;
	struct core_conf *c = &s->conf;
	size_t segments = 0;

	s->job_ops->segments(s->job, &segments);
	wish_name(&l->choice.row, o);
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
}

static int keep_words(void *at, struct run *run, struct err *err)
{
	struct launch *l = at;

	if (l->within) /* it is not resumed by itself */
		return 0;
	return run_flags_write(l->ctx, run->dir, err) < 0 ? -1 : quick_keep(l->ctx, run->dir, err);
}

static int reserve(void *at, struct run *run, struct err *err)
{
	(void)run;
	return caps_begin(at, err);
}

int launch_begin(struct launch *l, bool detached, struct err *err)
{
	struct run_want want = {
		.id = l->queued.run,
		.job = l->order.job,
		.config = l->order.config,
		.stage = l->stage ? l->stage->s->name : NULL,
		.part_of = l->stage ? l->stage->part_of : NULL,
		.stage_input = l->stage ? l->stage->input : NULL,
		.commit = l->ctx->tree ? l->ctx->tree->commit : "",
		.keep = keep_words,
		.reserve = reserve,
		.ctx = l,
	};

	launch_conf(l);
	l->run.choice = &l->choice;
	l->run.setup.conf.detached = detached;
	return run_begin(&l->run, &want, err);
}

/* ---- checks of the config's values ---- */

int launch_check_width(struct launch *l, struct err *err)
{
	return run_check_width(&l->run, MAX(l->order.pods, 1), err);
}

int launch_check_balance(struct launch *l, struct err *err)
{
	return run_check_balance(&l->run, l->order.max_cost_microusd, err);
}

int launch_check_files(struct launch *l, struct err *err)
{
	return run_check_files(&l->run, l->order.volume, err);
}

int launch_check_detached(const struct launch *l, struct err *err)
{
	return runs_check_detached(&l->ctx->runs, l->order.config, l->order.job, err);
}
