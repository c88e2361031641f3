/* settle.c - settles runs whose client has died: releases their pods and closes their rows. */
#include "settle.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/reap.h"
#include "notify.h"
#include "report.h"
#include "find_run.h"
#include "takeover.h"

/* Takes the run over. 0: done. 1: its row was read long ago, and meanwhile another command has
 * settled it, is settling it, or its state has changed. */
static int take_to_release(struct launch *l, const struct run_row *judged, struct err *err)
{
	l->run.setup.conf.reap = true;
	l->run.setup.conf.lease_ms = 600000;
	l->run.row = *judged;
	if (run_take(&l->run, "settled by process", err) < 0)
		return err->kind == ERR_BUSY ? 1 : -1;
	if (store_run(l->ctx->store, judged->id, &l->run.row, err) < 0)
		return -1;
	if (l->run.row.status != judged->status || l->run.row.detached != judged->detached) {
		err_set(err, ERR_BUSY, "run %s: another client took it over", judged->id);
		return 1;
	}
	return takeover_pods(l, err);
}

static void say_unreleased(const struct launch *l)
{
	size_t count = 0;
	struct pod_row *pods = run_pods(&l->run, &count);

	report_unreleased(pods, count);
	free(pods);
}

/* 0: its pods are gone; 1: it is not ours to release (ERR_BUSY). */
static int release_run(struct cmd_context *ctx, const struct run_row *run, enum run_status status,
		       struct err *err)
{
	struct launch l;
	bool gone = true;

	launch_init(&l, ctx);
	int result = take_to_release(&l, run, err);
	if (result) {
		launch_free(&l);
		return result;
	}
	if (l.run.setup.provider_count) {
		struct engine *e = engine_new(&l.run.setup);
		int exit_status = engine_run(e, err);
		struct core_summary s;
		core_summary(engine_core(e), clock_boot_ms(), &s);
		l.run.row.billed_ms += s.billed_ms;
		l.run.row.cost_microusd += s.cost_microusd;
		l.run.row.compute_ms += s.compute_ms;
		l.run.row.wasted_ms += s.wasted_ms;
		result = exit_status ? -1 : 0;
		gone = s.status != RUN_UNRELEASED; /* also when a signal came in between */
		engine_free(e);
	}
	if (l.run.out_of_reach) {
		gone = false;
		result = err_set(err, ERR_UNRELEASED,
				 "a pod's provider could not be asked: the pod may still be "
				 "billing");
	}
	if (!gone)
		say_unreleased(&l);
	run_end(&l.run.row, gone ? status : RUN_UNRELEASED);
	if (gone && !strcmp(l.run.row.error_code, err_kind_name(ERR_UNRELEASED))) {
		snprintf(l.run.row.error, sizeof(l.run.row.error),
			 "a pod could not be confirmed gone when the run ended; it is gone now%s",
			 engine_is_unfinished(ctx->store, l.run.row.id)
				 ? "; the steps after the render are still to do: run `burst "
				   "resume`"
				 : "");
	} else if (gone && !l.run.row.error[0]) {
		COPY_TEXT(l.run.row.error_code, "interrupted");
		COPY_TEXT(l.run.row.error, "its client ended before the run did");
	}
	store_put_run(ctx->store, &l.run.row, NULL);
	launch_free(&l);
	return result;
}

int settle_release(struct cmd_context *ctx, const struct run_row *run, enum run_status status,
		   struct err *err)
{
	return release_run(ctx, run, status, err) ? -1 : 0;
}

/* By its provider's clock: ours, by which the run is over, may be wrong, and then its pods are at
 * work. A provider that does not answer is asked the next time; without a provider, our clock must
 * do. A provider that refuses the key tells the time all the same. */
static bool overdue_there(struct cmd_context *ctx, const char *provider, int64_t last_s)
{
	char *no_ids[] = {NULL}; /* only the time is wanted: a refused list tells it, too */
	struct op_result result = {0};
	struct err err = {0};
	struct launch l;
	int64_t now_ms = clock_wall_ms();

	launch_init(&l, ctx);
	bool told = run_open_account(&l.run, provider, &err) < 0 ||
		    caller_list(&l.run.setup.providers[0], no_ids, OVERDUE_ASK_MS, &result, &now_ms,
				&err) == 0 ||
		    err.kind == ERR_CREDENTIALS;
	op_result_free(&result);
	launch_free(&l);
	return told && pod_is_overdue(last_s, now_ms);
}

/* The latest hard end of the pods there; provider NULL: of all. */
static int64_t last_end(const struct pod_row *pods, size_t count, const char *provider)
{
	int64_t last_s = 0;

	for (size_t i = 0; i < count; i++)
		if (!provider || !strcmp(pods[i].provider, provider))
			last_s = MAX(last_s, pods[i].hard_end_s);
	return last_s;
}

