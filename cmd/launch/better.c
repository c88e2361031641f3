/* better.c - compares the config's fixed choices with the planner's own. */
#include "better.h"

#include <math.h>
#include <stdlib.h>

#include "cmd/show/plan_show.h"
#include "plan/choose.h"
#include "wanted.h"

/* Collects the offers of all other GPUs beside those of e. */
static void add_all_offers(struct launch *l, const struct estimate *e, int64_t offers_ms,
			   struct wanted *all)
{
	struct op_want want;

	wanted_add(l, all, e->offers, e->count);
	launch_want_offers(l, &want);
	want.offers.gpus = NULL;
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		struct op_result result = {0};
		struct err ignored = {0};
		if (caller_perform(&l->run.setup.providers[i], OP_OFFERS, &want, offers_ms, &result,
				   &ignored) == 0)
			wanted_add(l, all, result.offers, result.offer_count);
		op_result_free(&result);
	}
	wanted_end(all);
}

static void add_plan(struct str *to, const struct plan *p, const struct offer *o, bool named)
{
	char offer[PLAN_TEXT];

	str_addf(to, "%d pod%s%s%s", p->pods, p->pods == 1 ? "" : "s", named ? " of " : "",
		 named ? plan_offer(offer, o) : "");
}

static void describe(struct better *b, const struct plan *pick, const struct offer *given)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	double longer_s = b->plan.makespan_p50_s - pick->makespan_p50_s;
	bool other_card = strcmp(b->offer.gpu, given->gpu) != 0 ||
			  strcmp(b->offer.provider, given->provider) != 0 ||
			  b->offer.spot != given->spot;
	char cost[32], time[24];

	add_plan(&line, pick, given, other_card);
	str_addf(&line, " cost%s %s; ", pick->pods == 1 ? "s" : "",
		 plan_dollars(cost, pick->cost_usd));
	add_plan(&line, &b->plan, &b->offer, other_card);
	str_addf(&line, " would cost %s and take ", plan_dollars(cost, b->plan.cost_usd));
	if (fabs(longer_s) < 0.05)
		str_add(&line, "as long");
	else
		str_addf(&line, "%s %s", plan_seconds(time, fabs(longer_s)),
			 longer_s > 0 ? "longer" : "less");
	COPY_TEXT(b->line, str_text(&line));
}

static void compare(struct better *out, const struct plan *pick, const struct offer *given,
		    const struct estimate *e)
{
	out->found = plan_better(&out->plan, pick, &e->work, e->machines, e->count, &e->wish);
	if (!out->found)
		return;
	out->offer = e->offers[out->plan.machine];
	describe(out, pick, given);
}

void better_find(struct better *out, struct launch *l, const struct estimate *e,
		 const struct plan *pick, int64_t offers_ms)
{
	bool gpus_given = l->order.gpus != NULL,
	     pods_given = l->order.pods && !l->run.setup.job_ops->needs(l->run.setup.job)->command;
	const struct offer *given = &e->offers[pick->machine];
	struct err ignored = {0};
	struct estimate all;
	struct wanted others = {0};

	*out = (struct better){0};
	if (!gpus_given || !offers_ms) {
		if (gpus_given || pods_given || l->run.setup.provider_count > 1)
			compare(out, pick, given, e);
		return;
	}
	add_all_offers(l, e, offers_ms, &others);
	if (estimate_make(&all, l, others.list, others.count, &ignored) == 0)
		compare(out, pick, given, &all);
	estimate_free(&all);
	wanted_free(&others);
}
