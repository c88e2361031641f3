/* settle.c - settles runs whose client has died: releases their pods and closes their rows. */
#include <stdlib.h>

#include "base/clock.h"
#include "core/core.h"
#include "impl.h"

/* Takes the run over. Returns 0, or 1 if its row is outdated: another command has settled it or is
 * settling it, or its state has changed. */
static int take_to_release(struct run *run, const struct run_row *judged, struct err *err)
{
	run->setup.conf.reap = true;
	run->setup.conf.lease_ms = 600000;
	run->row = *judged;
	if (run_take(run, "settled by process", err) < 0)
		return err->kind == ERR_BUSY ? 1 : -1;
	if (store_run(run->runs->store, judged->id, &run->row, err) < 0)
		return -1;
	if (run->row.status != judged->status || run->row.detached != judged->detached) {
		err_set(err, ERR_BUSY, "run %s: another client took it over", judged->id);
		return 1;
	}
	return run_adopt(run, err);
}

static void say_unreleased(const struct run *run)
{
	size_t count = 0;
	struct pod_row *pods = run_pods(run, &count);

	if (run->runs->watch.unreleased)
		run->runs->watch.unreleased(run->runs->watch.ctx, pods, count);
	free(pods);
}

/* Drives the release of its pods. *gone: all of them are. */
static int release_pods(struct run *run, bool *gone, struct err *err)
{
	struct core_summary s;

	*gone = !run->out_of_reach;
	if (run->setup.provider_count) {
		struct engine *e = engine_new(&run->setup);
		int exit_status = engine_run(e, err);
		core_summary(engine_core(e), clock_boot_ms(), &s);
		engine_free(e);
		run->row.billed_ms += s.billed_ms;
		run->row.cost_microusd += s.cost_microusd;
		run->row.counted_microusd += s.counted_microusd;
		run->row.cost_vendor_microusd += s.vendor_microusd;
		run->row.compute_ms += s.compute_ms;
		run->row.wasted_ms += s.wasted_ms;
		/* even after a signal in between */
		*gone = *gone && s.status != RUN_UNRELEASED;
		if (exit_status && !run->out_of_reach)
			return -1;
	}
	return run->out_of_reach ? err_set(err, ERR_UNRELEASED,
					   "a pod's provider could not be asked: the pod may still "
					   "be billing")
				 : 0;
}

/* Records in its row why it ended. */
static void note_why(struct run *run)
{
	struct run_row *row = &run->row;
	bool unfinished = engine_is_unfinished(run->runs->store, row->id);

	if (!strcmp(row->error_code, err_kind_name(ERR_UNRELEASED))) {
		snprintf(row->error, sizeof(row->error),
			 "a pod could not be confirmed gone when the run ended; it is gone now%s",
			 unfinished ? "; the steps after the render are still to do: run `burst "
				      "resume`"
				    : "");
	} else if (!row->error[0]) {
		COPY_TEXT(row->error_code, "interrupted");
		COPY_TEXT(row->error, "its client ended before the run did");
	}
}

static int release_taken(struct run *run, enum run_status status, struct err *err)
{
	bool gone;
	int result = release_pods(run, &gone, err);

	if (!gone)
		say_unreleased(run);
	run_end(&run->row, gone ? status : RUN_UNRELEASED);
	if (gone)
		note_why(run);
	store_put_run(run->runs->store, &run->row, NULL);
	return result;
}

/* Returns 0 if its pods are gone, 1 if it may not be released here (ERR_BUSY). */
static int release_run(const struct runs *rs, const struct run_row *judged, enum run_status status,
		       struct err *err)
{
	struct run run;

	run_init(&run, rs);
	int result = take_to_release(&run, judged, err);
	if (result == 0)
		result = release_taken(&run, status, err);
	run_free(&run);
	return result;
}

int run_release(const struct runs *rs, const struct run_row *run, enum run_status status,
		struct err *err)
{
	return release_run(rs, run, status, err) ? -1 : 0;
}

/* Whether the run is over by its provider's clock. Our clock may be wrong, and then its pods are at
 * work. If the provider does not answer, the next settle checks again. Without a provider, our
 * clock decides. A provider that refuses the key still reports its time. */
