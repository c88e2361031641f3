/* replan.c - weighs what can be changed in a run against going on as it is. */
#include "replan.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cost.h"
#include "spread.h"

/* What a change must save to be worth its trouble, of what is left to pay or to wait. Another GPU
 * brings risks of its own. */
#define GAIN_OF_WIDTH 0.10
#define GAIN_OF_GPU   0.20

bool replan_speed_is_off(double measured_s, double planned_s)
{
	if (measured_s <= 0 || planned_s <= 0)
		return false;
	double factor = measured_s / planned_s;
	return factor > REPLAN_SPEED_FACTOR || factor < 1 / REPLAN_SPEED_FACTOR;
}

bool replan_price_is_off(double now_h, double planned_h)
{
	return fabs(now_h - planned_h) > planned_h * REPLAN_PRICE_SHARE + 1e-9;
}

/* ---- what comes of a change ---- */

struct outcome {
	struct replan_choice how; /* makespan by the median cold start */
	double p90_s, new_usd;    /* new_usd: what the pods that it rents cost */
};

struct stream { /* pods that render from a moment on */
	double from_s, rate;
};

static int earliest_first(const void *a, const void *b)
{
	double x = ((const struct stream *)a)->from_s, y = ((const struct stream *)b)->from_s;

	return (x > y) - (x < y);
}

/* Seconds until this much is rendered; INFINITY: never. Sorts the list. */
static double rendered_after_s(double work, struct stream *list, size_t count)
{
	double now_s = 0, rate = 0;

	qsort(list, count, sizeof(*list), earliest_first);
	for (size_t i = 0; i < count; i++) {
		double can = rate * (list[i].from_s - now_s);
		if (can >= work)
			break;
		work -= can;
		now_s = list[i].from_s;
		rate += list[i].rate;
	}
	return rate > 0 ? now_s + work / rate : INFINITY;
}

/* How many standard deviations slower than expected pods are. */
enum luck { AS_EXPECTED, SLOW };

static double rate_with(double rate, double sigma, enum luck luck)
{
	return luck == SLOW ? rate * exp(-SPREAD_Z90 * sigma) : rate;
}

/* New pods beside those of the case. */
struct arrival {
	const struct replan_offer *of; /* NULL: none */
	int pods;
};

/* Seconds without the last `less` pods, and with new ones that are up after up_s. */
static double makespan_s_with(const struct replan_case *c, int less, const struct arrival *new,
			      double up_s, enum luck luck)
{
	struct stream *list = xcalloc(c->pod_count + 1, sizeof(*list));
	size_t count = c->pod_count - (size_t)less;

	for (size_t i = 0; i < count; i++)
		list[i] = (struct stream){c->pods[i].cold_s,
					  rate_with(c->pods[i].rate, c->pods[i].sigma, luck)};
	if (new->of)
		list[count++] = (struct stream){
			up_s, new->pods *rate_with(new->of->rate, new->of->sigma, luck)};
	double seconds = rendered_after_s(c->work, list, count);
	free(list);
	return seconds;
}

/* What nine times in ten is not exceeded, by the median and by what slow cold starts alone, and
 * slow pods alone, make of it. The two are independent. */
static double p90_of(double median_s, double cold_s, double slow_cold_s, double slow_work_s)
{
	if (!isfinite(median_s))
		return median_s;
	cold_s = MIN(cold_s, median_s);
	double work_s = median_s - cold_s;
	struct spread sum = spread_of(cold_s, cold_s + slow_cold_s - median_s),
		      work = spread_of(work_s, work_s + slow_work_s - median_s);

	sum.mean -= cold_s;
	spread_add(&sum, &work);
	sum.mean += median_s - work_s;
	return MAX(spread_quantile(&sum, SPREAD_Z90), median_s);
}

static struct outcome with_fewer(const struct replan_case *c, int less)
{
	const struct arrival none = {0};
	struct outcome o = {
		.how = {.verb = less ? REPLAN_RELEASE : REPLAN_KEEP, .offer = -1, .pods = less}};

	o.how.makespan_s = makespan_s_with(c, less, &none, 0, AS_EXPECTED);
	o.p90_s = p90_of(o.how.makespan_s, 0, o.how.makespan_s,
			 makespan_s_with(c, less, &none, 0, SLOW));
	for (size_t i = 0; i + (size_t)less < c->pod_count; i++)
		o.how.cost_usd += cost_usd(c->pods[i].price_h, o.how.makespan_s);
	return o;
}

static struct outcome with_more(const struct replan_case *c, int offer, int more)
{
	const struct replan_offer *new = &c->offers[offer];
	const struct arrival come = {new, more};
	struct outcome o = {.how = {.verb = REPLAN_ADD, .offer = offer, .pods = more}};

	o.how.makespan_s = makespan_s_with(c, 0, &come, new->cold_s, AS_EXPECTED);
	o.p90_s = p90_of(o.how.makespan_s, new->cold_s,
			 makespan_s_with(c, 0, &come, new->cold_p90_s, AS_EXPECTED),
			 makespan_s_with(c, 0, &come, new->cold_s, SLOW));
	o.new_usd = cost_usd(more * new->price_h, o.how.makespan_s);
	o.how.cost_usd = o.new_usd;
	for (size_t i = 0; i < c->pod_count; i++)
		o.how.cost_usd += cost_usd(c->pods[i].price_h, o.how.makespan_s);
	return o;
}

