/* plan_words.c - explains a plan in sentences: what limits it, and what the user could do. */
#include <math.h>

#include "plan/cost.h"
#include "plan_parts.h"

/* ---- the bottleneck ---- */

static const char *bottleneck_text(enum plan_bottleneck b)
{
	switch (b) {
	case PLAN_BY_COLD_START:
		return "cold start: pods take longer to boot than to render; more work per run, "
		       "or fewer pods, make a segment cheaper";
	case PLAN_BY_BANDWIDTH:
		return "memory bandwidth: larger batches, or a card with more bandwidth, are "
		       "faster";
	case PLAN_BY_COMPUTE: return "compute: a card with more of it is faster";
	case PLAN_BY_HOST:
		return "the host, not the GPU: no card shortens that; the cheapest one that fits "
		       "wins";
	}
	return "";
}

/* Adds the effect of one more pod of the same kind. */
static void add_wide(struct str *to, const struct estimate *e, const struct plan *pick)
{
	struct plan_wish wish = e->wish;
	struct plan more;
	char time[24], cost[32];

	wish.goal = PLAN_COST;
	wish.deadline_s = wish.budget_usd = 0;
	wish.pods = pick->pods + 1;
	wish.staged = false;
	if ((size_t)wish.pods > e->work.count ||
	    plan_choose(&more, &e->work, &e->machines[pick->machine], 1, &wish) != PLAN_FOUND) {
		str_add(to, "there is no work for another pod");
		return;
	}
	double saves_s = pick->makespan_p50_s - more.makespan_p50_s;
	if (saves_s < 0.01 * pick->makespan_p50_s)
		str_addf(to, "another pod costs %s and saves no time",
			 plan_dollars(cost, more.cost_usd - pick->cost_usd));
	else
		str_addf(to, "another pod saves %s and costs %s", plan_seconds(time, saves_s),
			 plan_dollars(cost, more.cost_usd - pick->cost_usd));
}

struct taller {
	size_t machine;
	/* from_s: the work, on the pick's card, above which it is cheaper */
	double price_ratio, speed_ratio, from_s;
};

static bool pays_sooner(const struct taller *a, const struct taller *b)
{
	if (a->from_s != b->from_s)
		return a->from_s < b->from_s;
	return a->speed_ratio / a->price_ratio > b->speed_ratio / b->price_ratio;
}

/* The dearer card that pays first, else the nearest one. speed_ratio 0: no dearer card is faster.
 */
static struct taller find_taller(const struct estimate *e, const struct plan *pick)
{
	struct taller best = {0};
	const struct plan_machine *own = &e->machines[pick->machine];
	struct plan_wish wish = e->wish;
	struct plan one, other;

	wish.goal = PLAN_COST;
	wish.deadline_s = wish.budget_usd = 0;
	wish.pods = 1;
	if (own->price_h <= 0 || plan_choose(&one, &e->work, own, 1, &wish) != PLAN_FOUND)
		return best;
	for (size_t i = 0; i < e->count; i++) {
		const struct plan_machine *m = &e->machines[i];
		struct taller t = {.machine = i, .price_ratio = m->price_h / own->price_h};
		if (t.price_ratio <= 1 ||
		    plan_choose(&other, &e->work, m, 1, &wish) != PLAN_FOUND || other.work_s <= 0)
			continue;
		t.speed_ratio = one.work_s / other.work_s;
		t.from_s = cost_tall_from_s(cold_billed_p50_s(&own->cold), t.price_ratio,
					    t.speed_ratio);
		if (t.speed_ratio > 1.05 && (best.speed_ratio <= 0 || pays_sooner(&t, &best)))
			best = t;
	}
	return best;
}

