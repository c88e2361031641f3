/* replan.c - during a run: whether batches or prices are so far from the plan that the rest is planned again, and what follows: more
 * pods, fewer, other GPUs, or the end. The rule itself is plan/replan.c; here are its inputs and what is done by it. */
#include "impl.h"

#include <math.h>
#include <stdlib.h>

#include "../base/clock.h"
#include "../base/gpus.h"
#include "../plan/replan.h"

enum {
	BATCHES_LEAST = 2,	       /* that are no worker's first, before they say something */
	BATCH_LONG_S = 20,	       /* ... of such a long one, one does */
	SETTLE_LEAST_MS = 60 * 1000,   /* a re-plan shows what it is good for when its pods have come up */
	THINK_AGAIN_MS = 10 * 1000,    /* after one that changed nothing */
	LOOK_AT_PRICES_MS = 5 * 60 * 1000,
	OFFERS_MOST = 16,	       /* GPUs that are weighed */
};

void replan_init(struct core *c)
{
	struct replan *r = &c->replan;
	const struct core_plan *plan = &c->conf.plan;

	r->count = plan->forecast_count;
	r->forecasts = xcalloc(r->count, sizeof(*r->forecasts));
	for (size_t i = 0; i < r->count; i++)
		r->forecasts[i].of = plan->forecasts[i];
	c->conf.plan.forecasts = NULL; /* the caller's */
}

void replan_free(struct core *c)
{
	free(c->replan.forecasts);
}

int core_replans(const struct core *c)
{
	return c->replan.done;
}

const char *core_replan_said(const struct core *c, int which)
{
	return c->replan.said[which];
}

int core_outgoing(const struct core *c)
{
	int count = 0;

	for (int i = 0; i < c->pod_count; i++)
		count += c->pods[i].outgoing && pod_active(&c->pods[i]);
	return count;
}

/* ---- what was measured ---- */

static struct forecast *forecast_of(const struct core *c, const char *provider, const char *gpu)
{
	for (size_t i = 0; i < c->replan.count; i++) {
		struct forecast *f = &c->replan.forecasts[i];
		if (!strcmp(f->of.provider, provider) && !strcmp(f->of.gpu, gpu))
			return f;
	}
	return NULL;
}

static bool says_something(const struct forecast *f)
{
	return f->batches >= BATCHES_LEAST || (f->batches && f->measured_s >= BATCH_LONG_S);
}

static bool is_off(const struct forecast *f)
{
	return says_something(f) && replan_speed_is_off(f->measured_s, f->planned_s);
}

static void measured(struct core *c, const struct core_pod *p, size_t segments, double longest, double weight, int64_t ms)
{
	struct forecast *f = forecast_of(c, p->offer.provider, p->offer.gpu);
	double planned_s = f && ms > 0 ? speed_batch_s(&f->of.speed, longest, weight) : 0;

	if (planned_s <= 0)
		return;
	f->measured_s += (double)ms / 1000;
	f->planned_s += planned_s;
	f->segments += segments;
	f->batches++;
	c->dirty = c->dirty || is_off(f);
}

void replan_measured(struct core *c, const struct core_batch *b, int64_t ms)
{
	const struct core_pod *p = &c->pods[b->pod];
	double longest = 0;

	if (b->first || p->batching == BATCHING_CONTINUOUS) /* whose batches overlap: replan_measured_beside() */
		return;
	for (size_t i = 0; i < b->count; i++)
		longest = MAX(longest, c->segs[b->segments[i]].weight);
	measured(c, p, b->count, longest, b->weight, ms);
}

void replan_measured_beside(struct core *c, const struct core_pod *p, size_t segments, double weight, int64_t ms)
{
	measured(c, p, segments, weight / (double)segments, weight, ms);
}

/* What is known of one GPU tells of those that nobody has measured. */
static void carry_over(struct core *c, const struct forecast *from, double factor)
{
	const struct gpu *had = gpu_find(from->of.gpu);

	for (size_t i = 0; i < c->replan.count; i++) {
		struct forecast *f = &c->replan.forecasts[i];
		const struct gpu *its = gpu_find(f->of.gpu);
		if (f->of.measured)
			continue;
		if (f->of.host_share >= 1)
			f->of.speed = from->of.speed;
		else if (had && its)
			f->of.speed = speed_carry(&from->of.speed, had, its, f->of.host_share);
		else
			f->of.speed = speed_scale(&f->of.speed, factor);
	}
}

