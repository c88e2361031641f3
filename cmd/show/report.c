/* report.c - computes a pod's phases, makes the JSON of runs and pods, and prints what runs and
 * sweeps ended with. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/str.h"
#include "output.h"
#include "store/pod_cost.h"

/* ---- prices and costs that may be unknown ---- */

bool price_is_given(const char *provider, int64_t price_microusd_h)
{
	const struct provider_ops *ops = provider_find(provider);

	return price_microusd_h > 0 || (ops && ops->pods_are_free);
}

char *price_show(char to[32], const char *provider, int64_t price_microusd_h)
{
	char price[32];

	if (price_is_given(provider, price_microusd_h))
		snprintf(to, 32, "%.20s an hour",
			 money_show(price, sizeof(price), price_microusd_h));
	else
		copy_text(to, 32, "no price given");
	return to;
}

json_t *price_json(const char *provider, int64_t price_microusd_h)
{
	return price_is_given(provider, price_microusd_h) ? report_dollars(price_microusd_h)
							  : json_null();
}

char *cost_show(char *to, size_t room, int64_t microusd, int64_t unpriced_ms)
{
	char known[32];

	if (unpriced_ms && !microusd)
		copy_text(to, room, "no price");
	else
		snprintf(to, room, "%s%s", unpriced_ms ? "over " : "",
			 money_show(known, sizeof(known), microusd));
	return to;
}

/* ---- the present phase of a pod ---- */

enum pod_phase phase_of_row(const struct pod_row *row)
{
	const struct {
		int64_t since_ms;
		enum pod_phase phase;
	} times[] = {{row->released_ms, POD_CONFIRMING}, {row->release_ms, POD_RELEASING},
		     {row->ready_ms, POD_WORKING},       {row->synced_ms, POD_LOADING},
		     {row->connected_ms, POD_PREPARING}, {row->reached_ms, POD_CONNECTING}};

	if (row->state == POD_ROW_GONE)
		return POD_GONE;
	if (row->state == POD_ROW_FAILED)
		return POD_NEVER;
	if (row->state == POD_ROW_AMBIGUOUS)
		return POD_AMBIGUOUS;
	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		if (times[i].since_ms > 0)
			return times[i].phase;
	if (row->state == POD_ROW_RELEASING)
		return POD_RELEASING;
	return row->id[0] ? POD_BOOTING : POD_RENTING;
}

/* "kept" while the pod waits for a run that can use it. */
static const char *phase_word(const struct pod_row *row)
{
	bool kept = row->kept_ms > 0 && !row->release_ms && row->state == POD_ROW_LIVE;

	enum pod_phase phase = phase_of_row(row);

	if (phase == POD_BOOTING && pod_row_is_unstarted(row))
		return "queued";
	return kept ? "kept" : pod_phase_name(phase);
}

/* A pod needs a moment to end after its release was accepted; core/ allows as much. */
enum { OUTLIVED_SHOWN_MS = 5000 };

/* ---- phases ---- */

struct timeline {
	int64_t at_ms;      /* everything before is assigned to a phase */
	enum phase unended; /* the last phase that began without a known end */
	bool is_open;
	int64_t *phase_ms;
};

/* Ends a phase at its time mark. A missing mark leaves its phase open, and the time until the
 * release counts as that phase: a pod that never answered was booting all the time. */
static void end_phase(struct timeline *t, enum phase phase, int64_t mark_ms)
{
	if (mark_ms <= 0) {
		if (!t->is_open)
			t->unended = phase;
		t->is_open = true;
		return;
	}
	if (mark_ms > t->at_ms) {
		t->phase_ms[phase] += mark_ms - t->at_ms;
		t->at_ms = mark_ms;
	}
	t->is_open = false;
}

/* Assigns the time until the release to the phase without a known end. */
static void end_open_phase(struct timeline *t, int64_t release_ms)
{
	if (t->is_open && release_ms > t->at_ms) {
		t->phase_ms[t->unended] += release_ms - t->at_ms;
		t->at_ms = release_ms;
	}
	t->is_open = false;
}

/* When the pod was gone, or now. */
static int64_t end_of_pod_ms(const struct pod_row *pod, int64_t now_ms)
{
	return pod->gone_ms > 0 ? pod->gone_ms : MAX(now_ms, pod->create_ms);
}

