/* glance.c - summarizes a ledger: runs, pods, dollars of today. */
#include "glance.h"

#include <stdlib.h>

#include "base/path.h"
#include "engine/kept.h"
#include "spend.h"
#include "store/pod_cost.h"

enum { RUNS_FIRST = 64, RUNS_MOST = 1024 };
#define FAILURE_SHOWN_MS (24 * INT64_C(3600000))
#define ONE_OFF_SHOWN_MS (10 * INT64_C(60000))

/* ---- how runs ended ---- */

static const struct run_row *newest_success(const struct run_row *runs, size_t count,
					    const char *trial)
{
	for (size_t i = 0; i < count; i++)
		if (runs[i].status == RUN_DONE && strcmp(runs[i].type, trial) != 0 &&
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

/* For how long after its end. A run without a burst.cfg (`burst run -- COMMAND`, a text) is no job
 * that will ever succeed again: its user saw it fail, or soon looks. */
static int64_t shown_ms(const struct run_row *run)
{
	return run->status == RUN_UNRELEASED || path_exists(run->config) ? FAILURE_SHOWN_MS
									 : ONE_OFF_SHOWN_MS;
}

static bool is_old(const struct glance *g, const struct run_row *run)
{
	return g->now_ms - MAX(run->ended_ms, run->started_ms) >= shown_ms(run);
}

static const struct run_row *newest_failure(const struct glance *g)
{
	for (size_t i = 0; i < g->count && g->now_ms - g->runs[i].started_ms < FAILURE_SHOWN_MS;
	     i++) {
		size_t newer = 0;
		while (newer < i && !(g->runs[newer].status == RUN_DONE &&
				      is_same_job(&g->runs[newer], &g->runs[i])))
			newer++;
		if (has_failed(&g->runs[i]) && newer == i && !is_old(g, &g->runs[i]))
			return &g->runs[i];
	}
	return NULL;
}

/* Reads more runs until one has succeeded. */
static int read_runs(struct glance *g, struct store *store, const char *trial, struct err *err)
{
	for (size_t most = RUNS_FIRST;; most *= 4) {
		free(g->runs);
		g->runs = NULL;
		if (store_runs(store, NULL, false, most, &g->runs, &g->count, err) < 0)
			return -1;
		g->success = newest_success(g->runs, g->count, trial);
		g->failure = newest_failure(g);
		if (g->success || g->count < most || most >= RUNS_MOST)
			return 0;
	}
}

/* ---- dollars of today ---- */

/* The part of a pod's cost since midnight. */
static int64_t cost_since(const struct pod_row *pod, int64_t at, int64_t midnight)
{
	int64_t cost = pod_row_cost(pod, at), spread = pod_row_spread_ms(pod, at);

	return spread > 0 ? spend_since(cost, spread, pod->create_ms, midnight) : cost;
}

static int add_today(struct glance *g, const struct runs *rs, struct err *err)
{
	int64_t midnight = spend_day_ms(g->now_ms);
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods_since(rs->store, midnight, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		int64_t at = pod_row_over(&pods[i]) ? g->now_ms
						    : run_pod_now(rs, &pods[i], g->now_ms).at_ms;
		g->today_microusd += cost_since(&pods[i], at, midnight);
	}
	free(pods);
	return 0;
}

/* ---- running and billing ---- */

static int read_running(struct glance *g, const struct runs *rs, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;

	if (store_runs(rs->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	g->running = xcalloc(count + 1, sizeof(*g->running));
	g->running_count = count;
	for (size_t i = 0; i < count; i++) {
		bool client = run_is_alive(rs, runs[i].id);
		g->unwatched_runs += !client && !runs[i].detached;
		g->running[i] = (struct glance_run){runs[i], client};
	}
	free(runs);
	return 0;
}

/* The agents of a detached run release its pods; other runs need a client. */
static bool is_handed_over(const struct glance *g, const char *id)
{
	for (size_t i = 0; i < g->running_count; i++)
		if (!strcmp(g->running[i].row.id, id))
			return g->running[i].row.detached;
	return false;
}

static int add_bills(struct glance *g, const struct runs *rs, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(rs->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (run_pod_now(rs, &pods[i], g->now_ms).is == POD_NOW_OVER)
			continue;
		g->bill++;
		g->price_microusd_h += pods[i].price_microusd_h;
		g->alone += !run_is_alive(rs, pods[i].run) && !is_handed_over(g, pods[i].run);
	}
	free(pods);
	return 0;
}

int glance_read(struct glance *g, const struct runs *rs, const char *trial, struct err *err)
{
	if (read_runs(g, rs->store, trial, err) < 0 || add_today(g, rs, err) < 0 ||
	    read_running(g, rs, err) < 0)
		return -1;
	return add_bills(g, rs, err);
}

void glance_free(struct glance *g)
{
	free(g->runs);
	free(g->running);
	*g = (struct glance){0};
}
