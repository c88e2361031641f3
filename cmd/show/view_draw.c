/* view_draw.c - draws a view: its words, and the lines of the screen. */
#include "view.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/str.h"
#include "output.h"
#include "report.h"

/* ---- words: progress, what the run waits for, cost ---- */

/* "3.2/s", "14/min", "" for none. Returns `to`. */
static char *view_rate_show(char *to, size_t room, double per_s)
{
	if (per_s <= 0)
		snprintf(to, room, "%s", "");
	else if (per_s >= 0.95)
		snprintf(to, room, per_s < 9.95 ? "%.1f/s" : "%.0f/s", per_s);
	else if (per_s * 60 >= 0.95)
		snprintf(to, room, per_s * 60 < 9.95 ? "%.1f/min" : "%.0f/min", per_s * 60);
	else
		snprintf(to, room, "%.1f/h", per_s * 3600);
	return to;
}

/* Whole cents; below one cent, hundredths of a cent. Returns `to`. */
static char *view_money_show(char *to, size_t room, int64_t microusd)
{
	double dollars = (double)microusd / 1e6;

	if (microusd > 0 && microusd < 100) /* show that it is more than nothing */
		snprintf(to, room, "<$0.0001");
	else if (microusd > 0 && microusd < 9950)
		snprintf(to, room, "$%.4f", dollars);
	else
		snprintf(to, room, "$%.2f", dollars);
	return to;
}

/* "" or "s" */
static const char *view_plural(int64_t n)
{
	return n == 1 ? "" : "s";
}

/* Whether the pod is gone, or never existed. */
static bool view_pod_over(const struct view_pod *p)
{
	return p->phase == POD_GONE || p->phase == POD_NEVER;
}

/* How many pods are not over. */
static int64_t view_live(const struct view *v)
{
	int64_t live = 0;

	for (size_t i = 0; i < v->pod_count; i++)
		live += !view_pod_over(&v->pods[i]);
	return live;
}

/* How many pods are in these phases. */
static int64_t view_count_phases(const struct view *v, enum pod_phase from, enum pod_phase to)
{
	int64_t count = 0;

	for (size_t i = 0; i < v->pod_count; i++)
		count += v->pods[i].phase >= from && v->pods[i].phase <= to;
	return count;
}

/* Whether every segment is done or has failed. */
static bool view_settled(const struct view *v)
{
	return v->total > 0 && v->done + v->failed >= v->total;
}

/* Adds the image that is nearest to completion, if any. */
static void add_image_status(struct str *out, const struct view *v)
{
	const struct view_pod *best = NULL;

	for (size_t i = 0; i < v->pod_count; i++) {
		const struct view_pod *p = &v->pods[i];
		if (p->phase == POD_BOOTING && p->image_percent >= 0 &&
		    (!best || p->image_percent > best->image_percent))
			best = p;
	}
	if (best)
		str_addf(out, "waiting for the %s%simage: %d %%",
			 gpu_is_none(best->gpu) ? "" : best->gpu, gpu_is_none(best->gpu) ? "" : " ",
			 best->image_percent);
}

/* live: number of pods that are not over. */
static void add_release_status(struct str *out, const struct view *v, int64_t live)
{
	int64_t released = view_count_phases(v, POD_CONFIRMING, POD_CONFIRMING), handed = 0;

	for (size_t i = 0; i < v->pod_count; i++)
		handed += v->pods[i].handed;
	if (!live && handed)
		str_addf(out, "%lld pod%s handed to another run", (long long)handed,
			 view_plural(handed));
	else if (!live)
		str_add(out, v->pod_count ? "all pods gone" : "");
	else if (released == live)
		str_addf(out, "confirming that %lld pod%s %s gone", (long long)live,
			 view_plural(live), live == 1 ? "is" : "are");
	else
		str_addf(out, "releasing %lld pod%s", (long long)(live - released),
			 view_plural(live - released));
}

