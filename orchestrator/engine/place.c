/* place.c - records fetched files and renames them into place. */
#include "place.h"

#include <stdlib.h>

#include "base/log.h"
#include "impl.h"
#include "journal.h"
#include "outfiles.h"
#include "post.h"

enum { KEEP_AT_ONCE = 256 };

struct keeping {
	struct engine *e;
	uint32_t segment;
	bool suspect;
	bool command;
	struct receive **list;
	char **names, (*hashes)[SHA256_HEX]; /* commands: of each output */
	size_t count;
	struct segment_result result;
	struct err err;
};

static struct segment_result result_of(const struct keeping *k, size_t file)
{
	struct segment_result result = k->result;

	if (k->command) {
		result.file = k->names[file];
		COPY_TEXT(result.sha256, k->hashes[file]);
		result.bytes = receive_bytes(k->list[file]);
	}
	return result;
}

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

static int record_and_keep(struct keeping *k, size_t from, size_t count)
{
	struct segment_result *results = xcalloc(count, sizeof(*results));

	for (size_t i = 0; i < count; i++)
		results[i] = result_of(k, from + i);
	const struct engine_setup *setup = k->e->setup;
	int done = place_verified(setup->job_ops, setup->job, k->segment, results, k->list + from,
				  count, &k->err);
	free(results);
	return done;
}

static void work_keep(void *arg)
{
	struct keeping *k = arg;

	k->result.state = SEGMENT_SAFE;
	for (size_t at = 0; at < k->count; at += KEEP_AT_ONCE)
		if (record_and_keep(k, at, MIN(k->count - at, (size_t)KEEP_AT_ONCE)) < 0)
			return;
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
	}
	for (size_t i = 0; i < k->count; i++)
		free(k->names[i]);
	free(k->names);
	free(k->hashes);
	free(k->list);
	free(k);
}

void place_files(struct engine *e, uint32_t segment, bool suspect)
{
	const struct outputs *s = &e->outfiles.of[segment];
	const struct core_pod *p = core_pod_at(e->core, s->pod);
	struct keeping *k = xcalloc(1, sizeof(*k));

	k->e = e;
	k->segment = segment;
	k->suspect = suspect;
	k->count = s->count;
	k->list = xcalloc(s->count, sizeof(*k->list));
	k->names = xcalloc(s->count, sizeof(*k->names));
	k->hashes = xcalloc(s->count, sizeof(*k->hashes));
	k->command = e->work.needs->command;
	for (size_t i = 0; i < s->count; i++) {
		k->list[i] = outfiles_take(e, segment, i);
		k->names[i] = xstrdup(s->files[i].name);
		COPY_TEXT(k->hashes[i], s->files[i].sha256);
	}
	struct segment_result *r = &k->result;
	r->suspect = suspect;
	if (suspect)
		COPY_TEXT(r->reason, s->check.reason);
	if (s->count) {
		COPY_TEXT(r->sha256, s->files[0].sha256);
		r->bytes = s->files[0].bytes;
	}
	r->seconds = s->check.seconds > 0 ? s->check.seconds : s->seconds;
	r->sample_rate = s->check.sample_rate > 0 ? s->check.sample_rate : s->rate;
	r->tries = core_seg_tries(e->core, segment) + 1;
	COPY_TEXT(r->provider, e->setup->providers[p->rental.provider].ops->name);
	COPY_TEXT(r->gpu, e->pods[s->pod].workers.gpu[0] ? e->pods[s->pod].workers.gpu
							 : p->rental.offer.gpu);
	COPY_TEXT(r->attempt, p->rental.attempt);
	COPY_TEXT(r->batch, s->batch);
	pool_run(e->pool, work_keep, kept, k);
}
