/* plan_explain.c - names every input of a plan with its source and age, and what more work would
 * change. */
#include <stdlib.h>

#include "base/clock.h"
#include "plan/cost.h"
#include "plan_parts.h"

static void say_price(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct offer *o = &e->offers[pick->machine];

	plan_say(to, 4, "  price: $%.4f an hour%s%s%s (%s)", e->machines[pick->machine].price_h,
		 o->with[0] ? ", with " : "", o->with, o->with[0] ? " in it" : "", e->price_from);
}

/* A prior does not split a load into phases. */
static void say_longest(FILE *to, const struct cold *cold)
{
	enum cold_phase longest = cold_longest(cold);
	char part[24], all[24];

	if (cold->phase[longest].samples)
		plan_say(to, 4, "  longest part of a cold start: %s, %s of %s",
			 cold_phase_name(longest), plan_seconds(part, cold->phase[longest].p50_s),
			 plan_seconds(all, cold_p50_s(cold)));
}

static void say_cold(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct cold *cold = &e->machines[pick->machine].cold;
	const char *seen = prior_of_provider(e->offers[pick->machine].provider)->seen;
	char p50[24], p90[24];

	for (int i = 0; i < COLD_PHASES; i++) {
		const struct cold_time *t = &cold->phase[i];
		if (t->p90_s <= 0)
			continue;
		plan_seconds(p50, t->p50_s);
		plan_seconds(p90, t->p90_s);
		if (t->samples)
			plan_say(to, 4, "  %s: %s, 90th percentile %s (measured: %d pod%s, %s)",
				 cold_phase_name((enum cold_phase)i), p50, p90, t->samples,
				 t->samples == 1 ? "" : "s", e->extras[pick->machine].pods_seen);
		else
			plan_say(to, 4, "  %s: %s, 90th percentile %s (prior, %s)",
				 cold_phase_name((enum cold_phase)i), p50, p90, seen);
	}
	say_longest(to, cold);
}

static void say_batches(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];

	char once[32], longest[32], each[32];

	plan_say(to, 4, "  batch time: %s s + %s s x longest + %s s x sum of lengths (%s%s%s)",
		 number_show(once, m->speed.once_s, 4), number_show(longest, m->speed.longest_s, 4),
		 number_show(each, m->speed.each_s, 4), plan_source_name(m->speed_source),
		 e->speed_from[pick->machine][0] ? ": " : "", e->speed_from[pick->machine]);
	if (e->need.base_gib > 0)
		plan_say(to, 4,
			 "  largest batch: %d (memory: %.4g GiB and %.4g GiB a segment, of %.4g "
			 "GiB)",
			 m->batch_max, e->need.base_gib, e->need.each_gib,
			 estimate_usable_gib(&e->offers[pick->machine]));
	else
		plan_say(to, 4, "  largest batch: %d (as the engine reports)", m->batch_max);
}

static void say_extra_usd(FILE *to, const char *name, const struct extra *x)
{
	char cost[32];

	if (x->value > 0)
		plan_say(to, 4, "  %s: %s a run (%s)", name, plan_dollars(cost, x->value), x->from);
	else if (x->from[0])
		plan_say(to, 4, "  %s: nothing a run (%s)", name, x->from);
}

static void say_extras(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct extras *x = &e->extras[pick->machine];
	const struct plan_machine *m = &e->machines[pick->machine];
	char cost[32], time[24];

	plan_say(to, 4, "  billing: by %g s, rounded up (prior, %s)", m->quantum_s,
		 prior_of_provider(e->offers[pick->machine].provider)->seen);
	say_extra_usd(to, "egress", &x->egress);
	say_extra_usd(to, "delivery", &x->delivery);
	if (x->delivery.value > 0)
		plan_say(to, 4, "  delivery on this pod instead: %s",
			 plan_dollars(cost, cost_usd(m->price_h, x->delivery_s)));
	if (x->interrupted.value > 0)
		plan_say(to, 4,
			 "  interruptions: every %s (%s); each repeats half a batch and a cold "
			 "start",
			 plan_seconds(time, x->interrupted.value), x->interrupted.from);
	if (e->failing.from[0])
		plan_say(to, 4, "  rendered again: %.2g%% (%s)", 100 * e->failing.value,
			 e->failing.from);
	if (e->audio_s > 0)
		plan_say(to, 4, "  speech: %d characters a minute (prior, " PRIOR_SPEECH_SEEN ")",
			 PRIOR_CHARS_PER_MINUTE);
}

void plan_inputs_show(FILE *to, const struct estimate *e, const struct plan *pick)
{
	fputs("\nfrom:\n", to);
	say_price(to, e, pick);
	say_batches(to, e, pick);
	say_cold(to, e, pick);
	say_extras(to, e, pick);
}

/* The work of `factor` such jobs, with this job's lengths. */
static void repeat_work(struct plan_work *out, const struct estimate *e, int factor)
{
	size_t count = e->open * (size_t)factor;
	double *lengths = xcalloc(count + 1, sizeof(*lengths));

	for (size_t i = 0; i < count; i++)
		lengths[i] = e->lengths[i % e->open];
	plan_work_init(out, lengths, count, e->work.size[e->work.sizes - 1], e->audio_s * factor);
	free(lengths);
}

void plan_what_if_show(FILE *to, const struct estimate *e)
{
	static const int factors[] = {1, 2, 10};
	char sentence[PLAN_TEXT + 100], cost[32];

	fprintf(to, "\nwith more of the same segments:\n");
	for (size_t i = 0; i < ARRAY_LEN(factors); i++) {
		struct plan_work work;
		struct plan p;
		repeat_work(&work, e, factors[i]);
		if (plan_choose(&p, &work, e->machines, e->count, &e->wish) == PLAN_NOTHING_FITS)
			continue;
		plan_say(to, 6, "  x%-2d %s, %s each, used %.0f%%", factors[i],
			 plan_sentence(sentence, sizeof(sentence), e, &p),
			 plan_dollars(cost, p.cost_usd / (double)work.count), 100 * p.used);
	}
}
