/* plan_show.c - prints a plan as text: the best few offers, the curve of their cost, the choice. */
#include "plan_show.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "core/core.h"
#include "output.h"
#include "report.h"

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
			output_wrapped(to, 2, "%s: %s: %s", plan_unfit_name(e->unfit_kind[i]),
				       plan_offer(offer, o), why);
	}
}

/* ---- what more work would change ---- */

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
		output_wrapped(to, 6, "  x%-2d %s%s%s%s, used %.0f%%", factors[i],
			       plan_sentence(sentence, sizeof(sentence), e, &p),
			       unpriced ? "" : ", ",
			       unpriced ? "" : plan_dollars(cost, p.cost_usd / (double)work.count),
			       unpriced ? "" : " each", 100 * p.used);
	}
}

/* ---- the table ---- */

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
	wish.cap_s = limits & IN_TIME ? wish.cap_s : 0;
	wish.budget_usd = limits & IN_BUDGET ? wish.budget_usd : 0;
	return plan_choose(out, &e->work, e->machines, e->count, &wish) == PLAN_FOUND;
}

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
	if (p->seats > 0)
		table_cell(t, "%.0f%%", 100 * p->seats);
	else
		table_cell(t, "?");
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

enum { CHART_WIDTH = 40, CHART_ROWS = 12, NAME_WIDTH = 22, GPUS_MOST = 200 };

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
	wish.within_s = wish.cap_s = wish.budget_usd = 0;
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

/* Prints the plan in one sentence, or the wish that cannot be fulfilled. */
static void print_verdict(FILE *to, const struct estimate *e, const struct plan *pick,
			  enum plan_verdict verdict)
{
	CLEANUP(str_free) struct str unmet = STR_INIT;
	char sentence[PLAN_TEXT + 100], time[24], cost[32];

	if (verdict == PLAN_NOTHING_FITS)
		return;
	if ((verdict == PLAN_TOO_SLOW || verdict == PLAN_NEITHER) && e->wish.within_s > 0)
		str_addf(&unmet, " is done within %s (nine times in ten)",
			 plan_seconds(time, e->wish.within_s));
	if ((verdict == PLAN_TOO_SLOW || verdict == PLAN_NEITHER) && e->wish.cap_s > 0)
		str_addf(&unmet, "%s is expected to end within %s (caps.max_duration)",
			 unmet.len ? " and" : "", plan_seconds(time, e->wish.cap_s));
	if (verdict == PLAN_TOO_EXPENSIVE || verdict == PLAN_NEITHER)
		str_addf(&unmet, "%s costs at most %s (caps.max_cost)", unmet.len ? " and" : "",
			 plan_dollars(cost, e->wish.budget_usd));
	plan_sentence(sentence, sizeof(sentence), e, pick);
	if (!unmet.len)
		output_wrapped(to, 2, "plan: %s", sentence);
	else
		output_wrapped(to, 2, "plan: no plan%s; the %s: %s", str_text(&unmet),
			       verdict == PLAN_TOO_SLOW ? "fastest" : "cheapest", sentence);
}

/* pick: the chosen plan, with its verdict. */
static void print_found_plan(FILE *to, const struct estimate *e, const struct plan *pick,
			     enum plan_verdict verdict, const struct plan_words *words)
{
	print_table(to, e, pick);
	print_misfits(to, e);
	print_curve(to, e);
	fputc('\n', to);
	plan_print_advice(to, e, pick);
	if (words->explain)
		plan_print_inputs(to, e, pick);
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
	CLEANUP(str_free) struct str read_as = STR_INIT;
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
	if (r->job_ops->read_as)
		r->job_ops->read_as(r->job, &read_as);
	if (read_as.len)
		output_wrapped(stdout, 0, "%s", str_text(&read_as));
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
		output_wrapped(stdout, 2,
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
	int64_t start_ms =
		(int64_t)(MAX(pick->billed_s - pick->work_s, 0.0) * 1000 / MAX(pick->pods, 1));
	char time[24], money[32], start[24];

	if (by_start)
		ms = start_ms;
	if (ms <= 0)
		return;
	output_wrapped(stdout, 2,
		       "keep_warm: afterwards each pod waits for the next run, for %s%s: %s%s%s",
		       by_start ? "at most as long as its cold start took, about " : "at most ",
		       duration_show(time, sizeof(time), ms),
		       plan_is_unpriced(e, pick->machine) ? "" : "at most ",
		       plan_cost(money, e, pick->machine,
				 e->machines[pick->machine].price_h * (double)ms / 3600000),
		       plan_is_unpriced(e, pick->machine) ? "" : " more for each, within the caps");
	if (!by_start && start_ms > 0 && ms > start_ms)
		output_wrapped(
			stdout, 2,
			"keep_warm: a pod that waits longer than a cold start, about %s, costs "
			"more than a new one: it saves waiting, not money (\"auto\" keeps none "
			"so long)",
			duration_show(start, sizeof(start), start_ms));
}

/* Prints what a start ahead of a schedule's time means. */
static void say_ahead(const struct plan_result *r, const struct estimate *e,
		      const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	CLEANUP(str_free) struct str line = STR_INIT;
	char ahead[24];

	if (r->ahead.ahead_s <= 0)
		return;
	str_addf(&line, "prewarm: its schedules start %s before each time: ",
		 plan_seconds(ahead, r->ahead.ahead_s));
	plan_add_ahead(&line, &r->ahead, plan_is_unpriced(e, pick->machine) ? 0 : m->price_h,
		       plan_source_name(cold_source(&m->cold)));
	output_wrapped(stdout, 2, "%s", str_text(&line));
}

static void say_pods_taken_over(int warm)
{
	if (warm > 0)
		output_wrapped(
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
			plan_print_saves(stdout, &e->extras[0]);
	} else {
		say_segments(r, e, "");
		say_size(e, r->pick);
		putchar('\n');
		print_found_plan(stdout, e, r->pick, r->verdict, r->words);
		if (r->better->found)
			output_wrapped(stdout, 2, "better: %s", r->better->line);
		if (r->variant->known)
			output_wrapped(stdout, 2, "other model: %s", r->variant->line);
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
	output_wrapped(stdout, 2, "%s", str_text(&line));
}

void plan_result_print(const struct plan_result *r, bool refused)
{
	print_plan(r, refused);
	for (size_t i = 0; i < r->stage_count; i++)
		say_stage(&r->stages[i]);
	say_pods_taken_over(r->warm);
	if (r->caps && r->estimate->open && r->verdict != PLAN_NOTHING_FITS)
		say_cost_of_keeping(r, r->estimate, r->pick);
	if (r->caps && r->estimate->open && r->verdict != PLAN_NOTHING_FITS)
		say_ahead(r, r->estimate, r->pick);
	print_caps_left(stdout, r->caps);
	fflush(stdout); /* obstacles come last */
}
