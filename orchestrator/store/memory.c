/* memory.c - a ledger in memory, for the simulator. A hash of its key finds a row.
 *
 * A row never moves, which keeps the order of listings, so a removed row is only marked. Within a
 * transaction a log records how to undo each change; rollback plays it backwards. */
#include <assert.h>
#include <stdlib.h>

#include "store_impl.h"

#define NO_ROW UINT32_MAX

struct place {
	uint32_t next; /* in the chain of its bucket: newest first */
	bool removed;
};

struct rows {
	unsigned char *rows;
	struct place *places;
	size_t count, rows_cap, places_cap;
	uint32_t *buckets;
	size_t bucket_count; /* a power of two, or 0 before the first row */
};

enum undo_kind { UNDO_APPEND, UNDO_CHANGE, UNDO_REMOVE };

struct undo {
	enum undo_kind kind;
	enum table_id table;
	uint32_t at;
	void *old; /* UNDO_CHANGE: the row before the change */
};

struct memory {
	struct store base;
	struct rows tables[TABLE_COUNT];
	struct undo *undo;
	size_t undo_count, undo_cap;
};

static struct memory *memory_of(struct store *s)
{
	return (struct memory *)s;
}

/* ---- rows and their index ---- */

static void *row_at(const struct rows *r, enum table_id table, size_t at)
{
	return r->rows + at * store_tables[table].row_size;
}

static uint64_t hash_key(const struct table *table, const void *row)
{
	uint64_t h = 14695981039346656037u; /* FNV-1a; keys come from ourselves */

	for (size_t i = 0; i < table->keys; i++) {
		const char *p = (const char *)row + table->columns[i].offset;
		for (; *p; p++)
			h = (h ^ (unsigned char)*p) * 1099511628211u;
		h = (h ^ 0xff) * 1099511628211u; /* "ab","c" is not "a","bc" */
	}
	return h ^ h >> 32;
}

static bool same_key(const struct table *table, const void *a, const void *b)
{
	for (size_t i = 0; i < table->keys; i++)
		if (strcmp((const char *)a + table->columns[i].offset,
			   (const char *)b + table->columns[i].offset))
			return false;
	return true;
}

static uint32_t *bucket_of(const struct rows *r, enum table_id table, const void *row)
{
	return &r->buckets[hash_key(&store_tables[table], row) & (r->bucket_count - 1)];
}

static uint32_t find_key(const struct rows *r, enum table_id table, const void *row)
{
	uint32_t at = r->bucket_count ? *bucket_of(r, table, row) : NO_ROW;

	while (at != NO_ROW && (r->places[at].removed ||
				!same_key(&store_tables[table], row_at(r, table, at), row)))
		at = r->places[at].next;
	return at;
}

/* Chains are built by ascending place, so that the head is always the newest: undoing an append
 * takes the head off. */
static void chain(struct rows *r, enum table_id table, uint32_t at)
{
	uint32_t *head = bucket_of(r, table, row_at(r, table, at));

	r->places[at].next = *head;
	*head = at;
}

static void rehash(struct rows *r, enum table_id table)
{
	r->bucket_count = r->bucket_count ? r->bucket_count * 2 : 16;
	r->buckets = xrealloc(r->buckets, r->bucket_count * sizeof(*r->buckets));
	memset(r->buckets, 0xff, r->bucket_count * sizeof(*r->buckets)); /* NO_ROW */
	for (size_t i = 0; i < r->count; i++)
		chain(r, table, (uint32_t)i);
}

static uint32_t append(struct rows *r, enum table_id table, const void *row)
{
	size_t size = store_tables[table].row_size;

	assert(r->count < NO_ROW);
	if (r->count >= r->bucket_count)
		rehash(r, table);
	r->rows = grow_array(r->rows, r->count, &r->rows_cap, size);
	GROW(r->places, r->count, r->places_cap);
	uint32_t at = (uint32_t)r->count++;
	memcpy(row_at(r, table, at), row, size);
	r->places[at].removed = false;
	chain(r, table, at);
	return at;
}

