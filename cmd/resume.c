/* resume.c - `burst resume`: continues a run whose client has died or was stopped. */
#include "cmd/launch/stages.h"
#include "cmd/launch/launch.h"
#include "cmd/show/output.h"

static int resume(struct cmd_context *ctx, const struct run_row *row, struct err *err)
{
	CLEANUP(free_text) char *place = run_place(&ctx->runs, row);

	if (run_is_alive(&ctx->runs, row->id))
		return err_set(err, ERR_BUSY, "run %s is already running (see `burst attach %s`)",
			       row->id, row->id);
	if (row->status == RUN_DONE) {
		output_line(stderr, "run %s is already done (%s)", row->id, place);
		return launch_tell_end(ctx, row, 0, err);
	}
	return launch_continue(ctx, row, place, err);
}

static int resume_command(struct cmd_context *ctx, struct err *err)
{
	struct run_row row;

	if (stage_find_run(ctx, ctx->arg_count ? ctx->args[0] : NULL, &row, err) < 0)
		return -1;
	int status = resume(ctx, &row, err);
	return status < 0 ? run_name_in(ctx, &row, err) : status;
}

const struct cmd cmd_resume = {
	.name = "resume",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "continue a run whose client died or was stopped",
	.details = "Takes over pods that are still running, fetches what they finished, and "
		   "renders only the rest. A job whose text or settings have changed is not "
		   "resumed. The run keeps the flags that it was started with, including its "
		   "caps, and what it decided: pods, GPUs, goal and deadline. Its cost so far "
		   "counts. Without RUN: the active run of this "
		   "folder's burst.cfg, else the one whose pods may still be billing, else the "
		   "newest; for a stage, the run that it is a part of. Runs of other folders "
		   "need their id.",
	.opts = launch_resume_opts,
	.needs = NEED_LEDGER | NOTIFIES_FAILURE,
	.group = CMD_GROUP_RUNS,
	.json = true,
	.run = resume_command,
	.failed = launch_failed,
};