static void add_finish_status(struct str *out, const struct view *v, int64_t live)
{
	add_release_status(out, v, live);
	if (v->finish != VIEW_FINISH_NOW)
		return;
	str_add(out, out->len ? "; " : "");
	if (v->joins)
		str_addf(out, "joining %lld file%s", (long long)v->done, view_plural(v->done));
	else
		str_add(out, "writing the manifest");
}

/* What the run waits for, or does beside rendering: "all pods gone; joining 300 files"; "" if the
 * pods' phases say it all. */
static void view_status(struct str *out, const struct view *v)
{
	int64_t live = view_live(v);

	if (view_settled(v) || v->finish == VIEW_FINISH_NOW)
		add_finish_status(out, v, live);
	else if (v->stopping && !live)
		str_add(out, v->pod_count ? "stopped; all pods gone" : "stopped");
	else if (v->stops > 1)
		str_addf(out, "stopping: releasing %lld pod%s now", (long long)live,
			 view_plural(live));
	else if (v->stopping)
		str_addf(out, "stopping: fetching finished files, then releasing %lld pod%s",
			 (long long)live, view_plural(live));
	else if (v->doing[0])
		str_add(out, v->doing);
	else if (!live)
		str_add(out, v->pod_count ? "no pod now: waiting for an offer"
					  : "no pod yet: waiting for an offer");
	else if (!view_count_phases(v, POD_WORKING, POD_WORKING))
		add_image_status(out, v);
}

static int view_percent(const struct view *v)
{
	int64_t over = v->done + v->failed;

	return v->total <= 0      ? 0
	       : over >= v->total ? 100
				  : (int)(100.0 * (double)over / (double)v->total);
}

/* In whole seconds, so that it ticks evenly. */
static char *view_seconds_show(char *to, size_t room, int64_t ms)
{
	if (ms < 60 * 1000)
		snprintf(to, room, "%llds", (long long)ms / 1000);
	else
		duration_show(to, room, ms - ms % 1000);
	return to;
}

/* "ETA 1m40s" */
static void view_eta_show(char *to, size_t room, const struct view *v)
{
	char left[24];

	if (v->eta_ms < 0)
		snprintf(to, room, "ETA unknown");
	else
		snprintf(to, room, "ETA %s",
			 view_seconds_show(left, sizeof(left), v->eta_ms + 999));
}

/* "12m04s of audio" */
static void view_sound_show(char *to, size_t room, double seconds)
{
	char text[24];

	snprintf(to, room, "%s of audio",
		 view_seconds_show(text, sizeof(text), (int64_t)(seconds * 1000)));
}

/* COST_FULL: "$0.03 of $1.00, about $0.06 in total"; COST_BRIEF: "$0.03/$1.00, ~$0.06". */
enum cost_form { COST_FULL, COST_BRIEF };
static void view_cost_show(char *to, size_t room, const struct view *v, enum cost_form form)
{
	bool brief = form == COST_BRIEF, unpriced = false;
	char cost[32], cap[48] = "", most[32], total[48], about[32];

	for (size_t i = 0; i < v->pod_count; i++)
		unpriced |= !price_is_given(v->pods[i].provider, v->pods[i].price_microusd_h);
	if (unpriced && !v->cost_microusd) {
		copy_text(to, room, "no price given");
		return;
	}
	view_money_show(cost, sizeof(cost), v->cost_microusd);
	if (v->max_cost_microusd)
		snprintf(cap, sizeof(cap), brief ? "/%s" : " of %s",
			 view_money_show(most, sizeof(most), v->max_cost_microusd));
	if (v->total_microusd == VIEW_UNKNOWN)
		snprintf(total, sizeof(total), brief ? ", ~?" : ", total unknown");
	else
		snprintf(total, sizeof(total), brief ? ", ~%s" : ", about %s in total",
			 view_money_show(about, sizeof(about), v->total_microusd));
	snprintf(to, room, "%s%s%s%s", unpriced ? "over " : "", cost, cap, total);
}

