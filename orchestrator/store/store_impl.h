/* store_impl.h - what the files of the ledger share: the tables as data, and SQLite.
 *
 * store.c has the typed calls, sqlite.c the statements that they come to, sqlite_open.c opens. */
#ifndef BURST_STORE_IMPL_H
#define BURST_STORE_IMPL_H

#include <sqlite3.h>
#include <sys/stat.h>

#include "base/states.h"
#include "store.h"

#define APPLICATION_ID 0x62757273 /* "burs": how we know a ledger from any other database */
#define PATIENCE_MS    10000      /* for other processes; their transactions take milliseconds */
#define GLANCE_MS      5          /* for one that only reads, for a prompt */
#define IMPATIENCE_MS  100        /* once it was in vain: releases must not wait behind it */

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
	QUERY_RUN,       /* id */
	QUERY_RUNS,      /* newest start first, as are the next four */
	QUERY_RUNS_OF,   /* config; no stages */
	QUERY_STAGES_OF, /* config */
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
	QUERY_CHOICE,    /* run */
	QUERY_FORECASTS, /* run */
	QUERY_COUNT
};

struct store {
	sqlite3 *db;
	char *path;
	dev_t device;   /* of the file that was opened */
	ino_t file;     /* 0: there is none, or it is opened to read: no write can be lost */
	bool impatient; /* another process held it for longer than PATIENCE_MS, and may still */
	bool reads_only;
	bool in_transaction;
	/* each is made when it is first needed */
	sqlite3_stmt *put[TABLE_COUNT], *remove[TABLE_COUNT], *find[QUERY_COUNT];
};

/* What an error of SQLite means, and what to do: "the disk is full: ..."; static. */
const char *sqlite_advice(sqlite3 *db, int rc);
/* How long other processes that hold the ledger are waited for. */
void sqlite_set_patience(struct store *s, bool impatient);
/* Sets SQLite's last error as ERR_LOCAL. Returns -1. */
int sqlite_fail(struct store *s, struct err *err);
int sqlite_run(struct store *s, const char *sql, struct err *err);
void sqlite_undo(struct store *s); /* SQLite's transaction, if one is open */
/* Makes all statements, so that a ledger that lacks a column is noticed before it is needed. */
int sqlite_prepare_all(struct store *s, struct err *err);
int sqlite_put(struct store *s, enum table_id table, const void *row, struct err *err);
/* The row's key selects it; absent is success. */
int sqlite_remove(struct store *s, enum table_id table, const void *row, struct err *err);
/* At most `most` rows (0: all) into a new array, NULL when there are none. */
int sqlite_find(struct store *s, enum query query, const char *text, size_t most, void **rows,
		size_t *count, struct err *err);

#endif
