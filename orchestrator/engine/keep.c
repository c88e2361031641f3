/* keep.c - offers pods of this run to other runs. */
#include "keep.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "impl.h"
#include "journal.h"
#include "post.h"

/* The lease lasts until the keeper releases the pod; the keeper need not talk to it. */
static void lengthen_lease(struct engine *e, int pod, int64_t keep_ms)
{
	pod_say(e, pod,
		json_pack("{s:s,s:I}", "op", "renew", "lease_s",
			  (json_int_t)((keep_ms + e->setup->conf.lease_ms) / 1000)));
}

void keep_offer(struct engine *e, int pod, int64_t keep_ms)
{
	struct holding *h = &e->pods[pod].hold;
	int64_t now = clock_wall_ms();
	char span[24];

	if (!keep_ms || !e->setup->keep) {
		post_pod(e, EV_UNASKED, pod, NULL);
		return;
	}
	lengthen_lease(e, pod, keep_ms);
	h->kept_until_ms = now + keep_ms;
	COPY_TEXT(h->pool, e->setup->pool);
	journal_pod(e, pod);
	if (e->pods[pod].save_failed) {
		h->kept_until_ms = 0;
		h->pool[0] = '\0';
		post_pod(e, EV_UNASKED, pod, NULL);
		return;
	}
	h->offered = true;
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
