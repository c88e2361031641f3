/* status.c - `burst status`: one line on the last success, what runs, what bills, and today's
 * dollars. */
#include "cmd.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "cmd/launch/find_run.h"
#include "cmd/launch/keep_pool.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "cmd/unattended/queue_client.h"
#include "jobs/calibrate/calibrate.h"
#include "runs/spend.h"
#include "store/pod_cost.h"

enum { RUNS_FIRST = 64, RUNS_MOST = 1024 };
#define FAILURE_SHOWN_MS (24 * INT64_C(3600000))

/* What the line says. */
struct glance {
	const char *ledger; /* "read" | "none" | "locked" */
	int64_t now;
	struct run_row *runs; /* the newest */
	size_t count;
	const struct run_row *success; /* the newest that is done; NULL: none among them */
	/* the newest of the last day that failed, whose job has not succeeded since; NULL: none */
	const struct run_row *failure;
	json_t *running;
	int unwatched_runs; /* of those: no client, and not handed over */
	int bill, alone;    /* pods; alone: of a run without a client */
	int64_t price_microusd_h, today_microusd;
	/* requests that wait or are rendered; alone: no client works on their queue */
	int queued, queued_alone;
	struct config_cap per_day; /* of one's own file */
};

/* ---- asking the ledger ---- */

static const struct run_row *newest_success(const struct run_row *runs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (runs[i].status == RUN_DONE && strcmp(runs[i].type, CALIBRATE) != 0 &&
		    strcmp(runs[i].type, KEEP_RUN) != 0)
			return &runs[i];
	return NULL;
}

static bool has_failed(const struct run_row *run)
{
	return run->status == RUN_PARTIAL || run->status == RUN_FAILED ||
	       run->status == RUN_CAPPED || run->status == RUN_UNRELEASED;
}

static bool is_same_job(const struct run_row *a, const struct run_row *b)
{
	return !strcmp(a->config, b->config) && !strcmp(a->job, b->job) &&
	       !strcmp(a->type, b->type);
}

static const struct run_row *newest_failure(const struct glance *g)
{
	for (size_t i = 0; i < g->count && g->now - g->runs[i].started_ms < FAILURE_SHOWN_MS; i++) {
		size_t newer = 0;
		while (newer < i && !(g->runs[newer].status == RUN_DONE &&
				      is_same_job(&g->runs[newer], &g->runs[i])))
			newer++;
		if (has_failed(&g->runs[i]) && newer == i)
			return &g->runs[i];
	}
	return NULL;
}

/* As many as it takes to see a success. */
static int read_runs(struct glance *g, struct store *store, struct err *err)
{
	for (size_t most = RUNS_FIRST;; most *= 4) {
		free(g->runs);
		g->runs = NULL;
		if (store_runs(store, NULL, false, most, &g->runs, &g->count, err) < 0)
			return -1;
		g->success = newest_success(g->runs, g->count);
		g->failure = newest_failure(g);
		if (g->success || g->count < most || most >= RUNS_MOST)
			return 0;
	}
}

/* The part of its cost that falls on the time since midnight. */
static int64_t cost_since(const struct pod_row *pod, int64_t at, int64_t midnight)
{
	int64_t cost = pod_row_cost(pod, at), billed = pod_row_billed_ms(pod, at);

	return billed > 0 ? spend_since(cost, billed, pod->create_ms, midnight) : cost;
}

static int add_today(const struct cmd_context *ctx, struct glance *g, struct store *store,
		     struct err *err)
{
	int64_t midnight = spend_day_ms(g->now);
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods_since(store, midnight, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		int64_t at = pod_row_over(&pods[i])
				     ? g->now
				     : run_pod_now(&ctx->runs, &pods[i], g->now).at_ms;
		g->today_microusd += cost_since(&pods[i], at, midnight);
	}
	free(pods);
	return 0;
}

