/* status.c - `burst status`: one line on the last success, current runs, billing pods and today's
 * dollars. Reads only the ledger and the locks. */
#include "cmd.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/path.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "cmd/unattended/unattended.h"
#include "engine/pooled.h"
#include "jobs/excerpt/excerpt.h"
#include "runs/caps.h"
#include "store/pod_cost.h"

enum { RUNS_MOST = 256 };
#define FAILURE_SHOWN_MS (24 * INT64_C(3600000))
#define ONE_OFF_SHOWN_MS (10 * INT64_C(60000))

struct status {
	const char *ledger;   /* "read" | "none" | "locked" */
	int64_t now_ms;       /* wall time */
	struct run_row *runs; /* the newest ones; success and failure point into them */
	size_t count;
	const struct run_row *success; /* the newest that is done; NULL: none among them */
	/* the newest failure of the last day, unless its job has succeeded since; NULL: none */
	const struct run_row *failure;
	struct run_row *running;
	size_t running_count;
	int unwatched_runs;         /* of those: without a client, and not handed over */
	int billing, billing_alone; /* pods that bill; of those: of a run that needs a client and
				       has none */
	int unpriced;               /* of those that bill: without a price */
	bool any_unpriced_today;
	int64_t price_microusd_h, today_microusd;
	int requests,
		without_client;    /* that are queued; of those: no runner works on their queue */
	struct config_cap per_day; /* from the user's own file */
};

/* ---- how runs ended ---- */

/* NULL: none. Excerpts, and clients that only kept pods, do not count. */
static const struct run_row *newest_success(const struct run_row *runs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (runs[i].status == RUN_DONE && !excerpt_is(runs[i].type) &&
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

/* For how long after its end a failed run is shown. A run without a burst.cfg (`burst run --
 * COMMAND`, a text) is shown briefly: no later run of its job can succeed and clear it. */
static int64_t failure_shown_ms(const struct run_row *run)
{
	return run->status == RUN_UNRELEASED || path_exists(run->config) ? FAILURE_SHOWN_MS
									 : ONE_OFF_SHOWN_MS;
}

/* NULL: none that is recent and whose job has not succeeded since. */
static const struct run_row *newest_failure(const struct status *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct run_row *run = &s->runs[i];
		size_t newer = 0;
		while (newer < i &&
		       !(s->runs[newer].status == RUN_DONE && is_same_job(&s->runs[newer], run)))
			newer++;
		if (has_failed(run) && newer == i &&
		    s->now_ms - MAX(run->ended_ms, run->started_ms) < failure_shown_ms(run))
			return run;
	}
	return NULL;
}

/* ---- running and billing ---- */

static int read_running(struct status *s, const struct runs *rs, struct err *err)
{
	if (store_runs(rs->store, NULL, true, 0, &s->running, &s->running_count, err) < 0)
		return -1;
	for (size_t i = 0; i < s->running_count; i++)
		s->unwatched_runs += !run_is_alive(rs, s->running[i].id) && !s->running[i].detached;
	return 0;
}

/* Whether the run is detached: then its agents release its pods, and it needs no client. */
static bool is_handed_over(const struct status *s, const char *id)
{
	for (size_t i = 0; i < s->running_count; i++)
		if (!strcmp(s->running[i].id, id))
			return s->running[i].detached;
	return false;
}

/* Adds up today's dollars, and what bills now. */
static int read_pods(struct status *s, const struct runs *rs, struct err *err)
{
	int64_t midnight = spend_period_ms(s->now_ms, false, false);
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods_since(rs->store, midnight, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		bool over = pod_row_over(&pods[i]);
		struct run_pod_now now = run_pod_now(rs, &pods[i], s->now_ms);
		s->any_unpriced_today |= pod_row_unpriced_ms(&pods[i], now.at_ms) > 0;
		s->today_microusd += allow_spent(&pods[i], midnight, over ? s->now_ms : now.at_ms);
		if (over || now.is == POD_NOW_OVER)
			continue;
		s->billing++;
		s->unpriced += pods[i].unpriced;
		s->price_microusd_h += pods[i].price_microusd_h;
		s->billing_alone +=
			!run_is_alive(rs, pods[i].run) && !is_handed_over(s, pods[i].run);
	}
	free(pods);
	return 0;
}

/* Counts the open requests, and those whose queue has no runner. */
static int read_queues(struct status *s, const struct runs *rs, struct err *err)
{
	struct request_row *rows = NULL;
	size_t count = 0;

	if (store_requests(rs->store, NULL, true, &rows, &count, err) < 0)
		return -1;
	s->requests = (int)count;
	for (size_t i = 0; i < count; i++)
		s->without_client += !queue_has_runner(rs->state_dir, rows[i].config);
	free(rows);
	return 0;
}

static int read_ledger(const struct cmd_context *ctx, struct store *store, struct status *s,
		       struct err *err)
{
	struct runs rs = ctx->runs;

	rs.store = store;
	if (store_runs(store, NULL, false, RUNS_MOST, &s->runs, &s->count, err) < 0)
		return -1;
	s->success = newest_success(s->runs, s->count);
	s->failure = newest_failure(s);
	if (read_queues(s, &rs, err) < 0 || read_running(s, &rs, err) < 0)
		return -1;
	return read_pods(s, &rs, err);
}

/* Reads the ledger. If it does not exist yet, or is locked for now, only sets s->ledger: a prompt
 * should not show that as an error. */
static int read_ledger_if_any(const struct cmd_context *ctx, struct status *s, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(ctx->state_dir, "ledger.db");
	struct store *store = NULL;

	if (store_open_to_read(&store, path, err) == 0) {
		int result = read_ledger(ctx, store, s, err);
		store_close(store);
		return result;
	}
	if (err->kind != ERR_NOT_FOUND && err->kind != ERR_BUSY)
		return -1;
	s->ledger = err->kind == ERR_BUSY ? "locked" : "none";
	err_clear(err);
	return 0;
}

/* caps.per_day of the user's own file. Ignores mistakes in it, which must not hide the status:
 * commands that rent report them. */
static struct config_cap read_daily_cap(struct cmd_context *ctx)
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
		cap = config_user_cap(config, "per_day");
	cap.where = NULL; /* owned by the config */
	config_free(config);
	mistakes_free(&mistakes);
	output_setup(ctx);
	return cap;
}

