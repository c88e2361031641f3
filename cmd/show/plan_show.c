/* plan_show.c - prints a plan: the best few offers, the curve of cost per item, what limits it, and
 * one sentence. */
#include "plan_show.h"

#include <math.h>
#include <stdlib.h>

#include "base/gpus.h"
#include "plan_parts.h"
#include "table.h"

enum { CHART_WIDTH = 40, CHART_ROWS = 12, GPUS_MOST = 200 };
#define CURVE_MOST 12.0 /* times the lowest cost; costs above get no row */

/* ---- the table ---- */

static void add_row(struct table *t, const struct estimate *e, const struct plan *p,
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
	table_cell(t, "%s", plan_dollars(text, p->cost_usd));
	table_cell(t, "%s", plan_dollars(text, plan_each_usd(e, p)));
}

static bool same_plan(const struct plan *a, const struct plan *b)
{
	return a->machine == b->machine && a->pods == b->pods && a->batch == b->batch;
}

static void print_table(FILE *to, const struct estimate *e, const struct plan *pick)
{
	CLEANUP(table_free) struct table *t = table_new();
	struct plan plans[3], shown[4];
	const char *const why[] = {"cheapest", "cheapest in time", "fastest in budget"};
	const bool have[] = {plan_best_for(&plans[0], e, PLAN_COST, false, false),
			     plan_best_for(&plans[1], e, PLAN_COST, true, true),
			     plan_best_for(&plans[2], e, PLAN_TIME, false, true)};
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

/* ---- the curve ---- */

struct bar {
	char name[PLAN_TEXT];
	double usd; /* per item */
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
		fprintf(to, " %s\n", plan_dollars(cost, bars[i].usd));
	}
}

/* Each GPU with its best width and batch: the bottom of the U comes first. */
static size_t gpu_bars(const struct estimate *e, struct bar *bars, size_t room)
{
	struct plan_wish wish = e->wish;
	size_t count = 0;

	wish.goal = PLAN_COST;
	wish.deadline_s = wish.budget_usd = 0;
	for (size_t i = 0; i < e->count && count < room; i++) {
		struct plan p;
		char name[PLAN_TEXT];
		size_t k = 0;
		if (plan_choose(&p, &e->work, &e->machines[i], 1, &wish) != PLAN_FOUND)
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
	qsort(bars, count, sizeof(*bars), by_name_price);
	return count;
}

static size_t width_bars(const struct estimate *e, const struct plan *pick, struct bar *bars,
			 size_t room)
{
	struct plan plans[CHART_ROWS];
	struct plan_wish wish = e->wish;

	wish.pods = 0;
	size_t count = plan_widths(plans, MIN(room, (size_t)CHART_ROWS), &e->work, e->machines,
				   (size_t)pick->machine, &wish);
	for (size_t i = 1; i < count; i++)
		if (plans[i].cost_usd > CURVE_MOST * plans[0].cost_usd &&
		    plans[i].pods > 2 * pick->pods)
			count = i;
	for (size_t i = 0; i < count; i++) {
		char time[24];
		snprintf(bars[i].name, sizeof(bars[i].name), "%d pod%s, %s", plans[i].pods,
			 plans[i].pods == 1 ? "" : "s",
			 plan_seconds(time, plans[i].makespan_p50_s));
		bars[i].usd = plan_each_usd(e, &plans[i]);
	}
	return count;
}

static void print_curves(FILE *to, const struct estimate *e, const struct plan *pick)
{
	struct bar bars[GPUS_MOST];
	char offer[PLAN_TEXT];
	size_t count = MIN(gpu_bars(e, bars, GPUS_MOST), (size_t)CHART_ROWS);

	if (count > 1) {
		fprintf(to, "\ncost per segment by GPU, each at its best width and batch:\n");
		print_bars(to, bars, count);
	}
	count = width_bars(e, pick, bars, CHART_ROWS);
	if (count > 1) {
		fprintf(to, "\ncost per segment by number of pods (%s):\n",
			plan_offer(offer, &e->offers[pick->machine]));
		print_bars(to, bars, count);
	}
}

void plan_show(FILE *to, const struct estimate *e, const struct plan *pick,
	       enum plan_verdict verdict, const struct plan_words *words)
{
	print_table(to, e, pick);
	plan_misfits_show(to, e);
	print_curves(to, e, pick);
	fputc('\n', to);
	plan_words_show(to, e, pick);
	if (words->explain)
		plan_inputs_show(to, e, pick);
	if (words->what_if)
		plan_what_if_show(to, e);
	fputc('\n', to);
	plan_verdict_show(to, e, pick, verdict);
}