static void say_wide_or_tall(FILE *to, const struct estimate *e, const struct plan *pick)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct taller t = find_taller(e, pick);
	char offer[PLAN_TEXT], time[24], has[24];

	add_wide(&text, e, pick);
	if (t.speed_ratio > 0) {
		str_addf(&text, "; %s (%.1fx the price, %.1fx as fast) ",
			 plan_offer(offer, &e->offers[t.machine]), t.price_ratio, t.speed_ratio);
		if (isinf(t.from_s))
			str_add(&text, "is never cheaper");
		else
			str_addf(&text, "is cheaper from %s of work on one %s, this job has %s",
				 plan_seconds(time, t.from_s), e->offers[pick->machine].gpu,
				 plan_seconds(has, pick->work_s));
	} else if (e->count > 1) {
		str_add(&text, "; no more expensive offer renders this job faster");
	}
	plan_say(to, 2, "wide or tall: %s", str_text(&text));
}

static void say_used(FILE *to, const struct estimate *e, const struct plan *pick)
{
	double cold_s = cold_billed_p50_s(&e->machines[pick->machine].cold);
	double needed_s = cost_work_for_used_s(PLAN_USED_GOAL, pick->pods * cold_s);
	char needed[24], cold[24], has[24], pods[32] = "";

	if (pick->used >= PLAN_USED_GOAL) {
		plan_say(to, 2, "used: %.0f%% of the billed time computes; the rule asks for 70%%",
			 100 * pick->used);
		return;
	}
	if (pick->pods > 1)
		snprintf(pods, sizeof(pods), " on each of %d pods", pick->pods);
	plan_say(to, 2,
		 "used: %.0f%% of the billed time computes; 70%% needs %s of work at a cold start "
		 "of %s%s, this job has %s",
		 100 * pick->used, plan_seconds(needed, needed_s), plan_seconds(cold, cold_s), pods,
		 plan_seconds(has, pick->work_s));
}

/* Prints what pods without a GPU download. */
static void say_plain_setup(FILE *to, const struct estimate *e, const char *time)
{
	if (e->volume)
		plan_say(to, 2,
			 "set-up: the first pod fetches about %d MB to volume %s (%s); later runs "
			 "find it there",
			 e->setup_download_mb, e->volume, time);
	else
		plan_say(to, 2,
			 "set-up: each pod of each run fetches about %d MB (%s); later runs find "
			 "it there if the config names a volume: volume = { name = \"voices\"; "
			 "size_gb = 2; create = true; };",
			 e->setup_download_mb, time);
}

/* Prints what a pod would download while it bills. */
static void say_setup(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	double setup_s = cold_setup_s(&m->cold);
	char time[24], cost[32];

	if (e->extras[pick->machine].env_in_image)
		plan_say(to, 2, "set-up: none, the pods' image has the job's environment");
	if (!e->setup_download_mb || setup_s <= 0)
		return;
	plan_seconds(time, setup_s);
	plan_dollars(cost, setup_s * m->price_h / 3600);
	if (!e->setup_on_gpu)
		say_plain_setup(to, e, time);
	else if (e->volume && !e->setup_by_card)
		plan_say(to, 2,
			 "set-up: a pod without a GPU fetches about %d MB to volume %s before GPUs "
			 "are rented; if none is free, the first GPU pod does and bills %s, %s, "
			 "meanwhile (the plan counts that)",
			 e->setup_download_mb, e->volume, time, cost);
	else if (e->volume)
		plan_say(to, 2,
			 "set-up: the first GPU pod fetches about %d MB and bills %s, %s, "
			 "meanwhile; `burst volume warm %s` does it on a pod without a GPU",
			 e->setup_download_mb, time, cost, e->volume);
	else
		plan_say(to, 2,
			 "set-up: each GPU pod fetches about %d MB and bills %s, %s, meanwhile; "
			 "later runs find it there if the config names a volume",
			 e->setup_download_mb, time, cost);
}

/* Prints the storage cost: a volume bills with or without this run, so plans exclude it, but the
 * run's total includes it. */
static void say_storage(FILE *to, const struct extra *storage, const struct plan *pick)
{
	char cost[32], all[32];

	if (storage->value > 0)
		plan_say(to, 2, "storage: %s per run on top of that, %s in total (%s)",
			 plan_dollars(cost, storage->value),
			 plan_dollars(all, storage->value + pick->cost_usd), storage->from);
}

