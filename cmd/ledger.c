/* ledger.c - `burst ledger`: shows runs and pods, and what they cost. */
#include "cmd.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/str.h"
#include "cmd/launch/launch.h"
#include "cmd/show/ledger.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "engine/pooled.h"
#include "jobs/excerpt/excerpt.h"
#include "plan/spread.h"
#include "runs/bill.h"
#include "runs/caps.h"
#include "runs/choice.h"
#include "runs/runs.h"
#include "store/pod_cost.h"

/* ---- the list of runs ---- */

/* Whether the run's client died, so that the run's pods bill until their leases end. */
static bool ledger_has_no_client(const struct cmd_context *ctx, const struct run_row *run)
{
	return run->status == RUN_RUNNING && !run->detached && !run_is_alive(&ctx->runs, run->id);
}

static void print_csv(const struct run_row *runs, size_t count)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	columns_csv(&text, &of_runs, RUN_CSV, NULL);
	for (size_t i = 0; i < count; i++) {
		struct run_facts f = run_facts_of(&runs[i]);
		columns_csv(&text, &of_runs, RUN_CSV, &f);
	}
	output_lines(stdout, str_text(&text));
}

static void print_runs(const struct cmd_context *ctx, const struct run_row *runs, size_t count)
{
	unsigned sets = RUN_TABLE;

	if (opt_has(ctx, "csv")) {
		print_csv(runs, count);
		return;
	}
	for (size_t i = 0; i < count; i++)
		if (runs[i].cost_microusd > runs[i].counted_microusd)
			sets |= RUN_MORE; /* some vendor bills more than burst counted */
	struct rows rows = rows_begin(ctx->json, &of_runs, sets, RUN_OBJECT);
	for (size_t i = 0; i < count; i++) {
		struct run_facts f = run_facts_of(&runs[i]);
		if (!ctx->json && ledger_has_no_client(ctx, &runs[i]))
			f.status_or_client = "no client";
		rows_add(&rows, &f);
	}
	rows_end(&rows);
	if (!count && !ctx->json)
		log_line(LOG_NOTE, "no run yet");
}

/* ---- one run in full ---- */

