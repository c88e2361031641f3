/* resume.c - `burst resume`: takes over a run whose client has died; `burst attach`: follows one
 * that lives. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "jobs/calibrate/calibrate.h"
#include "cmd/launch/caps.h"
#include "cmd/launch/deliver_run.h"
#include "cmd/launch/keep_pool.h"
#include "cmd/launch/launch.h"
#include "cmd/show/output.h"
#include "cmd/launch/quick.h"
#include "cmd/show/report.h"
#include "cmd/launch/run_flags.h"
#include "cmd/launch/find_run.h"
#include "cmd/launch/volume_trust.h"
#include "jobs/warm/warm.h"
#include "cmd/show/follow.h"

static int keep_flags(void *at, struct run *run, struct err *err)
{
	struct launch *l = at;

	return run_flags_write(l->ctx, run->dir, err);
}

static int reserve(void *at, struct run *run, struct err *err)
{
	(void)run;
	return caps_go_on(at, err);
}

static int take_up(struct launch *l, const struct run_row *row, struct err *err)
{
	struct run_want want = {
		.anew = l->ctx->anew, .keep = keep_flags, .reserve = reserve, .ctx = l};

	launch_conf_from_config(l);
	return run_resume(&l->run, row, &want, err);
}

/* Back into a run whose client is gone: its pods are taken over where they live, what they finished
 * is brought home, the rest is rendered. */
static int come_back(struct cmd_context *ctx, const struct run_row *row, struct err *err)
{
	struct launch l;

	ctx->overwrite = ctx->overwrite || opt_has(ctx, "force");
	launch_init(&l, ctx);
	int status = launch_check_width(&l, err);
	if (status == 0)
		status = launch_load_to_render(&l, err);
	if (status == 0)
		status = launch_open_providers(&l, err);
	if (status == 0)
		status = volume_trust(&l, row->id, err);
	if (status == 0)
		status = runs_settle(&ctx->runs, row->id, err);
	if (status == 0)
		status = take_up(&l, row, err);
	if (status == 0) {
		keep_pool(&l);
		status = launch_run(&l);
	}
	launch_free(&l);
	return status;
}

/* The config that the run was started with, whatever folder we stand in, and what it was told
 * beside; our own flags go before. */
int launch_its_config(struct cmd_context *ctx, const struct run_row *row, struct err *err)
{
	struct config_ask ask = {.file = row->config[0] ? row->config : NULL,
				 .need_job = true,
				 .mistakes = &ctx->mistakes,
				 .providers = provider_registry,
				 .jobs = job_registry};

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
	if (delivery_is(&ctx->runs, row->config))
		return deliver_run_refuse(ctx, row, err);
	CLEANUP(free_text) char *run_dir = run_path(&ctx->runs, row->id, NULL);
	config_free(ctx->config);
	ctx->config = NULL;
	if (quick_of_run(ctx, row->config, run_dir, err) < 0)
		return -1;
	if (ctx->quick)
		ask.text = ctx->quick->text;
	if (cmd_open_config(ctx, &ask, row->commit_id[0] ? row->commit_id : NULL, err) < 0)
		return -1;
	config_set_output(ctx->config, row->output);
	if (run_flags_apply(ctx, run_dir, err) < 0 || cmd_apply_flags(ctx, err) < 0)
		return -1;
	return config_check(ctx->config, err);
}

/* The object of a run that nothing is left to be done for here; its exit status. */
static int tell_end(struct cmd_context *ctx, const struct run_row *row, int status, struct err *err)
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

static int go_on(struct cmd_context *ctx, const struct run_row *row, const char *place,
		 struct err *err)
{
	if (launch_its_config(ctx, row, err) < 0)
		return -1;
	if (!ctx->quiet)
		output_line(stderr, "run %s: continuing (%s)", row->id, place);
	return come_back(ctx, row, err);
}

static int resume(struct cmd_context *ctx, const struct run_row *row, struct err *err)
{
	CLEANUP(free_text) char *place = run_place(ctx, row);

	if (run_is_alive(&ctx->runs, row->id))
		return err_set(err, ERR_BUSY, "run %s is already running (see `burst attach %s`)",
			       row->id, row->id);
	if (row->status == RUN_DONE) {
		output_line(stderr, "run %s is already done (%s)", row->id, place);
		return tell_end(ctx, row, 0, err);
	}
	return go_on(ctx, row, place, err);
}

static int resume_command(struct cmd_context *ctx, struct err *err)
{
	struct run_row row;

	if (deliver_run_find(ctx, ctx->arg_count ? ctx->args[0] : NULL, &row, err) < 0)
		return -1;
	int status = resume(ctx, &row, err);
	return status < 0 ? run_name_in(ctx, &row, err) : status;
}

