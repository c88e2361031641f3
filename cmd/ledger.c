/* ledger.c - `burst ledger`: shows runs and pods, and what they cost. */
#include "cmd.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "cmd/launch/launch.h"
#include "cmd/show/ledger.h"
#include "runs/runs.h"

/* ---- all runs ---- */

static struct run_row *find(struct run_row *runs, size_t count, const char *id)
{
	for (size_t i = 0; *id && i < count; i++)
		if (!strcmp(runs[i].id, id))
			return &runs[i];
	return NULL;
}

/* Adds stages to the runs that they are parts of, and drops their rows. Returns how many are left.
 */
static size_t fold_stages(struct run_row *runs, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct run_row *whole = find(runs, count, runs[i].part_of);
		if (whole)
			stage_add(whole, &runs[i]);
		else
			runs[i].part_of[0] = '\0'; /* it stands by itself */
	}
	for (size_t i = 0; i < count; i++)
		if (!runs[i].part_of[0])
			runs[kept++] = runs[i];
	return kept;
}

static int list_runs(struct cmd_context *ctx, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	int64_t most = ctx->json || opt_has(ctx, "csv") ? 0 : 20;

	if (opt_int(ctx, "most", 0, 1000000, &most, err) < 0 ||
	    store_runs(ctx->store, NULL, false, 0, &runs, &count, err) < 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		result = run_so_far(&ctx->runs, &runs[i], clock_wall_ms(), err);
	count = result == 0 ? fold_stages(runs, count) : count;
	count = most ? MIN(count, (size_t)most) : count;
	if (result == 0)
		ledger_runs_print(ctx, runs, count);
	free(runs);
	return result;
}

/* ---- the command ---- */

static int check_flags(const struct cmd_context *ctx, struct err *err)
{
	bool sums = opt_has(ctx, "by"), csv = opt_has(ctx, "csv");

	if (csv && ctx->json)
		return err_set(err, ERR_USAGE, "--csv and --json cannot be used together");
	if ((sums || csv) && opt_has(ctx, "reconcile"))
		return err_set(err, ERR_USAGE, "--%s cannot be used with --reconcile",
			       sums ? "by" : "csv");
	if ((sums || csv) && ctx->arg_count)
		return err_set(err, ERR_USAGE, "--%s covers all runs: leave out %s",
			       sums ? "by" : "csv", ctx->args[0]);
	if (sums && opt_has(ctx, "most"))
		return err_set(err, ERR_USAGE, "--most lists runs and cannot be used with --by");
	return 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	const char *id = ctx->arg_count ? ctx->args[0] : NULL;

	if (check_flags(ctx, err) < 0)
		return -1;
	if (opt_has(ctx, "by"))
		return ledger_by(ctx, opt_text(ctx, "by"), err) < 0 ? -1 : cmd_flush(err);
	if (opt_has(ctx, "reconcile"))
		return opt_has(ctx, "most") ? err_set(err, ERR_USAGE,
						      "--most lists runs and cannot be used "
						      "with --reconcile")
					    : reconcile(ctx, id, err);
	int result = id ? ledger_run_print(ctx, id, err) : list_runs(ctx, err);

	return result < 0 ? -1 : cmd_flush(err);
}

static const struct opt opts[] = {
	{'n', "most", "N", "the newest N runs (default 20, with --json or --csv all; 0: all)", NULL,
	 false},
	{0, "by", "day|project|gpu|provider", "sum the time and cost of all pods by this", NULL,
	 false},
	{0, "csv", NULL, "the runs, or with --by the sums, as CSV with a header line", NULL, false},
	{0, "reconcile", NULL,
	 "ask the vendors what they billed, record it, and explain differences from burst's "
	 "count",
	 NULL, false},
	{0},
};

const struct cmd cmd_ledger = {
	.name = "ledger",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "show past runs: billed seconds beside compute seconds, and the cost",
	.details = "With RUN (any unambiguous beginning of its id): its pods, phase by "
		   "phase.\n\n`burst ledger --by day` sums pods by days of your time zone (TZ). "
		   "A pod that was billed over midnight counts for each of its days, in "
		   "proportion to its time there. A project is the folder of a config "
		   "file.\n\n`burst ledger --reconcile` asks each vendor for the bill of every "
		   "pod that was released in the last 30 days (or of RUN), until a day has "
		   "passed since its release. The vendor's figures are kept beside burst's own "
		   "and never replace them: dollars, and seconds, reported or implied by the "
		   "dollars and the pod's price. Exit status 0 also while a vendor has no "
		   "record yet; 1 if it bills more than can be explained; 3 if it refuses the "
		   "key; 6 if it cannot be reached.",
	.opts = opts,
	.json = true,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