/* When the last batch or file ended; 0: none has. Work that was cut off has no mark, but its time
 * is not counted as fetching. */
static int64_t work_ended_ms(const struct pod_row *pod)
{
	int64_t least = pod->ready_ms > 0 ? pod->ready_ms + pod->compute_ms : 0;

	if (pod->worked_ms <= 0 && pod->safe_ms <= 0)
		return 0;
	return pod->safe_ms > 0 ? MIN(MAX(pod->worked_ms, least), MAX(pod->safe_ms, pod->worked_ms))
				: MAX(pod->worked_ms, least);
}

void report_phases(const struct pod_row *pod, int64_t now_ms, int64_t phase_ms[PHASES])
{
	struct timeline t = {.at_ms = pod->create_ms, .phase_ms = phase_ms};
	int64_t end = end_of_pod_ms(pod, now_ms);

	memset(phase_ms, 0, PHASES * sizeof(*phase_ms));
	if (pod->create_ms <= 0)
		return;
	int64_t release = pod->release_ms > 0 ? pod->release_ms : end;
	if (pod->kept_ms > 0) { /* it was only kept in this run */
		phase_ms[PHASE_KEPT] = MAX(MIN(release, end) - pod->create_ms, 0);
		phase_ms[PHASE_RELEASE] = end - pod->create_ms - phase_ms[PHASE_KEPT];
		return;
	}
	end_phase(&t, PHASE_QUEUE, pod->running_ms);
	end_phase(&t, PHASE_BOOT, pod->reached_ms);
	end_phase(&t, PHASE_CONNECT, pod->connected_ms);
	end_phase(&t, PHASE_SYNC, pod->synced_ms);
	end_phase(&t, PHASE_LOAD, pod->ready_ms);
	end_phase(&t, PHASE_COMPUTE, pod->compute_ms > 0 ? work_ended_ms(pod) : pod->worked_ms);
	end_phase(&t, PHASE_FETCH, pod->safe_ms);
	end_open_phase(&t, release);
	if (end > t.at_ms)
		phase_ms[PHASE_RELEASE] += end - t.at_ms;
	int64_t worked = MIN(pod->compute_ms, phase_ms[PHASE_COMPUTE]);
	phase_ms[PHASE_IDLE] = phase_ms[PHASE_COMPUTE] - worked;
	phase_ms[PHASE_COMPUTE] = worked;
}

static bool never_existed(const struct pod_row *pod)
{
	return pod->state == POD_ROW_FAILED || pod->create_ms <= 0;
}

static int64_t wall_ms(const struct pod_row *pod, int64_t now_ms)
{
	return pod->create_ms > 0 ? end_of_pod_ms(pod, now_ms) - pod->create_ms : 0;
}

/* ---- details of pods as JSON ---- */

static bool has_load_phases(const struct pod_row *pod)
{
	int64_t sum = 0;

	for (int i = 0; i < LOAD_PHASES; i++)
		sum += pod_row_load_ms(pod, (enum load_phase)i);
	return sum > 0;
}

/* Detail of "phases".load_s; null if its workers reported none. */
static json_t *load_phases_json(const void *facts)
{
	const struct pod_row *pod = &((const struct pod_facts *)facts)->row;

	if (!has_load_phases(pod))
		return json_null();
	json_t *object = json_object();
	for (int i = 0; i < LOAD_PHASES; i++) {
		CLEANUP(free_text)
		char *key = xasprintf("%s_s", load_phase_name((enum load_phase)i));
		json_object_set_new(object, key,
				    report_seconds(pod_row_load_ms(pod, (enum load_phase)i)));
	}
	json_object_set_new(object, "unpack_bytes", json_integer(pod->unpack_bytes));
	return object;
}

static json_t *text_or_null(const char *text)
{
	return *text ? report_text(text) : json_null();
}

