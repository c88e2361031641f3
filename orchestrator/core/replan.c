/* replan.c - plans what is left of a run again. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "impl.h"
#include "plan/choose.h"
#include "plan/replan.h"

/* ---- what is left of a run, in the planner's terms: work, pods, offers and wishes ---- */

enum { OFFERS_MOST = 16 }; /* GPUs that are weighed */

struct remainder { /* what replan_choose() is shown, and which pods and candidates that is */
	struct replan_case of;
	struct plan_work work;
	double lightest;
	struct replan_pod *pods;
	int *pod_at;
	struct replan_offer offers[OFFERS_MOST];
	struct candidate *candidates[OFFERS_MOST];
};

/* The segments that no pod has finished. */
static void fill_work(const struct core *c, struct remainder *v)
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

/* Weight a second of one pod with its best batch size; 0: it fits no plan. */
static double pod_rate(const struct core *c, const struct remainder *v, const struct forecast *f)
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

static double lightest_segment_s(const struct remainder *v, const struct forecast *f)
{
	return speed_batch_s(&f->of.speed, v->lightest, v->lightest);
}

/* Median and slow tenth of a cold start: measured on this run's own pods of that provider, if one
 * has come up, else as planned. */
static void cold_start_s(const struct core *c, const struct forecast *f, double *p50_s,
			 double *p90_s)
{
	bool seen = false;

	for (int i = 0; i < c->pod_count; i++)
		seen = seen || (c->pods[i].presence.ready_at &&
				!strcmp(c->pods[i].rental.offer.provider, f->of.provider));
	*p50_s = seen && c->cold_ms ? (double)c->cold_ms / 1000 : f->of.cold_p50_s;
	*p90_s = *p50_s + MAX(f->of.cold_p90_s - f->of.cold_p50_s, 0);
}

/* Offers as they would be rented: of the first provider that has any, the first of each GPU. */
static void fill_offers(struct core *c, struct remainder *v)
{
	int provider = -1;
	size_t *count = &v->of.offer_count;

	for (size_t i = 0; i < c->candidate_count && *count < OFFERS_MOST; i++) {
		struct candidate *k = &c->candidates[i];
		const struct forecast *f = forecast_of(c, k->offer.provider, k->offer.gpu);
		if (!offers_is_ready(c, k) || (provider >= 0 && k->provider != provider) ||
		    (*count && !c->conf.plan.gpus_open))
			continue;
		provider = k->provider;
		bool skip = !f;
		for (size_t n = 0; n < *count; n++)
			skip = skip || !strcmp(v->candidates[n]->offer.gpu, k->offer.gpu);
		double rate = skip ? 0 : pod_rate(c, v, f);
		if (rate <= 0)
			continue;
		struct replan_offer *o = &v->offers[*count];
		*o = (struct replan_offer){.price_h = (double)k->offer.price_microusd_h / 1e6,
					   .rate = rate,
					   .sigma = f->of.speed_sigma,
					   .one_s = lightest_segment_s(v, f)};
		cold_start_s(c, f, &o->cold_s, &o->cold_p90_s);
		v->candidates[(*count)++] = k;
	}
	v->of.offers = v->offers;
}

static bool is_unready_new_pod(const struct core_pod *p)
{
	return pod_is_coming_up(p) && !p->presence.ready_at && p->presence.past == PAST_NONE;
}

/* Whether the pod is like one of this offer. A pod that costs much more than its GPU does now
 * counts as another GPU. */
static bool is_same_offer(const struct core_pod *p, const struct candidate *k)
{
	return p->rental.provider == k->provider && !strcmp(p->rental.offer.gpu, k->offer.gpu) &&
	       !replan_price_is_off((double)p->rental.price_microusd_h,
				    (double)k->offer.price_microusd_h);
}

