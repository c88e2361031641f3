/* plan_show.c - prints a plan: the few offers worth a look, the curve of cost per item, what limits it, and one sentence. */
#include "plan_show.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "output.h"
#include "plan/cost.h"
#include "prior.h"
#include "report.h"
#include "table.h"

enum { CHART_WIDTH = 40, CHART_ROWS = 12, TEXT_ROOM = 160 };
#define USED_GOAL 0.7

static char *seconds_text(char to[24], double seconds)
{
	return duration_show(to, 24, (int64_t)(MIN(seconds, 1e9) * 1000));
}

/* "$0.0033"; small ones with two significant digits, "$0.000025". */
static char *dollars_text(char to[32], double usd)
{
	if (usd > 1e-9 && usd < 0.001)
		snprintf(to, 32, "$%.*f", 1 - (int)floor(log10(usd)), usd);
	else
		money_show(to, 32, (int64_t)llround(usd * 1e6));
	return to;
}

static const char *gpu_text(const struct offer *o)
{
	return strcmp(o->gpu, "none") ? o->gpu : "no GPU";
}

/* "RTX 4090 at runpod", printable. */
static char *offer_text(char to[TEXT_ROOM], const struct offer *o)
{
	CLEANUP(str_free) struct str gpu = STR_INIT; /* a provider's words */

	str_add_printable(&gpu, gpu_text(o), strlen(gpu_text(o)), 60);
	format_text(to, TEXT_ROOM, "%s at %s%s", str_text(&gpu), o->provider, o->spot ? ", spot" : "");
	return to;
}

static double each_usd(const struct estimate *e, const struct plan *p)
{
	return e->open ? p->cost_usd / (double)e->open : 0;
}

char *plan_sentence(char *to, size_t room, const struct estimate *e, const struct plan *pick)
{
	char offer[TEXT_ROOM], time[24], cost[32];

	format_text(to, room, "%d pod%s of %s: about %s, %s", pick->pods, pick->pods == 1 ? "" : "s",
		    offer_text(offer, &e->offers[pick->machine]), seconds_text(time, pick->makespan_p50_s), dollars_text(cost, pick->cost_usd));
	return to;
}

/* ---- the table ---- */

static void add_row(struct table *t, const struct estimate *e, const struct plan *p, const char *why)
{
	char offer[TEXT_ROOM], text[32];

	table_cell(t, "%s", why);
	table_cell(t, "%s", offer_text(offer, &e->offers[p->machine]));
	table_cell(t, "%d", p->pods);
	table_cell(t, "%d", p->batch);
	table_cell(t, "%s", seconds_text(text, p->makespan_p50_s));
	table_cell(t, "%s", seconds_text(text, p->makespan_p90_s));
	table_cell(t, "%s", seconds_text(text, p->billed_s));
	table_cell(t, "%.0f%%", 100 * p->used);
	table_cell(t, "%.0f%%", 100 * p->seats);
	table_cell(t, "%s", dollars_text(text, p->cost_usd));
	table_cell(t, "%s", dollars_text(text, each_usd(e, p)));
}

static bool same_plan(const struct plan *a, const struct plan *b)
{
	return a->machine == b->machine && a->pods == b->pods && a->batch == b->batch;
}

/* The fastest that the budget pays for, and the cheapest that is in time, as a user would ask for them. */
static bool best_for(struct plan *out, const struct estimate *e, enum plan_goal goal, bool in_time, bool in_budget)
{
	struct plan_wish wish = e->wish;

	wish.goal = goal;
	wish.deadline_s = in_time ? wish.deadline_s : 0;
	wish.budget_usd = in_budget ? wish.budget_usd : 0;
	return plan_choose(out, &e->work, e->machines, e->count, &wish) == PLAN_FOUND;
}

