/* sqlite.c - the ledger's statements and transactions. A put is one upsert under synchronous=FULL
 * in WAL mode, so it has reached the disk when it returns; statements are made from the tables in
 * rows.c, once. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/path.h"
#include "store_impl.h"

/* ---- what a failure means to a person ---- */

static bool disk_is_full(sqlite3 *db, int rc)
{
	int why = db ? sqlite3_system_errno(db) : 0;

	return rc == SQLITE_FULL || (rc == SQLITE_IOERR && (why == ENOSPC || why == EDQUOT));
}

const char *sqlite_advice(sqlite3 *db, int rc)
{
	if (disk_is_full(db, rc))
		return "the disk is full: free some space and retry";
	switch (rc) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED: return "locked by another process: retry when it has ended";
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH: return "cannot be written: check who owns it and its folder";
	case SQLITE_CANTOPEN: /* and SQLITE_IOERR: SQLite loses the reason when it cannot open or
				 sync */
		return "cannot be opened: check who owns it and its folder, and that the disk is "
		       "not full";
	case SQLITE_NOTADB: return "is not a ledger: move it away, or set BURST_STATE_DIR";
	case SQLITE_CORRUPT:
		return "is damaged: move it away with its -wal; \"burst reap\" then lists pods "
		       "that are left";
	case SQLITE_IOERR:
		return "the disk failed, or is full: check it, and the folder's file system";
	}
	return "the ledger failed";
}

void sqlite_set_patience(struct store *s, bool impatient)
{
	if (s->impatient == impatient)
		return;
	s->impatient = impatient;
	sqlite3_busy_timeout(s->db, impatient ? IMPATIENCE_MS : PATIENCE_MS);
}

int sqlite_fail(struct store *s, struct err *err)
{
	int rc = s->db ? sqlite3_errcode(s->db) : SQLITE_NOMEM;

	if ((rc & 0xff) == SQLITE_BUSY)
		sqlite_set_patience(s, true);

	/* SQLite's words for a read-only file system depend on which call failed first */
	if ((rc & 0xff) != SQLITE_NOMEM && access(s->path, W_OK) < 0 && errno == EROFS)
		return err_set(err, ERR_LOCAL,
			       "%s: the file system is read-only: burst rents nothing that it "
			       "cannot record",
			       s->path);

	return err_set(err, ERR_LOCAL, "%s: %s (%s)", s->path, sqlite_advice(s->db, rc & 0xff),
		       s->db ? sqlite3_errmsg(s->db) : "no memory");
}

int sqlite_run(struct store *s, const char *sql, struct err *err)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_fail(s, err);
}

/* ---- transactions ---- */

/* A deleted file takes all that is written to it, and the data is lost. */
int store_check(struct store *s, struct err *err)
{
	struct stat st;

	if (!s->file) /* opened to read: nothing is lost */
		return 0;
	if (stat(s->path, &st) == 0 && st.st_ino == s->file && st.st_dev == s->device)
		return 0;
	return err_set(err, ERR_LOCAL,
		       "%s: was removed or replaced while burst ran: what is written to it is "
		       "lost; \"burst reap\" finds "
		       "pods without it",
		       s->path);
}

int store_begin(struct store *s, struct err *err)
{
	assert(!s->in_transaction);
	/* the write lock now: what is read inside is still true when it is written */
	if (store_check(s, err) < 0 || sqlite_run(s, "BEGIN IMMEDIATE", err) < 0)
		return -1;
	sqlite_set_patience(s, false);
	s->in_transaction = true;
	return 0;
}

/* After a full or failing disk SQLite undoes the transaction by itself. A later put would be
 * committed alone. */
static bool transaction_is_lost(const struct store *s)
{
	return s->in_transaction && sqlite3_get_autocommit(s->db);
}

static int refuse_lost(const struct store *s, struct err *err)
{
	return err_set(err, ERR_LOCAL, "%s: the transaction was undone after an earlier failure",
		       s->path);
}

