/* pool.c - passes pods from run to run: takes over offered pods, and runs the client that keeps
 * pods until then. */
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/path.h"
#include "engine/kept.h"
#include "impl.h"

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

/* Returns false, without its keys in this run's folder, if the pod cannot be taken. */
static bool take(const struct runs *rs, const char *to, const struct run_row *run, bool kept,
		 struct pod_row *pod, struct err *err)
{
	if (copy_keys(rs, pod, to, err) == 0 &&
	    kept_take(rs->store, to, run, kept, clock_wall_ms(), pod, err) == 0)
		return true;
	CLEANUP(free_text) char *dir = run_path(rs, to, NULL);
	engine_drop_keys(dir, pod->attempt);
	return false;
}

/* Sorts the pod kept last first: older ones, which fewer runs need, then end sooner. */
static int by_kept(const void *a, const void *b)
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
		qsort(pods, count, sizeof(*pods), by_kept);
	for (size_t i = 0; i < count && !taken; i++) {
		/* this run may offer a pod while its other pods work */
		if (!strcmp(pods[i].run, run->row.id) ||
		    !kept_fits(want, &pods[i], clock_wall_ms()))
			continue;
		*pod = pods[i];
		taken = take(rs, run->row.id, NULL, false, pod, &err);
		if (!taken)
			runs_note(rs, LOG_DEBUG, "pod %s: not taken over: %s", pod_row_called(pod),
				  err.msg);
	}
	free(pods);
	return taken;
}

int run_kept_pods(const struct run *run)
{
	const struct engine_setup *s = &run->setup;
	struct pod_row *pods = NULL;
	size_t count = 0;
	int fit = 0;

	CLEANUP(json_decref)
	json_t *want =
		kept_want(s, s->conf.max_cost_microusd ? s->conf.max_cost_microusd : INT64_MAX);
	if (store_pods(run->runs->store, NULL, true, &pods, &count, NULL) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		fit += kept_fits(want, &pods[i], clock_wall_ms());
	free(pods);
	return fit;
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
		wanted = kept_fits(want, pod, clock_wall_ms()) && run_has_client(rs, runs[i].id);
	}
	free(runs);
	return wanted;
}

/* ---- keeping ---- */

/* Returns how many it has taken so far. Writes the run's row with the first one. */
static int take_offered(struct run *run, const char *from, int had)
{
	const struct runs *rs = run->runs;
	struct pod_row *pods = NULL;
	struct err err = {0};
	size_t count = 0;

	if (store_pods(rs->store, from, true, &pods, &count, NULL) < 0)
		return had;
	for (size_t i = 0; i < count; i++) {
		if (!kept_is_offered(&pods[i], clock_wall_ms()))
			continue;
		if (take(rs, run->row.id, had ? NULL : &run->row, true, &pods[i], &err)) {
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

/* When the last remaining pod is due; 0: none. Drops the keys of pods that another run has taken.
 */
static int64_t kept_until_ms(struct run *run)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	int64_t until_ms = 0;

	if (store_pods(run->runs->store, run->row.id, false, &pods, &count, NULL) < 0)
		return INT64_MAX;
	for (size_t i = 0; i < count; i++) {
		char attempt[ATTEMPT_MAX]; /* of the create, not of a part: kept_part() */
		snprintf(attempt, sizeof(attempt), "%.*s", ATTEMPT_LEN, pods[i].attempt);
		if (pods[i].handed_to[0])
			engine_drop_keys(run->dir, attempt);
		else if (!pod_row_over(&pods[i]))
			until_ms = MAX(until_ms, pods[i].kept_until_ms);
	}
	free(pods);
	return until_ms;
}

static void watch(struct run *run, const char *from, bool (*stop_requested)(void))
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

static int end(struct run *run, struct err *err)
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
	run_end(&run->row, RUN_DONE);
	if (run_sum(rs, &run->row, clock_wall_ms(), err) < 0)
		return -1;
	return store_put_run(rs->store, &run->row, err);
}

int run_keep(struct run *run, const char *from, bool (*stop_requested)(void), struct err *err)
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
	if (run_take(run, RUN_CLIENT, err) < 0)
		return -1;
	watch(run, of.id, stop_requested);
	if (store_run(rs->store, row->id, row, NULL) < 0) {
		path_remove_tree(run->dir, NULL);
		return 0; /* nothing was left to keep */
	}
	return end(run, err);
}
