/* budget.c - how long a pod may live so that the caps hold even if this client dies. */
#include "impl.h"

#include "base/clock.h"

/* A tenth of the life: a pod that lives shortly needs most of its time for work. */
int64_t budget_margin(int64_t life_ms)
{
	return MIN(life_ms / 10, (int64_t)MARGIN_MOST_MS);
}

int64_t budget_pod_margin(const struct core_pod *p)
{
	int64_t began = p->rental.start_at ? p->rental.start_at : p->rental.create_at;

	return budget_margin(p->rental.hard_end_ms - began);
}

/* ---- free waits: what counts from a pod's start ---- */

int64_t budget_ends_at(const struct core *c)
{
	return c->ends_at && c->free_since ? c->ends_at + c->now - c->free_since : c->ends_at;
}

static void end_free_wait(struct core *c, int64_t at)
{
	if (c->ends_at && c->free_since)
		c->ends_at += MAX(at - c->free_since, 0);
	c->free_since = 0;
}

void budget_note_free_wait(struct core *c)
{
	bool waits = false, bills = false;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		waits = waits || (pod_is_unstarted(p) && pod_is_active(p));
		bills = bills || (!pod_is_unstarted(p) && pod_may_bill(p) &&
				  (!pod_is_released(p) || pod_outlives_release(p)));
	}
	if (!waits || bills)
		end_free_wait(c, c->now);
	else if (!c->free_since)
		c->free_since = c->now;
}

/* The end of the pod if it starts now, at the latest. */
static int64_t end_if_started(const struct core *c, const struct core_pod *p)
{
	if (!pod_is_unstarted(p))
		return p->rental.hard_end_ms;
	return MIN(p->rental.hard_end_ms, c->now + p->rental.run_ms - p->rental.run_cut_ms);
}

/* For how long the pod can still bill if no client ever reaches it again; 0: it bills no more. */
static int64_t time_to_come_ms(const struct core *c, const struct core_pod *p)
{
	bool released =
		p->rental.released_at && p->rental.key == KEY_OURS && !pod_outlives_release(p);

	if (!pod_may_bill(p) || released)
		return 0;
	return MAX(end_if_started(c, p) + SELF_END_MS - c->now, 0);
}

int64_t budget_extend_to_seen(const struct core_pod *p, int64_t at)
{
	return p->rental.seen_at ? MAX(at, p->rental.seen_at) : at;
}

/* Until when the pod has cost something (boot clock). A pod that no list has shown since its own
 * hard end ended then, so that after a day away the other pods lose nothing to it. If its release
 * is refused, its provider cannot confirm that. */
static int64_t billed_until_now(const struct core *c, const struct core_pod *p)
{
	int64_t own_end = p->rental.hard_end_ms + p->rental.cut_ms;
	bool may_live = p->phase == POD_RELEASING &&
			(p->rental.tries || c->now < own_end + PAST_HARD_END_MS);

	return may_live ? c->now : MIN(c->now, budget_extend_to_seen(p, own_end + SELF_END_MS));
}

static int64_t billed_ms_until_now(const struct core *c, const struct core_pod *p)
{
	int64_t from = pod_bills_from(p);

	return from ? billed_until_now(c, p) - from : pod_unseen_ms(p);
}

/* Of a pod that was last seen waiting for free: how long it may bill in all. It may have started
 * since then, and ended. */
static int64_t unstarted_ms(const struct core *c, const struct core_pod *p)
{
	const struct rental *r = &p->rental;
	int64_t own_end = r->hard_end_ms + r->cut_ms + SELF_END_MS,
		past = r->released_at ? pod_unseen_ms(p)
				      : MAX(MIN(c->now, own_end) - r->queued_at, 0);

	return MIN(past + time_to_come_ms(c, p), r->run_ms + SELF_END_MS);
}

/* What has been spent, plus what living pods can still cost if no client reaches them again. */
int64_t budget_committed(const struct core *c)
{
	int64_t sum = c->spent_microusd;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (!pod_may_bill(p))
			continue;
		sum += money_for(p->rental.price_microusd_h,
				 pod_is_unstarted(p)
					 ? unstarted_ms(c, p)
					 : billed_ms_until_now(c, p) + time_to_come_ms(c, p));
	}
	return sum;
}

int64_t budget_spent(const struct core *c)
{
	int64_t sum = c->spent_microusd;

	for (int i = 0; i < c->pod_count; i++)
		if (pod_may_bill(&c->pods[i]))
			sum += money_for(c->pods[i].rental.price_microusd_h,
					 billed_ms_until_now(c, &c->pods[i]));
	return sum;
}

