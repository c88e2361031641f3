/* store.c - the ledger's typed calls. */
#include "store.h"

#include <stdlib.h>

#include "store_impl.h"

/* ---- putting, removing ---- */

static int put_each_segment(struct store *s, const struct segment_row *rows, size_t count,
			    struct err *err)
{
	for (size_t i = 0; i < count; i++)
		if (store_put(s, TABLE_SEGMENT, &rows[i], err) < 0)
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
	return store_end(s, put_each_segment(s, rows, count, err), err);
}

int store_remove_request(struct store *s, const char *id, struct err *err)
{
	struct request_row row = {0};

	COPY_TEXT(row.id, id);
	return sqlite_remove(s, TABLE_REQUEST, &row, err);
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
	return store_put(s, TABLE_FACT, &row, err);
}

/* ---- asking ---- */

/* The indexes of schema.sql are made for these; pod_open and run_running need their very words.
 * "+seq": few pods are open, sorting them costs less than the walk through all pods in their
 * order, which the planner would prefer. */
#define NEWEST_RUN   " ORDER BY started_ms DESC, seq DESC"
#define OPEN_POD     "state NOT IN ('gone','failed')"
#define OPEN_REQUEST "state IN ('pending','running')"
/* Byte by byte, whatever the bytes are. */
#define HAS_PART(column) "instr(CAST(" column " AS BLOB),CAST(?1 AS BLOB))"

/* The first row into *out, which else stays as it is. 1: found; 0: none; -1: *err is set. */
static int find_first(struct store *s, enum table_id table, const char *where, const char *text,
		      void *out, struct err *err)
{
	void *rows = NULL;
	size_t count = 0;

	if (sqlite_find(s, table, where, text, 1, &rows, &count, err) < 0)
		return -1;
	if (count)
		memcpy(out, rows, store_tables[table].row_size);
	free(rows);
	return count > 0;
}

int store_run(struct store *s, const char *id, struct run_row *out, struct err *err)
{
	int found = find_first(s, TABLE_RUN, "WHERE id=?1", id, out, err);

	return found ? MIN(found, 0)
		     : err_set(err, ERR_NOT_FOUND, "no run \"%s\" in the ledger", id);
}

int store_pod(struct store *s, const char *attempt_or_id, struct pod_row *out, struct err *err)
{
	int found = 0;

	if (attempt_or_id[0]) /* empty is the id of every pod that has none yet */
		found = find_first(s, TABLE_POD, "WHERE attempt=?1", attempt_or_id, out, err);
	if (found == 0 && attempt_or_id[0])
		found = find_first(s, TABLE_POD, "WHERE id=?1 AND handed_to='' ORDER BY seq DESC",
				   attempt_or_id, out, err);
	return found ? MIN(found, 0)
		     : err_set(err, ERR_NOT_FOUND, "no pod \"%s\" in the ledger", attempt_or_id);
}

int store_choice(struct store *s, const char *run, struct choice_row *out, struct err *err)
{
	int found = find_first(s, TABLE_CHOICE, "WHERE run=?1", run, out, err);

	return found ? MIN(found, 0)
		     : err_set(err, ERR_NOT_FOUND, "run %s: no decision was recorded", run);
}

int store_schedule(struct store *s, const char *name, struct schedule_row *out, struct err *err)
{
	int found = find_first(s, TABLE_SCHEDULE, "WHERE name=?1", name, out, err);

	return found ? MIN(found, 0) : err_set(err, ERR_NOT_FOUND, "no schedule \"%s\"", name);
}

bool store_fact(struct store *s, const char *name, char *out, size_t room)
{
	struct fact_row row;

	/* a fact that cannot be read is measured or requested again */
	if (find_first(s, TABLE_FACT, "WHERE name=?1", name, &row, NULL) <= 0)
		return false;
	copy_text(out, room, row.value);
	return true;
}

int store_runs(struct store *s, const char *job_config, bool running, size_t most,
	       struct run_row **out, size_t *count, struct err *err)
{
	static const char *const where[2][2] = {
		{NEWEST_RUN, "WHERE status='running'" NEWEST_RUN},
		{"WHERE config=?1 AND stage=''" NEWEST_RUN,
		 "WHERE status='running' AND config=?1" NEWEST_RUN}};

