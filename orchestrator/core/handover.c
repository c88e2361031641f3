/* handover.c - a detached run: once its pods have all the work, their agents renew the leases. */
#include "impl.h"

/* Not a pod on offer: another run may have taken it before its agent gets the order. */
static bool can_hand_over(const struct core_pod *p)
{
	return p->phase == POD_WORKING && p->presence.link == LINK_UP && p->leave == LEAVE_NOT &&
	       !p->offered_until;
}

/* Whether a pod that can be handed over still has this client's lease: it replaced one that was
 * lost after the others had been handed over. */
static bool has_pod_to_hand_over(const struct core *c)
{
	for (int i = 0; i < c->pod_count; i++)
		if (can_hand_over(&c->pods[i]) && c->pods[i].presence.lease == LEASE_CLIENT &&
		    pod_files_outlive(&c->pods[i]))
			return true;
	return false;
}

/* Once as many pods of a detached run work as are available, deals out all work and lets the agents
 * renew their own leases. Later work is dealt out at once, since the client may exit. */
void handover_begin(struct core *c)
{
	int working, coming;

	if (!c->conf.detached || !c->canary_ok || core_is_stopping(c) ||
	    core_is_reading_past_logs(c) ||
	    (c->handed_over && !c->todo && !has_pod_to_hand_over(c)))
		return;
	int active = width_count_active(c, &working, &coming);
	if (!working || coming || query_is_awaited(c) || width_is_undecided(c, active))
		return;
	bool first = !c->handed_over;
	c->handed_over = true;
	dispatch_deal_all(c);
	for (int i = 0; i < c->pod_count; i++) {
		struct core_pod *p = &c->pods[i];
		if (!can_hand_over(p) || p->presence.lease != LEASE_CLIENT)
			continue;
		if (!pod_files_outlive(p)) {
			if (first && c->conf.want_volume)
				core_note(c, NOTE_WARN,
					  "pod %s: its files cannot be fetched without it, so "
					  "this client stays attached",
					  p->rental.id);
			continue;
		}
		lease_hand_to_agent(c, i);
	}
}

/* An agent counts as handed over only if the order came after its newest batch. */
void handover_resend_orders(struct core *c)
{
	for (int i = 0; i < c->pod_count; i++)
		if (can_hand_over(&c->pods[i]) && c->pods[i].presence.lease == LEASE_AGENT)
			lease_order_agent(c, i);
}

enum core_handover core_handover(const struct core *c)
{
	enum core_handover result = HANDOVER_DONE;

	if (!c->handed_over || c->todo || core_is_stopping(c) || segments_settled(c))
		return HANDOVER_NOT_YET;
	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if ((!p->workload.batches && !pod_owes(p)) || p->presence.durable ||
		    (pod_is_active(p) && p->presence.lease == LEASE_AGENT_CONFIRMED))
			continue;
		if (!pod_is_active(p) || p->presence.lease != LEASE_CLIENT || pod_files_outlive(p))
			return HANDOVER_NOT_YET;
		result = HANDOVER_IN_PART;
	}
	return result;
}
