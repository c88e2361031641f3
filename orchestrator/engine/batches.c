/* batches.c - records what each batch took and how busy the GPUs were, for learn.c and reports. */
#include "batches.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "batch_ids.h"
#include "impl.h"
#include "learn.h"
#include "post.h"

enum {
	/* rows; a run that dies loses only these measurements */
	FLUSH_AT = 256,
	TOOK_MOST_MS = 86400000, /* a pod reports the time; it is not trusted beyond a day */
	USE_LEAST = 5,           /* samples that a median needs */
};

struct batches {
	struct batch_row *rows; /* not written yet */
	size_t count, cap;
	bool folded;
	unsigned char *begins; /* by batch: how often it began */
	size_t begins_count, begins_cap;
};

struct batches *batches_new(void)
{
	return xcalloc(1, sizeof(struct batches));
}

void batches_free(struct batches *b)
{
	free(b->rows);
	free(b->begins);
	free(b);
}

static const enum row_batching batching_rows[] = {
	[BATCHING_NONE] = ROW_BATCHING_NONE,
	[BATCHING_PADDED] = ROW_BATCHING_PADDED,
	[BATCHING_CONTINUOUS] = ROW_BATCHING_CONTINUOUS,
};

static struct learn_what what_runs_on(const struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	return (struct learn_what){
		.engine = e->work.needs->engine,
		.options = e->work.needs->speed_options,
		.gpu = e->pods[pod].workers.gpu[0] ? e->pods[pod].workers.gpu : p->rental.offer.gpu,
		.provider = e->setup->providers[p->rental.provider].ops->name,
		.version = e->pods[pod].workers.version,
	};
}

static void key_of(const struct engine *e, int pod, char key[LEARN_KEY])
{
	struct learn_what what = what_runs_on(e, pod);

	learn_key(&what, key);
}

struct batch_speed batches_speed(const struct engine *e, int pod)
{
	struct learn_what what = what_runs_on(e, pod);
	struct speed none = {0};
	struct learned_speed s;

	learn_speed(e->setup->store, &what, &none, &s);
	if (s.batches < SPEED_MEASURED_MIN)
		return (struct batch_speed){0};
	return (struct batch_speed){s.speed.once_s * 1000, s.speed.longest_s * 1000,
				    s.speed.each_s * 1000};
}

/* Skip a batch that began more than once (its worker died, or it did not fit into memory): its time
 * is not that of one batch. */
static unsigned char *begins_of(struct engine *e, uint32_t batch)
{
	while (e->batches->begins_count <= batch) {
		GROW(e->batches->begins, e->batches->begins_count, e->batches->begins_cap);
		e->batches->begins[e->batches->begins_count++] = 0;
	}
	return &e->batches->begins[batch];
}

void batches_begun(struct engine *e, int pod, uint32_t batch)
{
	if (!core_has_batch(e->core, batch, pod))
		return;
	unsigned char *begins = begins_of(e, batch);
	*begins = (unsigned char)MIN(*begins + 1, 255);
}

void batches_continued(struct engine *e, uint32_t batch)
{
	*begins_of(e, batch) = 255;
}

void batches_done(struct engine *e, int pod, uint32_t batch, int64_t busy_ms)
{
	struct batch_row row = {.took_ms = MIN(busy_ms, TOOK_MOST_MS), .done_ms = clock_wall_ms()};

	if (busy_ms <= 0 || !core_has_batch(e->core, batch, pod) || *begins_of(e, batch) != 1)
		return;
	*begins_of(e, batch) = 255; /* once */
	const struct core_batch *b = core_batch_at(e->core, batch);
	COPY_TEXT(row.attempt, core_pod_at(e->core, pod)->rental.attempt);
	CLEANUP(free_text) char *id = batch_id(e, batch);
	COPY_TEXT(row.id, id);
	COPY_TEXT(row.run, e->setup->run->id);
	key_of(e, pod, row.speed);
	row.segments = (int)b->count;
	row.most = core_pod_at(e->core, pod)->workload.max_batch;
	row.batching = batching_rows[core_pod_at(e->core, pod)->workload.batching];
	for (size_t i = 0; i < b->count; i++) {
		double weight = e->work.segments[b->segments[i]].weight;
		row.sum += weight;
		row.longest = MAX(row.longest, weight);
	}
	if (core_pod_at(e->core, pod)->workload.batching == BATCHING_CONTINUOUS)
		row.longest = 0; /* other batches ran beside it; took_ms is its share */
	GROW(e->batches->rows, e->batches->count, e->batches->cap);
	e->batches->rows[e->batches->count++] = row;
	if (e->batches->count >= FLUSH_AT)
		batches_flush(e);
}

/* Records all of them or none. */
static int put_rows(struct store *store, const struct batch_row *rows, size_t count)
{
	if (store_begin(store, NULL) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (store_put_batch(store, &rows[i], NULL) < 0) {
			store_rollback(store);
			return -1;
		}
	return store_commit(store, NULL);
}

void batches_flush(struct engine *e)
{
	struct err err = {0};

	if (!e->batches->count)
		return;
	/* A failed write loses measurements. It must not end the run. */
	if (put_rows(e->setup->store, e->batches->rows, e->batches->count) == 0 &&
	    learn_fold(e->setup->store, e->batches->rows, e->batches->count, !e->batches->folded,
		       clock_wall_ms(), &err) < 0)
		engine_log(e, LOG_INFO, "the ledger stores no measurements: %s", err.msg);
	e->batches->folded = true;
	e->batches->count = 0;
}

/* ---- how busy the GPUs are ---- */

void batches_usage(struct engine *e, int pod, const json_t *event)
{
	struct gpu_use *u = &e->pods[pod].use;
	int64_t busy = jsonx_bounded(event, "gpu", 0, 100),
		mib = jsonx_bounded(event, "memory_mb", 0, INT64_C(1) << 32);

	u->memory_peak_mib = MAX(u->memory_peak_mib, mib);
	if (core_pod_at(e->core, pod)->workload.batches <= 0)
		return; /* loading, or waiting */
	u->at[busy]++;
	u->samples++;
}

void batches_adopt(struct engine *e, int pod, const struct pod_row *row)
{
	struct gpu_use *u = &e->pods[pod].use;

	u->memory_peak_mib = row->gpu_memory_peak_mib;
	u->earlier_samples = row->gpu_samples;
	u->earlier_p50 = row->gpu_busy_p50;
	u->earlier_p95 = row->gpu_busy_p95;
}

static int percentile(const struct gpu_use *u, int percent)
{
	int before = 0, busy = 0;

	for (; busy < 100; busy++) {
		before += u->at[busy];
		if (before * 100 >= u->samples * percent)
			break;
	}
	return busy;
}

void batches_use_of(const struct gpu_use *u, struct pod_row *row)
{
	row->gpu_memory_peak_mib = u->memory_peak_mib;
	if (u->samples < MAX(u->earlier_samples, USE_LEAST)) {
		row->gpu_samples = u->earlier_samples;
		row->gpu_busy_p50 = u->earlier_p50;
		row->gpu_busy_p95 = u->earlier_p95;
		return;
	}
	row->gpu_samples = u->samples;
	row->gpu_busy_p50 = percentile(u, 50);
	row->gpu_busy_p95 = percentile(u, 95);
}
