/* store_impl.h - what the files of the ledger share: the tables as data, and SQLite.
 *
 * store.c has the typed calls, sqlite.c the file and its statements. */
#ifndef BURST_STORE_IMPL_H
#define BURST_STORE_IMPL_H

#include <sqlite3.h>
#include <sys/stat.h>

#include "base/states.h"
#include "store.h"

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

struct store {
	sqlite3 *db;
	char *path;
	dev_t device;   /* of the file that was opened */
	ino_t file;     /* 0: there is none, or it is opened to read: no write can be lost */
	bool impatient; /* another process held it for longer than PATIENCE_MS, and may still */
	bool reads_only;
	bool in_transaction;
	sqlite3_stmt *put[TABLE_COUNT]; /* each is made when it is first needed */
};

/* The row's key selects it; absent is success. */
int sqlite_remove(struct store *s, enum table_id table, const void *row, struct err *err);
/* Rows of the table into a new array, NULL when there are none. where: the rest of the SELECT, with
 * `text` as its ?1. most: 0: all. */
int sqlite_find(struct store *s, enum table_id table, const char *where, const char *text,
		size_t most, void **rows, size_t *count, struct err *err);

#endif
