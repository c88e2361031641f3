/* load.c - loads a whole job, locks it, and finds what is done. */
#include "base/err.h"
#include "check.h"
#include "jobs/common.h"
#include "stages.h"

/* renders: also check what only a new pod needs. */
static int read_whole_job(struct launch *l, bool renders, struct err *err)
{
	if (check_all(l, renders, err) < 0)
		return -1;
	launch_make_results(l);
	return 0;
}

static int lock(struct launch *l, struct err *err)
{
	if (run_lock_job(&l->run, l->order.config, l->order.job, err) < 0)
		return -1;
	return run_lock_output(&l->run, err);
}

static int find_cached(struct launch *l, struct err *err)
{
	struct engine_setup *s = &l->run.setup;
	CLEANUP(str_free) struct str notes = STR_INIT;
	size_t len;

	if (s->job_ops->find_cached(s->job, s->results, l->ctx->overwrite, err) < 0)
		return -1;
	int status = s->job_ops->bring ? s->job_ops->bring(s->job, s->results, &notes, err) : 0;
	for (const char *at = str_text(&notes), *line; (line = str_next_line(&at, &len));)
		log_line(LOG_WARN, "%.*s", (int)len, line);
	return status;
}

int launch_load_job(struct launch *l, struct err *err)
{
	if (read_whole_job(l, l->ctx->cmd == &cmd_run, err) < 0 || lock(l, err) < 0 ||
	    job_check_output(l->run.output_dir, err) < 0)
		return -1;
	return find_cached(l, err);
}

/* If something is left to render, reports before it costs money what a stage would overwrite.
 */
static int check_stages(const struct launch *l, struct err *err)
{
	return run_open_segments(&l->run) ? stages_check_output(l, err) : 0;
}

int launch_load_to_render(struct launch *l, struct err *err)
{
	return launch_load_job(l, err) < 0 ? -1 : check_stages(l, err);
}

int launch_peek_job(struct launch *l, struct err *err)
{
	struct engine_setup *s = &l->run.setup;
	size_t count;

	if (read_whole_job(l, true, err) < 0)
		return -1;
	if (s->job_ops->find_cached(s->job, s->results, l->ctx->overwrite, err) == 0 &&
	    check_stages(l, err) == 0)
		return 0;
	/* a file that appeared after the manifest was read belongs to a running run */
	if (err->kind != ERR_CONFIG || !run_output_is_locked(l->run.output_dir))
		return -1;
	err_clear(err);
	s->job_ops->segments(s->job, &count);
	memset(s->results, 0, count * sizeof(*s->results));
	return s->job_ops->find_cached(s->job, s->results, true, err);
}

int launch_foresee(struct launch *l, struct err *err)
{
	const struct engine_setup *s = &l->run.setup;
	CLEANUP(str_free) struct str notes = STR_INIT;
	const char *line;
	size_t len;

	if (!s->job_ops->foresee)
		return 0;
	int status = s->job_ops->foresee(s->job, s->results, &notes, err);
	for (const char *at = str_text(&notes); (line = str_next_line(&at, &len));)
		log_line(LOG_WARN, "%.*s", (int)len, line);
	return status;
}
