/* plan_show.c - prints a plan as text: what it is, what limits it, and what it was made from. */
#include "plan_show.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "core/core.h"
#include "output.h"
#include "plan/cost.h"
#include "report.h"

/* ---- the best plan for other wishes ---- */

/* What a best plan must keep. */
enum { IN_TIME = 1, IN_BUDGET = 2 };

/* The best plan for the goal that keeps the wishes in `limits`. False: there is none. */
static bool find_best_plan(struct plan *out, const struct estimate *e, enum plan_goal goal,
			   unsigned limits)
{
	struct plan_wish wish = e->wish;

	wish.goal = goal;
	wish.staged = e->wish.staged && goal == PLAN_COST;
	wish.within_s = limits & IN_TIME ? wish.within_s : 0;
	wish.budget_usd = limits & IN_BUDGET ? wish.budget_usd : 0;
	return plan_choose(out, &e->work, e->machines, e->count, &wish) == PLAN_FOUND;
}

static void print_wrapped(FILE *to, int indent, const char *fmt, ...) PRINTF(3, 4);

/* Prints a line of text. On a terminal, wraps it at its width and indents the following lines. */
static void print_wrapped(FILE *to, int indent, const char *fmt, ...)
{
	int width = terminal_width(to);
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (width)
		text_wrap(to, line, 0, indent, width);
	else
		fprintf(to, "%s\n", line);
}

static void print_wishes(FILE *to, const struct estimate *e, const struct plan *pick)
{
	CLEANUP(str_free) struct str lines = STR_INIT;
	const char *line;
	size_t len;

	plan_wishes(&lines, e, pick);
	for (const char *at = str_text(&lines); (line = str_next_line(&at, &len));)
		print_wrapped(to, 2, "%.*s", (int)len, line);
}

/* ---- what limits the plan, and what the user could do ---- */

/* ---- the bottleneck ---- */

static const char *text_of_bottleneck(enum plan_bottleneck b)
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

