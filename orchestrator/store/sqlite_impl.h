/* sqlite_impl.h - what the files around SQLite share. */
#ifndef BURST_STORE_SQLITE_IMPL_H
#define BURST_STORE_SQLITE_IMPL_H

#include <sqlite3.h>
#include <sys/stat.h>

#include "store_impl.h"

#define APPLICATION_ID 0x62757273 /* "burs": how we know a ledger from any other database */
#define PATIENCE_MS    10000      /* for other processes; their transactions take milliseconds */
#define GLANCE_MS      5          /* for one that only reads, for a prompt */
#define IMPATIENCE_MS  100        /* once it was in vain: releases must not wait behind it */

struct sqlite {
	struct store base;
	sqlite3 *db;
	char *path;
	dev_t device; /* of the file that was opened */
	ino_t file;
	bool impatient; /* another process held it for longer than PATIENCE_MS, and may still */
	sqlite3_stmt *put[TABLE_COUNT], *remove[TABLE_COUNT], *find[QUERY_COUNT];
};

static inline struct sqlite *sqlite_of(struct store *s)
{
	return (struct sqlite *)s;
}

/* What an error of SQLite means, and what to do: "the disk is full: ..."; static. */
const char *sqlite_advice(sqlite3 *db, int rc);
/* How long other processes that hold the ledger are waited for. */
void sqlite_set_patience(struct sqlite *q, bool impatient);
/* Sets SQLite's last error as ERR_LOCAL. Returns -1. */
int sqlite_fail(struct sqlite *q, struct err *err);
int sqlite_run(struct sqlite *q, const char *sql, struct err *err);
int sqlite_begin(struct store *s, struct err *err);
void sqlite_rollback(struct store *s);
int sqlite_commit(struct store *s, struct err *err);
/* The statements of a table or a query, from the tables in rows.c. Appended. */
void sqlite_put_sql(struct str *sql, const struct table *t);
void sqlite_remove_sql(struct str *sql, const struct table *t);
void sqlite_find_sql(struct str *sql, enum query query);
int sqlite_prepare(struct sqlite *q, const struct str *sql, sqlite3_stmt **out, struct err *err);
void sqlite_close(struct store *s);

extern const struct store_ops sqlite_ops;

#endif