/* From samples that were taken during renders; null if there are none. */
static json_t *gpu_use_json(const void *facts)
{
	const struct pod_row *pod = &((const struct pod_facts *)facts)->row;

	if (!pod->gpu_samples)
		return json_null();
	return json_pack("{s:i, s:i, s:i, s:I}", "samples", pod->gpu_samples, "busy_p50",
			 pod->gpu_busy_p50, "busy_p95", pod->gpu_busy_p95, "memory_peak_mib",
			 (json_int_t)pod->gpu_memory_peak_mib);
}

/* ---- the columns of pods ---- */

static json_t *phases_json(const void *facts)
{
	return columns_json(json_object(), &of_pods, POD_PHASES, facts);
}

static json_t *segments_json(const void *facts)
{
	const struct pod_facts *f = facts;

	return json_pack("{s:I, s:I, s:I}", "total", (json_int_t)f->run.total, "done",
			 (json_int_t)(f->run.rendered + f->run.cached), "failed",
			 (json_int_t)f->run.failed);
}

static json_t *kind_json(const void *facts)
{
	(void)facts;
	return json_string("pod");
}

static void price_text(char *to, size_t room, const void *of)
{
	const struct pod_facts *f = of;

	cost_show(to, room, f->row.price_microusd_h, f->row.unpriced);
}

static json_t *pod_price_json(const void *of)
{
	const struct pod_facts *f = of;

	return f->row.unpriced ? json_null() : report_dollars(f->row.price_microusd_h);
}

static void cost_text(char *to, size_t room, const void *of)
{
	const struct pod_facts *f = of;

	cost_show(to, room, f->cost_microusd, f->unpriced_ms);
}