int64_t core_money_left(const struct core *c)
{
	return c->conf.max_cost_microusd ? c->conf.max_cost_microusd - budget_committed(c)
					 : INT64_MAX;
}

bool budget_spending_is_known(const struct core *c)
{
	for (int i = 0; c->conf.max_cost_microusd && i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		const struct vendor *v = &c->vendors[p->rental.provider];
		if (p->presence.past != PAST_NONE && pod_may_bill(p) &&
		    c->now > p->rental.hard_end_ms + p->rental.cut_ms &&
		    v->listed_at < c->began_at && v->list_failures < LIST_FAILURES_MAX)
			return false;
	}
	return true;
}

/* A pod must boot, as slowly as the newest one, and get work before it is drained. */
bool budget_allows_work_until(const struct core *c, int64_t end)
{
	int64_t life = end - c->now;

	return life >= USEFUL_MIN_MS && life - 2 * budget_margin(life) > c->cold_ms;
}

/* Moves the hard end to `at` (boot clock), never to a later time. The pod's own hard end stays, so
 * this client has to release the pod. */
static void end_sooner(struct core_pod *p, int64_t at)
{
	p->rental.cut_ms += MAX(p->rental.hard_end_ms - at, 0);
	p->rental.hard_end_ms = MIN(p->rental.hard_end_ms, at);
}

/* The same for a pod that may not have started: if it starts now, it ends by `at`. */
static void end_by(const struct core *c, struct core_pod *p, int64_t at)
{
	if (!pod_is_unstarted(p))
		end_sooner(p, at);
	else
		p->rental.run_cut_ms =
			MIN(MAX(p->rental.run_cut_ms, c->now + p->rental.run_ms - at),
			    p->rental.run_ms);
}

void budget_start_pod(struct core *c, struct core_pod *p, int64_t at)
{
	struct rental *r = &p->rental;
	int64_t own_end = MIN(r->hard_end_ms + r->cut_ms, at + r->run_ms),
		end = MIN(MIN(r->hard_end_ms, own_end), at + r->run_ms - r->run_cut_ms);

	r->start_at = at ? at : -1; /* 0 would mean "not yet" */
	r->hard_end_ms = end;
	r->cut_ms = own_end - end;
	r->hard_end_s = MIN(r->hard_end_s, (c->wall + own_end - c->now + 999) / 1000);
	end_free_wait(c, at);
	if (c->ends_at)
		end_sooner(p, c->ends_at);
}

/* No pod outlives caps.max_duration. */
static void fit_to_duration(struct core *c)
{
	for (int i = 0; c->ends_at && i < c->pod_count; i++)
		if (time_to_come_ms(c, &c->pods[i]))
			end_by(c, &c->pods[i], budget_ends_at(c));
}

/* If the pods could exceed caps.max_cost, each keeps the same share of the time to come. */
static void fit_to_cost(struct core *c)
{
	int64_t committed = budget_committed(c), to_come = 0;

	if (!c->conf.max_cost_microusd || committed <= c->conf.max_cost_microusd)
		return;
	for (int i = 0; i < c->pod_count; i++)
		to_come += money_for(c->pods[i].rental.price_microusd_h,
				     time_to_come_ms(c, &c->pods[i]));
	int64_t left = MAX(c->conf.max_cost_microusd - (committed - to_come), 0);
	for (int i = 0; i < c->pod_count && to_come; i++) {
		struct core_pod *p = &c->pods[i];
		int64_t life = (int64_t)((__int128)time_to_come_ms(c, p) * left / to_come);
		if (time_to_come_ms(c, p))
			end_by(c, p, c->now + MAX(life / 1000 * 1000 - SELF_END_MS, 0));
	}
}

void budget_fit_pods(struct core *c)
{
	if (c->conf.reap)
		return;
	fit_to_duration(c);
	fit_to_cost(c);
}

/* If the caps leave a pod less time than it was rented for, only this client ends it in time. If
 * the client dies, the pod lives until its lease ends, so the caps must allow for that time. */
void budget_fit_handed_over(struct core *c, struct core_pod *p)
{
	budget_fit_pods(c);
	if (p->rental.cut_ms)
		end_sooner(p, p->rental.hard_end_ms - c->conf.lease_ms);
}

int64_t budget_cold_ms(const struct core *c)
{
	return c->cold_ms ? c->cold_ms : c->past_boot_ms ? c->past_boot_ms : COLD_GUESS_MS;
}

