/* page.c - burst report: one HTML page about a run, or about all runs of some time. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "cmd.h"
#include "engine/learn.h"
#include "html.h"
#include "output.h"
#include "plan/choose.h"
#include "plan/cost.h"
#include "report.h"

#define DAY_MS INT64_C(86400000)
#define USED_GOAL 0.7
enum { GANTT_PODS = 40, RUNS_SHOWN = 30, DAYS_SHOWN = 60, WIDTHS_SHOWN = 8, WIDEST_SHOWN = 16, GROUPS_MOST = 64 };

struct page {
	struct cmd_context *ctx;
	struct str html;
	struct run_row *runs; /* newest first */
	size_t count;
	struct pod_row *pods; /* of all these runs */
	size_t pod_count;
	double *audio_s; /* of each run */
	int64_t now_ms;
	bool one; /* one run alone */
};

static void text_of_time(char to[24], int64_t wall_ms)
{
	char full[32];

	clock_rfc3339(full, sizeof(full), wall_ms);
	full[10] = ' ';
	snprintf(to, 24, "%.16s", full);
}

static double dollars(int64_t microusd)
{
	return (double)microusd / 1e6;
}

static double used_of(const struct run_row *r)
{
	return r->billed_ms > 0 ? (double)r->compute_ms / (double)r->billed_ms : 0;
}

/* ---- gathering ---- */

static double audio_of(struct store *store, const char *run)
{
	struct segment_row *rows = NULL;
	size_t count = 0;
	double seconds = 0;

	if (store_segments(store, run, &rows, &count, NULL) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		seconds += rows[i].state == SEGMENT_ROW_SAFE ? rows[i].seconds : 0;
	free(rows);
	return seconds;
}

static void add_pods(struct page *p, const char *run)
{
	struct pod_row *rows = NULL;
	size_t count = 0;

	if (store_pods(p->ctx->store, run, false, &rows, &count, NULL) < 0)
		return;
	p->pods = xrealloc(p->pods, (p->pod_count + count + 1) * sizeof(*p->pods));
	for (size_t i = 0; i < count; i++)
		if (rows[i].create_ms > 0)
			p->pods[p->pod_count++] = rows[i];
	free(rows);
}

static int gather(struct page *p, const char *run, int64_t since_ms, struct err *err)
{
	struct run_row *rows = NULL;
	size_t count = 0;

	if (run) {
		rows = xcalloc(1, sizeof(*rows));
		count = 1;
		if (report_find_run(p->ctx->store, run, rows, err) < 0) {
			free(rows);
			return -1;
		}
	} else if (store_runs(p->ctx->store, NULL, false, 0, &rows, &count, err) < 0) {
		return -1;
	}
	p->runs = xcalloc(count + 1, sizeof(*p->runs));
	p->audio_s = xcalloc(count + 1, sizeof(*p->audio_s));
	for (size_t i = 0; i < count; i++) {
		if (!run && rows[i].started_ms < since_ms)
			continue;
		if (report_sum(p->ctx->store, &rows[i], p->now_ms, err) < 0) {
			free(rows);
			return -1;
		}
		p->audio_s[p->count] = audio_of(p->ctx->store, rows[i].id);
		p->runs[p->count++] = rows[i];
		add_pods(p, rows[i].id);
	}
	free(rows);
	return 0;
}

/* ---- figures ---- */

static void figure(struct str *to, const char *name, const char *fmt, ...) PRINTF(3, 4);
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
	figure(&p->html, "of billed time used", "%.0f%%", billed > 0 ? 100.0 * (double)compute / (double)billed : 0);
	if (audio > 0) {
		figure(&p->html, "of sound", "%s", duration_show(text, sizeof(text), (int64_t)(audio * 1000)));
		figure(&p->html, "an hour of sound", "$%.4f", dollars(cost) * 3600 / audio);
	}
	str_add(&p->html, "</div>\n");
	html_section_end(&p->html);
}

/* ---- phases of each pod ---- */

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
		format_text(b->label, sizeof(b->label), "%.14s %s", pod_row_called(pod), strcmp(pod->gpu, "none") ? pod->gpu : "no GPU");
		b->start = (double)(pod->create_ms - first) / 1000;
		for (int k = 0; k < PHASES; k++)
			b->part[k] = (double)phase_ms[k] / 1000;
		snprintf(b->value, sizeof(b->value), "%s", money_show(text, sizeof(text), report_cost_microusd(pod, p->now_ms)));
	}
	if (!count)
		return;
	const char *legend[PHASES + 1] = {0};
	for (int k = 0; k < PHASES; k++)
		legend[k] = phase_names[k];
	static const int colors[PHASES] = {9, 2, 6, 1, 0, 3, 4, 7, 8};
	html_section(&p->html, "gantt", p->one ? "Pods, from create to gone" : "Pods of the newest run, from create to gone");
	html_bars(&p->html, &(struct html_chart){.id = "gantt-chart", .title = "phases of each pod", .legend = legend, .colors = colors}, bars, count);
	if (more)
		html_note(&p->html, "%zu more pods are not shown", more);
	html_section_end(&p->html);
}

