/* queue.c - pods that their provider has accepted and not placed on a machine, or not started where
 * waiting for that is free. Such a pod bills nothing, and its host is not to blame. Decides how
 * long to wait for it. */
#include "base/clock.h"
#include "impl.h"

/* When a queued pod must have its machine at the latest (boot clock). Its first lease starts at the
 * create, unless waiting is free: a pod placed much later would end itself before burst could reach
 * it. */
static int64_t latest_placement_at(const struct core *c, const struct core_pod *p)
{
	return p->rental.create_at +
	       (p->rental.run_ms ? p->rental.wait_ms : c->conf.boot_limit_ms / 2);
}

/* How long a queued pod is waited for while another offer could be tried. */
static int64_t queue_patience_ms(const struct core *c)
{
	return MAX(MIN((int64_t)QUEUE_PATIENCE_MS, c->conf.wait_ms / 4),
		   (int64_t)QUEUE_PATIENCE_MIN_MS);
}

/* Sets when queue_on_deadline() decides on the pod again. */
static void queue_set_deadline(struct core *c, struct core_pod *p)
{
	int64_t at = MIN(c->now + queue_patience_ms(c), latest_placement_at(c, p));

	if (c->capacity_since && !c->conf.retry_until_up)
		at = MIN(at, c->capacity_since + c->conf.wait_ms);
	p->overdue_at = MAX(at, c->now + QUEUE_TICK_MS);
	c->dirty = true;
}

static void queue_on_placed(struct core *c, struct core_pod *p)
{
	int64_t limit_ms = p->presence.boot_limit_ms ? p->presence.boot_limit_ms
						     : c->conf.boot_limit_ms; /* adopted */

	p->rental.place = PLACE_GIVEN;
	c->capacity_since = 0;
	p->overdue_at = MIN(c->now + limit_ms, pod_boot_end(c, p));
	p->presence.log_at = limit_ms >= LOG_WORTH_MS ? c->now + limit_ms / 2 : 0;
	c->dirty = true;
}

/* A listing shows the pod, in the queue or on a machine. */
void queue_on_listed(struct core *c, struct core_pod *p, const struct pod_view *view)
{
	if (p->phase != POD_BOOTING || pod_is_leaving(p) || p->presence.lease != LEASE_CLIENT)
		return;
	if (!pod_is_queued(p, view)) {
		if (p->rental.place != PLACE_GIVEN &&
		    (view->state == POD_STATE_CREATING || view->state == POD_STATE_RUNNING))
			queue_on_placed(c, p);
		return;
	}
	if (p->rental.place != PLACE_GIVEN)
		return;
	p->rental.place = PLACE_QUEUED;
	p->presence.log_at = 0;
	if (!c->capacity_since)
		c->capacity_since = c->now;
	queue_set_deadline(c, p);
}

/* Where waiting is free: takes in what a view shows of the pod's start. Without a start it waited
 * when the view was requested, unless it runs or is gone. */
void queue_note_start(struct core *c, struct core_pod *p, const struct pod_view *view,
		      int64_t requested_at)
{
	bool ran = view->state == POD_STATE_RUNNING || view->state == POD_STATE_STOPPED;

	if (!pod_is_unstarted(p))
		return;
	if (!view->started_at_s && !ran) {
		if (view->state != POD_STATE_GONE)
			p->rental.queued_at = MAX(p->rental.queued_at, requested_at);
		return;
	}
	int64_t at = view->started_at_s
			     ? core_boot_time_of(c, p->rental.provider, view->started_at_s)
			     : p->rental.queued_at;
	budget_start_pod(c, p, MIN(MAX(at, p->rental.create_at), c->now));
	p->presence.running_at = p->rental.start_at;
	pod_save(c, p);
}

/* A listing shows the pod's end: one that ended in the queue had no machine and costs nothing. */
void queue_on_end(struct core_pod *p, const struct pod_view *view)
{
	if (view->state != POD_STATE_GONE)
		return;
	if (view->end == POD_END_QUEUED || (pod_is_unstarted(p) && pod_end_is_reported(view)))
		p->rental.place = PLACE_NEVER;
	else if (p->rental.place == PLACE_NEVER)
		p->rental.place = PLACE_GIVEN;
}

/* A listing shows the pod after it counted as gone: it did not end in the queue. */
void queue_on_listed_again(struct core_pod *p)
{
	if (p->rental.place == PLACE_NEVER)
		p->rental.place = PLACE_QUEUED;
}

void queue_on_deadline(struct core *c, struct core_pod *p)
{
	const struct pod_view *view = &p->rental.view;
	const char *why = view->state == POD_STATE_QUEUED ? view->detail : "";
	char waited[24];

	if (c->now < latest_placement_at(c, p) && !query_wait_is_over(c) &&
	    !offers_has_other_than(c, p)) {
		queue_set_deadline(c, p);
		return;
	}
	offers_rest_sold_out(c, p, 0);
	duration_show(waited, sizeof(waited), c->now - p->rental.create_at);
	pod_dismiss(c, pod_index(c, p), ERR_NO_CAPACITY, "no %s was free at %s within %s%s%s",
		    p->rental.offer.gpu, p->rental.offer.provider, waited, why[0] ? ": " : "", why);
}
