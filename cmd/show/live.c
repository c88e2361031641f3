/* live.c - the pods that have not ended, as `burst ps` and the page of `burst report` show them. */
#include "report.h"

#include "base/clock.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "output.h"
#include "store/pod_cost.h"
#include "view.h"

/* ---- pods that have not ended ---- */

/* When the first of the run's pods was ready; 0: none was. */
static int64_t first_ready_ms(const struct pod_row *pods, size_t count, const char *run)
{
	int64_t first = 0;

	for (size_t i = 0; i < count; i++)
		if (!strcmp(pods[i].run, run) && pods[i].ready_ms > 0 &&
		    (!first || pods[i].ready_ms < first))
			first = pods[i].ready_ms;
	return first;
}

/* Time left by the pace so far, before the first segment by the plan; below 0: unknown. */
static int64_t eta_by_pace(const struct run_row *run, int64_t began, int64_t now)
{
	int64_t left = run->total - run->rendered - run->cached - run->failed;

	if (left <= 0)
		return 0;
	if (began && run->rendered > 0)
		return (int64_t)((double)(now - began) / (double)run->rendered * (double)left);
	return run->planned_ms > 0 ? MAX(run->planned_ms - (now - run->started_ms), 0) : -1;
}

/* The time left that the run's client shows, from its view's copy. False: there is none. */
static bool eta_of_client(const struct cmd_context *ctx, const char *run, int64_t *out)
{
	CLEANUP(free_text) char *path = run_path(&ctx->runs, run, VIEW_FILE);
	struct view v = {0};

	if (!run_is_alive(&ctx->runs, run) || !view_get(&v, path))
		return false;
	*out = v.eta_ms;
	view_free(&v);
	return true;
}

/* Sets f->run and eta_ms, unless f has the previous pod and that is of the same run. */
static void set_run_and_eta(struct pod_facts *f, const struct cmd_context *ctx,
			    const struct pod_row *pods, size_t count, size_t at, int64_t now)
{
	if (!strcmp(f->run.id, pods[at].run))
		return;
	f->run = (struct run_row){0};
	f->eta_ms = -1;
	if (store_run(ctx->store, pods[at].run, &f->run, NULL) == 0 &&
	    run_sum_so_far(&ctx->runs, &f->run, now, NULL) == 0 &&
	    !eta_of_client(ctx, pods[at].run, &f->eta_ms))
		f->eta_ms = eta_by_pace(&f->run, first_ready_ms(pods, count, pods[at].run), now);
}

/* Sets *f, which may have the previous pod, to pod `at`. Returns whether the pod has a client. */
static bool set_facts(struct pod_facts *f, const struct cmd_context *ctx,
		      const struct pod_row *pods, size_t count, size_t at, int64_t now)
{
	struct run_pod_now is = run_pod_now(&ctx->runs, &pods[at], now);
	struct pod_facts next;

	set_run_and_eta(f, ctx, pods, count, at, now);
	pod_facts_of(&next, &pods[at], is.at_ms);
	next.run = f->run;
	next.eta_ms = f->eta_ms;
	next.state = run_pod_now_word(is);
	bool live = is.is == POD_NOW_AS_ROW && is.row == POD_ROW_LIVE;
	next.phase_or_state = live ? next.phase : next.state;
	format_text(next.gpu_and_spot, sizeof(next.gpu_and_spot), "%s%s", pods[at].gpu,
		    pods[at].spot ? " spot" : "");
	format_text(next.short_commit, sizeof(next.short_commit), "%.8s", f->run.commit_id);
	format_text(next.done, sizeof(next.done), "%lld/%lld",
		    (long long)(f->run.rendered + f->run.cached), (long long)f->run.total);
	*f = next;
	return is.is == POD_NOW_AS_ROW;
}

json_t *live_pods_list(const struct cmd_context *ctx, const struct pod_row *pods, size_t count,
		       int64_t now)
{
	struct pod_facts f = {.eta_ms = -1};
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		set_facts(&f, ctx, pods, count, i, now);
		json_array_append_new(list, columns_json(json_object(), &of_pods, POD_PS_JSON, &f));
	}
	return list;
}

size_t live_pods_table(const struct cmd_context *ctx, const struct pod_row *pods, size_t count,
		       int64_t now)
{
	struct rows rows = rows_begin(false, &of_pods, POD_PS, 0);
	struct pod_facts f = {.eta_ms = -1};
	size_t without_client = 0;

	for (size_t i = 0; i < count; i++) {
		without_client += !set_facts(&f, ctx, pods, count, i, now);
		rows_add(&rows, &f);
	}
	rows_end(&rows);
	return without_client;
}
