/* plan_wishes.c - names each wish that a plan does not follow to the letter, and why. */
#include "plan_show.h"

#include <limits.h>

#include "base/gpus.h"
#include "plan/choose.h"

/* A limit of pods beyond which more would have served the goal better. */
static void add_pods_limit(struct str *to, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	struct plan_machine unlimited = *m;
	struct plan_wish wish = e->wish;
	struct plan wider;
	int most = plan_widest(&e->work, m, &wish);
	char time[24], cost[32];

	unlimited.pods_max = 0;
	wish.pods_most = INT_MAX;
	if (wish.pods > 0 || (size_t)most >= e->work.count ||
	    plan_choose(&wider, &e->work, &unlimited, 1, &wish) == PLAN_NOTHING_FITS ||
	    wider.pods <= most)
		return;
	if (most == m->pods_max)
		str_addf(to, "pods: %s has %d left", e->offers[pick->machine].provider, most);
	else if (most < PLAN_PODS_MOST)
		str_addf(to, "pods: the open files of this process allow %d (`ulimit -n`)", most);
	else
		str_addf(to, "pods: a run has %d at most", most);
	str_addf(to, "; without that limit %d: %s, %s\n", wider.pods,
		 plan_seconds(time, wider.makespan_p50_s), plan_dollars(cost, wider.cost_usd));
}

void plan_wishes(struct str *to, const struct estimate *e, const struct plan *pick)
{
	const struct plan_wish *wish = &e->wish;
	const struct plan_machine *m = &e->machines[pick->machine];
	const struct offer *o = &e->offers[pick->machine];
	double usable_gib = estimate_usable_gib(o);
	char usd[32], least[24], most[24];

	if (wish->value_of_time_h > 0 && wish->goal != PLAN_BALANCED)
		str_addf(to,
			 "value_of_time: %s an hour counts for nothing, since goal is \"%s\"; goal "
			 "= \"balanced\" weighs it\n",
			 plan_dollars(usd, wish->value_of_time_h),
			 wish->goal == PLAN_TIME ? "time" : "cost");
	if (wish->pods > pick->pods && (size_t)pick->pods >= e->open)
		str_addf(to, "pods: %d of %d, since there are no more segments\n", pick->pods,
			 wish->pods);
	else if (wish->pods > pick->pods)
		str_addf(to,
			 "pods: %d of %d, since another would still boot when the work is done; "
			 "--goal time rents all at once\n",
			 pick->pods, wish->pods);
	add_pods_limit(to, e, pick);
	if (pick->at_risk_usd > 0)
		str_addf(to,
			 "first segments: %d pods work while these are checked; bad ones stop the "
			 "run, which has then cost at most %s (nine times in ten)\n",
			 pick->pods, plan_dollars(usd, pick->at_risk_usd));
	if (e->shares_card && m->speed_source == PLAN_PRIOR)
		str_addf(to,
			 "workers: %d share a card, which no run has measured: the work takes "
			 "between %s and %s; the plan counts the longer time\n",
			 m->workers, plan_seconds(least, pick->work_s / m->workers),
			 plan_seconds(most, pick->work_s));
	if (o->gpus > 1 && !gpu_is_none(o->gpu))
		str_addf(to, "cards: a pod has and bills %d, and the plan counts the time of one\n",
			 o->gpus);
	/* a number that no card is sold with is probably what the worker needs */
	if (e->need.base_gib <= 0 && e->need_gb < o->vram_gb && e->need_gb > usable_gib)
		str_addf(
			to,
			"memory: %d GB are compared with what cards are sold with; of the %d GB of "
			"%s a program can use %.4g GiB\n",
			e->need_gb, o->vram_gb, o->gpu, usable_gib);
}