static void print_table(FILE *to, const struct estimate *e, const struct plan *pick)
{
	CLEANUP(table_free) struct table *t = table_new();
	struct plan plans[3], shown[4];
	const char *const why[] = {"cheapest", "cheapest in time", "fastest in budget"};
	const bool have[] = {best_for(&plans[0], e, PLAN_COST, false, false), best_for(&plans[1], e, PLAN_COST, true, true),
			     best_for(&plans[2], e, PLAN_TIME, false, true)};
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
	add_row(t, e, pick, "pick");
	shown[count++] = *pick;
	for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
		bool new = have[i];
		for (size_t k = 0; k < count; k++)
			new = new && !same_plan(&plans[i], &shown[k]);
		if (!new)
			continue;
		add_row(t, e, &plans[i], why[i]);
		shown[count++] = plans[i];
	}
	table_print(t, to, terminal_width(to));
}

/* What each offer that is too small lacks, once for each GPU. */
static void print_misfits(FILE *to, const struct estimate *e)
{
	const double one_gib = e->need.base_gib + e->need.each_gib;

	for (size_t i = 0; i < e->count; i++) {
		const struct offer *o = &e->offers[i];
		char offer[TEXT_ROOM];
		bool said = false;
		for (size_t k = 0; k < i; k++)
			said |= !strcmp(e->offers[k].gpu, o->gpu);
		if (e->machines[i].batch_max > 0 || said || !e->known)
			continue;
		if (!strcmp(o->gpu, "none"))
			fprintf(to, "does not fit: a pod without a GPU\n");
		else if (one_gib > estimate_usable_gib(o))
			fprintf(to, "does not fit: %s: a segment needs %.2f GiB, of %d GB %.2f GiB can be used\n", offer_text(offer, o), one_gib, o->vram_gb,
				estimate_usable_gib(o));
		else
			fprintf(to, "does not fit: %s: the job needs %d GB, it has %d GB\n", offer_text(offer, o), e->need_gb, o->vram_gb);
	}
}

/* ---- the curve ---- */

struct bar {
	char name[TEXT_ROOM];
	double usd; /* an item */
};

static int by_name_price(const void *a, const void *b)
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
		wide = MAX(wide, MIN(text_width(bars[i].name), 22));
	}
	for (size_t i = 0; i < count; i++) {
		int length = most > 0 ? MAX((int)lround(bars[i].usd / most * CHART_WIDTH), 1) : 1;
		fprintf(to, "  %-*.22s ", wide, bars[i].name);
		for (int k = 0; k < length; k++)
			fputc('#', to);
		fprintf(to, " %s\n", dollars_text(cost, bars[i].usd));
	}
}

/* Each GPU with its best width and batch: the bottom of the U is the first line. */
static size_t gpu_bars(const struct estimate *e, struct bar *bars, size_t room)
{
	struct plan_wish wish = e->wish;
	size_t count = 0;

	wish.goal = PLAN_COST;
	wish.deadline_s = wish.budget_usd = 0;
	for (size_t i = 0; i < e->count && count < room; i++) {
		struct plan p;
		char name[TEXT_ROOM];
		size_t k = 0;
		if (plan_choose(&p, &e->work, &e->machines[i], 1, &wish) != PLAN_FOUND)
			continue;
		offer_text(name, &e->offers[i]);
		while (k < count && strcmp(bars[k].name, name) != 0)
			k++;
		if (k < count) {
			bars[k].usd = MIN(bars[k].usd, each_usd(e, &p));
			continue;
		}
		COPY_TEXT(bars[count].name, name);
		bars[count++].usd = each_usd(e, &p);
	}
	qsort(bars, count, sizeof(*bars), by_name_price);
	return count;
}

static size_t width_bars(const struct estimate *e, const struct plan *pick, struct bar *bars, size_t room)
{
	struct plan plans[CHART_ROWS];
	struct plan_wish wish = e->wish;

	wish.pods = 0;
	size_t count = plan_widths(plans, MIN(room, (size_t)CHART_ROWS), &e->work, e->machines, (size_t)pick->machine, &wish);
	for (size_t i = 0; i < count; i++) {
		char time[24];
		snprintf(bars[i].name, sizeof(bars[i].name), "%d pod%s, %s", plans[i].pods, plans[i].pods == 1 ? "" : "s",
			 seconds_text(time, plans[i].makespan_p50_s));
		bars[i].usd = each_usd(e, &plans[i]);
	}
	return count;
}