/* Its client died while we watched: its pods have no client now. */
static int client_died(struct cmd_context *ctx, struct run_row *row, struct err *err)
{
	struct err why = {0};
	size_t count;

	if (run_so_far(&ctx->runs, row, clock_wall_ms(), err) < 0 ||
	    run_open_pods(&ctx->runs, row->id, &count, err) < 0)
		return -1;
	if (count)
		err_set(&why, ERR_UNRELEASED,
			"run %s: its client died; %zu pod%s may still be billing: `burst resume "
			"%s` continues it, `burst reap` releases its pods",
			row->id, count, count == 1 ? "" : "s", row->id);
	else
		err_set(&why, ERR_JOB,
			"run %s: its client died; no pods are billing; `burst resume %s` "
			"continues it",
			row->id, row->id);
	run_name_in(ctx, row, &why);
	output_error(ctx, &why);
	/* the status as it is known now; it does not go to the ledger */
	row->status = count ? RUN_UNRELEASED : RUN_INTERRUPTED;
	COPY_TEXT(row->error_code, err_kind_name(why.kind));
	COPY_TEXT(row->error, why.msg);
	return tell_end(ctx, row, err_exit_status(&why), err);
}

/* We watch until its client ends, and end as it did. */
static int follow(struct cmd_context *ctx, struct run_row *row, const char *place, struct err *err)
{
	if (!ctx->quiet)
		output_line(stderr, "run %s: attached (%s)", row->id, place);
	follow_run(ctx, row);
	if (store_run(ctx->store, row->id, row, err) < 0)
		return -1;
	if (row->status == RUN_RUNNING)
		return client_died(ctx, row, err);
	output_line(stderr, "run %s: %s (%s)", row->id, run_status_word(row->status), place);
	return tell_end(ctx, row, row->exit_status, err);
}

static int attach(struct cmd_context *ctx, struct run_row *row, struct err *err)
{
	CLEANUP(free_text) char *place = run_place(ctx, row);

	if (run_is_alive(&ctx->runs, row->id) &&
	    (opt_has(ctx, "max-cost") || opt_has(ctx, "max-duration")))
		return err_set(err, ERR_USAGE,
			       "run %s has a client, whose caps cannot change: `burst cancel "
			       "%s` ends it, then `burst resume %s` takes new ones",
			       row->id, row->id, row->id);
	if (run_is_alive(&ctx->runs, row->id))
		return follow(ctx, row, place, err);
	if (row->status != RUN_RUNNING) {
		output_line(stderr, "run %s has ended: %s (%s)", row->id,
			    run_status_word(row->status), place);
		return tell_end(ctx, row, row->exit_status, err);
	}
	return go_on(ctx, row, place, err);
}

static int attach_command(struct cmd_context *ctx, struct err *err)
{
	struct run_row row;

	if (deliver_run_find(ctx, ctx->arg_count ? ctx->args[0] : NULL, &row, err) < 0)
		return -1;
	int status = attach(ctx, &row, err);
	return status < 0 ? run_name_in(ctx, &row, err) : status;
}

static const struct opt opts[] = {
	{0, "max-cost", "USD", "new cap on the run's total cost", "caps.max_cost", false},
	{0, "max-duration", "TIME", "no pod lives longer than this", "caps.max_duration", false},
	ALLOW_OPTS,
	{0, "force", NULL, "overwrite files in the output folder that burst did not make", NULL,
	 false},
	{0},
};

const struct cmd cmd_resume = {
	.name = "resume",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "continue a run whose client died or was stopped",
	.details = "Takes over pods that are still running, fetches what they finished, and "
		   "renders only the rest. A job whose text or settings have changed is not "
		   "resumed. The run keeps the flags that it was started with, including its "
		   "caps, and its cost so far counts. Without RUN: the active run of this "
		   "folder's burst.cfg, else the one whose pods may still be billing, else the "
		   "newest; for a delivery, the run that it delivers. Runs of other folders "
		   "need their id.",
	.opts = opts,
	.needs = NEED_LEDGER | TELLS_FAILURE,
	.group = CMD_GROUP_RUNS,
	.json = true,
	.run = resume_command,
	.failed = launch_failed,
};

const struct cmd cmd_attach = {
	.name = "attach",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "watch a run, or take it over if its client exited",
	.details = "While the run's client is alive, shows its log so far and its live view, and "
		   "ends with its exit status; Ctrl-C ends only the watching. A detached run "
		   "without a client is taken over with the flags that "
		   "it was started with: burst fetches its files and releases its pods. Without "
		   "RUN: a run of this folder's burst.cfg, as for `burst resume`.",
	.opts = opts,
	.needs = NEED_LEDGER | TELLS_FAILURE,
	.group = CMD_GROUP_RUNS,
	.json = true,
	.run = attach_command,
	.failed = launch_failed,
};
