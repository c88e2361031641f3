/* warm.c - pods that pass from run to run: a pod without work is offered, and pods on offer are
 * taken over before one is rented. */
#include "impl.h"

#include <limits.h>

static bool holds_work(const struct core_pod *p)
{
	return p->workload.batches || pod_owes(p);
}

/* Whether no pod has a batch, or files to fetch. */
static bool is_all_work_over(const struct core *c)
{
	return !pods_count(c, holds_work);
}

/* Whether other runs may have the pod. */
static bool may_be_offered(const struct core *c, const struct core_pod *p)
{
	/* The client of a detached run may exit while other pods work, and could not release this
	 * one when its offer ends. */
	bool client_stays = !c->conf.detached || is_all_work_over(c);

	return c->conf.pooled && !core_is_stopping(c) && !c->todo && client_stays &&
	       p->phase == POD_WORKING && p->presence.link == LINK_UP &&
	       p->presence.lease == LEASE_CLIENT && p->leave == LEAVE_NOT &&
	       !p->workload.failed_here && p->rental.key == KEY_OURS && p->fault == ERR_NONE;
}

int64_t core_cold_ms(const struct core_pod *p)
{
	if (p->rental.reused)
		return p->rental.cold_ms;
	return p->presence.ready_at
		       ? MAX(p->presence.ready_at - pod_boots_from(p, p->presence.ready_at), 0)
		       : 0;
}

/* How long the pod may be kept for another run; 0: not at all. */
static int64_t keep_warm_ms_of(const struct core *c, const struct core_pod *p)
{
	int64_t most = p->rental.hard_end_ms - c->now - 3 * budget_pod_margin(p);
	/* Ski rental: by then the wait has cost as much as the cold start that it may save, so the
	 * two together never exceed twice the better choice. */
	int64_t ms =
		c->conf.keep_warm_ms == KEEP_WARM_AUTO ? core_cold_ms(p) : c->conf.keep_warm_ms;

	ms = MIN(MIN(ms, most), (int64_t)KEEP_WARM_MOST_MS);
	return ms < KEEP_WARM_LEAST_MS ? 0 : ms;
}

bool warm_offer_or_keep(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (p->offered_until)
		return c->now < p->offered_until;
	if (!may_be_offered(c, p) || p->rental.hard_end_ms - c->now < 3 * budget_pod_margin(p))
		return false;
	p->offered_until = c->now + OFFER_MS;
	/* While other pods of this run work, only a run that already waits gets it: nothing is
	 * known of later runs, and this one may still need a pod. */
	core_act(c, ACT_OFFER, pod)->number = is_all_work_over(c) ? (int)keep_warm_ms_of(c, p) : 0;
	return true;
}

void warm_on_not_wanted(struct core *c, struct core_pod *p)
{
	if (p->offered_until)
		p->offered_until = MIN(p->offered_until, c->now);
	pod_mark_due(c, pod_index(c, p));
}

void warm_on_taken(struct core *c, struct core_pod *p, int64_t at)
{
	if (!pod_may_bill(p))
		return;
	p->rental.exit = EXIT_TAKEN;
	p->fault = ERR_NONE;
	p->rental.released_at = p->rental.gone_at = MAX(MIN(at, c->now), p->rental.create_at);
	if (!p->rental.release_at || p->rental.release_at > p->rental.released_at)
		p->rental.release_at = p->rental.released_at;
	snprintf(p->reason, sizeof(p->reason), "another run has it");
	pod_close_gone(c, p);
	c->spent_microusd += core_cost(p, c->now);
}

/* ---- of other runs ---- */

bool core_waits(const struct core *c)
{
	return c->waits && !core_is_stopping(c);
}

bool warm_may_rent(struct core *c, int wanted)
{
	if (!c->conf.pooled)
		return true;
	if (c->seeking)
		return false;
	if (c->sought_at && c->now - c->sought_at < SEEK_MS)
		return true;
	c->seeking = true;
	core_act(c, ACT_SEEK, -1)->number = wanted;
	return false;
}

int64_t warm_wake_at(const struct core *c)
{
	int64_t at = c->sought_at + SEEK_MS;

	/* Each reason not to seek when it is due ends with an event of its own. */
	return c->conf.pooled && core_waits(c) && !c->seeking && at > c->now ? at : NEVER;
}

void warm_on_seek_done(struct core *c)
{
	c->dirty = true;
	c->seeking = false;
	c->sought_at = c->now;
}
