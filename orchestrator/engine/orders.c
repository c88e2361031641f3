/* orders.c - sends the core's orders to agents. */
#include "orders.h"

#include "base/clock.h"
#include "batch_ids.h"
#include "batches.h"
#include "impl.h"
#include "journal.h"
#include "outfiles.h"
#include "post.h"

enum { LITTLE_BYTES = 4 << 20 }; /* fewer missing bytes are fetched sooner than a volume syncs */

void orders_send(struct engine *e, int pod, uint32_t batch)
{
	const struct core_batch *b = core_batch_at(e->core, batch);
	json_t *tasks = json_array();
	double estimate = 0;
	CLEANUP(free_text) char *id = batch_id(e, batch);

	for (size_t i = 0; i < b->count; i++) {
		uint32_t s = b->segments[i];
		outfiles_expect(e, s, id);
		json_t *task =
			e->setup->job_ops->task(e->setup->job, s, core_seg_tries(e->core, s));
		if (checkpoint_task(e, pod, s, task))
			batches_continued(e, batch);
		json_array_append_new(tasks, task);
		estimate += e->work.segments[s].est_seconds;
	}
	/* An engine that renders many segments at once takes as long for a few: that is no hang. */
	estimate = MAX(estimate, core_batch_expected_ms(e->core, batch) / 1000);
	quiet_sent(&e->pods[pod].quiet, (int64_t)(MIN(estimate, 1e9) * 1000),
		   core_pod_at(e->core, pod)->workload.batches <= 1);
	pod_send(e, pod,
		 json_pack("{s:s,s:s,s:f,s:o}", "op", "batch", "id", id, "estimate_s", estimate,
			   "segments", tasks));
}

void orders_revoke(struct engine *e, int pod)
{
	pod_send(e, pod, json_pack("{s:s,s:b}", "op", "revoke", "all", 1));
}

void orders_halt(struct engine *e, int pod, int grace_ms)
{
	pod_send(e, pod, json_pack("{s:s,s:b,s:i}", "op", "halt", "all", 1, "grace_ms", grace_ms));
}

void orders_renew(struct engine *e, int pod)
{
	quiet_asked(&e->pods[pod].quiet);
	pod_send(e, pod,
		 json_pack("{s:s,s:I}", "op", "renew", "lease_s",
			   (json_int_t)(e->setup->conf.lease_ms / 1000)));
}

void orders_handover(struct engine *e, int pod, int turn)
{
	CLEANUP(free_text) char *id = batch_id(e, (uint32_t)turn);

	pod_send(e, pod,
		 json_pack("{s:s,s:s,s:I}", "op", "handover", "id", id, "lease_s",
			   (json_int_t)(e->setup->conf.lease_ms / 1000)));
	if (!e->setup->run->detached) {
		e->setup->run->detached = true;
		journal_run(e);
	}
}

void orders_sync(struct engine *e, int pod, int turn)
{
	struct epod *p = &e->pods[pod];

	if (!p->little_left && outfiles_left(e, pod) < LITTLE_BYTES) {
		p->little_left = true;
		post_synced(e, pod, turn, false);
		return;
	}
	pod_send(e, pod, json_pack("{s:s,s:i}", "op", "sync", "turn", turn));
}

void orders_takeover(struct engine *e, int pod)
{
	pod_send(e, pod, json_pack("{s:s}", "op", "takeover"));
}
