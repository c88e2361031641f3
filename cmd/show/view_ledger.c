/* view_ledger.c - fills a view from the rows of a run, its pods and its segments. */
#include "view_ledger.h"

#include <stdlib.h>

#include "base/clock.h"
#include "phase.h"
#include "report.h"
#include "store/pod_cost.h"

static void pod_of_row(struct view_pod *to, const struct pod_row *row, int64_t now)
{
	*to = (struct view_pod){.spot = row->spot,
				.phase = phase_of_row(row),
				.image_percent = VIEW_UNKNOWN,
				.price_microusd_h = row->price_microusd_h,
				.cost_microusd = pod_row_cost(row, now)};
	COPY_TEXT(to->name, row->id);
	COPY_TEXT(to->provider, row->provider);
	COPY_TEXT(to->gpu, row->gpu);
	COPY_TEXT(to->region, row->region);
}

static void add_segment(struct view *v, const struct segment_row *segment,
			const struct pod_row *rows)
{
	v->failed += segment->state == SEGMENT_ROW_FAILED;
	if (segment->state != SEGMENT_ROW_SAFE)
		return;
	v->done++;
	v->sound_s += segment->seconds;
	for (size_t i = 0; i < v->pod_count; i++)
		v->pods[i].done += !strcmp(rows[i].attempt, segment->attempt);
}

static void set_rates(struct view *v, const struct pod_row *rows, int64_t now)
{
	for (size_t i = 0; i < v->pod_count; i++)
		if (v->pods[i].phase == POD_WORKING && now > rows[i].ready_ms)
			v->pods[i].rate =
				(double)v->pods[i].done * 1000 / (double)(now - rows[i].ready_ms);
}

static void fill(struct view *v, const struct run_row *run, int64_t now)
{
	struct view_pod *pods = v->pods;

	*v = (struct view){.started_ms = run->started_ms,
			   .age_ms = MAX(now - run->started_ms, 0),
			   .max_cost_microusd = run->max_cost_microusd,
			   .max_duration_ms = run->deadline_ms
						      ? MAX(run->deadline_ms - run->started_ms, 0)
						      : 0,
			   .total = run->total,
			   .done = run->cached,
			   .cached = run->cached,
			   .cost_microusd = run->cost_microusd,
			   .total_microusd = VIEW_UNKNOWN,
			   .eta_ms = VIEW_UNKNOWN,
			   .pods = pods};
	COPY_TEXT(v->job, run->job);
	COPY_TEXT(v->run, run->id);
}

bool view_of_ledger(struct view *v, const struct cmd_context *ctx, const char *run)
{
	struct segment_row *segments = NULL;
	struct pod_row *rows = NULL;
	size_t pod_count = 0, segment_count = 0;
	int64_t now = clock_wall_ms();
	struct run_row row;
	bool known = store_run(ctx->store, run, &row, NULL) == 0 &&
		     run_so_far(&ctx->runs, &row, now, NULL) == 0 &&
		     store_pods(ctx->store, run, false, &rows, &pod_count, NULL) == 0 &&
		     store_segments(ctx->store, run, &segments, &segment_count, NULL) == 0;

	if (known) {
		fill(v, &row, now);
		v->pod_count = pod_count;
		v->pods = xrealloc(v->pods, (pod_count + 1) * sizeof(*v->pods));
		for (size_t i = 0; i < pod_count; i++)
			pod_of_row(&v->pods[i], &rows[i], now);
		for (size_t i = 0; i < segment_count; i++)
			add_segment(v, &segments[i], rows);
		set_rates(v, rows, now);
	}
	free(segments);
	free(rows);
	return known;
}
