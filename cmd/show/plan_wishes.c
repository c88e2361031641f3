/* plan_wishes.c - names each wish of the user's that a plan does not follow to the letter. */
#include "base/gpus.h"
#include "plan_parts.h"

static void add_value_of_time(struct str *to, const struct plan_wish *wish)
{
	char usd[32];

	if (wish->value_of_time_h > 0 && wish->goal != PLAN_BALANCED)
		str_addf(to,
			 "value_of_time: %s an hour counts for nothing, since goal is \"%s\"; goal "
			 "= "
			 "\"balanced\" weighs it\n",
			 plan_dollars(usd, wish->value_of_time_h),
			 wish->goal == PLAN_TIME ? "time" : "cost");
}

static void add_pods(struct str *to, const struct estimate *e, const struct plan *pick)
{
	if (e->wish.pods <= pick->pods)
		return;
	if ((size_t)pick->pods >= e->open)
		str_addf(to, "pods: %d of %d, since there are no more segments\n", pick->pods,
			 e->wish.pods);
	else
		str_addf(to,
			 "pods: %d of %d, since another would still boot when the work is done; "
			 "--goal time rents all at once\n",
			 pick->pods, e->wish.pods);
}

static void add_workers(struct str *to, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	char least[24], most[24];

	if (e->shares_card && m->speed_source == PLAN_PRIOR)
		str_addf(to,
			 "workers: %d share a card, which no run has measured: the work takes "
			 "between %s and %s; the plan counts the longer time\n",
			 m->workers, plan_seconds(least, pick->work_s / m->workers),
			 plan_seconds(most, pick->work_s));
}

static void add_cards(struct str *to, const struct estimate *e, const struct plan *pick)
{
	const struct offer *o = &e->offers[pick->machine];

	if (o->gpus > 1 && !gpu_is_none(o->gpu))
		str_addf(to,
			 "cards: a pod has and bills %d, and the plan counts the time of one: "
			 "burst's engines use the first\n",
			 o->gpus);
}

/* A number that no card is sold with is probably what the worker needs. */
static void add_memory(struct str *to, const struct estimate *e, const struct plan *pick)
{
	const struct offer *o = &e->offers[pick->machine];
	double usable_gib = estimate_usable_gib(o);

	if (e->need.base_gib <= 0 && e->need_gb < o->vram_gb && e->need_gb > usable_gib)
		str_addf(
			to,
			"memory: %d GB are compared with what cards are sold with; of the %d GB of "
			"%s a program can use %.4g GiB\n",
			e->need_gb, o->vram_gb, o->gpu, usable_gib);
}

void plan_wishes(struct str *to, const struct estimate *e, const struct plan *pick)
{
	add_value_of_time(to, &e->wish);
	add_pods(to, e, pick);
	add_workers(to, e, pick);
	add_cards(to, e, pick);
	add_memory(to, e, pick);
}

void plan_wishes_show(FILE *to, const struct estimate *e, const struct plan *pick)
{
	CLEANUP(str_free) struct str lines = STR_INIT;
	const char *line;
	size_t len;

	plan_wishes(&lines, e, pick);
	for (const char *at = str_text(&lines); (line = str_next_line(&at, &len));)
		plan_say(to, 2, "%.*s", (int)len, line);
}
