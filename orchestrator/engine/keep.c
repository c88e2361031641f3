/* keep.c - offers pods of this run to other runs. */
#include "keep.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "gaps.h"
#include "handed.h"
#include "impl.h"
#include "journal.h"
#include "kept.h"
#include "pod_rows.h"
#include "post.h"

enum {
	WANTED_MS = 10 * 1000, /* for a waiting run, which looks several times a second */
	AUTO_LEAST_MS = 1000   /* a shorter hold would end before a run could begin */
};

/* The lease lasts until the keeper releases the pod; the keeper need not connect to it. */
static void lengthen_lease(struct engine *e, int pod, int64_t keep_ms)
{
	pod_send(e, pod,
		 json_pack("{s:s,s:I}", "op", "renew", "lease_s",
			   (json_int_t)((keep_ms + e->setup->conf.lease_ms) / 1000)));
}

/* Whether a run waits now for what the row would offer. */
static bool is_wanted(struct engine *e, int pod)
{
	struct pod_row row = engine_pod_row(e, pod);

	COPY_TEXT(row.pool, e->setup->pool);
	row.kept_until_ms = clock_wall_ms() + WANTED_MS;
	return e->setup->wanted && e->setup->wanted(e->setup->ctx, &row);
}

/* Returns false if the ledger could not be written: no run can take the pod then. */
static bool offer_for(struct engine *e, int pod, int64_t ms)
{
	bool written;

	lengthen_lease(e, pod, ms);
	handed_offer(e, pod, clock_wall_ms() + ms);
	journal_pod(e, pod);
	written = !e->pods[pod].saving.failed;
	handed_offered(e, pod, written);
	return written;
}

/* Another run already keeps a pod that is as good as this one. */
static bool other_is_kept(const struct engine *e)
{
	const char *run = e->setup->run->id;
	struct pod_row *pods = NULL;
	size_t count = 0;
	bool kept = false;

	if (store_pods(e->setup->store, NULL, true, &pods, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count && !kept; i++)
		kept = strcmp(pods[i].run, run) != 0 && strcmp(pods[i].handed_from, run) != 0 &&
		       kept_is_offered(&pods[i], clock_wall_ms()) &&
		       kept_serves(pods[i].pool, e->setup->pool);
	free(pods);
	return kept;
}

/* keep_warm = "auto": most_ms is the length of the cold start. Holds no more pods than the next run
 * may need, and no longer than pays by the past intervals between runs. */
static int64_t auto_ms(const struct engine *e, int64_t most_ms)
{
	gaps_note_free(e->setup->store, e->setup->pool, clock_wall_ms());
	if (!most_ms || other_is_kept(e))
		return 0;
	int64_t ms = MIN(gaps_hold_ms(e->setup->store, e->setup->pool, most_ms), most_ms);
	return ms < AUTO_LEAST_MS ? 0 : ms;
}

void keep_offer(struct engine *e, int pod, int64_t keep_ms)
{
	char span[24];

	if (e->setup->conf.keep_warm_ms == KEEP_WARM_AUTO)
		keep_ms = auto_ms(e, keep_ms);
	if (!e->setup->keep)
		keep_ms = 0;
	bool wanted = is_wanted(e, pod);
	if ((!keep_ms && !wanted) || !offer_for(e, pod, MAX(keep_ms, wanted ? WANTED_MS : 0))) {
		post_pod(e, EV_NOT_WANTED, pod, NULL);
		return;
	}
	if (!keep_ms) {
		engine_log(e, LOG_INFO, "pod %s: offered to a run that waits for one",
			   pod_called(e, pod));
		return;
	}
	engine_log(e, LOG_INFO, "pod %s: kept for another run for %s", pod_called(e, pod),
		   duration_show(span, sizeof(span), keep_ms));
	e->setup->keep(e->setup->ctx);
}

bool keep_waits(const struct engine *e)
{
	for (int i = 0; i < e->pod_count; i++)
		if (e->pods[i].hold.state == HOLD_OFFERED)
			return true;
	return false;
}