static void print_field(const char *label, const char *fmt, ...) PRINTF(2, 3);
static void print_field(const char *label, const char *fmt, ...)
{
	char text[1200];
	va_list ap;

	va_start(ap, fmt);
	vformat_text(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("%-10s", label);
	output_safe_line(stdout, text, strlen(text));
}

static void print_run_status(const struct cmd_context *ctx, const struct run_row *run)
{
	const char *detached = run->detached ? ", detached" : "";

	if (ledger_has_no_client(ctx, run))
		print_field("status",
			    "running, but its client exited: `burst resume %s` continues it, "
			    "`burst reap` releases its pods",
			    run->id);
	else if (run->status == RUN_RUNNING)
		print_field("status", "running%s", detached);
	else
		print_field("status", "%s (exit status %d)%s", run_status_word(run->status),
			    run->exit_status, detached);
}

static void print_run(const struct cmd_context *ctx, const struct run_row *run)
{
	char at[32], billed[32], compute[32], wasted[32], ratio[32], cost[40], counted[32];
	bool more = run->cost_microusd > run->counted_microusd;

	print_field("run", "%s", run->id);
	print_field("job", "%s", run->job);
	print_field("config", "%s", run->config);
	print_field("output", "%s", run->output);
	if (run->commit_id[0])
		print_field("commit", "%s", run->commit_id);
	print_run_status(ctx, run);
	if (run->error[0])
		print_field("error", "%s", run->error);
	print_field("started", "%s", clock_rfc3339(at, sizeof(at), run->started_ms));
	if (run->ended_ms > 0)
		print_field("ended", "%s", clock_rfc3339(at, sizeof(at), run->ended_ms));
	print_field("segments", "%lld: %lld rendered, %lld cached, %lld failed",
		    (long long)run->total, (long long)run->rendered, (long long)run->cached,
		    (long long)run->failed);
	money_show(counted, sizeof(counted), run->counted_microusd);
	print_field("spent", "%s billed, %s compute (%s), %s wasted, %s%s%s%s",
		    duration_show(billed, sizeof(billed), run->billed_ms),
		    duration_show(compute, sizeof(compute), run->compute_ms),
		    report_ratio(ratio, sizeof(ratio), run->compute_ms, run->billed_ms),
		    duration_show(wasted, sizeof(wasted), run->wasted_ms),
		    cost_show(cost, sizeof(cost), run->cost_microusd, run->unpriced_ms),
		    more ? " by the vendor, " : "", more ? counted : "",
		    more ? " counted here" : "");
	planned_say_replans(stdout, run);
}

/* ---- what it decided ---- */

/* "; 2 pods, up to 4 if it gets late; GPUs: L4, A10" */
static void append_pods_and_gpus(struct str *to, const struct choice_row *c)
{
	int pods = MAX(c->pods, 1);

	str_addf(to, "; %d pod%s%s", pods, pods == 1 ? "" : "s",
		 c->pods_open ? ""
		 : c->pods    ? " as in the config"
			      : "");
	if (c->pods_open && c->pods_most > pods)
		str_addf(to, ", up to %d if it gets late", c->pods_most);
	if (c->gpus[0]) {
		str_addf(to, "; GPUs%s: ", c->gpus_open ? ", the best for the job first" : "");
		for (const char *at = c->gpus; *at; at++)
			str_addf(to, *at == ',' ? ", " : "%c", *at);
	}
}

static void print_forecasts(const struct run_choice *c)
{
	char up[24], slow[24];

	for (size_t i = 0; i < c->forecast_count; i++) {
		const struct forecast_row *f = &c->forecasts[i];
		print_field(
			i ? "" : "expected",
			"%s at %s: up in %s (90%%: %s); batches of %d at most; times: %s; one run "
			"in ten is slower by a factor of %.2g",
			gpu_called(f->gpu), f->provider,
			duration_show(up, sizeof(up), (int64_t)(f->cold_p50_s * 1000)),
			duration_show(slow, sizeof(slow), (int64_t)(f->cold_p90_s * 1000)),
			f->batch_max, f->speed_from, exp(SPREAD_Z90 * f->speed_sigma));
	}
}

/* Prints what the run decided when it began, and why; nothing for runs that decide nothing. */
static int print_choice(const struct cmd_context *ctx, const struct run_row *run, struct err *err)
{
	struct run_choice c;
	CLEANUP(str_free) struct str text = STR_INIT;
	char at[32];

	if (run_choice_read(&c, ctx->store, run->id, err) < 0)
		return -1;
	if (!c.row.decided_ms)
		return 0;
	str_addf(&text, "goal %s", c.row.goal);
	if (c.row.deadline_ms)
		str_addf(&text, "; deadline %s (\"%s\")",
			 clock_rfc3339(at, sizeof(at), c.row.deadline_ms), c.row.deadline);
	append_pods_and_gpus(&text, &c.row);
	print_field("decided", "%s", str_text(&text));
	if (c.row.why[0])
		print_field("because", "%s", c.row.why);
	print_forecasts(&c);
	run_choice_free(&c);
	return 0;
}

static json_t *forecast_json(const struct forecast_row *f)
{
	return json_pack("{s:s, s:s, s:f, s:f, s:i, s:b, s:s, s:f}", "provider", f->provider, "gpu",
			 f->gpu, "start_p50_s", f->cold_p50_s, "start_p90_s", f->cold_p90_s,
			 "batch_most", f->batch_max, "measured", f->measured, "times",
			 f->speed_from, "times_slower_p90", exp(SPREAD_Z90 * f->speed_sigma));
}

static json_t *gpus_json(const char *gpus)
{
	json_t *list = json_array();

	while (*gpus) {
		size_t len = strcspn(gpus, ",");
		json_array_append_new(list, json_stringn(gpus, len));
		gpus += len + (gpus[len] == ',');
	}
	return list;
}

/* Adds what the run decided as the object's "decision"; null for runs that decide nothing. */
static int add_choice_json(json_t *to, const struct cmd_context *ctx, const struct run_row *run,
			   struct err *err)
{
	struct run_choice c;
	json_t *object = json_null(), *forecasts = json_array();

	if (run_choice_read(&c, ctx->store, run->id, err) < 0) {
		json_decref(forecasts);
		return -1;
	}
	for (size_t i = 0; i < c.forecast_count; i++)
		json_array_append_new(forecasts, forecast_json(&c.forecasts[i]));
	if (c.row.decided_ms)
		object = json_pack(
			"{s:o, s:s, s:o, s:s*, s:o, s:i, s:i, s:b, s:b, s:o, s:b, s:i, s:o, s:s, "
			"s:O}",
			"decided_at", report_time(c.row.decided_ms), "goal", c.row.goal,
			"value_of_time_usd", report_dollars(c.row.value_of_time_microusd),
			"deadline", c.row.deadline[0] ? c.row.deadline : NULL, "deadline_at",
			report_time(c.row.deadline_ms), "pods", MAX(c.row.pods, 1), "pods_most",
			MAX(c.row.pods_most, MAX(c.row.pods, 1)), "pods_planned", c.row.pods_open,
			"at_once", c.row.at_once, "gpus", gpus_json(c.row.gpus), "gpus_planned",
			c.row.gpus_open, "batch", c.row.batch, "cost_usd",
			report_dollars(c.row.cost_microusd), "why", c.row.why, "forecasts",
			forecasts);
	json_decref(forecasts);
	json_object_set_new(to, "decision", object);
	run_choice_free(&c);
	return 0;
}

/* Prints a row for each of the run's stages, and the sums of the run and all stages. Nothing for a
 * run without stages. */
static int print_stages(struct cmd_context *ctx, const struct run_row *run, int64_t now,
			struct err *err)
{
	struct run_row total = *run, *rows = NULL;
	char billed[32], compute[32], cost[40];
	size_t count = 0;

	if (stages_of(&ctx->runs, run, &rows, &count, err) < 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		result = run_sum_so_far(&ctx->runs, &rows[i], now, err);
		print_field(
			"stage", "%s  run %s  %s  %s billed, %s", rows[i].stage, rows[i].id,
			run_status_word(rows[i].status),
			duration_show(billed, sizeof(billed), rows[i].billed_ms),
			cost_show(cost, sizeof(cost), rows[i].cost_microusd, rows[i].unpriced_ms));
	}
	free(rows);
	if (result < 0 || stages_add_costs(&ctx->runs, &total, now, err) < 0)
		return -1;
	if (count)
		print_field("total", "%s billed, %s compute, %s with its stage%s",
			    duration_show(billed, sizeof(billed), total.billed_ms),
			    duration_show(compute, sizeof(compute), total.compute_ms),
			    cost_show(cost, sizeof(cost), total.cost_microusd, total.unpriced_ms),
			    count > 1 ? "s" : "");
	return 0;
}

/* Prints what the vendors have billed so far; nothing while no bill is known. */
static void print_vendor_bills(const struct pod_row *pods, size_t count, int64_t now)
{
	int64_t ms = 0, cost = 0, larger = 0;
	char text[32], money[40], larger_money[40];
	int64_t unpriced_ms = 0;
	size_t known = 0;

	for (size_t i = 0; i < count; i++) {
		if (!bill_is_known(&pods[i]))
			continue;
		known++;
		ms += pods[i].billed_vendor_ms;
		cost += pod_row_vendor(&pods[i]);
		larger += pod_row_cost(&pods[i], now);
		unpriced_ms += pod_row_unpriced_ms(&pods[i], now);
	}
	if (known)
		print_field("vendor",
			    "%s, %s for %zu pod%s; the larger of each bill and burst's count: %s "
			    "(see --reconcile)",
			    duration_show(text, sizeof(text), ms),
			    cost_show(money, sizeof(money), cost, unpriced_ms), known,
			    known == 1 ? "" : "s",
			    cost_show(larger_money, sizeof(larger_money), larger, unpriced_ms));
}

/* Prints what would have been cheaper, as far as the pods' figures show it. */
static void print_advice(struct store *store, const struct run_row *run, const struct pod_row *pods,
			 size_t count, int64_t now)
{
	CLEANUP(str_free) struct str advice = STR_INIT, seats = STR_INIT;
	const struct advice_of of = {store, run->id, pods, count, now};

	if (run->cost_microusd > 0 && !excerpt_is(run->type) && strcmp(run->type, KEEP_RUN) != 0)
		advice_add(&advice, &of);
	advice_add_seats(&seats, &of);
	if (seats.len)
		printf("%s", str_text(&seats));
	if (advice.len)
		printf("\n%s", str_text(&advice));
}

/* Prints how busy the pods' GPUs were during renders; nothing for pods without samples. */
static void print_gpu_use(const struct pod_row *pods, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		const struct pod_row *p = &pods[i];
		if (!p->gpu_samples)
			continue;
		if (!any)
			putchar('\n');
		any = true;
		print_field("gpu",
			    "%s of pod %s: %d%% busy (median), %d%% (95th percentile) in %d "
			    "samples; %lld MiB of memory at most",
			    p->gpu, pod_row_called(p), p->gpu_busy_p50, p->gpu_busy_p95,
			    p->gpu_samples, (long long)p->gpu_memory_peak_mib);
	}
}

