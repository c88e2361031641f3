/* page.c - writes the page of `burst report`, its parts in order. */
#include "page.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "html.h"
#include "report.h"
#include "runs/runs.h"
#include "store/pod_cost.h"

#define USED_GOAL 0.7

enum { GANTT_PODS = 40, RUNS_SHOWN = 30 };

static double used_of(const struct run_row *r)
{
	return r->billed_ms > 0 ? (double)r->compute_ms / (double)r->billed_ms : 0;
}

static void figure(struct str *to, const char *name, const char *fmt, ...)
{
	char text[100];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	str_add(to, "<span><b>");
	html_text(to, text);
	str_add(to, "</b>");
	html_text(to, name);
	str_add(to, "</span>");
}

static void add_figures(struct page *p)
{
	int64_t billed = 0, compute = 0, cost = 0;
	double audio = 0;
	char text[32];

	for (size_t i = 0; i < p->count; i++) {
		billed += p->runs[i].billed_ms;
		compute += p->runs[i].compute_ms;
		cost += p->runs[i].cost_microusd;
		audio += p->audio_s[i];
	}
	html_section(&p->html, "figures", "In short");
	str_add(&p->html, "<div class=\"figures\">");
	if (!p->one)
		figure(&p->html, "runs", "%zu", p->count);
	figure(&p->html, "cost", "%s", money_show(text, sizeof(text), cost));
	figure(&p->html, "billed", "%s", duration_show(text, sizeof(text), billed));
	figure(&p->html, "computing", "%s", duration_show(text, sizeof(text), compute));
	figure(&p->html, "of billed time used", "%.0f%%",
	       billed > 0 ? 100.0 * (double)compute / (double)billed : 0);
	if (audio > 0) {
		figure(&p->html, "of sound", "%s",
		       duration_show(text, sizeof(text), (int64_t)(audio * 1000)));
		figure(&p->html, "an hour of sound", "$%.4f", page_dollars(cost) * 3600 / audio);
	}
	str_add(&p->html, "</div>\n");
	html_section_end(&p->html);
}

static void add_gantt(struct page *p)
{
	struct html_bar bars[GANTT_PODS] = {0};
	const struct run_row *run = &p->runs[0];
	int64_t first = INT64_MAX;
	size_t count = 0, more = 0;
	char text[32];

	for (size_t i = 0; i < p->pod_count; i++)
		if (!strcmp(p->pods[i].run, run->id))
			first = MIN(first, p->pods[i].create_ms);
	for (size_t i = 0; i < p->pod_count; i++) {
		const struct pod_row *pod = &p->pods[i];
		int64_t phase_ms[PHASES];
		if (strcmp(pod->run, run->id) != 0)
			continue;
		if (count == GANTT_PODS) {
			more++;
			continue;
		}
		struct html_bar *b = &bars[count++];
		report_phases(pod, p->now_ms, phase_ms);
		format_text(b->label, sizeof(b->label), "%.14s %s", pod_row_called(pod),
			    gpu_called(pod->gpu));
		b->start = (double)(pod->create_ms - first) / 1000;
		for (int k = 0; k < PHASES; k++)
			b->part[k] = (double)phase_ms[k] / 1000;
		snprintf(b->value, sizeof(b->value), "%s",
			 money_show(text, sizeof(text), pod_row_cost(pod, p->now_ms)));
	}
	if (!count)
		return;
	const char *legend[PHASES + 1] = {0};
	for (int k = 0; k < PHASES; k++)
		legend[k] = phase_names[k];
	static const int colors[PHASES] = {9, 2, 6, 1, 0, 3, 4, 7, 5, 8};
	html_section(&p->html, "gantt",
		     p->one ? "Pods, from create to gone"
			    : "Pods of the newest run, from create to gone");
	html_bars(&p->html,
		  &(struct html_chart){.id = "gantt-chart",
				       .title = "phases of each pod",
				       .legend = legend,
				       .colors = colors,
				       .seconds = true},
		  bars, count);
	if (more)
		html_note(&p->html, "%zu more pods are not shown", more);
	html_section_end(&p->html);
}

