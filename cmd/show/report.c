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

const char *phase_word(const struct pod_row *row)
{
	bool kept = row->kept_ms > 0 && !row->release_ms && row->state == POD_ROW_LIVE;

	return kept ? "kept" : pod_phase_name(phase_of_row(row));
}

const char *const phase_names[PHASES] = {"queue",   "boot", "connect", "sync", "load",
					 "compute", "idle", "fetch",   "kept", "release"};

/* as in core/: a pod needs a moment to end */
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
static void pass(struct timeline *t, enum phase phase, int64_t mark_ms)
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

static void pass_until_release(struct timeline *t, int64_t release_ms)
{
	if (t->is_open && release_ms > t->at_ms) {
		t->phase_ms[t->unended] += release_ms - t->at_ms;
		t->at_ms = release_ms;
	}
	t->is_open = false;
}

static int64_t end_of(const struct pod_row *pod, int64_t now_ms)
{
	return pod->gone_ms > 0 ? pod->gone_ms : MAX(now_ms, pod->create_ms);
}

/* Work that was cut off has no end mark, but its time was not fetching. */
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
	int64_t end = end_of(pod, now_ms);

	memset(phase_ms, 0, PHASES * sizeof(*phase_ms));
	if (pod->create_ms <= 0)
		return;
	int64_t release = pod->release_ms > 0 ? pod->release_ms : end;
	if (pod->kept_ms > 0) { /* it was only kept in this run */
		phase_ms[PHASE_KEPT] = MAX(MIN(release, end) - pod->create_ms, 0);
		phase_ms[PHASE_RELEASE] = end - pod->create_ms - phase_ms[PHASE_KEPT];
		return;
	}
	pass(&t, PHASE_QUEUE, pod->running_ms);
	pass(&t, PHASE_BOOT, pod->reached_ms);
	pass(&t, PHASE_CONNECT, pod->connected_ms);
	pass(&t, PHASE_SYNC, pod->synced_ms);
	pass(&t, PHASE_LOAD, pod->ready_ms);
	pass(&t, PHASE_COMPUTE, pod->compute_ms > 0 ? work_ended_ms(pod) : pod->worked_ms);
	pass(&t, PHASE_FETCH, pod->safe_ms);
	pass_until_release(&t, release);
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

int64_t report_wall_ms(const struct pod_row *pod, int64_t now_ms)
{
	return pod->create_ms > 0 ? end_of(pod, now_ms) - pod->create_ms : 0;
}

/* ---- JSON ---- */

/* output_json_line() prints no more decimals than these. */
json_t *report_seconds(int64_t ms)
{
	return json_real((double)ms / 1000);
}

json_t *report_dollars(int64_t microusd)
{
	return json_real((double)microusd / 1e6);
}

/* JSON requires UTF-8; paths and vendors' words may have any bytes. */
json_t *report_text(const char *text)
{
	CLEANUP(str_free) struct str safe = STR_INIT;

	if (utf8_valid(text, strlen(text)))
		return json_string(text);
	str_add_printable(&safe, text, strlen(text), 0);
	return json_string(str_text(&safe));
}

json_t *report_time(int64_t wall_ms)
{
	char text[32];

	return wall_ms > 0 ? json_string(clock_rfc3339(text, sizeof(text), wall_ms)) : json_null();
}

static json_t *phases_json(const struct pod_row *pod, int64_t now_ms)
{
	int64_t phase_ms[PHASES];
	json_t *object = json_object();

	report_phases(pod, now_ms, phase_ms);
	for (int i = 0; i < PHASES; i++) {
		CLEANUP(free_text) char *key = xasprintf("%s_s", phase_names[i]);
		json_object_set_new(object, key, report_seconds(phase_ms[i]));
	}
	return object;
}

static bool load_is_reported(const struct pod_row *pod)
{
	int64_t sum = 0;

	for (int i = 0; i < LOAD_PHASES; i++)
		sum += pod_row_load_ms(pod, (enum load_phase)i);
	return sum > 0;
}