/* Adds the pod, sorted by when it is up. A pod without a forecast is left out. */
static void insert_pod(const struct core *c, struct remainder *v, int pod)
{
	const struct core_pod *p = &c->pods[pod];
	const struct forecast *f = forecast_of(c, p->rental.offer.provider, p->rental.offer.gpu);
	double cold_s = 0, ignored, rate = f ? pod_rate(c, v, f) : 0;
	size_t at = v->of.pod_count;

	if (rate <= 0)
		return;
	if (is_unready_new_pod(p)) {
		cold_start_s(c, f, &cold_s, &ignored);
		/* it may be overdue */
		cold_s = MAX(MAX(cold_s - (double)(c->now - pod_boots_from(p, c->now)) / 1000,
				 cold_s / 4),
			     .001);
	}
	struct replan_pod one = {
		.price_h = (double)p->rental.price_microusd_h / 1e6,
		.rate = rate,
		.sigma = f->seen && !cold_s ? MIN(f->of.speed_sigma, SPEED_SIGMA_HERE)
					    : f->of.speed_sigma,
		.cold_s = cold_s,
		.one_s = lightest_segment_s(v, f),
		.life_s =
			(double)(p->rental.hard_end_ms - 2 * budget_pod_margin(p) - c->now) / 1000,
		.offer = -1};
	for (size_t n = 0; n < v->of.offer_count; n++)
		if (is_same_offer(p, v->candidates[n]))
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

static void fill_pods(const struct core *c, struct remainder *v)
{
	v->pods = xcalloc((size_t)c->pod_count, sizeof(*v->pods));
	v->pod_at = xcalloc((size_t)c->pod_count, sizeof(*v->pod_at));
	for (int i = 0; i < c->pod_count; i++)
		if (pod_is_active(&c->pods[i]) && !pod_is_draining(&c->pods[i]) &&
		    c->pods[i].phase != POD_AMBIGUOUS)
			insert_pod(c, v, i);
	v->of.pods = v->pods;
}

/* Seconds from now until this moment of the boot clock; never 0, which means no limit. */
static double left_s(const struct core *c, int64_t at)
{
	return at == c->now ? -.001 : (double)(at - c->now) / 1000;
}

/* Goal and limits. caps.max_duration is no reason to stop early. */
static void fill_wishes(const struct core *c, struct remainder *v)
{
	const struct core_plan *plan = &c->conf.plan;
	v->of.wish =
		(struct plan_wish){.goal = plan->goal, .value_of_time_h = plan->value_of_time_h};
	if (plan->deadline_ms)
		v->of.wish.within_s = left_s(c, c->began_at + plan->deadline_ms);
	if (c->ends_at)
		v->of.wish.cap_s = left_s(c, budget_ends_at(c));
	v->of.within_is_must = plan->deadline_ms != 0;
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

static void remainder_free(struct remainder *v)
{
	free(v->pods);
	free(v->pod_at);
}

/* Free with remainder_free(). */
static void remainder_fill(struct core *c, struct remainder *v)
{
	*v = (struct remainder){0};
	fill_work(c, v);
	fill_offers(c, v);
	fill_pods(c, v);
	fill_wishes(c, v);
}

/* ---- replan ----
 * During a run: whether batches or prices differ so much from the plan that the rest is planned
 * again, and what follows: more pods, fewer, other GPUs, or the end. plan/replan.c has the rule,
 * forecast.c and the remainder its inputs. */

enum {
	/* the effect of a re-plan shows only after its pods have come up */
	SETTLE_LEAST_MS = 60 * 1000,
	THINK_AGAIN_MS = 10 * 1000, /* after one that changed nothing */
	REPRICE_MS = 5 * 60 * 1000,
};

int core_replans(const struct core *c)
{
	return c->replan.done;
}

const char *core_replan_text(const struct core *c, int which)
{
	return c->replan.said[which];
}

static bool may_replan(const struct core *c)
{
	return c->replan.count && c->replan.done < CORE_REPLANS_MAX && c->canary_ok && c->todo &&
	       !c->conf.detached && !core_is_stopping(c) && !core_is_reading_past_logs(c) &&
	       !c->replan.stop.kind && !core_count_outgoing(c);
}

/* ---- what follows ---- */

/* Gives the pod no more work; its current batch is still rendered. */
static void drain_pod(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	p->outgoing = false;
	if (pod_is_draining(p))
		return;
	p->leave = LEAVE_DRAINING;
	if (p->presence.link == LINK_UP)
		core_act(c, ACT_REVOKE, pod);
	pod_mark_due(c, pod);
}

/* Prefers the offer's GPU from now on, unless the user has named the GPUs. */
static void prefer_gpu(struct core *c, const struct candidate *k)
{
	if (c->conf.plan.gpus_open)
		COPY_TEXT(c->replan.gpu, k->offer.gpu);
	offers_sort(c);
}

/* Dismisses the `count` pods that are furthest from ready. */
static void dismiss_pods(struct core *c, const struct remainder *v, int count, const char *why)
{
	for (size_t i = v->of.pod_count; i-- > 0 && count; count--)
		pod_dismiss(c, v->pod_at[i], ERR_NONE, "%s", why);
}

/* More pods may be rented, all at once, of the chosen offer's GPU first. */
static void widen(struct core *c, const struct remainder *v, const struct replan_choice *choice)
{
	c->conf.pods = MAX(c->conf.pods,
			   MIN(pods_count(c, pod_is_active) + choice->pods, core_pods_most(c)));
	c->conf.at_once = true;
	prefer_gpu(c, v->candidates[choice->offer]);
}

/* Another GPU takes over. Pods of other GPUs work until then, or, with REPLAN_REPLACE_AFTER, are
 * drained first. Those that boot are dismissed: they would bill for nothing. */
static void replace_gpus(struct core *c, const struct remainder *v,
			 const struct replan_choice *choice)
{
	bool after = choice->verb == REPLAN_REPLACE_AFTER;
	int stay = 0;
	char gpu[GPU_MAX];

	COPY_TEXT(gpu, v->candidates[choice->offer]->offer.gpu);
	prefer_gpu(c, v->candidates[choice->offer]);
	for (size_t i = 0; i < v->of.pod_count; i++) {
		int pod = v->pod_at[i];
		if (v->pods[i].offer == choice->offer)
			stay++;
		else if (is_unready_new_pod(&c->pods[pod]))
			pod_dismiss(c, pod, ERR_NONE, "%s takes its place", gpu);
		else if (after || c->pods[pod].phase != POD_WORKING)
			drain_pod(c, pod);
		else
			c->pods[pod].outgoing = true;
	}
	if (c->conf.plan.pods_open)
		c->conf.pods = choice->pods + stay;
}

/* Begins no more work: the budget or the deadline cannot be kept. */
static void stop_run(struct core *c, enum replan_verb verb, const char *why,
		     const struct replan_choice *choice)
{
	struct err *err = &c->replan.stop;
	char takes[24];

	if (verb == REPLAN_STOP_BUDGET) {
		err_set(err, ERR_CAP,
			"%s: the rest of caps.max_cost does not pay for one more segment; "
			"`burst resume %s` continues from here",
			why, c->conf.run);
		c->capped = true;
		core_fault(c, -1, err);
		return;
	}
	err_set(err, ERR_CAP,
		"%s: the deadline cannot be met: the rest takes at least %s; `burst resume %s "
		"--deadline WHEN` continues from here",
		why,
		duration_show(takes, sizeof(takes), (int64_t)(MIN(choice->makespan_s, 1e9) * 1000)),
		c->conf.run);
	for (int i = 0; i < c->pod_count; i++) {
		if (!pod_is_active(&c->pods[i]))
			continue;
		if (c->pods[i].phase == POD_WORKING)
			drain_pod(c, i);
		else
			pod_dismiss(c, i, ERR_NONE, "the deadline cannot be met");
	}
}

/* Writes why the run is planned again, and what changes, for the user. */
static void show_change(const struct remainder *v, const struct replan_choice *choice,
			const char *why, char *to, size_t room)
{
	const char *gpu = choice->offer >= 0 && v->of.offer_count
				  ? v->candidates[choice->offer]->offer.gpu
				  : GPU_NONE;
	const char *with = gpu_is_none(gpu) ? "" : " with ", *s = choice->pods == 1 ? "" : "s";
	char what[96] = "", takes[24], costs[32];

	gpu = *with ? gpu : "";
	switch (choice->verb) {
	case REPLAN_ADD:
		snprintf(what, sizeof(what), "renting %d more pod%s%s%s", choice->pods, s, with,
			 gpu);
		break;
	case REPLAN_RELEASE:
		snprintf(what, sizeof(what), "releasing %d pod%s that boot%s", choice->pods, s,
			 *s ? "" : "s");
		break;
	case REPLAN_REPLACE:
	case REPLAN_REPLACE_AFTER:
		snprintf(what, sizeof(what), "continuing with %d pod%s of %s", choice->pods, s,
			 gpu);
		break;
	case REPLAN_STOP_LATE:
		snprintf(to, room,
			 "%s; stopping when the current batches are done: the deadline cannot be "
			 "met",
			 why);
		return;
	case REPLAN_STOP_BUDGET:
		snprintf(to, room, "%s; stopping: the budget does not pay for one more segment",
			 why);
		return;
	case REPLAN_KEEP: snprintf(to, room, "%s; no other plan is clearly better", why); return;
	}
	snprintf(to, room, "%s; %s: the rest takes about %s and costs about %s", why, what,
		 duration_show(takes, sizeof(takes), (int64_t)(choice->makespan_s * 1000)),
		 money_show(costs, sizeof(costs), (int64_t)(choice->cost_usd * 1e6)));
}

static void wait_for_effect(struct core *c, const struct remainder *v,
			    const struct replan_choice *choice)
{
	double cold_s =
		choice->offer >= 0 && v->of.offer_count ? v->offers[choice->offer].cold_p90_s : 0;

	c->replan.not_before = c->now + MAX((int64_t)(2000 * cold_s), (int64_t)SETTLE_LEAST_MS);
}

/* Notes what was chosen and carries it out. */
static void apply_choice(struct core *c, const struct remainder *v,
			 const struct replan_choice *choice, const char *why)
{
	char *said = c->replan.said[c->replan.done];

	show_change(v, choice, why, said, sizeof(c->replan.said[0]));
	if (choice->verb == REPLAN_KEEP) {
		c->replan.not_before = c->now + THINK_AGAIN_MS;
		core_note(c, NOTE_INFO, "%s", said);
		return;
	}
	c->replan.done++;
	c->conf.plan.cost_microusd = (int64_t)llround(MIN(choice->cost_usd, 1e6) * 1e6);
	core_note(c, NOTE_NOTE, "%s", said);
	wait_for_effect(c, v, choice);
	switch (choice->verb) {
	case REPLAN_ADD: widen(c, v, choice); break;
	case REPLAN_RELEASE:
		c->conf.pods = MAX(pods_count(c, pod_is_active) - choice->pods, 1);
		dismiss_pods(c, v, choice->pods, "the other pods will have finished by then");
		break;
	case REPLAN_REPLACE:
	case REPLAN_REPLACE_AFTER: replace_gpus(c, v, choice); break;
	case REPLAN_STOP_LATE:
	case REPLAN_STOP_BUDGET: stop_run(c, choice->verb, why, choice); break;
	case REPLAN_KEEP: break;
	}
}

/* Plans the rest again for this reason, with corrected forecasts. */
static void replan_now(struct core *c, const char *why)
{
	struct replan_choice choice;
	struct remainder v;

	forecast_correct(c);
	remainder_fill(c, &v);
	if (v.of.pod_count) {
		replan_choose(&choice, &v.of);
		apply_choice(c, &v, &choice, why);
	}
	remainder_free(&v);
}

/* ---- in each step ---- */

/* Releases the outgoing pods once their replacements work: all that are wanted or available. */
static void release_outgoing(struct core *c)
{
	int working = 0, coming = 0;

	if (!core_count_outgoing(c))
		return;
	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (!pod_is_active(p) || p->outgoing || pod_is_draining(p))
			continue;
		working += p->phase == POD_WORKING && p->presence.link == LINK_UP;
		coming += pod_is_coming_up(p);
	}
	if (!working || (coming && working < c->conf.pods))
		return;
	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].outgoing && pod_is_active(&c->pods[i]))
			drain_pod(c, i);
}