static void add_used(struct page *p)
{
	static const char *const legend[] = {"computing", "billed beside it", NULL};
	static const int colors[] = {3, 9};
	struct html_bar bars[RUNS_SHOWN] = {0};
	size_t count = 0;
	char text[24];

	for (size_t i = 0; i < p->count && count < RUNS_SHOWN; i++) {
		const struct run_row *r = &p->runs[i];
		if (r->billed_ms <= 0)
			continue;
		struct html_bar *b = &bars[count++];
		format_text(b->label, sizeof(b->label), "%.12s %s", r->job, r->id);
		b->part[0] = (double)MIN(r->compute_ms, r->billed_ms) / 1000;
		b->part[1] = (double)MAX(r->billed_ms - r->compute_ms, 0) / 1000;
		b->mark = (double)r->billed_ms / 1000 * USED_GOAL;
		snprintf(b->value, sizeof(b->value), "%s, %.0f%%",
			 duration_show(text, sizeof(text), r->billed_ms), 100 * used_of(r));
	}
	if (!count)
		return;
	html_section(&p->html, "used", "Billed against computing");
	html_bars(&p->html,
		  &(struct html_chart){.id = "used-chart",
				       .title = "billed and computing seconds of each run",
				       .legend = legend,
				       .colors = colors},
		  bars, count);
	html_note(&p->html, "The tick marks 70%% of the billed time, the target for computing.");
	html_section_end(&p->html);
}

static void add_runs(struct page *p)
{
	static const char *const heads[] = {"run",  "job",    "started (UTC)", "status", "done",
					    "pods", "billed", "used",          "cost",   "planned",
					    NULL};
	char text[32], time[24], planned[24];

	html_section(&p->html, "runs", p->one ? "The run" : "Runs, planned and actual");
	html_table_begin(&p->html, "runs-table", heads);
	for (size_t i = 0; i < p->count; i++) {
		const struct run_row *r = &p->runs[i];
		page_time(time, r->started_ms);
		html_row_begin(&p->html);
		html_cell(&p->html, "%s", r->id);
		html_cell(&p->html, "%s", r->job);
		html_cell(&p->html, "%s", time);
		html_cell(&p->html, "%s", run_status_word(r->status));
		html_cell(&p->html, "%lld/%lld", (long long)(r->rendered + r->cached),
			  (long long)r->total);
		html_cell(&p->html, "%d", page_pods_that_worked(p, r->id));
		html_cell(&p->html, "%s", duration_show(text, sizeof(text), r->billed_ms));
		html_cell(&p->html, "%.0f%%", 100 * used_of(r));
		if (r->cost_microusd > r->counted_microusd)
			html_cell(&p->html, "%s (counted: %s)",
				  money_show(text, sizeof(text), r->cost_microusd),
				  money_show(planned, sizeof(planned), r->counted_microusd));
		else
			html_cell(&p->html, "%s", money_show(text, sizeof(text), r->cost_microusd));
		if (r->planned_ms)
			html_cell(&p->html, "%s, %s",
				  money_show(text, sizeof(text), r->planned_microusd),
				  duration_show(planned, sizeof(planned), r->planned_ms));
		else
			html_cell(&p->html, "-");
		html_row_end(&p->html);
	}
	html_table_end(&p->html);
	html_section_end(&p->html);
}

/* nonce NULL: for a file; else for a page that is kept up to date. */
static void make_page(struct page *p, const char *subtitle, const char *nonce)
{
	CLEANUP(free_text)
	char *title = p->one ? xasprintf("burst: %s, run %s", p->runs[0].job, p->runs[0].id)
			     : xstrdup("burst: runs and spending");

	html_begin(&p->html, title, subtitle, nonce != NULL);
	if (nonce)
		page_add_now(p);
	if (p->count) {
		add_figures(p);
		add_gantt(p);
		add_used(p);
		page_add_curves(p);
		page_add_spending(p);
		page_add_audio(p);
		page_add_planned(p);
		add_runs(p);
	} else {
		html_note(&p->html, "No run in this time.");
	}
	str_add(&p->html, "</main>\n");
	if (nonce)
		page_add_live(p, nonce);
	html_end(&p->html);
}

int page_build(struct page_wish *w, struct str *html, const char *nonce, struct err *err)
{
	struct page p = {
		.ctx = w->ctx, .html = STR_INIT, .now_ms = clock_wall_ms(), .one = w->run != NULL};
	char from[24], until[24];
	int status = page_gather(&p, w->run, p.now_ms - w->since_ms, err);

	if (status == 0) {
		page_time(from, p.one ? p.runs[0].started_ms : p.now_ms - w->since_ms);
		page_time(until, p.now_ms);
		CLEANUP(free_text) char *subtitle = xasprintf("%s UTC to %s UTC", from, until);
		make_page(&p, subtitle, nonce);
		*html = p.html;
		p.html = STR_INIT;
	}
	w->count = p.count;
	str_free(&p.html);
	free(p.runs);
	free(p.pods);
	free(p.audio_s);
	return status;
}
