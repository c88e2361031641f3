/* plan_reasons.c - prints what limits a plan, what would change it, and what it was made from. */
#include "plan_show.h"

#include <math.h>

#include "base/clock.h"
#include "output.h"
#include "plan/cost.h"
#include "plan_figures.h"

/* ---- what limits the plan, and what the user could do ---- */

static void print_wishes(FILE *to, const struct estimate *e, const struct plan *pick)
{
	CLEANUP(str_free) struct str lines = STR_INIT;
	const char *line;
	size_t len;

	plan_wishes(&lines, e, pick);
	for (const char *at = str_text(&lines); (line = str_next_line(&at, &len));)
		output_wrapped(to, 2, "%.*s", (int)len, line);
}

static const char *text_of_bottleneck(enum plan_bottleneck b)
{
	switch (b) {
	case PLAN_BY_COLD_START:
		return "cold start: pods take longer to boot than to render; more work per run, "
		       "or fewer pods, make a segment cheaper";
	case PLAN_BY_LONGEST:
		return "one long segment, which no two workers can share: split it, or use fewer "
		       "pods";
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

/* Prints what one more pod of the same kind would save and cost. */
static void say_wider(FILE *to, const struct estimate *e, const struct plan *pick)
{
	struct plan_wish wish = e->wish;
	struct plan more;
	char time[24], cost[32];

	wish.goal = PLAN_COST;
	wish.within_s = wish.cap_s = wish.budget_usd = 0;
	wish.pods = pick->pods + 1;
	wish.staged = false;
	if ((size_t)wish.pods > e->work.count ||
	    plan_choose(&more, &e->work, &e->machines[pick->machine], 1, &wish) != PLAN_FOUND)
		return;
	double saves_s = pick->makespan_p50_s - more.makespan_p50_s;
	output_wrapped(to, 2, "wider: another pod saves %s%s%s",
		       saves_s < 0.01 * pick->makespan_p50_s ? "no time"
							     : plan_seconds(time, saves_s),
		       plan_is_unpriced(e, pick->machine) ? "; " : " and costs ",
		       plan_cost(cost, e, pick->machine, more.cost_usd - pick->cost_usd));
}

/* Prints the share of billed time that computes, and how much work would raise it to the goal. */
static void say_used(FILE *to, const struct estimate *e, const struct plan *pick)
{
	double cold_s = cold_billed_p50_s(&e->machines[pick->machine].cold);
	double needed_s = cost_work_for_used_s(PLAN_USED_GOAL, pick->pods * cold_s);
	char needed[24], cold[24], has[24], pods[32] = "";

	if (pick->used >= PLAN_USED_GOAL) {
		output_wrapped(to, 2,
			       "used: %.0f%% of the billed time computes; the rule asks for 70%%",
			       100 * pick->used);
		return;
	}
	if (pick->pods > 1)
		snprintf(pods, sizeof(pods), " on each of %d pods", pick->pods);
	output_wrapped(
		to, 2,
		"used: %.0f%% of the billed time computes; 70%% needs %s of work at a cold start "
		"of %s%s, this job has %s",
		100 * pick->used, plan_seconds(needed, needed_s), plan_seconds(cold, cold_s), pods,
		plan_seconds(has, pick->work_s));
}

/* Prints what a pod would download while it bills, and on which pod that happens. */
static void say_download(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	const char *gpu = e->setup_on_gpu ? "GPU " : "";
	bool on_cpu_pod = e->setup_on_gpu && e->volume && !e->setup_by_card; /* warm_first() */
	double setup_s = cold_setup_s(&m->cold);
	CLEANUP(str_free) struct str line = STR_INIT;
	char time[24], cost[32];

	if (e->extras[pick->machine].env_in_image)
		output_wrapped(to, 2, "set-up: none, the pods' image has the job's environment");
	if (!e->setup_download_mb || setup_s <= 0)
		return;
	if (on_cpu_pod)
		str_add(&line, "a pod without a GPU");
	else
		str_addf(&line, "%s %spod", e->volume ? "the first" : "each", gpu);
	str_addf(&line, " fetches about %d MB", e->setup_download_mb);
	if (e->volume)
		str_addf(&line, " to volume %s", e->volume);
	if (on_cpu_pod)
		str_add(&line, " before GPUs are rented");
	else
		str_addf(&line, " and bills %s, %s, meanwhile", plan_seconds(time, setup_s),
			 plan_cost(cost, e, pick->machine, setup_s * m->price_h / 3600));
	if (!e->volume)
		str_add(&line, "; later runs find it there if the config names a volume");
	else if (e->setup_by_card)
		str_addf(&line, "; `burst volume warm %s` does it on a pod without a GPU",
			 e->volume);
	output_wrapped(to, 2, "set-up: %s", str_text(&line));
}

/* A queue that is free adds to the time of a run, and to no cost. */
static void say_queue(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct cold *cold = &e->machines[pick->machine].cold;
	const struct cold_time *queue = &cold->phase[COLD_QUEUE];
	char wait[24];

	if (!cold->queue_is_free)
		return;
	if (queue->samples)
		output_wrapped(to, 2, "queue: about %s, which costs nothing (measured: %d pod%s)",
			       plan_seconds(wait, queue->p50_s), queue->samples,
			       queue->samples == 1 ? "" : "s");
	else
		output_wrapped(to, 2,
			       "queue unknown: no pod has waited for this GPU yet; waiting costs "
			       "nothing");
}

/* Prints the storage cost: a volume bills with or without this run, so plans exclude it, but the
 * run's total includes it. */
static void say_storage(FILE *to, const struct extra *storage, const struct plan *pick)
{
	char cost[32], all[32];

	if (storage->value > 0)
		output_wrapped(to, 2, "storage: %s per run on top of that, %s in total (%s)",
			       plan_dollars(cost, storage->value),
			       plan_dollars(all, storage->value + pick->cost_usd), storage->from);
}

void plan_volume_pays(struct volume_pays *out, const struct estimate *e, const struct plan *pick)
{
	const struct extras *x = &e->extras[pick->machine];
	double saved_s = pick->pods * x->volume_saves_s,
	       saved_usd = saved_s * e->machines[pick->machine].price_h / 3600;

	*out = (struct volume_pays){
		.month_usd = plan_is_unpriced(e, pick->machine) ? 0 : x->month_usd,
		.saved_s = saved_s,
		.saved_usd = saved_usd,
		.runs = ceil(cost_volume_break_even(x->month_usd, saved_usd, 0)),
		.measured = x->volume_measured,
	};
}

/* Prints from how many runs a month the volume costs less than the time that it saves. */
static void say_volume_pays(FILE *to, const struct estimate *e, const struct plan *pick)
{
	struct volume_pays v;
	char usd[32], time[24], cost[32];

	plan_volume_pays(&v, e, pick);
	const char *from = v.measured ? "measured" : "partly a guess until it is measured";
	if (v.month_usd <= 0)
		return;
	plan_dollars(usd, v.month_usd);
	if (v.saved_usd <= 0)
		output_wrapped(to, 2, "volume: saves no billed time (%s), for %s a month", from,
			       usd);
	else
		output_wrapped(to, 2,
			       "volume: saves %s of billed time a run, %s (%s): pays for its %s a "
			       "month from %.0f run%s a month on",
			       plan_seconds(time, v.saved_s), plan_dollars(cost, v.saved_usd), from,
			       usd, v.runs, v.runs <= 1 ? "" : "s");
}

void plan_print_saves(FILE *to, const struct extras *x)
{
	char every[24];

	if (x->saves.from[0] && x->saves.value > 0)
		output_wrapped(to, 2, "checkpoint: $BURST_CHECKPOINT is saved every %s (%s)",
			       plan_seconds(every, x->saves.value), x->saves.from);
	else if (x->saves.from[0])
		output_wrapped(to, 2,
			       "checkpoint: $BURST_CHECKPOINT is saved as soon as it is written, "
			       "then %s",
			       x->saves.from);
}

/* Prints where time and cost come from, and how far they may be off. */
static void say_sources(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	char source[PLAN_SOURCE], promise[PLAN_TEXT], p10[24], p90[24];
	double cold_s = cold_p50_s(&m->cold), slow_s = cold_p90_s(&m->cold),
	       factor = plan_speed_factor(m);

	output_wrapped(to, 2,
		       "estimate: batch times are %s (%.2g to %.2g times as long in eight runs of "
		       "ten), cold starts are %s (%s to %s)",
		       plan_speed_source(source, m), 1 / factor, factor,
		       plan_source_name(cold_source(&m->cold)),
		       plan_seconds(p10, spread_p10(cold_s, slow_s)), plan_seconds(p90, slow_s));
	if (m->price_p90_h > m->price_h)
		output_wrapped(to, 2,
			       "price: it moves; nine looks of ten found at most $%.4f an hour, "
			       "which the promise counts",
			       m->price_p90_h);
	output_wrapped(to, 2, "promise: %s", plan_promise(promise, sizeof(promise), e, pick));
}

void plan_print_advice(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	char cost[32], speech[24];

	output_wrapped(to, 2, "limit: %s", text_of_bottleneck(plan_bottleneck(pick, &e->work, m)));
	say_wider(to, e, pick);
	say_used(to, e, pick);
	if (e->audio_s > 0)
		output_wrapped(
			to, 2, "speech: about %s of sound, %s%s", plan_seconds(speech, e->audio_s),
			plan_cost(cost, e, pick->machine, pick->cost_usd * 3600 / e->audio_s),
			plan_is_unpriced(e, pick->machine) ? "" : " an hour of it");
	say_sources(to, e, pick);
	say_download(to, e, pick);
	print_wishes(to, e, pick);
	say_storage(to, &e->extras[pick->machine].storage, pick);
	say_volume_pays(to, e, pick);
	say_queue(to, e, pick);
	plan_print_saves(to, &e->extras[pick->machine]);
}

/* ---- inputs with their source and age ---- */

static void say_price(FILE *to, const struct estimate *e, const struct plan *pick,
		      const struct plan_figure *price)
{
	const struct offer *o = &e->offers[pick->machine];

	if (!price) {
		output_wrapped(to, 4, "  no price given: %s names none", o->provider);
		return;
	}
	output_wrapped(to, 4, "  price: $%.4f an hour%s%s%s (%s)", price->p50,
		       o->with[0] ? ", with " : "", o->with, o->with[0] ? " in it" : "",
		       price->from);
}

static void say_phase(FILE *to, const struct plan_figure *f)
{
	char p50[24], p90[24], p10[24];

	output_wrapped(to, 4, "  %s: %s, 90th percentile %s, 10th %s (%s%s%s)", f->name,
		       plan_seconds(p50, f->p50), plan_seconds(p90, f->p90),
		       plan_seconds(p10, f->p10), f->source, f->samples ? ": " : ", ", f->from);
}

static void say_batches(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];

	char once[32], longest[32], each[32];

	output_wrapped(
		to, 4, "  batch time: %s s + %s s x longest + %s s x sum of lengths (%s%s%s)",
		number_show(once, m->speed.once_s, 4), number_show(longest, m->speed.longest_s, 4),
		number_show(each, m->speed.each_s, 4), plan_source_name(m->speed_source),
		e->speed_from[pick->machine][0] ? ": " : "", e->speed_from[pick->machine]);
	if (e->need.base_gib > 0)
		output_wrapped(
			to, 4,
			"  largest batch: %d (memory: %.4g GiB and %.4g GiB a segment, of %.4g "
			"GiB)",
			m->batch_max, e->need.base_gib, e->need.each_gib,
			estimate_usable_gib(&e->offers[pick->machine]));
	else
		output_wrapped(to, 4, "  largest batch: %d (as the engine reports)", m->batch_max);
}

static void say_extra_usd(FILE *to, const char *name, const struct extra *x)
{
	char cost[32];

	if (x->value > 0)
		output_wrapped(to, 4, "  %s: %s a run (%s)", name, plan_dollars(cost, x->value),
			       x->from);
	else if (x->from[0])
		output_wrapped(to, 4, "  %s: nothing a run (%s)", name, x->from);
}

static void say_interruptions(FILE *to, const struct plan_figure *f)
{
	char every[24], least[24], most[24];
	bool bounded = f && isfinite(f->p90);

	if (f)
		output_wrapped(
			to, 4,
			"  interruptions: every %s (%s), or %s%s%s%s in %s cases of ten; each "
			"repeats half a batch and a cold start",
			plan_seconds(every, f->p50), f->from, bounded ? "" : "more than ",
			plan_seconds(least, f->p10), bounded ? " to " : "",
			bounded ? plan_seconds(most, f->p90) : "", bounded ? "eight" : "nine");
}

static void say_extras(FILE *to, const struct estimate *e, const struct plan *pick,
		       const struct plan_figure *interruptions)
{
	const struct extras *x = &e->extras[pick->machine];
	const struct plan_machine *m = &e->machines[pick->machine];

	output_wrapped(to, 4, "  billing: by %g s, rounded up (prior, %s)", m->quantum_s,
		       prior_of_provider(e->offers[pick->machine].provider)->seen);
	say_extra_usd(to, "egress", &x->egress);
	say_extra_usd(to, "stages", &x->stages);
	say_interruptions(to, interruptions);
	if (e->failing.from[0])
		output_wrapped(to, 4, "  rendered again: %.2g%% (%s)", 100 * e->failing.value,
			       e->failing.from);
	if (e->audio_s > 0)
		output_wrapped(to, 4,
			       "  speech: %d characters a minute (prior, " PRIOR_SPEECH_SEEN ")",
			       PRIOR_CHARS_PER_MINUTE);
}

void plan_print_inputs(FILE *to, const struct estimate *e, const struct plan *pick)
{
	struct plan_figure list[PLAN_FIGURES];
	size_t count = plan_figures(list, e, pick);

	fputs("\nfrom:\n", to);
	say_price(to, e, pick, plan_figure_find(list, count, "price"));
	say_batches(to, e, pick);
	for (int i = 0; i < COLD_PHASES; i++) {
		const struct plan_figure *phase =
			plan_figure_find(list, count, cold_phase_name((enum cold_phase)i));
		if (phase)
			say_phase(to, phase);
	}
	say_extras(to, e, pick, plan_figure_find(list, count, "interruptions"));
}
