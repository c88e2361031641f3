/* remainder.c - what is left of a run, in the planner's terms: work, pods, offers and wishes. */
#include "remainder.h"

#include <math.h>
#include <stdlib.h>

static void view_work(const struct core *c, struct remainder *v)
{
	double *lengths = xcalloc(c->seg_count, sizeof(*lengths));
	int batch_max = c->conf.max_batch;
	size_t count = 0;

	v->lightest = INFINITY;
	for (size_t i = 0; i < c->seg_count; i++) {
		if (c->segs[i].state != SEG_TODO && c->segs[i].state != SEG_HELD)
			continue;
		lengths[count++] = c->segs[i].weight;
		v->lightest = MIN(v->lightest, c->segs[i].weight);
	}
	for (size_t i = 0; i < c->replan.count; i++)
		batch_max = MAX(batch_max, c->replan.forecasts[i].of.batch_max);
	plan_work_init(&v->work, lengths, count, MAX(batch_max, 1), 0);
	v->of.work = v->work.sum;
	free(lengths);
}

/* Weight a second of one pod with its best batch size. */
static double rate_of(const struct core *c, const struct remainder *v, const struct forecast *f)
{
	const struct plan_machine m = {.price_h = 1,
				       .speed = f->of.speed,
				       .workers = MAX(c->conf.workers, 1),
				       .batch_max = MAX(f->of.batch_max, 1)};
	const struct plan_wish one = {.pods = 1};
	struct plan plan;

	if (plan_choose(&plan, &v->work, &m, 1, &one) != PLAN_FOUND || plan.work_s <= 0)
		return 0;
	return v->work.sum / plan.work_s;
}

static double one_segment_s(const struct remainder *v, const struct forecast *f)
{
	return speed_batch_s(&f->of.speed, v->lightest, v->lightest);
}

/* Measured on this run's own pods of that provider, if one has come up. */
static void cold_of(const struct core *c, const struct forecast *f, double *p50_s, double *p90_s)
{
	bool seen = false;

	for (int i = 0; i < c->pod_count; i++)
		seen = seen || (c->pods[i].presence.ready_at &&
				!strcmp(c->pods[i].rental.offer.provider, f->of.provider));
	*p50_s = seen && c->cold_ms ? (double)c->cold_ms / 1000 : f->of.cold_p50_s;
	*p90_s = *p50_s + MAX(f->of.cold_p90_s - f->of.cold_p50_s, 0);
}

/* The candidates as they would be rented: of the first provider that has any, the first of each
 * GPU. */
static void view_offers(struct core *c, struct remainder *v)
{
	int provider = -1;
	size_t *count = &v->of.offer_count;

	for (size_t i = 0; i < c->candidate_count && *count < OFFERS_MOST; i++) {
		struct candidate *k = &c->candidates[i];
		const struct forecast *f = forecast_of(c, k->offer.provider, k->offer.gpu);
		if (!offers_ready(c, k) || (provider >= 0 && k->provider != provider) ||
		    (*count && !c->conf.plan.gpus_open))
			continue;
		provider = k->provider;
		bool had = !f;
		for (size_t n = 0; n < *count; n++)
			had = had || !strcmp(v->candidates[n]->offer.gpu, k->offer.gpu);
		double rate = had ? 0 : rate_of(c, v, f);
		if (rate <= 0)
			continue;
		struct replan_offer *o = &v->offers[*count];
		*o = (struct replan_offer){.price_h = (double)k->offer.price_microusd_h / 1e6,
					   .rate = rate,
					   .one_s = one_segment_s(v, f)};
		cold_of(c, f, &o->cold_s, &o->cold_p90_s);
		v->candidates[(*count)++] = k;
	}
	v->of.offers = v->offers;
}

bool remainder_comes_up(const struct core_pod *p)
{
	return pod_is_coming_up(p) && !p->presence.ready_at && p->presence.past == PAST_NONE;
}

