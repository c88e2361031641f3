/* cancel.c - `burst cancel`: asks the client of a run to stop, or releases its pods if it has no
 * client. */
#include <stdlib.h>

#include "cmd/launch/launch.h"
#include "cmd/show/output.h"
#include "engine/pooled.h"

static bool has_ended(const struct run_row *run)
{
	return run->status != RUN_RUNNING && run->status != RUN_UNRELEASED;
}

/* Stops the run's client and releases the run's pods. without_pods: what to print if it has none.
 * Returns -1 if the client does not stop, the ledger cannot be read, or a pod could not be
 * confirmed gone. */
static int cancel_run(struct cmd_context *ctx, struct run_row *row, const char *without_pods,
		      struct err *err)
{
	CLEANUP(free_text) char *place = run_place(row);
	size_t count = 0;

	if (run_open_pods(&ctx->runs, row->id, &count, err) < 0)
		return -1;
	if ((count || !has_ended(row)) && run_is_alive(&ctx->runs, row->id)) {
		if (holder_stop_and_wait(ctx, row->id, place, err) < 0 ||
		    store_run(ctx->store, row->id, row, err) < 0 ||
		    run_open_pods(&ctx->runs, row->id, &count, err) < 0)
			return -1;
	}
	if (!count) {
		if (row->status == RUN_RUNNING) {
			run_set_ended(row, RUN_INTERRUPTED);
			/* if that fails, the next command settles it as one whose client died */
			store_put_run(ctx->store, row, NULL);
		}
		output_line(stderr, "run %s: %s; %s (%s)", row->id, run_status_word(row->status),
			    without_pods, place);
		return 0;
	}
	if (run_release(&ctx->runs, row, RUN_INTERRUPTED, err) < 0)
		return -1;
	output_line(stderr, "run %s: its %zu pod%s gone (%s)", row->id, count,
		    count == 1 ? " is" : "s are", place);
	return 0;
}

/* Prints which pods `burst keep` holds for the next run. They belong to no job, so cancelling a run
 * leaves them, and they bill. */
static int tell_of_kept_pods(struct cmd_context *ctx, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0, pods;
	int rc = store_runs(ctx->store, NULL, true, 0, &runs, &count, err);

	for (size_t i = 0; i < count && rc == 0; i++) {
		if (strcmp(runs[i].type, KEEP_RUN) != 0)
			continue;
		pods = 0;
		rc = run_open_pods(&ctx->runs, runs[i].id, &pods, err);
		if (pods)
			output_line(stderr,
				    "run %s keeps %zu pod%s for the next run, and %s: `burst "
				    "cancel %s` releases %s now",
				    runs[i].id, pods, pods == 1 ? "" : "s",
				    pods == 1 ? "it bills" : "they bill", runs[i].id,
				    pods == 1 ? "it" : "them");
	}
	free(runs);
	return rc;
}

/* Cancels the run, then its newest stage. A client that stops also ends its stage; if the client
 * was killed, the stage is a run that continues or has left a pod. */
static int cancel_command(struct cmd_context *ctx, struct err *err)
{
	struct run_row row, stage;
	struct err second;

	if (run_find(ctx, ctx->arg_count ? ctx->args[0] : NULL, &row, err) < 0)
		return -1;
	bool stage_continues =
		stage_newest_of(&ctx->runs, &row, &stage, &second) > 0 && !has_ended(&stage);
	int status = cancel_run(ctx, &row,
				stage_continues ? "ending its stage now" : "all pods gone", err);
	struct err *stage_err = status < 0 ? &second : err; /* report the first error */
	/* a stage may have begun or ended meanwhile */
	int stage_status = stage_newest_of(&ctx->runs, &row, &stage, stage_err);
	if (stage_status > 0 && !has_ended(&stage))
		stage_status = cancel_run(ctx, &stage, "all pods gone", stage_err);
	if (stage_status < 0 || status < 0)
		return run_add_place(&row, err);
	return tell_of_kept_pods(ctx, err);
}

const struct cmd cmd_cancel = {
	.name = "cancel",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "stop a run and release its pods",
	.details = "Without RUN: the active run of this folder's burst.cfg, else the one whose "
		   "pods may still be billing, else the newest. Runs of other folders need their "
		   "id. Cancelling a run also ends its stages. Exit status 0: all its pods are "
		   "gone. 9: a pod could not be confirmed gone.",
	.needs = NEED_LEDGER | NEED_ACCOUNTS,
	.group = CMD_GROUP_RUNS,
	.run = cancel_command,
};
