/* render.c - a render from its decision to its end, and runs that are taken over */
#include "launch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "decide.h"
#include "jobs/excerpt/excerpt.h"
#include "jobs/warm/warm.h"
#include "volume.h"
#include "stages.h"

/* ---- come back ----
 * Continues a run whose client is gone, with the flags that it was started with. */

/* Resumes a run: adopts its living pods, fetches what they finished, renders the rest. */
static int resume_run(struct cmd_context *ctx, const struct run_row *row, struct err *err)
{
	struct launch l;

	ctx->overwrite = ctx->overwrite || opt_has(ctx, "force");
	launch_init(&l, ctx);
	l.finish = stages_run;
	int status = launch_check_width(&l, err);
	if (status == 0)
		status = launch_read_decision(&l, row, err);
	if (status == 0)
		status = launch_load_to_render(&l, err);
	if (status == 0)
		status = launch_open_providers(&l.order, &l.run, err);
	if (status == 0)
		status = volume_trust(ctx, &l.order, &l.run, row->id, err);
	if (status == 0)
		status = runs_settle(&ctx->runs, row->id, err);
	if (status == 0)
		status = launch_resume(&l, row, err);
	if (status == 0) {
		keep_pool(&l);
		status = launch_run(&l);
	}
	launch_free(&l);
	return status;
}

int launch_open_config_of(struct cmd_context *ctx, const struct run_row *row, struct err *err)
{
	const char *commit = row->commit_id[0] ? row->commit_id : NULL;

	if (!strcmp(row->type, JOB_WARM))
		return err_set(err, ERR_USAGE,
			       "run %s filled a volume and has no files: `burst volume warm` "
			       "fills it again, `burst cancel %s` releases its pod",
			       row->id, row->id);
	if (!strcmp(row->type, KEEP_RUN))
		return err_set(err, ERR_USAGE,
			       "run %s keeps pods for other runs and has no files: `burst cancel "
			       "%s` releases them",
			       row->id, row->id);
	if (!strcmp(row->type, CALIBRATE))
		return err_set(err, ERR_USAGE,
			       "run %s measured an engine and has no files: `burst calibrate` "
			       "measures it again, `burst cancel %s` releases its pod",
			       row->id, row->id);
	if (!strcmp(row->type, LISTEN))
		return err_set(err, ERR_USAGE,
			       "run %s rendered a sample: `burst listen` renders another, `burst "
			       "cancel %s` releases its pod",
			       row->id, row->id);
	if (row->stage[0])
		return stage_refuse(ctx, row, err);
	CLEANUP(free_text) char *run_dir = run_path(&ctx->runs, row->id, NULL);
	if (quick_of_run(ctx, row->config, run_dir, err) < 0 ||
	    quick_open(ctx, row->config[0] ? row->config : NULL, commit, err) < 0)
		return -1;
	config_set_output(ctx->config, row->output);
	if (run_flags_apply(ctx, run_dir, err) < 0 || cmd_apply_flags(ctx, err) < 0)
		return -1;
	return config_check(ctx->config, err);
}

int launch_print_end(struct cmd_context *ctx, const struct run_row *row, int status,
		     struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (!ctx->json)
		return status;
	if (store_pods(ctx->store, row->id, false, &pods, &count, err) < 0)
		return -1;
	output_json(report_run_json(row, pods, count, clock_wall_ms()));
	free(pods);
	return cmd_flush(err) < 0 ? -1 : status;
}

int launch_continue(struct cmd_context *ctx, const struct run_row *row, const char *place,
		    struct err *err)
{
	if (launch_open_config_of(ctx, row, err) < 0)
		return -1;
	if (!ctx->quiet)
		output_line(stderr, "run %s: continuing (%s)", row->id, place);
	return resume_run(ctx, row, err);
}

const struct opt launch_resume_opts[] = {
	{0, "max-cost", "USD", "new cap on the run's total cost", "caps.max_cost", false},
	{0, "max-duration", "TIME", "no pod lives longer than this", "caps.max_duration", false},
	{0, "deadline", "WHEN", "new deadline: 20m from now, or a time of day (07:00)", "deadline",
	 false},
	ALLOW_OPTS,
	{0, "force", NULL, "overwrite files in the output folder that burst did not make", NULL,
	 false},
	{0},
};

/* ---- render ---- */

/* Whether a volume may hold segments that the run finished but did not fetch. For a released pod
 * only durable ones count. volume: its name; *alive: one of its pods may still exist (`burst
 * resume` checks). */
static bool has_segments_on_volume(struct cmd_context *ctx, const struct run_row *run,
				   char volume[64], bool *alive)
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

/* Warns that `burst resume` would save work: a new run renders, and pays for, segments of an
 * earlier run that are finished but not local. */
static void suggest_resume(struct launch *l)
{
	const char *config = l->order.config;
	struct run_row *runs = NULL;
	size_t count = 0;
	char volume[64];
	bool alive;

	if (!config[0] || store_runs(l->ctx->store, config, false, 1, &runs, &count, NULL) < 0 ||
	    !count)
		return;
	const struct run_row *run = &runs[0];
	if (!strcmp(run->job, l->order.job) && run->status != RUN_DONE && !excerpt_is(run->type) &&
	    !run->detached && !run_is_alive(&l->ctx->runs, run->id) &&
	    has_segments_on_volume(l->ctx, run, volume, &alive))
		log_line(LOG_WARN,
			 "run %s of this job failed, and volume %s may hold segments that it "
			 "finished: `burst resume %s` takes them over; this run %srenders them "
			 "again",
			 run->id, volume, run->id, alive ? "releases its pods and " : "");
	free(runs);
}

/* Checks that the run may use its volume and rent, then plans it. */
static int check_and_decide(struct launch *l, struct err *err)
{
	const struct order *o = &l->order;

	suggest_resume(l);
	if (volume_trust(l->ctx, o, &l->run, NULL, err) < 0 || launch_check_can_rent(l, err) < 0 ||
	    runs_check_detached(&l->ctx->runs, o->config, o->job, err) < 0)
		return -1;
	return launch_decide(l, err);
}

/* Renders the open segments. Returns the exit status, or -1 if the run did not begin. */
static int render_on_pods(struct launch *l, bool detached, struct err *err)
{
	int starter = detach_starter_fd();

	if (launch_foresee(l, err) < 0 || travel_report_once(l, err) < 0 ||
	    launch_open_providers(&l->order, &l->run, err) < 0 || check_and_decide(l, err) < 0 ||
	    launch_begin(l, detached, err) < 0)
		return -1;
	if (detached)
		detach_say_needs(l);
	if (detach_on_run_begun(l, starter, err) < 0)
		return -1;
	keep_pool(l);
	if (!l->ctx->quiet)
		fprintf(stderr, "run %s: %zu of %lld segments to render\n", l->run.row.id,
			run_open_segments(&l->run), (long long)l->run.row.total);
	return launch_run(l);
}

int launch_render(struct launch *l, bool detached, struct err *err)
{
	l->finish = stages_run;
	if (launch_load_to_render(l, err) < 0)
		return -1;
	return run_open_segments(&l->run) ? render_on_pods(l, detached, err)
					  : launch_finish_rendered(l, err);
}