/* Prints what one more pod of the same kind would save and cost. */
static void say_wider(FILE *to, const struct estimate *e, const struct plan *pick)
{
	struct plan_wish wish = e->wish;
	struct plan more;
	char time[24], cost[32];

	wish.goal = PLAN_COST;
	wish.within_s = wish.budget_usd = 0;
	wish.pods = pick->pods + 1;
	wish.staged = false;
	if ((size_t)wish.pods > e->work.count ||
	    plan_choose(&more, &e->work, &e->machines[pick->machine], 1, &wish) != PLAN_FOUND)
		return;
	double saves_s = pick->makespan_p50_s - more.makespan_p50_s;
	print_wrapped(to, 2, "wider: another pod saves %s%s%s",
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
		print_wrapped(to, 2,
			      "used: %.0f%% of the billed time computes; the rule asks for 70%%",
			      100 * pick->used);
		return;
	}
	if (pick->pods > 1)
		snprintf(pods, sizeof(pods), " on each of %d pods", pick->pods);
	print_wrapped(
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
		print_wrapped(to, 2, "set-up: none, the pods' image has the job's environment");
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
	print_wrapped(to, 2, "set-up: %s", str_text(&line));
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
		print_wrapped(to, 2, "queue: about %s, which costs nothing (measured: %d pod%s)",
			      plan_seconds(wait, queue->p50_s), queue->samples,
			      queue->samples == 1 ? "" : "s");
	else
		print_wrapped(to, 2,
			      "queue unknown: no pod has waited for this GPU yet; waiting costs "
			      "nothing");
}

/* Prints the storage cost: a volume bills with or without this run, so plans exclude it, but the
 * run's total includes it. */
static void say_storage(FILE *to, const struct extra *storage, const struct plan *pick)
{
	char cost[32], all[32];

	if (storage->value > 0)
		print_wrapped(to, 2, "storage: %s per run on top of that, %s in total (%s)",
			      plan_dollars(cost, storage->value),
			      plan_dollars(all, storage->value + pick->cost_usd), storage->from);
}

/* Prints from how many runs a month the volume costs less than the time that it saves. Without a
 * volume each pod would spend that time. */
static void say_volume_pays(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct extras *x = &e->extras[pick->machine];
	double saved_s = pick->pods * x->volume_saves_s,
	       saved = saved_s * e->machines[pick->machine].price_h / 3600,
	       runs = cost_volume_break_even(x->month_usd, saved, 0);
	const char *from = x->volume_measured ? "measured" : "partly a guess until it is measured";
	char usd[32], time[24], cost[32];

	if (x->month_usd <= 0 || plan_is_unpriced(e, pick->machine))
		return;
	plan_dollars(usd, x->month_usd);
	if (saved <= 0)
		print_wrapped(to, 2, "volume: saves no billed time (%s), for %s a month", from,
			      usd);
	else
		print_wrapped(to, 2,
			      "volume: saves %s of billed time a run, %s (%s): pays for its %s a "
			      "month from %.0f run%s a month on",
			      plan_seconds(time, saved_s), plan_dollars(cost, saved), from, usd,
			      ceil(runs), runs <= 1 ? "" : "s");
}

/* Prints how often a command's checkpoint is saved. */
static void print_saves(FILE *to, const struct extras *x)
{
	char every[24];

	if (x->saves.from[0] && x->saves.value > 0)
		print_wrapped(to, 2, "checkpoint: $BURST_CHECKPOINT is saved every %s (%s)",
			      plan_seconds(every, x->saves.value), x->saves.from);
	else if (x->saves.from[0])
		print_wrapped(to, 2,
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

	print_wrapped(to, 2,
		      "estimate: batch times are %s (%.2g to %.2g times as long in eight runs of "
		      "ten), cold starts are %s (%s to %s)",
		      plan_speed_source(source, m), 1 / factor, factor,
		      plan_source_name(cold_source(&m->cold)),
		      plan_seconds(p10, spread_p10(cold_s, slow_s)), plan_seconds(p90, slow_s));
	print_wrapped(to, 2, "promise: %s", plan_promise(promise, sizeof(promise), e, pick));
}

/* Prints what limits the plan, and what would make it faster or cheaper. */
static void print_advice(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	char cost[32], speech[24];

	print_wrapped(to, 2, "limit: %s", text_of_bottleneck(plan_bottleneck(pick, &e->work, m)));
	say_wider(to, e, pick);
	say_used(to, e, pick);
	if (e->audio_s > 0)
		print_wrapped(to, 2, "speech: about %s of sound, %s%s",
			      plan_seconds(speech, e->audio_s),
			      plan_cost(cost, e, pick->machine, pick->cost_usd * 3600 / e->audio_s),
			      plan_is_unpriced(e, pick->machine) ? "" : " an hour of it");
	say_sources(to, e, pick);
	say_download(to, e, pick);
	print_wishes(to, e, pick);
	say_storage(to, &e->extras[pick->machine].storage, pick);
	say_volume_pays(to, e, pick);
	say_queue(to, e, pick);
	print_saves(to, &e->extras[pick->machine]);
}

/* Prints the plan in one sentence, or the wish that cannot be fulfilled. */
static void print_verdict(FILE *to, const struct estimate *e, const struct plan *pick,
			  enum plan_verdict verdict)
{
	CLEANUP(str_free) struct str unmet = STR_INIT;
	char sentence[PLAN_TEXT + 100], time[24], cost[32];

	if (verdict == PLAN_NOTHING_FITS)
		return;
	if (verdict == PLAN_TOO_SLOW || verdict == PLAN_NEITHER)
		str_addf(&unmet, " is done within %s (nine times in ten)",
			 plan_seconds(time, e->wish.within_s));
	if (verdict == PLAN_TOO_EXPENSIVE || verdict == PLAN_NEITHER)
		str_addf(&unmet, "%s costs at most %s (caps.max_cost)", unmet.len ? " and" : "",
			 plan_dollars(cost, e->wish.budget_usd));
	plan_sentence(sentence, sizeof(sentence), e, pick);
	if (!unmet.len)
		print_wrapped(to, 2, "plan: %s", sentence);
	else
		print_wrapped(to, 2, "plan: no plan%s; the %s: %s", str_text(&unmet),
			      verdict == PLAN_TOO_SLOW ? "fastest" : "cheapest", sentence);
}

/* ---- offers that cannot run the job ---- */

bool plan_offer_is_unfit(const struct estimate *e, size_t i, char to[ESTIMATE_UNFIT])
{
	const struct offer *o = &e->offers[i];
	const double one_gib = e->need.base_gib + e->need.each_gib,
		     usable_gib = estimate_usable_gib(o);

	if (e->machines[i].batch_max > 0 || !e->known)
		return false;
	if (e->unfit[i][0])
		copy_text(to, ESTIMATE_UNFIT, e->unfit[i]);
	else if (gpu_is_none(o->gpu))
		copy_text(to, ESTIMATE_UNFIT, "the job needs a GPU");
	else if (one_gib > usable_gib)
		format_text(to, ESTIMATE_UNFIT, "%.2f GiB for a segment, %.2f of %d GB can be used",
			    one_gib, usable_gib, o->vram_gb);
	else
		format_text(to, ESTIMATE_UNFIT, "%d GB needed, %d GB available", e->need_gb,
			    o->vram_gb);
	return true;
}

const char *plan_unfit_name(enum estimate_unfit kind)
{
	switch (kind) {
	case UNFIT_NOT: return "does not fit"; /* its memory */
	case UNFIT_NAMED: return "not planned with";
	case UNFIT_IMAGE:
	case UNFIT_BF16:
	case UNFIT_UNKNOWN: break;
	}
	return "left out";
}

static bool card_came_before(const struct estimate *e, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(e->offers[k].gpu, e->offers[i].gpu))
			return true;
	return false;
}

/* Prints each card that cannot run the job, once, with what it lacks. */
static void print_misfits(FILE *to, const struct estimate *e)
{
	char offer[PLAN_TEXT], why[ESTIMATE_UNFIT];

	for (size_t i = 0; i < e->count; i++) {
		const struct offer *o = &e->offers[i];
		if (card_came_before(e, i) || !plan_offer_is_unfit(e, i, why))
			continue;
		if (!e->unfit[i][0] && gpu_is_none(o->gpu))
			fprintf(to, "does not fit: a pod without a GPU\n");
		else
			print_wrapped(to, 2, "%s: %s: %s", plan_unfit_name(e->unfit_kind[i]),
				      plan_offer(offer, o), why);
	}
}

/* ---- inputs with their source and age, and what more work would change ---- */

static void say_price(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct offer *o = &e->offers[pick->machine];

	if (plan_is_unpriced(e, pick->machine)) {
		print_wrapped(to, 4, "  no price given: %s names none", o->provider);
		return;
	}
	print_wrapped(to, 4, "  price: $%.4f an hour%s%s%s (%s)",
		      e->machines[pick->machine].price_h, o->with[0] ? ", with " : "", o->with,
		      o->with[0] ? " in it" : "", e->price_from);
}

static void say_cold(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct cold *cold = &e->machines[pick->machine].cold;
	const char *seen = prior_of_provider(e->offers[pick->machine].provider)->seen;
	char p50[24], p90[24], p10[24], from[64];

	for (int i = 0; i < COLD_PHASES; i++) {
		const struct cold_time *t = &cold->phase[i];
		if (t->p90_s <= 0)
			continue;
		if (t->samples)
			format_text(from, sizeof(from), "measured: %d pod%s, %s", t->samples,
				    t->samples == 1 ? "" : "s", e->extras[pick->machine].pods_seen);
		else
			format_text(from, sizeof(from), "prior, %s", seen);
		print_wrapped(to, 4, "  %s: %s, 90th percentile %s, 10th %s (%s)",
			      cold_phase_name((enum cold_phase)i), plan_seconds(p50, t->p50_s),
			      plan_seconds(p90, t->p90_s),
			      plan_seconds(p10, spread_p10(t->p50_s, t->p90_s)), from);
	}
}

static void say_batches(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];

	char once[32], longest[32], each[32];

	print_wrapped(to, 4, "  batch time: %s s + %s s x longest + %s s x sum of lengths (%s%s%s)",
		      number_show(once, m->speed.once_s, 4),
		      number_show(longest, m->speed.longest_s, 4),
		      number_show(each, m->speed.each_s, 4), plan_source_name(m->speed_source),
		      e->speed_from[pick->machine][0] ? ": " : "", e->speed_from[pick->machine]);
	if (e->need.base_gib > 0)
		print_wrapped(
			to, 4,
			"  largest batch: %d (memory: %.4g GiB and %.4g GiB a segment, of %.4g "
			"GiB)",
			m->batch_max, e->need.base_gib, e->need.each_gib,
			estimate_usable_gib(&e->offers[pick->machine]));
	else
		print_wrapped(to, 4, "  largest batch: %d (as the engine reports)", m->batch_max);
}

