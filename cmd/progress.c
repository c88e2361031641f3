/* progress.c - shows a run while its engine is at work: a live view on a terminal, elsewhere lines
 * with the time in front; and keeps the copy of the view that other commands read. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "launch.h"
#include "output.h"
#include "screen.h"
#include "view.h"

enum { PLAIN_EVERY_MS = 10000, FILE_EVERY_MS = 1000, RESTORE_EVERY_MS = 100 };

/* What joining takes for a second of sound, until this machine has measured it. */
#define JOIN_MS_PER_S_PRIOR 3.0
#define JOIN_FACT           "join_ms_per_s"

struct progress {
	const struct cmd_context *ctx;
	struct screen *screen; /* NULL: plain lines */
	struct view view;
	double join_ms_per_s;
	char *file; /* of the copy; NULL: not yet, or none */
	int64_t file_at, plain_at, restored_at;
	enum pod_phase *told; /* phases of the plain lines */
	size_t told_count;
	int64_t told_done;
};

struct progress *progress_new(const struct cmd_context *ctx)
{
	struct progress *p = xcalloc(1, sizeof(*p));
	char value[32];

	p->ctx = ctx;
	p->screen = ctx->live && !ctx->quiet ? screen_new() : NULL;
	p->join_ms_per_s = JOIN_MS_PER_S_PRIOR;
	if (ctx->store && store_fact(ctx->store, JOIN_FACT, value, sizeof(value)))
		p->join_ms_per_s = MIN(MAX(strtod(value, NULL), 0), 1000);
	return p;
}

void progress_free(struct progress *p)
{
	if (!p)
		return;
	progress_clear(p);
	screen_free(p->screen);
	if (p->file)
		unlink(p->file);
	free(p->file);
	view_free(&p->view);
	free(p->told);
	free(p);
}

void progress_clear(struct progress *p)
{
	if (p && p->screen)
		screen_clear(p->screen);
}

/* Of many lines in a row only some are followed by the view: the next draw is near. */
void progress_restore(struct progress *p)
{
	int64_t now = clock_boot_ms();

	if (!p || !p->screen || now < p->restored_at + RESTORE_EVERY_MS)
		return;
	p->restored_at = now;
	screen_restore(p->screen);
}

void progress_learn(struct progress *p, const struct engine *e)
{
	char value[32];

	if (!p->view.joins || !engine_finished_well(e) || p->view.sound_s < 1 || p->view.failed)
		return;
	snprintf(value, sizeof(value), "%.3f", (double)engine_finishing_ms(e) / p->view.sound_s);
	store_put_fact(p->ctx->store, JOIN_FACT, value, NULL);
}

/* ---- plain lines ---- */

static void add_offer(struct str *to, const struct view_pod *pod)
{
	char price[32];

	str_addf(to, "%s%s, %s%s%s", strcmp(pod->gpu, "none") ? pod->gpu : "no GPU",
		 pod->spot ? " spot" : "", pod->provider, pod->region[0] ? " " : "", pod->region);
	if (pod->price_microusd_h)
		str_addf(to, ", %s an hour",
			 money_show(price, sizeof(price), pod->price_microusd_h));
}

/* A pod is named once it has the name that it keeps. */
static void say_phase(const struct view_pod *pod, enum pod_phase before)
{
	CLEANUP(str_free) struct str offer = STR_INIT;

	add_offer(&offer, pod);
	if (!pod->name[0] && pod->phase == POD_RENTING)
		output_event("renting a pod (%s)", str_text(&offer));
	else if (pod->name[0] && before < POD_BOOTING)
		output_event("pod %s: %s (%s)", pod->name, pod_phase_name(pod->phase),
			     str_text(&offer));
	else if (pod->name[0])
		output_event("pod %s: %s", pod->name, pod_phase_name(pod->phase));
}

static void say_phases(struct progress *p)
{
	p->told = xrealloc(p->told, (p->view.pod_count + 1) * sizeof(*p->told));
	for (; p->told_count < p->view.pod_count; p->told_count++)
		p->told[p->told_count] = POD_WANTED;
	for (size_t i = 0; i < p->view.pod_count; i++) {
		const struct view_pod *pod = &p->view.pods[i];
		enum pod_phase before = p->told[i];
		if (before == pod->phase)
			continue;
		p->told[i] = pod->phase;
		if (pod->phase != POD_NEVER && pod->phase != POD_QUEUED &&
		    pod->phase != POD_LOADING)
			say_phase(pod, before);
	}
}

static void draw_plain(struct progress *p, int64_t now)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	int64_t over = p->view.done + p->view.failed;

	say_phases(p);
	bool all = over == p->view.total && over != p->told_done;
	if (!all && now < p->plain_at)
		return;
	if (p->plain_at && over != p->told_done) {
		view_total_line(&line, &p->view);
		output_event("%s", str_text(&line));
		p->told_done = over;
	}
	p->plain_at = now + PLAIN_EVERY_MS;
}

/* ---- the live view ---- */

static void draw_live(struct progress *p)
{
	CLEANUP(str_free) struct str lines = STR_INIT;
	struct view_size size = {.color = p->ctx->color};

	screen_size(&size.columns, &size.rows);
	view_draw(&lines, &p->view, size);
	screen_draw(p->screen, str_text(&lines));
}

static void keep_copy(struct progress *p, const struct engine *e, int64_t now)
{
	if (now < p->file_at || !engine_of(e)->run_dir)
		return;
	if (!p->file)
		p->file = path_join(engine_of(e)->run_dir, VIEW_FILE);
	view_put(&p->view, p->file);
	p->file_at = now + FILE_EVERY_MS;
}

void progress_draw(struct progress *p, const struct engine *e)
{
	int64_t now = clock_boot_ms();

	view_of_engine(&p->view, e, p->join_ms_per_s);
	keep_copy(p, e, now);
	if (p->screen)
		draw_live(p);
	else if (!p->ctx->quiet)
		draw_plain(p, now);
}