void view_total_line(struct str *out, const struct view *v)
{
	char text[200];

	str_addf(out, "%lld/%lld (%d %%)", (long long)v->done, (long long)v->total,
		 view_percent(v));
	if (v->failed)
		str_addf(out, ", %lld failed", (long long)v->failed);
	view_sound_show(text, sizeof(text), v->sound_s);
	if (v->sound_s > 0)
		str_addf(out, ", %s", text);
	view_eta_show(text, sizeof(text), v);
	str_addf(out, ", %s", text);
	view_cost_show(text, sizeof(text), v, COST_FULL);
	str_addf(out, ", %s", text);
}

/* ---- the screen: lines that fit, the least useful left out first ---- */

enum { PARTS_MOST = 8, PART_MAX = 160, BAR_MOST = 40, BAR_LEAST = 6 };

/* ---- a line of parts ---- */

struct part {
	char text[PART_MAX];
	const char *color; /* NULL: none */
	int spare;         /* 0: always shown; else the largest number is left out first */
};

struct parts {
	struct part list[PARTS_MOST];
	int count;
};

static void add_part(struct parts *to, int spare, const char *color, const char *fmt, ...)
	PRINTF(4, 5);
static void add_part(struct parts *to, int spare, const char *color, const char *fmt, ...)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	struct part *p = &to->list[to->count++];
	char raw[PART_MAX];
	va_list ap;

	va_start(ap, fmt);
	vformat_text(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	str_add_printable(&shown, raw, strlen(raw), 0);
	*p = (struct part){.color = color, .spare = spare};
	COPY_TEXT(p->text, str_text(&shown));
}

static int parts_width(const struct parts *p)
{
	int width = 0;

	for (int i = 0; i < p->count; i++)
		width += text_width(p->list[i].text) + (i ? 2 : 0);
	return width;
}

/* Leaves out parts until the others fit, or only fixed ones are left. */
static void fit_parts(struct parts *p, int columns)
{
	while (parts_width(p) > columns) {
		int most = 0;
		for (int i = 1; i < p->count; i++)
			most = p->list[i].spare >= p->list[most].spare ? i : most;
		if (!p->list[most].spare)
			return;
		memmove(&p->list[most], &p->list[most + 1],
			(size_t)(p->count - most - 1) * sizeof(*p->list));
		p->count--;
	}
}

static void add_colored(struct str *out, const char *text, const char *color)
{
	str_add(out, color ? color : "");
	str_add(out, text);
	str_add(out, color ? COLOR_OFF : "");
}

/* Adds the parts that fit, and cuts the line even if its fixed parts do not fit. */
static void add_parts_line(struct str *out, struct parts *p, struct view_size size)
{
	int left = size.columns;

	fit_parts(p, size.columns);
	for (int i = 0; i < p->count && left > 0; i++) {
		CLEANUP(str_free) struct str fitted = STR_INIT;
		if (i && left <= 2)
			break;
		str_add(out, i ? "  " : "");
		left -= i ? 2 : 0;
		text_fit(&fitted, p->list[i].text, left);
		add_colored(out, str_text(&fitted), size.color ? p->list[i].color : NULL);
		left -= text_width(str_text(&fitted));
	}
	str_addc(out, '\n');
}

static void add_text_line(struct str *out, const char *text, const char *color,
			  struct view_size size)
{
	struct parts one = {0};

	add_part(&one, 0, color, "%s", text);
	add_parts_line(out, &one, size);
}

/* ---- the pods ---- */

struct row {
	struct view_pod sum;
	int64_t count;
};

/* Whether two pods can share a row. */
static bool same_group(const struct view_pod *a, const struct view_pod *b)
{
	return a->phase == b->phase && !strcmp(a->gpu, b->gpu) &&
	       !strcmp(a->provider, b->provider) && !strcmp(a->region, b->region) &&
	       a->spot == b->spot;
}

