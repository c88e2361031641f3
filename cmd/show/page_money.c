/* page_money.c - the parts of the report about money: by day and kind of pod, by minute of sound,
 * against plans. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "output.h"
#include "page.h"
#include "store/pod_cost.h"

enum { DAYS_SHOWN = 60, KINDS_MOST = 64, KINDS_COLORED = HTML_PARTS - 1 };

/* ---- by day, provider and GPU ---- */

struct group {
	char name[96];
	int64_t microusd, billed_ms;
	int64_t part[HTML_PARTS]; /* of a day: by kind; the last is the sum of all others */
};

static size_t group_at(struct group *groups, size_t *count, size_t most, const char *name)
{
	size_t at = 0;

	while (at < *count && strcmp(groups[at].name, name) != 0)
		at++;
	if (at == *count && at < most) {
		COPY_TEXT(groups[at].name, name);
		++*count;
	}
	return MIN(at, most - 1);
}

static void add_to_group(struct group *g, int64_t microusd, int64_t billed_ms)
{
	g->microusd += microusd;
	g->billed_ms += billed_ms;
}

static void kind_of(char name[96], const struct pod_row *pod)
{
	format_text(name, 96, "%s at %s%s", gpu_called(pod->gpu), pod->provider,
		    pod->spot ? ", spot" : "");
}

static int dearest_first(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return (x->microusd < y->microusd) - (x->microusd > y->microusd);
}

static size_t group_kinds(const struct page *p, struct group kinds[KINDS_MOST])
{
	size_t count = 0;
	char name[96];

	for (size_t i = 0; i < p->pod_count; i++) {
		kind_of(name, &p->pods[i]);
		add_to_group(&kinds[group_at(kinds, &count, KINDS_MOST, name)],
			     pod_row_cost(&p->pods[i], p->now_ms),
			     pod_row_billed_ms(&p->pods[i], p->now_ms));
	}
	qsort(kinds, count, sizeof(*kinds), dearest_first);
	return count;
}

static int color_of(const struct group *kinds, size_t count, const struct pod_row *pod)
{
	char name[96];

	kind_of(name, pod);
	for (size_t i = 0; i < count && i < KINDS_COLORED; i++)
		if (!strcmp(kinds[i].name, name))
			return (int)i;
	return KINDS_COLORED;
}

static size_t group_days(const struct page *p, const struct group *kinds, size_t kind_count,
			 struct group days[DAYS_SHOWN])
{
	size_t count = 0;
	char time[24];

	for (size_t i = 0; i < p->pod_count; i++) {
		const struct pod_row *pod = &p->pods[i];
		int64_t cost = pod_row_cost(pod, p->now_ms);
		page_time(time, pod->create_ms);
		time[10] = '\0';
		struct group *day = &days[group_at(days, &count, DAYS_SHOWN, time)];
		add_to_group(day, cost, pod_row_billed_ms(pod, p->now_ms));
		day->part[color_of(kinds, kind_count, pod)] += cost;
	}
	return count;
}

static void add_value(struct html_bar *bar, const struct group *g)
{
	char usd[32], time[24];

	COPY_TEXT(bar->label, g->name);
	snprintf(bar->value, sizeof(bar->value), "%s, %s",
		 money_show(usd, sizeof(usd), g->microusd),
		 duration_show(time, sizeof(time), g->billed_ms));
}

static void add_days(struct page *p, const struct group *days, size_t count,
		     const struct group *kinds, size_t kind_count)
{
	struct html_bar bars[DAYS_SHOWN] = {0};
	const char *legend[HTML_PARTS + 1] = {0};

	for (size_t i = 0; i < count; i++) {
		add_value(&bars[i], &days[i]);
		for (int k = 0; k < HTML_PARTS; k++)
			bars[i].part[k] = page_dollars(days[i].part[k]);
	}
	for (size_t k = 0; k < MIN(kind_count, (size_t)KINDS_COLORED); k++)
		legend[k] = kinds[k].name;
	if (kind_count > KINDS_COLORED)
		legend[KINDS_COLORED] = "others";
	html_section(&p->html, "days", "Spending by day (UTC)");
	html_bars(&p->html,
		  &(struct html_chart){
			  .id = "days-chart", .title = "spending by day", .legend = legend},
		  bars, count);
	html_section_end(&p->html);
}