/* Detail of "phases".load_s; null if its workers reported none. */
static json_t *load_phases_json(const struct pod_row *pod)
{
	if (!load_is_reported(pod))
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

/* From samples taken during renders; null: none. */
static json_t *gpu_use_json(const struct pod_row *pod)
{
	if (!pod->gpu_samples)
		return json_null();
	return json_pack("{s:i, s:i, s:i, s:I}", "samples", pod->gpu_samples, "busy_p50",
			 pod->gpu_busy_p50, "busy_p95", pod->gpu_busy_p95, "memory_peak_mib",
			 (json_int_t)pod->gpu_memory_peak_mib);
}

static json_t *report_pod_json(const struct pod_row *pod, int64_t now_ms)
{
	bool gone = pod->state == POD_ROW_GONE;

	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:b, s:o, s:o, s:o, s:o}",
		"id", text_or_null(pod->id), "name", report_text(pod->name), "provider",
		report_text(pod->provider), "gpu", report_text(pod->gpu), "region",
		report_text(pod->region), "spot", pod->spot, "billed_seconds",
		report_seconds(pod_row_billed_ms(pod, now_ms)), "billed_vendor_s",
		pod->billed_vendor_ms > 0 ? report_seconds(pod->billed_vendor_ms) : json_null(),
		"compute_seconds", report_seconds(pod->compute_ms), "wasted_seconds",
		report_seconds(pod->wasted_ms), "cost_usd",
		report_dollars(pod_row_cost(pod, now_ms)), "cost_counted_usd",
		report_dollars(pod_row_counted(pod, now_ms)), "cost_vendor_usd",
		pod->cost_vendor_microusd > 0 ? report_dollars(pod->cost_vendor_microusd)
					      : json_null(),
		"phases", phases_json(pod, now_ms), "load_phases", load_phases_json(pod), "gpu_use",
		gpu_use_json(pod), "released", gone, "accepted_at", report_time(pod->accepted_ms),
		"still_running_at", report_time(pod->outlived_ms), "handed_from",
		text_or_null(pod->handed_from), "handed_to", text_or_null(pod->handed_to));
}

json_t *report_error_json(const char *code, const char *message, const char *pod)
{
	return json_pack("{s:o, s:o, s:o}", "code", report_text(code), "message",
			 report_text(message), "pod", text_or_null(pod));
}

/* For a run with an unreleased pod: names the pod that may still bill. */
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

static json_t *errors_json(const struct pod_row *pods, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		if (pods[i].error[0] && !never_existed(&pods[i]))
			json_array_append_new(list, report_error_json("pod", pods[i].error,
								      pod_row_called(&pods[i])));
	return list;
}

json_t *report_vendor_dollars(const struct run_row *run)
{
	return run->cost_vendor_microusd > 0 ? report_dollars(run->cost_vendor_microusd)
					     : json_null();
}

json_t *report_run_json(const struct run_row *run, const struct pod_row *pods, size_t count,
			int64_t now_ms)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		if (!never_existed(&pods[i]))
			json_array_append_new(list, report_pod_json(&pods[i], now_ms));
	return json_pack(
		"{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:I, s:I, s:I, s:I}, s:o, s:o, s:o, "
		"s:o, "
		"s:o, s:o, s:o, s:o, s:o}",
		"schema", 1, "run", report_text(run->id), "job", report_text(run->job), "commit",
		run->commit_id[0] ? report_text(run->commit_id) : json_null(), "status",
		json_string(run_status_word(run->status)), "output", report_text(run->output),
		"started_at", report_time(run->started_ms), "ended_at", report_time(run->ended_ms),
		"segments", "total", (json_int_t)run->total, "rendered", (json_int_t)run->rendered,
		"cached", (json_int_t)run->cached, "failed", (json_int_t)run->failed,
		"billed_seconds", report_seconds(run->billed_ms), "compute_seconds",
		report_seconds(run->compute_ms), "wasted_seconds", report_seconds(run->wasted_ms),
		"cost_usd", report_dollars(run->cost_microusd), "cost_counted_usd",
		report_dollars(run->counted_microusd), "cost_vendor_usd",
		report_vendor_dollars(run), "pods", list, "error", error_json(run, pods, count),
		"errors", errors_json(pods, count));
}

static const char *const stage_sums[] = {"billed_seconds", "compute_seconds", "cost_usd",
					 "cost_counted_usd"};

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

static void cell_duration(struct table *t, int64_t ms)
{
	char text[32];

	table_cell(t, "%s", duration_show(text, sizeof(text), ms));
}