/* The plan as it would have been with what is known now. */
static void correct_forecasts(struct core *c)
{
	const struct forecast *best = NULL;
	double factor = 1;

	for (size_t i = 0; i < c->replan.count; i++) {
		struct forecast *f = &c->replan.forecasts[i];
		if (!says_something(f))
			continue;
		double its = f->measured_s / f->planned_s;
		f->of.speed = speed_scale(&f->of.speed, its);
		f->of.measured = true;
		if (!best || f->batches > best->batches) {
			best = f;
			factor = its;
		}
	}
	if (best)
		carry_over(c, best, factor);
	for (size_t i = 0; i < c->replan.count; i++) {
		struct forecast *f = &c->replan.forecasts[i];
		if (says_something(f))
			*f = (struct forecast){.of = f->of, .seen = true};
	}
	for (size_t i = 0; i < c->candidate_count; i++)
		c->candidates[i].planned_microusd_h = c->candidates[i].offer.price_microusd_h;
}

/* ---- why ---- */

static bool moved(const struct candidate *k)
{
	return replan_price_is_off((double)k->offer.price_microusd_h, (double)k->planned_microusd_h);
}

static const struct candidate *moved_price(const struct core *c)
{
	for (size_t i = 0; i < c->candidate_count; i++)
		if (moved(&c->candidates[i]))
			return &c->candidates[i];
	return NULL;
}

void replan_listed(struct core *c)
{
	for (size_t i = 0; i < c->candidate_count; i++)
		if (!c->candidates[i].planned_microusd_h)
			c->candidates[i].planned_microusd_h = c->candidates[i].offer.price_microusd_h;
}

/* False: the plan holds. */
static bool tell_why(const struct core *c, char *to, size_t room)
{
	char was[32], is[32];

	for (size_t i = 0; i < c->replan.count; i++) {
		const struct forecast *f = &c->replan.forecasts[i];
		if (!is_off(f))
			continue;
		bool gpu = strcmp(f->of.gpu, "none") != 0;
		snprintf(to, room, "%s than planned: %.2g s a segment%s%s instead of %.2g s", f->measured_s > f->planned_s ? "slower" : "faster",
			 f->measured_s / (double)f->segments, gpu ? " on " : "", gpu ? f->of.gpu : "", f->planned_s / (double)f->segments);
		return true;
	}
	const struct candidate *k = moved_price(c);
	if (!k)
		return false;
	snprintf(to, room, "the price of %s at %s moved from %s to %s an hour", k->offer.gpu, k->offer.provider,
		 money_show(was, sizeof(was), k->planned_microusd_h), money_show(is, sizeof(is), k->offer.price_microusd_h));
	return true;
}

/* ---- what is there ---- */

int replan_pods_most(const struct core *c)
{
	return MAX(c->conf.plan.pods_most, c->conf.pods);
}

static bool may_replan(const struct core *c)
{
	return c->replan.count && c->replan.done < CORE_REPLANS_MAX && c->canary_ok && c->todo && !c->conf.detached && !core_stopping(c) &&
	       !core_reads_old(c) && !c->replan.stop.kind && !core_outgoing(c);
}

bool replan_may_add(const struct core *c)
{
	const struct core_plan *plan = &c->conf.plan;
	bool hurry = plan->deadline_ms || plan->goal != PLAN_COST;

	return c->replan.count && c->replan.done < CORE_REPLANS_MAX && hurry && plan->pods_most > c->conf.pods && !c->conf.detached;
}

struct view { /* what replan_choose() is shown, and which pods and candidates that is */
	struct replan_case of;
	struct plan_work work;
	double lightest;
	struct replan_pod *pods;
	int *pod_at;
	struct replan_offer offers[OFFERS_MOST];
	struct candidate *candidates[OFFERS_MOST];
};

