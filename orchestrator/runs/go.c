/* go.c - drives a run's engine until its last pod is gone, and records how the run ended. */
#include "base/clock.h"
#include "impl.h"

size_t run_open_segments(const struct run *run)
{
	size_t count, open = 0;

	run->setup.job_ops->segments(run->setup.job, &count);
	for (size_t i = 0; i < count; i++)
		open += run->setup.results[i].state != SEGMENT_SAFE;
	return open;
}

int run_go(struct run *run, const struct run_watch *watch)
{
	struct engine_setup *s = &run->setup;

	s->progress = watch->progress;
	s->output = watch->output;
	s->ctx = watch->ctx;
	run->had_work = s->job && run_open_segments(run) > 0;
	struct engine *e = engine_new(s);
	int status = engine_run(e, &run->err);
	run->finished_well = engine_finished_well(e);
	run->unsaved_count = engine_unsaved_pods(e, &run->unsaved);
	if (watch->ended)
		watch->ended(watch->ctx, e);
	engine_free(e);
	return status;
}

/* Writes the end once, so that a reader never sees an end that may still change. Status 9 becomes
 * 1: a pod that may still bill belongs to the delivery, whose own run records it. */
void run_write_end(struct run *run, int status, const struct err *err)
{
	struct run_row *r = &run->row;
	struct err why = {0};

	r->status = status == 0 ? RUN_DONE : status > 128 ? RUN_INTERRUPTED : RUN_PARTIAL;
	COPY_TEXT(r->error_code, status ? err_kind_name(err->kind) : "");
	COPY_TEXT(r->error, status ? err->msg : "");
	r->exit_status = status == 9 ? 1 : status;
	if (!r->id[0])
		return;
	r->ended_ms = clock_wall_ms();
	engine_note_unfinished(run->runs->store, r->id, status != 0);
	if (store_put_run(run->runs->store, r, &why) < 0)
		runs_note(run->runs, LOG_ERROR, "cannot write the ledger: %s", why.msg);
}
