/* rows.c - which field of a row is which column: the one place to add a field to, beside
 * schema.sql. */
#include "store_impl.h"

#define TYPE_OF(field)                                                                             \
	_Generic((field),                                                                          \
		char *: COLUMN_TEXT,                                                               \
		int: COLUMN_INT,                                                                   \
		enum segment_state: COLUMN_INT,                                                    \
		int64_t: COLUMN_INT64,                                                             \
		bool: COLUMN_BOOL,                                                                 \
		double: COLUMN_DOUBLE,                                                             \
		enum run_status: COLUMN_STATE,                                                     \
		enum pod_row_state: COLUMN_STATE,                                                  \
		enum request_state: COLUMN_STATE,                                                  \
		enum schedule_backend: COLUMN_STATE,                                               \
		enum row_batching: COLUMN_STATE)
#define WORDS_OF(field)                                                                            \
	_Generic((field), enum run_status                                                          \
		 : &run_status_words, enum pod_row_state                                           \
		 : &pod_row_state_words, enum request_state                                        \
		 : &request_state_words, enum schedule_backend                                     \
		 : &schedule_backend_words, enum row_batching                                      \
		 : &row_batching_words, default                                                    \
		 : NULL)
#define COLUMN(row, field)                                                                         \
	{                                                                                          \
#field, TYPE_OF(((row *)0)->field), offsetof(row, field),                          \
			sizeof(((row *)0)->field), WORDS_OF(((row *)0)->field)                     \
	}

#define C(field) COLUMN(struct run_row, field)
static const struct column run_columns[] = {
	C(id),
	C(job),
	C(type),
	C(config),
	C(output),
	C(machine),
	C(status),
	C(detached),
	C(started_ms),
	C(ended_ms),
	C(max_cost_microusd),
	C(ends_by_ms),
	C(total),
	C(rendered),
	C(cached),
	C(failed),
	C(billed_ms),
	C(compute_ms),
	C(wasted_ms),
	C(cost_microusd),
	C(counted_microusd),
	C(cost_vendor_microusd),
	C(unpriced_ms),
	C(planned_ms),
	C(planned_microusd),
	C(promised_ms),
	C(promised_microusd),
	C(replans),
	C(replanned),
	C(exit_status),
	C(error_code),
	C(error),
	C(commit_id),
	C(wants),
	C(stage),
	C(part_of),
	C(stage_input),
	C(stage_done),
};
#undef C

#define C(field) COLUMN(struct pod_row, field)
static const struct column pod_columns[] = {
	C(attempt),
	C(run),
	C(provider),
	C(account),
	C(name),
	C(id),
	C(state),
	C(gpu),
	C(gpu_offered),
	C(region),
	C(spot),
	C(preempted),
	C(volume_safe),
	C(volume_id),
	C(volume_name),
	C(price_microusd_h),
	C(price_list_microusd_h),
	C(unpriced),
	C(hard_end_s),
	C(run_ms),
	C(start_ms),
	C(queued_ms),
	C(reach),
	C(host),
	C(port),
	C(user),
	C(create_ms),
	C(rented_ms),
	C(running_ms),
	C(reached_ms),
	C(connected_ms),
	C(synced_ms),
	C(ready_ms),
	C(worked_ms),
	C(safe_ms),
	C(release_ms),
	C(released_ms),
	C(gone_ms),
	C(accepted_ms),
	C(outlived_ms),
	C(vendor_started_ms),
	C(compute_ms),
	C(wasted_ms),
	C(billed_ms),
	C(cost_microusd),
	C(billed_vendor_ms),
	C(cost_vendor_microusd),
	C(cost_beside_microusd),
	C(vendor_reported),
	C(vendor_asked_ms),
	C(gpu_samples),
	C(gpu_busy_p50),
	C(gpu_busy_p95),
	C(gpu_memory_peak_mib),
	C(image),
	C(setup),
	C(setup_ms),
	C(synced_bytes),
	C(import_ms),
	C(read_ms),
	C(build_ms),
	C(warm_up_ms),
	C(probe_ms),
	C(unpack_ms),
	C(unpack_bytes),
	C(kept_ms),
	C(kept_until_ms),
	C(pool),
	C(env),
	C(cold_ms),
	C(holds),
	C(handed_from),
	C(handed_to),
	C(event),
	C(error),
};
#undef C

#define C(field) COLUMN(struct segment_row, field)
static const struct column segment_columns[] = {
	C(run),   C(id),      C(key),         C(state), C(attempt), C(file),   C(sha256),
	C(bytes), C(seconds), C(sample_rate), C(tries), C(suspect), C(reason),
};
#undef C

#define C(field) COLUMN(struct volume_row, field)
static const struct column volume_columns[] = {
	C(provider), C(id), C(name), C(region), C(size_gb), C(price_microusd_month), C(seen_ms),
};
#undef C

#define C(field) COLUMN(struct fact_row, field)
static const struct column fact_columns[] = {C(name), C(value)};
#undef C

