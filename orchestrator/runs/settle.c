/* settle.c - runs of earlier clients: taken over, settled, resumed, and pods that pass from run
 * to run */
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/err.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "core/core.h"
#include "engine/image.h"
#include "engine/pooled.h"
#include "impl.h"
#include "runs.h"
#include "store/facts.h"
#include "store/pod_cost.h"

/* ---- write off: closes pods in the ledger whose provider cannot be reached ---- */

/* Closes a pod in the ledger whose provider cannot be reached, at the most it can have cost. */
static int run_write_off(const struct runs *rs, struct pod_row *pod, struct err *err)
{
	int64_t now_ms = clock_wall_ms(), end_ms = MIN(now_ms, pod->hard_end_s * 1000);

	pod->gone_ms = pod->create_ms ? MAX(end_ms, pod->create_ms) : now_ms;
	if (pod_row_is_unstarted(pod))
		pod->start_ms = MAX(pod->gone_ms - pod->run_ms, pod->queued_ms);
	pod_row_bill(pod, pod->gone_ms);
	pod->state = POD_ROW_GONE;
	COPY_TEXT(pod->error, "its provider could not be asked");
	return store_put_pod(rs->store, pod, err);
}

bool run_pod_is_out_of_reach(const struct runs *rs, const struct pod_row *pod)
{
	struct engine_provider account = {0};
	struct err why = {0};

	if (rs->open_account(rs->ctx, pod->provider, &account, &why) == 0) {
		account.ops->close(account.handle);
		return false;
	}
	return !run_is_alive(rs, pod->run);
}

/* The status of an unreleased run once its pods are gone. */
static enum run_status status_once_gone(const struct runs *rs, const struct run_row *run)
{
	return run->rendered + run->cached < run->total || engine_is_unfinished(rs->store, run->id)
		       ? RUN_PARTIAL
		       : RUN_DONE;
}

int run_write_off_unreleased(const struct runs *rs, struct pod_row *pod, struct err *err)
{
	struct run_row run;
	size_t count;

	if (run_write_off(rs, pod, err) < 0 || run_open_pods(rs, pod->run, &count, err) < 0)
		return -1;
	if (count || store_run(rs->store, pod->run, &run, NULL) < 0 || run.status != RUN_UNRELEASED)
		return 0;
	run_set_ended(&run, status_once_gone(rs, &run));
	COPY_TEXT(run.error,
		  "a pod counts as gone without confirmation: its provider could not be asked");
	return store_put_run(rs->store, &run, err);
}

/* ---- reads an old run's pods from the ledger so that another client can take them over ---- */

/* Remembers that the run rented there, and the latest hard end of its pods. */
static void note_provider(struct run *run, const struct pod_row *pod)
{
	int i = 0;

	while (i < run->rented_at_count && strcmp(run->rented_at[i].provider, pod->provider))
		i++;
	if (i == CORE_PROVIDERS_MAX)
		return;
	if (i == run->rented_at_count) {
		COPY_TEXT(run->rented_at[i].provider, pod->provider);
		run->rented_at_count++;
	}
	run->rented_at[i].last_end_s = MAX(run->rented_at[i].last_end_s, pod->hard_end_s);
}

/* Reads the pods to adopt. Those that are gone have used up a part of the cap; they are adopted,
 * too, if files that they finished may be on their volume only. */
static int read_pods(struct run *run, struct err *err)
{
	struct engine_setup *s = &run->setup;
	struct pod_row *pods = NULL;
	size_t count, open = 0;
	int64_t maybe = 0;

	if (store_pods(run->runs->store, run->row.id, false, &pods, &count, err) < 0)
		return -1;
	run_clear_sums(&run->row);
	for (size_t i = 0; i < count; i++) {
		struct pod_row pod = pods[i];
		bool over = pod_row_over(&pod);
		note_provider(run, &pod);
		if (!over || (pod.volume_safe && !s->conf.reap))
			pods[open++] = pod;
		if (!over)
			continue;
		run_add_pod(&run->row, &pod, clock_wall_ms());
		maybe += pod_row_may_have_cost(&pod);
	}
	if (s->conf.max_cost_microusd)
		s->conf.max_cost_microusd =
			MAX(s->conf.max_cost_microusd - run->row.cost_microusd - maybe, 1);
	run->adopted = pods;
	s->handed_over = run->row.detached;
	s->adopt = pods;
	s->adopt_count = open;
	return 0;
}