static void phases_row(struct table *t, const char *name, bool kept, const int64_t phase_ms[PHASES],
		       int64_t billed_ms, int64_t compute_ms)
{
	char text[32];

	table_cell(t, "%s", name);
	for (int i = 0; i < PHASES; i++)
		if (i != PHASE_KEPT || kept)
			cell_duration(t, phase_ms[i]);
	cell_duration(t, billed_ms);
	table_cell(t, "%s", report_ratio(text, sizeof(text), compute_ms, billed_ms));
}

/* What counts, and beside it, if `more`, our count and the vendor's time. */
static void cost_cells(struct table *t, int64_t cost_microusd, bool more, int64_t counted_microusd,
		       int64_t vendor_ms)
{
	char text[32];

	table_cell(t, "%s", money_show(text, sizeof(text), cost_microusd));
	if (!more)
		return;
	table_cell(t, "%s", money_show(text, sizeof(text), counted_microusd));
	table_cell(t, "%s", vendor_ms > 0 ? duration_show(text, sizeof(text), vendor_ms) : "-");
}

/* Whether the vendor billed after it had accepted the release, ends pods slowly, or bills more than
 * the price: by more than rounding. */
static bool vendor_billed_more(const struct pod_row *pod)
{
	return pod->gone_ms > 0 &&
	       (pod->billed_vendor_ms > pod->billed_ms + 1000 ||
		pod_row_vendor(pod) > pod_row_counted(pod, pod->gone_ms) +
					      money_for(pod->price_microusd_h, 1000));
}

/* Prints load phases below the table, in their order; few workers report them. */
static void print_load(FILE *to, const struct pod_row *pod)
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

void report_print_phases(FILE *to, const struct pod_row *pods, size_t count, int64_t now_ms)
{
	static const int spare[PHASES] = {
		[PHASE_QUEUE] = 1,  [PHASE_BOOT] = 2,  [PHASE_CONNECT] = 5,
		[PHASE_SYNC] = 8,   [PHASE_LOAD] = 7,  [PHASE_COMPUTE] = TABLE_WHOLE,
		[PHASE_IDLE] = 4,   [PHASE_FETCH] = 6, [PHASE_KEPT] = TABLE_WHOLE,
		[PHASE_RELEASE] = 3};
	CLEANUP(table_free) struct table *t = table_new();
	int64_t sum[PHASES] = {0}, billed = 0, compute = 0, cost = 0, counted = 0, vendor = 0;
	bool more = false, kept = false;
	size_t shown = 0;

	for (size_t i = 0; i < count; i++)
		more = more || (!never_existed(&pods[i]) && vendor_billed_more(&pods[i]));
	for (size_t i = 0; i < count; i++)
		kept = kept || pods[i].kept_ms > 0;

	table_column(t, "POD", TABLE_LEFT, TABLE_WHOLE);
	for (int i = 0; i < PHASES; i++)
		if (i != PHASE_KEPT || kept)
			table_column(t, phase_names[i], TABLE_RIGHT, spare[i]);
	table_column(t, "BILLED", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "USED", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "COST", TABLE_RIGHT, TABLE_WHOLE);
	if (more) {
		table_column(t, "COUNTED", TABLE_RIGHT, TABLE_WHOLE);
		table_column(t, "VENDOR", TABLE_RIGHT, TABLE_WHOLE);
	}
	for (size_t i = 0; i < count; i++) {
		const struct pod_row *pod = &pods[i];
		int64_t phase_ms[PHASES];
		if (never_existed(pod))
			continue;
		report_phases(pod, now_ms, phase_ms);
		for (int p = 0; p < PHASES; p++)
			sum[p] += phase_ms[p];
		billed += pod_row_billed_ms(pod, now_ms);
		compute += pod->compute_ms;
		cost += pod_row_cost(pod, now_ms);
		counted += pod_row_counted(pod, now_ms);
		phases_row(t, pod->id[0] ? pod->id : pod->name, kept, phase_ms,
			   pod_row_billed_ms(pod, now_ms), pod->compute_ms);
		cost_cells(t, pod_row_cost(pod, now_ms), more, pod_row_counted(pod, now_ms),
			   pod->billed_vendor_ms);
		vendor += pod->billed_vendor_ms;
		shown++;
	}
	if (shown > 1) {
		phases_row(t, "all", kept, sum, billed, compute);
		cost_cells(t, cost, more, counted, vendor);
	}
	table_print(t, to, terminal_width(to));
	for (size_t i = 0; i < count; i++)
		report_outlived(to, &pods[i]);
	for (size_t i = 0; i < count; i++)
		if (load_is_reported(&pods[i]))
			print_load(to, &pods[i]);
}

