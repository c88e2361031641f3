/* plan_show.c - prints a plan as text and as JSON. */
#include "plan_show.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "core/core.h"
#include "output.h"
#include "report.h"

/* ---- what is left of caps over runs ---- */

/* Prints a line for each cap. */
static void caps_show(FILE *to, const struct caps *caps)
{
	char left[32];

	for (size_t i = 0; caps && i < caps->count; i++) {
		CLEANUP(str_free) struct str used = STR_INIT;
		allow_say_used(&used, &caps->list[i]);
		fprintf(to, "%s (caps.%s), %s is left\n", str_text(&used), caps->list[i].key,
			money_show(left, sizeof(left), allow_left(&caps->list[i])));
	}
}

/* New reference; in tests/schema/plan.json. */
static json_t *caps_to_json(const struct caps *caps)
{
	json_t *list = json_array();

	for (size_t i = 0; caps && i < caps->count; i++) {
		const struct allowance *a = &caps->list[i];
		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "cap", a->key, "of",
				  a->project ? "project" : "all", "limit_usd",
				  report_dollars(a->cap_microusd), "spent_usd",
				  report_dollars(a->spent_microusd), "reserved_usd",
				  report_dollars(a->reserved_microusd), "left_usd",
				  report_dollars(allow_left(a)), "until", report_time(a->ends_ms)));
	}
	return list;
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

/* error: the first one; errors: all. */
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
	case PLAN_TOO_EXPENSIVE: return "too expensive";
	case PLAN_NEITHER: return "too slow or too expensive";
	}
	return "";
}

static json_t *checkpoint_json(const struct extras *x)
{
	const struct extra *saves = &x->saves;

	if (!saves->from[0])
		return json_null();
	return json_pack("{s:o,s:s}", "every_s",
			 saves->value > 0 ? json_real(saves->value) : json_null(), "from",
			 saves->from);
}

/* New reference; tests/schema/plan.json. err: why a run would be refused; NULL: it would not. */
static json_t *plan_to_json(const struct estimate *e, const struct plan *pick,
			    enum plan_verdict verdict, const struct err *err)
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
		"front", list, "cards_left_out", plan_misfits_json(e));
	const struct extras *x =
		!e->open ? NULL : &e->extras[verdict == PLAN_NOTHING_FITS ? 0 : pick->machine];
	json_object_set_new(object, "checkpoint", x ? checkpoint_json(x) : json_null());
	add_errors(object, NULL, err);
	return object;
}

json_t *plan_failure_json(const struct mistakes *m, const struct err *err)
{
	json_t *object =
		json_pack("{s:i,s:n,s:n,s:n,s:s,s:n,s:[],s:[],s:n,s:n,s:n,s:n,s:[]}", "schema", 1,
			  "segments", "to_render", "audio_s", "verdict", "refused", "pick", "front",
			  "cards_left_out", "checkpoint", "better", "changes", "left_out", "caps");

	add_errors(object, m, err);
	return object;
}

/* ---- a plan as text: the best few offers, the curve of cost per item, what limits it ---- */

enum { CHART_WIDTH = 40, CHART_ROWS = 12, GPUS_MOST = 200 };

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
	wish.within_s = wish.budget_usd = 0;
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

static void print_curve(FILE *to, const struct estimate *e)
{
	struct bar bars[GPUS_MOST];
	size_t count = MIN(gpu_bars(e, bars, GPUS_MOST), (size_t)CHART_ROWS);

	if (count < 2)
		return;
	fprintf(to, "\ncost per segment by GPU, each at its best width and batch:\n");
	print_bars(to, bars, count);
}

/* pick: the chosen plan, with its verdict. */
static void plan_show(FILE *to, const struct estimate *e, const struct plan *pick,
		      enum plan_verdict verdict, const struct plan_words *words)
{
	print_table(to, e, pick);
	plan_misfits_show(to, e);
	print_curve(to, e);
	fputc('\n', to);
	plan_words_show(to, e, pick);
	if (words->explain)
		plan_inputs_show(to, e, pick);
	if (words->what_if)
		plan_what_if_show(to, e);
	fputc('\n', to);
	plan_verdict_show(to, e, pick, verdict);
}

/* ---- the result of `burst plan` ---- */

static json_t *better_json(const struct better *b)
{
	if (!b->found)
		return json_null();
	return json_pack("{s:o,s:o,s:b,s:i,s:f,s:f,s:o}", "provider",
			 report_text(b->offer.provider), "gpu", report_text(b->offer.gpu), "spot",
			 b->offer.spot, "pods", b->plan.pods, "makespan_p50_s",
			 b->plan.makespan_p50_s, "cost_usd", b->plan.cost_usd, "text",
			 report_text(b->line));
}

/* Returns false for jobs that reuse nothing. */
static bool changes_of(const struct plan_result *r, struct job_changes *out)
{
	const struct job_ops *ops = r->job_ops;

	*out = (struct job_changes){0};
	if (ops->changes)
		ops->changes(r->job, out);
	return ops->changes != NULL;
}

static json_t *changes_json(const struct plan_result *r)
{
	struct job_changes c;

	if (!changes_of(r, &c))
		return json_null();
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "new", (json_int_t)c.added, "changed",
			 (json_int_t)c.changed, "gone", (json_int_t)c.gone, "reused",
			 (json_int_t)c.unchanged, "moved", (json_int_t)c.moved, "from_cache",
			 (json_int_t)c.from_cache, "stale_files", (json_int_t)c.stale);
}

