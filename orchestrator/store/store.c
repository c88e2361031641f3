/* store.c - the ledger's interface: checks and passes each call to SQLite or to memory. */
#include "store.h"

#include <assert.h>
#include <stdlib.h>

#include "store_impl.h"

void store_close(struct store *s)
{
	if (!s)
		return;
	store_rollback(s);
	s->ops->close(s);
}

int store_check(struct store *s, struct err *err)
{
	return s->ops->check ? s->ops->check(s, err) : 0;
}

int store_begin(struct store *s, struct err *err)
{
	assert(!s->in_transaction);
	if (s->ops->begin(s, err) < 0)
		return -1;
	s->in_transaction = true;
	return 0;
}

int store_commit(struct store *s, struct err *err)
{
	assert(s->in_transaction);
	s->in_transaction = false;
	return s->ops->commit(s, err);
}

void store_rollback(struct store *s)
{
	if (!s->in_transaction)
		return;
	s->in_transaction = false;
	s->ops->rollback(s);
}

/* ---- putting ---- */

static int put(struct store *s, enum table_id table, const void *row, struct err *err)
{
	union any_row clean;

	row_copy(&store_tables[table], &clean, row);
	return s->ops->put(s, table, &clean, err);
}

int store_put_run(struct store *s, const struct run_row *row, struct err *err)
{
	return put(s, TABLE_RUN, row, err);
}

int store_put_pod(struct store *s, const struct pod_row *row, struct err *err)
{
	return put(s, TABLE_POD, row, err);
}

static int put_each_segment(struct store *s, const struct segment_row *rows, size_t count,
			    struct err *err)
{
	for (size_t i = 0; i < count; i++)
		if (put(s, TABLE_SEGMENT, &rows[i], err) < 0)
			return -1;
	return 0;
}

int store_put_segments(struct store *s, const struct segment_row *rows, size_t count,
		       struct err *err)
{
	if (count < 2 || s->in_transaction)
		return put_each_segment(s, rows, count, err);
	if (store_begin(s, err) < 0)
		return -1;
	if (put_each_segment(s, rows, count, err) < 0) {
		store_rollback(s);
		return -1;
	}
	return store_commit(s, err);
}

int store_put_volume(struct store *s, const struct volume_row *row, struct err *err)
{
	return put(s, TABLE_VOLUME, row, err);
}

int store_put_batch(struct store *s, const struct batch_row *row, struct err *err)
{
	return put(s, TABLE_BATCH, row, err);
}

int store_put_choice(struct store *s, const struct choice_row *row, struct err *err)
{
	return put(s, TABLE_CHOICE, row, err);
}

int store_put_forecast(struct store *s, const struct forecast_row *row, struct err *err)
{
	return put(s, TABLE_FORECAST, row, err);
}

int store_put_speed(struct store *s, const struct speed_row *row, struct err *err)
{
	return put(s, TABLE_SPEED, row, err);
}

int store_put_request(struct store *s, const struct request_row *row, struct err *err)
{
	return put(s, TABLE_REQUEST, row, err);
}

int store_remove_request(struct store *s, const struct request_row *row, struct err *err)
{
	return s->ops->remove(s, TABLE_REQUEST, row, err);
}

int store_put_schedule(struct store *s, const struct schedule_row *row, struct err *err)
{
	return put(s, TABLE_SCHEDULE, row, err);
}

int store_put_firing(struct store *s, const struct firing_row *row, struct err *err)
{
	return put(s, TABLE_FIRING, row, err);
}

int store_remove_firing(struct store *s, const struct firing_row *row, struct err *err)
{
	return s->ops->remove(s, TABLE_FIRING, row, err);
}

int store_remove_schedule(struct store *s, const char *name, struct err *err)
{
	struct schedule_row row = {0};
	struct firing_row *firings = NULL;
	size_t count = 0;
	int result = store_firings(s, name, 0, &firings, &count, err);

	COPY_TEXT(row.name, name);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = store_remove_firing(s, &firings[i], err);
	free(firings);
	return result < 0 ? -1 : s->ops->remove(s, TABLE_SCHEDULE, &row, err);
}