void sqlite_undo(struct store *s)
{
	if (!sqlite3_get_autocommit(s->db))
		sqlite_run(s, "ROLLBACK", NULL);
}

void store_rollback(struct store *s)
{
	if (s->in_transaction)
		sqlite_undo(s);
	s->in_transaction = false;
}

int store_commit(struct store *s, struct err *err)
{
	assert(s->in_transaction);
	s->in_transaction = false;
	if (sqlite3_get_autocommit(s->db))
		return refuse_lost(s, err);
	if (sqlite_run(s, "COMMIT", err) == 0)
		return 0;
	sqlite_undo(s);
	return -1;
}

/* ---- rows in and out ---- */

static int64_t bounded(int64_t n)
{
	return MIN(MAX(n, -STORE_NUMBER_MOST), STORE_NUMBER_MOST);
}

static double sound(double n)
{
	return isfinite(n) ? MIN(MAX(n, (double)-STORE_NUMBER_MOST), (double)STORE_NUMBER_MOST) : 0;
}

static int bind_column(sqlite3_stmt *stmt, int at, const struct column *c, const void *row)
{
	const char *field = (const char *)row + c->offset;

	switch (c->type) {
	case COLUMN_TEXT:
		return sqlite3_bind_text(stmt, at, field, (int)strnlen(field, c->size - 1),
					 SQLITE_STATIC);
	case COLUMN_INT: return sqlite3_bind_int(stmt, at, *(const int *)field);
	case COLUMN_INT64: return sqlite3_bind_int64(stmt, at, bounded(*(const int64_t *)field));
	case COLUMN_BOOL: return sqlite3_bind_int(stmt, at, *(const bool *)field);
	case COLUMN_DOUBLE: return sqlite3_bind_double(stmt, at, sound(*(const double *)field));
	case COLUMN_STATE:
		return sqlite3_bind_text(stmt, at, state_word(c->words, *(const unsigned *)field),
					 -1, SQLITE_STATIC);
	}
	return SQLITE_MISUSE;
}

static void read_column(sqlite3_stmt *stmt, int at, const struct column *c, void *row)
{
	char *field = (char *)row + c->offset;

	switch (c->type) {
	case COLUMN_TEXT:
		copy_text(field, c->size, (const char *)sqlite3_column_text(stmt, at));
		break;
	case COLUMN_INT: *(int *)field = sqlite3_column_int(stmt, at); break;
	case COLUMN_INT64: *(int64_t *)field = bounded(sqlite3_column_int64(stmt, at)); break;
	case COLUMN_BOOL: *(bool *)field = sqlite3_column_int(stmt, at) != 0; break;
	case COLUMN_DOUBLE: *(double *)field = sound(sqlite3_column_double(stmt, at)); break;
	case COLUMN_STATE:
		*(unsigned *)field =
			state_read(c->words, (const char *)sqlite3_column_text(stmt, at));
		break;
	}
}

static void add_names(struct str *sql, const struct table *t, size_t from, size_t to,
		      const char *fmt, const char *between)
{
	for (size_t i = from; i < to; i++) {
		if (i > from)
			str_add(sql, between);
		for (const char *p = fmt; *p; p++)
			if (*p == '@')
				str_add(sql, t->columns[i].name);
			else
				str_addc(sql, *p);
	}
}

static void put_sql(struct str *sql, const struct table *t)
{
	str_addf(sql, "INSERT INTO %s (", t->name);
	add_names(sql, t, 0, t->count, "@", ",");
	str_add(sql, ") VALUES (");
	add_names(sql, t, 0, t->count, "?", ",");
	str_add(sql, ") ON CONFLICT (");
	add_names(sql, t, 0, t->keys, "@", ",");
	str_add(sql, ") DO UPDATE SET ");
	add_names(sql, t, t->keys, t->count, "@=excluded.@", ",");
}

static void remove_sql(struct str *sql, const struct table *t)
{
	str_addf(sql, "DELETE FROM %s WHERE ", t->name);
	add_names(sql, t, 0, t->keys, "@=?", " AND ");
}