/* Closes a pod that ended itself long ago, if it ever existed. Its provider may be out of reach for
 * good. */
static int write_off_past_pod(struct run *run, struct pod_row *pod, const struct err *why,
			      struct err *err)
{
	struct core_conf *conf = &run->setup.conf;
	char when[32];

	if (run_write_off(run->runs, pod, err) < 0)
		return -1;
	runs_note(run->runs, LOG_WARN,
		  "pod %s of %s: %s; its hard end was %s, so it counts as gone: check the "
		  "provider's console",
		  pod_row_called(pod), pod->provider, why->msg,
		  clock_rfc3339(when, sizeof(when), pod->hard_end_s * 1000));
	run_add_pod(&run->row, pod, clock_wall_ms());
	if (conf->max_cost_microusd)
		conf->max_cost_microusd =
			MAX(conf->max_cost_microusd - pod_row_cost(pod, clock_wall_ms()), 1);
	return 0;
}

/* How providers answered their keys; each is asked once, however many pods it has. */
struct key_answers {
	bool asked[CORE_PROVIDERS_MAX];
	struct err told[CORE_PROVIDERS_MAX];
	int64_t now_ms[CORE_PROVIDERS_MAX]; /* by their clocks, which a refusal reports too */
};

/* Whether the key is refused and the pod's time is over by the provider's clock. */
static bool is_key_refused_and_past(struct run *run, const struct pod_row *pod,
				    struct key_answers *words, struct err *why)
{
	const struct engine_provider *provider = run_provider(run, pod->provider);
	ptrdiff_t i = provider - run->setup.providers;

	if (!words->asked[i]) {
		struct op_result result = {0};
		words->now_ms[i] = clock_wall_ms();
		caller_list(provider, NULL, OVERDUE_ASK_MS, &result, &words->now_ms[i],
			    &words->told[i]);
		op_result_free(&result);
		words->asked[i] = true;
	}
	*why = words->told[i];
	return why->kind == ERR_CREDENTIALS && pod_is_overdue(pod->hard_end_s, words->now_ms[i]);
}

/* Marks a provider as used. If the run may have left pods there, its list must be read. */
static void note_used_before(struct run *run, ptrdiff_t provider, int64_t last_end_s)
{
	bool in_doubt = run->row.status == RUN_RUNNING || run->row.status == RUN_UNRELEASED;

	run->setup.used_before[provider] = true;
	run->setup.used_lately[provider] = in_doubt && !pod_is_overdue(last_end_s, clock_wall_ms());
}

/* Requires an account for each provider with pods that may bill; opens others if possible. A create
 * carried out twice or late may have left a pod without a row. */
static int adopt_providers(struct run *run, struct err *err)
{
	size_t count = run->setup.adopt_count;
	struct key_answers words = {0};
	struct err why = {0};

	run->setup.adopt_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct pod_row *pod = &run->adopted[i];
		bool past = pod->state != POD_ROW_GONE &&
			    pod_is_overdue(pod->hard_end_s, clock_wall_ms());
		bool reached = run_open_account(run, pod->provider, &why) == 0;
		if (past && (!reached || is_key_refused_and_past(run, pod, &words, &why))) {
			if (write_off_past_pod(run, pod, &why, err) < 0)
				return -1;
			continue;
		}
		run->adopted[run->setup.adopt_count++] = *pod;
		if (reached)
			continue;
		*err = why;
		err_wrap(err, "pod %s", pod_row_called(pod));
		if (!run->setup.conf.reap)
			return -1;
		runs_note(run->runs, LOG_WARN, "%s",
			  err->msg); /* the others are released all the same */
		run->out_of_reach++;
	}
	for (int i = 0; i < run->rented_at_count; i++) {
		const char *provider = run->rented_at[i].provider;
		if (run_open_account(run, provider, &why) < 0) {
			runs_note(run->runs, LOG_WARN,
				  "%s: cannot check its account for a pod that run %s may have "
				  "left there: %s",
				  provider, run->row.id, why.msg);
			continue;
		}
		note_used_before(run, run_provider(run, provider) - run->setup.providers,
				 run->rented_at[i].last_end_s);
	}
	return 0;
}