static bool is_left(struct cmd_context *ctx, const struct run_row *run)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(ctx->store, run->id, true, &pods, &count, NULL) < 0)
		return !run->detached;
	bool left = reap_run(run->detached, last_end(pods, count, NULL), clock_wall_ms());
	for (size_t i = 0; i < count && left && run->detached; i++)
		if (last_end(pods, i, pods[i].provider) == 0) /* the first one there */
			left = overdue_there(ctx, pods[i].provider,
					     last_end(pods, count, pods[i].provider));
	free(pods);
	return left;
}

/* Of several that went wrong the one that may cost money is told. */
static int settle_one(struct cmd_context *ctx, const struct run_row *run, enum run_status status,
		      int result, struct err *err)
{
	struct run_row now;
	struct err why = {0};

	int released = release_run(ctx, run, status, &why);
	if (released <= 0 && store_run(ctx->store, run->id, &now, NULL) == 0)
		notify_settled(ctx, &now, run->status);
	if (released == 0)
		log_line(LOG_NOTE, "run %s: all pods released", run->id);
	if (released > 0)
		log_line(LOG_NOTE, "run %s: another client handles it", run->id);
	if (released >= 0)
		return result;
	if (result == 0 || why.kind == ERR_UNRELEASED)
		*err = why;
	return -1;
}

bool settle_wants_out(int result, const struct err *err)
{
	return result < 0 && err->kind == ERR_UNRELEASED && err->signal;
}

/* Runs that ended without being sure of a pod: exit 9. */
static int settle_unreleased(struct cmd_context *ctx, const char *except, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	int result = 0;

	if (store_pods(ctx->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && !settle_wants_out(result, err); i++) {
		struct run_row run;
		bool seen = except && !strcmp(pods[i].run, except);
		for (size_t k = 0; k < i && !seen; k++)
			seen = !strcmp(pods[k].run, pods[i].run);
		if (seen || store_run(ctx->store, pods[i].run, &run, NULL) < 0 ||
		    run.status != RUN_UNRELEASED || run_is_alive(&ctx->runs, run.id))
			continue;
		log_line(LOG_NOTE,
			 "run %s: ended with a pod that may still be billing; "
			 "releasing it",
			 run.id);
		result = settle_one(ctx, &run, run_ended_as(&ctx->runs, &run), result, err);
	}
	free(pods);
	return result;
}

/* A pod of it was released after the run had ended. A client that takes the run over meanwhile
 * writes its row itself. */
static int sum_up(struct cmd_context *ctx, const char *id, struct err *err)
{
	struct run_row run;

	if (store_begin(ctx->store, err) < 0)
		return -1;
	bool write = store_run(ctx->store, id, &run, err) == 0 && run.status != RUN_RUNNING;
	if (write && (report_sum(ctx->store, &run, clock_wall_ms(), err) < 0 ||
		      store_put_run(ctx->store, &run, err) < 0)) {
		store_rollback(ctx->store);
		return -1;
	}
	return store_commit(ctx->store, err);
}

int settle_run(struct cmd_context *ctx, const char *id, struct err *err)
{
	struct run_row run;
	size_t count;

	if (store_run(ctx->store, id, &run, err) < 0 ||
	    run_open_pods(&ctx->runs, run.id, &count, err) < 0)
		return -1;
	if (count || run_is_alive(&ctx->runs, run.id))
		return 0;
	if (run.status == RUN_UNRELEASED)
		return settle_one(ctx, &run, run_ended_as(&ctx->runs, &run), 0, err);
	if (run.status == RUN_RUNNING)
		return settle_one(ctx, &run, RUN_INTERRUPTED, 0, err);
	return sum_up(ctx, id, err);
}

int settle_runs(struct cmd_context *ctx, const char *except, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	/* first: what fails below is not to be tried twice */
	int result = settle_unreleased(ctx, except, err);

	if (settle_wants_out(result, err))
		return -1;
	if (store_runs(ctx->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && !settle_wants_out(result, err); i++) {
		if (except && !strcmp(runs[i].id, except))
			continue;
		if (run_is_alive(&ctx->runs, runs[i].id))
			continue;
		if (!is_left(ctx, &runs[i]))
			continue; /* its agents finish it; `burst attach` brings the files home */
		log_line(LOG_NOTE, "run %s: its client exited; releasing its pods", runs[i].id);
		result = settle_one(ctx, &runs[i], RUN_INTERRUPTED, result, err);
	}
	free(runs);
	return result;
}