static json_t *volume_json(const struct volume_row *v)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "kind", "volume", "provider",
			 report_text(v->provider), "id", report_text(v->id), "name",
			 report_text(v->name), "region", report_text(v->region), "size_gb",
			 (json_int_t)v->size_gb, "price_usd_month",
			 report_dollars(v->price_microusd_month), "seen_at",
			 report_time(v->seen_ms));
}

static void print_volumes(FILE *to, const struct volume_row *rows, size_t count)
{
	CLEANUP(table_free) struct table *t = table_new();

	table_column(t, "VOLUME", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "ID", TABLE_LEFT, 1);
	table_column(t, "PROVIDER", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "REGION", TABLE_LEFT, 2);
	table_column(t, "GB", TABLE_RIGHT, 3);
	table_column(t, "$/MONTH", TABLE_RIGHT, TABLE_WHOLE);
	for (size_t i = 0; i < count; i++) {
		char price[32];
		table_cell(t, "%s", rows[i].name);
		table_cell(t, "%s", rows[i].id);
		table_cell(t, "%s", rows[i].provider);
		table_cell(t, "%s", rows[i].region);
		table_cell(t, "%lld", (long long)rows[i].size_gb);
		table_cell(t, "%s", money_show(price, sizeof(price), rows[i].price_microusd_month));
	}
	table_print(t, to, terminal_width(to));
}

int report_volumes(struct store *store, FILE *to, json_t *array, struct err *err)
{
	struct volume_row *rows = NULL;
	size_t count = 0;

	if (store_volumes(store, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; array && i < count; i++)
		json_array_append_new(array, volume_json(&rows[i]));
	if (to)
		print_volumes(to, rows, count);
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

/* ---- the end of a sweep ---- */

static const char *why_gone(enum reap_what why)
{
	switch (why) {
	case REAP_PAST: return "past its hard end";
	case REAP_FORCED: return "as requested";
	case REAP_ENDED: return "its run has ended";
	case REAP_ORPHAN: return "its client exited, and it has no work";
	case REAP_PASS:
	case REAP_LEAVE: break;
	}
	return "";
}

static void say_skipped(const struct swept *pod)
{
	const struct pod_view *view = pod->view;
	char when[32];

	if (!view->marker.attempt[0])
		output_line(stdout,
			    "pod %s of %s: skipped: its name is %s, but its marker is missing "
			    "(burst reap %s --force releases it)",
			    view->id, pod->provider, view->name, view->id);
	else
		output_line(stdout,
			    "pod %s of %s: run %s of machine %s, hard end %s%s; skipped (burst "
			    "reap %s --force releases it)",
			    view->id, pod->provider, view->marker.run, view->marker.machine,
			    clock_rfc3339(when, sizeof(when), view->marker.hard_end_s * 1000),
			    pod->has_client ? ", its client runs here" : "", view->id);
}

void swept_say(void *ctx, const struct swept *pod)
{
	(void)ctx;
	switch (pod->as) {
	case SWEPT_GONE:
		output_line(stdout, "pod %s of %s: gone (%s)", pod->view->id, pod->provider,
			    why_gone(pod->why));
		break;
	case SWEPT_SKIPPED: say_skipped(pod); break;
	case SWEPT_UNRELEASED:
		output_line(stderr, "burst: pod %s of %s: not released: %s", pod->view->id,
			    pod->provider, pod->trouble);
		break;
	}
}

void swept_add_accounts(struct str *to, const struct sweep_end *end)
{
	for (size_t i = 0; i < end->account_count; i++)
		str_addf(to, "%s %s", i ? "," : "", end->accounts[i]);
}

void swept_say_nothing(const struct sweep_end *end)
{
	CLEANUP(str_free) struct str names = STR_INIT;

	swept_add_accounts(&names, end);
	output_line(stderr,
		    end->unlisted ? "no pods of this machine's ledger are left at%s"
				  : "no pods of burst are left at%s",
		    str_text(&names));
}