/* Adopts only the pods of run->row, which is taken, with their accounts and their cost so far. A
 * pod past its hard end whose provider cannot be reached counts as gone. */
static int run_adopt(struct run *run, struct err *err)
{
	return read_pods(run, err) < 0 || adopt_providers(run, err) < 0 ? -1 : 0;
}

/* ---- settles runs whose client has died: releases their pods and closes their rows ---- */

/* Takes the run over. Returns 0, or 1 if its row is outdated: another command has settled it or is
 * settling it, or its state has changed. */
static int take_to_release(struct run *run, const struct run_row *judged, struct err *err)
{
	run->setup.conf.reap = true;
	run->setup.conf.lease_ms = 600000;
	run->row = *judged;
	if (run_lock_folder(run, "settled by process", err) < 0)
		return err->kind == ERR_BUSY ? 1 : -1;
	if (store_run(run->runs->store, judged->id, &run->row, err) < 0)
		return -1;
	if (run->row.status != judged->status || run->row.detached != judged->detached) {
		err_set(err, ERR_BUSY, "run %s: another client took it over", judged->id);
		return 1;
	}
	return run_adopt(run, err);
}

/* Passes the run's pods to the watch. */
static void report_unreleased(const struct run *run)
{
	size_t count = 0;
	struct pod_row *pods = run_pods(run, &count);

	if (run->runs->watch.unreleased)
		run->runs->watch.unreleased(run->runs->watch.ctx, pods, count);
	free(pods);
}

/* Drives the release of the run's pods, and adds their cost to its row. *gone: all are gone.
 * Returns -1 with *err if not. */
static int release_pods(struct run *run, bool *gone, struct err *err)
{
	struct core_summary s;

	*gone = !run->out_of_reach;
	if (run->setup.provider_count) {
		struct engine *e = engine_new(&run->setup);
		int exit_status = engine_run(e, err);
		core_summary(engine_core(e), clock_boot_ms(), &s);
		engine_add_sums(e, &s, &run->row);
		engine_free(e);
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
static void record_why_ended(struct run *run)
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

/* Releases the pods of a run that is locked, and writes its end. */
static int release_taken(struct run *run, enum run_status status, struct err *err)
{
	bool gone;
	int result = release_pods(run, &gone, err);

	if (!gone)
		report_unreleased(run);
	run_set_ended(&run->row, gone ? status : RUN_UNRELEASED);
	if (gone)
		record_why_ended(run);
	store_put_run(run->runs->store, &run->row, NULL);
	return result;
}

/* 0: the run's pods are gone; 1: it may not be released here (ERR_BUSY); -1: failed. */
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
 * work. If the provider does not answer, the next settle checks again. Without an account, our
 * clock decides. A provider that refuses the key still reports its time. */
static bool is_overdue_at_provider(const struct runs *rs, const char *provider, int64_t last_s)
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
static int64_t last_hard_end_s(const struct pod_row *pods, size_t count, const char *provider)
{
	int64_t last_s = 0;

	for (size_t i = 0; i < count; i++)
		if (!provider || !strcmp(pods[i].provider, provider))
			last_s = MAX(last_s, pods[i].hard_end_s);
	return last_s;
}

/* Whether no agent of the run works on: it is not detached, or the last hard end has passed. */
static bool may_be_settled(const struct runs *rs, const struct run_row *run)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(rs->store, run->id, true, &pods, &count, NULL) < 0)
		return !run->detached;
	bool left = reap_run(run->detached, last_hard_end_s(pods, count, NULL), clock_wall_ms());
	for (size_t i = 0; i < count && left && run->detached; i++)
		if (last_hard_end_s(pods, i, pods[i].provider) == 0) /* the first one there */
			left = is_overdue_at_provider(
				rs, pods[i].provider,
				last_hard_end_s(pods, count, pods[i].provider));
	free(pods);
	return left;
}

/* Releases the run and reports that. result: of the runs before; of several failures, *err keeps
 * the one that may cost money. Returns -1 if any failed. */
