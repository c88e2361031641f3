/* queue.c - a pod that its provider has accepted and not placed on a machine. It bills nothing, and
 * its host is not to blame. Decides how long to wait for it. */
#include "impl.h"

#include "base/clock.h"

/* Its first lease starts at the create: a pod placed much later would end itself before burst could
 * reach it. */
static int64_t latest(const struct core *c, const struct core_pod *p)
{
	return p->rental.create_at + c->conf.boot_limit_ms / 2;
}

static int64_t patience(const struct core *c)
{
	return MAX(MIN((int64_t)QUEUE_PATIENCE_MS, c->conf.wait_ms / 4),
		   (int64_t)QUEUE_PATIENCE_MIN_MS);
}

static void watch_from_now(struct core *c, struct core_pod *p)
{
	int64_t at = MIN(c->now + patience(c), latest(c, p));

	if (c->capacity_since && !c->conf.retry_until_up)
		at = MIN(at, c->capacity_since + c->conf.wait_ms);
	p->deadline_at = MAX(at, c->now + QUEUE_TICK_MS);
	c->dirty = true;
}

static void placed(struct core *c, struct core_pod *p)
{
	p->rental.place = PLACE_GIVEN;
	c->capacity_since = 0;
	p->deadline_at = MIN(c->now + p->presence.boot_limit_ms, pod_boot_end(c, p));
	p->presence.log_at = p->presence.boot_limit_ms >= LOG_WORTH_MS
				     ? c->now + p->presence.boot_limit_ms / 2
				     : 0;
	c->dirty = true;
}

void queue_seen(struct core *c, struct core_pod *p, enum pod_state state)
{
	if (p->phase != POD_BOOTING || pod_is_leaving(p) || p->presence.lease != LEASE_CLIENT)
		return;
	if (state != POD_STATE_QUEUED) {
		if (p->rental.place != PLACE_GIVEN &&
		    (state == POD_STATE_CREATING || state == POD_STATE_RUNNING))
			placed(c, p);
		return;
	}
	if (p->rental.place != PLACE_GIVEN)
		return;
	p->rental.place = PLACE_QUEUED;
	p->presence.log_at = 0;
	if (!c->capacity_since)
		c->capacity_since = c->now;
	watch_from_now(c, p);
}

void queue_ended(struct core_pod *p, const struct pod_view *view)
{
	if (view->state != POD_STATE_GONE)
		return;
	if (view->end == POD_END_QUEUED)
		p->rental.place = PLACE_NEVER;
	else if (p->rental.place == PLACE_NEVER)
		p->rental.place = PLACE_GIVEN;
}

void queue_listed_again(struct core_pod *p)
{
	if (p->rental.place == PLACE_NEVER)
		p->rental.place = PLACE_QUEUED;
}

void queue_watch(struct core *c, struct core_pod *p)
{
	char waited[24];

	if (c->now < latest(c, p) && !query_wait_is_over(c) && !offers_other_than(c, p)) {
		watch_from_now(c, p);
		return;
	}
	resting_sold_out(c, p, 0);
	duration_show(waited, sizeof(waited), c->now - p->rental.create_at);
	pod_dismiss(c, pod_index(c, p), ERR_NO_CAPACITY, "no %s was free at %s within %s",
		    p->rental.offer.gpu, p->rental.offer.provider, waited);
}