/* ---- billed against computing ---- */

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
		snprintf(b->value, sizeof(b->value), "%s, %.0f%%", duration_show(text, sizeof(text), r->billed_ms), 100 * used_of(r));
	}
	if (!count)
		return;
	html_section(&p->html, "used", "Billed against computing");
	html_bars(&p->html, &(struct html_chart){.id = "used-chart", .title = "billed and computing seconds of each run", .legend = legend, .colors = colors}, bars, count);
	html_note(&p->html, "The tick is at 70%% of the billed time: computing should reach it.");
	html_section_end(&p->html);
}

/* ---- cost per segment by width: predicted and measured ---- */

/* The run's work as its batches had it: every segment as long as the mean of its batch. */
static bool work_of(struct page *p, const struct run_row *run, struct plan_work *out, char key[LEARN_KEY])
{
	struct batch_row *rows = NULL;
	size_t count = 0, segments = 0, n = 0;

	if (store_batches(p->ctx->store, run->id, &rows, &count, NULL) < 0 || !count) {
		free(rows);
		return false;
	}
	int most = 1;
	for (size_t i = 0; i < count; i++) {
		segments += (size_t)MAX(rows[i].segments, 0);
		most = MAX(most, rows[i].segments);
	}
	double *lengths = xcalloc(segments + 1, sizeof(*lengths));
	for (size_t i = 0; i < count; i++)
		for (int k = 0; k < rows[i].segments; k++)
			lengths[n++] = rows[i].sum / rows[i].segments;
	plan_work_init(out, lengths, n, most, 0);
	copy_text(key, LEARN_KEY, rows[0].speed);
	free(lengths);
	free(rows);
	return n > 0;
}

static bool machine_of(struct page *p, const struct run_row *run, const char *key, int batch_most, struct plan_machine *out)
{
	struct speed_row *speeds = NULL;
	struct pod_row *up = NULL;
	size_t count = 0, up_count = 0;
	const struct pod_row *pod = NULL;
	struct cold_time fetch = {1, 1, 0}, release = {0};
	bool found = false;

	for (size_t i = 0; i < p->pod_count && !pod; i++)
		pod = strcmp(p->pods[i].run, run->id) || p->pods[i].connected_ms <= 0 ? NULL : &p->pods[i];
	if (!pod || store_speeds(p->ctx->store, key, &speeds, &count, NULL) < 0)
		return false;
	*out = (struct plan_machine){.price_h = dollars(pod->price_microusd_h), .quantum_s = 1, .workers = 1, .batch_max = MAX(batch_most, 1)};
	if (store_pods_up(p->ctx->store, pod->provider, 200, &up, &up_count, NULL) == 0) {
		learn_cold(up, up_count, &(struct cold_what){.gpu = pod->gpu, .image = pod->image, .volume_ready = pod->synced_bytes == 0}, &out->cold);
		learn_tail(up, up_count, &fetch, &release);
	}
	out->tail_s = fetch.p50_s;
	out->release_s = release.p50_s;
	for (size_t i = 0; i < count; i++) {
		struct speed_sums sums = learn_sums(&speeds[i]);
		if (!strcmp(speeds[i].key, key))
			found = speed_fit(&out->speed, &sums, NULL);
	}
	free(up);
	free(speeds);
	return found;
}

static int pods_that_worked(const struct page *p, const char *run)
{
	int count = 0;

	for (size_t i = 0; i < p->pod_count; i++)
		count += !strcmp(p->pods[i].run, run) && p->pods[i].compute_ms > 0;
	return count;
}

static double each_of(const struct run_row *r)
{
	return r->rendered > 0 ? dollars(r->cost_microusd) / (double)r->rendered : 0;
}

