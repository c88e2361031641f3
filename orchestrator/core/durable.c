/* durable.c - fetches a pod's files by way of its volume: made durable there, they can be fetched
 * after the pod is released. */
#include "impl.h"

/* Fetches the pod's finished files from its volume if that can be read without the pod; else they
 * are rendered again. */
void durable_rescue(struct core *c, struct core_pod *p)
{
	if (!pod_owes(p))
		return;
	if (pod_files_outlive(p)) {
		p->presence.files = FILES_ON_VOLUME;
		fetch_forget(c, pod_index(c, p));
		fetch_pending(c, pod_index(c, p));
	} else {
		fetch_lost(c, pod_index(c, p));
	}
	fetch_outputs(c, pod_index(c, p), !pod_files_outlive(p));
}

void durable_salvage(struct core *c, struct core_pod *p)
{
	fetch_forget(c, pod_index(c, p));
	p->presence.files = FILES_SALVAGING;
	core_act(c, ACT_SALVAGE, pod_index(c, p));
}

void durable_salvage_at(struct core *c, struct core_pod *p, int64_t at)
{
	fetch_forget(c, pod_index(c, p));
	p->presence.files = FILES_SALVAGING;
	p->presence.refetch_at = at;
	c->dirty = true;
}

/* A pod without work bills only until its files are durable: the rest is fetched from its volume
 * after the release. */
void durable_request(struct core *c, struct core_pod *p)
{
	if (!pod_files_outlive(p) || c->conf.providers[p->rental.provider].pods_are_free ||
	    p->presence.files != FILES_ON_POD || c->now < p->presence.sync_at)
		return;
	p->presence.files = FILES_SYNCING;
	p->presence.sync_at = 0;
	core_act(c, ACT_SYNC, pod_index(c, p))->number = (int)++p->presence.sync_turn;
}

void durable_synced(struct core *c, struct core_pod *p, const struct event *ev)
{
	int pod = pod_index(c, p);

	if (p->presence.files != FILES_SYNCING || (uint32_t)ev->number != p->presence.sync_turn)
		return;
	p->presence.files = FILES_ON_POD;
	if (!ev->ok) {
		p->presence.sync_at = c->now + SYNC_AGAIN_MS;
		return;
	}
	if (p->phase != POD_WORKING || pod_is_leaving(p) || p->workload.batches || !pod_owes(p) ||
	    !pod_nothing_comes(c, p))
		return;
	p->presence.durable = true;
	p->presence.files = FILES_ON_VOLUME;
	snprintf(p->reason, sizeof(p->reason), "done; its other files come from its volume");
	core_note(c, NOTE_INFO,
		  "pod %s: all segments done and on its volume; %d of its files are fetched "
		  "from there after it is released",
		  p->rental.id, MAX(p->workload.unfetched, p->workload.files));
	pod_set_leave(c, p, LEAVE_DECIDE);
	fetch_reset_delay(c, pod);
}

void durable_salvaged(struct core *c, struct core_pod *p, const struct err *err)
{
	int pod = pod_index(c, p);

	if (p->presence.files != FILES_SALVAGING)
		return;
	if (err && p->presence.durable && c->now < p->presence.rescue_until && c->signals == 0) {
		/* A durable file is not rendered again because one read of the volume failed. */
		fetch_later(c, pod);
		return;
	}
	p->presence.files = FILES_ON_VOLUME;
	dispatch_lost(c, pod);
	if (err)
		fetch_lost(c, pod);
	else
		fetch_pending(c, pod);
	fetch_outputs(c, pod, false);
	c->dirty = true;
}