#define C(field) COLUMN(struct batch_row, field)
static const struct column batch_columns[] = {
	C(attempt), C(id),      C(run),     C(speed), C(segments), C(longest),
	C(sum),     C(took_ms), C(done_ms), C(most),  C(batching),
};
#undef C

#define C(field) COLUMN(struct speed_row, field)
static const struct column speed_columns[] = {
	C(key), C(n),         C(longest), C(sum),     C(longest2),   C(longest_sum), C(sum2),
	C(t),   C(longest_t), C(sum_t),   C(batches), C(updated_ms), C(most),        C(batching),
};
#undef C

#define C(field) COLUMN(struct request_row, field)
static const struct column request_columns[] = {
	C(id),
	C(config),
	C(state),
	C(created_ms),
	C(quiet_ms),
	C(max_wait_ms),
	C(by_ms),
	C(below_microusd_h),
	C(min_segments),
	C(fills_pod),
	C(commit_id),
	C(repo),
	C(path),
	C(run),
	C(tries),
	C(first_try_ms),
	C(not_before_ms),
	C(deaths),
	C(ended_ms),
	C(exit_status),
	C(error),
};
#undef C

#define C(field) COLUMN(struct schedule_row, field)
static const struct column schedule_columns[] = {
	C(name),        C(rule),    C(config), C(backend), C(environment),
	C(catch_up_ms), C(made_ms), C(due_ms), C(request),
};
#undef C

#define C(field) COLUMN(struct choice_row, field)
static const struct column choice_columns[] = {
	C(run),      C(decided_ms),  C(goal),          C(value_of_time_microusd),
	C(deadline), C(deadline_ms), C(pods),          C(pods_most),
	C(at_once),  C(pods_open),   C(gpus_open),     C(on_demand),
	C(gpus),     C(batch),       C(cost_microusd), C(why),
};
#undef C

#define C(field) COLUMN(struct forecast_row, field)
static const struct column forecast_columns[] = {
	C(run),      C(provider),    C(gpu),        C(once_s),     C(longest_s),
	C(each_s),   C(host_share),  C(batch_max),  C(cold_p50_s), C(cold_p90_s),
	C(measured), C(speed_sigma), C(speed_from),
};
#undef C

#define TABLE(table_name, keys_first, row, list)                                                   \
	{                                                                                          \
		.name = (table_name), .keys = (keys_first), .row_size = sizeof(row),               \
		.count = ARRAY_LEN(list), .columns = (list),                                       \
	}

const struct table store_tables[TABLE_COUNT] = {
	[TABLE_RUN] = TABLE("run", 1, struct run_row, run_columns),
	[TABLE_POD] = TABLE("pod", 1, struct pod_row, pod_columns),
	[TABLE_SEGMENT] = TABLE("segment", 2, struct segment_row, segment_columns),
	[TABLE_VOLUME] = TABLE("volume", 2, struct volume_row, volume_columns),
	[TABLE_FACT] = TABLE("fact", 1, struct fact_row, fact_columns),
	[TABLE_BATCH] = TABLE("batch", 2, struct batch_row, batch_columns),
	[TABLE_SPEED] = TABLE("speed", 1, struct speed_row, speed_columns),
	[TABLE_REQUEST] = TABLE("request", 1, struct request_row, request_columns),
	[TABLE_SCHEDULE] = TABLE("schedule", 1, struct schedule_row, schedule_columns),
	[TABLE_CHOICE] = TABLE("choice", 1, struct choice_row, choice_columns),
	[TABLE_FORECAST] = TABLE("forecast", 3, struct forecast_row, forecast_columns),
};

bool pod_row_over(const struct pod_row *row)
{
	return row->state == POD_ROW_GONE || row->state == POD_ROW_FAILED;
}

const char *pod_row_called(const struct pod_row *row)
{
	return row->id[0] ? row->id : row->attempt;
}

static const struct {
	const char *name;
	size_t offset;
} load_phases[LOAD_PHASES] = {
	[LOAD_UNPACK] = {"unpack", offsetof(struct pod_row, unpack_ms)},
	[LOAD_IMPORT] = {"import", offsetof(struct pod_row, import_ms)},
	[LOAD_READ] = {"read", offsetof(struct pod_row, read_ms)},
	[LOAD_BUILD] = {"build", offsetof(struct pod_row, build_ms)},
	[LOAD_WARM_UP] = {"warm_up", offsetof(struct pod_row, warm_up_ms)},
	[LOAD_PROBE] = {"probe", offsetof(struct pod_row, probe_ms)},
};

const char *load_phase_name(enum load_phase phase)
{
	return phase < LOAD_PHASES ? load_phases[phase].name : "";
}

int64_t pod_row_load_ms(const struct pod_row *row, enum load_phase phase)
{
	int64_t ms;

	memcpy(&ms, (const char *)row + load_phases[phase].offset, sizeof(ms));
	return ms;
}

void pod_row_set_load(struct pod_row *row, const int64_t load_ms[LOAD_PHASES])
{
	for (int i = 0; i < LOAD_PHASES; i++)
		memcpy((char *)row + load_phases[i].offset, &load_ms[i], sizeof(load_ms[i]));
}