static int add_running(const struct cmd_context *ctx, struct glance *g, struct store *store,
		       struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;

	if (store_runs(store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		bool client = run_is_alive(&ctx->runs, runs[i].id);
		g->unwatched_runs += !client && !runs[i].detached;
		json_array_append_new(g->running,
				      json_pack("{s:o, s:o, s:o, s:b, s:b}", "run",
						report_text(runs[i].id), "job",
						report_text(runs[i].job), "started_at",
						report_time(runs[i].started_ms), "detached",
						runs[i].detached, "client", client));
	}
	free(runs);
	return 0;
}

/* A detached run's agents give its pods back; all others need a client. */
static bool is_handed_over(const struct glance *g, const char *id)
{
	const char *run;
	json_t *row;
	size_t i;

	json_array_foreach (g->running, i, row) {
		run = json_string_value(json_object_get(row, "run"));
		if (run && !strcmp(run, id))
			return json_is_true(json_object_get(row, "detached"));
	}
	return false;
}

static int add_bills(const struct cmd_context *ctx, struct glance *g, struct store *store,
		     struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(store, NULL, true, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (run_pod_now(&ctx->runs, &pods[i], g->now).is == POD_NOW_OVER)
			continue;
		g->bill++;
		g->price_microusd_h += pods[i].price_microusd_h;
		g->alone +=
			!run_is_alive(&ctx->runs, pods[i].run) && !is_handed_over(g, pods[i].run);
	}
	free(pods);
	return 0;
}

static int add_queued(const struct cmd_context *ctx, struct glance *g, struct store *store,
		      struct err *err)
{
	struct request_row *rows = NULL;
	size_t count = 0;
	bool runner = false;

	if (store_requests(store, NULL, true, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		runner = i && !strcmp(rows[i].config, rows[i - 1].config)
				 ? runner
				 : queue_has_runner(ctx->state_dir, rows[i].config);
		g->queued++;
		g->queued_alone += !runner;
	}
	free(rows);
	return 0;
}

static int ask(const struct cmd_context *ctx, struct glance *g, struct store *store,
	       struct err *err)
{
	if (add_queued(ctx, g, store, err) < 0 || read_runs(g, store, err) < 0 ||
	    add_today(ctx, g, store, err) < 0 || add_running(ctx, g, store, err) < 0)
		return -1;
	return add_bills(ctx, g, store, err);
}

/* A prompt is no place for an error that passes, or for one that only says that nothing was done
 * yet. */
static int read_all(const struct cmd_context *ctx, struct glance *g, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(ctx->state_dir, "ledger.db");
	struct store *store = NULL;

	if (store_open_to_read(&store, path, err) == 0) {
		int result = ask(ctx, g, store, err);
		store_close(store);
		return result;
	}
	if (err->kind != ERR_NOT_FOUND && err->kind != ERR_BUSY)
		return -1;
	g->ledger = err->kind == ERR_BUSY ? "locked" : "none";
	*err = (struct err){0};
	return 0;
}

/* A file with mistakes must not hide the status: commands that rent report them. */
static struct config_cap read_cap(struct cmd_context *ctx)
{
	struct mistakes mistakes = {0};
	struct config_source ask = {.user_only = true,
				    .mistakes = &mistakes,
				    .providers = provider_registry,
				    .jobs = job_registry};
	struct config *config = NULL;
	struct config_cap cap = {0};
	struct err ignored = {0};

	log_setup(LOG_ERROR, NULL, NULL);
	if (config_open(&config, &ask, &ignored) == 0)
		cap = config_cap(config, "per_day", false);
	cap.where = NULL; /* the config's */
	config_free(config);
	mistakes_free(&mistakes);
	output_setup(ctx);
	return cap;
}

/* ---- saying it ---- */

static void print_json(const struct glance *g)
{
	const struct run_row *run = g->success;
	json_t *success =
		!run ? json_null()
		     : json_pack("{s:o, s:o, s:o, s:o}", "run", report_text(run->id), "job",
				 report_text(run->job), "ended_at", report_time(run->ended_ms),
				 "age_seconds", report_seconds(MAX(g->now - run->ended_ms, 0)));

	const struct run_row *failed = g->failure;
	json_t *failure =
		!failed ? json_null()
			: json_pack("{s:o, s:o, s:s, s:o, s:o}", "run", report_text(failed->id),
				    "job", report_text(failed->job), "status",
				    run_status_word(failed->status), "ended_at",
				    report_time(failed->ended_ms), "age_seconds",
				    report_seconds(MAX(g->now - failed->ended_ms, 0)));

	output_json(json_pack(
		"{s:s, s:o, s:o, s:O, s:{s:i, s:i}, s:{s:i, s:i, s:o}, s:o, s:o}", "ledger",
		g->ledger, "last_success", success, "last_failure", failure, "running", g->running,
		"queued", "requests", g->queued, "without_client", g->queued_alone, "pods",
		"billing", g->bill, "without_client", g->alone, "price_usd_hour",
		report_dollars(g->price_microusd_h), "today_usd", report_dollars(g->today_microusd),
		"per_day_usd", g->per_day.set ? report_dollars(g->per_day.microusd) : json_null()));
}

static void add_ended(struct str *line, const struct glance *g)
{
	char age[32];

	if (g->failure)
		str_addf(line, "%s %s %s ago: `burst logs %s` | ", g->failure->job,
			 run_status_word(g->failure->status),
			 duration_show(age, sizeof(age), MAX(g->now - g->failure->ended_ms, 0)),
			 g->failure->id);
	if (!g->success)
		str_add(line, g->count ? "no success yet" : "no run yet");
	else
		str_addf(line, "%s done %s ago", g->success->job,
			 duration_show(age, sizeof(age), MAX(g->now - g->success->ended_ms, 0)));
}

static void add_running_words(struct str *line, const struct glance *g)
{
	size_t count = json_array_size(g->running);
	const char *job = json_string_value(json_object_get(json_array_get(g->running, 0), "job"));

	if (!count)
		str_add(line, " | nothing runs");
	else if (count == 1)
		str_addf(line, " | %s runs", job ? job : "1 run");
	else
		str_addf(line, " | %zu runs", count);
	if (g->unwatched_runs)
		str_addf(line, ", %d without a client", g->unwatched_runs);
}

static void print_line(const struct glance *g)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	char money[32];

	if (!strcmp(g->ledger, "locked")) {
		puts("the ledger is locked by another process");
		return;
	}
	if (g->alone)
		str_addf(&line, "!! %d pod%s without a client: `burst reap` !! | ", g->alone,
			 g->alone == 1 ? " bills" : "s bill");
	add_ended(&line, g);
	add_running_words(&line, g);
	if (g->queued)
		str_addf(&line, ", %d queued%s", g->queued,
			 g->queued_alone ? " without a client: `burst queue ls`" : "");
	if (g->bill)
		str_addf(&line, " | %d pod%s, %s/h", g->bill, g->bill == 1 ? " bills" : "s bill",
			 money_show(money, sizeof(money), g->price_microusd_h));
	else
		str_add(&line, " | nothing bills");
	str_addf(&line, " | %s", money_show(money, sizeof(money), g->today_microusd));
	if (g->per_day.set)
		str_addf(&line, " of %s", money_show(money, sizeof(money), g->per_day.microusd));
	str_add(&line, " today");
	output_safe_line(stdout, str_text(&line), line.len);
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct glance g = {.ledger = "read",
			   .now = clock_wall_ms(),
			   .running = json_array(),
			   .per_day = read_cap(ctx)};
	int result = read_all(ctx, &g, err);

	if (result == 0 && ctx->json)
		print_json(&g);
	else if (result == 0)
		print_line(&g);
	json_decref(g.running);
	free(g.runs);
	return result < 0 ? -1 : cmd_flush(err);
}

const struct cmd cmd_status = {
	.name = "status",
	.summary = "print a one-line status for a prompt or a status bar",
	.details = "The last failure of a job that has not succeeded since (for a day), the last "
		   "success and its age, active runs, what is billing, and the dollars "
		   "of today (since midnight here; with caps.per_day of your own file, where it is "
		   "set). It reads the ledger "
		   "of this machine, changes nothing and asks no provider. Pods of a run "
		   "without a client come first: they bill until `burst reap` or their hard "
		   "end. A missing or locked ledger is not an error.",
	.json = true,
	.needs = NEED_STATE,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