	return sqlite_find(s, TABLE_RUN, where[job_config != NULL][running], job_config, most,
			   (void **)out, count, err);
}

int store_pods(struct store *s, const char *run, bool open_only, struct pod_row **out,
	       size_t *count, struct err *err)
{
	static const char *const where[2][2] = {
		{"ORDER BY seq", "WHERE " OPEN_POD " ORDER BY +seq"},
		{"WHERE run=?1 ORDER BY seq", "WHERE run=?1 AND " OPEN_POD " ORDER BY +seq"}};

	return sqlite_find(s, TABLE_POD, where[run != NULL][open_only], run, 0, (void **)out, count,
			   err);
}

int store_pods_since(struct store *s, int64_t wall_ms, struct pod_row **out, size_t *count,
		     struct err *err)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)wall_ms);
	return sqlite_find(
		s, TABLE_POD,
		"WHERE " OPEN_POD
		" OR max(create_ms,start_ms)+max(billed_ms,billed_vendor_ms)>CAST(?1 AS INTEGER)"
		" OR released_ms>CAST(?1 AS INTEGER) ORDER BY seq",
		text, 0, (void **)out, count, err);
}

int store_pods_up(struct store *s, const char *provider, size_t most, struct pod_row **out,
		  size_t *count, struct err *err)
{
	return sqlite_find(s, TABLE_POD, "WHERE provider=?1 AND connected_ms>0 ORDER BY seq DESC",
			   provider, most, (void **)out, count, err);
}

int store_batches_of_speed(struct store *s, const char *key, size_t most, struct batch_row **out,
			   size_t *count, struct err *err)
{
	return sqlite_find(s, TABLE_BATCH, "WHERE speed=?1 ORDER BY seq DESC", key, most,
			   (void **)out, count, err);
}

int store_requests(struct store *s, const char *config, bool open_only, struct request_row **out,
		   size_t *count, struct err *err)
{
	static const char *const where[2][2] = {
		{"ORDER BY seq", "WHERE " OPEN_REQUEST " ORDER BY +seq"},
		{"WHERE config=?1 ORDER BY seq",
		 "WHERE config=?1 AND " OPEN_REQUEST " ORDER BY +seq"}};

	return sqlite_find(s, TABLE_REQUEST, where[config != NULL][open_only], config, 0,
			   (void **)out, count, err);
}

#define LIST(plural, row, table, where)                                                            \
	int store_##plural(struct store *s, const char *text, struct row##_row **out,              \
			   size_t *count, struct err *err)                                         \
	{                                                                                          \
		return sqlite_find(s, table, where, text, 0, (void **)out, count, err);            \
	}
#define LIST_ALL(plural, row, table)                                                               \
	int store_##plural(struct store *s, struct row##_row **out, size_t *count,                 \
			   struct err *err)                                                        \
	{                                                                                          \
		return sqlite_find(s, table, "ORDER BY seq", NULL, 0, (void **)out, count, err);   \
	}
LIST(stages, run, TABLE_RUN, "WHERE config=?1 AND stage<>'' ORDER BY started_ms, seq")
LIST(runs_named, run, TABLE_RUN, "WHERE " HAS_PART("id") " ORDER BY seq")
LIST(pods_named, pod, TABLE_POD,
     "WHERE " HAS_PART("attempt") " OR " HAS_PART("id") " OR " HAS_PART("name") " ORDER BY seq")
LIST(segments, segment, TABLE_SEGMENT, "WHERE run=?1 ORDER BY seq")
LIST(batches, batch, TABLE_BATCH, "WHERE run=?1 ORDER BY seq")
LIST(speeds, speed, TABLE_SPEED, "WHERE key>=?1 AND key<?1||x'ff' ORDER BY seq")
LIST(requests_named, request, TABLE_REQUEST, "WHERE " HAS_PART("id") " ORDER BY seq")
LIST(forecasts, forecast, TABLE_FORECAST, "WHERE run=?1 ORDER BY seq")
LIST_ALL(volumes, volume, TABLE_VOLUME)
LIST_ALL(schedules, schedule, TABLE_SCHEDULE)
