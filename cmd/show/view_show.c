/* view_show.c - shows a view: redrawn on a terminal; elsewhere a line for each change of a pod's
 * phase and sometimes the total. */
#include "view_show.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "output.h"
#include "screen.h"

enum { PLAIN_EVERY_MS = 10000, RESTORE_EVERY_MS = 100 };

struct view_show {
	const struct cmd_context *ctx;
	struct screen *screen; /* NULL: plain lines */
	int64_t restored_at, plain_at;
	enum pod_phase *told; /* phases in the plain lines */
	size_t reported_count;
	int64_t reported_done;
};

/* ---- plain lines ---- */

static void add_offer(struct str *to, const struct view_pod *pod)
{
	char price[32];

	str_addf(to, "%s%s, %s%s%s", gpu_called(pod->gpu), pod->spot ? " spot" : "", pod->provider,
		 pod->region[0] ? " " : "", pod->region);
	if (pod->price_microusd_h)
		str_addf(to, ", %s an hour",
			 money_show(price, sizeof(price), pod->price_microusd_h));
}

/* Whether the create before this one got no pod from the same offer. */
static bool is_another_try(const struct view *v, size_t at)
{
	const struct view_pod *pod = &v->pods[at];

	while (at-- > 0) {
		const struct view_pod *p = &v->pods[at];
		if (!strcmp(p->provider, pod->provider) && !strcmp(p->gpu, pod->gpu) &&
		    !strcmp(p->region, pod->region) && p->spot == pod->spot)
			return p->phase == POD_NEVER;
	}
	return false;
}

/* Names a pod once its name is final. */
static void say_phase(const struct view *v, size_t at, enum pod_phase before)
{
	const struct view_pod *pod = &v->pods[at];
	CLEANUP(str_free) struct str offer = STR_INIT;

	add_offer(&offer, pod);
	if (!pod->name[0] && pod->phase == POD_RENTING && is_another_try(v, at))
		return;
	if (!pod->name[0] && pod->phase == POD_RENTING)
		output_event("renting a pod (%s)", str_text(&offer));
	else if (pod->name[0] && before < POD_BOOTING)
		output_event("pod %s: %s (%s)", pod->name, pod_phase_name(pod->phase),
			     str_text(&offer));
	else if (pod->name[0])
		output_event("pod %s: %s", pod->name,
			     pod->handed ? "handed to another run" : pod_phase_name(pod->phase));
}

static void say_phases(struct view_show *s, const struct view *v)
{
	s->told = xrealloc(s->told, (v->pod_count + 1) * sizeof(*s->told));
	for (; s->reported_count < v->pod_count; s->reported_count++)
		s->told[s->reported_count] = (enum pod_phase)0;
	for (size_t i = 0; i < v->pod_count; i++) {
		const struct view_pod *pod = &v->pods[i];
		enum pod_phase before = s->told[i];
		if (before == pod->phase)
			continue;
		s->told[i] = pod->phase;
		if (pod->phase != POD_NEVER && pod->phase != POD_AWAITING_VOLUME &&
		    pod->phase != POD_LOADING)
			say_phase(v, i, before);
	}
}

/* At most every 10 s, and once all is done. */
static void draw_plain(struct view_show *s, const struct view *v, int64_t now)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	int64_t over = v->done + v->failed;
	bool all = over == v->total && over != s->reported_done;

	say_phases(s, v);
	if (!all && now < s->plain_at)
		return;
	if ((s->plain_at || v->watched) && over != s->reported_done) {
		view_total_line(&line, v);
		output_event("%s", str_text(&line));
		s->reported_done = over;
	}
	s->plain_at = now + PLAIN_EVERY_MS;
}

/* ---- the live view ---- */

static void draw_live(struct view_show *s, const struct view *v)
{
	CLEANUP(str_free) struct str lines = STR_INIT;
	struct view_size size = {.color = s->ctx->color};

	screen_size(&size.columns, &size.rows);
	view_draw(&lines, v, size);
	screen_draw(s->screen, str_text(&lines));
}

/* Set while there is a live view. */
static struct view_show *shown;

static void before_line(void)
{
	if (shown)
		screen_clear(shown->screen);
}

/* Redraws after only some of many lines, since the next draw is near. */
static void after_line(void)
{
	int64_t now = clock_boot_ms();

	if (!shown || !shown->ctx->live || now < shown->restored_at + RESTORE_EVERY_MS)
		return;
	shown->restored_at = now;
	screen_restore(shown->screen);
}

struct view_show *view_show_new(const struct cmd_context *ctx)
{
	struct view_show *s = xcalloc(1, sizeof(*s));

	s->ctx = ctx;
	s->reported_done = -(int64_t)1;
	if (ctx->live && !ctx->quiet) {
		s->screen = screen_new();
		shown = s;
		output_around_lines(before_line, after_line);
	}
	return s;
}

static void end_live(struct view_show *s)
{
	if (s->ctx->live)
		screen_clear(s->screen);
	output_around_lines(NULL, NULL);
	shown = NULL;
	screen_free(TAKE(s->screen));
}

void view_show_free(struct view_show *s)
{
	if (!s)
		return;
	if (s->screen)
		end_live(s);
	free(s->told);
	free(s);
}

void view_show_next(struct view_show *s, const struct view *v, int64_t now_ms)
{
	if (s->screen && !s->ctx->live)
		end_live(s);
	if (s->screen)
		draw_live(s, v);
	else if (!s->ctx->quiet)
		draw_plain(s, v, now_ms);
}