static void print_curves(FILE *to, const struct estimate *e, const struct plan *pick)
{
	struct bar bars[CHART_ROWS];
	char offer[TEXT_ROOM];
	size_t count = gpu_bars(e, bars, CHART_ROWS);

	if (count > 1) {
		fprintf(to, "\ncost per segment by GPU, each at its best width and batch:\n");
		print_bars(to, bars, count);
	}
	count = width_bars(e, pick, bars, CHART_ROWS);
	if (count > 1) {
		fprintf(to, "\ncost per segment by number of pods (%s):\n", offer_text(offer, &e->offers[pick->machine]));
		print_bars(to, bars, count);
	}
}

/* ---- the words ---- */

static const char *bottleneck_text(enum plan_bottleneck b)
{
	switch (b) {
	case PLAN_BY_COLD_START: return "cold start: pods take longer to come up than to render; more work per run, or fewer pods, cost less per segment";
	case PLAN_BY_BANDWIDTH: return "memory bandwidth: larger batches or a card with more bandwidth are faster";
	case PLAN_BY_COMPUTE: return "compute: a faster card, or more pods, are faster";
	case PLAN_BY_HOST: return "the host, between batches: no GPU shortens that; the cheapest card that fits wins";
	}
	return "";
}

static void print_used(FILE *to, const struct estimate *e, const struct plan *pick)
{
	double cold_s = pick->pods * cold_billed_p50_s(&e->machines[pick->machine].cold);
	double needed_s = cost_work_for_used_s(USED_GOAL, cold_s);
	char needed[24], cold[24], has[24];

	if (pick->used >= USED_GOAL) {
		fprintf(to, "used: %.0f%% of the billed time computes\n", 100 * pick->used);
		return;
	}
	fprintf(to, "used: %.0f%% of the billed time computes; 70%% takes %s of work at %s of cold start, this job has %s\n", 100 * pick->used,
		seconds_text(needed, needed_s), seconds_text(cold, cold_s), seconds_text(has, pick->work_s));
}

/* What a user who is in a hurry, or has time, would do instead. */
static void print_instead(FILE *to, const struct estimate *e, const struct plan *pick)
{
	struct plan other;
	char sentence[TEXT_ROOM + 100];

	if (best_for(&other, e, PLAN_TIME, false, true) && other.makespan_p50_s < 0.8 * pick->makespan_p50_s)
		fprintf(to, "faster: %s\n", plan_sentence(sentence, sizeof(sentence), e, &other));
	struct plan_wish free_wish = e->wish;
	free_wish.pods = 0;
	free_wish.goal = PLAN_COST;
	if (plan_choose(&other, &e->work, e->machines, e->count, &free_wish) == PLAN_FOUND && other.cost_usd < 0.8 * pick->cost_usd)
		fprintf(to, "cheaper: %s\n", plan_sentence(sentence, sizeof(sentence), e, &other));
}

static void print_verdict(FILE *to, const struct estimate *e, const struct plan *pick, enum plan_verdict verdict)
{
	char sentence[TEXT_ROOM + 100], time[24], wanted[24], cost[32], budget[32];

	plan_sentence(sentence, sizeof(sentence), e, pick);
	switch (verdict) {
	case PLAN_FOUND: fprintf(to, "plan: %s\n", sentence); return;
	case PLAN_NOTHING_FITS: return;
	case PLAN_TOO_SLOW:
		fprintf(to, "plan: no plan is done within %s (nine times in ten); the fastest takes %s: %s\n", seconds_text(wanted, e->wish.deadline_s),
			seconds_text(time, pick->makespan_p90_s), sentence);
		return;
	case PLAN_TOO_DEAR:
		fprintf(to, "plan: no plan costs at most %s (caps.max_cost); the cheapest costs %s: %s\n", dollars_text(budget, e->wish.budget_usd),
			dollars_text(cost, pick->cost_usd), sentence);
		return;
	case PLAN_NEITHER:
		fprintf(to, "plan: no plan is done within %s and costs at most %s; the cheapest in time costs %s: %s\n",
			seconds_text(wanted, e->wish.deadline_s), dollars_text(budget, e->wish.budget_usd), dollars_text(cost, pick->cost_usd), sentence);
		return;
	}
}