static int prepare(struct store *s, const struct str *sql, unsigned flags, sqlite3_stmt **out,
		   struct err *err)
{
	if (sqlite3_prepare_v3(s->db, str_text(sql), -1, flags, out, NULL) != SQLITE_OK)
		return sqlite_fail(s, err);
	return 0;
}

/* Steps a statement that gives no rows, and makes it ready for the next time. */
static int finish(struct store *s, sqlite3_stmt *stmt, struct err *err)
{
	int result = sqlite3_step(stmt) == SQLITE_DONE ? 0 : sqlite_fail(s, err);

	if (result == 0)
		sqlite_set_patience(s, false);
	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
	return result;
}

static int change(struct store *s, sqlite3_stmt *stmt, const struct table *t, size_t columns,
		  const void *row, struct err *err)
{
	if (transaction_is_lost(s))
		return refuse_lost(s, err);
	if (!s->in_transaction && store_check(s, err) < 0)
		return -1;
	for (size_t i = 0; i < columns; i++)
		if (bind_column(stmt, (int)i + 1, &t->columns[i], row) != SQLITE_OK)
			return sqlite_fail(s, err);
	return finish(s, stmt, err);
}

int store_put(struct store *s, enum table_id table, const void *row, struct err *err)
{
	const struct table *t = &store_tables[table];
	CLEANUP(str_free) struct str sql = STR_INIT;

	if (s->reads_only)
		return err_set(err, ERR_BUG, "%s: was opened for reading", s->path);
	if (!s->put[table]) {
		put_sql(&sql, t);
		if (prepare(s, &sql, SQLITE_PREPARE_PERSISTENT, &s->put[table], err) < 0)
			return -1;
	}
	return change(s, s->put[table], t, t->count, row, err);
}

int sqlite_remove(struct store *s, enum table_id table, const void *row, struct err *err)
{
	const struct table *t = &store_tables[table];
	CLEANUP(str_free) struct str sql = STR_INIT;
	sqlite3_stmt *stmt = NULL;

	remove_sql(&sql, t);
	if (prepare(s, &sql, 0, &stmt, err) < 0)
		return -1;
	int result = change(s, stmt, t, t->keys, row, err);
	sqlite3_finalize(stmt);
	return result;
}

static int collect(struct store *s, sqlite3_stmt *stmt, const struct table *t, void **rows,
		   size_t *count, struct err *err)
{
	char *list = NULL;
	size_t n = 0, cap = 0;
	int rc;

	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		list = grow_array(list, n, &cap, t->row_size);
		void *row = list + n++ * t->row_size;
		memset(row, 0, t->row_size);
		for (size_t i = 0; i < t->count; i++)
			read_column(stmt, (int)i, &t->columns[i], row);
	}
	if (rc != SQLITE_DONE) {
		free(list);
		return sqlite_fail(s, err);
	}
	*rows = list;
	*count = n;
	return 0;
}

int sqlite_find(struct store *s, enum table_id table, const char *where, const char *text,
		size_t most, void **rows, size_t *count, struct err *err)
{
	const struct table *t = &store_tables[table];
	CLEANUP(str_free) struct str sql = STR_INIT;
	sqlite3_stmt *stmt = NULL;

	str_add(&sql, "SELECT ");
	add_names(&sql, t, 0, t->count, "@", ",");
	str_addf(&sql, " FROM %s %s LIMIT ?2", t->name, where);
	if (prepare(s, &sql, 0, &stmt, err) < 0)
		return -1;
	/* a statement without ?1 ignores the NULL */
	sqlite3_bind_text(stmt, 1, text, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, most ? (int64_t)most : -1);
	int result = collect(s, stmt, t, rows, count, err);
	sqlite3_finalize(stmt);
	return result;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	store_rollback(s);
	for (size_t i = 0; i < TABLE_COUNT; i++)
		sqlite3_finalize(s->put[i]);
	sqlite3_close(s->db);
	free(s->path);
	free(s);
}
