/* ledger_run.c - prints one run of `burst ledger`: its pods, their times and costs, and what would
 * be cheaper. */
#include <stdlib.h>

#include "advice.h"
#include "base/clock.h"
#include "base/gpus.h"
#include "cmd/cmd.h"
#include "engine/kept.h"
#include "jobs/calibrate/calibrate.h"
#include "ledger_runs.h"
#include "output.h"
#include "planned.h"
#include "report.h"
#include "runs/bill.h"
#include "runs/choice.h"
#include "runs/runs.h"
#include "store/pod_cost.h"

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
	if (ledger_has_no_client(ctx, run))
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
	printf("%-10s%s billed, %s compute (%s), %s wasted, %s", "spent",
	       duration_show(billed, sizeof(billed), run->billed_ms),
	       duration_show(compute, sizeof(compute), run->compute_ms),
	       report_ratio(ratio, sizeof(ratio), run->compute_ms, run->billed_ms),
	       duration_show(wasted, sizeof(wasted), run->wasted_ms),
	       money_show(cost, sizeof(cost), run->cost_microusd));
	if (run->cost_microusd > run->counted_microusd)
		printf(" by the vendor, %s counted here",
		       money_show(cost, sizeof(cost), run->counted_microusd));
	putchar('\n');
	planned_say_replans(stdout, run);
}

/* ---- what it decided ---- */

static void add_pods(struct str *to, const struct choice_row *c)
{
	int pods = MAX(c->pods, 1);

	str_addf(to, "; %d pod%s%s", pods, pods == 1 ? "" : "s",
		 c->pods_open ? ""
		 : c->pods    ? " as in the config"
			      : "");
	if (c->pods_open && c->pods_most > pods)
		str_addf(to, ", up to %d if it gets late", c->pods_most);
	if (c->gpus[0]) {
		str_addf(to, "; GPUs%s: ", c->gpus_open ? ", the cheapest for the job first" : "");
		for (const char *at = c->gpus; *at; at++)
			str_addf(to, *at == ',' ? ", " : "%c", *at);
	}
}

static void print_forecasts(const struct run_choice *c)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	char up[24], slow[24];

	for (size_t i = 0; i < c->forecast_count; i++) {
		const struct forecast_row *f = &c->forecasts[i];
		str_reset(&text);
		str_addf(&text, "%s at %s: up in %s (90%%: %s); batches of %d at most; times: %s",
			 gpu_called(f->gpu), f->provider,
			 duration_show(up, sizeof(up), (int64_t)(f->cold_p50_s * 1000)),
			 duration_show(slow, sizeof(slow), (int64_t)(f->cold_p90_s * 1000)),
			 f->batch_max, f->speed_from);
		print_line(i ? "" : "expected", str_text(&text));
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
	add_pods(&text, &c.row);
	print_line("decided", str_text(&text));
	if (c.row.why[0])
		print_line("because", c.row.why);
	print_forecasts(&c);
	run_choice_free(&c);
	return 0;
}

static json_t *forecast_json(const struct forecast_row *f)
{
	return json_pack("{s:s, s:s, s:f, s:f, s:i, s:b, s:s}", "provider", f->provider, "gpu",
			 f->gpu, "start_p50_s", f->cold_p50_s, "start_p90_s", f->cold_p90_s,
			 "batch_most", f->batch_max, "measured", f->measured, "times",
			 f->speed_from);
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

/* The same for programs; null: it decides nothing. */
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

/* Prints its sums with those of its delivery. */
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

/* Prints what the vendors have billed so far, and which figure counts. */
static void print_vendors(const struct pod_row *pods, size_t count, int64_t now)
{
	int64_t ms = 0, ours_ms = 0, cost = 0, ours = 0, larger = 0;
	char text[32], ours_text[32], money[32], ours_money[32], larger_money[32];
	size_t known = 0;

	for (size_t i = 0; i < count; i++) {
		if (!bill_is_known(&pods[i]))
			continue;
		known++;
		ms += pods[i].billed_vendor_ms;
		ours_ms += pod_row_billed_ms(&pods[i], now);
		cost += pod_row_vendor(&pods[i]);
		ours += pod_row_counted(&pods[i], now);
		larger += pod_row_cost(&pods[i], now);
	}
	if (known)
		printf("%-10s%s, %s for %zu pod%s; burst counted %s, %s; caps and sums use the "
		       "larger cost%s: %s (see --reconcile)\n",
		       "vendor", duration_show(text, sizeof(text), ms),
		       money_show(money, sizeof(money), cost), known, known == 1 ? "" : "s",
		       duration_show(ours_text, sizeof(ours_text), ours_ms),
		       money_show(ours_money, sizeof(ours_money), ours),
		       known == 1 ? "" : " of each pod",
		       money_show(larger_money, sizeof(larger_money), larger));
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

/* Prints the use of its GPUs during renders. */
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

int ledger_run_print(struct cmd_context *ctx, const char *id, struct err *err)
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
		json_t *object = report_run_json(&run, pods, count, now);
		if (add_choice_json(object, ctx, &run, err) < 0) {
			json_decref(object);
			free(pods);
			return -1;
		}
		output_json(object);
	} else {
		print_run(ctx, &run);
		if (print_choice(ctx, &run, err) < 0 ||
		    print_with_delivery(ctx, &run, now, err) < 0) {
			free(pods);
			return -1;
		}
		print_vendors(pods, count, now);
		if (count)
			putchar('\n');
		report_print_phases(stdout, pods, count, now);
		print_gpu_use(pods, count);
		print_advice(ctx->store, &run, pods, count, now);
	}
	free(pods);
	return 0;
}