static void print_extra_usd(FILE *to, const char *name, const struct extra *x)
{
	char cost[32];

	if (x->value > 0)
		fprintf(to, "  %s: %s a run (%s)\n", name, dollars_text(cost, x->value), x->from);
	else if (x->from[0])
		fprintf(to, "  %s: nothing a run (%s)\n", name, x->from);
}

/* A volume bills whether this run is made or not. So it is no part of what the plans cost, but of what a run costs in the end. */
static void print_storage(FILE *to, const struct extra *storage, const struct plan *pick)
{
	char cost[32], all[32];

	if (storage->value > 0)
		fprintf(to, "storage: %s a run beside that, %s in all (%s)\n", dollars_text(cost, storage->value),
			dollars_text(all, storage->value + pick->cost_usd), storage->from);
}

static void print_extras(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct extras *x = &e->extras[pick->machine];
	const struct plan_machine *m = &e->machines[pick->machine];
	char cost[32], time[24];

	fprintf(to, "  billing: by %g s, rounded up (prior, %s)\n", m->quantum_s, prior_of_provider(e->offers[pick->machine].provider)->seen);
	print_extra_usd(to, "egress", &x->egress);
	print_extra_usd(to, "delivery", &x->delivery);
	if (x->delivery.value > 0)
		fprintf(to, "  delivery on this pod instead: %s\n", dollars_text(cost, cost_usd(m->price_h, x->delivery_s)));
	if (x->interrupted.value > 0)
		fprintf(to, "  interruptions: every %s (%s); each repeats half a batch and a cold start\n", seconds_text(time, x->interrupted.value), x->interrupted.from);
	if (e->failing.from[0])
		fprintf(to, "  rendered again: %.2g%% (%s)\n", 100 * e->failing.value, e->failing.from);
}

static void print_inputs(FILE *to, const struct estimate *e, const struct plan *pick)
{
	const struct plan_machine *m = &e->machines[pick->machine];
	char p50[24], p90[24];

	fprintf(to, "\nfrom:\n  price: $%.4f an hour, now\n", m->price_h);
	fprintf(to, "  batch time: %.4g s + %.4g s x longest + %.4g s x sum of lengths (%s%s%s)\n", m->speed.once_s, m->speed.longest_s, m->speed.each_s,
		plan_source_name(m->speed_source), e->speed_from[pick->machine][0] ? ": " : "", e->speed_from[pick->machine]);
	for (int i = 0; i < COLD_PHASES; i++) {
		const struct cold_time *t = &m->cold.phase[i];
		if (t->p90_s > 0)
			fprintf(to, "  %s: %s, slow tenth %s (%s", cold_phase_name((enum cold_phase)i), seconds_text(p50, t->p50_s), seconds_text(p90, t->p90_s),
				t->samples ? "measured on " : "prior)\n");
		if (t->samples)
			fprintf(to, "%d pod%s)\n", t->samples, t->samples == 1 ? "" : "s");
	}
	fprintf(to, "  largest batch: %d", m->batch_max);
	if (e->need.base_gib > 0)
		fprintf(to, " (memory: %.4g GiB and %.4g GiB a segment, of %.4g GiB)", e->need.base_gib, e->need.each_gib,
			estimate_usable_gib(&e->offers[pick->machine]));
	fputc('\n', to);
	print_extras(to, e, pick);
	if (e->audio_s > 0)
		fprintf(to, "  speech: 900 characters a minute (prior)\n");
}