/* How long a pod may live on a share: whole seconds, as billed, less its time to end itself. */
static int64_t share_life_ms(int64_t share_ms)
{
	return share_ms / 1000 * 1000 - SELF_END_MS;
}

/* Booting may take a fifth of each share: many pods would spend a small cap before any renders. */
int budget_shares(int64_t left_ms, int most, int64_t cold_ms)
{
	for (; most > 1; most--) {
		int64_t life = share_life_ms(left_ms / most);
		if (life - 2 * budget_margin(life) >= 5 * cold_ms)
			break;
	}
	return MAX(most, 1);
}

int core_pods_paid(int64_t cap_microusd, int64_t price_microusd_h, int pods, int64_t cold_ms)
{
	if (!cap_microusd || !price_microusd_h)
		return pods;
	int64_t left_ms =
		(int64_t)MIN((__int128)cap_microusd * 3600000 / price_microusd_h, INT64_MAX / 4);
	int shares = budget_shares(left_ms, pods, cold_ms ? cold_ms : COLD_GUESS_MS);

	return share_life_ms(left_ms / shares) >= USEFUL_MIN_MS ? shares : 0;
}

/* How long a pod may live if `more` pods share this much money. */
static int64_t paid_life_ms(const struct core *c, int64_t microusd, int64_t price_microusd_h,
			    int more)
{
	int64_t left_ms =
		(int64_t)MIN((__int128)microusd * 3600000 / price_microusd_h, INT64_MAX / 4);

	return share_life_ms(left_ms / budget_shares(left_ms, more, budget_cold_ms(c)));
}

int64_t budget_hard_end(const struct core *c, int64_t price_microusd_h, int more)
{
	int64_t end = NEVER;

	if (c->ends_at)
		end = budget_ends_at(c);
	int64_t left =
		c->conf.max_cost_microusd ? c->conf.max_cost_microusd - budget_committed(c) : 1;
	if (left <= 0)
		return -1;
	/* A pod holds its share until it ends. If more pods may be added later, keep a share for
	 * them, unless one pod needs both. */
	if (core_may_add_pods(c) && left / 2 >= c->conf.plan.cost_microusd / 2 * 3 &&
	    (!price_microusd_h ||
	     budget_allows_work_until(c,
				      c->now + paid_life_ms(c, left / 2, price_microusd_h, more))))
		left /= 2;
	if (c->conf.max_cost_microusd && price_microusd_h) {
		int64_t life = paid_life_ms(c, left, price_microusd_h, more);
		if (life < INT64_MAX / 4 && c->now + life < end)
			end = c->now + life;
	}
	if (end == NEVER)
		end = c->now + (int64_t)24 * 3600 * 1000; /* no cap: a day is still the limit */
	return budget_allows_work_until(c, end) ? end : -1;
}

/* The pod's price may be above its offer's. If it is a little higher, ends the pod sooner by our
 * clock. Returns false if it is much higher, since its own hard end was computed from the offer:
 * without us the pod could break max_cost. */
static bool fit_to_price(const struct core *c, struct core_pod *p)
{
	int64_t over =
		c->conf.max_cost_microusd ? budget_committed(c) - c->conf.max_cost_microusd : 0;

	if (over <= 0 || p->rental.price_microusd_h <= p->rental.offer.price_microusd_h)
		return true;
	if (p->rental.price_microusd_h >
	    p->rental.offer.price_microusd_h + p->rental.offer.price_microusd_h / 20)
		return false;
	end_by(c, p, end_if_started(c, p) - (over * 3600 / p->rental.price_microusd_h + 1) * 1000);
	return budget_allows_work_until(c, end_if_started(c, p));
}

const char *budget_why_refused(const struct core *c, struct core_pod *p)
{
	if (c->conf.max_price_microusd_h &&
	    p->rental.price_microusd_h > c->conf.max_price_microusd_h)
		return "its price is above caps.max_price_per_hour";
	if (!fit_to_price(c, p))
		return "it costs more than was offered: caps.max_cost would be exceeded";
	return NULL;
}

int64_t budget_billed_until(const struct core_pod *p, int64_t at)
{
	int64_t own_end = p->rental.hard_end_ms + p->rental.cut_ms;

	if (at < own_end + PAST_HARD_END_MS)
		return at;
	int64_t least = MAX(own_end + SELF_END_MS, p->rental.create_at);
	return MIN(at, budget_extend_to_seen(p, least));
}
