/* earlier.c - what earlier runs of this job left: all segments, or some on a volume. */
#include "earlier.h"

#include <stdlib.h>

#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/show/output.h"
#include "jobs/calibrate/calibrate.h"

int earlier_rendered_all(struct launch *l, struct err *err)
{
	CLEANUP(str_free) struct str notes = STR_INIT;
	const struct job_ops *ops = l->run.setup.job_ops;
	size_t count = 0;

	if (runs_settle(&l->ctx->runs, NULL, err) < 0)
		return -1;
	ops->segments(l->run.setup.job, &count);
	l->run.row.total = l->run.row.cached = (int64_t)count;
	COPY_TEXT(l->run.row.job, l->order.job);
	COPY_TEXT(l->run.row.config, l->order.config);
	COPY_TEXT(l->run.row.output, l->run.output_dir);
	l->run.row.status = RUN_DONE;
	if (ops->finish(l->run.setup.job, l->run.setup.results, &notes, err) < 0)
		return -1;
	if (!l->ctx->quiet) {
		output_lines(stderr, str_text(&notes));
		if (count == 1)
			output_line(stderr, "the segment is already rendered: nothing rented");
		else
			output_line(stderr, "all %zu segments are already rendered: nothing rented",
				    count);
	}
	launch_say_suspects(l);
	int status = launch_finish(l, &l->run.err);
	engine_unblock_signals();
	if (l->run.err.kind && l->run.err.kind != ERR_INTERRUPTED)
		output_error(l->ctx, &l->run.err);
	launch_print_json(l);
	return status;
}

/* Finds a volume that may hold finished segments which are not fetched. Returns false if there is
 * none. For a released pod only durable segments count. A pod that may still exist is checked by
 * `burst resume`. */
static bool waits_on_volume(struct cmd_context *ctx, const struct run_row *run, char volume[64],
			    bool *alive)
{
	struct segment_row *segments = NULL;
	struct pod_row *pods = NULL;
	size_t home = 0, count = 0;
	bool waits = false;

	if (store_segments(ctx->store, run->id, &segments, &home, NULL) < 0 ||
	    (int64_t)home + run->cached >= run->total ||
	    store_pods(ctx->store, run->id, false, &pods, &count, NULL) < 0)
		count = 0;
	*alive = false;
	for (size_t i = 0; i < count; i++) {
		bool over = pod_row_over(&pods[i]);
		if (!pods[i].volume_id[0] || !pods[i].ready_ms || (over && !pods[i].volume_safe))
			continue;
		waits = true;
		*alive = *alive || !over;
		copy_text(volume, 64, pods[i].volume_name);
	}
	free(segments);
	free(pods);
	return waits;
}

void earlier_name_resume(struct launch *l)
{
	const char *config = l->order.config;
	struct run_row *runs = NULL;
	size_t count = 0;
	char volume[64];
	bool alive;

	if (!config[0] || store_runs(l->ctx->store, config, false, 1, &runs, &count, NULL) < 0 ||
	    !count)
		return;
	const struct run_row *run = &runs[0];
	if (!strcmp(run->job, l->order.job) && run->status != RUN_DONE &&
	    strcmp(run->type, CALIBRATE) && !run->detached &&
	    !run_is_alive(&l->ctx->runs, run->id) && waits_on_volume(l->ctx, run, volume, &alive))
		log_line(LOG_WARN,
			 "run %s of this job failed, and volume %s may hold segments that it "
			 "finished: `burst resume %s` takes them over; this run %srenders them "
			 "again",
			 run->id, volume, run->id, alive ? "releases its pods and " : "");
	free(runs);
}
