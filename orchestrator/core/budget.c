/* budget.c - how long a pod may live so that the caps hold whatever happens to us afterwards. */
#include "impl.h"

#include "base/clock.h"

/* Time set aside before a hard end to let a pod go: a tenth of its life, at most 20 s. */
int64_t budget_margin(int64_t life_ms)
{
	int64_t tenth = life_ms / 10;

	return tenth < 20000 ? tenth : 20000;
}

/* What the pod can still cost if it exists and gets no further contact; 0: nothing more. */
static int64_t still_to_come(const struct core *c, const struct core_pod *p)
{
	if (!pod_may_bill(p) || (p->rental.released_at && p->rental.key == KEY_OURS))
		return 0;
	return MAX(p->rental.hard_end_ms + SELF_END_MS - c->now, 0);
}

/* Until when it has cost something (boot clock). One that was not seen since its own end has ended
 * itself by then, as it was reckoned to: after a day away nothing is taken from the others for it.
 * Where its vendor cannot be told to end it, it cannot tell it, either. */
static int64_t billed_by_now(const struct core *c, const struct core_pod *p)
{
	int64_t own_end = p->rental.hard_end_ms + p->rental.cut_ms;
	bool untold = p->phase == POD_RELEASING &&
		      (p->rental.tries || c->now < own_end + PAST_HARD_END_MS);

	return untold ? c->now : MIN(c->now, MAX(own_end + SELF_END_MS, p->rental.seen_at));
}

/* What has been spent, plus what living pods can still cost if they get no further contact. */
int64_t budget_committed(const struct core *c)
{
	int64_t sum = c->spent_microusd;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (pod_may_bill(p))
			sum += money_for(p->rental.price_microusd_h, billed_by_now(c, p) -
									     p->rental.create_at +
									     still_to_come(c, p));
	}
	return sum;
}

int64_t budget_spent(const struct core *c)
{
	int64_t sum = c->spent_microusd;

	for (int i = 0; i < c->pod_count; i++)
		if (pod_may_bill(&c->pods[i]))
			sum += money_for(c->pods[i].rental.price_microusd_h,
					 billed_by_now(c, &c->pods[i]) -
						 c->pods[i].rental.create_at);
	return sum;
}

int64_t core_money_left(const struct core *c)
{
	return c->conf.max_cost_microusd ? c->conf.max_cost_microusd - budget_committed(c)
					 : INT64_MAX;
}

bool budget_is_known(const struct core *c)
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

/* Long enough for a pod to come up, if it takes as long as the newest did, and to be given work
 * before it is drained. */
bool budget_useful(const struct core *c, int64_t end)
{
	int64_t life = end - c->now;

	return life >= USEFUL_MIN_MS && life - 2 * budget_margin(life) > c->cold_ms;
}

void budget_end_sooner(struct core_pod *p, int64_t at)
{
	p->rental.cut_ms += MAX(p->rental.hard_end_ms - at, 0);
	p->rental.hard_end_ms = MIN(p->rental.hard_end_ms, at);
}

static void fit_duration(struct core *c)
{
	for (int i = 0; c->deadline_at && i < c->pod_count; i++)
		if (still_to_come(c, &c->pods[i]))
			budget_end_sooner(&c->pods[i], c->deadline_at);
}

/* What is left is shared by how much each of them was to have. */
static void fit_cost(struct core *c)
{
	int64_t committed = budget_committed(c), to_come = 0;

	if (!c->conf.max_cost_microusd || committed <= c->conf.max_cost_microusd)
		return;
	for (int i = 0; i < c->pod_count; i++)
		to_come += money_for(c->pods[i].rental.price_microusd_h,
				     still_to_come(c, &c->pods[i]));
	int64_t left = MAX(c->conf.max_cost_microusd - (committed - to_come), 0);
	for (int i = 0; i < c->pod_count && to_come; i++) {
		struct core_pod *p = &c->pods[i];
		int64_t life = (int64_t)((__int128)still_to_come(c, p) * left / to_come);
		if (still_to_come(c, p))
			budget_end_sooner(p, c->now + MAX(life / 1000 * 1000 - SELF_END_MS, 0));
	}
}