/* Adds a pod to a row. The row shows only a detail that all its pods have. */
static void row_merge(struct row *to, const struct view_pod *p)
{
	to->count++;
	to->sum.price_microusd_h += p->price_microusd_h;
	to->sum.cost_microusd += p->cost_microusd;
	to->sum.done += p->done;
	to->sum.rate += p->rate;
	to->sum.image_percent = MIN(to->sum.image_percent, p->image_percent);
	if (strcmp(to->sum.detail, p->detail))
		to->sum.detail[0] = '\0';
}

/* Returns the number of rows, for pods that are not gone. grouped: pods of one offer in one phase
 * share a row. */
static size_t make_rows(const struct view *v, bool grouped, struct row *rows)
{
	size_t count = 0;

	for (size_t i = 0; i < v->pod_count; i++) {
		size_t at = grouped ? 0 : count;
		if (view_pod_over(&v->pods[i]))
			continue;
		while (at < count && !same_group(&rows[at].sum, &v->pods[i]))
			at++;
		if (at < count)
			row_merge(&rows[at], &v->pods[i]);
		else
			rows[count++] = (struct row){.sum = v->pods[i], .count = 1};
	}
	return count;
}

static const char *phase_color(enum pod_phase phase)
{
	switch (phase) {
	case POD_RENTING:
	case POD_BOOTING:
	case POD_CONNECTING:
	case POD_PREPARING:
	case POD_AWAITING_VOLUME:
	case POD_LOADING: return COLOR_YELLOW;
	case POD_WORKING: return COLOR_GREEN;
	case POD_AMBIGUOUS: return COLOR_RED;
	case POD_RELEASING:
	case POD_CONFIRMING: return COLOR_CYAN;
	case POD_GONE:
	case POD_NEVER: return COLOR_DIM;
	}
	return "";
}

static void add_phase_cell(struct table *t, const struct view_pod *p, bool color)
{
	if (p->phase == POD_BOOTING && p->image_percent >= 0)
		table_cell(t, "image %d %%", p->image_percent);
	else if (p->detail[0] && p->phase < POD_WORKING)
		table_cell(t, "%s", p->detail);
	else
		table_cell(t, "%s", pod_phase_name(p->phase));
	if (color)
		table_cell_color(t, phase_color(p->phase));
}

static void add_pod_row(struct table *t, const struct row *r, bool color)
{
	const struct view_pod *p = &r->sum;
	char rate[32];

	if (r->count > 1)
		table_cell(t, "%lld pods", (long long)r->count);
	else
		table_cell(t, "%s", p->name[0] ? p->name : "-");
	table_cell(t, "%s%s", gpu_called(p->gpu), p->spot ? " spot" : "");
	table_cell(t, "%s%s%s", p->provider, p->region[0] ? " " : "", p->region);
	table_cell(t, "%.2f", (double)p->price_microusd_h / 1e6);
	table_cell(t, "%lld", (long long)p->done);
	table_cell(t, "%s", view_rate_show(rate, sizeof(rate), p->rate));
	add_phase_cell(t, p, color);
}

static void add_pod_table(struct str *out, const struct row *rows, size_t count, bool heading,
			  struct view_size size)
{
	CLEANUP(table_free) struct table *t = table_new();

	table_column(t, heading ? "POD" : "", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, heading ? "GPU" : "", TABLE_LEFT, 1);
	table_column(t, heading ? "WHERE" : "", TABLE_LEFT, 3);
	table_column(t, heading ? "$/H" : "", TABLE_RIGHT, 4);
	table_column(t, heading ? "DONE" : "", TABLE_RIGHT, 2);
	table_column(t, heading ? "RATE" : "", TABLE_RIGHT, 5);
	table_column(t, heading ? "PHASE" : "", TABLE_LEFT, TABLE_SHRINKS);
	for (size_t i = 0; i < count; i++)
		add_pod_row(t, &rows[i], size.color);
	table_add(t, out, size.columns, heading);
}