void page_add_spending(struct page *p)
{
	struct group days[DAYS_SHOWN] = {0}, kinds[KINDS_MOST] = {0};
	struct html_bar bars[KINDS_MOST] = {0};
	size_t kind_count = group_kinds(p, kinds);

	if (!kind_count)
		return;
	if (!p->one)
		add_days(p, days, group_days(p, kinds, kind_count, days), kinds, kind_count);
	for (size_t i = 0; i < kind_count; i++) {
		add_value(&bars[i], &kinds[i]);
		bars[i].part[MIN(i, (size_t)KINDS_COLORED)] = page_dollars(kinds[i].microusd);
	}
	html_section(&p->html, "kinds", "Spending by GPU and provider");
	html_bars(
		&p->html,
		&(struct html_chart){.id = "kinds-chart", .title = "spending by GPU and provider"},
		bars, kind_count);
	html_section_end(&p->html);
}

/* ---- by minute of sound ---- */

void page_add_audio(struct page *p)
{
	struct html_point *points = xcalloc(p->count + 1, sizeof(*points));
	char time[24];
	size_t count = 0;

	for (size_t i = p->count; i-- > 0;) {
		const struct run_row *r = &p->runs[i];
		if (p->audio_s[i] <= 0 || r->cost_microusd <= 0)
			continue;
		page_time(time, r->started_ms);
		points[count].x = (double)(count + 1);
		points[count].y = page_dollars(r->cost_microusd) * 60 / p->audio_s[i];
		format_text(points[count].label, sizeof(points[count].label),
			    "%.20s, %s: $%.6f a minute", r->job, time, points[count].y);
		count++;
	}
	if (count > 1) {
		const struct html_series series = {"cost of a minute of sound", true, 0, points,
						   count};
		html_section(&p->html, "audio", "Cost of a minute of sound, run by run");
		html_plot(&p->html, "audio-chart", "cost of a minute of sound",
			  "runs, the newest at the right", "dollars a minute", &series, 1);
		html_section_end(&p->html);
	}
	free(points);
}

/* ---- planned against actual ---- */

void page_add_planned(struct page *p)
{
	struct html_point *planned = xcalloc(p->count + 1, sizeof(*planned)),
			  *actual = xcalloc(p->count + 1, sizeof(*actual));
	double off = 0;
	size_t count = 0;

	for (size_t i = p->count; i-- > 0;) {
		const struct run_row *r = &p->runs[i];
		if (r->planned_microusd <= 0 || r->cost_microusd <= 0 || r->status != RUN_DONE)
			continue;
		planned[count].x = actual[count].x = (double)(count + 1);
		planned[count].y = page_dollars(r->planned_microusd);
		actual[count].y = page_dollars(r->cost_microusd);
		format_text(planned[count].label, sizeof(planned[count].label),
			    "run %s: planned $%.4f", r->id, planned[count].y);
		format_text(actual[count].label, sizeof(actual[count].label), "run %s: was $%.4f",
			    r->id, actual[count].y);
		off += fabs(actual[count].y / planned[count].y - 1);
		count++;
	}
	if (count) {
		const struct html_series series[] = {{"planned", true, 0, planned, count},
						     {"actual", false, 4, actual, count}};
		html_section(&p->html, "planned", "Planned against actual cost");
		html_plot(&p->html, "planned-chart", "planned against actual cost of each run",
			  "runs, the newest at the right", "dollars a run", series,
			  ARRAY_LEN(series));
		html_note(&p->html, "%zu run%s: %.0f%% off on average.", count,
			  count == 1 ? "" : "s", 100 * off / (double)count);
		html_section_end(&p->html);
	}
	free(planned);
	free(actual);
}
