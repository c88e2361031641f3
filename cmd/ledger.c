/* ledger.c - `burst ledger`: shows runs and pods, and what they cost. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd.h"
#include "cmd/launch/reconcile.h"
#include "cmd/show/advice.h"
#include "cmd/show/ledger_by.h"
#include "cmd/show/output.h"
#include "cmd/show/planned.h"
#include "cmd/show/report.h"
#include "cmd/show/table.h"
#include "jobs/calibrate/calibrate.h"
#include "cmd/launch/keep_pool.h"
#include "cmd/show/ledger_by.h"
#include "runs/bill.h"
#include "runs/runs.h"

/* ---- all runs ---- */

static json_t *run_json(const struct run_row *run)
{
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:{s:I, s:I, s:I, s:I}, "
		"s:o, s:o, s:o, s:o, s:i, s:o}",
		"run", report_text(run->id), "job", report_text(run->job), "type",
		report_text(run->type), "status", json_string(run_status_word(run->status)),
		"config", report_text(run->config), "output", report_text(run->output), "commit",
		run->commit_id[0] ? report_text(run->commit_id) : json_null(), "detached",
		run->detached, "started_at", report_time(run->started_ms), "ended_at",
		report_time(run->ended_ms), "segments", "total", (json_int_t)run->total, "rendered",
		(json_int_t)run->rendered, "cached", (json_int_t)run->cached, "failed",
		(json_int_t)run->failed, "billed_seconds", report_seconds(run->billed_ms),
		"compute_seconds", report_seconds(run->compute_ms), "wasted_seconds",
		report_seconds(run->wasted_ms), "cost_usd", report_dollars(run->cost_microusd),
		"exit_status", run->exit_status, "error",
		run->error[0] ? report_text(run->error) : json_null());
}

static void print_json(const struct run_row *runs, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, run_json(&runs[i]));
	output_json(list);
}

static void time_cell(struct table *t, int64_t wall_ms)
{
	char text[32];

	clock_rfc3339(text, sizeof(text), wall_ms);
	text[10] = ' ';
	table_cell(t, "%.16s", text);
}

/* Its client died: its pods have no client and bill until their leases end. */
static bool has_no_client(const struct cmd_context *ctx, const struct run_row *run)
{
	return run->status == RUN_RUNNING && !run->detached && !run_is_alive(&ctx->runs, run->id);
}

static void print_table(const struct cmd_context *ctx, const struct run_row *runs, size_t count)
{
	CLEANUP(table_free) struct table *t = table_new();
	char text[32];

	table_column(t, "RUN", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "JOB", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "STARTED (UTC)", TABLE_LEFT, 4);
	table_column(t, "STATUS", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "DONE", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "BILLED", TABLE_RIGHT, 1);
	table_column(t, "COMPUTE", TABLE_RIGHT, 2);
	table_column(t, "USED", TABLE_RIGHT, 3);
	table_column(t, "COST", TABLE_RIGHT, TABLE_WHOLE);
	for (size_t i = 0; i < count; i++) {
		const struct run_row *run = &runs[i];
		table_cell(t, "%s", run->id);
		table_cell(t, "%s", run->job);
		time_cell(t, run->started_ms);
		table_cell(t, "%s",
			   has_no_client(ctx, run) ? "no client" : run_status_word(run->status));
		table_cell(t, "%lld/%lld", (long long)(run->rendered + run->cached),
			   (long long)run->total);
		table_cell(t, "%s", duration_show(text, sizeof(text), run->billed_ms));
		table_cell(t, "%s", duration_show(text, sizeof(text), run->compute_ms));
		table_cell(t, "%s",
			   report_ratio(text, sizeof(text), run->compute_ms, run->billed_ms));
		table_cell(t, "%s", money_show(text, sizeof(text), run->cost_microusd));
	}
	table_print(t, stdout, terminal_width(stdout));
}