static int print_run_text(struct cmd_context *ctx, const struct run_row *run,
			  const struct pod_row *pods, size_t count, int64_t now, struct err *err)
{
	print_run(ctx, run);
	if (print_choice(ctx, run, err) < 0 || print_stages(ctx, run, now, err) < 0)
		return -1;
	print_vendor_bills(pods, count, now);
	if (count)
		putchar('\n');
	report_print_phases(stdout, pods, count, now);
	print_gpu_use(pods, count);
	print_advice(ctx->store, run, pods, count, now);
	return 0;
}

static int print_run_json(struct cmd_context *ctx, const struct run_row *run,
			  const struct pod_row *pods, size_t count, int64_t now, struct err *err)
{
	CLEANUP(json_decref) json_t *object = report_run_json(run, pods, count, now);

	if (add_choice_json(object, ctx, run, err) < 0)
		return -1;
	output_json(json_incref(object));
	return 0;
}

static int print_run_named(struct cmd_context *ctx, const char *id, struct err *err)
{
	int64_t now = clock_wall_ms();
	struct pod_row *pods = NULL;
	struct run_row run;
	size_t count = 0;

	if (named_run(ctx->store, id, &run, err) < 0 ||
	    run_sum_so_far(&ctx->runs, &run, now, err) < 0 ||
	    store_pods(ctx->store, run.id, false, &pods, &count, err) < 0)
		return -1;
	int result =
		(ctx->json ? print_run_json : print_run_text)(ctx, &run, pods, count, now, err);
	free(pods);
	return result;
}