static void say_extra_usd(FILE *to, const char *name, const struct extra *x)
{
	char cost[32];

	if (x->value > 0)
		print_wrapped(to, 4, "  %s: %s a run (%s)", name, plan_dollars(cost, x->value),
			      x->from);
	else if (x->from[0])
		print_wrapped(to, 4, "  %s: nothing a run (%s)", name, x->from);
}

/* The more were seen, the better their rate is known; the guess counts as one. */
static void say_interruptions(FILE *to, const struct extras *x, const struct plan_machine *m)
{
	char every[24], least[24], most[24];
	double every_s = x->interrupted.value,
	       factor = exp(SPREAD_Z90 / sqrt(m->interruptions + 1));

	if (every_s > 0)
		print_wrapped(to, 4,
			      "  interruptions: every %s (%s), or %s to %s in eight cases of ten; "
			      "each repeats half a batch and a cold start",
			      plan_seconds(every, every_s), x->interrupted.from,
			      plan_seconds(least, every_s / factor),
			      plan_seconds(most, every_s * factor));
}

static void say_extras(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct extras *x = &e->extras[pick->machine];
	const struct plan_machine *m = &e->machines[pick->machine];

	print_wrapped(to, 4, "  billing: by %g s, rounded up (prior, %s)", m->quantum_s,
		      prior_of_provider(e->offers[pick->machine].provider)->seen);
	say_extra_usd(to, "egress", &x->egress);
	say_extra_usd(to, "stages", &x->stages);
	say_interruptions(to, x, m);
	if (e->failing.from[0])
		print_wrapped(to, 4, "  rendered again: %.2g%% (%s)", 100 * e->failing.value,
			      e->failing.from);
	if (e->audio_s > 0)
		print_wrapped(to, 4,
			      "  speech: %d characters a minute (prior, " PRIOR_SPEECH_SEEN ")",
			      PRIOR_CHARS_PER_MINUTE);
}

