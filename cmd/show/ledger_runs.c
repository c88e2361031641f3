/* ledger_runs.c - prints the list of runs of `burst ledger`. */
#include "ledger_runs.h"

#include "base/clock.h"
#include "cmd/cmd.h"
#include "output.h"
#include "report.h"
#include "runs/runs.h"
#include "table.h"

static json_t *run_json(const struct run_row *run)
{
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:{s:I, s:I, s:I, s:I}, "
		"s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o}",
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
		"cost_counted_usd", report_dollars(run->counted_microusd), "cost_vendor_usd",
		report_vendor_dollars(run), "exit_status", run->exit_status, "error",
		run->error[0] ? report_text(run->error) : json_null());
}

void ledger_runs_json(const struct run_row *runs, size_t count)
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

bool ledger_has_no_client(const struct cmd_context *ctx, const struct run_row *run)
{
	return run->status == RUN_RUNNING && !run->detached && !run_is_alive(&ctx->runs, run->id);
}

void ledger_runs_print(const struct cmd_context *ctx, const struct run_row *runs, size_t count)
{
	CLEANUP(table_free) struct table *t = table_new();
	char text[32];
	bool more = false;

	for (size_t i = 0; i < count; i++)
		more = more || runs[i].cost_microusd > runs[i].counted_microusd;
	table_column(t, "RUN", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "JOB", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "STARTED (UTC)", TABLE_LEFT, 4);
	table_column(t, "STATUS", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "DONE", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "BILLED", TABLE_RIGHT, 1);
	table_column(t, "COMPUTE", TABLE_RIGHT, 2);
	table_column(t, "USED", TABLE_RIGHT, 3);
	table_column(t, "COST", TABLE_RIGHT, TABLE_WHOLE);
	if (more) /* some vendor bills more than burst counted */
		table_column(t, "COUNTED", TABLE_RIGHT, 5);
	for (size_t i = 0; i < count; i++) {
		const struct run_row *run = &runs[i];
		table_cell(t, "%s", run->id);
		table_cell(t, "%s", run->job);
		time_cell(t, run->started_ms);
		table_cell(t, "%s",
			   ledger_has_no_client(ctx, run) ? "no client"
							  : run_status_word(run->status));
		table_cell(t, "%lld/%lld", (long long)(run->rendered + run->cached),
			   (long long)run->total);
		table_cell(t, "%s", duration_show(text, sizeof(text), run->billed_ms));
		table_cell(t, "%s", duration_show(text, sizeof(text), run->compute_ms));
		table_cell(t, "%s",
			   report_ratio(text, sizeof(text), run->compute_ms, run->billed_ms));
		table_cell(t, "%s", money_show(text, sizeof(text), run->cost_microusd));
		if (more)
			table_cell(t, "%s", money_show(text, sizeof(text), run->counted_microusd));
	}
	table_print(t, stdout, terminal_width(stdout));
}
