/* view.c - fills a view of a run in progress: from its engine, from the copy in the run's folder,
 * or from the ledger. */
#include "view.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/mem.h"
#include "base/path.h"
#include "engine/engine.h"
#include "report.h"
#include "store/pod_cost.h"

/* ---- how long joining takes ---- */

/* More time than this for a second of sound means that ffmpeg encodes it; copying takes less. */
#define ENCODES_PER_S_MS 1.0

/* Once this share of a join is done, its measured pace counts as much as the expectation. */
#define TRUSTED_SHARE 0.05

/* ms_per_s: for a second of sound, on an idle machine. Only encoding gets slower by `slowdown`:
 * copying waits for the disk, and took as long beside seven processes for each processor. */
static double join_expected_ms(double ms_per_s, double sound_s, double slowdown)
{
	bool encodes = ms_per_s > ENCODES_PER_S_MS;

	return encodes ? 400 + ms_per_s * slowdown * sound_s : 100 + ms_per_s * sound_s;
}

/* What is left of a join after after_ms, when this share of it is done. */
static double join_left_ms(double expected_ms, double after_ms, double share)
{
	double all_ms = (after_ms + TRUSTED_SHARE * expected_ms) / (share + TRUSTED_SHARE);

	return (1 - share) * all_ms;
}

/* ---- from a running engine ---- */

/* English at an ordinary pace; the example quiz has 0.07. */
#define SOUND_S_PER_CHARACTER 0.07

void view_free(struct view *v)
{
	free(v->pods);
	*v = (struct view){0};
}

static void pod_of_engine(struct view_pod *to, const struct engine *e, int i, int64_t now)
{
	const struct core_pod *p = core_pod_at(engine_core(e), i);

	*to = (struct view_pod){.spot = p->rental.offer.spot,
				.handed = p->rental.exit == EXIT_TAKEN,
				.phase = p->phase,
				.image_percent = p->phase == POD_BOOTING
							 ? engine_image_percent(e, i)
							 : VIEW_UNKNOWN,
				.price_microusd_h = p->rental.price_microusd_h,
				.cost_microusd = core_cost(p, now),
				.done = engine_pod_rendered(e, i)};
	COPY_TEXT(to->name, p->rental.id);
	COPY_TEXT(to->provider, p->rental.offer.provider);
	COPY_TEXT(to->gpu, p->rental.view.gpu[0] ? p->rental.view.gpu : p->rental.offer.gpu);
	COPY_TEXT(to->region,
		  p->rental.view.region[0] ? p->rental.view.region : p->rental.offer.region);
	COPY_TEXT(to->detail,
		  p->rental.place != PLACE_GIVEN ? "in queue" : engine_phase_detail(e, i));
	int64_t worked = p->presence.ready_at ? now - p->presence.ready_at : 0;
	if (p->phase == POD_WORKING && worked > 0)
		to->rate = (double)to->done * 1000 / (double)worked;
}

static double sound_of_safe_segments(const struct engine *e)
{
	const struct engine_setup *s = engine_of(e);
	size_t count = 0;
	double seconds = 0;

	if (!s->job_ops)
		return 0;
	s->job_ops->segments(s->job, &count);
	for (size_t i = 0; i < count; i++)
		seconds += s->results[i].state == SEGMENT_SAFE ? s->results[i].seconds : 0;
	return seconds;
}

static bool has_join(const struct engine_setup *s)
{
	const char *const *names =
		s->job_ops && s->job_ops->finish_names ? s->job_ops->finish_names(s->job) : NULL;

	return names && *names;
}

/* Sound of all segments: from the length of those that are done, else from their characters. */
static double expected_sound_s(const struct view *v, double weight_left)
{
	return v->done ? v->sound_s * (double)v->total / (double)v->done
		       : weight_left * SOUND_S_PER_CHARACTER;
}

/* Time until the run ends, or VIEW_UNKNOWN. Joining overlaps with the release of pods. */
static int64_t expect_end_ms(const struct view *v, const struct engine *e,
			     const struct core_outlook *o, double weight_left, double slowdown)
{
	const struct engine_setup *s = engine_of(e);
	struct job_finish finish = {0};

	if (o->render_ms < 0)
		return VIEW_UNKNOWN;
	if (v->finish == VIEW_FINISH_OVER || !v->joins || v->stopping)
		return v->finish == VIEW_FINISH_OVER ? o->gone_ms : MAX(o->gone_ms, o->render_ms);
	if (s->job_ops->finish_progress)
		s->job_ops->finish_progress(s->job, &finish);
	double join_ms =
		join_expected_ms(finish.ms_per_s, expected_sound_s(v, weight_left), slowdown);
	if (v->finish == VIEW_FINISH_NOW)
		return MAX(o->gone_ms,
			   (int64_t)join_left_ms(join_ms, (double)engine_finishing_ms(e),
						 finish.share));
	return MAX(o->gone_ms, o->render_ms + (int64_t)join_ms);
}