static int settle_one(const struct runs *rs, const struct run_row *run, enum run_status status,
		      int result, struct err *err)
{
	struct run_row now;
	struct err why = {0};

	int released = release_run(rs, run, status, &why);
	if (released <= 0 && rs->watch.settled && store_run(rs->store, run->id, &now, NULL) == 0)
		rs->watch.settled(rs->watch.ctx, &now, run->status);
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

bool runs_should_stop(int result, const struct err *err)
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
	for (size_t i = 0; i < count && !runs_should_stop(result, err); i++) {
		if (runs[i].status != RUN_UNRELEASED || (except && !strcmp(runs[i].id, except)) ||
		    run_is_alive(rs, runs[i].id))
			continue;
		runs_note(rs, LOG_NOTE,
			  "run %s: ended with a pod that may still be billing; "
			  "releasing it",
			  runs[i].id);
		result = settle_one(rs, &runs[i], status_once_gone(rs, &runs[i]), result, err);
	}
	free(runs);
	return result;
}

/* For a run whose pod was released after its end. If a client takes the run over meanwhile, it
 * writes the row itself. */
static int write_sums_of_ended(const struct runs *rs, const char *id, struct err *err)
{
	if (store_begin(rs->store, err) < 0)
		return -1;
	return store_end(rs->store, run_sum_ended(rs, id, err), err);
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
		return settle_one(rs, &run, status_once_gone(rs, &run), 0, err);
	if (run.status == RUN_RUNNING)
		return settle_one(rs, &run, RUN_INTERRUPTED, 0, err);
	return write_sums_of_ended(rs, id, err);
}

