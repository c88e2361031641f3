/* logs.c - `burst logs`: finds a run and prints its log. */
#include "cmd.h"

#include <stdlib.h>

#include "cmd/launch/launch.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"

/* Without a run in this folder, finds the newest of all: reading a log changes nothing. */
static int find(struct cmd_context *ctx, struct run_row *out, struct err *err)
{
	struct run_row *rows = NULL;
	struct err none = {0};
	size_t count = 0;

	if (run_find(ctx, ctx->arg_count ? ctx->args[0] : NULL, out, err) == 0)
		return 0;
	if (ctx->arg_count || err->kind != ERR_USAGE ||
	    store_runs(ctx->store, NULL, false, 1, &rows, &count, &none) < 0 || !count)
		return -1;
	*out = rows[0];
	free(rows);
	err_clear(err);
	return 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct run_row row, found;

	if (find(ctx, &row, err) < 0)
		return -1;
	found = row;
	if (!ctx->arg_count && found.stage[0] && !stage_whole(&ctx->runs, &found, &row))
		row = found;
	CLEANUP(free_text) char *path = run_path(&ctx->runs, row.id, "log");
	if (!ctx->arg_count && !ctx->quiet) {
		CLEANUP(free_text) char *place = run_place(&ctx->runs, &row);
		output_line(stderr, "run %s (%s)", row.id, place);
	}
	return run_log_show(ctx, row.id, path, err) < 0 ? run_name_in(ctx, &row, err)
							: cmd_flush(err);
}

static const struct opt opts[] = {
	{'f', "follow", NULL, "follow the log until the run ends", NULL, false},
	{0},
};

const struct cmd cmd_logs = {
	.name = "logs",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "show a run's log, including its workers",
	.details =
		"Without RUN: the active run of this folder's burst.cfg, else the one whose "
		"pods may still be billing, else the newest; where this folder has none, the "
		"newest of all. Each phase of a pod is a line: what it took, and what the pod had "
		"cost by then. The table of all phases follows.",
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