int store_remove_volume(struct store *s, const char *provider, const char *id, struct err *err)
{
	struct volume_row row = {0};

	COPY_TEXT(row.provider, provider);
	COPY_TEXT(row.id, id);
	return s->ops->remove(s, TABLE_VOLUME, &row, err);
}

int store_put_fact(struct store *s, const char *name, const char *value, struct err *err)
{
	struct fact_row row = {0};

	/* cut in two it would be another fact */
	if (strlen(name) >= sizeof(row.name) || strlen(value) >= sizeof(row.value))
		return err_set(err, ERR_BUG, "fact \"%.40s\": longer than the ledger's limit",
			       name);
	COPY_TEXT(row.name, name);
	COPY_TEXT(row.value, value);
	return put(s, TABLE_FACT, &row, err);
}

/* ---- asking ---- */

/* The first row into *out. 1: there is one, 0: there is none, -1: *err is set. *count: how many of
 * at most two. */
static int find_first(struct store *s, enum query query, enum table_id table, const char *text,
		      void *out, size_t *count, struct err *err)
{
	void *rows = NULL;

	*count = 0;
	if (s->ops->find(s, query, text, 2, &rows, count, err) < 0)
		return -1;
	if (*count)
		memcpy(out, rows, store_tables[table].row_size);
	free(rows);
	return *count > 0;
}

int store_run(struct store *s, const char *id, struct run_row *out, struct err *err)
{
	struct run_row row;
	size_t count;
	int found = find_first(s, QUERY_RUN, TABLE_RUN, id, &row, &count, err);

	if (found < 0)
		return -1;
	if (!found)
		return err_set(err, ERR_NOT_FOUND, "no run \"%s\" in the ledger", id);
	*out = row;
	return 0;
}

int store_pod(struct store *s, const char *attempt_or_id, struct pod_row *out, struct err *err)
{
	struct pod_row row;
	size_t count;
	int found = 0;

	if (attempt_or_id[0]) /* empty is the id of every pod that has none yet */
		found = find_first(s, QUERY_POD, TABLE_POD, attempt_or_id, &row, &count, err);
	if (found == 0 && attempt_or_id[0])
		found = find_first(s, QUERY_POD_ID, TABLE_POD, attempt_or_id, &row, &count, err);
	if (found < 0)
		return -1;
	if (!found)
		return err_set(err, ERR_NOT_FOUND, "no pod \"%s\" in the ledger", attempt_or_id);
	*out = row;
	return 0;
}

static int list(struct store *s, enum query query, const char *text, size_t most, void **out,
		size_t *count, struct err *err)
{
	void *rows = NULL;
	size_t n = 0;

	if (s->ops->find(s, query, text, most, &rows, &n, err) < 0)
		return -1;
	*out = rows;
	*count = n;
	return 0;
}

int store_runs(struct store *s, const char *job_config, bool running, size_t most,
	       struct run_row **out, size_t *count, struct err *err)
{
	static const enum query queries[2][2] = {{QUERY_RUNS, QUERY_RUNNING},
						 {QUERY_RUNS_OF, QUERY_RUNNING_OF}};

	return list(s, queries[job_config != NULL][running], job_config, most, (void **)out, count,
		    err);
}

int store_pods(struct store *s, const char *run, bool open_only, struct pod_row **out,
	       size_t *count, struct err *err)
{
	static const enum query queries[2][2] = {{QUERY_PODS, QUERY_PODS_OPEN},
						 {QUERY_PODS_OF, QUERY_PODS_OPEN_OF}};

	return list(s, queries[run != NULL][open_only], run, 0, (void **)out, count, err);
}

int store_pods_since(struct store *s, int64_t wall_ms, struct pod_row **out, size_t *count,
		     struct err *err)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)wall_ms);
	return list(s, QUERY_PODS_SINCE, text, 0, (void **)out, count, err);
}

