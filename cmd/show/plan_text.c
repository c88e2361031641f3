/* plan_text.c - short texts about a plan: times, dollars, offers, one sentence, its unmet wishes.
 */
#include "plan_show.h"

#include <limits.h>
#include <math.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "plan/choose.h"
#include "report.h"

/* ---- times, dollars, offers, one sentence ---- */

char *plan_seconds(char to[24], double seconds)
{
	return duration_show(to, 24, (int64_t)(MIN(seconds, 1e9) * 1000));
}

char *plan_dollars(char to[32], double usd)
{
	if (usd > 1e-9 && usd < 0.001)
		snprintf(to, 32, "$%.*f", 1 - (int)floor(log10(usd)), usd);
	else
		money_show(to, 32, (int64_t)llround(usd * 1e6));
	return to;
}

bool plan_is_unpriced(const struct estimate *e, size_t machine)
{
	const struct offer *o = &e->offers[machine];

	return !price_is_given(o->provider, o->price_microusd_h);
}

char *plan_cost(char to[32], const struct estimate *e, size_t machine, double usd)
{
	if (plan_is_unpriced(e, machine))
		copy_text(to, 32, "no price given");
	else
		plan_dollars(to, usd);
	return to;
}

char *plan_offer(char to[PLAN_TEXT], const struct offer *o)
{
	CLEANUP(str_free) struct str gpu = STR_INIT; /* a provider's text */
	const char *name = gpu_called(o->gpu);

	str_add_printable(&gpu, name, strlen(name), 60);
	if (o->gpus > 1)
		str_addf(&gpu, ":%d", o->gpus);
	format_text(to, PLAN_TEXT, "%s at %s%s", str_text(&gpu), o->provider,
		    o->spot ? ", spot" : "");
	return to;
}

void plan_add_ahead(struct str *to, const struct cold_ahead *a, double price_h, const char *source)
{
	char waits[24], early[24], idle[32], cold[32];

	str_addf(to, "without the earlier start, the first pod would work %s after it (%s)",
		 plan_seconds(waits, a->waits_s), source);
	if (a->early_s > 0 && price_h > 0)
		str_addf(to,
			 "; if a pod that is up %s early idled until then, that would cost %s "
			 "(a cold start: %s)",
			 plan_seconds(early, a->early_s),
			 plan_dollars(idle, price_h * a->early_s / 3600),
			 plan_dollars(cold, price_h * a->waits_s / 3600));
	if (a->early_s > a->waits_s && a->early_s > 60)
		str_add(to, "; a start so far ahead is no better than a later one");
}

json_t *plan_ahead_json(const struct cold_ahead *a, double price_h)
{
	return json_pack("{s:f,s:f,s:f,s:o,s:o}", "ahead_s", a->ahead_s, "waits_s", a->waits_s,
			 "early_s", a->early_s, "idle_usd",
			 price_h > 0 ? json_real(price_h * a->early_s / 3600) : json_null(),
			 "cold_usd",
			 price_h > 0 ? json_real(price_h * a->waits_s / 3600) : json_null());
}

double plan_each_usd(const struct estimate *e, const struct plan *p)
{
	return e->open ? p->cost_usd / (double)e->open : 0;
}

char *plan_sentence(char *to, size_t room, const struct estimate *e, const struct plan *pick)
{
	char offer[PLAN_TEXT], time[24], cost[32];

	format_text(to, room, "%d pod%s of %s: about %s, %s", pick->pods,
		    pick->pods == 1 ? "" : "s", plan_offer(offer, &e->offers[pick->machine]),
		    plan_seconds(time, pick->makespan_p50_s),
		    plan_cost(cost, e, pick->machine, pick->cost_usd));
	return to;
}

/* ---- wishes that the plan does not follow to the letter ---- */

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

/* Pods are created a minute later each time that their provider's limit of calls is used up. */
static void add_creates_limit(struct str *to, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	const char *provider = e->offers[pick->machine].provider;
	struct plan_machine unlimited = *m;
	struct plan wider;
	char time[24], cost[32];

	unlimited.creates_a_minute = 0;
	if (!m->creates_a_minute || 2 * pick->pods < m->creates_a_minute ||
	    plan_choose(&wider, &e->work, &unlimited, 1, &e->wish) == PLAN_NOTHING_FITS)
		return;
	if (wider.pods > MAX(pick->pods, m->creates_a_minute))
		str_addf(to,
			 "pods: %s takes %d creates a minute, and later pods would find no work; "
			 "without that limit %d: %s, %s\n",
			 provider, m->creates_a_minute, wider.pods,
			 plan_seconds(time, wider.makespan_p50_s),
			 plan_dollars(cost, wider.cost_usd));
	else if (pick->pods > m->creates_a_minute)
		str_addf(to,
			 "pods: %s takes %d creates a minute: the last pod is created %s later\n",
			 provider, m->creates_a_minute,
			 plan_seconds(time, 60.0 * ((pick->pods - 1) / m->creates_a_minute)));
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
	else if (wish->pods > pick->pods && wish->staged)
		str_addf(to,
			 "pods: %d of %d, since another would still boot when the work is done; "
			 "--goal time rents all at once\n",
			 pick->pods, wish->pods);
	add_pods_limit(to, e, pick);
	if (wish->cap_s > 0 && pick->makespan_p90_s > wish->cap_s &&
	    pick->makespan_p50_s <= wish->cap_s)
		str_addf(to,
			 "max_duration: nine runs in ten take at most %s; one that takes more than "
			 "%s ends there, and `burst resume` continues it\n",
			 plan_seconds(most, pick->makespan_p90_s),
			 plan_seconds(least, wish->cap_s));
	add_creates_limit(to, e, pick);
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

/* ---- how far it may be off ---- */

char *plan_promise(char *to, size_t room, const struct estimate *e, const struct plan *pick)
{
	char time[24], cost[32];
	bool priced = !plan_is_unpriced(e, pick->machine);

	format_text(to, room, "nine runs in ten take at most %s%s%s",
		    plan_seconds(time, pick->makespan_p90_s), priced ? " and cost at most " : "",
		    priced ? plan_dollars(cost, pick->cost_p90_usd) : "");
	return to;
}

char *plan_speed_source(char to[PLAN_SOURCE], const struct plan_machine *m)
{
	const char *source = plan_source_name(m->speed_source);

	if (m->speed_source != PLAN_MEASURED)
		format_text(to, PLAN_SOURCE, "%s, never measured here", source);
	else
		format_text(to, PLAN_SOURCE, "%s in %d run%s", source, MAX(m->speed_runs, 1),
			    m->speed_runs > 1 ? "s" : "");
	return to;
}

double plan_speed_factor(const struct plan_machine *m)
{
	return exp(SPREAD_Z90 * m->speed_sigma);
}
