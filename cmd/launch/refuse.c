/* refuse.c - refuses a run that cannot succeed, with one line that says why. */
#include "refuse.h"

#include <math.h>

#include "base/clock.h"
#include "check.h"
#include "cmd/show/plan_show.h"

/* A pod may come up sooner than a prior predicts: refuse a run only by what a fast start would
 * take. */
#define UNMEASURED_SHARE 0.25

static bool fits(const struct estimate *e, size_t i)
{
	const struct offer *o = &e->offers[i];

	return !e->need_gb || !o->vram_gb || o->vram_gb * MAX(o->gpus, 1) >= e->need_gb;
}

/* ---- the deadline ---- */

/* The offer whose pods are up first, nine times in ten; -1: none. */
static int quickest(const struct estimate *e, double *up_s)
{
	int found = -1;

	for (size_t i = 0; i < e->count; i++) {
		double s = cold_p90_s(&e->machines[i].cold);
		if (!fits(e, i) || (found >= 0 && s >= *up_s))
			continue;
		found = (int)i;
		*up_s = s;
	}
	return found;
}

/* By the user's deadline alone: the plan's own may be the end that caps.max_duration sets. */
static int refuse_deadline(const struct launch *l, const struct estimate *e,
			   const struct plan *pick, enum plan_verdict verdict, struct err *err)
{
	const struct choice_row *wish = &l->choice.row;
	CLEANUP(str_free) struct str why = STR_INIT;
	char time[24], text[256], offer[PLAN_TEXT];
	double up_s = 0, left_s = (double)(wish->deadline_ms - clock_wall_ms()) / 1000;
	int first = quickest(e, &up_s);
	bool up_too_late = first >= 0 && up_s > left_s,
	     too_slow = verdict == PLAN_TOO_SLOW && pick->makespan_p90_s > left_s;

	if (!up_too_late && !too_slow)
		return 0;
	if (up_too_late)
		str_addf(&why, "; booting a pod alone takes %s (%s: %s)",
			 duration_show(time, sizeof(time), (int64_t)(up_s * 1000)),
			 plan_offer(offer, &e->offers[first]),
			 plan_source_name(cold_source(&e->machines[first].cold)));
	if (too_slow)
		str_addf(&why, "; the fastest plan takes %s (%s)",
			 duration_show(time, sizeof(time), (int64_t)(pick->makespan_p90_s * 1000)),
			 plan_sentence(text, sizeof(text), e, pick));
	return err_set(err, ERR_CAP,
		       "%s: deadline = \"%s\": no plan finishes by then in nine runs of ten%s; "
		       "nothing was rented",
		       section_where(config_top(l->ctx->config), "deadline"), wish->deadline,
		       str_text(&why));
}

/* ---- the budget ---- */

static double least_start_s(const struct cold *c)
{
	double s = 0;

	for (int i = 0; i < COLD_PHASES; i++)
		if (i != COLD_QUEUE || !c->queue_is_free)
			s += c->phase[i].samples ? c->phase[i].p50_s
						 : c->phase[i].p50_s * UNMEASURED_SHARE;
	return s;
}

/* The offer whose pod is up for the least money; -1: none fits. */
static int cheapest_start(const struct estimate *e, double *usd, double *s)
{
	int found = -1;

	for (size_t i = 0; i < e->count; i++) {
		double start_s = least_start_s(&e->machines[i].cold),
		       start_usd = e->machines[i].price_h * start_s / 3600;
		if (!fits(e, i) || (found >= 0 && start_usd >= *usd))
			continue;
		found = (int)i;
		*usd = start_usd;
		*s = start_s;
	}
	return found;
}

int64_t refuse_least_microusd(const struct estimate *e)
{
	double usd = 0, s;

	return cheapest_start(e, &usd, &s) < 0 ? 0 : (int64_t)ceil(MIN(usd, 1e9) * 1e6);
}

