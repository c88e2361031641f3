/* store_impl.h - what both back ends of the ledger share: the tables as data, and the operations of
 * a back end.
 *
 * store.c checks arguments and calls a back end; sqlite.c and memory.c give the same answers. */
#ifndef BURST_STORE_IMPL_H
#define BURST_STORE_IMPL_H

#include "base/states.h"
#include "store.h"

enum table_id {
	TABLE_RUN,
	TABLE_POD,
	TABLE_SEGMENT,
	TABLE_VOLUME,
	TABLE_FACT,
	TABLE_BATCH,
	TABLE_SPEED,
	TABLE_REQUEST,
	TABLE_SCHEDULE,
	TABLE_FIRING,
	TABLE_CHOICE,
	TABLE_FORECAST,
	TABLE_COUNT
};

enum column_type {
	COLUMN_TEXT,
	COLUMN_INT,
	COLUMN_INT64,
	COLUMN_BOOL,
	COLUMN_DOUBLE,
	COLUMN_STATE
};

struct column {
	const char *name;
	enum column_type type;
	size_t offset, size;             /* of the field in the row's struct */
	const struct state_words *words; /* COLUMN_STATE: an enum in memory, on disk its word */
};

struct table {
	const char *name;
	size_t row_size;
	size_t keys; /* the first so many columns are the key; all of them texts */
	size_t count;
	const struct column *columns;
};

extern const struct table store_tables[TABLE_COUNT];

struct fact_row {
	char name[96];
	char value[4096];
};

union any_row {
	struct run_row run;
	struct pod_row pod;
	struct segment_row segment;
	struct volume_row volume;
	struct fact_row fact;
	struct batch_row batch;
	struct speed_row speed;
	struct request_row request;
	struct schedule_row schedule;
	struct firing_row firing;
	struct choice_row choice;
	struct forecast_row forecast;
};

/* A number as it may stand in a row. */
int64_t row_number(int64_t n);
double row_fraction(double n);
/* Copies the columns and nothing else: texts end, and what is behind their end or between the
 * fields is zero. */
void row_copy(const struct table *table, void *to, const void *from);

/* Every query; `text` is its argument if it has one. */
enum query {
	QUERY_RUN,     /* id */
	QUERY_RUNS,    /* newest start first, as are the next three */
	QUERY_RUNS_OF, /* config */
	QUERY_RUNNING,
	QUERY_RUNNING_OF, /* config */
	QUERY_RUNS_NAMED, /* part of an id; in order of their first put */
	QUERY_POD,        /* attempt */
	QUERY_POD_ID,     /* vendor's id; last written first */
	QUERY_PODS,       /* in order of their first put, as is all that follows */
	QUERY_PODS_OF,    /* run */
	QUERY_PODS_OPEN,
	QUERY_PODS_OPEN_OF, /* run */
	QUERY_PODS_SINCE,   /* wall ms in decimal */
	QUERY_PODS_NAMED,   /* part of an attempt, an id or a name */
	QUERY_PODS_UP,      /* provider; last put first */
	QUERY_SEGMENTS,     /* run */
	QUERY_VOLUMES,
	QUERY_FACT,    /* name */
	QUERY_BATCHES, /* run */
	QUERY_SPEEDS,  /* beginning of a key */
	QUERY_REQUESTS,
	QUERY_REQUESTS_OF, /* config */
	QUERY_REQUESTS_OPEN,
	QUERY_REQUESTS_OPEN_OF, /* config */
	QUERY_REQUESTS_NAMED,   /* part of an id */
	QUERY_SCHEDULE,         /* name */
	QUERY_SCHEDULES,
	QUERY_FIRINGS,   /* schedule; last put first */
	QUERY_CHOICE,    /* run */
	QUERY_FORECASTS, /* run */
	QUERY_COUNT
};

struct store_ops {
	void (*close)(struct store *s);
	int (*check)(struct store *s, struct err *err); /* NULL: nothing can happen to it */
	int (*begin)(struct store *s, struct err *err);
	int (*commit)(struct store *s,
		      struct err *err); /* failed: everything since begin is undone */
	void (*rollback)(struct store *s);
	/* The row has been through row_copy(). */
	int (*put)(struct store *s, enum table_id table, const void *row, struct err *err);
	/* The row's key selects it; absent is success. */
	int (*remove)(struct store *s, enum table_id table, const void *row, struct err *err);
	/* At most `most` rows (0: all) into a new array, NULL when there are none. */
	int (*find)(struct store *s, enum query query, const char *text, size_t most, void **rows,
		    size_t *count, struct err *err);
};

struct store { /* first in each back end's own struct */
	const struct store_ops *ops;
	bool in_transaction;
};

#endif