static void print_what_if(FILE *to, const struct estimate *e)
{
	static const int factors[] = {1, 2, 10};
	char sentence[TEXT_ROOM + 100], cost[32];

	fprintf(to, "\nwith more of the same segments:\n");
	for (size_t i = 0; i < ARRAY_LEN(factors); i++) {
		size_t count = e->work.count * (size_t)factors[i];
		struct plan_work work;
		struct plan p;
		double *lengths = xcalloc(count + 1, sizeof(*lengths));
		for (size_t k = 0; k < count; k++)
			lengths[k] = e->work.sum / (double)e->work.count;
		plan_work_init(&work, lengths, count, e->work.size[e->work.sizes - 1], e->audio_s * factors[i]);
		free(lengths);
		if (plan_choose(&p, &work, e->machines, e->count, &e->wish) == PLAN_NOTHING_FITS)
			continue;
		fprintf(to, "  x%-2d %s, %s each, used %.0f%%\n", factors[i], plan_sentence(sentence, sizeof(sentence), e, &p),
			dollars_text(cost, p.cost_usd / (double)count), 100 * p.used);
	}
}

void plan_show(FILE *to, const struct estimate *e, const struct plan *pick, enum plan_verdict verdict, const struct plan_words *words)
{
	char cost[32], speech[24];

	print_table(to, e, pick);
	print_misfits(to, e);
	print_curves(to, e, pick);
	fprintf(to, "\nlimit: %s\n", bottleneck_text(plan_bottleneck(pick, &e->work, &e->machines[pick->machine])));
	print_used(to, e, pick);
	if (e->audio_s > 0)
		fprintf(to, "speech: about %s of sound, %s an hour of it\n", seconds_text(speech, e->audio_s), dollars_text(cost, pick->cost_usd * 3600 / e->audio_s));
	fprintf(to, "estimate: batch times are %s\n", e->machines[pick->machine].speed_source == PLAN_MEASURED ? "measured" :
		e->machines[pick->machine].speed_source == PLAN_CARRIED ? "carried over from another GPU" : "a prior; they are measured by the first run");
	print_storage(to, &e->extras[pick->machine].storage, pick);
	print_instead(to, e, pick);
	if (words->explain)
		print_inputs(to, e, pick);
	if (words->what_if)
		print_what_if(to, e);
	fputc('\n', to);
	print_verdict(to, e, pick, verdict);
}

/* ---- JSON ---- */

static json_t *plan_json(const struct estimate *e, const struct plan *p)
{
	const struct offer *o = &e->offers[p->machine];
	const struct plan_machine *m = &e->machines[p->machine];

	return json_pack("{s:o,s:o,s:o,s:b,s:f,s:i,s:i,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:s}", "provider", report_text(o->provider), "gpu", report_text(o->gpu),
			 "region", report_text(o->region), "spot", o->spot, "price_usd_hour", m->price_h, "pods", p->pods, "batch", p->batch,
			 "makespan_p50_s", p->makespan_p50_s, "makespan_p90_s", p->makespan_p90_s, "billed_s", p->billed_s, "work_s", p->work_s, "used", p->used,
			 "seats", p->seats, "cost_usd", p->cost_usd, "usd_per_segment", each_usd(e, p), "speed_source", plan_source_name(m->speed_source));
}

static const char *verdict_name(enum plan_verdict verdict)
{
	switch (verdict) {
	case PLAN_FOUND: return "found";
	case PLAN_NOTHING_FITS: return "nothing fits";
	case PLAN_TOO_SLOW: return "too slow";
	case PLAN_TOO_DEAR: return "too dear";
	case PLAN_NEITHER: return "too slow or too dear";
	}
	return "";
}

json_t *plan_to_json(const struct estimate *e, const struct plan *pick, enum plan_verdict verdict)
{
	struct plan front[PLAN_FRONT_MAX];
	json_t *list = json_array();
	size_t count = e->open && e->known ? plan_front(front, PLAN_FRONT_MAX, &e->work, e->machines, e->count, &e->wish) : 0;

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, plan_json(e, &front[i]));
	return json_pack("{s:i,s:I,s:I,s:f,s:s,s:o,s:o}", "schema", 1, "segments", (json_int_t)e->segments, "to_render", (json_int_t)e->open,
			 "audio_s", e->audio_s, "verdict", !e->open ? "nothing to render" : !e->known ? "no estimate" : verdict_name(verdict), "pick",
			 e->open && e->known && verdict != PLAN_NOTHING_FITS ? plan_json(e, pick) : json_null(), "front", list);
}
