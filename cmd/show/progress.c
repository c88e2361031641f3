/* progress.c - shows a run while its engine works, and keeps the copy of the view that other
 * commands read. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "join_time.h"
#include "progress.h"
#include "store/facts.h"
#include "view_show.h"

enum { FILE_EVERY_MS = 1000 };

struct progress {
	const struct cmd_context *ctx;
	struct view_show *show;
	struct view view;
	struct join_time join;
	char join_of[200]; /* key of the fact: what is made of how the track is joined */
	char *file;        /* of the copy; NULL: none (yet) */
	int64_t file_at;
};

struct progress *progress_new(const struct cmd_context *ctx)
{
	struct progress *p = xcalloc(1, sizeof(*p));

	p->ctx = ctx;
	p->show = view_show_new(ctx);
	return p;
}

/* Loudness and other formats than WAV take far longer than copying sound: they are learned apart.
 */
static void expect_join(struct progress *p, const struct engine *e)
{
	const struct engine_setup *s = engine_of(e);
	const char *const *names =
		s->job_ops && s->job_ops->finish_names ? s->job_ops->finish_names(s->job) : NULL;
	const struct section *job = config_job(p->ctx->config);
	/* other types of job have no such key */
	const struct section *join = job && names ? section_group(job, "join") : NULL;
	struct job_finish finish = {0};
	CLEANUP(str_free) struct str of = STR_INIT;
	char value[64];

	str_add(&of, join && section_has(join, "loudness") ? "loudness" : "plain");
	for (; names && *names; names++) {
		const char *end = strrchr(*names, '.');
		str_addf(&of, " %s", end ? end + 1 : *names);
	}
	COPY_TEXT(p->join_of, str_text(&of));
	if (s->job_ops && s->job_ops->finish_progress)
		s->job_ops->finish_progress(s->job, &finish);
	p->join = join_time_prior(finish.ms_per_s, join_time_slowdown());
	if (p->ctx->store &&
	    fact_get(p->ctx->store, FACT_JOIN_TIME, p->join_of, NULL, value, sizeof(value)))
		join_time_read(&p->join, value);
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
	char value[64];

	if (!p->view.joins || !engine_finished_well(e) || p->view.failed)
		return;
	join_time_learn(&p->join, p->view.sound_s, (double)engine_finishing_ms(e));
	join_time_write(&p->join, value);
	fact_put(p->ctx->store, FACT_JOIN_TIME, p->join_of, NULL, value, NULL);
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

	if (!p->join_of[0])
		expect_join(p, e);
	view_of_engine(&p->view, e, &p->join);
	keep_copy(p, e, now);
	view_show_next(p->show, &p->view, now);
}