static void view_work(const struct core *c, struct view *v)
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

/* Weight a second of one pod, with the batches that suit it best. */
static double rate_of(const struct core *c, const struct view *v, const struct forecast *f)
{
	const struct plan_machine m = {.price_h = 1, .speed = f->of.speed, .workers = MAX(c->conf.workers, 1), .batch_max = MAX(f->of.batch_max, 1)};
	const struct plan_wish one = {.pods = 1};
	struct plan plan;

	if (plan_choose(&plan, &v->work, &m, 1, &one) != PLAN_FOUND || plan.work_s <= 0)
		return 0;
	return v->work.sum / plan.work_s;
}

static double one_segment_s(const struct view *v, const struct forecast *f)
{
	return speed_batch_s(&f->of.speed, v->lightest, v->lightest);
}

/* By this run's own pods of that provider, where one has come up. */
static void cold_of(const struct core *c, const struct forecast *f, double *p50_s, double *p90_s)
{
	bool seen = false;

	for (int i = 0; i < c->pod_count; i++)
		seen = seen || (c->pods[i].ready_at && !strcmp(c->pods[i].offer.provider, f->of.provider));
	*p50_s = seen && c->cold_ms ? (double)c->cold_ms / 1000 : f->of.cold_p50_s;
	*p90_s = *p50_s + MAX(f->of.cold_p90_s - f->of.cold_p50_s, 0);
}

/* Candidates as they would be rented: of the first provider that has any, the first one of each GPU. */
static void view_offers(struct core *c, struct view *v)
{
	int provider = -1;
	size_t *count = &v->of.offer_count;

	for (size_t i = 0; i < c->candidate_count && *count < OFFERS_MOST; i++) {
		struct candidate *k = &c->candidates[i];
		const struct forecast *f = forecast_of(c, k->offer.provider, k->offer.gpu);
		if (!offers_ready(c, k) || (provider >= 0 && k->provider != provider) || (*count && !c->conf.plan.gpus_open))
			continue;
		provider = k->provider;
		bool had = !f;
		for (size_t n = 0; n < *count; n++)
			had = had || !strcmp(v->candidates[n]->offer.gpu, k->offer.gpu);
		double rate = had ? 0 : rate_of(c, v, f);
		if (rate <= 0)
			continue;
		struct replan_offer *o = &v->offers[*count];
		*o = (struct replan_offer){.price_h = (double)k->offer.price_microusd_h / 1e6, .rate = rate, .one_s = one_segment_s(v, f)};
		cold_of(c, f, &o->cold_s, &o->cold_p90_s);
		v->candidates[(*count)++] = k;
	}
	v->of.offers = v->offers;
}

static bool comes_up(const struct core_pod *p)
{
	return p->phase < POD_WORKING && !p->ready_at && !p->adopted;
}

/* A pod of the same GPU that costs much more than it would now is as another GPU. */
static bool is_like(const struct core_pod *p, const struct candidate *k)
{
	return p->provider == k->provider && !strcmp(p->offer.gpu, k->offer.gpu) &&
	       !replan_price_is_off((double)p->price_microusd_h, (double)k->offer.price_microusd_h);
}