static void drop_last(struct rows *r, enum table_id table)
{
	uint32_t at = (uint32_t)(r->count - 1);
	uint32_t *head = bucket_of(r, table, row_at(r, table, at));

	assert(*head == at);
	*head = r->places[at].next;
	r->count--;
}

/* ---- transactions ---- */

static void remember(struct memory *m, struct undo undo)
{
	if (!m->base.in_transaction)
		return;
	GROW(m->undo, m->undo_count, m->undo_cap);
	m->undo[m->undo_count++] = undo;
}

static void undo_one(struct memory *m, const struct undo *u)
{
	struct rows *r = &m->tables[u->table];

	switch (u->kind) {
	case UNDO_APPEND: drop_last(r, u->table); break;
	case UNDO_CHANGE:
		memcpy(row_at(r, u->table, u->at), u->old, store_tables[u->table].row_size);
		break;
	case UNDO_REMOVE: r->places[u->at].removed = false; break;
	}
}

static void forget_undo(struct memory *m)
{
	for (size_t i = 0; i < m->undo_count; i++)
		free(m->undo[i].old);
	m->undo_count = 0;
}

static int memory_begin(struct store *s, struct err *err)
{
	(void)s;
	(void)err;
	return 0;
}

static int memory_commit(struct store *s, struct err *err)
{
	(void)err;
	forget_undo(memory_of(s));
	return 0;
}

static void memory_rollback(struct store *s)
{
	struct memory *m = memory_of(s);

	for (size_t i = m->undo_count; i--;)
		undo_one(m, &m->undo[i]);
	forget_undo(m);
}

/* ---- changes ---- */

static void *copy_row(const void *row, size_t size)
{
	return memcpy(xmalloc(size), row, size);
}

static int memory_put(struct store *s, enum table_id table, const void *row, struct err *err)
{
	struct memory *m = memory_of(s);
	struct rows *r = &m->tables[table];
	size_t size = store_tables[table].row_size;
	uint32_t at = find_key(r, table, row);

	(void)err;
	if (at == NO_ROW) {
		remember(m, (struct undo){UNDO_APPEND, table, append(r, table, row), NULL});
		return 0;
	}
	void *old = row_at(r, table, at);
	if (s->in_transaction)
		remember(m, (struct undo){UNDO_CHANGE, table, at, copy_row(old, size)});
	memcpy(old, row, size);
	return 0;
}

static int memory_remove(struct store *s, enum table_id table, const void *row, struct err *err)
{
	struct memory *m = memory_of(s);
	struct rows *r = &m->tables[table];
	uint32_t at = find_key(r, table, row);

	(void)err;
	if (at == NO_ROW)
		return 0;
	r->places[at].removed = true;
	remember(m, (struct undo){UNDO_REMOVE, table, at, NULL});
	return 0;
}

/* ---- questions ---- */

static bool all(const void *row, const char *text)
{
	(void)row;
	(void)text;
	return true;
}

static bool run_named(const void *row, const char *text)
{
	return strstr(((const struct run_row *)row)->id, text) != NULL;
}

static bool run_of(const void *row, const char *text)
{
	return !strcmp(((const struct run_row *)row)->config, text);
}

static bool running(const void *row, const char *text)
{
	(void)text;
	return ((const struct run_row *)row)->status == RUN_RUNNING;
}

static bool running_of(const void *row, const char *text)
{
	return running(row, text) && run_of(row, text);
}

static bool pod_has_id(const void *row, const char *text)
{
	const struct pod_row *pod = row;

	return !strcmp(pod->id, text) && !pod->handed_to[0];
}

static bool pod_named(const void *row, const char *text)
{
	const struct pod_row *pod = row;

	return strstr(pod->attempt, text) || strstr(pod->id, text) || strstr(pod->name, text);
}

static bool pod_of(const void *row, const char *text)
{
	return !strcmp(((const struct pod_row *)row)->run, text);
}

static bool pod_open(const void *row, const char *text)
{
	(void)text;
	return !pod_row_over(row);
}