/* Prints how often a command's checkpoint is saved. */
void plan_saves_show(FILE *to, const struct extras *x)
{
	char every[24];

	if (x->saves.from[0] && x->saves.value > 0)
		plan_say(to, 2, "checkpoint: $BURST_CHECKPOINT is saved every %s (%s)",
			 plan_seconds(every, x->saves.value), x->saves.from);
	else if (x->saves.from[0])
		plan_say(to, 2,
			 "checkpoint: $BURST_CHECKPOINT is saved as soon as it is written, "
			 "then %s",
			 x->saves.from);
}

/* Prints what a user in a hurry could do instead. */
static void say_instead(FILE *to, const struct estimate *e, const struct plan *pick)
{
	struct plan other;
	char sentence[PLAN_TEXT + 100];

	if (plan_best_for(&other, e, PLAN_TIME, false, true) &&
	    other.makespan_p50_s < 0.8 * pick->makespan_p50_s)
		plan_say(to, 2, "faster: %s", plan_sentence(sentence, sizeof(sentence), e, &other));
}

static const char *source_text(enum plan_source source)
{
	switch (source) {
	case PLAN_MEASURED: return "measured";
	case PLAN_CARRIED: return "carried over from another GPU";
	case PLAN_PRIOR: return "a prior (the first run measures them)";
	}
	return "";
}

void plan_words_show(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	char cost[32], speech[24];

	plan_say(to, 2, "limit: %s", bottleneck_text(plan_bottleneck(pick, &e->work, m)));
	say_wide_or_tall(to, e, pick);
	say_used(to, e, pick);
	if (e->audio_s > 0)
		plan_say(to, 2, "speech: about %s of sound, %s an hour of it",
			 plan_seconds(speech, e->audio_s),
			 plan_dollars(cost, pick->cost_usd * 3600 / e->audio_s));
	plan_say(to, 2, "estimate: batch times are %s, cold starts are %s",
		 source_text(m->speed_source),
		 cold_source(&m->cold) == PLAN_PRIOR ? "a prior" : "measured");
	say_setup(to, e, pick);
	plan_wishes_show(to, e, pick);
	say_storage(to, &e->extras[pick->machine].storage, pick);
	plan_saves_show(to, &e->extras[pick->machine]);
	say_instead(to, e, pick);
}

void plan_verdict_show(FILE *to, const struct estimate *e, const struct plan *pick,
		       enum plan_verdict verdict)
{
	char sentence[PLAN_TEXT + 100], time[24], wanted[24], cost[32], budget[32];

	plan_sentence(sentence, sizeof(sentence), e, pick);
	switch (verdict) {
	case PLAN_FOUND: plan_say(to, 2, "plan: %s", sentence); return;
	case PLAN_NOTHING_FITS: return;
	case PLAN_TOO_SLOW:
		plan_say(to, 2,
			 "plan: no plan is done within %s (nine times in ten); the fastest takes "
			 "%s: %s",
			 plan_seconds(wanted, e->wish.deadline_s),
			 plan_seconds(time, pick->makespan_p90_s), sentence);
		return;
	case PLAN_TOO_EXPENSIVE:
		plan_say(
			to, 2,
			"plan: no plan costs at most %s (caps.max_cost); the cheapest costs %s: %s",
			plan_dollars(budget, e->wish.budget_usd),
			plan_dollars(cost, pick->pods_usd), sentence);
		return;
	case PLAN_NEITHER:
		plan_say(to, 2,
			 "plan: no plan is done within %s and costs at most %s; the cheapest in "
			 "time costs %s: %s",
			 plan_seconds(wanted, e->wish.deadline_s),
			 plan_dollars(budget, e->wish.budget_usd),
			 plan_dollars(cost, pick->pods_usd), sentence);
		return;
	}
}