void view_of_engine(struct view *v, const struct engine *e, double slowdown)
{
	const struct engine_setup *s = engine_of(e);
	const struct core *core = engine_core(e);
	int64_t now = clock_boot_ms();
	struct view_pod *pods = v->pods;
	struct core_summary sum;
	struct core_outlook o;

	core_summary(core, now, &sum);
	core_outlook(core, now, &o);
	*v = (struct view){.started_ms = s->run->started_ms,
			   .age_ms = now - engine_started_ms(e),
			   .max_cost_microusd = s->run->max_cost_microusd,
			   .max_duration_ms = s->conf.max_duration_ms,
			   .total = (int64_t)sum.total,
			   .done = (int64_t)sum.local,
			   .cached = (int64_t)sum.cached,
			   .failed = (int64_t)sum.failed,
			   .sound_s = sound_of_safe_segments(e),
			   .cost_microusd = s->run->cost_microusd + sum.cost_microusd,
			   .total_microusd = o.total_microusd < 0
						     ? VIEW_UNKNOWN
						     : s->run->cost_microusd + o.total_microusd,
			   .stops = o.stops,
			   .stopping = o.stopping,
			   .joins = has_join(s),
			   .finish = !engine_finishing(e) ? VIEW_FINISH_NOT_YET
				     : engine_finished(e) ? VIEW_FINISH_OVER
							  : VIEW_FINISH_NOW,
			   .pod_count = (size_t)core_pod_count(core)};
	COPY_TEXT(v->job, s->run->job);
	COPY_TEXT(v->run, s->run->id);
	COPY_TEXT(v->doing, engine_doing(e));
	v->pods = xrealloc(pods, (v->pod_count + 1) * sizeof(*v->pods));
	for (size_t i = 0; i < v->pod_count; i++)
		pod_of_engine(&v->pods[i], e, (int)i, now);
	v->eta_ms = expect_end_ms(v, e, &o, sum.weight_left, slowdown);
}

/* ---- the copy in the run's folder: JSON, overwritten in place about once a second ---- */

enum { VIEW_FILE_MAX = 16 << 20, VIEW_PODS_MAX = 10000, PERCENT_MOST = 100 };

/* ---- writing ---- */

static json_t *pod_json(const struct view_pod *p)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:i, s:i, s:I, s:I, s:I, s:f}",
			 "name", p->name, "provider", p->provider, "gpu", p->gpu, "region",
			 p->region, "detail", p->detail, "spot", p->spot, "handed", p->handed,
			 "phase", (int)p->phase, "image", p->image_percent, "price",
			 (json_int_t)p->price_microusd_h, "cost", (json_int_t)p->cost_microusd,
			 "done", (json_int_t)p->done, "rate", p->rate);
}

static json_t *view_json(const struct view *v)
{
	json_t *pods = json_array();

	for (size_t i = 0; i < v->pod_count; i++)
		json_array_append_new(pods, pod_json(&v->pods[i]));
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:I, "
			 "s:i, s:b, s:b, s:i, s:s, s:o}",
			 "job", v->job, "run", v->run, "started", (json_int_t)v->started_ms, "age",
			 (json_int_t)v->age_ms, "max_cost", (json_int_t)v->max_cost_microusd,
			 "max_duration", (json_int_t)v->max_duration_ms, "total",
			 (json_int_t)v->total, "done", (json_int_t)v->done, "cached",
			 (json_int_t)v->cached, "failed", (json_int_t)v->failed, "sound",
			 v->sound_s, "cost", (json_int_t)v->cost_microusd, "cost_total",
			 (json_int_t)v->total_microusd, "eta", (json_int_t)v->eta_ms, "stops",
			 v->stops, "stopping", v->stopping, "joins", v->joins, "finish",
			 (int)v->finish, "doing", v->doing, "pods", pods);
}

/* Neither syncs nor renames: the copy is stale a second later, and a reader of a partial one waits
 * for the next. */
void view_put(const struct view *v, const char *path)
{
	json_t *value = view_json(v);
	CLEANUP(free_text) char *line = value ? jsonx_line(value) : NULL;
	FILE *f = line ? fopen(path, "we") : NULL;

	json_decref(value);
	if (!f)
		return;
	fchmod(fileno(f), 0600);
	fputs(line, f);
	fputc('\n', f);
	fclose(f);
}

/* ---- reading ---- */

