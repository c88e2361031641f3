/* resume.c - resumes a run of an earlier client: the same job, its pods, and what is done already.
 */
#include <stdlib.h>

#include "engine/image.h"
#include "impl.h"
#include "segment_keys.h"

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

static int by_row_id(const void *a, const void *b)
{
	return strcmp(((const struct segment_row *)a)->id, ((const struct segment_row *)b)->id);
}

static struct segment_row *row_of(struct segment_row *rows, size_t count,
				  const struct segment *segment)
{
	struct segment_row wanted = {0};

	COPY_TEXT(wanted.id, segment->id);
	return count ? bsearch(&wanted, rows, count, sizeof(*rows), by_row_id) : NULL;
}

/* Reopens segments in the ledger too: this client may die before they are safe again. */
static int recall(struct run *run, struct segment_row *rows, size_t count, struct err *err)
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

static int recall_segments(struct run *run, bool anew, struct err *err)
{
	struct segment_row *rows = NULL;
	size_t count = 0, segments = 0;
	const struct segment *list = run->setup.job_ops->segments(run->setup.job, &segments);

	if (store_segments(run->runs->store, run->row.id, &rows, &count, err) < 0)
		return -1;
	if (count)
		qsort(rows, count, sizeof(*rows), by_row_id);
	for (size_t k = 0; k < segments; k++)
		if (row_of(rows, count, &list[k])) /* what this same run rendered is not "cached" */
			run->setup.results[k].cached = false;
		else if (anew)
			run->setup.results[k] = (struct segment_result){0};
	run->setup.conf.canary = run->setup.conf.canary && !count;
	int status = run->setup.job_ops->recall ? recall(run, rows, count, err) : 0;
	free(rows);
	return status;
}

int run_resume(struct run *run, const struct run_row *row, const struct run_want *want,
	       struct err *err)
{
	run->row = *row;
	engine_hold_signals();
	if (run_take(run, RUN_CLIENT, err) < 0 || check_keys(run, err) < 0 ||
	    want->keep(want->ctx, run, err) < 0 || run_adopt(run, err) < 0 ||
	    check_setups(run, err) < 0 || recall_segments(run, want->anew, err) < 0)
		return -1;
	run->row.status = RUN_RUNNING;
	run->row.ended_ms = 0;
	/* this client must keep its pods alive, and a later one settle them if it dies */
	run->row.detached = false;
	return want->reserve(want->ctx, run, err);
}