static int refuse_budget(const struct launch *l, const struct estimate *e, struct err *err)
{
	double least_usd = 0, s = 0;
	CLEANUP(free_text) char *cap = NULL;
	char offer[PLAN_TEXT], cost[32], budget[32], price[32], time[24];
	int at = cheapest_start(e, &least_usd, &s);
	bool lowered = l->cap_words[0];

	if (at < 0 || e->wish.budget_usd <= 0 || least_usd <= e->wish.budget_usd)
		return 0;
	plan_dollars(budget, e->wish.budget_usd);
	cap = lowered ? xasprintf("%s of %s is left, which", budget, l->cap_words)
		      : xasprintf("caps.max_cost = %s", budget);
	err_set(err, ERR_CAP,
		"%s is spent before a pod is ready: booting takes %s and %s at least (%s, %s an "
		"hour: %s); %s; nothing was rented",
		cap, duration_show(time, sizeof(time), (int64_t)(s * 1000)),
		plan_dollars(cost, least_usd), plan_offer(offer, &e->offers[at]),
		money_show(price, sizeof(price), e->offers[at].price_microusd_h),
		plan_source_name(cold_source(&e->machines[at].cold)),
		lowered ? "wait for the next day or month, or raise that cap" : "raise it");
	return lowered ? -1 : err_about(err, "caps.max_cost");
}

/* The core rents no pod that could not live for a moment and still end itself within the cap. */
static int refuse_cap(const struct launch *l, const struct estimate *e, const struct plan *pick,
		      enum plan_verdict verdict, struct err *err)
{
	const struct offer *o = &e->offers[0];
	int64_t cap = (int64_t)llround(e->wish.budget_usd * 1e6);
	char offer[PLAN_TEXT], price[32];

	for (size_t i = 1; i < e->count; i++)
		if (e->offers[i].price_microusd_h < o->price_microusd_h)
			o = &e->offers[i];
	if (verdict != PLAN_NOTHING_FITS)
		o = &e->offers[pick->machine];
	if (core_pods_paid(cap, o->price_microusd_h, 1, 0))
		return 0;
	err_set(err, ERR_CAP,
		"%s does not pay for one pod that could end itself in time (%s, %s an hour): raise "
		"it, or choose a cheaper GPU; nothing was rented",
		l->cap_words[0] ? l->cap_words : "caps.max_cost", plan_offer(offer, o),
		money_show(price, sizeof(price), o->price_microusd_h));
	return err_about(err, "caps.max_cost");
}

int refuse_price(const struct launch *l, int64_t floor_microusd_h, const char *provider,
		 struct err *err)
{
	int64_t cap = l->order.max_price_microusd_h;
	char most[32], price[32];

	if (!cap || floor_microusd_h <= cap || l->order.retry_until_up)
		return 0;
	err_set(err, ERR_CAP,
		"caps.max_price_per_hour is %s, but the cheapest matching pod costs %s an hour "
		"(%s): raise the cap, or choose another GPU",
		money_show(most, sizeof(most), cap),
		money_show(price, sizeof(price), floor_microusd_h), provider);
	err_about(err, "caps.max_price_per_hour");
	config_place_error(l->ctx->config, err);
	return -1;
}

static const char *what_to_do(enum estimate_unfit kind)
{
	switch (kind) {
	case UNFIT_IMAGE: return "set pod.image to another image, or name other GPUs in gpu";
	case UNFIT_UNKNOWN: return "name GPUs in gpu; `burst gpus` lists those that burst knows";
	case UNFIT_BF16:
	case UNFIT_NAMED:
	case UNFIT_NOT: break;
	}
	return "name other GPUs in gpu; `burst gpus` lists them";
}

/* A run would rent no card on offer. Names the first one. Returns -1. */
static int refuse_cards(const struct launch *l, const struct estimate *e, struct err *err)
{
	size_t first = 0;
	char offer[PLAN_TEXT];

	while (first + 1 < e->count && !e->unfit[first][0])
		first++;
	err_set(err, ERR_NO_CAPACITY, "no card on offer can run the job: %s: %s; %s",
		plan_offer(offer, &e->offers[first]), e->unfit[first],
		what_to_do(e->unfit_kind[first]));
	err_about(err, "gpu");
	config_place_error(l->ctx->config, err);
	return -1;
}