static void add_curve(struct page *p)
{
	const struct run_row *run = &p->runs[0];
	struct plan_work work;
	struct plan_machine machine;
	struct plan widths[WIDTHS_SHOWN];
	const struct plan_wish wish = {.pods_most = WIDEST_SHOWN};
	char key[LEARN_KEY];

	if (run->rendered <= 0 || run->cost_microusd <= 0 || !work_of(p, run, &work, key) || !machine_of(p, run, key, work.size[work.sizes - 1], &machine))
		return;
	size_t count = plan_widths(widths, WIDTHS_SHOWN, &work, &machine, 0, &wish), measured = 0, best = 0;
	struct html_point curve[WIDTHS_SHOWN] = {0};
	struct html_point *points = xcalloc(p->count + 1, sizeof(*points));
	for (size_t i = 0; i < count; i++) {
		curve[i].x = widths[i].pods;
		curve[i].y = widths[i].cost_usd / (double)work.count * 1e6;
		snprintf(curve[i].label, sizeof(curve[i].label), "%d pods: $%.6f each, %.1f s", widths[i].pods, curve[i].y / 1e6, widths[i].makespan_p50_s);
		best = widths[i].cost_usd < widths[best].cost_usd ? i : best;
	}
	for (size_t i = 0; i < p->count; i++) {
		const struct run_row *r = &p->runs[i];
		int pods = pods_that_worked(p, r->id);
		if (strcmp(r->config, run->config) || strcmp(r->job, run->job) || !pods || each_of(r) <= 0)
			continue;
		points[measured].x = pods;
		points[measured].y = each_of(r) * 1e6;
		format_text(points[measured].label, sizeof(points[measured].label), "run %s: %d pods", r->id, pods);
		measured++;
	}
	const struct html_series series[] = {{"predicted", true, 0, curve, count}, {"measured", false, 4, points, measured}};
	html_section(&p->html, "curve", "Cost per segment by number of pods");
	html_plot(&p->html, "curve-chart", "cost per segment by number of pods", "pods", "micro-dollars per segment", series, ARRAY_LEN(series));
	double was = dollars(run->cost_microusd), could = widths[best].cost_usd * (double)run->rendered / (double)work.count;
	if (could < 0.9 * was)
		html_note(&p->html, "Cheaper: %d pod%s would have cost about $%.4f, where this run cost $%.4f.", widths[best].pods, widths[best].pods == 1 ? "" : "s", could, was);
	else
		html_note(&p->html, "No other number of pods would have been much cheaper.");
	html_section_end(&p->html);
	free(points);
}

/* ---- spending ---- */

struct group {
	char name[96];
	int64_t microusd, billed_ms;
};

static void add_to_group(struct group *groups, size_t *count, size_t most, const char *name, int64_t microusd, int64_t billed_ms)
{
	size_t at = 0;

	while (at < *count && strcmp(groups[at].name, name) != 0)
		at++;
	if (at == most)
		return;
	if (at == *count) {
		COPY_TEXT(groups[at].name, name);
		++*count;
	}
	groups[at].microusd += microusd;
	groups[at].billed_ms += billed_ms;
}

static void add_groups(struct page *p, const char *id, const char *title, const struct group *groups, size_t count)
{
	struct html_bar bars[GROUPS_MOST] = {0};
	char usd[32], time[24];

	if (!count)
		return;
	for (size_t i = 0; i < count; i++) {
		COPY_TEXT(bars[i].label, groups[i].name);
		bars[i].part[0] = dollars(groups[i].microusd);
		snprintf(bars[i].value, sizeof(bars[i].value), "%s, %s", money_show(usd, sizeof(usd), groups[i].microusd), duration_show(time, sizeof(time), groups[i].billed_ms));
	}
	CLEANUP(free_text) char *chart = xasprintf("%s-chart", id);
	html_section(&p->html, id, title);
	html_bars(&p->html, &(struct html_chart){.id = chart, .title = title}, bars, count);
	html_section_end(&p->html);
}

static void add_spending(struct page *p)
{
	struct group days[DAYS_SHOWN] = {0}, kinds[GROUPS_MOST] = {0};
	size_t day_count = 0, kind_count = 0;
	char name[96], time[24];

	for (size_t i = 0; i < p->pod_count; i++) {
		const struct pod_row *pod = &p->pods[i];
		int64_t cost = report_cost_microusd(pod, p->now_ms), billed = report_billed_ms(pod, p->now_ms);
		text_of_time(time, pod->create_ms);
		snprintf(name, sizeof(name), "%.10s", time);
		add_to_group(days, &day_count, DAYS_SHOWN, name, cost, billed);
		format_text(name, sizeof(name), "%s at %s", strcmp(pod->gpu, "none") ? pod->gpu : "no GPU", pod->provider);
		add_to_group(kinds, &kind_count, GROUPS_MOST, name, cost, billed);
	}
	if (!p->one)
		add_groups(p, "days", "Spending by day (UTC)", days, day_count);
	add_groups(p, "kinds", "Spending by GPU and provider", kinds, kind_count);
}

static void add_audio(struct page *p)
{
	struct html_point *points = xcalloc(p->count + 1, sizeof(*points));
	size_t count = 0;

	for (size_t i = p->count; i-- > 0;) {
		const struct run_row *r = &p->runs[i];
		if (p->audio_s[i] <= 0 || r->cost_microusd <= 0)
			continue;
		points[count].x = (double)(count + 1);
		points[count].y = dollars(r->cost_microusd) * 60 / p->audio_s[i] * 1e6;
		format_text(points[count].label, sizeof(points[count].label), "%s %s: $%.6f a minute", r->job, r->id, points[count].y / 1e6);
		count++;
	}
	if (count > 1) {
		const struct html_series series = {"cost of a minute of sound", true, 0, points, count};
		html_section(&p->html, "audio", "Cost of a minute of sound, run by run");
		html_plot(&p->html, "audio-chart", "cost of a minute of sound", "run, the newest at the right", "micro-dollars per minute", &series, 1);
		html_section_end(&p->html);
	}
	free(points);
}