int store_pods_up(struct store *s, const char *provider, size_t most, struct pod_row **out,
		  size_t *count, struct err *err)
{
	return list(s, QUERY_PODS_UP, provider, most, (void **)out, count, err);
}

int store_segments(struct store *s, const char *run, struct segment_row **out, size_t *count,
		   struct err *err)
{
	return list(s, QUERY_SEGMENTS, run, 0, (void **)out, count, err);
}

int store_volumes(struct store *s, struct volume_row **out, size_t *count, struct err *err)
{
	return list(s, QUERY_VOLUMES, NULL, 0, (void **)out, count, err);
}

int store_batches(struct store *s, const char *run, struct batch_row **out, size_t *count,
		  struct err *err)
{
	return list(s, QUERY_BATCHES, run, 0, (void **)out, count, err);
}

int store_speeds(struct store *s, const char *prefix, struct speed_row **out, size_t *count,
		 struct err *err)
{
	return list(s, QUERY_SPEEDS, prefix, 0, (void **)out, count, err);
}

int store_requests(struct store *s, const char *config, bool open_only, struct request_row **out,
		   size_t *count, struct err *err)
{
	static const enum query queries[2][2] = {{QUERY_REQUESTS, QUERY_REQUESTS_OPEN},
						 {QUERY_REQUESTS_OF, QUERY_REQUESTS_OPEN_OF}};

	return list(s, queries[config != NULL][open_only], config, 0, (void **)out, count, err);
}

int store_runs_named(struct store *s, const char *part, struct run_row **out, size_t *count,
		     struct err *err)
{
	return list(s, QUERY_RUNS_NAMED, part, 0, (void **)out, count, err);
}

int store_pods_named(struct store *s, const char *part, struct pod_row **out, size_t *count,
		     struct err *err)
{
	return list(s, QUERY_PODS_NAMED, part, 0, (void **)out, count, err);
}

int store_requests_named(struct store *s, const char *part, struct request_row **out, size_t *count,
			 struct err *err)
{
	return list(s, QUERY_REQUESTS_NAMED, part, 0, (void **)out, count, err);
}

bool store_fact(struct store *s, const char *name, char *out, size_t room)
{
	struct fact_row row;
	size_t count;

	/* a fact that cannot be read is measured or requested again */
	if (find_first(s, QUERY_FACT, TABLE_FACT, name, &row, &count, NULL) <= 0)
		return false;
	copy_text(out, room, row.value);
	return true;
}

int store_choice(struct store *s, const char *run, struct choice_row *out, struct err *err)
{
	struct choice_row row;
	size_t count;
	int found = find_first(s, QUERY_CHOICE, TABLE_CHOICE, run, &row, &count, err);

	if (found < 0)
		return -1;
	if (!found)
		return err_set(err, ERR_NOT_FOUND, "run %s: no decision was recorded", run);
	*out = row;
	return 0;
}

int store_forecasts(struct store *s, const char *run, struct forecast_row **out, size_t *count,
		    struct err *err)
{
	return list(s, QUERY_FORECASTS, run, 0, (void **)out, count, err);
}

int store_schedule(struct store *s, const char *name, struct schedule_row *out, struct err *err)
{
	struct schedule_row row;
	size_t count;
	int found = find_first(s, QUERY_SCHEDULE, TABLE_SCHEDULE, name, &row, &count, err);

	if (found < 0)
		return -1;
	if (!found)
		return err_set(err, ERR_NOT_FOUND, "no schedule \"%s\"", name);
	*out = row;
	return 0;
}

int store_schedules(struct store *s, struct schedule_row **out, size_t *count, struct err *err)
{
	return list(s, QUERY_SCHEDULES, NULL, 0, (void **)out, count, err);
}

int store_firings(struct store *s, const char *schedule, size_t most, struct firing_row **out,
		  size_t *count, struct err *err)
{
	return list(s, QUERY_FIRINGS, schedule, most, (void **)out, count, err);
}