static void pod_of_json(struct view_pod *p, const json_t *from)
{
	*p = (struct view_pod){.spot = jsonx_bool(from, "spot", false),
			       .handed = jsonx_bool(from, "handed", false),
			       .phase = (enum pod_phase)jsonx_bounded(from, "phase", 0, POD_NEVER),
			       .image_percent = (int)MIN(jsonx_int(from, "image", VIEW_UNKNOWN),
							 (int64_t)PERCENT_MOST),
			       .price_microusd_h = jsonx_bounded(from, "price", 0, MONEY_MOST),
			       .cost_microusd = jsonx_bounded(from, "cost", 0, MONEY_MOST),
			       .done = jsonx_bounded(from, "done", 0, STORE_NUMBER_MOST),
			       .rate = jsonx_number(from, "rate", 0)};
	COPY_TEXT(p->name, jsonx_text(from, "name", ""));
	COPY_TEXT(p->provider, jsonx_text(from, "provider", ""));
	COPY_TEXT(p->gpu, jsonx_text(from, "gpu", ""));
	COPY_TEXT(p->region, jsonx_text(from, "region", ""));
	COPY_TEXT(p->detail, jsonx_text(from, "detail", ""));
}

static void view_of_json(struct view *v, const json_t *from)
{
	const json_t *pods = json_object_get(from, "pods");
	struct view_pod *list = v->pods;

	*v = (struct view){
		.started_ms = jsonx_bounded(from, "started", 0, STORE_NUMBER_MOST),
		.age_ms = jsonx_bounded(from, "age", 0, STORE_NUMBER_MOST),
		.max_cost_microusd = jsonx_bounded(from, "max_cost", 0, MONEY_MOST),
		.max_duration_ms = jsonx_bounded(from, "max_duration", 0, STORE_NUMBER_MOST),
		.total = jsonx_bounded(from, "total", 0, STORE_NUMBER_MOST),
		.done = jsonx_bounded(from, "done", 0, STORE_NUMBER_MOST),
		.cached = jsonx_bounded(from, "cached", 0, STORE_NUMBER_MOST),
		.failed = jsonx_bounded(from, "failed", 0, STORE_NUMBER_MOST),
		.sound_s = jsonx_number(from, "sound", 0),
		.cost_microusd = jsonx_bounded(from, "cost", 0, MONEY_MOST),
		.total_microusd =
			MAX(jsonx_int(from, "cost_total", VIEW_UNKNOWN), (int64_t)VIEW_UNKNOWN),
		.eta_ms = MAX(jsonx_int(from, "eta", VIEW_UNKNOWN), (int64_t)VIEW_UNKNOWN),
		.stops = (int)jsonx_bounded(from, "stops", 0, 3),
		.stopping = jsonx_bool(from, "stopping", false),
		.joins = jsonx_bool(from, "joins", false),
		.finish = (enum view_finish)jsonx_bounded(from, "finish", 0, VIEW_FINISH_OVER),
		.pod_count = MIN(json_array_size(pods), (size_t)VIEW_PODS_MAX)};
	COPY_TEXT(v->job, jsonx_text(from, "job", ""));
	COPY_TEXT(v->run, jsonx_text(from, "run", ""));
	COPY_TEXT(v->doing, jsonx_text(from, "doing", ""));
	v->pods = xrealloc(list, (v->pod_count + 1) * sizeof(*v->pods));
	for (size_t i = 0; i < v->pod_count; i++)
		pod_of_json(&v->pods[i], json_array_get(pods, i));
}

bool view_get(struct view *v, const char *path)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (path_read_plain(path, VIEW_FILE_MAX, &text, NULL) < 0)
		return false;
	json_t *from = jsonx_parse(str_text(&text), text.len, NULL);
	if (!from)
		return false;
	view_of_json(v, from);
	json_decref(from);
	return true;
}

/* ---- from the ledger ---- */

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

/* Counts a segment for the view and for the pod that rendered it. rows: of the pods. */
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

static void set_pod_rates(struct view *v, const struct pod_row *rows, int64_t now)
{
	for (size_t i = 0; i < v->pod_count; i++)
		if (v->pods[i].phase == POD_WORKING && now > rows[i].ready_ms)
			v->pods[i].rate =
				(double)v->pods[i].done * 1000 / (double)(now - rows[i].ready_ms);
}

static void fill_from_run(struct view *v, const struct run_row *run, int64_t now)
{
	struct view_pod *pods = v->pods;

	*v = (struct view){.started_ms = run->started_ms,
			   .age_ms = MAX(now - run->started_ms, 0),
			   .max_cost_microusd = run->max_cost_microusd,
			   .max_duration_ms =
				   run->ends_by_ms ? MAX(run->ends_by_ms - run->started_ms, 0) : 0,
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
		     run_sum_so_far(&ctx->runs, &row, now, NULL) == 0 &&
		     store_pods(ctx->store, run, false, &rows, &pod_count, NULL) == 0 &&
		     store_segments(ctx->store, run, &segments, &segment_count, NULL) == 0;

	if (known) {
		fill_from_run(v, &row, now);
		v->pod_count = pod_count;
		v->pods = xrealloc(v->pods, (pod_count + 1) * sizeof(*v->pods));
		for (size_t i = 0; i < pod_count; i++)
			pod_of_row(&v->pods[i], &rows[i], now);
		for (size_t i = 0; i < segment_count; i++)
			add_segment(v, &segments[i], rows);
		set_pod_rates(v, rows, now);
	}
	free(segments);
	free(rows);
	return known;
}
