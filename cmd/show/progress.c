/* progress.c - shows a run while its engine works, and keeps the copy of the view that other
 * commands read. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "progress.h"
#include "store/facts.h"
#include "view_show.h"

enum { FILE_EVERY_MS = 1000 };

/* Time to join a second of sound, until measured on this machine. */
#define JOIN_MS_PER_S_PRIOR 8.0

struct progress {
	const struct cmd_context *ctx;
	struct view_show *show;
	struct view view;
	double join_ms_per_s;
	char *file; /* of the copy; NULL: none (yet) */
	int64_t file_at;
};

struct progress *progress_new(const struct cmd_context *ctx)
{
	struct progress *p = xcalloc(1, sizeof(*p));
	char value[32];

	p->ctx = ctx;
	p->show = view_show_new(ctx);
	p->join_ms_per_s = JOIN_MS_PER_S_PRIOR;
	if (ctx->store && fact_get(ctx->store, FACT_JOIN_SPEED, NULL, NULL, value, sizeof(value)))
		p->join_ms_per_s = MIN(MAX(strtod(value, NULL), 0), 1000);
	return p;
}

void progress_free(struct progress *p)
{
	if (!p)
		return;
	view_show_free(p->show);
	if (p->file)
		unlink(p->file);
	free(p->file);
	view_free(&p->view);
	free(p);
}

void progress_learn(struct progress *p, const struct engine *e)
{
	char value[32];

	if (!p->view.joins || !engine_finished_well(e) || p->view.sound_s < 1 || p->view.failed)
		return;
	snprintf(value, sizeof(value), "%.3f", (double)engine_finishing_ms(e) / p->view.sound_s);
	fact_put(p->ctx->store, FACT_JOIN_SPEED, NULL, NULL, value, NULL);
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
	view_show_next(p->show, &p->view, now);
}
