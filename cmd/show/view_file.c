/* view_file.c - the copy of a view in its run's folder: JSON, overwritten in place about once a
 * second. */
#include "view.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/path.h"

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