static void add_pod(const struct core *c, struct view *v, int pod)
{
	const struct core_pod *p = &c->pods[pod];
	const struct forecast *f = forecast_of(c, p->offer.provider, p->offer.gpu);
	double cold_s = 0, ignored, rate = f ? rate_of(c, v, f) : 0;
	size_t at = v->of.pod_count;

	if (rate <= 0)
		return;
	if (comes_up(p)) {
		cold_of(c, f, &cold_s, &ignored);
		cold_s = MAX(MAX(cold_s - (double)(c->now - p->create_at) / 1000, cold_s / 4), .001); /* it may be overdue */
	}
	struct replan_pod one = {.price_h = (double)p->price_microusd_h / 1e6, .rate = rate, .cold_s = cold_s, .one_s = one_segment_s(v, f),
				 .life_s = (double)(p->hard_end_ms - 2 * budget_margin(p->hard_end_ms - p->create_at) - c->now) / 1000, .offer = -1};
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

static void view_pods(const struct core *c, struct view *v)
{
	v->pods = xcalloc((size_t)c->pod_count, sizeof(*v->pods));
	v->pod_at = xcalloc((size_t)c->pod_count, sizeof(*v->pod_at));
	for (int i = 0; i < c->pod_count; i++)
		if (pod_active(&c->pods[i]) && !c->pods[i].draining && c->pods[i].phase != POD_AMBIGUOUS)
			add_pod(c, v, i);
	v->of.pods = v->pods;
}

/* The user's deadline, or sooner the end that caps.max_duration sets, which is no reason to stop before it. */
static void view_wishes(const struct core *c, struct view *v)
{
	const struct core_plan *plan = &c->conf.plan;
	int64_t user = plan->deadline_ms ? c->began_at + plan->deadline_ms : NEVER, cap = c->deadline_at ? c->deadline_at : NEVER;
	int64_t end = MIN(user, cap), left = end - c->now;

	v->of.wish = (struct plan_wish){.goal = plan->goal, .value_of_time_h = plan->value_of_time_h};
	if (end != NEVER)
		v->of.wish.deadline_s = left ? (double)left / 1000 : -.001;
	v->of.deadline_is_must = plan->deadline_ms && user <= cap;
	v->of.late_ok_s = (double)plan->deadline_ms / 4000;
	v->of.room_usd = INFINITY;
	if (c->conf.max_cost_microusd) {
		v->of.wish.budget_usd = MAX((double)(c->conf.max_cost_microusd - budget_spent(c)) / 1e6, 1e-9);
		v->of.room_usd = (double)(c->conf.max_cost_microusd - budget_committed(c)) / 1e6;
	}
	v->of.pods_most = replan_pods_most(c);
	v->of.width_open = plan->pods_open;
	v->of.gpus_open = plan->gpus_open;
}

static void view_free(struct view *v)
{
	free(v->pods);
	free(v->pod_at);
}

/* ---- what follows ---- */

static int active_pods(const struct core *c)
{
	int count = 0;

	for (int i = 0; i < c->pod_count; i++)
		count += pod_active(&c->pods[i]);
	return count;
}

/* Its batch in hand is still rendered. */
static void drain(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	p->outgoing = false;
	if (p->draining)
		return;
	p->draining = true;
	if (p->connected)
		core_act(c, ACT_REVOKE, pod);
	pod_after_work(c, pod);
}

static void prefer(struct core *c, const struct candidate *k)
{
	if (c->conf.plan.gpus_open)
		COPY_TEXT(c->replan.gpu, k->offer.gpu);
	offers_sort(c);
}

static void give_back(struct core *c, const struct view *v, int count, const char *why)
{
	for (size_t i = v->of.pod_count; i-- > 0 && count; count--)
		pod_let_go(c, v->pod_at[i], ERR_NONE, "%s", why);
}

static void add(struct core *c, const struct view *v, const struct replan_choice *choice)
{
	c->conf.pods = MAX(c->conf.pods, MIN(active_pods(c) + choice->pods, replan_pods_most(c)));
	c->conf.at_once = true;
	prefer(c, v->candidates[choice->offer]);
}

/* Those that come up bill for nothing from now on. */
static void replace(struct core *c, const struct view *v, const struct replan_choice *choice, bool after)
{
	int stay = 0;
	char gpu[GPU_MAX];

	COPY_TEXT(gpu, v->candidates[choice->offer]->offer.gpu);
	prefer(c, v->candidates[choice->offer]);
	for (size_t i = 0; i < v->of.pod_count; i++) {
		int pod = v->pod_at[i];
		if (v->pods[i].offer == choice->offer)
			stay++;
		else if (comes_up(&c->pods[pod]))
			pod_let_go(c, pod, ERR_NONE, "%s takes its place", gpu);
		else if (after || c->pods[pod].phase != POD_WORKING)
			drain(c, pod);
		else
			c->pods[pod].outgoing = true;
	}
	if (c->conf.plan.pods_open)
		c->conf.pods = choice->pods + stay;
}

static void stop(struct core *c, enum replan_verb verb, const char *why, const struct replan_choice *choice)
{
	struct err *err = &c->replan.stop;
	char takes[24];

	if (verb == REPLAN_STOP_BUDGET) {
		err_set(err, ERR_CAP, "%s: what is left of caps.max_cost does not pay for one more segment; `burst resume %s` goes on from here", why,
			c->conf.run);
		c->capped = true;
		core_fault(c, -1, err);
		return;
	}
	err_set(err, ERR_CAP, "%s: the deadline cannot be met any more: the rest takes %s at least; `burst resume %s` goes on from here", why,
		duration_show(takes, sizeof(takes), (int64_t)(MIN(choice->makespan_s, 1e9) * 1000)), c->conf.run);
	for (int i = 0; i < c->pod_count; i++) {
		if (!pod_active(&c->pods[i]))
			continue;
		if (c->pods[i].phase == POD_WORKING)
			drain(c, i);
		else
			pod_let_go(c, i, ERR_NONE, "the deadline cannot be met any more");
	}
}

/* Of time and money, what gains more. */
static const char *show_gain(const struct replan_choice *choice, char *to, size_t room)
{
	double was_s = MIN(choice->keep_makespan_s, 1e9);
	char is[32], was[32];

	if (choice->makespan_s * choice->keep_cost_usd <= choice->cost_usd * was_s)
		snprintf(to, room, "about %s are left instead of %s", duration_show(is, sizeof(is), (int64_t)(choice->makespan_s * 1000)),
			 duration_show(was, sizeof(was), (int64_t)(was_s * 1000)));
	else
		snprintf(to, room, "the rest costs about %s instead of %s", money_show(is, sizeof(is), (int64_t)(choice->cost_usd * 1e6)),
			 money_show(was, sizeof(was), (int64_t)(MIN(choice->keep_cost_usd, 1e9) * 1e6)));
	return to;
}

static void show_change(const struct core *c, const struct view *v, const struct replan_choice *choice, const char *why, char *to, size_t room)
{
	const char *gpu = choice->offer >= 0 && v->of.offer_count ? v->candidates[choice->offer]->offer.gpu : "";
	bool late = v->of.wish.deadline_s && choice->keep_makespan_s > v->of.wish.deadline_s;
	const char *s = choice->pods == 1 ? "" : "s";
	char what[96], gain[96];

	if (!strcmp(gpu, "none"))
		gpu = "";
	switch (choice->verb) {
	case REPLAN_ADD: snprintf(what, sizeof(what), "renting %d more pod%s%s%s%s", choice->pods, s, *gpu ? " with " : "", gpu,
				  late && c->conf.plan.deadline_ms ? " to keep the deadline" : ""); break;
	case REPLAN_GIVE_BACK: snprintf(what, sizeof(what), "releasing %d pod%s that come%s up", choice->pods, s, *s ? "" : "s"); break;
	case REPLAN_REPLACE:
	case REPLAN_REPLACE_AFTER: snprintf(what, sizeof(what), "going on with %d pod%s of %s", choice->pods, s, gpu); break;
	case REPLAN_STOP_DEADLINE: snprintf(what, sizeof(what), "stopping when the batches in hand are done: the deadline cannot be met any more"); break;
	case REPLAN_STOP_BUDGET: snprintf(what, sizeof(what), "stopping: the budget does not pay for one more segment"); break;
	case REPLAN_KEEP: snprintf(what, sizeof(what), "nothing else would be clearly better"); break;
	}
	if (choice->verb >= REPLAN_STOP_DEADLINE || choice->verb == REPLAN_KEEP)
		snprintf(to, room, "%s; %s", why, what);
	else
		snprintf(to, room, "%s; %s: %s", why, what, show_gain(choice, gain, sizeof(gain)));
}

static void settle(struct core *c, const struct view *v, const struct replan_choice *choice)
{
	double cold_s = choice->offer >= 0 && v->of.offer_count ? v->offers[choice->offer].cold_p90_s : 0;

	c->replan.not_before = c->now + MAX((int64_t)(2000 * cold_s), (int64_t)SETTLE_LEAST_MS);
}

static void act(struct core *c, const struct view *v, const struct replan_choice *choice, const char *why)
{
	char *said = c->replan.said[c->replan.done];

	show_change(c, v, choice, why, said, sizeof(c->replan.said[0]));
	if (choice->verb == REPLAN_KEEP) {
		c->replan.not_before = c->now + THINK_AGAIN_MS;
		core_note(c, NOTE_INFO, "%s", said);
		return;
	}
	c->replan.done++;
	c->conf.plan.cost_microusd = (int64_t)llround(MIN(choice->cost_usd, 1e6) * 1e6);
	core_note(c, NOTE_NOTE, "%s", said);
	settle(c, v, choice);
	switch (choice->verb) {
	case REPLAN_ADD: add(c, v, choice); break;
	case REPLAN_GIVE_BACK:
		c->conf.pods = MAX(active_pods(c) - choice->pods, 1);
		give_back(c, v, choice->pods, "the others will have finished by then");
		break;
	case REPLAN_REPLACE: replace(c, v, choice, false); break;
	case REPLAN_REPLACE_AFTER: replace(c, v, choice, true); break;
	case REPLAN_STOP_DEADLINE:
	case REPLAN_STOP_BUDGET: stop(c, choice->verb, why, choice); break;
	case REPLAN_KEEP: break;
	}
}

static void plan_again(struct core *c, const char *why)
{
	struct replan_choice choice;
	struct view v = {0};

	correct_forecasts(c);
	view_work(c, &v);
	view_offers(c, &v);
	view_pods(c, &v);
	view_wishes(c, &v);
	if (v.of.pod_count) {
		replan_choose(&choice, &v.of);
		act(c, &v, &choice, why);
	}
	view_free(&v);
}

/* ---- in each step ---- */

/* Those that take the place of others work by now: as many as are wanted, or as can be had. */
static void let_outgoing_go(struct core *c)
{
	int working = 0, coming = 0;

	if (!core_outgoing(c))
		return;
	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (!pod_active(p) || p->outgoing || p->draining)
			continue;
		working += p->phase == POD_WORKING && p->connected;
		coming += p->phase < POD_WORKING;
	}
	if (!working || (coming && working < c->conf.pods))
		return;
	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].outgoing && pod_active(&c->pods[i]))
			drain(c, i);
}

