/* store.c - the ledger's typed calls. */
#include "store.h"

#include <stdlib.h>

#include "store_impl.h"

/* ---- putting ---- */

static int put(struct store *s, enum table_id table, const void *row, struct err *err)
{
	union any_row clean;

	row_copy(&store_tables[table], &clean, row);
	return sqlite_put(s, table, &clean, err);
}

#define PUT(row, table)                                                                            \
	int store_put_##row(struct store *s, const struct row##_row *it, struct err *err)          \
	{                                                                                          \
		return put(s, table, it, err);                                                     \
	}
#define REMOVE(row, table)                                                                         \
	int store_remove_##row(struct store *s, const struct row##_row *it, struct err *err)       \
	{                                                                                          \
		return sqlite_remove(s, table, it, err);                                           \
	}
PUT(run, TABLE_RUN)
PUT(pod, TABLE_POD)
PUT(volume, TABLE_VOLUME)
PUT(batch, TABLE_BATCH)
PUT(choice, TABLE_CHOICE)
PUT(forecast, TABLE_FORECAST)
PUT(speed, TABLE_SPEED)
PUT(request, TABLE_REQUEST)
PUT(schedule, TABLE_SCHEDULE)
REMOVE(request, TABLE_REQUEST)

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

int store_remove_schedule(struct store *s, const char *name, struct err *err)
{
	struct schedule_row row = {0};

	COPY_TEXT(row.name, name);
	return sqlite_remove(s, TABLE_SCHEDULE, &row, err);
}

int store_remove_volume(struct store *s, const char *provider, const char *id, struct err *err)
{
	struct volume_row row = {0};

	COPY_TEXT(row.provider, provider);
	COPY_TEXT(row.id, id);
	return sqlite_remove(s, TABLE_VOLUME, &row, err);
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

/* The first row into *out, which else stays as it is. 1: there is one, 0: there is none, -1: *err
 * is set. */
static int find_first(struct store *s, enum query query, enum table_id table, const char *text,
		      void *out, struct err *err)
{
	void *rows = NULL;
	size_t count = 0;

	if (sqlite_find(s, query, text, 1, &rows, &count, err) < 0)
		return -1;
	if (count)
		memcpy(out, rows, store_tables[table].row_size);
	free(rows);
	return count > 0;
}

int store_run(struct store *s, const char *id, struct run_row *out, struct err *err)
{
	int found = find_first(s, QUERY_RUN, TABLE_RUN, id, out, err);

	return found ? MIN(found, 0)
		     : err_set(err, ERR_NOT_FOUND, "no run \"%s\" in the ledger", id);
}

int store_pod(struct store *s, const char *attempt_or_id, struct pod_row *out, struct err *err)
{
	int found = 0;

	if (attempt_or_id[0]) /* empty is the id of every pod that has none yet */
		found = find_first(s, QUERY_POD, TABLE_POD, attempt_or_id, out, err);
	if (found == 0 && attempt_or_id[0])
		found = find_first(s, QUERY_POD_ID, TABLE_POD, attempt_or_id, out, err);
	return found ? MIN(found, 0)
		     : err_set(err, ERR_NOT_FOUND, "no pod \"%s\" in the ledger", attempt_or_id);
}

int store_choice(struct store *s, const char *run, struct choice_row *out, struct err *err)
{
	int found = find_first(s, QUERY_CHOICE, TABLE_CHOICE, run, out, err);

	return found ? MIN(found, 0)
		     : err_set(err, ERR_NOT_FOUND, "run %s: no decision was recorded", run);
}

int store_schedule(struct store *s, const char *name, struct schedule_row *out, struct err *err)
{
	int found = find_first(s, QUERY_SCHEDULE, TABLE_SCHEDULE, name, out, err);

	return found ? MIN(found, 0) : err_set(err, ERR_NOT_FOUND, "no schedule \"%s\"", name);
}

bool store_fact(struct store *s, const char *name, char *out, size_t room)
{
	struct fact_row row;

	/* a fact that cannot be read is measured or requested again */
	if (find_first(s, QUERY_FACT, TABLE_FACT, name, &row, NULL) <= 0)
		return false;
	copy_text(out, room, row.value);
	return true;
}

int store_runs(struct store *s, const char *job_config, bool running, size_t most,
	       struct run_row **out, size_t *count, struct err *err)
{
	static const enum query queries[2][2] = {{QUERY_RUNS, QUERY_RUNNING},
						 {QUERY_RUNS_OF, QUERY_RUNNING_OF}};

	return sqlite_find(s, queries[job_config != NULL][running], job_config, most, (void **)out,
			   count, err);
}

int store_stages(struct store *s, const char *job_config, struct run_row **out, size_t *count,
		 struct err *err)
{
	return sqlite_find(s, QUERY_STAGES_OF, job_config, 0, (void **)out, count, err);
}

int store_pods(struct store *s, const char *run, bool open_only, struct pod_row **out,
	       size_t *count, struct err *err)
{
	static const enum query queries[2][2] = {{QUERY_PODS, QUERY_PODS_OPEN},
						 {QUERY_PODS_OF, QUERY_PODS_OPEN_OF}};

	return sqlite_find(s, queries[run != NULL][open_only], run, 0, (void **)out, count, err);
}

int store_pods_since(struct store *s, int64_t wall_ms, struct pod_row **out, size_t *count,
		     struct err *err)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)wall_ms);
	return sqlite_find(s, QUERY_PODS_SINCE, text, 0, (void **)out, count, err);
}

int store_pods_up(struct store *s, const char *provider, size_t most, struct pod_row **out,
		  size_t *count, struct err *err)
{
	return sqlite_find(s, QUERY_PODS_UP, provider, most, (void **)out, count, err);
}

int store_requests(struct store *s, const char *config, bool open_only, struct request_row **out,
		   size_t *count, struct err *err)
{
	static const enum query queries[2][2] = {{QUERY_REQUESTS, QUERY_REQUESTS_OPEN},
						 {QUERY_REQUESTS_OF, QUERY_REQUESTS_OPEN_OF}};

	return sqlite_find(s, queries[config != NULL][open_only], config, 0, (void **)out, count,
			   err);
}

#define LIST(plural, row, query)                                                                   \
	int store_##plural(struct store *s, const char *text, struct row##_row **out,              \
			   size_t *count, struct err *err)                                         \
	{                                                                                          \
		return sqlite_find(s, query, text, 0, (void **)out, count, err);                   \
	}
#define LIST_ALL(plural, row, query)                                                               \
	int store_##plural(struct store *s, struct row##_row **out, size_t *count,                 \
			   struct err *err)                                                        \
	{                                                                                          \
		return sqlite_find(s, query, NULL, 0, (void **)out, count, err);                   \
	}
LIST(segments, segment, QUERY_SEGMENTS)
LIST(batches, batch, QUERY_BATCHES)
LIST(speeds, speed, QUERY_SPEEDS)
LIST(forecasts, forecast, QUERY_FORECASTS)
LIST(runs_named, run, QUERY_RUNS_NAMED)
LIST(pods_named, pod, QUERY_PODS_NAMED)
LIST(requests_named, request, QUERY_REQUESTS_NAMED)
LIST_ALL(volumes, volume, QUERY_VOLUMES)
LIST_ALL(schedules, schedule, QUERY_SCHEDULES)