/* A pod that costs much more than its GPU does now counts as another GPU. */
static bool is_like(const struct core_pod *p, const struct candidate *k)
{
	return p->rental.provider == k->provider && !strcmp(p->rental.offer.gpu, k->offer.gpu) &&
	       !replan_price_is_off((double)p->rental.price_microusd_h,
				    (double)k->offer.price_microusd_h);
}

static void add_pod(const struct core *c, struct remainder *v, int pod)
{
	const struct core_pod *p = &c->pods[pod];
	const struct forecast *f = forecast_of(c, p->rental.offer.provider, p->rental.offer.gpu);
	double cold_s = 0, ignored, rate = f ? rate_of(c, v, f) : 0;
	size_t at = v->of.pod_count;

	if (rate <= 0)
		return;
	if (remainder_comes_up(p)) {
		cold_of(c, f, &cold_s, &ignored);
		/* it may be overdue */
		cold_s =
			MAX(MAX(cold_s - (double)(c->now - p->rental.create_at) / 1000, cold_s / 4),
			    .001);
	}
	struct replan_pod one = {
		.price_h = (double)p->rental.price_microusd_h / 1e6,
		.rate = rate,
		.cold_s = cold_s,
		.one_s = one_segment_s(v, f),
		.life_s = (double)(p->rental.hard_end_ms -
				   2 * budget_margin(p->rental.hard_end_ms - p->rental.create_at) -
				   c->now) /
			  1000,
		.offer = -1};
	for (size_t n = 0; n < v->of.offer_count; n++)
		if (is_like(p, v->candidates[n]))
			one.offer = (int)n;
	for (; at > 0 && v->pods[at - 1].cold_s > one.cold_s; at--) {
		v->pods[at] = v->pods[at - 1];
		v->pod_at[at] = v->pod_at[at - 1];
	}
	v->pods[at] = one;
	v->pod_at[at] = pod;
	v->of.pod_count++;
	v->of.is_measured = v->of.is_measured || (f->seen && p->phase == POD_WORKING);
}

static void view_pods(const struct core *c, struct remainder *v)
{
	v->pods = xcalloc((size_t)c->pod_count, sizeof(*v->pods));
	v->pod_at = xcalloc((size_t)c->pod_count, sizeof(*v->pod_at));
	for (int i = 0; i < c->pod_count; i++)
		if (pod_active(&c->pods[i]) && !pod_is_draining(&c->pods[i]) &&
		    c->pods[i].phase != POD_AMBIGUOUS)
			add_pod(c, v, i);
	v->of.pods = v->pods;
}

/* The user's deadline, or the end that caps.max_duration sets if that is sooner. The latter is no
 * reason to stop early. */
static void view_wishes(const struct core *c, struct remainder *v)
{
	const struct core_plan *plan = &c->conf.plan;
	int64_t user = plan->deadline_ms ? c->began_at + plan->deadline_ms : NEVER,
		cap = c->deadline_at ? c->deadline_at : NEVER;
	int64_t end = MIN(user, cap), left = end - c->now;

	v->of.wish =
		(struct plan_wish){.goal = plan->goal, .value_of_time_h = plan->value_of_time_h};
	if (end != NEVER)
		v->of.wish.deadline_s = left ? (double)left / 1000 : -.001;
	v->of.deadline_is_must = plan->deadline_ms && user <= cap;
	v->of.late_ok_s = (double)plan->deadline_ms / 4000;
	v->of.room_usd = INFINITY;
	if (c->conf.max_cost_microusd) {
		v->of.wish.budget_usd =
			MAX((double)(c->conf.max_cost_microusd - budget_spent(c)) / 1e6, 1e-9);
		v->of.room_usd = (double)(c->conf.max_cost_microusd - budget_committed(c)) / 1e6;
	}
	v->of.pods_most = core_pods_most(c);
	v->of.width_open = plan->pods_open;
	v->of.gpus_open = plan->gpus_open;
}

void remainder_free(struct remainder *v)
{
	free(v->pods);
	free(v->pod_at);
}

void remainder_measure(struct core *c, struct remainder *v)
{
	*v = (struct remainder){0};
	view_work(c, v);
	view_offers(c, v);
	view_pods(c, v);
	view_wishes(c, v);
}