bool replan_passes_over(const struct core *c, const struct candidate *k)
{
	return core_outgoing(c) && strcmp(k->offer.gpu, c->replan.gpu) != 0;
}

/* A price that has moved is seen only where somebody looks. */
static void look_at_prices(struct core *c)
{
	if (!c->conf.plan.gpus_open || !may_replan(c))
		return;
	if (!c->replan.look_at)
		c->replan.look_at = c->now + LOOK_AT_PRICES_MS;
	if (c->now < c->replan.look_at)
		return;
	c->replan.look_at = c->now + LOOK_AT_PRICES_MS;
	for (int i = 0; i < c->conf.provider_count; i++) {
		struct vendor *v = &c->vendors[i];
		if (v->dead || v->looking || v->offers_ask != ASK_HAVE)
			continue;
		v->looking = true;
		core_act(c, ACT_OFFERS, -1)->provider = i;
	}
}

static void end_when_drained(struct core *c)
{
	for (int i = 0; i < c->pod_count; i++)
		if (pod_active(&c->pods[i]) || c->pods[i].unhome > 0)
			return;
	if (dispatch_settled(c))
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
	let_outgoing_go(c);
	look_at_prices(c);
	if (may_replan(c) && c->now >= c->replan.not_before && tell_why(c, why, sizeof(why)))
		plan_again(c, why);
}

int64_t replan_wake_at(const struct core *c)
{
	char why[120];
	int64_t at = NEVER;

	if (!may_replan(c))
		return NEVER;
	if (c->replan.look_at > c->now && c->conf.plan.gpus_open)
		at = c->replan.look_at;
	if (c->replan.not_before > c->now && tell_why(c, why, sizeof(why)))
		at = MIN(at, c->replan.not_before);
	return at;
}