/* Adds a line about what is left out, if anything. */
static void add_left_out(struct str *to, const struct plan_result *r)
{
	if (r->job_ops->left_out)
		r->job_ops->left_out(r->job, to);
}

static json_t *left_out_json(const struct plan_result *r)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	add_left_out(&text, r);
	return text.len ? report_text(str_text(&text)) : json_null();
}

/* Prints the number of segments and the rest of that line, then what changed since the output
 * folder was written. */
static void say_segments(const struct plan_result *r, const struct estimate *e, const char *tail)
{
	CLEANUP(str_free) struct str left_out = STR_INIT;
	struct job_changes c;

	if (e->open)
		printf("%zu segment%s, %zu to render%s\n", e->segments, e->segments == 1 ? "" : "s",
		       e->open, tail);
	else if (e->segments == 1)
		puts("the segment is already rendered: a run would rent nothing");
	else
		printf("all %zu segments are already rendered: a run would rent nothing\n",
		       e->segments);
	add_left_out(&left_out, r);
	if (left_out.len)
		puts(str_text(&left_out));
	if (!changes_of(r, &c) ||
	    !(c.changed + c.gone + c.unchanged + c.stale)) /* all segments are new */
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

/* Prints what keep_warm may cost beside the plan. "auto" follows the measured cold start, so the
 * billed time beside rendering stands for it. */
static void say_kept(const struct plan_result *r, const struct estimate *e, const struct plan *pick)
{
	int64_t ms = r->keep_ms;
	bool by_start = ms == KEEP_WARM_AUTO;
	char time[24], money[32];

	if (by_start)
		ms = (int64_t)(MAX(pick->billed_s - pick->work_s, 0.0) * 1000 / MAX(pick->pods, 1));
	if (ms <= 0)
		return;
	plan_say(stdout, 2,
		 "keep_warm: afterwards each pod waits for the next run, for %s%s: at most %s more "
		 "for each, within the caps",
		 by_start ? "at most as long as its cold start took, about " : "at most ",
		 duration_show(time, sizeof(time), ms),
		 money_show(money, sizeof(money),
			    money_for((int64_t)(e->machines[pick->machine].price_h * 1e6), ms)));
}

static void say_warm(int warm)
{
	if (warm > 0)
		plan_say(stdout, 2,
			 "warm: %d pod%s kept for the next run: this one takes over what it needs "
			 "of them, without a cold start",
			 warm, warm == 1 ? " is" : "s are");
}

static json_t *stages_json(const struct plan_result *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->stage_count; i++) {
		const struct plan_stage *s = &r->stages[i];
		const struct offer *o = &s->offer;
		json_array_append_new(
			list,
			json_pack("{s:o,s:i,s:o,s:o,s:o,s:o,s:o,s:o}", "name", report_text(s->name),
				  "pods", s->pods, "provider",
				  s->offered ? report_text(o->provider) : json_null(), "gpu",
				  s->offered ? report_text(o->gpu) : json_null(), "price_usd_hour",
				  s->offered ? report_dollars(o->price_microusd_h) : json_null(),
				  "makespan_s",
				  s->took_ms ? report_seconds(s->took_ms) : json_null(), "cost_usd",
				  s->took_ms ? report_dollars(s->cost_microusd) : json_null(),
				  "from", s->from[0] ? report_text(s->from) : json_null()));
	}
	return list;
}

json_t *plan_result_json(const struct plan_result *r, const struct err *err)
{
	json_t *object = plan_to_json(r->estimate, r->pick, r->verdict, err);

	json_object_set_new(object, "better", better_json(r->better));
	json_object_set_new(object, "changes", changes_json(r));
	json_object_set_new(object, "left_out", left_out_json(r));
	json_object_set_new(object, "caps", caps_to_json(r->caps));
	json_object_set_new(object, "warm_pods", json_integer(r->warm));
	json_object_set_new(object, "stages", stages_json(r));
	return object;
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
			plan_saves_show(stdout, &e->extras[0]);
	} else {
		say_segments(r, e, "");
		putchar('\n');
		plan_show(stdout, e, r->pick, r->verdict, r->words);
		if (r->better->found)
			plan_say(stdout, 2, "better: %s", r->better->line);
	}
}

static void say_stage(const struct plan_stage *s)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	char offer[PLAN_TEXT], money[32], time[24];

	str_addf(&line, "then %s: %d pod%s", s->name, s->pods, s->pods == 1 ? "" : "s");
	if (s->offered)
		str_addf(&line, " of %s, %s an hour%s", plan_offer(offer, &s->offer),
			 money_show(money, sizeof(money), s->offer.price_microusd_h),
			 s->pods == 1 ? "" : " each");
	if (s->took_ms)
		str_addf(&line, ": about %s, %s (%s)",
			 duration_show(time, sizeof(time), s->took_ms),
			 money_show(money, sizeof(money), s->cost_microusd), s->from);
	else
		str_add(&line, "; its time is not known before the first one");
	plan_say(stdout, 2, "%s", str_text(&line));
}

void plan_result_print(const struct plan_result *r, bool refused)
{
	print_plan(r, refused);
	for (size_t i = 0; i < r->stage_count; i++)
		say_stage(&r->stages[i]);
	say_warm(r->warm);
	if (r->caps && r->estimate->open && r->verdict != PLAN_NOTHING_FITS)
		say_kept(r, r->estimate, r->pick);
	caps_show(stdout, r->caps);
	fflush(stdout); /* obstacles come last */
}