static bool overdue_there(const struct runs *rs, const char *provider, int64_t last_s)
{
	char *no_ids[] = {NULL}; /* only the time is needed: a refused list has it too */
	struct op_result result = {0};
	struct err err = {0};
	struct run run;
	int64_t now_ms = clock_wall_ms();

	run_init(&run, rs);
	bool told = run_open_account(&run, provider, &err) < 0 ||
		    caller_list(&run.setup.providers[0], no_ids, OVERDUE_ASK_MS, &result, &now_ms,
				&err) == 0 ||
		    err.kind == ERR_CREDENTIALS;
	op_result_free(&result);
	run_free(&run);
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

static bool is_left(const struct runs *rs, const struct run_row *run)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(rs->store, run->id, true, &pods, &count, NULL) < 0)
		return !run->detached;
	bool left = reap_run(run->detached, last_end(pods, count, NULL), clock_wall_ms());
	for (size_t i = 0; i < count && left && run->detached; i++)
		if (last_end(pods, i, pods[i].provider) == 0) /* the first one there */
			left = overdue_there(rs, pods[i].provider,
					     last_end(pods, count, pods[i].provider));
	free(pods);
	return left;
}

static void settled(const struct runs *rs, const struct run_row *now, enum run_status was)
{
	if (rs->watch.settled)
		rs->watch.settled(rs->watch.ctx, now, was);
}

/* Of several failures, reports the one that may cost money. */
static int settle_one(const struct runs *rs, const struct run_row *run, enum run_status status,
		      int result, struct err *err)
{
	struct run_row now;
	struct err why = {0};

	int released = release_run(rs, run, status, &why);
	if (released <= 0 && store_run(rs->store, run->id, &now, NULL) == 0)
		settled(rs, &now, run->status);
	if (released == 0)
		runs_note(rs, LOG_NOTE, "run %s: all pods released", run->id);
	if (released > 0)
		runs_note(rs, LOG_NOTE, "run %s: another client handles it", run->id);
	if (released >= 0)
		return result;
	if (result == 0 || why.kind == ERR_UNRELEASED)
		*err = why;
	return -1;
}

bool runs_wants_out(int result, const struct err *err)
{
	return result < 0 && err->kind == ERR_UNRELEASED && err->signal;
}

/* Settles runs that ended without proof for a pod: exit 9. */
static int settle_unreleased(const struct runs *rs, const char *except, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	int result = 0;

	/* not by open rows: the unproven pod may have no row */
	if (store_runs(rs->store, NULL, false, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && !runs_wants_out(result, err); i++) {
		if (runs[i].status != RUN_UNRELEASED || (except && !strcmp(runs[i].id, except)) ||
		    run_is_alive(rs, runs[i].id))
			continue;
		runs_note(rs, LOG_NOTE,
			  "run %s: ended with a pod that may still be billing; "
			  "releasing it",
			  runs[i].id);
		result = settle_one(rs, &runs[i], run_ended_as(rs, &runs[i]), result, err);
	}
	free(runs);
	return result;
}

/* Sums up a run whose pod was released after it ended. If a client takes the run over meanwhile, it
 * writes the row itself. */
static int sum_up(const struct runs *rs, const char *id, struct err *err)
{
	if (store_begin(rs->store, err) < 0)
		return -1;
	if (run_sum_ended(rs, id, err) < 0) {
		store_rollback(rs->store);
		return -1;
	}
	return store_commit(rs->store, err);
}

int run_settle(const struct runs *rs, const char *id, struct err *err)
{
	struct run_row run;
	size_t count;

	if (store_run(rs->store, id, &run, err) < 0 || run_open_pods(rs, run.id, &count, err) < 0)
		return -1;
	if (count || run_is_alive(rs, run.id))
		return 0;
	if (run.status == RUN_UNRELEASED)
		return settle_one(rs, &run, run_ended_as(rs, &run), 0, err);
	if (run.status == RUN_RUNNING)
		return settle_one(rs, &run, RUN_INTERRUPTED, 0, err);
	return sum_up(rs, id, err);
}

int runs_settle(const struct runs *rs, const char *except, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	/* do this first: the steps below must not retry its failures */
	int result = settle_unreleased(rs, except, err);

	if (runs_wants_out(result, err))
		return -1;
	if (store_runs(rs->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && !runs_wants_out(result, err); i++) {
		if (except && !strcmp(runs[i].id, except))
			continue;
		if (run_is_alive(rs, runs[i].id))
			continue;
		if (!is_left(rs, &runs[i]))
			continue; /* its agents finish it; `burst attach` fetches the files */
		runs_note(rs, LOG_NOTE, "run %s: its client exited; releasing its pods",
			  runs[i].id);
		result = settle_one(rs, &runs[i], RUN_INTERRUPTED, result, err);
	}
	free(runs);
	return result;
}
