/* fetch.c - `burst fetch`: copies the outputs of an ended run from its volume. */
#include "cmd/launch/launch.h"
#include "cmd/show/output.h"
#include "jobs/command/command.h"

/* Copies the run's outputs from its volume and prints the counts. Returns 1 if a finished file was
 * not fetched, -1 with *err if nothing could be. */
static int fetch_and_report(struct launch *l, struct err *err)
{
	struct gather_end end = {.notes = STR_INIT};
	size_t count = 0, open;
	int status = run_gather(&l->run, &end, err);

	l->run.setup.job_ops->segments(l->run.setup.job, &count);
	if (status == 0) {
		open = run_open_segments(&l->run);
		bool has_files = end.fetched || open < count;
		output_lines(stderr, str_text(&end.notes));
		output_line(stderr,
			    "run %s: %zu file%s fetched, %zu of %zu segments still open%s%s",
			    l->run.row.id, end.fetched, end.fetched == 1 ? "" : "s", open, count,
			    has_files ? "; files in " : "", has_files ? l->run.output_dir : "");
	}
	str_free(&end.notes);
	return status < 0 ? -1 : end.failed > 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct launch l;
	struct run_row row;

	if (run_find(ctx, ctx->args[0], &row, err) < 0)
		return -1;
	if (run_is_alive(&ctx->runs, row.id))
		return err_set(
			err, ERR_BUSY,
			"run %s is active and fetches its files itself (see `burst attach %s`)",
			row.id, row.id);
	if (launch_open_config_of(ctx, &row, err) < 0)
		return -1;
	/* outputs of a command may overwrite files: job_ops.gives_way protects those of others */
	if (!strcmp(row.type, job_command.type))
		ctx->overwrite = true;
	launch_init(&l, ctx);
	int status = launch_load_job(&l, err);
	l.run.row = row;
	if (status == 0)
		status = fetch_and_report(&l, err);
	launch_free(&l);
	return status;
}

const struct cmd cmd_fetch = {
	.name = "fetch",
	.args = "RUN",
	.min_args = 1,
	.max_args = 1,
	.summary = "fetch what a run's pods left on their volume",
	.details = "Rents and renders nothing. Files are verified as in a run. Of speech, those "
		   "whose text has changed since are skipped; of a command, every output that it "
		   "had finished comes, and no file is overwritten that another run or you made. "
		   "Exit status 1: a finished file was not fetched.",
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
