/* ledger_by.c - sums the ledger by day, project, GPU or provider, as a table, JSON or CSV. */
#include "ledger_by.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "output.h"
#include "report.h"
#include "runs/spend.h"
#include "table.h"

/* ---- CSV (RFC 4180, but lines end with a newline alone) ---- */

/* Printable text, quoted if it has a comma or a quote. */
static void csv_text(struct str *to, const char *text)
{
	CLEANUP(str_free) struct str safe = STR_INIT;

	str_add_printable(&safe, text, strlen(text), 0);
	if (!strpbrk(str_text(&safe), ",\"")) {
		str_add(to, str_text(&safe));
		return;
	}
	str_addc(to, '"');
	for (const char *p = str_text(&safe); *p; p++) {
		if (*p == '"')
			str_addc(to, '"');
		str_addc(to, *p);
	}
	str_addc(to, '"');
}

static void csv_time(struct str *to, int64_t wall_ms)
{
	char text[32];

	str_addc(to, ',');
	if (wall_ms > 0)
		str_add(to, clock_rfc3339(text, sizeof(text), wall_ms));
}

static void csv_spent(struct str *to, int64_t billed_ms, int64_t compute_ms, int64_t wasted_ms,
		      int64_t cost_microusd)
{
	str_addf(to, ",%.3f,%.3f,%.3f,%.6f", (double)billed_ms / 1000, (double)compute_ms / 1000,
		 (double)wasted_ms / 1000, (double)cost_microusd / 1e6);
}

void ledger_runs_csv(const struct run_row *runs, size_t count)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	str_add(&text, "run,job,type,status,started_at,ended_at,total,rendered,cached,failed,"
		       "billed_seconds,compute_seconds,wasted_seconds,"
		       "cost_usd,exit_status,config,cost_counted_usd\n");
	for (size_t i = 0; i < count; i++) {
		const struct run_row *run = &runs[i];
		const char *const words[] = {run->id, run->job, run->type,
					     run_status_word(run->status)};
		for (size_t k = 0; k < ARRAY_LEN(words); k++) {
			if (k)
				str_addc(&text, ',');
			csv_text(&text, words[k]);
		}
		csv_time(&text, run->started_ms);
		csv_time(&text, run->ended_ms);
		str_addf(&text, ",%lld,%lld,%lld,%lld", (long long)run->total,
			 (long long)run->rendered, (long long)run->cached, (long long)run->failed);
		csv_spent(&text, run->billed_ms, run->compute_ms, run->wasted_ms,
			  run->cost_microusd);
		str_addf(&text, ",%d,", run->exit_status);
		csv_text(&text, run->config);
		str_addf(&text, ",%.6f\n", (double)run->counted_microusd / 1e6);
	}
	output_lines(stdout, str_text(&text));
}

/* ---- sums ---- */

static void print_csv(const char *word, const struct spend_row *rows, size_t count)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	str_addf(&text,
		 "%s,runs,pods,billed_seconds,compute_seconds,wasted_seconds,cost_usd,"
		 "cost_counted_usd\n",
		 word);
	for (size_t i = 0; i < count; i++) {
		csv_text(&text, rows[i].key);
		str_addf(&text, ",%lld,%lld", (long long)rows[i].runs, (long long)rows[i].pods);
		csv_spent(&text, rows[i].billed_ms, rows[i].compute_ms, rows[i].wasted_ms,
			  rows[i].cost_microusd);
		str_addf(&text, ",%.6f\n", (double)rows[i].counted_microusd / 1e6);
	}
	output_lines(stdout, str_text(&text));
}

static void print_json(const char *word, const struct spend_row *rows, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(
			list, json_pack("{s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", word,
					report_text(rows[i].key), "runs", (json_int_t)rows[i].runs,
					"pods", (json_int_t)rows[i].pods, "billed_seconds",
					report_seconds(rows[i].billed_ms), "compute_seconds",
					report_seconds(rows[i].compute_ms), "wasted_seconds",
					report_seconds(rows[i].wasted_ms), "cost_usd",
					report_dollars(rows[i].cost_microusd), "cost_counted_usd",
					report_dollars(rows[i].counted_microusd)));
	output_json(list);
}

static void print_table(const char *word, const struct spend_row *rows, size_t count)
{
	CLEANUP(table_free) struct table *t = table_new();
	char title[16] = "", text[32];
	bool more = false;

	for (size_t i = 0; i < count; i++)
		more = more || rows[i].cost_microusd > rows[i].counted_microusd;
	for (size_t i = 0; word[i] && i + 1 < sizeof(title); i++)
		title[i] = (char)toupper((unsigned char)word[i]);
	table_column(t, title, TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "RUNS", TABLE_RIGHT, 3);
	table_column(t, "PODS", TABLE_RIGHT, 4);
	table_column(t, "BILLED", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "COMPUTE", TABLE_RIGHT, 1);
	table_column(t, "USED", TABLE_RIGHT, 2);
	table_column(t, "COST", TABLE_RIGHT, TABLE_WHOLE);
	if (more)
		table_column(t, "COUNTED", TABLE_RIGHT, 5);
	for (size_t i = 0; i < count; i++) {
		table_cell(t, "%s", rows[i].key);
		table_cell(t, "%lld", (long long)rows[i].runs);
		table_cell(t, "%lld", (long long)rows[i].pods);
		table_cell(t, "%s", duration_show(text, sizeof(text), rows[i].billed_ms));
		table_cell(t, "%s", duration_show(text, sizeof(text), rows[i].compute_ms));
		table_cell(t, "%s",
			   report_ratio(text, sizeof(text), rows[i].compute_ms, rows[i].billed_ms));
		table_cell(t, "%s", money_show(text, sizeof(text), rows[i].cost_microusd));
		if (more)
			table_cell(t, "%s",
				   money_show(text, sizeof(text), rows[i].counted_microusd));
	}
	table_print(t, stdout, terminal_width(stdout));
	if (!count)
		log_line(LOG_NOTE, "no pod has been billed yet");
}

int ledger_by(struct cmd_context *ctx, const char *word, bool csv, struct err *err)
{
	struct run_row *runs = NULL;
	struct pod_row *pods = NULL;
	size_t run_count = 0, pod_count = 0, count = 0;
	enum spend_by by;

	if (!spend_by_named(word, &by))
		return err_set(err, ERR_USAGE, "--by %s: expected day, project, gpu or provider",
			       word);
	int result = store_runs(ctx->store, NULL, false, 0, &runs, &run_count, err);
	if (result == 0)
		result = store_pods(ctx->store, NULL, false, &pods, &pod_count, err);
	if (result == 0) {
		struct spend_row *rows =
			spend_sum(by, runs, run_count, pods, pod_count, clock_wall_ms(), &count);
		if (csv)
			print_csv(word, rows, count);
		else if (ctx->json)
			print_json(word, rows, count);
		else
			print_table(word, rows, count);
		free(rows);
	}
	free(pods);
	free(runs);
	return result;
}