static int list_runs(struct cmd_context *ctx, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	bool csv = opt_has(ctx, "csv");
	int64_t most = ctx->json || csv ? 0 : 20;

	if (opt_int(ctx, "most", 0, 1000000, &most, err) < 0 ||
	    store_runs(ctx->store, NULL, false, (size_t)most, &runs, &count, err) < 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		result = run_so_far(&ctx->runs, &runs[i], clock_wall_ms(), err);
	if (result == 0 && csv)
		ledger_runs_csv(runs, count);
	else if (result == 0 && ctx->json)
		print_json(runs, count);
	else if (result == 0)
		print_table(ctx, runs, count);
	if (result == 0 && !count && !ctx->json && !csv)
		log_line(LOG_NOTE, "no run yet");
	free(runs);
	return result;
}

/* ---- one run ---- */

static void print_line(const char *label, const char *text)
{
	printf("%-10s", label);
	output_safe_line(stdout, text, strlen(text));
}

static void print_run(const struct cmd_context *ctx, const struct run_row *run)
{
	char text[400], billed[32], compute[32], wasted[32], ratio[32], cost[32];

	print_line("run", run->id);
	print_line("job", run->job);
	print_line("config", run->config);
	print_line("output", run->output);
	if (run->commit_id[0])
		print_line("commit", run->commit_id);
	if (has_no_client(ctx, run))
		snprintf(text, sizeof(text),
			 "running, but its client exited: `burst resume %s` continues it, "
			 "`burst reap` releases its pods",
			 run->id);
	else if (run->status == RUN_RUNNING)
		snprintf(text, sizeof(text), "running%s", run->detached ? ", detached" : "");
	else
		snprintf(text, sizeof(text), "%s (exit status %d)%s", run_status_word(run->status),
			 run->exit_status, run->detached ? ", detached" : "");
	print_line("status", text);
	if (run->error[0])
		print_line("error", run->error);
	print_line("started", clock_rfc3339(text, sizeof(text), run->started_ms));
	if (run->ended_ms > 0)
		print_line("ended", clock_rfc3339(text, sizeof(text), run->ended_ms));
	printf("%-10s%lld: %lld rendered, %lld cached, %lld failed\n", "segments",
	       (long long)run->total, (long long)run->rendered, (long long)run->cached,
	       (long long)run->failed);
	printf("%-10s%s billed, %s compute (%s), %s wasted, %s\n", "spent",
	       duration_show(billed, sizeof(billed), run->billed_ms),
	       duration_show(compute, sizeof(compute), run->compute_ms),
	       report_ratio(ratio, sizeof(ratio), run->compute_ms, run->billed_ms),
	       duration_show(wasted, sizeof(wasted), run->wasted_ms),
	       money_show(cost, sizeof(cost), run->cost_microusd));
	planned_say_replans(stdout, run);
}

/* What it took with the delivery of what it rendered. */
static int print_with_delivery(struct cmd_context *ctx, const struct run_row *run, int64_t now,
			       struct err *err)
{
	struct delivery_total total;
	char billed[32], compute[32], cost[32];

	if (delivery_total(&ctx->runs, run, now, &total, err) < 0)
		return -1;
	if (!total.deliveries)
		return 0;
	printf("%-10s", "delivery");
	output_line(stdout, "%s%s", total.newest,
		    total.deliveries > 1 ? ", the newest of several" : "");
	printf("%-10s%s billed, %s compute, %s with its deliver%s\n", "total",
	       duration_show(billed, sizeof(billed), total.billed_ms),
	       duration_show(compute, sizeof(compute), total.compute_ms),
	       money_show(cost, sizeof(cost), total.cost_microusd),
	       total.deliveries > 1 ? "ies" : "y");
	return 0;
}

/* What the vendors said so far. */
static void print_vendors(const struct pod_row *pods, size_t count)
{
	int64_t ms = 0, ours_ms = 0, cost = 0, ours = 0;
	char text[32], ours_text[32], money[32], ours_money[32];
	size_t known = 0;

	for (size_t i = 0; i < count; i++) {
		if (!bill_is_known(&pods[i]))
			continue;
		known++;
		ms += pods[i].billed_vendor_ms;
		ours_ms += pods[i].billed_ms;
		cost += pods[i].cost_vendor_microusd;
		ours += pods[i].cost_microusd;
	}
	if (known)
		printf("%-10s%s billed, %s for %zu pod%s that burst counts as %s, %s (see "
		       "--reconcile)\n",
		       "vendor", duration_show(text, sizeof(text), ms),
		       money_show(money, sizeof(money), cost), known, known == 1 ? "" : "s",
		       duration_show(ours_text, sizeof(ours_text), ours_ms),
		       money_show(ours_money, sizeof(ours_money), ours));
}

static void print_advice(struct store *store, const struct run_row *run, const struct pod_row *pods,
			 size_t count, int64_t now)
{
	CLEANUP(str_free) struct str advice = STR_INIT, seats = STR_INIT;
	struct advice_batches batches;

	advice_batches_of(&batches, store, run->id);
	if (run->cost_microusd > 0 && strcmp(run->type, CALIBRATE) != 0 &&
	    strcmp(run->type, KEEP_RUN) != 0)
		advice_add(&advice, pods, count, &batches, now);
	advice_add_seats(&seats, pods, count, &batches, now);
	if (seats.len)
		printf("%s", str_text(&seats));
	if (advice.len)
		printf("\n%s", str_text(&advice));
}

/* What its GPUs did while workers rendered. */
static void print_gpu_use(const struct pod_row *pods, size_t count)
{
	bool any = false;
	char text[200];

	for (size_t i = 0; i < count; i++) {
		const struct pod_row *p = &pods[i];
		if (!p->gpu_samples)
			continue;
		if (!any)
			putchar('\n');
		any = true;
		snprintf(text, sizeof(text),
			 "%s of pod %s: %d%% busy (median), %d%% (95th percentile) in %d samples; "
			 "%lld MiB of memory at most",
			 p->gpu, pod_row_called(p), p->gpu_busy_p50, p->gpu_busy_p95,
			 p->gpu_samples, (long long)p->gpu_memory_peak_mib);
		print_line("gpu", text);
	}
}

static int one_run(struct cmd_context *ctx, const char *id, struct err *err)
{
	int64_t now = clock_wall_ms();
	struct pod_row *pods = NULL;
	struct run_row run;
	size_t count = 0;

	if (named_run(ctx->store, id, &run, err) < 0 ||
	    run_so_far(&ctx->runs, &run, now, err) < 0 ||
	    store_pods(ctx->store, run.id, false, &pods, &count, err) < 0)
		return -1;
	if (ctx->json) {
		output_json(report_run_json(&run, pods, count, now));
	} else {
		print_run(ctx, &run);
		if (print_with_delivery(ctx, &run, now, err) < 0) {
			free(pods);
			return -1;
		}
		print_vendors(pods, count);
		if (count)
			putchar('\n');
		report_print_phases(stdout, pods, count, now);
		print_gpu_use(pods, count);
		print_advice(ctx->store, &run, pods, count, now);
	}
	free(pods);
	return 0;
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
		return ledger_by(ctx, opt_text(ctx, "by"), opt_has(ctx, "csv"), err) < 0
			       ? -1
			       : cmd_flush(err);
	if (opt_has(ctx, "reconcile"))
		return opt_has(ctx, "most") ? err_set(err, ERR_USAGE,
						      "--most lists runs and cannot be used "
						      "with --reconcile")
					    : reconcile(ctx, id, err);
	int result = id ? one_run(ctx, id, err) : list_runs(ctx, err);

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