/* "100 pods: 62 working, 30 booting" */
static void add_summary(struct str *out, const struct view *v, int64_t live, struct view_size size)
{
	static const enum pod_phase order[] = {
		POD_WORKING, POD_LOADING,   POD_AWAITING_VOLUME, POD_PREPARING, POD_CONNECTING,
		POD_BOOTING, POD_AMBIGUOUS, POD_RENTING,         POD_RELEASING, POD_CONFIRMING};
	CLEANUP(str_free) struct str line = STR_INIT;
	bool first = true;

	str_addf(&line, "%lld pod%s:", (long long)live, view_plural(live));
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		int64_t count = view_count_phases(v, order[i], order[i]);
		if (!count)
			continue;
		str_addf(&line, "%s %lld %s", first ? "" : ",", (long long)count,
			 pod_phase_name(order[i]));
		first = false;
	}
	add_text_line(out, str_text(&line), NULL, size);
}

/* Adds at most `room` lines: a line for each pod, else for each offer and phase, else one. */
static void add_pods(struct str *out, const struct view *v, int room, struct view_size size)
{
	int64_t live = view_live(v);

	if (!live || room < 1)
		return;
	struct row *rows = xcalloc((size_t)live, sizeof(*rows));
	size_t count = make_rows(v, live > room, rows);
	if (count > (size_t)room)
		add_summary(out, v, live, size);
	else
		add_pod_table(out, rows, count, count < (size_t)room, size);
	free(rows);
}

/* ---- the other lines ---- */

/* "30m", "1h30m": caps are round. */
static char *cap_show(char *to, size_t room, int64_t ms)
{
	long long minutes = ms / 60000;

	if (ms % 60000)
		return duration_show(to, room, ms);
	if (minutes < 60)
		snprintf(to, room, "%lldm", minutes);
	else if (minutes % 60)
		snprintf(to, room, "%lldh%lldm", minutes / 60, minutes % 60);
	else
		snprintf(to, room, "%lldh", minutes / 60);
	return to;
}

static void add_header_line(struct str *out, const struct view *v, struct view_size size)
{
	CLEANUP(str_free) struct str job = STR_INIT;
	struct parts p = {0};
	char started[24], cap[32], most[24];

	text_fit(&job, v->job, MAX(size.columns / 2, 8));
	add_part(&p, 0, COLOR_BOLD, "%s", str_text(&job));
	add_part(&p, 1, NULL, "run %s", v->run);
	clock_local(started, sizeof(started),
		    v->age_ms < 20LL * 3600 * 1000 ? "%H:%M:%S" : "%b %d %H:%M", v->started_ms);
	add_part(&p, 3, NULL, "started %s", started);
	if (v->max_cost_microusd && v->max_duration_ms)
		add_part(&p, 2, NULL, "cap %s, %s",
			 view_money_show(cap, sizeof(cap), v->max_cost_microusd),
			 cap_show(most, sizeof(most), v->max_duration_ms));
	else if (v->max_cost_microusd)
		add_part(&p, 2, NULL, "cap %s",
			 view_money_show(cap, sizeof(cap), v->max_cost_microusd));
	else if (v->max_duration_ms)
		add_part(&p, 2, NULL, "cap %s", cap_show(most, sizeof(most), v->max_duration_ms));
	add_parts_line(out, &p, size);
}

static void add_bar(struct str *out, const struct view *v, int width, bool color)
{
	int cells = width - 2, full = view_percent(v) * cells / 100;

	str_addc(out, '[');
	str_add(out, color ? COLOR_GREEN : "");
	for (int i = 0; i < full; i++)
		str_addc(out, '#');
	str_add(out, color ? COLOR_OFF : "");
	for (int i = full; i < cells; i++)
		str_addc(out, '.');
	str_add(out, "]  ");
}

