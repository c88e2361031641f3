/* view_words.c - short texts of a view: progress, what the run waits for, cost. */
#include "view_words.h"

#include "base/clock.h"
#include "base/gpus.h"

char *view_rate_show(char *to, size_t room, double per_s)
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

char *view_money_show(char *to, size_t room, int64_t microusd)
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

const char *view_plural(int64_t n)
{
	return n == 1 ? "" : "s";
}

bool view_pod_over(const struct view_pod *p)
{
	return p->phase == POD_GONE || p->phase == POD_NEVER;
}

int64_t view_live(const struct view *v)
{
	int64_t live = 0;

	for (size_t i = 0; i < v->pod_count; i++)
		live += !view_pod_over(&v->pods[i]);
	return live;
}

int64_t view_count(const struct view *v, enum pod_phase from, enum pod_phase to)
{
	int64_t count = 0;

	for (size_t i = 0; i < v->pod_count; i++)
		count += v->pods[i].phase >= from && v->pods[i].phase <= to;
	return count;
}

bool view_settled(const struct view *v)
{
	return v->total > 0 && v->done + v->failed >= v->total;
}

/* While no pod works yet, shows the image that is nearest to completion. */
static void add_image(struct str *out, const struct view *v)
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

static void add_release(struct str *out, const struct view *v, int64_t live)
{
	int64_t released = view_count(v, POD_CONFIRMING, POD_CONFIRMING), handed = 0;

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

static void add_finish(struct str *out, const struct view *v, int64_t live)
{
	add_release(out, v, live);
	if (v->finish != VIEW_FINISH_NOW)
		return;
	str_add(out, out->len ? "; " : "");
	if (v->joins)
		str_addf(out, "joining %lld file%s", (long long)v->done, view_plural(v->done));
	else
		str_add(out, "writing the manifest");
}

void view_status(struct str *out, const struct view *v)
{
	int64_t live = view_live(v);

	if (view_settled(v) || v->finish == VIEW_FINISH_NOW)
		add_finish(out, v, live);
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
	else if (!view_count(v, POD_WORKING, POD_WORKING))
		add_image(out, v);
}

int view_percent(const struct view *v)
{
	int64_t over = v->done + v->failed;

	return v->total <= 0      ? 0
	       : over >= v->total ? 100
				  : (int)(100.0 * (double)over / (double)v->total);
}

/* In whole seconds, so that it ticks evenly. */
char *view_seconds_show(char *to, size_t room, int64_t ms)
{
	if (ms < 60 * 1000)
		snprintf(to, room, "%llds", (long long)ms / 1000);
	else
		duration_show(to, room, ms - ms % 1000);
	return to;
}

void view_eta_show(char *to, size_t room, const struct view *v)
{
	char left[24];

	if (v->eta_ms < 0)
		snprintf(to, room, "ETA unknown");
	else
		snprintf(to, room, "ETA %s",
			 view_seconds_show(left, sizeof(left), v->eta_ms + 999));
}

void view_sound_show(char *to, size_t room, double seconds)
{
	char text[24];

	snprintf(to, room, "%s of audio",
		 view_seconds_show(text, sizeof(text), (int64_t)(seconds * 1000)));
}

/* "$0.03 of $1.00, about $0.06 in total" */
void view_cost_show(char *to, size_t room, const struct view *v, bool brief)
{
	char cost[32], cap[48] = "", most[32], total[48], about[32];

	view_money_show(cost, sizeof(cost), v->cost_microusd);
	if (v->max_cost_microusd)
		snprintf(cap, sizeof(cap), brief ? "/%s" : " of %s",
			 view_money_show(most, sizeof(most), v->max_cost_microusd));
	if (v->total_microusd == VIEW_UNKNOWN)
		snprintf(total, sizeof(total), brief ? ", ~?" : ", total unknown");
	else
		snprintf(total, sizeof(total), brief ? ", ~%s" : ", about %s in total",
			 view_money_show(about, sizeof(about), v->total_microusd));
	snprintf(to, room, "%s%s%s", cost, cap, total);
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
	view_cost_show(text, sizeof(text), v, false);
	str_addf(out, ", %s", text);
}