int runs_settle(const struct runs *rs, const char *except, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	/* do this first: the steps below must not retry its failures */
	int result = settle_unreleased(rs, except, err);

	if (runs_should_stop(result, err))
		return -1;
	if (store_runs(rs->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && !runs_should_stop(result, err); i++) {
		if (except && !strcmp(runs[i].id, except))
			continue;
		if (run_is_alive(rs, runs[i].id))
			continue;
		if (!may_be_settled(rs, &runs[i]))
			continue; /* its agents finish it; `burst attach` fetches the files */
		runs_note(rs, LOG_NOTE, "run %s: its client exited; releasing its pods",
			  runs[i].id);
		result = settle_one(rs, &runs[i], RUN_INTERRUPTED, result, err);
	}
	free(runs);
	return result;
}

/* ---- resumes a run of an earlier client: the same job, its pods, and what is done already ---- */

/* Compares keys with those at the run's begin: its pods hold results of that job. */
static int check_keys(struct run *run, struct err *err)
{
	CLEANUP(run_keys_free) struct run_keys *keys = NULL;
	size_t count = 0, changed = 0, first = 0;
	const struct segment *list = run->setup.job_ops->segments(run->setup.job, &count);

	if (run_keys_read(&keys, run->dir, err) < 0)
		return -1;
	for (size_t i = count; i-- > 0;)
		if (!run_keys_fit(keys, &list[i])) {
			first = i;
			changed++;
		}
	if (changed)
		return err_set(err, ERR_CONFIG,
			       "%zu of the job's segments changed since run %s began (%s first): "
			       "`burst cancel %s` ends it, "
			       "then `burst run` renders what is new",
			       changed, run->row.id, list[first].id, run->row.id);
	return run_keys_write(keys, run->dir, list, count, err);
}

/* The config is read anew. A pod that is up was opened to what it was rented for. */
static int check_setups(const struct run *run, struct err *err)
{
	const struct engine_setup *s = &run->setup;

	for (size_t i = 0; i < s->adopt_count; i++)
		if (!pod_row_over(&s->adopt[i]) &&
		    !engine_setup_fits(s->adopt[i].setup, s->job_ops->needs(s->job)))
			return err_set(err, ERR_CONFIG,
				       "the job's set-up changed since run %s began, and its pod "
				       "%s may reach this machine's network: `burst cancel %s` "
				       "ends it, then `burst run` renders what is left",
				       run->row.id, pod_row_called(&s->adopt[i]), run->row.id);
	return 0;
}

static int compare_row_id(const void *a, const void *b)
{
	return strcmp(((const struct segment_row *)a)->id, ((const struct segment_row *)b)->id);
}

static struct segment_row *row_of(struct segment_row *rows, size_t count,
				  const struct segment *segment)
{
	struct segment_row wanted = {0};

	COPY_TEXT(wanted.id, segment->id);
	return count ? bsearch(&wanted, rows, count, sizeof(*rows), compare_row_id) : NULL;
}

/* Lets the job recall its results from the rows. Reopens segments whose outputs are lost in the
 * ledger, too: this client may die before they are safe again. */
static int recall_outputs(struct run *run, struct segment_row *rows, size_t count, struct err *err)
{
	const struct job_ops *ops = run->setup.job_ops;
	struct segment_result *results = run->setup.results;
	size_t segments, again = 0;
	const struct segment *list = ops->segments(run->setup.job, &segments);

	for (size_t k = 0; k < segments; k++) {
		const struct segment_row *row = row_of(rows, count, &list[k]);
		if (!row || row->state != SEGMENT_ROW_SAFE || strcmp(row->key, list[k].key))
			continue;
		COPY_TEXT(results[k].attempt, row->attempt);
		COPY_TEXT(results[k].sha256, row->sha256);
		results[k].seconds = row->seconds;
		results[k].tries = row->tries;
	}
	if (ops->recall(run->setup.job, results, err) < 0)
		return -1;
	for (size_t k = 0; k < segments; k++) {
		struct segment_row *row = row_of(rows, count, &list[k]);
		if (!row || row->state != SEGMENT_ROW_SAFE || results[k].state == SEGMENT_SAFE)
			continue;
		row->state = SEGMENT_ROW_FAILED;
		COPY_TEXT(row->reason, "its outputs were changed or removed");
		again++;
		if (store_put_segments(run->runs->store, row, 1, err) < 0)
			return -1;
	}
	if (again)
		runs_note(run->runs, LOG_NOTE,
			  "%zu of the command's segments run again: their outputs were changed "
			  "or removed",
			  again);
	return 0;
}

/* Sets what is done already. anew: only what this run has rendered counts. */
static int recall_segments(struct run *run, bool anew, struct err *err)
{
	struct segment_row *rows = NULL;
	size_t count = 0, segments = 0;
	const struct segment *list = run->setup.job_ops->segments(run->setup.job, &segments);

	if (store_segments(run->runs->store, run->row.id, &rows, &count, err) < 0)
		return -1;
	if (count)
		qsort(rows, count, sizeof(*rows), compare_row_id);
	for (size_t k = 0; k < segments; k++)
		if (row_of(rows, count, &list[k])) /* what this same run rendered is not "cached" */
			run->setup.results[k].cached = false;
		else if (anew)
			run->setup.results[k] = (struct segment_result){0};
	run->setup.conf.canary = run->setup.conf.canary && !count;
	int status = run->setup.job_ops->recall ? recall_outputs(run, rows, count, err) : 0;
	free(rows);
	return status;
}

int run_resume(struct run *run, const struct run_row *row, const struct run_want *want,
	       struct err *err)
{
	run->row = *row;
	engine_block_signals();
	if (run_lock_folder(run, RUN_CLIENT, err) < 0 || check_keys(run, err) < 0 ||
	    want->keep(want->ctx, run, err) < 0 || run_adopt(run, err) < 0 ||
	    check_setups(run, err) < 0 || recall_segments(run, want->anew, err) < 0)
		return -1;
	run->row.status = RUN_RUNNING;
	run->row.ended_ms = 0;
	/* this client must keep its pods alive, and a later one settle them if it dies */
	run->row.detached = false;
	return want->reserve(want->ctx, run, err);
}

/* ---- pool ----
 * Passes pods from run to run: takes over offered pods, and runs the client that keeps pods until
 * then. */

enum {
	LOOK_MS = 100,
	FIRST_MS = 10 * 1000, /* for the pods of a run that has just ended */
};

/* ---- takeover ---- */

/* Copies the keys before the row changes, so that a run which owns a pod can always reach it. */
static int copy_keys(const struct runs *rs, const struct pod_row *pod, const char *to,
		     struct err *err)
{
	static const char *const kinds[] = {"key", "host"};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		CLEANUP(free_text) char *name = xasprintf("%s.%s", pod->attempt, kinds[i]);
		CLEANUP(free_text) char *from = run_path(rs, pod->run, name);
		CLEANUP(free_text) char *path = run_path(rs, to, name);
		CLEANUP(str_free) struct str text = STR_INIT;
		if (path_read(from, 65536, &text, err) < 0 ||
		    path_write(path, str_text(&text), text.len, 0600, err) < 0)
			return -1;
		explicit_bzero(text.s, text.len);
	}
	return 0;
}