/* Each thing that burst says of a pod. */
static const struct shown_column pod_columns[] = {
#define AT(field) offsetof(struct pod_facts, field)
#define PHASE(phase, name, spare)                                                                  \
	{                                                                                          \
		POD_PHASES | (phase == PHASE_KEPT ? POD_END_KEPT : POD_END), name "_s", name,      \
			UNIT_MS, AT(phase_ms[phase]), spare                                        \
	}
	{POD_PS_JSON, "kind", .json = kind_json},
	{POD_PS | POD_PS_JSON, "run", "RUN", UNIT_TEXT, AT(row.run)},
	{POD_PS, NULL, "JOB", UNIT_TEXT, AT(run.job), TABLE_SHRINKS},
	{POD_PS_JSON, "attempt", NULL, UNIT_TEXT, AT(row.attempt)},
	{POD_PS_JSON, "id", NULL, UNIT_TEXT, AT(row.id)},
	{POD_RUN_JSON, "id", NULL, UNIT_TEXT_OR_NULL, AT(row.id)},
	{POD_PS, NULL, "POD", UNIT_WORD, AT(called)},
	{POD_END, NULL, "POD", UNIT_WORD, AT(id_or_name)},
	{POD_JSON, "name", NULL, UNIT_TEXT, AT(row.name)},
	{POD_PS | POD_JSON, "provider", "PROVIDER", UNIT_TEXT, AT(row.provider), 3},
	{POD_JSON, "gpu", NULL, UNIT_TEXT, AT(row.gpu)},
	{POD_PS, NULL, "GPU", UNIT_TEXT, AT(gpu_and_spot), 1},
	{POD_PS | POD_JSON, "region", "REGION", UNIT_TEXT, AT(row.region), 4},
	{POD_JSON, "spot", NULL, UNIT_FLAG, AT(row.spot)},
	{POD_PS_JSON, "state", NULL, UNIT_WORD, AT(state)},
	{POD_PS, NULL, "COMMIT", UNIT_TEXT, AT(short_commit), 5},
	{POD_PS_JSON, "phase", NULL, UNIT_WORD, AT(phase)},
	{POD_PS, NULL, "PHASE", UNIT_WORD, AT(phase_or_state)},
	{POD_PS, NULL, "DONE", UNIT_FIGURE, AT(done)},
	{POD_PS, NULL, "ETA", UNIT_MS, AT(eta_ms)},
	{POD_PS_JSON, "created_at", NULL, UNIT_TIME, AT(row.create_ms)},
	{POD_PS_JSON, "hard_end", NULL, UNIT_TIME, AT(hard_end_ms)},
	{POD_PS | POD_PS_JSON, "age_seconds", "AGE", UNIT_MS, AT(age_ms)},
	{POD_PS | POD_PS_JSON, "price_usd_hour", "$/H", UNIT_USD, AT(row.price_microusd_h), 2,
	 .json = pod_price_json, .text = price_text},
	{POD_PS | POD_PS_JSON, "cost_usd", "SO FAR", UNIT_USD, AT(cost_microusd),
	 .text = cost_text},
	{POD_PS_JSON, "commit", NULL, UNIT_TEXT_OR_NULL, AT(run.commit_id)},
	{POD_PS_JSON, "job", NULL, UNIT_TEXT, AT(run.job)},
	{POD_PS_JSON, "segments", .json = segments_json},
	{POD_PS_JSON, "eta_seconds", NULL, UNIT_MS, AT(eta_ms)},
	PHASE(PHASE_QUEUE, "queue", 1),
	PHASE(PHASE_BOOT, "boot", 2),
	PHASE(PHASE_CONNECT, "connect", 5),
	PHASE(PHASE_SYNC, "sync", 8),
	PHASE(PHASE_LOAD, "load", 7),
	PHASE(PHASE_COMPUTE, "compute", TABLE_WHOLE),
	PHASE(PHASE_IDLE, "idle", 4),
	PHASE(PHASE_FETCH, "fetch", 6),
	PHASE(PHASE_KEPT, "kept", TABLE_WHOLE),
	PHASE(PHASE_RELEASE, "release", 3),
	{POD_END | POD_RUN_JSON, "billed_seconds", "BILLED", UNIT_MS, AT(billed_ms)},
	{POD_RUN_JSON, "billed_vendor_s", NULL, UNIT_MS, AT(vendor_ms)},
	{POD_RUN_JSON, "compute_seconds", NULL, UNIT_MS, AT(row.compute_ms)},
	{POD_RUN_JSON, "wasted_seconds", NULL, UNIT_MS, AT(row.wasted_ms)},
	{POD_END, NULL, "USED", UNIT_FIGURE, AT(used)},
	{POD_END | POD_RUN_JSON, "cost_usd", "COST", UNIT_USD, AT(cost_microusd),
	 .text = cost_text},
	{POD_JSON, "unpriced_seconds", NULL, UNIT_MS, AT(unpriced_ms)},
	{POD_END_MORE | POD_RUN_JSON, "cost_counted_usd", "COUNTED", UNIT_USD,
	 AT(counted_microusd)},
	{POD_END_MORE, NULL, "VENDOR", UNIT_MS, AT(vendor_ms)},
	{POD_RUN_JSON, "cost_vendor_usd", NULL, UNIT_USD, AT(vendor_microusd)},
	{POD_RUN_JSON, "phases", .json = phases_json},
	{POD_RUN_JSON, "load_phases", .json = load_phases_json},
	{POD_RUN_JSON, "gpu_use", .json = gpu_use_json},
	{POD_RUN_JSON, "released", NULL, UNIT_FLAG, AT(gone)},
	{POD_RUN_JSON, "accepted_at", NULL, UNIT_TIME, AT(row.accepted_ms)},
	{POD_RUN_JSON, "still_running_at", NULL, UNIT_TIME, AT(row.outlived_ms)},
	{POD_RUN_JSON, "handed_from", NULL, UNIT_TEXT_OR_NULL, AT(row.handed_from)},
	{POD_RUN_JSON, "handed_to", NULL, UNIT_TEXT_OR_NULL, AT(row.handed_to)},
#undef AT
#undef PHASE
};
const struct columns of_pods = {pod_columns, ARRAY_LEN(pod_columns)};

/* The columns of phases are in the order of the enum. */
const char *phase_name(enum phase phase)
{
	const struct shown_column *c = pod_columns;

	while (!(c->sets & POD_PHASES))
		c++;
	return c[phase].title;
}

static void set_used(struct pod_facts *f)
{
	report_ratio(f->used, sizeof(f->used), f->row.compute_ms, f->billed_ms);
}