/* ---- sums by day, project, GPU or provider ---- */

enum { SUMS = RUN_TABLE | RUN_OBJECT | RUN_CSV };
struct sum_facts {
	struct spend_row row;
	char used[16];
};

static void sum_cost_text(char *to, size_t room, const void *of)
{
	const struct sum_facts *f = of;

	cost_show(to, room, f->row.cost_microusd, f->row.unpriced_ms);
}

#define AT(field) offsetof(struct sum_facts, field)
static const struct shown_column sum_columns[] = {
	{SUMS, NULL, NULL, UNIT_TEXT, AT(row.key), TABLE_SHRINKS}, /* see below */
	{SUMS, "runs", "RUNS", UNIT_COUNT, AT(row.runs), 3},
	{SUMS, "pods", "PODS", UNIT_COUNT, AT(row.pods), 4},
	{SUMS, "billed_seconds", "BILLED", UNIT_MS, AT(row.billed_ms)},
	{SUMS, "compute_seconds", "COMPUTE", UNIT_MS, AT(row.compute_ms), 1},
	{RUN_OBJECT | RUN_CSV, "wasted_seconds", NULL, UNIT_MS, AT(row.wasted_ms)},
	{RUN_TABLE, NULL, "USED", UNIT_FIGURE, AT(used), 2},
	{SUMS, "cost_usd", "COST", UNIT_USD, AT(row.cost_microusd), .text = sum_cost_text},
	{RUN_OBJECT, "unpriced_seconds", NULL, UNIT_MS, AT(row.unpriced_ms)},
	{RUN_MORE | RUN_OBJECT | RUN_CSV, "cost_counted_usd", "COUNTED", UNIT_USD,
	 AT(row.counted_microusd), 5},
};
#undef AT