int refuse_run(const struct launch *l, const struct estimate *e, const struct plan *pick,
	       enum plan_verdict verdict, struct err *err)
{
	if (!e->open || !e->count)
		return 0;
	if (e->none_can_run)
		return refuse_cards(l, e, err);
	if (l->choice.row.deadline_ms && refuse_deadline(l, e, pick, verdict, err) < 0)
		return -1;
	if (refuse_budget(l, e, err) == 0 && refuse_cap(l, e, pick, verdict, err) == 0)
		return 0;
	config_place_error(l->ctx->config, err);
	return -1;
}

/* ---- a plan ---- */

/* By the label of a card, else by the engine's known need. */
static int refuse_memory(const struct launch *l, const struct estimate *e, struct err *err)
{
	const struct offer *largest = &e->offers[0];
	char offer[PLAN_TEXT], need[CHECK_NEED];

	for (size_t i = 1; i < e->count; i++)
		if (e->offers[i].vram_gb * MAX(e->offers[i].gpus, 1) >
		    largest->vram_gb * MAX(largest->gpus, 1))
			largest = &e->offers[i];
	int has_gb = largest->vram_gb * MAX(largest->gpus, 1);
	double need_gib = e->need.base_gib + e->need.each_gib,
	       usable_gib = estimate_usable_gib(largest);
	plan_offer(offer, largest);
	check_say_need(need, l->run.setup.job_ops->needs(l->run.setup.job));
	if (e->need_gb > has_gb)
		err_set(err, ERR_NO_CAPACITY,
			"no offer has enough GPU memory: the job needs %d GB, and the most that is "
			"offered is %d GB (%s): %d GB are missing%s%s%s; name "
			"larger GPUs in gpu",
			e->need_gb, has_gb, offer, e->need_gb - has_gb, need[0] ? " (" : "", need,
			need[0] ? ")" : "");
	else
		err_set(err, ERR_NO_CAPACITY,
			"no offer has enough GPU memory: the job needs %.1f GiB for one segment, "
			"and the most that can be used is %.1f GiB (%s): %.1f GiB "
			"are missing; name larger GPUs in gpu",
			need_gib, usable_gib, offer, MAX(need_gib - usable_gib, 0.0));
	err_about(err, "gpu");
	config_place_error(l->ctx->config, err);
	return -1;
}

int refuse_plan(const struct launch *l, const struct estimate *e, const struct plan *pick,
		enum plan_verdict verdict, struct err *err)
{
	const struct job_needs *needs = l->run.setup.job_ops->needs(l->run.setup.job);

	if (!e->open)
		return 0;
	if (!e->count)
		return err_set(err, ERR_NO_CAPACITY,
			       "no provider offers what the job needs now (see gpu, spot, "
			       "caps.max_price_per_hour; `burst offers`)");
	if (e->never_fits)
		return refuse_memory(l, e, err);
	if (refuse_run(l, e, pick, verdict, err) < 0)
		return -1;
	if (e->known && verdict != PLAN_NOTHING_FITS)
		return 0;
	if (l->ctx->cmd == &cmd_run) /* -n does not refuse it */
		return 0;
	const struct offer *unknown = NULL;
	char offer[PLAN_TEXT] = "";
	for (size_t i = 0; i < e->count && !unknown; i++)
		unknown = e->unfit_kind[i] == UNFIT_NAMED ? &e->offers[i] : NULL;
	return err_set(err, ERR_CONFIG,
		       "no estimate: the speed of %s%s%s is not known on %s "
		       "yet; `burst calibrate` measures it, and so does `burst run`",
		       needs->command ? "this command" : "engine \"",
		       needs->command ? "" : needs->engine, needs->command ? "" : "\"",
		       unknown ? plan_offer(offer, unknown) : "any of these offers");
}