/* ---- JSON: tests/schema/status.json ---- */

/* run NULL: null. */
static json_t *ended_json(const struct status *s, const struct run_row *run)
{
	if (!run)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:s*}", "run", report_text(run->id), "job",
			 report_text(run->job), "ended_at", report_time(run->ended_ms),
			 "age_seconds", report_seconds(MAX(s->now_ms - run->ended_ms, 0)), "status",
			 run == s->failure ? run_status_word(run->status) : NULL);
}

static void print_json(const struct cmd_context *ctx, const struct status *s)
{
	json_t *running = json_array();

	for (size_t i = 0; i < s->running_count; i++) {
		const struct run_row *run = &s->running[i];
		json_array_append_new(
			running, json_pack("{s:o, s:o, s:o, s:b, s:b}", "run", report_text(run->id),
					   "job", report_text(run->job), "started_at",
					   report_time(run->started_ms), "detached", run->detached,
					   "client", run_is_alive(&ctx->runs, run->id)));
	}
	output_json(json_pack(
		"{s:s, s:o, s:o, s:o, s:{s:i, s:i}, s:{s:i, s:i, s:i, s:o}, s:o, s:o}", "ledger",
		s->ledger, "last_success", ended_json(s, s->success), "last_failure",
		ended_json(s, s->failure), "running", running, "queued", "requests", s->requests,
		"without_client", s->without_client, "pods", "billing", s->billing,
		"without_client", s->billing_alone, "unpriced", s->unpriced, "price_usd_hour",
		report_dollars(s->price_microusd_h), "today_usd", report_dollars(s->today_microusd),
		"per_day_usd", s->per_day.set ? report_dollars(s->per_day.microusd) : json_null()));
}

