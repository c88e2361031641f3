/* attach.c - `burst attach` watches a run until its client ends, or takes it over; `burst resume`
 * continues a run whose client has died or was stopped. */
#include "base/clock.h"
#include "cmd/launch/launch.h"
#include "cmd/launch/stages.h"
#include "cmd/show/view.h"
#include "cmd/show/output.h"

/* Reports that the watched client died: its pods have no client now. Returns the exit status. */
static int report_dead_client(struct cmd_context *ctx, struct run_row *row, struct err *err)
{
	struct err why = {0};
	size_t count;

	if (run_sum_so_far(&ctx->runs, row, clock_wall_ms(), err) < 0 ||
	    run_open_pods(&ctx->runs, row->id, &count, err) < 0)
		return -1;
	if (count)
		err_set(&why, ERR_UNRELEASED,
			"run %s: its client died; %zu pod%s may still be billing: `burst resume "
			"%s` continues it, `burst reap` releases its pods",
			row->id, count, count == 1 ? "" : "s", row->id);
	else
		err_set(&why, ERR_JOB,
			"run %s: its client died; no pods are billing; `burst resume %s` continues "
			"it",
			row->id, row->id);
	run_add_place(row, &why);
	output_error(ctx, &why);
	/* the status for the exit status only; the ledger keeps its own */
	row->status = count ? RUN_UNRELEASED : RUN_INTERRUPTED;
	COPY_TEXT(row->error_code, err_kind_name(why.kind));
	COPY_TEXT(row->error, why.msg);
	return launch_print_end(ctx, row, err_exit_status(&why), err);
}

/* Watches until the client ends, and returns its exit status. */
static int watch_client(struct cmd_context *ctx, struct run_row *row, const char *place,
			struct err *err)
{
	if (!ctx->quiet)
		output_line(stderr, "run %s: attached (%s)", row->id, place);
	follow_run(ctx, row);
	if (store_run(ctx->store, row->id, row, err) < 0)
		return -1;
	if (row->status == RUN_RUNNING)
		return report_dead_client(ctx, row, err);
	CLEANUP(free_text) char *files = launch_files_in(row);
	output_line(stderr, "run %s: %s (%s)%s", row->id, run_status_word(row->status), place,
		    files);
	return launch_print_end(ctx, row, row->exit_status, err);
}

/* Watches the run's client, reports a run that has ended, or takes over a run without a client.
 * Returns the exit status, or -1. */
static int attach(struct cmd_context *ctx, struct run_row *row, struct err *err)
{
	CLEANUP(free_text) char *place = run_place(row);

	if (run_is_alive(&ctx->runs, row->id) &&
	    (opt_has(ctx, "max-cost") || opt_has(ctx, "max-duration")))
		return err_set(err, ERR_USAGE,
			       "run %s has a client, whose caps cannot change: `burst cancel %s` "
			       "ends it, then `burst resume %s` takes new ones",
			       row->id, row->id, row->id);
	if (run_is_alive(&ctx->runs, row->id))
		return watch_client(ctx, row, place, err);
	if (row->status != RUN_RUNNING) {
		CLEANUP(free_text) char *files = launch_files_in(row);
		output_line(stderr, "run %s has ended: %s (%s)%s", row->id,
			    run_status_word(row->status), place, files);
		return launch_print_end(ctx, row, row->exit_status, err);
	}
	return launch_continue(ctx, row, place, err);
}

static int attach_command(struct cmd_context *ctx, struct err *err)
{
	struct run_row row;

	if (stage_find_run(ctx, ctx->arg_count ? ctx->args[0] : NULL, &row, err) < 0)
		return -1;
	int status = attach(ctx, &row, err);
	return status < 0 ? run_add_place(&row, err) : status;
}

const struct cmd cmd_attach = {
	.name = "attach",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "watch a run, or take it over if its client exited",
	.details = "While the run's client is alive, shows its log so far and its live view, and "
		   "ends with its exit status; Ctrl-C ends only the watching. A detached run "
		   "without a client is taken over with the flags that it was started with: burst "
		   "fetches its files and releases its pods. Without RUN: a run of this folder's "
		   "burst.cfg, as for `burst resume`.",
	.opts = launch_resume_opts,
	.needs = NEED_LEDGER | NOTIFIES_FAILURE,
	.group = CMD_GROUP_RUNS,
	.json = true,
	.run = attach_command,
	.failed = launch_failed,
};

/* ---- burst resume ---- */

static int resume(struct cmd_context *ctx, const struct run_row *row, struct err *err)
{
	CLEANUP(free_text) char *place = run_place(row);

	if (run_is_alive(&ctx->runs, row->id))
		return err_set(err, ERR_BUSY, "run %s is already running (see `burst attach %s`)",
			       row->id, row->id);
	if (row->status == RUN_DONE) {
		output_line(stderr, "run %s is already done (%s)", row->id, place);
		return launch_print_end(ctx, row, 0, err);
	}
	return launch_continue(ctx, row, place, err);
}

static int resume_command(struct cmd_context *ctx, struct err *err)
{
	struct run_row row;

	if (stage_find_run(ctx, ctx->arg_count ? ctx->args[0] : NULL, &row, err) < 0)
		return -1;
	int status = resume(ctx, &row, err);
	return status < 0 ? run_add_place(&row, err) : status;
}

const struct cmd cmd_resume = {
	.name = "resume",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "continue a run whose client died or was stopped",
	.details = "Takes over pods that are still running, fetches what they finished, and "
		   "renders only the rest. A job whose text or settings have changed is not "
		   "resumed. The run keeps the flags that it was started with, including its caps, "
		   "and what it decided: pods, GPUs, goal and deadline. Its cost so far counts. "
		   "Without RUN: the active run of this folder's burst.cfg, else the one whose "
		   "pods may still be billing, else the newest; for a stage, the run that it is a "
		   "part of. Runs of other folders need their id.",
	.opts = launch_resume_opts,
	.needs = NEED_LEDGER | NOTIFIES_FAILURE,
	.group = CMD_GROUP_RUNS,
	.json = true,
	.run = resume_command,
	.failed = launch_failed,
};
