/* decide.c - plans a run before anything is rented: number of pods, order of GPUs, expected time
 * and cost. */
#include "decide.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "better.h"
#include "cmd/show/output.h"
#include "cmd/show/plan_parts.h"
#include "refuse.h"
#include "warm_first.h"

enum {
	DECIDE_MS = 8000, /* how long a slow provider may delay a run */
	BETTER_MS = 2000, /* the same, for a line of advice */
	PODS_MOST = 64,   /* to which a run may widen by itself */
};

struct asked {
	struct offer *offers; /* not above the cap on the price */
	size_t count;
	/* The lowest price of a wanted offer, even if sold out, and its provider; 0: a provider has
	 * not reported it. */
	int64_t floor_microusd_h;
	const char *floor_at;
};

/* Reports no error: the run itself asks again and reports it. */
static void fetch_all_offers(struct launch *l, struct asked *out)
{
	bool all_say = true;

	*out = (struct asked){0};
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		struct op_result result = {0};
		struct err ignored = {0};
		if (launch_fetch_offers(l, i, false, DECIDE_MS, &result, &ignored) < 0) {
			all_say = false;
			continue;
		}
		all_say = all_say && result.floor_microusd_h > 0;
		if (!out->floor_at || result.floor_microusd_h < out->floor_microusd_h) {
			out->floor_microusd_h = result.floor_microusd_h;
			out->floor_at = l->run.setup.providers[i].ops->name;
		}
		launch_keep_offers(l, &result, &out->offers, &out->count);
	}
	if (!all_say)
		out->floor_microusd_h = 0;
}

/* The cheapest plan of each GPU, the cheapest GPU first. `best` has room for one plan of each
 * offer. Returns the count. */
static size_t rank_gpus(struct plan *best, const struct estimate *e)
{
	size_t count = 0;

	for (size_t i = 0; i < e->count; i++) {
		struct plan p;
		size_t at = 0;
		if (plan_choose(&p, &e->work, &e->machines[i], 1, &e->wish) == PLAN_NOTHING_FITS)
			continue;
		p.machine = (int)i;
		while (at < count && strcmp(e->offers[best[at].machine].gpu, e->offers[i].gpu) != 0)
			at++;
		if (at < count && best[at].cost_usd <= p.cost_usd)
			continue;
		count += at == count; /* at changes below */
		for (; at > 0 && best[at - 1].cost_usd > p.cost_usd; at--)
			best[at] = best[at - 1];
		best[at] = p;
	}
	return count;
}

char **decide_gpu_order(const struct section *top, bool needs_gpu, const struct estimate *e)
{
	if (section_has(top, "gpu") || !needs_gpu)
		return NULL;
	struct plan *best = xcalloc(e->count + 1, sizeof(*best));
	size_t count = rank_gpus(best, e);
	char **order = count ? xcalloc(count + 1, sizeof(*order)) : NULL;
	for (size_t i = 0; i < count; i++)
		order[i] = xstrdup(e->offers[best[i].machine].gpu);
	free(best);
	return order;
}

/* Makes a forecast for each GPU of a provider. */
static void forecast(struct launch *l, const struct estimate *e)
{
	size_t n, *count = &l->plan.forecast_count;

	l->forecasts = xcalloc(e->count + 1, sizeof(*l->forecasts));
	for (size_t i = 0; i < e->count; i++) {
		const struct plan_machine *m = &e->machines[i];
		const struct offer *o = &e->offers[i];
		for (n = 0; n < *count; n++)
			if (!strcmp(l->forecasts[n].provider, o->provider) &&
			    !strcmp(l->forecasts[n].gpu, o->gpu))
				break;
		if (n < *count || m->batch_max <= 0)
			continue;
		struct core_forecast *f = &l->forecasts[(*count)++];
		*f = (struct core_forecast){.speed = m->speed,
					    .measured = m->speed_source == PLAN_MEASURED,
					    .host_share = m->host_share,
					    .batch_max = m->batch_max,
					    .cold_p50_s = cold_p50_s(&m->cold),
					    .cold_p90_s = cold_p90_s(&m->cold)};
		COPY_TEXT(f->provider, o->provider);
		COPY_TEXT(f->gpu, o->gpu);
	}
	l->plan.forecasts = l->forecasts;
}

