/* plan_show.c - prints a plan: the few offers worth a look, the curve of cost per item, what limits
 * it, and one sentence. */
#include "plan_show.h"

#include <math.h>
#include <stdlib.h>

#include "base/gpus.h"
#include "output.h"
#include "plan_parts.h"
#include "report.h"
#include "table.h"

enum { CHART_WIDTH = 40, CHART_ROWS = 12, GPUS_MOST = 200 };
#define CURVE_MOST 12.0 /* times the lowest cost: what lies above is not worth a row */

char *plan_sentence(char *to, size_t room, const struct estimate *e, const struct plan *pick)
{
	char offer[PLAN_TEXT], time[24], cost[32];

	format_text(to, room, "%d pod%s of %s: about %s, %s", pick->pods,
		    pick->pods == 1 ? "" : "s", plan_offer(offer, &e->offers[pick->machine]),
		    plan_seconds(time, pick->makespan_p50_s), plan_dollars(cost, pick->cost_usd));
	return to;
}

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

/* Why the offer cannot run the job; false: it can, or no offer has a speed. */
static bool misfit_why(const struct estimate *e, size_t i, char to[ESTIMATE_UNFIT])
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

/* An offer before this one has the same card, and the same provider where that matters. */
static bool card_came_before(const struct estimate *e, size_t i, bool same_provider)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(e->offers[k].gpu, e->offers[i].gpu) &&
		    (!same_provider || !strcmp(e->offers[k].provider, e->offers[i].provider)))
			return true;
	return false;
}

/* What each offer that is too small lacks, once for each GPU. */
static void print_misfits(FILE *to, const struct estimate *e)
{
	char offer[PLAN_TEXT], why[ESTIMATE_UNFIT];

	for (size_t i = 0; i < e->count; i++) {
		const struct offer *o = &e->offers[i];
		if (card_came_before(e, i, false) || !misfit_why(e, i, why))
			continue;
		if (!e->unfit[i][0] && gpu_is_none(o->gpu))
			fprintf(to, "does not fit: a pod without a GPU\n");
		else
			plan_say(to, 2, "%s: %s: %s", e->unfit[i][0] ? "left out" : "does not fit",
				 plan_offer(offer, o), why);
	}
}

/* The same as JSON, once for each GPU of a provider. */
static json_t *misfits_json(const struct estimate *e)
{
	json_t *list = json_array();
	char why[ESTIMATE_UNFIT];

	for (size_t i = 0; i < e->count; i++) {
		const struct offer *o = &e->offers[i];
		if (!card_came_before(e, i, true) && misfit_why(e, i, why))
			json_array_append_new(list, json_pack("{s:o,s:o,s:i,s:o}", "provider",
							      report_text(o->provider), "gpu",
							      report_text(o->gpu), "vram_gb",
							      o->vram_gb, "why", report_text(why)));
	}
	return list;
}

/* ---- the curve ---- */

struct bar {
	char name[PLAN_TEXT];
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
		fprintf(to, " %s\n", plan_dollars(cost, bars[i].usd));
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
	print_misfits(to, e);
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

/* ---- JSON ---- */

static json_t *plan_json(const struct estimate *e, const struct plan *p)
{
	const struct offer *o = &e->offers[p->machine];
	const struct plan_machine *m = &e->machines[p->machine];

	return json_pack(
		"{s:o,s:o,s:o,s:b,s:f,s:i,s:i,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:o,s:s,s:s}",
		"provider", report_text(o->provider), "gpu", report_text(o->gpu), "region",
		report_text(o->region), "spot", o->spot, "price_usd_hour", m->price_h, "pods",
		p->pods, "batch", p->batch, "makespan_p50_s", p->makespan_p50_s, "makespan_p90_s",
		p->makespan_p90_s, "billed_s", p->billed_s, "work_s", p->work_s, "used", p->used,
		"seats", p->seats, "cost_usd", p->cost_usd, "usd_per_segment", plan_each_usd(e, p),
		"pods_usd", p->pods_usd, "storage_usd", e->extras[p->machine].storage.value,
		"usd_per_audio_hour",
		e->audio_s > 0 ? json_real(p->cost_usd * 3600 / e->audio_s) : json_null(),
		"speed_source", plan_source_name(m->speed_source), "speed_from",
		e->speed_from[p->machine]);
}

/* error: the first one, and errors: all of them. */
static void add_errors(json_t *object, const struct mistakes *m, const struct err *err)
{
	json_t *errors = json_array();

	for (size_t i = 0; m && i < m->count; i++)
		json_array_append_new(errors, report_error_json(err_kind_name(m->list[i].err.kind),
								m->list[i].err.msg, ""));
	if (err && !json_array_size(errors))
		json_array_append_new(errors,
				      report_error_json(err_kind_name(err->kind), err->msg, ""));
	json_object_set_new(object, "error",
			    err ? report_error_json(err_kind_name(err->kind), err->msg, "")
				: json_null());
	json_object_set_new(object, "errors", errors);
}

static const char *verdict_name(enum plan_verdict verdict)
{
	switch (verdict) {
	case PLAN_FOUND: return "found";
	case PLAN_NOTHING_FITS: return "nothing fits";
	case PLAN_TOO_SLOW: return "too slow";
	case PLAN_TOO_DEAR: return "too expensive";
	case PLAN_NEITHER: return "too slow or too expensive";
	}
	return "";
}

json_t *plan_to_json(const struct estimate *e, const struct plan *pick, enum plan_verdict verdict,
		     const struct err *err)
{
	struct plan front[PLAN_FRONT_MAX];
	json_t *list = json_array();
	size_t count = e->open && e->known ? plan_front(front, PLAN_FRONT_MAX, &e->work,
							e->machines, e->count, &e->wish)
					   : 0;

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, plan_json(e, &front[i]));
	json_t *object = json_pack(
		"{s:i,s:I,s:I,s:f,s:s,s:o,s:o,s:o}", "schema", 1, "segments",
		(json_int_t)e->segments, "to_render", (json_int_t)e->open, "audio_s", e->audio_s,
		"verdict",
		!e->open                                  ? "nothing to render"
		: !e->known && !e->never_fits && e->count ? "no estimate"
							  : verdict_name(verdict),
		"pick", e->open && verdict != PLAN_NOTHING_FITS ? plan_json(e, pick) : json_null(),
		"front", list, "cards_left_out", misfits_json(e));
	add_errors(object, NULL, err);
	return object;
}

json_t *plan_failure_json(const struct mistakes *m, const struct err *err)
{
	json_t *object =
		json_pack("{s:i,s:n,s:n,s:n,s:s,s:n,s:[],s:[],s:n,s:n,s:n,s:[]}", "schema", 1,
			  "segments", "to_render", "audio_s", "verdict", "refused", "pick", "front",
			  "cards_left_out", "better", "changes", "left_out", "caps");

	add_errors(object, m, err);
	return object;
}