void pod_facts_of(struct pod_facts *f, const struct pod_row *pod, int64_t now_ms)
{
	*f = (struct pod_facts){
		.row = *pod,
		.called = pod_row_called(pod),
		.id_or_name = pod->id[0] ? pod->id : pod->name,
		.phase = phase_word(pod),
		.gone = pod->state == POD_ROW_GONE,
		.age_ms = wall_ms(pod, now_ms),
		.hard_end_ms = pod->hard_end_s * 1000,
		.billed_ms = pod_row_billed_ms(pod, now_ms),
		.vendor_ms = pod->billed_vendor_ms > 0 ? pod->billed_vendor_ms : -1,
		.cost_microusd = pod_row_cost(pod, now_ms),
		.counted_microusd = pod_row_counted(pod, now_ms),
		.unpriced_ms = pod_row_unpriced_ms(pod, now_ms),
		.vendor_microusd = pod->cost_vendor_microusd > 0 ? pod->cost_vendor_microusd : -1,
	};
	report_phases(pod, now_ms, f->phase_ms);
	set_used(f);
}

/* ---- the columns of runs ---- */

static json_t *counts_json(const void *of)
{
	const struct run_row *run = of;

	return json_pack("{s:I, s:I, s:I, s:I}", "total", (json_int_t)run->total, "rendered",
			 (json_int_t)run->rendered, "cached", (json_int_t)run->cached, "failed",
			 (json_int_t)run->failed);
}

static void run_cost_text(char *to, size_t room, const void *of)
{
	const struct run_row *run = of;

	cost_show(to, room, run->cost_microusd, run->unpriced_ms);
}

#define AT(field) offsetof(struct run_facts, field)
static const struct shown_column run_columns[] = {
	{RUN_ALL, "run", "RUN", UNIT_TEXT, AT(row.id)},
	{RUN_ALL, "job", "JOB", UNIT_TEXT, AT(row.job), TABLE_SHRINKS},
	{RUN_END, "commit", NULL, UNIT_TEXT_OR_NULL, AT(row.commit_id)},
	{RUN_OBJECT | RUN_CSV, "type", NULL, UNIT_TEXT, AT(row.type)},
	{RUN_DATA, "status", NULL, UNIT_WORD, AT(status)},
	{RUN_OBJECT, "config", NULL, UNIT_TEXT, AT(row.config)},
	{RUN_END | RUN_OBJECT, "output", NULL, UNIT_TEXT, AT(row.output)},
	{RUN_OBJECT, "commit", NULL, UNIT_TEXT_OR_NULL, AT(row.commit_id)},
	{RUN_OBJECT, "detached", NULL, UNIT_FLAG, AT(row.detached)},
	{RUN_ALL, "started_at", "STARTED (UTC)", UNIT_TIME, AT(row.started_ms), 4},
	{RUN_DATA, "ended_at", NULL, UNIT_TIME, AT(row.ended_ms)},
	{RUN_TABLE, NULL, "STATUS", UNIT_WORD, AT(status_or_client)},
	{RUN_END | RUN_OBJECT, "segments", .json = counts_json},
	{RUN_CSV, "total", NULL, UNIT_COUNT, AT(row.total)},
	{RUN_CSV, "rendered", NULL, UNIT_COUNT, AT(row.rendered)},
	{RUN_CSV, "cached", NULL, UNIT_COUNT, AT(row.cached)},
	{RUN_CSV, "failed", NULL, UNIT_COUNT, AT(row.failed)},
	{RUN_TABLE, NULL, "DONE", UNIT_FIGURE, AT(done)},
	{RUN_ALL, "billed_seconds", "BILLED", UNIT_MS, AT(row.billed_ms), 1},
	{RUN_ALL, "compute_seconds", "COMPUTE", UNIT_MS, AT(row.compute_ms), 2},
	{RUN_DATA, "wasted_seconds", NULL, UNIT_MS, AT(row.wasted_ms)},
	{RUN_TABLE, NULL, "USED", UNIT_FIGURE, AT(used), 3},
	{RUN_ALL, "cost_usd", "COST", UNIT_USD, AT(row.cost_microusd), .text = run_cost_text},
	{RUN_END | RUN_OBJECT, "unpriced_seconds", NULL, UNIT_MS, AT(row.unpriced_ms)},
	{RUN_END | RUN_MORE | RUN_OBJECT, "cost_counted_usd", "COUNTED", UNIT_USD,
	 AT(row.counted_microusd), 5},
	{RUN_END | RUN_OBJECT, "cost_vendor_usd", NULL, UNIT_USD, AT(vendor_microusd)},
	{RUN_OBJECT | RUN_CSV, "exit_status", NULL, UNIT_COUNT, AT(exit_status)},
	{RUN_CSV, "config", NULL, UNIT_TEXT, AT(row.config)},
	{RUN_CSV, "cost_counted_usd", NULL, UNIT_USD, AT(row.counted_microusd)},
	{RUN_OBJECT, "error", NULL, UNIT_TEXT_OR_NULL, AT(row.error)},
};
#undef AT
const struct columns of_runs = {run_columns, ARRAY_LEN(run_columns)};