/* Passes the plan to the run, which compares it with its progress. */
static void hand_on(struct launch *l, const struct estimate *e, const struct plan *pick)
{
	const struct section *top = config_top(l->ctx->config);
	struct core_plan *p = &l->plan;

	*p = (struct core_plan){.goal = e->wish.goal,
				.value_of_time_h = e->wish.value_of_time_h,
				.cost_microusd = (int64_t)llround(pick->pods_usd * 1e6),
				.pods_open =
					!section_has(top, "pods") &&
					!l->run.setup.job_ops->needs(l->run.setup.job)->command,
				.gpus_open = !section_has(top, "gpu")};
	double left_s;
	if (estimate_has_deadline(top) &&
	    estimate_deadline(section_text(top, "deadline"), clock_wall_ms(), &left_s))
		p->deadline_ms = MAX((int64_t)(left_s * 1000), 1);
	if (p->pods_open)
		p->pods_most = MIN(MIN((int)MIN(e->open, (size_t)PODS_MOST),
				       engine_pods_fit(files_raise(), files_open())),
				   PODS_MOST);
	int helpful = e->machines[pick->machine].pods_max;
	if (p->pods_open && helpful > 0)
		p->pods_most = MIN(p->pods_most, helpful);
	forecast(l, e);
}

static void act_on(struct launch *l, const struct estimate *e, const struct plan *pick)
{
	const struct section *top = config_top(l->ctx->config);
	const struct job_needs *needs = l->run.setup.job_ops->needs(l->run.setup.job);
	char sentence[256];

	if (!section_has(top, "pods") && !needs->command)
		l->chosen_pods = pick->pods;
	l->chosen_gpus = decide_gpu_order(top, needs->gpu, e);
	l->at_once = pick->pods > 1 && !e->wish.staged;
	l->run.row.planned_ms = (int64_t)llround(pick->makespan_p50_s * 1000);
	l->run.row.planned_microusd = (int64_t)llround(pick->pods_usd * 1e6);
	hand_on(l, e, pick);
	if (l->ctx->quiet)
		return;
	output_line(stderr, "plan: %s (batch times: %s)",
		    plan_sentence(sentence, sizeof(sentence), e, pick),
		    plan_source_name(e->machines[pick->machine].speed_source));
	struct better better;
	better_find(&better, l, e, pick, BETTER_MS);
	if (better.found)
		output_line(stderr, "better: %s", better.line);
}

/* Names each card that earlier pods could not use, once. */
static void say_left_out(const struct estimate *e)
{
	char offer[PLAN_TEXT];

	for (size_t i = 0; i < e->count; i++) {
		bool said = false;
		for (size_t k = 0; k < i; k++)
			said |= !strcmp(e->offers[k].gpu, e->offers[i].gpu) &&
				!strcmp(e->offers[k].provider, e->offers[i].provider);
		if (e->unfit[i][0] && !said)
			log_line(LOG_NOTE, "left out: %s: %s", plan_offer(offer, &e->offers[i]),
				 e->unfit[i]);
	}
}

/* Returns 1 if the volume was filled first: its pods now start sooner than planned. */
static int decide_once(struct launch *l, bool may_warm, struct err *err)
{
	struct asked asked;
	struct estimate e = {0};
	struct plan pick;
	int64_t warming_microusd;
	/* a run in the ledger records why there was no delivery */
	bool delivers = config_path(l->ctx->config) &&
			delivery_is(&l->ctx->runs, config_path(l->ctx->config));

	fetch_all_offers(l, &asked);
	int status = delivers ? 0 : refuse_price(l, asked.floor_microusd_h, asked.floor_at, err);
	if (status == 0)
		status = estimate_make(&e, l, asked.offers, asked.count, err);
	if (status == 0 && e.open) {
		if (may_warm)
			say_left_out(&e);
		l->least_microusd = refuse_least_microusd(&e);
		enum plan_verdict verdict = estimate_choose(&e, &pick);
		bool found = verdict != PLAN_NOTHING_FITS;
		status = delivers ? 0 : refuse_run(l, &e, &pick, verdict, err);
		if (status == 0 && found && may_warm && warm_first_due(l, &e, &pick))
			status = warm_first(l, &e, &pick, &warming_microusd, err);
		if (status == 0 && found)
			act_on(l, &e, &pick);
	}
	estimate_free(&e);
	free(asked.offers);
	return status;
}

int launch_decide(struct launch *l, struct err *err)
{
	int status = decide_once(l, true, err);

	return status == 1 ? decide_once(l, false, err) : status;
}