/* Seconds until new pods, with those of theirs that stay, are done; `meanwhile` is rendered until
 * they are up. */
static double handed_over_s(const struct replan_case *c, double up_s, double meanwhile, double rate)
{
	return up_s + MAX(c->work - meanwhile * up_s, 0) / rate;
}

/* Pods of other GPUs work until the new ones are up, or, with `after`, end before that. */
static struct outcome with_gpu(const struct replan_case *c, int offer, int pods, bool after)
{
	const struct replan_offer *new = &c->offers[offer];
	struct outcome o = {.how = {.verb = after ? REPLAN_REPLACE_AFTER : REPLAN_REPLACE,
				    .offer = offer,
				    .pods = pods}};
	double kept_price_h = 0, old_price_h = 0, rate[2], meanwhile[2];

	for (int luck = AS_EXPECTED; luck <= SLOW; luck++) {
		rate[luck] = pods * rate_with(new->rate, new->sigma, (enum luck)luck);
		meanwhile[luck] = 0;
	}
	for (size_t i = 0; i < c->pod_count; i++) {
		const struct replan_pod *p = &c->pods[i];
		bool stays = p->offer == offer, works = p->cold_s <= 0 && !after;
		kept_price_h += stays ? p->price_h : 0;
		old_price_h += !stays && works ? p->price_h : 0;
		for (int luck = AS_EXPECTED; luck <= SLOW; luck++) {
			double its = rate_with(p->rate, p->sigma, (enum luck)luck);
			rate[luck] += stays ? its : 0;
			meanwhile[luck] += stays || works ? its : 0;
		}
	}
	double p50_s = handed_over_s(c, new->cold_s, meanwhile[AS_EXPECTED], rate[AS_EXPECTED]);
	o.how.makespan_s = p50_s;
	o.p90_s =
		p90_of(p50_s, new->cold_s,
		       handed_over_s(c, new->cold_p90_s, meanwhile[AS_EXPECTED], rate[AS_EXPECTED]),
		       handed_over_s(c, new->cold_s, meanwhile[SLOW], rate[SLOW]));
	o.new_usd = cost_usd(pods * new->price_h, p50_s);
	o.how.cost_usd =
		cost_usd(kept_price_h, p50_s) + cost_usd(old_price_h, new->cold_s) + o.new_usd;
	return o;
}

/* ---- which change ---- */

/* The goal keeps this small. A little of the other quantity settles ties. */
static double badness(const struct outcome *o, const struct plan_wish *wish)
{
	switch (wish->goal) {
	case PLAN_COST: return o->how.cost_usd + 1e-9 * o->how.makespan_s;
	case PLAN_TIME: return o->how.makespan_s + 1e-3 * o->how.cost_usd;
	case PLAN_BALANCED:
		return o->how.cost_usd + cost_usd(wish->value_of_time_h, o->how.makespan_s);
	}
	return 0;
}

static bool is_in_time(const struct replan_case *c, const struct outcome *o)
{
	return (c->wish.within_s == 0 || o->p90_s <= c->wish.within_s + 1e-9) &&
	       (c->wish.cap_s == 0 || o->how.makespan_s <= c->wish.cap_s + 1e-9);
}

/* Whether money is free for the new pods: working pods hold theirs until they end. */
static bool has_room(const struct replan_case *c, const struct outcome *o)
{
	return o->how.verb == REPLAN_REPLACE_AFTER || o->new_usd <= c->room_usd + 1e-9;
}

static bool is_in_budget(const struct replan_case *c, const struct outcome *o)
{
	return c->wish.budget_usd <= 0 || o->how.cost_usd <= c->wish.budget_usd + 1e-9;
}

static double gain_wanted(const struct outcome *o)
{
	return o->how.verb == REPLAN_REPLACE || o->how.verb == REPLAN_REPLACE_AFTER ? GAIN_OF_GPU
										    : GAIN_OF_WIDTH;
}

struct search {
	const struct replan_case *c;
	struct outcome keep, fitting, fastest, cheapest;
	bool any_fitting, any_in_time;
};

/* Keeps the outcome where it is the best so far. */
static void consider_outcome(struct search *s, const struct outcome *o)
{
	const struct plan_wish *wish = &s->c->wish;

	if (!has_room(s->c, o))
		return;
	if (o->how.cost_usd < s->cheapest.how.cost_usd)
		s->cheapest = *o;
	s->any_in_time = s->any_in_time || is_in_time(s->c, o);
	if (!is_in_budget(s->c, o))
		return;
	if (o->how.makespan_s < s->fastest.how.makespan_s)
		s->fastest = *o;
	if (!is_in_time(s->c, o))
		return;
	/* an equal one that changes less stands before it */
	if (!s->any_fitting || badness(o, wish) < badness(&s->fitting, wish) * (1 - 1e-6))
		s->fitting = *o;
	s->any_fitting = true;
}