/* Prints every input with its source and age. */
static void print_inputs(FILE *to, const struct estimate *e, const struct plan *pick)
{
	fputs("\nfrom:\n", to);
	say_price(to, e, pick);
	say_batches(to, e, pick);
	say_cold(to, e, pick);
	say_extras(to, e, pick);
}

/* The work of `factor` such jobs, with this job's lengths. A command whose size is known has so
 * many times the input, on as many pods. */
static void make_repeated_work(struct plan_work *out, const struct estimate *e, int factor)
{
	size_t count = e->open * (size_t)(e->size_unit ? 1 : factor);
	double *lengths = xcalloc(count + 1, sizeof(*lengths));

	for (size_t i = 0; i < count; i++)
		lengths[i] = e->lengths[i % e->open] * (e->size_unit ? factor : 1);
	plan_work_init(out, lengths, count, e->work.size[e->work.sizes - 1], e->audio_s * factor);
	free(lengths);
}

/* Prints plans for the same job with twice and ten times as many segments. */
static void print_what_if(FILE *to, const struct estimate *e)
{
	static const int factors[] = {1, 2, 10};
	char sentence[PLAN_TEXT + 100], cost[32];

	fprintf(to, "\nwith more of the same %s:\n", e->size_unit ? e->size_unit : "segments");
	for (size_t i = 0; i < ARRAY_LEN(factors); i++) {
		struct plan_work work;
		struct plan p;
		make_repeated_work(&work, e, factors[i]);
		if (plan_choose(&p, &work, e->machines, e->count, &e->wish) == PLAN_NOTHING_FITS)
			continue;
		bool unpriced = plan_is_unpriced(e, p.machine);
		print_wrapped(to, 6, "  x%-2d %s%s%s%s, used %.0f%%", factors[i],
			      plan_sentence(sentence, sizeof(sentence), e, &p),
			      unpriced ? "" : ", ",
			      unpriced ? "" : plan_dollars(cost, p.cost_usd / (double)work.count),
			      unpriced ? "" : " each", 100 * p.used);
	}
}