/* Moves the pod to the run `to`, with its keys. Returns false, without its keys in that run's
 * folder, if the pod cannot be taken. */
static bool take_pod(const struct runs *rs, const char *to, const struct run_row *run, bool kept,
		     struct pod_row *pod, struct err *err)
{
	if (copy_keys(rs, pod, to, err) == 0 &&
	    pooled_take(rs->store, to, run, kept, clock_wall_ms(), pod, err) == 0)
		return true;
	CLEANUP(free_text) char *dir = run_path(rs, to, NULL);
	engine_drop_keys(dir, pod->attempt);
	return false;
}

/* Sorts the pod kept last first: older ones, which fewer runs need, then end sooner. */
static int compare_kept(const void *a, const void *b)
{
	int64_t x = ((const struct pod_row *)a)->kept_ms, y = ((const struct pod_row *)b)->kept_ms;

	return x > y ? -1 : x < y;
}

bool run_take_kept(struct run *run, const json_t *want, struct pod_row *pod)
{
	const struct runs *rs = run->runs;
	struct pod_row *pods = NULL;
	struct err err = {0};
	size_t count = 0;
	bool taken = false;

	if (store_pods(rs->store, NULL, true, &pods, &count, NULL) < 0)
		return false;
	if (count)
		qsort(pods, count, sizeof(*pods), compare_kept);
	for (size_t i = 0; i < count && !taken; i++) {
		/* this run may offer a pod while its other pods work */
		if (!strcmp(pods[i].run, run->row.id) ||
		    !pooled_fits(want, &pods[i], clock_wall_ms()))
			continue;
		*pod = pods[i];
		taken = take_pod(rs, run->row.id, NULL, false, pod, &err);
		if (!taken)
			runs_note(rs, LOG_DEBUG, "pod %s: not taken over: %s", pod_row_called(pod),
				  err.msg);
	}
	free(pods);
	return taken;
}