static void add_progress_line(struct str *out, const struct view *v, struct view_size size)
{
	struct parts p = {0};
	char age[24], eta[40];

	add_part(&p, 0, NULL, "%d %%", view_percent(v));
	add_part(&p, 0, NULL, "%lld/%lld", (long long)v->done, (long long)v->total);
	if (v->failed)
		add_part(&p, 1, COLOR_RED, "%lld failed", (long long)v->failed);
	add_part(&p, 2, NULL, "%s", view_seconds_show(age, sizeof(age), v->age_ms));
	view_eta_show(eta, sizeof(eta), v);
	add_part(&p, 0, COLOR_BOLD, "%s", eta);
	fit_parts(&p, size.columns);
	int bar = MIN(size.columns - parts_width(&p) - 2, (int)BAR_MOST);
	if (bar >= BAR_LEAST) {
		add_bar(out, v, bar, size.color);
		size.columns -= bar + 2;
	}
	add_parts_line(out, &p, size);
}

static void add_cost_line(struct str *out, const struct view *v, struct view_size size)
{
	struct parts p = {0};
	char cost[160], sound[40];

	view_cost_show(cost, sizeof(cost), v, COST_FULL);
	if (text_width(cost) > size.columns)
		view_cost_show(cost, sizeof(cost), v, COST_BRIEF);
	add_part(&p, 0, NULL, "%s", cost);
	view_sound_show(sound, sizeof(sound), v->sound_s);
	if (v->sound_s > 0)
		add_part(&p, 1, NULL, "%s", sound);
	if (v->cached)
		add_part(&p, 2, COLOR_DIM, "%lld cached", (long long)v->cached);
	add_parts_line(out, &p, size);
}

/* What Ctrl-C does next, and how to continue: from long to short. NULL: nothing to say. */
static const char *const *choose_hints(const struct view *v)
{
	static const char *const watched[] = {
		"Ctrl-C stops watching; the run continues, and `burst attach` comes back to it",
		"Ctrl-C stops watching; the run continues", NULL};
	static const char *const first[] = {
		"Ctrl-C fetches what is finished, releases the pods and stops; `burst resume` "
		"continues",
		"Ctrl-C fetches what is finished and stops; `burst resume` continues",
		"Ctrl-C stops; `burst resume` continues", NULL};
	static const char *const second[] = {
		"Ctrl-C again releases the pods now, without fetching; `burst resume` continues",
		"Ctrl-C again releases the pods now", NULL};
	static const char *const third[] = {
		"Ctrl-C again exits at once, though a pod may still bill; `burst reap` releases it",
		"Ctrl-C again exits: a pod may still bill", NULL};
	static const char *const gone[] = {"all pods are gone; `burst resume` continues", NULL};

	if (v->watched)
		return watched;
	if (view_settled(v))
		return NULL;
	if (v->stops && v->pod_count && !view_live(v)) /* Ctrl-C could release nothing */
		return gone;
	return v->stops == 0 ? v->stopping ? NULL : first : v->stops == 1 ? second : third;
}

static void add_hint_line(struct str *out, const char *const *list, struct view_size size)
{
	while (text_width(*list) > size.columns && list[1])
		list++;
	add_text_line(out, *list, COLOR_DIM, size);
}

void view_draw(struct str *out, const struct view *v, struct view_size size)
{
	CLEANUP(str_free) struct str status = STR_INIT;
	const char *const *hint = choose_hints(v);
	int room = size.rows - 2;

	view_status(&status, v);
	bool pods = view_live(v) && room-- > 0, header = room-- > 0,
	     has_status = status.len && room-- > 0;
	bool has_hint = hint && room-- > 0;
	if (header)
		add_header_line(out, v, size);
	if (pods)
		add_pods(out, v, 1 + MAX(room, 0), size);
	add_progress_line(out, v, size);
	add_cost_line(out, v, size);
	if (has_status)
		add_text_line(out, str_text(&status), NULL, size);
	if (has_hint)
		add_hint_line(out, hint, size);
}