/* ---- a plan as text: the best few offers, the curve of cost per item, what limits it ---- */

enum { CHART_WIDTH = 40, CHART_ROWS = 12, NAME_WIDTH = 22, GPUS_MOST = 200 };

/* ---- the table ---- */

static void add_plan_row(struct table *t, const struct estimate *e, const struct plan *p,
			 const char *why)
{
	char offer[PLAN_TEXT], text[32];

	table_cell(t, "%s", why);
	table_cell(t, "%s", plan_offer(offer, &e->offers[p->machine]));
	table_cell(t, "%d", p->pods);
	table_cell(t, "%d", p->batch);
	table_cell(t, "%s", plan_seconds(text, p->makespan_p50_s));
	table_cell(t, "%s", plan_seconds(text, p->makespan_p90_s));
	table_cell(t, "%s", plan_seconds(text, p->billed_s));
	table_cell(t, "%.0f%%", 100 * p->used);
	table_cell(t, "%.0f%%", 100 * p->seats);
	table_cell(t, "%s", plan_cost(text, e, p->machine, p->cost_usd));
	table_cell(t, "%s", plan_cost(text, e, p->machine, plan_each_usd(e, p)));
}

static bool is_same_plan(const struct plan *a, const struct plan *b)
{
	return a->machine == b->machine && a->pods == b->pods && a->batch == b->batch;
}

/* Prints the chosen plan and those that are best in another way, each once. */
static void print_table(FILE *to, const struct estimate *e, const struct plan *pick)
{
	CLEANUP(table_free) struct table *t = table_new();
	struct plan plans[3], shown[4];
	const char *const why[] = {"cheapest", "cheapest in time", "fastest in budget"};
	const bool have[] = {find_best_plan(&plans[0], e, PLAN_COST, 0),
			     find_best_plan(&plans[1], e, PLAN_COST, IN_TIME | IN_BUDGET),
			     find_best_plan(&plans[2], e, PLAN_TIME, IN_BUDGET)};
	size_t count = 0;

	table_column(t, "", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "OFFER", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "PODS", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "BATCH", TABLE_RIGHT, 3);
	table_column(t, "TIME", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "90%", TABLE_RIGHT, 4);
	table_column(t, "BILLED", TABLE_RIGHT, 5);
	table_column(t, "USED", TABLE_RIGHT, 1);
	table_column(t, "SEATS", TABLE_RIGHT, 6);
	table_column(t, "COST", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "EACH", TABLE_RIGHT, 2);
	add_plan_row(t, e, pick, "pick");
	shown[count++] = *pick;
	for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
		bool new = have[i];
		for (size_t k = 0; k < count; k++)
			new = new && !is_same_plan(&plans[i], &shown[k]);
		if (!new)
			continue;
		add_plan_row(t, e, &plans[i], why[i]);
		shown[count++] = plans[i];
	}
	table_print(t, to, terminal_width(to));
}

/* ---- the curve ---- */

struct bar {
	char name[PLAN_TEXT];
	double usd; /* per item */
};

static int compare_bars(const void *a, const void *b)
{
	double x = ((const struct bar *)a)->usd, y = ((const struct bar *)b)->usd;

	return (x > y) - (x < y);
}

static void print_bars(FILE *to, const struct bar *bars, size_t count)
{
	double most = 0;
	int wide = 0;
	char cost[32];

	for (size_t i = 0; i < count; i++) {
		most = MAX(most, bars[i].usd);
		wide = MAX(wide, MIN(text_width(bars[i].name), (int)NAME_WIDTH));
	}
	for (size_t i = 0; i < count; i++) {
		int length = most > 0 ? MAX((int)lround(bars[i].usd / most * CHART_WIDTH), 1) : 1;
		fprintf(to, "  %-*.*s ", wide, NAME_WIDTH, bars[i].name);
		for (int k = 0; k < length; k++)
			fputc('#', to);
		fprintf(to, " %s\n", plan_dollars(cost, bars[i].usd));
	}
}