struct run_facts run_facts_of(const struct run_row *run)
{
	struct run_facts f = {
		.row = *run,
		.status = run_status_word(run->status),
		.exit_status = run->exit_status,
		.vendor_microusd = run->cost_vendor_microusd > 0 ? run->cost_vendor_microusd : -1};

	f.status_or_client = f.status;
	report_ratio(f.used, sizeof(f.used), run->compute_ms, run->billed_ms);
	format_text(f.done, sizeof(f.done), "%lld/%lld", (long long)(run->rendered + run->cached),
		    (long long)run->total);
	return f;
}

/* ---- JSON of runs ---- */

json_t *report_error_json(const char *code, const char *message, const char *pod)
{
	return json_pack("{s:o, s:o, s:o}", "code", report_text(code), "message",
			 report_text(message), "pod", text_or_null(pod));
}

/* The "error" of a run. If a pod is unreleased, names the first that may still bill. */
static json_t *error_json(const struct run_row *run, const struct pod_row *pods, size_t count)
{
	const char *pod = "";

	if (!run->error_code[0])
		return json_null();
	for (size_t i = 0; i < count && !*pod && run->status == RUN_UNRELEASED; i++)
		if (!never_existed(&pods[i]) && pods[i].state != POD_ROW_GONE)
			pod = pod_row_called(&pods[i]);
	return report_error_json(run->error_code, run->error, pod);
}

/* What went wrong with single pods. */
static json_t *errors_json(const struct pod_row *pods, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		if (pods[i].error[0] && !never_existed(&pods[i]))
			json_array_append_new(list, report_error_json("pod", pods[i].error,
								      pod_row_called(&pods[i])));
	return list;
}

json_t *report_run_json(const struct run_row *run, const struct pod_row *pods, size_t count,
			int64_t now_ms)
{
	struct run_facts of = run_facts_of(run);
	json_t *object = columns_json(json_pack("{s:i}", "schema", 1), &of_runs, RUN_END, &of),
	       *list = json_array();

	for (size_t i = 0; i < count; i++) {
		struct pod_facts f;
		if (never_existed(&pods[i]))
			continue;
		pod_facts_of(&f, &pods[i], now_ms);
		json_array_append_new(list,
				      columns_json(json_object(), &of_pods, POD_RUN_JSON, &f));
	}
	json_object_set_new(object, "pods", list);
	json_object_set_new(object, "error", error_json(run, pods, count));
	json_object_set_new(object, "errors", errors_json(pods, count));
	return object;
}

static const char *const stage_sums[] = {"billed_seconds", "compute_seconds", "cost_usd",
					 "unpriced_seconds", "cost_counted_usd"};

json_t *report_stage_json(const char *name, const json_t *said, const struct err *err)
{
	json_t *object =
		json_pack("{s:s, s:s, s:n, s:n}", "name", name, "status", "cached", "run", "error");

	for (size_t i = 0; i < ARRAY_LEN(stage_sums); i++)
		json_object_set_new(object, stage_sums[i], json_real(0));
	for (size_t i = 0; said && i < ARRAY_LEN(stage_sums); i++)
		json_object_set(object, stage_sums[i], json_object_get(said, stage_sums[i]));
	if (!said)
		return object;
	json_object_set(object, "error", json_object_get(said, "error"));
	json_object_set(object, "status", json_object_get(said, "status"));
	if (jsonx_text(said, "run", "")[0])
		json_object_set(object, "run", json_object_get(said, "run"));
	else if (err && err->kind) /* it did not begin */
		json_object_set_new(object, "status",
				    json_string(run_status_word(
					    err->kind == ERR_CAP ? RUN_CAPPED : RUN_FAILED)));
	if (json_is_null(json_object_get(object, "error")) && err && err->kind)
		json_object_set_new(object, "error",
				    report_error_json(err_kind_name(err->kind), err->msg, ""));
	return object;
}

