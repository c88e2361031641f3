/* query.c - reads a run's state from the ledger and the locks: its files, its client, pods that may
 * bill, how it ended. */
#include "runs.h"

#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/path.h"
#include "store/facts.h"
#include "store/pod_cost.h"

/* as in core/, for a pod that has ended itself */
enum { PAST_END_MS = 5 * 60 * 1000, SELF_END_MS = 10 * 1000 };

char *run_path(const struct runs *rs, const char *run, const char *name)
{
	return xasprintf("%s/runs/%s%s%s", rs->state_dir, run, name ? "/" : "", name ? name : "");
}

void runs_machine(const struct runs *rs, char machine[20])
{
	if (fact_get(rs->store, FACT_MACHINE, NULL, NULL, machine, 20))
		return;
	random_hex(machine, 8);
	fact_put(rs->store, FACT_MACHINE, NULL, NULL, machine, NULL);
}

int run_new_id(const struct runs *rs, char id[24], struct err *err)
{
	struct run_row same;
	char drawn[NAME_LEN + 1];

	do
		name_draw(drawn);
	while (store_run(rs->store, drawn, &same, err) == 0);
	if (err->kind != ERR_NOT_FOUND)
		return -1;
	err_clear(err);
	copy_text(id, 24, drawn);
	return 0;
}

bool run_is_alive(const struct runs *rs, const char *run)
{
	CLEANUP(free_text) char *path = run_path(rs, run, "lock");

	return path_is_locked(path, NULL);
}

/* An unreadable note may be a client's. */
bool run_has_client(const struct runs *rs, const char *run)
{
	CLEANUP(free_text) char *path = run_path(rs, run, "lock");
	CLEANUP(str_free) struct str note = STR_INIT;

	return path_is_locked(path, &note) &&
	       (!note.len || starts_with(str_text(&note), RUN_CLIENT " "));
}

struct run_pod_now run_pod_now(const struct runs *rs, const struct pod_row *pod, int64_t now)
{
	int64_t end = pod->hard_end_s * 1000;

	if (run_is_alive(rs, pod->run))
		return (struct run_pod_now){POD_NOW_AS_ROW, pod->state, now};
	if (end && now > end + PAST_END_MS)
		return (struct run_pod_now){POD_NOW_OVER, pod->state,
					    MAX(end + SELF_END_MS, pod->create_ms)};
	return (struct run_pod_now){pod->state == POD_ROW_LIVE ? POD_NOW_UNWATCHED : POD_NOW_AS_ROW,
				    pod->state, now};
}

const char *run_pod_now_word(struct run_pod_now now)
{
	switch (now.is) {
	case POD_NOW_AS_ROW: break;
	case POD_NOW_UNWATCHED: return "unwatched";
	case POD_NOW_OVER: return "over";
	}
	return pod_row_state_word(now.row);
}

int run_open_pods(const struct runs *rs, const char *run, size_t *count, struct err *err)
{
	struct pod_row *pods = NULL;

	if (store_pods(rs->store, run, true, &pods, count, err) < 0)
		return -1;
	free(pods);
	return 0;
}

char **run_pod_ids(const struct runs *rs, const char *provider)
{
	struct pod_row *pods = NULL;
	size_t count = 0, n = 0;

	if (rs->no_ledger || store_pods(rs->store, NULL, true, &pods, &count, NULL) < 0)
		return NULL;
	char **ids = xcalloc(count + 1, sizeof(*ids));
	for (size_t i = 0; i < count; i++)
		if (pods[i].id[0] && !strcmp(pods[i].provider, provider))
			ids[n++] = xstrdup(pods[i].id);
	free(pods);
	return ids;
}

/* Sets the status that a command which asks an ended run (`attach && publish`) returns: the
 * client's own. */
void run_end(struct run_row *run, enum run_status status)
{
	static const struct {
		enum run_status status;
		int exit_status;
	} ends[] = {{RUN_DONE, 0},
		    {RUN_PARTIAL, 1},
		    {RUN_INTERRUPTED, 128 + SIGTERM},
		    {RUN_UNRELEASED, 9}};

	run->status = status;
	run->exit_status = 1;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (ends[i].status == status)
			run->exit_status = ends[i].exit_status;
	run->detached = false;
	run->ended_ms = run->ended_ms ? run->ended_ms : clock_wall_ms();
}

enum run_status run_ended_as(const struct runs *rs, const struct run_row *run)
{
	return run->rendered + run->cached < run->total || engine_is_unfinished(rs->store, run->id)
		       ? RUN_PARTIAL
		       : RUN_DONE;
}

/* ---- sums of a run ---- */

static int count_segments(const struct runs *rs, struct run_row *run, struct err *err)
{
	struct segment_row *rows = NULL;
	size_t count = 0;

	if (store_segments(rs->store, run->id, &rows, &count, err) < 0)
		return -1;
	run->rendered = run->failed = 0;
	for (size_t i = 0; i < count; i++) {
		run->rendered += rows[i].state == SEGMENT_ROW_SAFE;
		run->failed += rows[i].state == SEGMENT_ROW_FAILED;
	}
	free(rows);
	return 0;
}

void run_clear_sums(struct run_row *run)
{
	run->billed_ms = run->compute_ms = run->wasted_ms = 0;
	run->cost_microusd = run->counted_microusd = run->cost_vendor_microusd = 0;
}

void run_add_pod(struct run_row *run, const struct pod_row *pod, int64_t now_ms)
{
	run->billed_ms += pod_row_billed_ms(pod, now_ms);
	run->compute_ms += pod->compute_ms;
	run->wasted_ms += pod->wasted_ms;
	run->cost_microusd += pod_row_cost(pod, now_ms);
	run->counted_microusd += pod_row_counted(pod, now_ms);
	run->cost_vendor_microusd += pod_row_vendor(pod);
}

int run_sum(const struct runs *rs, struct run_row *run, int64_t now_ms, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(rs->store, run->id, false, &pods, &count, err) < 0)
		return -1;
	run_clear_sums(run);
	for (size_t i = 0; i < count; i++)
		run_add_pod(run, &pods[i], now_ms);
	free(pods);
	return 0;
}

int run_sum_ended(const struct runs *rs, const char *id, struct err *err)
{
	struct run_row run;

	if (store_run(rs->store, id, &run, NULL) < 0 || run.status == RUN_RUNNING)
		return 0;
	return run_sum(rs, &run, clock_wall_ms(), err) < 0 ? -1
							   : store_put_run(rs->store, &run, err);
}

int run_so_far(const struct runs *rs, struct run_row *run, int64_t now_ms, struct err *err)
{
	bool running = run->status == RUN_RUNNING;

	if (!running && run->status != RUN_UNRELEASED)
		return 0;
	return running && count_segments(rs, run, err) < 0 ? -1 : run_sum(rs, run, now_ms, err);
}

void run_job_key(const char *config, const char *job, char key[RUN_JOB_KEY])
{
	CLEANUP(free_text) char *identity = xasprintf("%s\n%s", config, job);

	sha256_name(identity, key);
}
