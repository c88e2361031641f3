/* keep.c - offers pods of this run to other runs. */
#include "keep.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "impl.h"
#include "journal.h"
#include "post.h"

enum { WANTED_MS = 10 * 1000 }; /* for a run that waits, which looks several times a second */

/* The lease lasts until the keeper releases the pod; the keeper need not talk to it. */
static void lengthen_lease(struct engine *e, int pod, int64_t keep_ms)
{
	pod_say(e, pod,
		json_pack("{s:s,s:I}", "op", "renew", "lease_s",
			  (json_int_t)((keep_ms + e->setup->conf.lease_ms) / 1000)));
}

/* By a run that waits for one now, as the row would then offer it. */
static bool is_wanted(struct engine *e, int pod)
{
	struct pod_row row = engine_pod_row(e, pod);

	COPY_TEXT(row.pool, e->setup->pool);
	row.kept_until_ms = clock_wall_ms() + WANTED_MS;
	return e->setup->wanted && e->setup->wanted(e->setup->ctx, &row);
}

/* False: the ledger could not be written, so no run will take it. */
static bool offer_for(struct engine *e, int pod, int64_t ms)
{
	struct holding *h = &e->pods[pod].hold;

	lengthen_lease(e, pod, ms);
	h->kept_until_ms = clock_wall_ms() + ms;
	COPY_TEXT(h->pool, e->setup->pool);
	journal_pod(e, pod);
	h->offered = !e->pods[pod].save_failed;
	if (h->offered)
		return true;
	h->kept_until_ms = 0;
	h->pool[0] = '\0';
	return false;
}

void keep_offer(struct engine *e, int pod, int64_t keep_ms)
{
	char span[24];

	if (!e->setup->keep)
		keep_ms = 0;
	bool wanted = is_wanted(e, pod);
	if ((!keep_ms && !wanted) || !offer_for(e, pod, MAX(keep_ms, wanted ? WANTED_MS : 0))) {
		post_pod(e, EV_UNASKED, pod, NULL);
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
		if (e->pods[i].hold.offered && !e->pods[i].hold.taken)
			return true;
	return false;
}
