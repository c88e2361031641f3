/* run.c - `burst run`: renders a job. */
#include "cmd.h"

#include <stdlib.h>

#include "base/log.h"
#include "jobs/calibrate/calibrate.h"
#include "cmd/launch/caps.h"
#include "cmd/launch/decide.h"
#include "cmd/launch/deliver_run.h"
#include "cmd/launch/detach.h"
#include "cmd/launch/keep_pool.h"
#include "cmd/show/output.h"
#include "cmd/show/plan_show.h"
#include "cmd/launch/quick.h"
#include "cmd/launch/find_run.h"
#include "cmd/launch/volume_trust.h"

static const struct opt opts[] = {
	{'n', "dry-run", NULL, "show what would be rented, rendered and paid, and exit", NULL,
	 false},
	{'d', "detach", NULL,
	 "return when the pods have the queue and no longer need this machine; print the run's "
	 "id",
	 NULL, false},
	{0, "no-wait", NULL, "with -d: return before anything is rented", NULL, false},
	{'p', "provider", "PROVIDER", "rent from these providers, in this order", "provider",
	 false},
	{0, "gpu", "GPU", "acceptable GPUs, in order of preference; auto: burst chooses", "gpu",
	 false},
	{0, "pods", "N|auto", "pods at most; auto: burst chooses", "pods", false},
	{0, "spot", NULL, "take pods that the provider may reclaim, for less money", "spot", false},
	{0, "max-cost", "USD", "stop before the run has cost this much", "caps.max_cost", false},
	{0, "max-duration", "TIME", "no pod lives longer than this", "caps.max_duration", false},
	{0, "goal", "GOAL", "what to minimize: cost, time or balanced", "goal", false},
	{0, "deadline", "WHEN", "deadline: 20m from now, or a time of day (07:00)", "deadline",
	 false},
	{0, "value-of-time", "USD", "what an hour of waiting costs, for --goal balanced",
	 "value_of_time", false},
	{0, "retry-until-up", NULL, "wait for capacity without limit", "retry_until_up", false},
	{0, "commit", "COMMIT",
	 "render this git commit instead of the current files; outputs go to the working tree",
	 NULL, false},
	{0, "engine", "ENGINE", "what speaks", "job.engine", false},
	{0, "voice", "VOICE", "voice of the lines that name none", "job.voice", false},
	{'o', "output", "DIR", "output folder", "job.output", false},
	{0, "save", "FILE",
	 "without a burst.cfg: write the one that does the same (default burst.cfg)", NULL, true},
	ALLOW_OPTS,
	{0, "force", NULL, "overwrite files in the output folder that burst did not make", NULL,
	 false},
	{0, "anew", NULL,
	 "render all segments, reusing neither the output folder nor the render cache", NULL,
	 false},
	{0, "prune", NULL, "once all is rendered, remove old outputs without a segment", NULL,
	 false},
	{0, "keep-on-failure", "TIME",
	 "keep pods on which the job failed for this long (they bill), to look at them; not with "
	 "-d",
	 "keep_on_failure", false},
	{0},
};

/* Nothing left to render: no pod is rented, but a dead client's are given back, and what follows
 * rendering is done. */
static int all_cached(struct launch *l, struct err *err)
{
	CLEANUP(str_free) struct str notes = STR_INIT;
	const struct job_ops *ops = l->run.setup.job_ops;
	size_t count = 0;

	if (runs_settle(&l->ctx->runs, NULL, err) < 0)
		return -1;
	ops->segments(l->run.setup.job, &count);
	l->run.row.total = l->run.row.cached = (int64_t)count;
	COPY_TEXT(l->run.row.job, config_job_name(l->ctx->config));
	COPY_TEXT(l->run.row.config,
		  config_path(l->ctx->config) ? config_path(l->ctx->config) : "");
	COPY_TEXT(l->run.row.output, l->run.output_dir);
	l->run.row.status = RUN_DONE;
	if (ops->finish(l->run.setup.job, l->run.setup.results, &notes, err) < 0)
		return -1;
	if (!l->ctx->quiet) {
		output_lines(stderr, str_text(&notes));
		output_line(stderr, "all %zu segments are already rendered: nothing rented", count);
	}
	launch_say_suspects(l);
	int status = launch_deliver(l, &l->run.err);
	if (!l->ctx->delivers)
		engine_let_signals_in();
	if (l->run.err.kind && l->run.err.kind != ERR_INTERRUPTED)
		output_error(l->ctx, &l->run.err);
	launch_print_json(l);
	return status;
}

/* ---- what an earlier run of this job has left ---- */

/* The name of a volume that may hold finished segments of it which are not fetched; false: none
 * does. Of a released pod only durable segments count. A pod that may still be there is checked
 * when the run is resumed. */
static bool waits_on_volume(struct cmd_context *ctx, const struct run_row *run, char volume[64],
			    bool *alive)
{
	struct segment_row *segments = NULL;
	struct pod_row *pods = NULL;
	size_t home = 0, count = 0;
	bool waits = false;

	if (store_segments(ctx->store, run->id, &segments, &home, NULL) < 0 ||
	    (int64_t)home + run->cached >= run->total ||
	    store_pods(ctx->store, run->id, false, &pods, &count, NULL) < 0)
		count = 0;
	*alive = false;
	for (size_t i = 0; i < count; i++) {
		bool over = pod_row_over(&pods[i]);
		if (!pods[i].volume_id[0] || !pods[i].ready_ms || (over && !pods[i].volume_safe))
			continue;
		waits = true;
		*alive = *alive || !over;
		copy_text(volume, 64, pods[i].volume_name);
	}
	free(segments);
	free(pods);
	return waits;
}