/* ---- all runs ---- */

static void add_runs(struct page *p)
{
	static const char *const heads[] = {"run", "job", "started (UTC)", "status", "done", "pods", "billed", "used", "cost", "planned time", "planned cost", NULL};
	char text[32], time[24];

	html_section(&p->html, "runs", p->one ? "The run" : "Runs, planned and actual");
	html_table_begin(&p->html, "runs-table", heads);
	for (size_t i = 0; i < p->count; i++) {
		const struct run_row *r = &p->runs[i];
		text_of_time(time, r->started_ms);
		html_row_begin(&p->html);
		html_cell(&p->html, "%s", r->id);
		html_cell(&p->html, "%s", r->job);
		html_cell(&p->html, "%s", time);
		html_cell(&p->html, "%s", r->status);
		html_cell(&p->html, "%lld/%lld", (long long)(r->rendered + r->cached), (long long)r->total);
		html_cell(&p->html, "%d", pods_that_worked(p, r->id));
		html_cell(&p->html, "%s", duration_show(text, sizeof(text), r->billed_ms));
		html_cell(&p->html, "%.0f%%", 100 * used_of(r));
		html_cell(&p->html, "%s", money_show(text, sizeof(text), r->cost_microusd));
		html_cell(&p->html, "%s", r->planned_ms ? duration_show(text, sizeof(text), r->planned_ms) : "-");
		html_cell(&p->html, "%s", r->planned_ms ? money_show(text, sizeof(text), r->planned_microusd) : "-");
		html_row_end(&p->html);
	}
	html_table_end(&p->html);
	html_section_end(&p->html);
}

static void make_page(struct page *p, const char *subtitle)
{
	CLEANUP(free_text) char *title = p->one ? xasprintf("burst: %s, run %s", p->runs[0].job, p->runs[0].id) : xstrdup("burst: runs and spending");

	html_begin(&p->html, title, subtitle);
	if (p->count) {
		add_figures(p);
		add_gantt(p);
		add_used(p);
		add_curve(p);
		add_spending(p);
		add_audio(p);
		add_runs(p);
	} else {
		html_note(&p->html, "No run in this time.");
	}
	html_end(&p->html);
}

/* ---- the command ---- */

static int write_page(const char *path, const struct str *html, struct err *err)
{
	if (!strcmp(path, "-")) {
		fwrite(str_text(html), 1, html->len, stdout);
		return cmd_flush(err);
	}
	return path_write(path, str_text(html), html->len, 0644, err);
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct page p = {.ctx = ctx, .html = STR_INIT, .now_ms = clock_wall_ms(), .one = ctx->arg_count > 0};
	int64_t since = 30 * DAY_MS;
	const char *path = opt_text(ctx, "output");
	char from[24], until[24];

	if (opt_duration(ctx, "since", &since, err) < 0)
		return -1;
	if (p.one && opt_has(ctx, "since"))
		return err_set(err, ERR_USAGE, "report: give a run or --since, not both");
	int status = gather(&p, p.one ? ctx->args[0] : NULL, p.now_ms - since, err);
	if (status == 0) {
		text_of_time(from, p.one ? p.runs[0].started_ms : p.now_ms - since);
		text_of_time(until, p.now_ms);
		CLEANUP(free_text) char *subtitle = xasprintf("%s UTC to %s UTC", from, until);
		make_page(&p, subtitle);
		status = write_page(path ? path : "report.html", &p.html, err);
	}
	if (status == 0 && (!path || strcmp(path, "-") != 0) && !ctx->quiet)
		output_line(stderr, "%s: %zu run%s", path ? path : "report.html", p.count, p.count == 1 ? "" : "s");
	str_free(&p.html);
	free(p.runs);
	free(p.pods);
	free(p.audio_s);
	return status;
}

static const struct opt opts[] = {
	{0, "since", "TIME", "all runs of this time until now: 30d when left out", NULL, false},
	{'o', "output", "FILE", "where the page goes: report.html when left out, - for stdout", NULL, false},
	{0},
};

const struct cmd cmd_report = {
	.name = "report",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "write an HTML page about runs and spending",
	.details = "One file that loads nothing from anywhere: the phases of each pod, billed against computing time, cost per segment by number of pods "
		   "(predicted and measured), spending by day, GPU and provider, planned against actual.",
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