void budget_fit_adopted(struct core *c)
{
	if (c->conf.reap)
		return;
	fit_duration(c);
	fit_cost(c);
}

/* Where the caps leave it less time than it was rented for, this client alone ends it in time. If
 * the client dies, the pod lives until its lease is over: that must be within the caps, too. */
void budget_fit_handed(struct core *c, struct core_pod *p)
{
	budget_fit_adopted(c);
	if (p->rental.cut_ms)
		budget_end_sooner(p, p->rental.hard_end_ms - c->conf.lease_ms);
}

int64_t budget_cold(const struct core *c)
{
	return c->cold_ms ? c->cold_ms : c->past_boot_ms ? c->past_boot_ms : COLD_GUESS_MS;
}

/* By whole seconds, as it is billed; ending itself takes a pod a moment. */
static int64_t life_of_share(int64_t share_ms)
{
	return share_ms / 1000 * 1000 - SELF_END_MS;
}

/* Coming up may take a fifth of each share: a small cap that is shared by many pods would be spent
 * before any of them renders. */
int budget_shares(int64_t left_ms, int most, int64_t cold_ms)
{
	for (; most > 1; most--) {
		int64_t life = life_of_share(left_ms / most);
		if (life - 2 * budget_margin(life) >= 5 * cold_ms)
			break;
	}
	return MAX(most, 1);
}

int64_t budget_hard_end(const struct core *c, int64_t price_microusd_h, int more)
{
	int64_t end = NEVER;

	if (c->deadline_at)
		end = c->deadline_at;
	int64_t left =
		c->conf.max_cost_microusd ? c->conf.max_cost_microusd - budget_committed(c) : 1;
	if (left <= 0)
		return -1;
	/* A pod holds its share until it ends: where more pods may be wanted in a hurry, they need
	 * one too. */
	if (core_may_add_pods(c) && left / 2 >= c->conf.plan.cost_microusd / 2 * 3)
		left /= 2;
	if (c->conf.max_cost_microusd && price_microusd_h) {
		int64_t left_ms =
			(int64_t)MIN((__int128)left * 3600000 / price_microusd_h, INT64_MAX / 4);
		int64_t life =
			life_of_share(left_ms / budget_shares(left_ms, more, budget_cold(c)));
		if (life < INT64_MAX / 4 && c->now + life < end)
			end = c->now + life;
	}
	if (end == NEVER)
		end = c->now + (int64_t)24 * 3600 * 1000; /* no cap at all: still not for ever */
	return budget_useful(c, end) ? end : -1;
}

/* Dearer than it was offered. A little: it lives the shorter for it, by our clock.
 * More than that, and it could break the cap on cost in our absence: its own end was reckoned by
 * the offer. */
static bool fits_cap(const struct core *c, struct core_pod *p)
{
	int64_t over =
		c->conf.max_cost_microusd ? budget_committed(c) - c->conf.max_cost_microusd : 0;

	if (over <= 0 || p->rental.price_microusd_h <= p->rental.offer.price_microusd_h)
		return true;
	if (p->rental.price_microusd_h >
	    p->rental.offer.price_microusd_h + p->rental.offer.price_microusd_h / 20)
		return false;
	budget_end_sooner(p, p->rental.hard_end_ms -
				     (over * 3600 / p->rental.price_microusd_h + 1) * 1000);
	return budget_useful(c, p->rental.hard_end_ms);
}

const char *budget_refuses(const struct core *c, struct core_pod *p)
{
	if (c->conf.max_price_microusd_h &&
	    p->rental.price_microusd_h > c->conf.max_price_microusd_h)
		return "its price is above caps.max_price_per_hour";
	if (!fits_cap(c, p))
		return "it costs more than was offered: caps.max_cost would be exceeded";
	return NULL;
}

int64_t budget_billed_until(const struct core_pod *p, int64_t at)
{
	int64_t own_end = p->rental.hard_end_ms + p->rental.cut_ms;

	if (at < own_end + PAST_HARD_END_MS)
		return at;
	int64_t least = MAX(own_end + SELF_END_MS, p->rental.create_at);
	return MIN(at, p->rental.seen_at ? MAX(least, p->rental.seen_at) : least);
}