/* word: what the sums are by, "day"; it names the first column. */
static void print_sums(const struct cmd_context *ctx, const char *word,
		       const struct spend_row *sums, size_t count)
{
	struct shown_column list[ARRAY_LEN(sum_columns)];
	const struct columns columns = {list, ARRAY_LEN(list)};
	CLEANUP(str_free) struct str csv = STR_INIT;
	char title[16] = "";
	unsigned sets = RUN_TABLE;

	memcpy(list, sum_columns, sizeof(list));
	for (size_t i = 0; word[i] && i + 1 < sizeof(title); i++)
		title[i] = (char)toupper((unsigned char)word[i]);
	list[0].key = word;
	list[0].title = title;
	for (size_t i = 0; i < count; i++)
		if (sums[i].cost_microusd > sums[i].counted_microusd)
			sets |= RUN_MORE;
	struct rows rows = rows_begin(ctx->json, &columns, sets, RUN_OBJECT);
	columns_csv(&csv, &columns, RUN_CSV, NULL);
	for (size_t i = 0; i < count; i++) {
		struct sum_facts f = {.row = sums[i]};
		report_ratio(f.used, sizeof(f.used), sums[i].compute_ms, sums[i].billed_ms);
		columns_csv(&csv, &columns, RUN_CSV, &f);
		rows_add(&rows, &f);
	}
	if (opt_has(ctx, "csv")) {
		output_lines(stdout, str_text(&csv));
		table_free(rows.table);
		return;
	}
	rows_end(&rows);
	if (!count && !ctx->json)
		log_line(LOG_NOTE, "no pod has been billed yet");
}

static int print_sums_by(struct cmd_context *ctx, const char *word, struct err *err)
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
		print_sums(ctx, word, rows, count);
		free(rows);
	}
	free(pods);
	free(runs);
	return result;
}

/* ---- --reconcile: fetches the vendors' bills, records them beside our count, and explains
 * differences ---- */

/* Says how many pods' bills will be asked for, and why others are left out. */
static void tell_pods_to_reconcile(const struct reconciliation *r)
{
	if (r->count)
		log_line(LOG_NOTE, "asking for the bill%s of %zu pod%s", r->count == 1 ? "" : "s",
			 r->count, r->count == 1 ? "" : "s");
	else
		log_line(LOG_NOTE, "no pod awaits its vendor's final record");
	if (r->alive)
		log_line(LOG_NOTE, "%zu pod%s not released yet: see `burst ps`", r->alive,
			 r->alive == 1 ? " is" : "s are");
	if (r->old)
		log_line(LOG_NOTE,
			 "%zu pod%s without a final record ended more than %d days ago: name the "
			 "run to ask for %s",
			 r->old, r->old == 1 ? "" : "s", RECONCILE_AGE_DAYS,
			 r->old == 1 ? "it" : "them");
}

/* Sets ctx->config to the user's own file, without a project's, which may be missing. */
static int open_user_accounts(struct cmd_context *ctx, struct err *err)
{
	struct config_source ask = {
		.user_only = true, .providers = provider_registry, .jobs = job_registry};

	return config_open(&ctx->config, &ask, err) < 0 ? -1 : config_check(ctx->config, err);
}

/* Returns exit status 1 if a vendor bills more than can be explained, or -1 if one could not be
 * asked. */
static int reconcile_status(const struct reconciliation *r, struct err *err)
{
	int excess = 0;

	if (cmd_flush(err) < 0)
		return -1;
	if (r->failure.kind) {
		*err = r->failure;
		return -1;
	}
	for (size_t i = 0; i < r->count; i++)
		excess += r->pods[i].verdict.state == BILL_EXCESS;
	return excess > 0;
}

