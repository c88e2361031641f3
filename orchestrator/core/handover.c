/* handover.c - a detached run: once its pods have all the work, their agents renew the leases
 * themselves. */
#include "impl.h"

void handover_send(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	p->presence.lease = LEASE_AGENT_SENT;
	core_act(c, ACT_HANDOVER, pod)->number = (int)++p->presence.handover_turn;
}

void handover_confirmed(struct core_pod *p, uint32_t turn)
{
	if (p->presence.lease >= LEASE_AGENT_SENT)
		p->presence.lease = turn == p->presence.handover_turn ? LEASE_AGENT_CONFIRMED
								      : LEASE_AGENT_SENT;
}

void handover_work_added(struct core_pod *p)
{
	if (p->presence.lease > LEASE_AGENT)
		p->presence.lease = LEASE_AGENT;
}

void handover_take_back(struct core *c, struct core_pod *p)
{
	int pod = pod_index(c, p);

	if (p->presence.lease == LEASE_CLIENT)
		return;
	p->presence.lease = LEASE_CLIENT;
	core_act(c, ACT_TAKEOVER, pod);
	core_act(c, ACT_RENEW, pod);
	pod_save(c, p);
}

static bool can_hand_over(const struct core_pod *p)
{
	/* one on offer may be another run's by the time that its agent hears of it */
	return p->phase == POD_WORKING && p->presence.link == LINK_UP && p->leave == LEAVE_NOT &&
	       !p->offered_until;
}

/* Another pod took the place of one that was lost after the others had been handed over. */
static bool is_with_client(const struct core *c)
{
	for (int i = 0; i < c->pod_count; i++)
		if (can_hand_over(&c->pods[i]) && c->pods[i].presence.lease == LEASE_CLIENT &&
		    pod_files_outlive(&c->pods[i]))
			return true;
	return false;
}

/* Detached: once as many pods work as are available, all that is left is dealt out and the agents
 * renew their own leases. So is what comes back later: it does not wait here for room in a
 * queue. */
void handover_begin(struct core *c)
{
	int working, coming;

	if (!c->conf.detached || !c->canary_ok || core_stopping(c) || core_reads_past(c) ||
	    (c->handed_over && !c->todo && !is_with_client(c)))
		return;
	bool asking = false;
	int active = width_count_active(c, &working, &coming);
	for (int i = 0; i < c->conf.provider_count; i++)
		asking = asking ||
			 (query_is_open(&c->vendors[i]) && !query_is_overdue(c, &c->vendors[i])) ||
			 c->vendors[i].image_query == QUERY_SENT;
	if (!working || coming || asking || width_is_open(c, active))
		return;
	bool first = !c->handed_over;
	c->handed_over = true;
	dispatch_deal(c);
	for (int i = 0; i < c->pod_count; i++) {
		struct core_pod *p = &c->pods[i];
		if (!can_hand_over(p) || p->presence.lease != LEASE_CLIENT)
			continue;
		if (!pod_files_outlive(p)) {
			if (first)
				core_note(c, NOTE_WARN,
					  "pod %s: its files cannot be fetched without it, so "
					  "this client stays attached",
					  p->rental.id);
			continue;
		}
		p->presence.lease = LEASE_AGENT;
		core_act(c, ACT_SAVE, i);
		handover_send(c, i);
	}
}

/* What a pod that was left alone was given since is behind the last word to it. */
void handover_again(struct core *c)
{
	for (int i = 0; i < c->pod_count; i++)
		if (can_hand_over(&c->pods[i]) && c->pods[i].presence.lease == LEASE_AGENT)
			handover_send(c, i);
}

enum core_handover core_handover(const struct core *c)
{
	enum core_handover result = HANDOVER_DONE;

	if (!c->handed_over || c->todo || core_stopping(c) || segments_settled(c))
		return HANDOVER_NOT_YET;
	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if ((!p->workload.batches && !p->workload.unfetched) || p->presence.durable ||
		    (pod_active(p) && p->presence.lease == LEASE_AGENT_CONFIRMED))
			continue;
		if (!pod_active(p) || p->presence.lease != LEASE_CLIENT || pod_files_outlive(p))
			return HANDOVER_NOT_YET;
		result = HANDOVER_IN_PART;
	}
	return result;
}