/* Each GPU's lowest cost per segment, at its best width and batch. Returns the count. */
static size_t make_bars(const struct estimate *e, struct bar *bars, size_t room)
{
	struct plan_wish wish = e->wish;
	size_t count = 0;

	wish.goal = PLAN_COST;
	wish.within_s = wish.budget_usd = 0;
	for (size_t i = 0; i < e->count && count < room; i++) {
		struct plan p;
		char name[PLAN_TEXT];
		size_t k = 0;
		if (plan_is_unpriced(e, i) ||
		    plan_choose(&p, &e->work, &e->machines[i], 1, &wish) != PLAN_FOUND)
			continue;
		plan_offer(name, &e->offers[i]);
		while (k < count && strcmp(bars[k].name, name) != 0)
			k++;
		if (k < count) {
			bars[k].usd = MIN(bars[k].usd, plan_each_usd(e, &p));
			continue;
		}
		COPY_TEXT(bars[count].name, name);
		bars[count++].usd = plan_each_usd(e, &p);
	}
	qsort(bars, count, sizeof(*bars), compare_bars);
	return count;
}

static void print_curve(FILE *to, const struct estimate *e)
{
	struct bar bars[GPUS_MOST];
	size_t count = MIN(make_bars(e, bars, GPUS_MOST), (size_t)CHART_ROWS);

	if (count < 2)
		return;
	fprintf(to, "\ncost per segment by GPU, each at its best width and batch:\n");
	print_bars(to, bars, count);
}

/* pick: the chosen plan, with its verdict. */
static void print_found_plan(FILE *to, const struct estimate *e, const struct plan *pick,
			     enum plan_verdict verdict, const struct plan_words *words)
{
	print_table(to, e, pick);
	print_misfits(to, e);
	print_curve(to, e);
	fputc('\n', to);
	print_advice(to, e, pick);
	if (words->explain)
		print_inputs(to, e, pick);
	if (words->what_if)
		print_what_if(to, e);
	fputc('\n', to);
	print_verdict(to, e, pick, verdict);
}

/* ---- the result of `burst plan` ---- */

/* Prints the number of segments and `tail`, then what changed since the output folder was written.
 * */
static void say_segments(const struct plan_result *r, const struct estimate *e, const char *tail)
{
	CLEANUP(str_free) struct str left_out = STR_INIT;
	struct job_changes c = {0};

	if (e->open)
		printf("%zu segment%s, %zu to render%s\n", e->segments, e->segments == 1 ? "" : "s",
		       e->open, tail);
	else if (e->segments == 1)
		puts("the segment is already rendered: a run would rent nothing");
	else
		printf("all %zu segments are already rendered: a run would rent nothing\n",
		       e->segments);
	if (r->job_ops->left_out)
		r->job_ops->left_out(r->job, &left_out);
	if (left_out.len)
		puts(str_text(&left_out));
	if (r->job_ops->changes)
		r->job_ops->changes(r->job, &c);
	if (!(c.changed + c.gone + c.unchanged + c.stale)) /* all segments are new */
		return;
	printf("+%zu ~%zu -%zu =%zu (new, changed, gone, reused)", c.added, c.changed, c.gone,
	       c.unchanged);
	if (c.from_cache)
		printf("; %zu from the render cache", c.from_cache);
	putchar('\n');
	if (c.stale)
		printf("%zu old output%s without a segment: `burst run --prune` removes %s\n",
		       c.stale, c.stale == 1 ? "" : "s", c.stale == 1 ? "it" : "them");
}

/* Prints the size of a command's input, and how its time follows from it. */
static void say_size(const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	char size[32], once[32], each[32];

	if (e->size_unit)
		print_wrapped(stdout, 2,
			      "size: %s %s; a pod takes %s s and %s s for each of its %s (%s: %s)",
			      number_show(size, e->sum, 15), e->size_unit,
			      number_show(once, m->speed.once_s, 3),
			      number_show(each, m->speed.longest_s + m->speed.each_s, 3),
			      e->size_unit, plan_source_name(m->speed_source),
			      e->speed_from[pick->machine]);
}