/* run: the run whose pods to check; NULL: all of the last 30 days without a final record. Returns
 * exit status 1 if a vendor bills more than can be explained. */
static int reconcile(struct cmd_context *ctx, const char *run, struct err *err)
{
	struct reconciliation r;

	if (open_user_accounts(ctx, err) < 0)
		return -1;
	int status = reconcile_find(&r, &ctx->runs, run, err);
	if (status == 0) {
		tell_pods_to_reconcile(&r);
		status = reconcile_fetch_bills(&r, err);
		bills_print(ctx->json, &r);
	}
	if (status == 0)
		status = reconcile_status(&r, err);
	reconcile_free(&r);
	return status;
}

/* ---- all runs ---- */

/* NULL: none, or id is "". */
static struct run_row *find_run_row(struct run_row *runs, size_t count, const char *id)
{
	for (size_t i = 0; *id && i < count; i++)
		if (!strcmp(runs[i].id, id))
			return &runs[i];
	return NULL;
}

/* Adds stages to the runs that they are parts of, and drops their rows. Returns the new count. */
static size_t fold_stages(struct run_row *runs, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct run_row *whole = find_run_row(runs, count, runs[i].part_of);
		if (whole)
			stage_add_costs(whole, &runs[i]);
		else
			runs[i].part_of[0] = '\0'; /* it stands by itself */
	}
	for (size_t i = 0; i < count; i++)
		if (!runs[i].part_of[0])
			runs[kept++] = runs[i];
	return kept;
}

static int print_newest_runs(struct cmd_context *ctx, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	int64_t most = ctx->json || opt_has(ctx, "csv") ? 0 : 20;

	if (opt_int(ctx, "most", 0, 1000000, &most, err) < 0 ||
	    store_runs(ctx->store, NULL, false, 0, &runs, &count, err) < 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		result = run_sum_so_far(&ctx->runs, &runs[i], clock_wall_ms(), err);
	count = result == 0 ? fold_stages(runs, count) : count;
	count = most ? MIN(count, (size_t)most) : count;
	if (result == 0)
		print_runs(ctx, runs, count);
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
		return print_sums_by(ctx, opt_text(ctx, "by"), err) < 0 ? -1 : cmd_flush(err);
	if (opt_has(ctx, "reconcile"))
		return opt_has(ctx, "most")
			       ? err_set(err, ERR_USAGE,
					 "--most lists runs and cannot be used with --reconcile")
			       : reconcile(ctx, id, err);
	int result = id ? print_run_named(ctx, id, err) : print_newest_runs(ctx, err);

	return result < 0 ? -1 : cmd_flush(err);
}

static const struct opt opts[] = {
	{'n', "most", "N", "the newest N runs (default 20, with --json or --csv all; 0: all)"},
	{0, "by", "day|project|gpu|provider", "sum the time and cost of all pods by this"},
	{0, "csv", NULL, "the runs, or with --by the sums, as CSV with a header line"},
	{0, "reconcile", NULL,
	 "ask the vendors what they billed, record it, and explain differences from burst's count"},
	{0},
};

const struct cmd cmd_ledger = {
	.name = "ledger",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "show past runs: billed seconds beside compute seconds, and the cost",
	.details = "With RUN (any unambiguous beginning of its id): its pods, phase by "
		   "phase.\n\n`burst ledger --by day` sums pods by days of your time zone (TZ). A "
		   "pod that was billed over midnight counts for each of its days, in proportion "
		   "to its time there. A project is the folder of a config file.\n\n`burst ledger "
		   "--reconcile` asks each vendor for the bill of every pod that was released in "
		   "the last 30 days (or of RUN), until a day has passed since its release. The "
		   "vendor's figures are kept beside burst's own and never replace them: dollars, "
		   "and seconds, reported or implied by the dollars and the pod's price. Exit "
		   "status 0 also while a vendor has no record yet; 1 if it bills more than can be "
		   "explained; 3 if it refuses the key; 6 if it cannot be reached.",
	.opts = opts,
	.json = true,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