json_t *report_delivery_json(const json_t *stages)
{
	json_t *sum = NULL;

	for (size_t i = 0; i < json_array_size(stages); i++) {
		json_t *one = json_array_get(stages, i);
		if (strcmp(jsonx_text(one, "name", ""), "deliver") ||
		    !strcmp(jsonx_text(one, "status", ""), "cached"))
			continue;
		json_t *next = json_copy(one);
		for (size_t k = 0; sum && k < ARRAY_LEN(stage_sums); k++)
			json_object_set_new(next, stage_sums[k],
					    json_real(jsonx_number(sum, stage_sums[k], 0) +
						      jsonx_number(one, stage_sums[k], 0)));
		json_decref(sum);
		sum = next;
	}
	return sum;
}

/* ---- text ---- */

char *report_ratio(char *to, size_t room, int64_t compute_ms, int64_t billed_ms)
{
	if (billed_ms <= 0)
		snprintf(to, room, "-");
	else
		snprintf(to, room, "%.0f%%", 100.0 * (double)compute_ms / (double)billed_ms);
	return to;
}

/* Whether the vendor billed for more time or money than counted, by more than rounding. */
static bool vendor_billed_more(const struct pod_row *pod)
{
	return pod->gone_ms > 0 &&
	       (pod->billed_vendor_ms > pod->billed_ms + 1000 ||
		pod_row_vendor(pod) > pod_row_counted(pod, pod->gone_ms) +
					      money_for(pod->price_microusd_h, 1000));
}

/* Prints load phases below the table, in their order; few workers report them. */
static void print_load_phases(FILE *to, const struct pod_row *pod)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	char text[32];

	for (int i = 0; i < LOAD_PHASES; i++) {
		int64_t ms = pod_row_load_ms(pod, (enum load_phase)i);
		if (ms > 0)
			str_addf(&line, "%s%s %s", line.len ? ", " : "",
				 load_phase_name((enum load_phase)i),
				 duration_show(text, sizeof(text), ms));
		if (ms > 0 && i == LOAD_UNPACK)
			str_addf(&line, " (%lld MB)",
				 (long long)((pod->unpack_bytes + 999999) / 1000000));
	}
	output_line(to, "load of %s: %s", pod_row_called(pod), str_text(&line));
}

void report_outlived(FILE *to, const struct pod_row *pod)
{
	char accepted[32], seen[32], gone[32];

	if (pod->accepted_ms <= 0 || pod->outlived_ms - pod->accepted_ms < OUTLIVED_SHOWN_MS)
		return;
	clock_rfc3339(accepted, sizeof(accepted), pod->accepted_ms);
	clock_rfc3339(seen, sizeof(seen), pod->outlived_ms);
	clock_rfc3339(gone, sizeof(gone), pod->released_ms);
	if (pod_row_outlives(pod) || !pod_row_over(pod))
		output_line(to,
			    "pod %s: released at %.8s UTC, still running at %.8s UTC: it may still "
			    "bill",
			    pod_row_called(pod), accepted + 11, seen + 11);
	else
		output_line(to,
			    "pod %s: released at %.8s UTC, still running at %.8s UTC: counted "
			    "until %.8s UTC",
			    pod_row_called(pod), accepted + 11, seen + 11, gone + 11);
}

static void add_to_sum(struct pod_facts *all, const struct pod_facts *f)
{
	for (int i = 0; i < PHASES; i++)
		all->phase_ms[i] += f->phase_ms[i];
	all->billed_ms += f->billed_ms;
	all->row.compute_ms += f->row.compute_ms;
	if (f->vendor_ms > 0)
		all->vendor_ms = MAX(all->vendor_ms, 0) + f->vendor_ms;
	all->cost_microusd += f->cost_microusd;
	all->counted_microusd += f->counted_microusd;
	all->unpriced_ms += f->unpriced_ms;
	set_used(all);
}