static bool pod_open_of(const void *row, const char *text)
{
	return pod_open(row, text) && pod_of(row, text);
}

static bool pod_since(const void *row, const char *text)
{
	const struct pod_row *pod = row;
	int64_t wall_ms = strtoll(text, NULL, 10);

	return pod_open(row, text) ||
	       pod->create_ms + MAX(pod->billed_ms, pod->billed_vendor_ms) > wall_ms ||
	       pod->released_ms > wall_ms;
}

static bool pod_up(const void *row, const char *text)
{
	const struct pod_row *pod = row;

	return !strcmp(pod->provider, text) && pod->connected_ms > 0;
}

static bool segment_of(const void *row, const char *text)
{
	return !strcmp(((const struct segment_row *)row)->run, text);
}

static bool batch_of(const void *row, const char *text)
{
	return !strcmp(((const struct batch_row *)row)->run, text);
}

static bool speed_begins(const void *row, const char *text)
{
	return !strncmp(((const struct speed_row *)row)->key, text, strlen(text));
}

static bool request_of(const void *row, const char *text)
{
	return !strcmp(((const struct request_row *)row)->config, text);
}

static bool request_open(const void *row, const char *text)
{
	enum request_state state = ((const struct request_row *)row)->state;

	(void)text;
	return state == REQUEST_PENDING || state == REQUEST_RUNNING;
}

static bool request_open_of(const void *row, const char *text)
{
	return request_open(row, text) && request_of(row, text);
}

static bool request_named(const void *row, const char *text)
{
	return strstr(((const struct request_row *)row)->id, text) != NULL;
}

static bool firing_of(const void *row, const char *text)
{
	return !strcmp(((const struct firing_row *)row)->schedule, text);
}

static bool forecast_of(const void *row, const char *text)
{
	return !strcmp(((const struct forecast_row *)row)->run, text);
}

enum order { OLDEST_PUT, NEWEST_PUT, NEWEST_START };

static const struct {
	enum table_id table;
	enum order order;
	bool (*matches)(const void *row, const char *text); /* NULL: the text is the key */
} questions[QUERY_COUNT] = {
	[QUERY_RUN] = {TABLE_RUN},
	[QUERY_RUNS] = {TABLE_RUN, NEWEST_START, all},
	[QUERY_RUNS_OF] = {TABLE_RUN, NEWEST_START, run_of},
	[QUERY_RUNNING] = {TABLE_RUN, NEWEST_START, running},
	[QUERY_RUNNING_OF] = {TABLE_RUN, NEWEST_START, running_of},
	[QUERY_RUNS_NAMED] = {TABLE_RUN, OLDEST_PUT, run_named},
	[QUERY_POD] = {TABLE_POD},
	[QUERY_POD_ID] = {TABLE_POD, NEWEST_PUT, pod_has_id},
	[QUERY_PODS] = {TABLE_POD, OLDEST_PUT, all},
	[QUERY_PODS_OF] = {TABLE_POD, OLDEST_PUT, pod_of},
	[QUERY_PODS_OPEN] = {TABLE_POD, OLDEST_PUT, pod_open},
	[QUERY_PODS_OPEN_OF] = {TABLE_POD, OLDEST_PUT, pod_open_of},
	[QUERY_PODS_SINCE] = {TABLE_POD, OLDEST_PUT, pod_since},
	[QUERY_PODS_NAMED] = {TABLE_POD, OLDEST_PUT, pod_named},
	[QUERY_PODS_UP] = {TABLE_POD, NEWEST_PUT, pod_up},
	[QUERY_SEGMENTS] = {TABLE_SEGMENT, OLDEST_PUT, segment_of},
	[QUERY_VOLUMES] = {TABLE_VOLUME, OLDEST_PUT, all},
	[QUERY_FACT] = {TABLE_FACT},
	[QUERY_BATCHES] = {TABLE_BATCH, OLDEST_PUT, batch_of},
	[QUERY_SPEEDS] = {TABLE_SPEED, OLDEST_PUT, speed_begins},
	[QUERY_REQUESTS] = {TABLE_REQUEST, OLDEST_PUT, all},
	[QUERY_REQUESTS_OF] = {TABLE_REQUEST, OLDEST_PUT, request_of},
	[QUERY_REQUESTS_OPEN] = {TABLE_REQUEST, OLDEST_PUT, request_open},
	[QUERY_REQUESTS_OPEN_OF] = {TABLE_REQUEST, OLDEST_PUT, request_open_of},
	[QUERY_REQUESTS_NAMED] = {TABLE_REQUEST, OLDEST_PUT, request_named},
	[QUERY_SCHEDULE] = {TABLE_SCHEDULE},
	[QUERY_SCHEDULES] = {TABLE_SCHEDULE, OLDEST_PUT, all},
	[QUERY_FIRINGS] = {TABLE_FIRING, NEWEST_PUT, firing_of},
	[QUERY_CHOICE] = {TABLE_CHOICE},
	[QUERY_FORECASTS] = {TABLE_FORECAST, OLDEST_PUT, forecast_of},
};