static int count_coming_up(const struct replan_case *c)
{
	int count = 0;

	for (size_t i = 0; i < c->pod_count; i++)
		count += c->pods[i].cold_s > 0;
	return count;
}

static void weigh_widths(struct search *s)
{
	const struct replan_case *c = s->c;
	int coming = count_coming_up(c), room = c->pods_most - (int)c->pod_count;

	for (int less = 1; less <= MIN(coming, (int)c->pod_count - 1) && c->width_open; less++) {
		struct outcome o = with_fewer(c, less);
		consider_outcome(s, &o);
	}
	for (int offer = 0; offer < (int)c->offer_count; offer++)
		for (int more = 1; more <= room; more++) {
			struct outcome o = with_more(c, offer, more);
			consider_outcome(s, &o);
		}
}

/* How many pods of this offer could be rented in the place of others; 0: all are of it already. */
static int most_replacements(const struct replan_case *c, int offer)
{
	int stay = 0;

	for (size_t i = 0; i < c->pod_count; i++)
		stay += c->pods[i].offer == offer;
	return stay < (int)c->pod_count ? MAX(c->pods_most, (int)c->pod_count) - stay : 0;
}

/* Work stands still if old pods end first: weighed only if new ones cannot come up beside them. */
static void weigh_gpus(struct search *s)
{
	const struct replan_case *c = s->c;
	int beside = c->pods_most - (int)c->pod_count;
	bool room = false;

	for (int offer = 0; offer < (int)c->offer_count && c->gpus_open; offer++)
		for (int pods = 1; pods <= MIN(most_replacements(c, offer), beside); pods++) {
			struct outcome o = with_gpu(c, offer, pods, false);
			room = room || has_room(c, &o);
			consider_outcome(s, &o);
		}
	if (room && s->any_fitting)
		return;
	for (int offer = 0; offer < (int)c->offer_count && c->gpus_open; offer++)
		for (int pods = 1; pods <= most_replacements(c, offer); pods++) {
			struct outcome o = with_gpu(c, offer, pods, true);
			consider_outcome(s, &o);
		}
}

/* Whether some pod can render one more segment within its life and the budget. */
static bool can_pay_one_more(const struct replan_case *c)
{
	for (size_t i = 0; i < c->pod_count; i++) {
		const struct replan_pod *p = &c->pods[i];
		if (p->cold_s + p->one_s <= p->life_s &&
		    cost_usd(p->price_h, p->cold_s + p->one_s) <= c->wish.budget_usd)
			return true;
	}
	for (size_t i = 0; i < c->offer_count; i++)
		if (cost_usd(c->offers[i].price_h, c->offers[i].cold_s + c->offers[i].one_s) <=
		    c->room_usd)
			return true;
	return false;
}

/* its, keeps: what the change and no change cost or take. */
static bool is_clearly_better(const struct search *s, const struct outcome *o, double its,
			      double keeps)
{
	return o->how.verb != REPLAN_KEEP && its < keeps * (1 - gain_wanted(o)) && isfinite(its) &&
	       s->c->work > 0;
}

static struct replan_choice choose_outcome(const struct search *s)
{
	const struct replan_case *c = s->c;
	const struct plan_wish *wish = &c->wish;
	const struct outcome *keep = &s->keep;
	bool in_time_now = is_in_time(c, keep), in_budget_now = is_in_budget(c, keep);

	if (in_time_now && in_budget_now) {
		bool better = s->any_fitting &&
			      is_clearly_better(s, &s->fitting, badness(&s->fitting, wish),
						badness(keep, wish));
		return better ? s->fitting.how : keep->how;
	}
	if (!in_budget_now && c->is_measured && !can_pay_one_more(c))
		return (struct replan_choice){.verb = REPLAN_STOP_BUDGET};
	if (s->any_fitting)
		return s->fitting.how;
	if (!in_time_now && !s->any_in_time && c->within_is_must && c->is_measured &&
	    MIN(s->fastest.how.makespan_s, keep->how.makespan_s) > wish->within_s + c->late_ok_s)
		return (struct replan_choice){.verb = REPLAN_STOP_LATE,
					      .makespan_s = s->fastest.how.makespan_s};
	if (!in_budget_now) /* it ends at the cap: with as much as the money buys */
		return is_clearly_better(s, &s->cheapest, s->cheapest.how.cost_usd,
					 keep->how.cost_usd)
			       ? s->cheapest.how
			       : keep->how;
	return is_clearly_better(s, &s->fastest, s->fastest.how.makespan_s, keep->how.makespan_s)
		       ? s->fastest.how
		       : keep->how;
}

void replan_choose(struct replan_choice *out, const struct replan_case *c)
{
	struct search s = {.c = c, .keep = with_fewer(c, 0)};

	s.fitting = s.fastest = s.cheapest = s.keep;
	consider_outcome(&s, &s.keep);
	weigh_widths(&s);
	weigh_gpus(&s);
	*out = choose_outcome(&s);
	out->keep_makespan_s = s.keep.how.makespan_s;
	out->keep_cost_usd = s.keep.how.cost_usd;
}