/* ---- the line ---- */

/* "quiz failed 2h ago: `burst logs ID` | quiz done 1d ago" */
static void add_ended(struct str *line, const struct status *s)
{
	const struct run_row *failed = s->failure, *done = s->success;
	char age[32];

	if (failed)
		str_addf(line, "%s %s %s ago: `burst logs %s` | ", failed->job,
			 run_status_word(failed->status),
			 duration_show(age, sizeof(age), MAX(s->now_ms - failed->ended_ms, 0)),
			 failed->id);
	if (!done)
		str_add(line, s->count ? "no success yet" : "no run yet");
	else
		str_addf(line, "%s done %s ago", done->job,
			 duration_show(age, sizeof(age), MAX(s->now_ms - done->ended_ms, 0)));
}

/* " | quiz runs, 1 without a client, 2 queued" */
static void add_running(struct str *line, const struct status *s)
{
	if (!s->running_count)
		str_add(line, " | nothing runs");
	else if (s->running_count == 1)
		str_addf(line, " | %s runs", s->running[0].job);
	else
		str_addf(line, " | %zu runs", s->running_count);
	if (s->unwatched_runs)
		str_addf(line, ", %d without a client", s->unwatched_runs);
	if (s->requests)
		str_addf(line, ", %d queued%s", s->requests,
			 s->without_client ? " without a client: `burst queue ls`" : "");
}

/* " | 3 pods bill, $1.20/h, 1 without a price" */
static void add_billing(struct str *line, const struct status *s)
{
	char money[32];

	str_addf(line, " | %d pod%s", s->billing, s->billing == 1 ? " bills" : "s bill");
	if (s->unpriced < s->billing)
		str_addf(line, ", %s/h", money_show(money, sizeof(money), s->price_microusd_h));
	if (s->unpriced == s->billing)
		str_add(line, ", no price given");
	else if (s->unpriced)
		str_addf(line, ", %d without a price", s->unpriced);
}

static void print_line(const struct status *s)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	char money[32];

	if (!strcmp(s->ledger, "locked")) {
		output_line(stdout, "the ledger is locked by another process");
		return;
	}
	if (s->billing_alone)
		str_addf(&line, "!! %d pod%s without a client: `burst reap` !! | ",
			 s->billing_alone, s->billing_alone == 1 ? " bills" : "s bill");
	add_ended(&line, s);
	add_running(&line, s);
	if (s->billing)
		add_billing(&line, s);
	else
		str_add(&line, " | nothing bills");
	str_addf(&line, " | %s", money_show(money, sizeof(money), s->today_microusd));
	if (s->per_day.set)
		str_addf(&line, " of %s", money_show(money, sizeof(money), s->per_day.microusd));
	str_add(&line, s->any_unpriced_today ? " today, beside pods without a price" : " today");
	output_safe_line(stdout, str_text(&line), line.len);
}

/* ---- the command ---- */

static int run(struct cmd_context *ctx, struct err *err)
{
	struct status s = {
		.ledger = "read", .now_ms = clock_wall_ms(), .per_day = read_daily_cap(ctx)};
	int result = read_ledger_if_any(ctx, &s, err);

	if (result == 0 && ctx->json)
		print_json(ctx, &s);
	else if (result == 0)
		print_line(&s);
	free(s.runs);
	free(s.running);
	return result < 0 ? -1 : cmd_flush(err);
}

const struct cmd cmd_status = {
	.name = "status",
	.summary = "print a one-line status for a prompt or a status bar",
	.details = "The last failure of a job that has not succeeded since (for a day; of a run "
		   "without a burst.cfg, for ten minutes), the last success and its age, active "
		   "runs, what is billing, and the dollars of today (since midnight here; with "
		   "caps.per_day of your own file, where it is set). It reads the ledger of this "
		   "machine, changes nothing and asks no provider. Pods of a run without a client "
		   "come first: they bill until `burst reap` or their hard end. A missing or "
		   "locked ledger is not an error.",
	.json = true,
	.needs = NEED_STATE,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