/* A new run renders again, and pays again, what is finished and not home. */
static void name_resume(struct launch *l)
{
	const char *config = config_path(l->ctx->config);
	struct run_row *runs = NULL;
	size_t count = 0;
	char volume[64];
	bool alive;

	if (!config || store_runs(l->ctx->store, config, false, 1, &runs, &count, NULL) < 0 ||
	    !count)
		return;
	const struct run_row *run = &runs[0];
	if (!strcmp(run->job, config_job_name(l->ctx->config)) && run->status != RUN_DONE &&
	    strcmp(run->type, CALIBRATE) && !run->detached &&
	    !run_is_alive(&l->ctx->runs, run->id) && waits_on_volume(l->ctx, run, volume, &alive))
		log_line(LOG_WARN,
			 "run %s of this job failed, and volume %s may hold segments that it "
			 "finished: `burst resume %s` takes them over; this run %srenders them "
			 "again",
			 run->id, volume, run->id, alive ? "releases its pods and " : "");
	free(runs);
}

/* ---- the command ---- */

static int render(struct launch *l, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	int starter = ctx->delivers ? -1 : detach_starter();

	if (launch_open_providers(l, err) < 0)
		return -1;
	if (opt_has(ctx, "dry-run"))
		return launch_plan(l, &(struct plan_words){0}, err);
	name_resume(l);
	if (volume_trust(l, NULL, err) < 0 || runs_settle(&ctx->runs, NULL, err) < 0)
		return -1;
	if (ctx->delivers) {
		/* settling may have let signals in, and the render has yet to write how it ended */
		engine_hold_signals();
		l->run.setup.ignore_hangup = ctx->delivers->render->setup.ignore_hangup;
	}
	if (launch_check_detached(l, err) < 0 || caps_fit(l, err) < 0 ||
	    launch_check_balance(l, err) < 0 || launch_check_files(l, err) < 0 ||
	    launch_decide(l, err) < 0 || launch_begin(l, opt_has(ctx, "detach"), err) < 0)
		return -1;
	if (detach_begins(l, starter, err) < 0)
		return -1;
	keep_pool(l);
	if (!ctx->quiet)
		fprintf(stderr, "run %s: %zu of %lld segments to render\n", l->run.row.id,
			run_open_segments(&l->run), (long long)l->run.row.total);
	return launch_run(l);
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct launch l;

	if (opt_has(ctx, "dry-run") && ctx->json)
		return err_set(err, ERR_USAGE,
			       "run: -n cannot be used with --json (`burst offers --json` has "
			       "the offers)");
	if (opt_has(ctx, "no-wait") && !opt_has(ctx, "detach"))
		return err_set(err, ERR_USAGE, "run: --no-wait needs -d");
	if (detach_starter() < 0 && quick_tell(ctx, err) < 0)
		return -1;
	if (opt_has(ctx, "detach") && !opt_has(ctx, "dry-run") && detach_starter() < 0)
		return detach(ctx, err);
	ctx->overwrite = opt_has(ctx, "force");
	ctx->anew = opt_has(ctx, "anew");
	ctx->prune = opt_has(ctx, "prune");
	launch_init(&l, ctx);
	queued_read(&l.queued);
	int status = opt_has(ctx, "dry-run") ? launch_look_at_job(&l, err)
					     : launch_load_to_render(&l, err);
	if (status == 0 && !run_open_segments(&l.run) && !opt_has(ctx, "dry-run"))
		status = all_cached(&l, err);
	else if (status == 0)
		status = render(&l, err);
	launch_free(&l);
	if (status >= 0 && status < 128 && !opt_has(ctx, "dry-run") && !l.queued.run[0] &&
	    config_path(ctx->config))
		queue_wake(
			ctx,
			config_path(ctx->config)); /* a reboot may have left it without a client */
	return status;
}

const struct cmd cmd_run = {
	.name = "run",
	.args = "[CONFIG|TEXT] [-- COMMAND...]",
	.max_args = 1,
	.takes_command = true,
	.summary = "render a job on rented pods",
	.details =
		"Reads burst.cfg. Without one, TEXT (.txt, .md, .csv, .tsv, .jsonl) is spoken by "
		"espeak into TEXT-audio, and COMMAND runs in a copy of the current folder; what it "
		"makes or changes comes to out. burst then prints the burst.cfg that does the "
		"same, "
		"and --save writes it.\n\n"
		"Rents pods, renders what is neither in the output folder nor "
		"in the render cache (`burst cache`), fetches each file while the next ones "
		"render, releases the pods and proves that they are gone. Runs whose client "
		"died are settled first. With -d it "
		"returns once the pods have the queue, finish it and end themselves without "
		"this machine: exit 0, the run's id alone on "
		"stdout. Where a pod's files cannot be fetched without it (no volume), a client "
		"in the background stays until they are. A run "
		"that ends before that, or that a signal ends, gives its own exit status. "
		"`burst attach` fetches the files.",
	.opts = opts,
	.needs = NEED_JOB | NEED_LEDGER | CONFIG_ARG | CHECKS_ALL | TELLS_FAILURE,
	.group = CMD_GROUP_RENDER,
	.json = true,
	.run = run,
	.failed = launch_failed,
};
