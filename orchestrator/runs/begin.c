/* begin.c - begins a new run: its id, its row, its folder, its lock. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/path.h"
#include "runs.h"
#include "segment_keys.h"

enum { LEDGER_ROOM_BYTES = 16 << 20, PER_SEGMENT_BYTES = 1024 };

static int room_for_ledger(const struct run *run, struct err *err)
{
	size_t segments = 0;
	int64_t room = path_free_bytes(run->runs->state_dir);

	run->setup.job_ops->segments(run->setup.job, &segments);
	int64_t wanted = LEDGER_ROOM_BYTES + (int64_t)segments * PER_SEGMENT_BYTES;
	if (room >= 0 && room < wanted)
		return err_set(err, ERR_LOCAL,
			       "%s: only %lld MB free, but the ledger needs %lld MB: free some "
			       "space; nothing was rented",
			       run->runs->state_dir, (long long)(room / 1000000),
			       (long long)(wanted / 1000000) + 1);
	return 0;
}

/* Refuses a path that the ledger would truncate: it would name another folder or job. */
static int fits_ledger(const char *what, const char *path, size_t room, struct err *err)
{
	if (strlen(path) < room)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s has a path of %zu bytes, more than the ledger's limit of %zu: move "
		       "it, or name another: %.*s...",
		       what, strlen(path), room - 1, utf8_fit(path, 200), path);
}

/* Takes the id that a queue has recorded for its requests, else a new one. */
static int name_run(struct run *run, const char *id, struct err *err)
{
	struct run_row same;

	if (!id[0])
		return run_new_id(run->runs, run->row.id, err);
	if (store_run(run->runs->store, id, &same, NULL) == 0)
		return err_set(err, ERR_BUG, "run %s of the queue has already started", id);
	COPY_TEXT(run->row.id, id);
	return 0;
}

static void fill_row(struct run *run, const struct run_want *want, size_t segments)
{
	const struct core_conf *conf = &run->setup.conf;
	struct run_row *r = &run->row;

	COPY_TEXT(r->job, want->job);
	COPY_TEXT(r->type, run->setup.job_ops->type);
	COPY_TEXT(r->config, want->config);
	COPY_TEXT(r->output, run->output_dir);
	COPY_TEXT(r->machine, run->machine);
	COPY_TEXT(r->commit_id, want->commit);
	COPY_TEXT(r->stage, want->stage ? want->stage : "");
	COPY_TEXT(r->part_of, want->stage ? want->part_of : "");
	COPY_TEXT(r->stage_input, want->stage ? want->stage_input : "");
	r->status = RUN_RUNNING;
	r->started_ms = clock_wall_ms();
	r->max_cost_microusd = conf->max_cost_microusd;
	r->ends_by_ms = conf->max_duration_ms ? r->started_ms + conf->max_duration_ms : 0;
	r->total = (int64_t)segments;
}

int run_begin(struct run *run, const struct run_want *want, struct err *err)
{
	size_t segments = 0;

	if (fits_ledger("burst.cfg", want->config, sizeof(run->row.config), err) < 0 ||
	    fits_ledger("the output folder", run->output_dir, sizeof(run->row.output), err) < 0 ||
	    room_for_ledger(run, err) < 0 || name_run(run, want->id, err) < 0)
		return -1;
	const struct segment *list = run->setup.job_ops->segments(run->setup.job, &segments);
	fill_row(run, want, segments);
	/* the ledger shows a running run from here on, so the engine handles signals and records
	 * the end */
	engine_hold_signals();
	if (run_take(run, RUN_CLIENT, err) < 0 ||
	    run_keys_write(NULL, run->dir, list, segments, err) < 0 ||
	    want->keep(want->ctx, run, err) < 0)
		return -1;
	if (want->reserve(want->ctx, run, err) == 0)
		return 0;
	if (err->kind == ERR_CAP) /* the run does not exist and leaves no trace */
		path_remove_tree(run->dir, NULL);
	return -1;
}
