/* lease.c - who renews a pod's lease: this client or its agent. No other file writes that. */
#include "impl.h"

void lease_order(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	p->presence.lease = LEASE_AGENT_SENT;
	core_act(c, ACT_HANDOVER, pod)->number = (int)++p->presence.handover_turn;
}

/* Its agent got the order to renew the lease, after the newest work that it got. */
static bool is_sent_to_agent(const struct core_pod *p)
{
	return p->presence.lease == LEASE_AGENT_SENT || p->presence.lease == LEASE_AGENT_CONFIRMED;
}

void lease_confirmed(struct core_pod *p, uint32_t turn)
{
	if (is_sent_to_agent(p))
		p->presence.lease = turn == p->presence.handover_turn ? LEASE_AGENT_CONFIRMED
								      : LEASE_AGENT_SENT;
}

void lease_work_added(struct core_pod *p)
{
	if (is_sent_to_agent(p))
		p->presence.lease = LEASE_AGENT;
}

void lease_to_client(struct core *c, struct core_pod *p)
{
	int pod = pod_index(c, p);

	if (p->presence.lease == LEASE_CLIENT)
		return;
	p->presence.lease = LEASE_CLIENT;
	core_act(c, ACT_TAKEOVER, pod);
	core_act(c, ACT_RENEW, pod);
	pod_save(c, p);
}

void lease_to_agent(struct core *c, int pod)
{
	c->pods[pod].presence.lease = LEASE_AGENT;
	core_act(c, ACT_SAVE, pod);
	lease_order(c, pod);
}