void report_print_phases(FILE *to, const struct pod_row *pods, size_t count, int64_t now_ms)
{
	CLEANUP(table_free) struct table *t = table_new();
	struct pod_facts all = {.id_or_name = "all", .vendor_ms = -1}, f;
	unsigned sets = POD_END;
	size_t shown = 0;

	for (size_t i = 0; i < count; i++) {
		if (pods[i].kept_ms > 0)
			sets |= POD_END_KEPT;
		if (!never_existed(&pods[i]) && vendor_billed_more(&pods[i]))
			sets |= POD_END_MORE;
	}
	columns_titles(t, &of_pods, sets);
	for (size_t i = 0; i < count; i++) {
		if (never_existed(&pods[i]))
			continue;
		pod_facts_of(&f, &pods[i], now_ms);
		columns_cells(t, &of_pods, sets, &f);
		add_to_sum(&all, &f);
		shown++;
	}
	if (shown > 1)
		columns_cells(t, &of_pods, sets, &all);
	table_print(t, to, terminal_width(to));
	for (size_t i = 0; i < count; i++)
		report_outlived(to, &pods[i]);
	for (size_t i = 0; i < count; i++)
		if (has_load_phases(&pods[i]))
			print_load_phases(to, &pods[i]);
}

static void volume_price_text(char *to, size_t room, const void *of)
{
	const struct volume_row *v = of;

	cost_show(to, room, v->price_microusd_month,
		  !price_is_given(v->provider, v->price_microusd_month));
}

static json_t *volume_price_json(const void *of)
{
	const struct volume_row *v = of;

	return price_json(v->provider, v->price_microusd_month);
}

enum { VOLUME_TABLE = 1, VOLUME_JSON = 2, VOLUME_BOTH = 3 };
#define AT(field) offsetof(struct volume_row, field)
static const struct shown_column volume_columns[] = {
	{VOLUME_TABLE, NULL, "VOLUME", UNIT_TEXT, AT(name), TABLE_SHRINKS},
	{VOLUME_TABLE, NULL, "ID", UNIT_TEXT, AT(id), 1},
	{VOLUME_BOTH, "provider", "PROVIDER", UNIT_TEXT, AT(provider)},
	{VOLUME_JSON, "id", NULL, UNIT_TEXT, AT(id)},
	{VOLUME_JSON, "name", NULL, UNIT_TEXT, AT(name)},
	{VOLUME_BOTH, "region", "REGION", UNIT_TEXT, AT(region), 2},
	{VOLUME_BOTH, "size_gb", "GB", UNIT_COUNT, AT(size_gb), 3},
	{VOLUME_BOTH, "price_usd_month", "$/MONTH", UNIT_USD, AT(price_microusd_month),
	 .json = volume_price_json, .text = volume_price_text},
	{VOLUME_JSON, "seen_at", NULL, UNIT_TIME, AT(seen_ms)},
};
#undef AT
static const struct columns of_volumes = {volume_columns, ARRAY_LEN(volume_columns)};

int report_volumes(struct store *store, FILE *to, json_t *array, struct err *err)
{
	struct volume_row *rows = NULL;
	size_t count = 0;

	if (store_volumes(store, &rows, &count, err) < 0)
		return -1;
	CLEANUP(table_free) struct table *t = table_new();
	columns_titles(t, &of_volumes, VOLUME_TABLE);
	for (size_t i = 0; i < count; i++) {
		columns_cells(t, &of_volumes, VOLUME_TABLE, &rows[i]);
		if (!array)
			continue;
		json_t *volume = json_pack("{s:s}", "kind", "volume");
		json_array_append_new(array,
				      columns_json(volume, &of_volumes, VOLUME_JSON, &rows[i]));
	}
	if (to)
		table_print(t, to, terminal_width(to));
	free(rows);
	return (int)count;
}

void report_unreleased(const struct pod_row *pods, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!pod_row_over(&pods[i]))
			output_line(stderr,
				    "burst: pod %s of %s may still be billing; release it with: "
				    "burst reap %s --force",
				    pod_row_called(&pods[i]), pods[i].provider,
				    pod_row_called(&pods[i]));
}