struct hit {
	int64_t rank; /* higher first */
	size_t at;
};

static int by_rank(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return x->at > y->at ? -1 : 1;
}

static struct hit *find_hits(const struct rows *r, enum query query, const char *text,
			     size_t *count)
{
	enum table_id table = questions[query].table;
	struct hit *hits = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < r->count; i++) {
		const void *row = row_at(r, table, i);
		if (r->places[i].removed || !questions[query].matches(row, text))
			continue;
		GROW(hits, n, cap);
		hits[n++] = (struct hit){.at = i};
		if (questions[query].order == NEWEST_START)
			hits[n - 1].rank = ((const struct run_row *)row)->started_ms;
	}
	if (n && questions[query].order != OLDEST_PUT)
		qsort(hits, n, sizeof(*hits), by_rank);
	*count = n;
	return hits;
}

/* The one row whose key is the text, or none. */
static void find_by_key(const struct rows *r, enum table_id table, const char *text, void **rows,
			size_t *count)
{
	const struct column *key = &store_tables[table].columns[0];
	union any_row wanted;

	*rows = NULL;
	*count = 0;
	if (strlen(text) >= key->size)
		return;
	copy_text((char *)&wanted + key->offset, key->size, text);
	uint32_t at = find_key(r, table, &wanted);
	if (at == NO_ROW)
		return;
	*rows = copy_row(row_at(r, table, at), store_tables[table].row_size);
	*count = 1;
}

static int memory_find(struct store *s, enum query query, const char *text, size_t most,
		       void **rows, size_t *count, struct err *err)
{
	enum table_id table = questions[query].table;
	const struct rows *r = &memory_of(s)->tables[table];
	size_t size = store_tables[table].row_size, n;

	(void)err;
	if (!questions[query].matches) {
		find_by_key(r, table, text, rows, count);
		return 0;
	}
	struct hit *hits = find_hits(r, query, text, &n);
	if (most)
		n = MIN(n, most);
	*rows = n ? xmalloc(n * size) : NULL;
	for (size_t i = 0; i < n; i++)
		memcpy((char *)*rows + i * size, row_at(r, table, hits[i].at), size);
	*count = n;
	free(hits);
	return 0;
}

/* ---- opening and closing ---- */

static void memory_close(struct store *s)
{
	struct memory *m = memory_of(s);

	for (size_t i = 0; i < TABLE_COUNT; i++) {
		free(m->tables[i].rows);
		free(m->tables[i].places);
		free(m->tables[i].buckets);
	}
	forget_undo(m);
	free(m->undo);
	free(m);
}

static const struct store_ops memory_ops = {
	.close = memory_close,
	.begin = memory_begin,
	.commit = memory_commit,
	.rollback = memory_rollback,
	.put = memory_put,
	.remove = memory_remove,
	.find = memory_find,
};

struct store *store_memory(void)
{
	struct memory *m = xcalloc(1, sizeof(*m));

	m->base.ops = &memory_ops;
	return &m->base;
}
