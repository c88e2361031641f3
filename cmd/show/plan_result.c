/* plan_result.c - prints the result of `burst plan`: what to render, the plan, a better choice,
 * warm pods, caps. */
#include "base/clock.h"
#include "core/core.h"
#include "plan_parts.h"
#include "plan_result.h"
#include "report.h"

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

json_t *plan_result_json(const struct plan_result *r, const struct err *err)
{
	json_t *object = plan_to_json(r->estimate, r->pick, r->verdict, err);

	json_object_set_new(object, "better", better_json(r->better));
	json_object_set_new(object, "changes", changes_json(r));
	json_object_set_new(object, "left_out", left_out_json(r));
	json_object_set_new(object, "caps", caps_to_json(r->caps));
	json_object_set_new(object, "warm_pods", json_integer(r->warm));
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

void plan_result_print(const struct plan_result *r, bool refused)
{
	print_plan(r, refused);
	say_warm(r->warm);
	if (r->caps && r->estimate->open && r->verdict != PLAN_NOTHING_FITS)
		say_kept(r, r->estimate, r->pick);
	caps_show(stdout, r->caps);
	fflush(stdout); /* obstacles come last */
}
