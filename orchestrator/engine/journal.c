/* journal.c - writes to the ledger what a run does. */
#include "journal.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "handed.h"
#include "impl.h"
#include "past.h"
#include "pod_rows.h"
#include "post.h"
#include "reported.h"

struct journal {
	bool unwritten; /* of the ledger; it is logged */
	int replans;    /* of this client, as the ledger has it */
	/* files in place that the ledger does not have yet, and their segments */
	struct segment_row *rows;
	uint32_t *segments;
	size_t count, row_cap, segment_cap;
};

struct journal *journal_new(void)
{
	return xcalloc(1, sizeof(struct journal));
}

void journal_free(struct journal *j)
{
	free(j->rows);
	free(j->segments);
	free(j);
}

/* Logs the reason once. The run cannot continue without a ledger. */
static void unwritten(struct engine *e, struct err *err)
{
	struct event ev = {.type = EV_FAULT};

	engine_log(e, e->journal->unwritten ? LOG_DEBUG : LOG_ERROR, "cannot write the ledger: %s",
		   err->msg);
	e->journal->unwritten = true;
	err->kind = ERR_LOCAL;
	post(e, &ev, err);
}

/* Logged once by its name and once by its id. */
static void log_unsaved(struct engine *e, int pod, const struct pod_row *row)
{
	struct saving *s = &e->pods[pod].saving;

	if (!strcmp(s->logged_name, pod_called(e, pod)))
		return;
	COPY_TEXT(s->logged_name, pod_called(e, pod));
	engine_log(e, LOG_ERROR,
		   "pod %s of %s continues without the ledger, in this client's "
		   "memory only",
		   s->logged_name, row->provider);
}

void journal_pod(struct engine *e, int pod)
{
	struct pod_row row = engine_pod_row(e, pod);
	struct err err = {0};

	int put = 0;

	if (e->setup->sweeps) /* the rows belong to other runs */
		return;
	if (handed_put(e, pod, &row, &err, &put))
		return;
	e->pods[pod].saving.failed = put < 0;
	if (!e->pods[pod].saving.failed) {
		e->journal->unwritten = false;
		return;
	}
	unwritten(e, &err);
	if (!pod_row_over(&row))
		log_unsaved(e, pod, &row);
}

size_t engine_unsaved_pods(const struct engine *e, struct pod_row **out)
{
	struct pod_row *rows = xcalloc((size_t)e->pod_count + 1, sizeof(*rows));
	size_t count = 0;

	for (int i = 0; i < e->pod_count; i++)
		if (e->pods[i].saving.failed)
			rows[count++] = engine_pod_row(e, i);
	*out = rows;
	return count;
}

void journal_run(struct engine *e)
{
	struct err err = {0};

	if (store_put_run(e->setup->store, e->setup->run, &err) < 0)
		engine_log(e, e->journal->unwritten ? LOG_DEBUG : LOG_ERROR,
			   "cannot write the ledger: %s", err.msg);
}

void journal_replans(struct engine *e)
{
	struct run_row *run = e->setup->run;

	if (e->journal->replans == core_replans(e->core))
		return;
	while (e->journal->replans < core_replans(e->core)) {
		size_t at = strlen(run->replanned);
		snprintf(run->replanned + at, sizeof(run->replanned) - at, "%s%s", at ? "\n" : "",
			 core_replan_text(e->core, e->journal->replans++));
		run->replans++;
	}
	journal_run(e);
}

/* Best effort: a run does not depend on this row. An adopted pod has no offer any more. */
void journal_bad_host(struct engine *e, int pod, const char *why)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct err err = {0};

	if (p->rental.offer.id[0] &&
	    past_bad_pod(e->setup->store, &p->rental.offer, p->rental.view.host, why,
			 pod_rows_wall_ms(p->rental.create_at), clock_wall_ms(), &err) < 0)
		engine_log(e, LOG_WARN,
			   "pod %s: not recorded in the ledger that it was given "
			   "up: %s",
			   pod_called(e, pod), err.msg);
}

void journal_good_host(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	if (p->rental.offer.id[0])
		past_clear(e->setup->store, &p->rental.offer, NULL);
}

void journal_safe(struct engine *e, uint32_t segment, bool suspect)
{
	const struct outputs *s = &e->outfiles.of[segment];
	const struct core_pod *p = core_pod_at(e->core, s->pod);
	const struct segment_result *result = &e->setup->results[segment];

	GROW(e->journal->rows, e->journal->count, e->journal->row_cap);
	GROW(e->journal->segments, e->journal->count, e->journal->segment_cap);
	struct segment_row *row = &e->journal->rows[e->journal->count];
	*row = reported_row(e->setup->run->id, &e->work.segments[segment], p->rental.attempt,
			    s->count ? s->files[0].name : NULL, result);
	row->suspect = suspect;
	e->journal->segments[e->journal->count++] = segment;
}

void journal_flush(struct engine *e)
{
	struct err err = {0};

	if (!e->journal->count)
		return;
	if (store_put_segments(e->setup->store, e->journal->rows, e->journal->count, &err) < 0) {
		/* the files are in place and in the manifest: a later run finds them there */
		unwritten(e, &err);
	}
	for (size_t i = 0; i < e->journal->count; i++) {
		struct event ev = {.type = EV_LOCAL,
				   .segment = e->journal->segments[i],
				   .pod = e->outfiles.of[e->journal->segments[i]].pod};
		post(e, &ev, NULL);
	}
	e->journal->count = 0;
}