size_t run_kept_pods(const struct run *run, struct pod_row **out)
{
	const struct engine_setup *s = &run->setup;
	size_t count = 0, fit = 0;

	CLEANUP(json_decref)
	json_t *want =
		pooled_want(s, s->conf.max_cost_microusd ? s->conf.max_cost_microusd : INT64_MAX);
	*out = NULL;
	if (store_pods(run->runs->store, NULL, true, out, &count, NULL) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (pooled_fits(want, &(*out)[i], clock_wall_ms()))
			(*out)[fit++] = (*out)[i];
	if (fit)
		qsort(*out, fit, sizeof(**out), compare_kept);
	return fit;
}

/* Whether the queue of this config waits for such a pod: FACT_QUEUE_POD. */
static bool queue_waits_for(struct store *store, const char *config, const struct pod_row *pod)
{
	char key[SHA256_NAME], line[160];
	long long until_ms;
	int used = 0;

	sha256_name(config, key);
	return fact_get(store, FACT_QUEUE_POD, key, NULL, line, sizeof(line)) &&
	       sscanf(line, "%lld %n", &until_ms, &used) == 1 && clock_wall_ms() < until_ms &&
	       pooled_serves(pod->pool, line + used);
}

static bool is_wanted_by_queue(struct store *store, const struct pod_row *pod)
{
	struct request_row *rows = NULL;
	size_t count = 0;
	bool wanted = false;

	if (store_requests(store, NULL, true, &rows, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count && !wanted; i++)
		wanted = rows[i].state == REQUEST_PENDING &&
			 queue_waits_for(store, rows[i].config, pod);
	free(rows);
	return wanted;
}

bool runs_want_pod(const struct runs *rs, const struct pod_row *pod)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	bool wanted = false;

	if (store_runs(rs->store, NULL, true, 0, &runs, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count && !wanted; i++) {
		if (!strcmp(runs[i].id, pod->run))
			continue;
		CLEANUP(json_decref)
		json_t *want = jsonx_parse(runs[i].wants, strlen(runs[i].wants), NULL);
		wanted = pooled_fits(want, pod, clock_wall_ms()) && run_has_client(rs, runs[i].id);
	}
	free(runs);
	return wanted || is_wanted_by_queue(rs->store, pod);
}

/* ---- keeping ---- */

/* Takes the pods that the run `from` offers. Returns how many this run has taken so far, `had`
 * before. Writes its row with the first one. */
static int take_offered(struct run *run, const char *from, int had)
{
	const struct runs *rs = run->runs;
	struct pod_row *pods = NULL;
	struct err err = {0};
	size_t count = 0;

	if (store_pods(rs->store, from, true, &pods, &count, NULL) < 0)
		return had;
	for (size_t i = 0; i < count; i++) {
		if (!pooled_is_offered(&pods[i], clock_wall_ms()))
			continue;
		if (take_pod(rs, run->row.id, had ? NULL : &run->row, true, &pods[i], &err)) {
			had++;
			runs_note(rs, LOG_NOTE, "pod %s: kept", pod_row_called(&pods[i]));
		} else {
			runs_note(rs, LOG_WARN, "pod %s: not kept: %s", pod_row_called(&pods[i]),
				  err.msg);
		}
	}
	free(pods);
	return had;
}

/* When the last remaining pod is due (wall clock); 0: none is left; INT64_MAX: the ledger cannot be
 * read. Drops the keys of pods that another run has taken. */
static int64_t kept_until_ms(struct run *run)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	int64_t until_ms = 0;

	if (store_pods(run->runs->store, run->row.id, false, &pods, &count, NULL) < 0)
		return INT64_MAX;
	for (size_t i = 0; i < count; i++) {
		char attempt[ATTEMPT_MAX]; /* of the create, not of a part: pooled_part_name() */
		snprintf(attempt, sizeof(attempt), "%.*s", ATTEMPT_LEN, pods[i].attempt);
		if (pods[i].handed_to[0])
			engine_drop_keys(run->dir, attempt);
		else if (!pod_row_over(&pods[i]))
			until_ms = MAX(until_ms, pods[i].kept_until_ms);
	}
	free(pods);
	return until_ms;
}

/* Waits until no kept pod is left, its time is over, or a stop is requested. */
static void keep_until_over(struct run *run, const char *from, bool (*stop_requested)(void))
{
	int64_t began_ms = clock_boot_ms(), until_ms = 0;
	int had = 0;

	while (!stop_requested()) {
		if (clock_boot_ms() - began_ms < FIRST_MS)
			had = take_offered(run, from, had);
		else if (!had)
			return;
		until_ms = had ? kept_until_ms(run) : INT64_MAX;
		if (had && (!until_ms || clock_wall_ms() >= until_ms))
			return;
		poll(NULL, 0, LOOK_MS);
	}
}

/* Releases the pods that no run has taken, and writes the run's end. */
static int end_keeping(struct run *run, struct err *err)
{
	const struct runs *rs = run->runs;
	size_t open = 0;

	if (run_open_pods(rs, run->row.id, &open, err) < 0)
		return -1;
	if (open) { /* released as pods of a dead client: only this client kept them */
		struct run_row row = run->row;
		fd_close(run->lock);
		run->lock = -1;
		return run_release(rs, &row, RUN_DONE, err);
	}
	run_set_ended(&run->row, RUN_DONE);
	if (run_sum(rs, &run->row, clock_wall_ms(), err) < 0)
		return -1;
	return store_put_run(rs->store, &run->row, err);
}

int run_keep_pods(struct run *run, const char *from, bool (*stop_requested)(void), struct err *err)
{
	const struct runs *rs = run->runs;
	struct run_row of, *row = &run->row;

	if (store_run(rs->store, from, &of, err) < 0)
		return -1;
	if (run_new_id(rs, row->id, err) < 0)
		return -1;
	COPY_TEXT(row->job, of.job);
	COPY_TEXT(row->type, KEEP_RUN);
	COPY_TEXT(row->machine, run->machine);
	row->status = RUN_RUNNING;
	row->started_ms = clock_wall_ms();
	row->max_cost_microusd = of.max_cost_microusd;
	if (run_lock_folder(run, RUN_CLIENT, err) < 0)
		return -1;
	keep_until_over(run, of.id, stop_requested);
	if (store_run(rs->store, row->id, row, NULL) < 0) {
		path_remove_tree(run->dir, NULL);
		return 0; /* nothing was left to keep */
	}
	return end_keeping(run, err);
}
