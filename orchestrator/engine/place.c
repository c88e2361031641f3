/* place.c - records fetched files and renames them into place. */
#include "place.h"

#include <stdlib.h>

#include "base/err.h"
#include "impl.h"
#include "journal.h"
#include "outfiles.h"
#include "post.h"

enum { KEEP_AT_ONCE = 256 };

/* The file of a segment of speech. */
struct keeping {
	struct engine *e;
	uint32_t segment;
	bool suspect;
	struct receive *list[1];
	size_t count;
	struct segment_result result;
	struct err err;
};

int place_verified(const struct job_ops *ops, struct job *job, size_t index,
		   const struct segment_result *results, struct receive **list, size_t count,
		   struct err *err)
{
	if (ops->record(job, index, results, count, err) < 0 ||
	    receive_keep_all(list, count, err) < 0)
		return -1;
	if (ops->kept)
		ops->kept(job, index, &results[0]);
	return 0;
}

static void work_keep(void *arg)
{
	struct keeping *k = arg;
	const struct engine_setup *setup = k->e->setup;

	k->result.state = SEGMENT_SAFE;
	if (k->count)
		place_verified(setup->job_ops, setup->job, k->segment, &k->result, k->list,
			       k->count, &k->err);
}

static void kept(void *arg)
{
	struct keeping *k = arg;
	struct engine *e = k->e;

	for (size_t i = 0; i < k->count; i++)
		receive_drop(k->list[i], false);
	if (k->err.kind) {
		struct event ev = {.type = EV_FETCH_FAILED,
				   .pod = e->outfiles.of[k->segment].pod,
				   .segment = k->segment};
		if (k->err.kind != ERR_JOB)
			k->err.kind = ERR_LOCAL;
		outfiles_failed(e, k->segment, &k->err);
		post(e, &ev, &k->err);
	} else {
		e->setup->results[k->segment] = k->result;
		journal_safe(e, k->segment, k->suspect);
		checkpoint_done(e, k->segment);
	}
	free(k);
}

static void made_by(const struct engine *e, uint32_t segment, int pod, struct segment_result *r)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	r->tries = core_seg_tries(e->core, segment) + 1;
	COPY_TEXT(r->run, e->setup->run->id);
	COPY_TEXT(r->provider, e->setup->providers[p->rental.provider].ops->name);
	COPY_TEXT(r->gpu,
		  e->pods[pod].workers.gpu[0] ? e->pods[pod].workers.gpu : p->rental.offer.gpu);
	COPY_TEXT(r->attempt, p->rental.attempt);
	COPY_TEXT(r->batch, e->outfiles.of[segment].batch);
}

/* The file that stands for all of its segment; NULL: it has none. */
static const struct outfile *first_file(const struct outputs *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->files[i].pod == s->pod)
			return &s->files[i];
	return NULL;
}

void place_files(struct engine *e, uint32_t segment, bool suspect)
{
	const struct outputs *s = &e->outfiles.of[segment];
	const struct outfile *f = first_file(s);
	struct keeping *k = xcalloc(1, sizeof(*k));
	struct segment_result *r = &k->result;

	k->e = e;
	k->segment = segment;
	k->suspect = suspect;
	if (f && !e->work.needs->command) /* a command's are in place */
		k->list[k->count++] = outfiles_take(e, segment, 0);
	made_by(e, segment, s->pod, r);
	r->suspect = suspect;
	if (suspect)
		COPY_TEXT(r->reason, s->check.reason);
	if (f) {
		COPY_TEXT(r->sha256, f->sha256);
		r->bytes = f->bytes;
	}
	r->seconds = s->check.seconds > 0 ? s->check.seconds : s->seconds;
	r->sample_rate = s->check.sample_rate > 0 ? s->check.sample_rate : s->rate;
	pool_run(e->pool, work_keep, kept, k);
}

/* ---- outputs of a command ---- */

struct output_keeping {
	size_t file;
	unsigned turn;
	char *name;
	struct err err;
};

struct outputs_keeping {
	struct engine *e;
	uint32_t segment;
	size_t count;
	struct receive *list[KEEP_AT_ONCE];
	struct segment_result results[KEEP_AT_ONCE];
	struct output_keeping of[KEEP_AT_ONCE];
};

/* All with one sync of the manifest and of each folder. If one cannot be placed, each by itself. */
static void work_outputs(void *arg)
{
	struct outputs_keeping *k = arg;
	const struct engine_setup *setup = k->e->setup;
	struct err err = {0};

	if (place_verified(setup->job_ops, setup->job, k->segment, k->results, k->list, k->count,
			   &err) == 0)
		return;
	for (size_t i = 0; i < k->count; i++)
		if (place_verified(setup->job_ops, setup->job, k->segment, &k->results[i],
				   &k->list[i], 1, &k->of[i].err) < 0 &&
		    k->of[i].err.kind != ERR_JOB)
			k->of[i].err.kind = ERR_LOCAL;
}

static void outputs_over(void *arg)
{
	struct outputs_keeping *k = arg;

	outfiles_placing(k->e, k->segment, false);
	for (size_t i = 0; i < k->count; i++) {
		receive_drop(k->list[i], false);
		outfiles_placed(k->e, k->segment, k->of[i].file, k->of[i].turn, &k->of[i].err);
		free(k->of[i].name);
	}
	place_outputs(k->e, k->segment);
	free(k);
}

void place_outputs(struct engine *e, uint32_t segment)
{
	const struct outputs *s = &e->outfiles.of[segment];
	struct outputs_keeping *k = NULL;

	for (size_t i = 0; !s->placing && i < s->count; i++) {
		const struct outfile *f = &s->files[i];
		if (!f->r || (k && k->count == KEEP_AT_ONCE))
			continue;
		if (!k) {
			k = xcalloc(1, sizeof(*k));
			k->e = e;
			k->segment = segment;
		}
		struct segment_result *r = &k->results[k->count];
		struct output_keeping *of = &k->of[k->count];
		*of = (struct output_keeping){.file = i, .turn = f->turn, .name = xstrdup(f->name)};
		made_by(e, segment, f->pod, r);
		r->state = SEGMENT_SAFE;
		r->file = of->name;
		COPY_TEXT(r->sha256, f->sha256);
		r->bytes = f->bytes;
		k->list[k->count++] = outfiles_take(e, segment, i);
	}
	if (!k)
		return;
	outfiles_placing(e, segment, true);
	pool_run(e->pool, work_outputs, outputs_over, k);
}