/* Requests offers from time to time, since burst sees a moved price only in an answer. */
static void request_prices(struct core *c)
{
	if (!c->conf.plan.gpus_open || !may_replan(c))
		return;
	if (!c->replan.reprice_at)
		c->replan.reprice_at = c->now + REPRICE_MS;
	if (c->now < c->replan.reprice_at)
		return;
	c->replan.reprice_at = c->now + REPRICE_MS;
	for (int i = 0; i < c->conf.provider_count; i++) {
		struct vendor *v = &c->vendors[i];
		if (v->dead || v->repricing || v->offers_query != QUERY_ANSWERED)
			continue;
		v->repricing = true;
		core_act(c, ACT_OFFERS, -1)->provider = i;
	}
}

/* After a re-plan that stops the run: ends it when the last pod has delivered. */
static void end_when_drained(struct core *c)
{
	if (pods_count(c, pod_is_active) || pods_count(c, pod_owes) || segments_settled(c))
		return;
	c->capped = true;
	core_fault(c, -1, &c->replan.stop);
}

void replan_advance(struct core *c)
{
	char why[120];

	if (c->replan.stop.kind) {
		end_when_drained(c);
		return;
	}
	release_outgoing(c);
	request_prices(c);
	if (may_replan(c) && c->now >= c->replan.not_before && forecast_is_off(c, why, sizeof(why)))
		replan_now(c, why);
}

int64_t replan_wake_at(const struct core *c)
{
	char why[120];
	int64_t at = NEVER;

	if (!may_replan(c))
		return NEVER;
	if (c->replan.reprice_at > c->now && c->conf.plan.gpus_open)
		at = c->replan.reprice_at;
	if (c->replan.not_before > c->now && forecast_is_off(c, why, sizeof(why)))
		at = MIN(at, c->replan.not_before);
	return at;
}