/* Prints what keep_warm may cost beside the plan. "auto" follows the measured cold start, for
 * which the billed time beside rendering stands. */
static void say_cost_of_keeping(const struct plan_result *r, const struct estimate *e,
				const struct plan *pick)
{
	int64_t ms = r->keep_ms;
	bool by_start = ms == KEEP_WARM_AUTO;
	char time[24], money[32];

	if (by_start)
		ms = (int64_t)(MAX(pick->billed_s - pick->work_s, 0.0) * 1000 / MAX(pick->pods, 1));
	if (ms <= 0)
		return;
	print_wrapped(stdout, 2,
		      "keep_warm: afterwards each pod waits for the next run, for %s%s: %s%s%s",
		      by_start ? "at most as long as its cold start took, about " : "at most ",
		      duration_show(time, sizeof(time), ms),
		      plan_is_unpriced(e, pick->machine) ? "" : "at most ",
		      plan_cost(money, e, pick->machine,
				e->machines[pick->machine].price_h * (double)ms / 3600000),
		      plan_is_unpriced(e, pick->machine) ? "" : " more for each, within the caps");
}

static void say_pods_taken_over(int warm)
{
	if (warm > 0)
		print_wrapped(
			stdout, 2,
			"warm: %d pod%s kept for the next run: this one takes over what it needs "
			"of them, without a cold start",
			warm, warm == 1 ? " is" : "s are");
}

static void print_plan(const struct plan_result *r, bool refused)
{
	const struct estimate *e = r->estimate;

	if (!e->open) {
		say_segments(r, e, "");
	} else if (r->verdict == PLAN_NOTHING_FITS) {
		if (!refused)
			say_segments(r, e, "; no estimate yet: the run measures it");
		if (!e->known && !e->never_fits)
			print_saves(stdout, &e->extras[0]);
	} else {
		say_segments(r, e, "");
		say_size(e, r->pick);
		putchar('\n');
		print_found_plan(stdout, e, r->pick, r->verdict, r->words);
		if (r->better->found)
			print_wrapped(stdout, 2, "better: %s", r->better->line);
		if (r->variant->known)
			print_wrapped(stdout, 2, "other model: %s", r->variant->line);
	}
}

/* Prints what is left of each cap over runs. */
static void print_caps_left(FILE *to, const struct caps *caps)
{
	char left[32];

	for (size_t i = 0; caps && i < caps->count; i++) {
		CLEANUP(str_free) struct str used = STR_INIT;
		allow_add_used(&used, &caps->list[i]);
		fprintf(to, "%s (caps.%s), %s is left\n", str_text(&used), caps->list[i].key,
			money_show(left, sizeof(left), allow_left(&caps->list[i])));
	}
}

static void say_stage(const struct plan_stage *s)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	char offer[PLAN_TEXT], money[40], time[24];

	str_addf(&line, "then %s: %d pod%s", s->name, s->pods, s->pods == 1 ? "" : "s");
	if (s->offered)
		str_addf(&line, " of %s, %s%s", plan_offer(offer, &s->offer),
			 price_show(money, s->offer.provider, s->offer.price_microusd_h),
			 s->pods == 1 ? "" : " each");
	if (s->took_ms)
		str_addf(
			&line, ": about %s, %s (%s)", duration_show(time, sizeof(time), s->took_ms),
			cost_show(money, sizeof(money), s->cost_microusd, s->unpriced_ms), s->from);
	else
		str_add(&line, "; its time is not known before the first one");
	print_wrapped(stdout, 2, "%s", str_text(&line));
}

void plan_result_print(const struct plan_result *r, bool refused)
{
	print_plan(r, refused);
	for (size_t i = 0; i < r->stage_count; i++)
		say_stage(&r->stages[i]);
	say_pods_taken_over(r->warm);
	if (r->caps && r->estimate->open && r->verdict != PLAN_NOTHING_FITS)
		say_cost_of_keeping(r, r->estimate, r->pick);
	print_caps_left(stdout, r->caps);
	fflush(stdout); /* obstacles come last */
}
