/* sqlite.c - the ledger's file: opens and checks it, and carries out its statements and
 * transactions. A put is one upsert under synchronous=FULL in WAL mode, so it has reached the disk
 * when it returns; statements are made from the tables in rows.c. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "store_impl.h"

#define APPLICATION_ID 0x62757273 /* "burs": how we know a ledger from any other database */
#define PATIENCE_MS    10000      /* for other processes; their transactions take milliseconds */
#define GLANCE_MS      5          /* for one that only reads, for a prompt */
#define IMPATIENCE_MS  100        /* once it was in vain: releases must not wait behind it */

/* ---- what a failure means to a person ---- */

static bool disk_is_full(sqlite3 *db, int rc)
{
	int why = db ? sqlite3_system_errno(db) : 0;

	return rc == SQLITE_FULL || (rc == SQLITE_IOERR && (why == ENOSPC || why == EDQUOT));
}

/* What a failure means to a user, and what helps. */
static const char *advice_for(sqlite3 *db, int rc)
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

static void set_patience(struct store *s, bool impatient)
{
	if (s->impatient == impatient)
		return;
	s->impatient = impatient;
	sqlite3_busy_timeout(s->db, impatient ? IMPATIENCE_MS : PATIENCE_MS);
}

/* Sets *err by the last failure and returns -1. After a lock, later calls wait less. */
static int set_sqlite_err(struct store *s, struct err *err)
{
	int rc = s->db ? sqlite3_errcode(s->db) : SQLITE_NOMEM;

	if ((rc & 0xff) == SQLITE_BUSY)
		set_patience(s, true);

	/* SQLite's words for a read-only file system depend on which call failed first */
	if ((rc & 0xff) != SQLITE_NOMEM && access(s->path, W_OK) < 0 && errno == EROFS)
		return err_set(err, ERR_LOCAL,
			       "%s: the file system is read-only: burst rents nothing that it "
			       "cannot record",
			       s->path);

	return err_set(err, ERR_LOCAL, "%s: %s (%s)", s->path, advice_for(s->db, rc & 0xff),
		       s->db ? sqlite3_errmsg(s->db) : "no memory");
}

static int run_sql(struct store *s, const char *sql, struct err *err)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : set_sqlite_err(s, err);
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
	if (store_check(s, err) < 0 || run_sql(s, "BEGIN IMMEDIATE", err) < 0)
		return -1;
	set_patience(s, false);
	s->in_transaction = true;
	return 0;
}

/* After a full or failing disk SQLite undoes the transaction by itself. A later put would be
 * committed alone. */
static bool transaction_is_lost(const struct store *s)
{
	return s->in_transaction && sqlite3_get_autocommit(s->db);
}

static int refuse_lost_transaction(const struct store *s, struct err *err)
{
	return err_set(err, ERR_LOCAL, "%s: the transaction was undone after an earlier failure",
		       s->path);
}

static void undo_transaction(struct store *s)
{
	if (!sqlite3_get_autocommit(s->db))
		run_sql(s, "ROLLBACK", NULL);
}

void store_rollback(struct store *s)
{
	if (s->in_transaction)
		undo_transaction(s);
	s->in_transaction = false;
}

int store_commit(struct store *s, struct err *err)
{
	assert(s->in_transaction);
	s->in_transaction = false;
	if (sqlite3_get_autocommit(s->db))
		return refuse_lost_transaction(s, err);
	if (run_sql(s, "COMMIT", err) == 0)
		return 0;
	undo_transaction(s);
	return -1;
}

int store_end(struct store *s, int result, struct err *err)
{
	if (result >= 0)
		return store_commit(s, err) < 0 ? -1 : result;
	store_rollback(s);
	return -1;
}

/* ---- rows in and out ---- */

static int64_t clamp_integer(int64_t n)
{
	return MIN(MAX(n, -STORE_NUMBER_MOST), STORE_NUMBER_MOST);
}

static double clamp_fraction(double n)
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
	case COLUMN_INT64:
		return sqlite3_bind_int64(stmt, at, clamp_integer(*(const int64_t *)field));
	case COLUMN_BOOL: return sqlite3_bind_int(stmt, at, *(const bool *)field);
	case COLUMN_DOUBLE:
		return sqlite3_bind_double(stmt, at, clamp_fraction(*(const double *)field));
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
	case COLUMN_INT64: *(int64_t *)field = clamp_integer(sqlite3_column_int64(stmt, at)); break;
	case COLUMN_BOOL: *(bool *)field = sqlite3_column_int(stmt, at) != 0; break;
	case COLUMN_DOUBLE:
		*(double *)field = clamp_fraction(sqlite3_column_double(stmt, at));
		break;
	case COLUMN_STATE:
		*(unsigned *)field =
			state_read(c->words, (const char *)sqlite3_column_text(stmt, at));
		break;
	}
}

/* Adds fmt for the columns [from, to), with each name for its @. */
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

static void make_put_sql(struct str *sql, const struct table *t)
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

static void make_remove_sql(struct str *sql, const struct table *t)
{
	str_addf(sql, "DELETE FROM %s WHERE ", t->name);
	add_names(sql, t, 0, t->keys, "@=?", " AND ");
}

static int prepare(struct store *s, const struct str *sql, unsigned flags, sqlite3_stmt **out,
		   struct err *err)
{
	if (sqlite3_prepare_v3(s->db, str_text(sql), -1, flags, out, NULL) != SQLITE_OK)
		return set_sqlite_err(s, err);
	return 0;
}

/* Steps a statement that gives no rows, and makes it ready for the next time. */
static int step_and_reset(struct store *s, sqlite3_stmt *stmt, struct err *err)
{
	int result = sqlite3_step(stmt) == SQLITE_DONE ? 0 : set_sqlite_err(s, err);

	if (result == 0)
		set_patience(s, false);
	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
	return result;
}

/* Carries out a statement whose parameters are the first columns of the row. */
static int bind_and_step(struct store *s, sqlite3_stmt *stmt, const struct table *t, size_t columns,
			 const void *row, struct err *err)
{
	if (transaction_is_lost(s))
		return refuse_lost_transaction(s, err);
	if (!s->in_transaction && store_check(s, err) < 0)
		return -1;
	for (size_t i = 0; i < columns; i++)
		if (bind_column(stmt, (int)i + 1, &t->columns[i], row) != SQLITE_OK)
			return set_sqlite_err(s, err);
	return step_and_reset(s, stmt, err);
}

int store_put(struct store *s, enum table_id table, const void *row, struct err *err)
{
	const struct table *t = &store_tables[table];
	CLEANUP(str_free) struct str sql = STR_INIT;

	if (s->reads_only)
		return err_set(err, ERR_BUG, "%s: was opened for reading", s->path);
	if (!s->put[table]) {
		make_put_sql(&sql, t);
		if (prepare(s, &sql, SQLITE_PREPARE_PERSISTENT, &s->put[table], err) < 0)
			return -1;
	}
	return bind_and_step(s, s->put[table], t, t->count, row, err);
}

int sqlite_remove(struct store *s, enum table_id table, const void *row, struct err *err)
{
	const struct table *t = &store_tables[table];
	CLEANUP(str_free) struct str sql = STR_INIT;
	sqlite3_stmt *stmt = NULL;

	make_remove_sql(&sql, t);
	if (prepare(s, &sql, 0, &stmt, err) < 0)
		return -1;
	int result = bind_and_step(s, stmt, t, t->keys, row, err);
	sqlite3_finalize(stmt);
	return result;
}

/* Reads all rows into a new array *rows, which the caller frees; NULL: there are none. */
static int collect_rows(struct store *s, sqlite3_stmt *stmt, const struct table *t, void **rows,
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
		return set_sqlite_err(s, err);
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
	int result = collect_rows(s, stmt, t, rows, count, err);
	sqlite3_finalize(stmt);
	return result;
}

/* ---- opening ---- */

/* The version of schema.sql. Another version is refused. */
#define SCHEMA_VERSION 23
static const char schema[] =
#include "schema.sql.h"
	;

struct identity {
	int application, version, objects;
};

/* The file is made by us, 0600 from its first moment whatever the umask; SQLite gives -wal and -shm
 * the same mode. An existing file is not opened: closing it would drop this process's locks. */
static int make_file(const char *path, struct err *err)
{
	CLEANUP(free_text) char *dir = path_dir(path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0) {
		close(fd);
		return path_fsync_dir(dir, err);
	}
	if (errno == EEXIST)
		return 0;
	if (errno == ENOSPC || errno == EDQUOT)
		return err_set(err, ERR_LOCAL, "%s: the disk is full: free some space and retry",
			       path);
	return err_set(err, ERR_LOCAL,
		       "%s: cannot be created: %s; check who owns the folder, or set "
		       "BURST_STATE_DIR",
		       path, strerror(errno));
}

/* A ledger that was copied here may be readable by all; it names accounts, files and machines. */
static void narrow_mode(const char *path, const char *suffix)
{
	CLEANUP(free_text) char *name = xasprintf("%s%s", path, suffix);
	struct stat st;

	if (stat(name, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    st.st_mode & 077)
		(void)!chmod(name, 0600);
}

static int check_file(const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s; check who owns it", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_LOCAL,
			       "%s: is %s, the ledger must be a file: move it away, or set "
			       "BURST_STATE_DIR",
			       path, S_ISDIR(st.st_mode) ? "a folder" : "not a file");
	narrow_mode(path, "");
	narrow_mode(path, "-wal");
	narrow_mode(path, "-shm");
	return 0;
}

/* The first column of the first row. */
static int read_number(struct store *s, const char *sql, int *out, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int result = 0;

	if (sqlite3_prepare_v2(s->db, sql, -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		*out = sqlite3_column_int(stmt, 0);
	else
		result = set_sqlite_err(s, err);
	sqlite3_finalize(stmt);
	return result;
}

static int read_version(struct store *s, int *version, struct err *err)
{
	if (read_number(s, "PRAGMA user_version", version, err) < 0)
		return -1;
	if (*version < 0) /* its bytes are spoilt: SQLite hands out what they say */
		return err_set(err, ERR_LOCAL, "%s: %s", s->path,
			       advice_for(s->db, SQLITE_CORRUPT));
	return 0;
}

/* In one transaction: another process may make an empty file a ledger between two reads. */
static int read_identity(struct store *s, struct identity *out, struct err *err)
{
	if (run_sql(s, "BEGIN", err) < 0)
		return -1;
	int result = read_number(s, "PRAGMA application_id", &out->application, err);
	if (result == 0)
		result = read_version(s, &out->version, err);
	if (result == 0)
		result = read_number(s, "SELECT count(*) FROM sqlite_master", &out->objects, err);
	undo_transaction(s); /* nothing was written */
	return result;
}

static int refuse_stranger(const struct store *s, struct err *err)
{
	return err_set(err, ERR_LOCAL,
		       "%s: is a database of another program: move it away, or set "
		       "BURST_STATE_DIR",
		       s->path);
}

static int refuse_version(const struct store *s, int version, struct err *err)
{
	if (version > SCHEMA_VERSION)
		return err_set(err, ERR_LOCAL,
			       "%s: was written by a newer burst (version %d, this one reads %d): "
			       "update burst, or set BURST_STATE_DIR",
			       s->path, version, SCHEMA_VERSION);
	return err_set(err, ERR_LOCAL,
		       "%s: was written by an older burst (version %d, this one reads %d): move it "
		       "aside with its -wal, or set BURST_STATE_DIR; \"burst reap\" then lists "
		       "pods that are left",
		       s->path, version, SCHEMA_VERSION);
}

/* Before the first write: a database that is not ours stays unchanged. *fresh: it is empty. */
static int check_ours(struct store *s, bool *fresh, struct err *err)
{
	struct identity id = {0};

	if (read_identity(s, &id, err) < 0)
		return -1;
	*fresh = id.application == 0 && id.version == 0 && id.objects == 0;
	if (id.application != APPLICATION_ID && !*fresh)
		return refuse_stranger(s, err);
	if (!*fresh && id.version != SCHEMA_VERSION)
		return refuse_version(s, id.version, err);
	if (sqlite3_db_readonly(s->db, "main") == 1)
		return err_set(err, ERR_LOCAL,
			       "%s: cannot be written: check who owns it and its folder", s->path);
	return 0;
}

/* Two processes that both turn a new file to WAL can meet in a way in which SQLite answers "busy"
 * without waiting. */
static int set_modes(struct store *s, struct err *err)
{
	static const char sql[] =
		"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA fullfsync=1;"
		"PRAGMA checkpoint_fullfsync=1; PRAGMA trusted_schema=0; PRAGMA cell_size_check=1";
	int64_t deadline_ms = clock_boot_ms() + PATIENCE_MS;
	struct timespec moment = {.tv_nsec = 5 * 1000000};

	while (run_sql(s, sql, err) < 0) {
		if ((sqlite3_errcode(s->db) & 0xff) != SQLITE_BUSY ||
		    clock_boot_ms() >= deadline_ms)
			return -1;
		nanosleep(&moment, NULL);
	}
	set_patience(s, false);
	return 0;
}

static int make_tables(struct store *s, struct err *err)
{
	CLEANUP(str_free) struct str mark = STR_INIT;

	if (run_sql(s, schema, err) < 0)
		return -1;
	str_addf(&mark, "PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION_ID,
		 SCHEMA_VERSION);
	return run_sql(s, str_text(&mark), err);
}

static int make_ledger(struct store *s, struct err *err)
{
	int version = 0;

	if (store_begin(s, err) < 0)
		return -1;
	/* again: another process may have made it meanwhile */
	if (read_version(s, &version, err) < 0 || (!version && make_tables(s, err) < 0)) {
		undo_transaction(s);
		return -1;
	}
	return store_commit(s, err);
}

static int open_database(struct store *s, struct err *err)
{
	bool fresh = false;
	struct stat st;

	/* "./": SQLite gives ":memory:" and "file:" meanings of their own */
	CLEANUP(free_text) char *name = xasprintf("%s%s", s->path[0] == '/' ? "" : "./", s->path);

	if (sqlite3_open_v2(name, &s->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		return set_sqlite_err(s, err);
	if (stat(s->path, &st) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s; check who owns it", s->path,
			       strerror(errno));
	s->device = st.st_dev;
	s->file = st.st_ino;
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_busy_timeout(s->db, PATIENCE_MS);
	if (check_ours(s, &fresh, err) < 0 || set_modes(s, err) < 0)
		return -1;
	return fresh ? make_ledger(s, err) : 0;
}

static struct store *new_store(const char *path)
{
	struct store *s = xcalloc(1, sizeof(*s));

	s->path = xstrdup(path);
	return s;
}

int store_open(struct store **out, const char *path, struct err *err)
{
	if (make_file(path, err) < 0 || check_file(path, err) < 0)
		return -1;
	struct store *s = new_store(path);
	if (open_database(s, err) < 0) {
		store_close(s);
		return -1;
	}
	*out = s;
	return 0;
}

struct store *store_memory(void)
{
	struct store *s = new_store("ledger in memory");

	if (sqlite3_open(":memory:", &s->db) != SQLITE_OK || run_sql(s, schema, NULL) < 0)
		abort(); /* as without memory */
	return s;
}

/* Ends with a transaction open, so that no later question meets a lock. */
static int begin_reading(struct store *s, struct err *err)
{
	int application = 0, version = 0;

	if (run_sql(s, "BEGIN", err) < 0 ||
	    read_number(s, "PRAGMA application_id", &application, err) < 0 ||
	    read_version(s, &version, err) < 0)
		return -1;
	if (!application && !version)
		return err_set(err, ERR_NOT_FOUND, "%s: is empty", s->path);
	if (application != APPLICATION_ID)
		return refuse_stranger(s, err);
	return version == SCHEMA_VERSION ? 0 : refuse_version(s, version, err);
}

static int open_to_read(struct store *s, struct err *err)
{
	CLEANUP(free_text) char *name = xasprintf("%s%s", s->path[0] == '/' ? "" : "./", s->path);

	if (sqlite3_open_v2(name, &s->db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		return set_sqlite_err(s, err);
	sqlite3_busy_timeout(s->db, GLANCE_MS);
	if (begin_reading(s, err) == 0)
		return 0;
	int rc = sqlite3_errcode(s->db) & 0xff;
	if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
		return err_set(err, ERR_BUSY, "%s: locked by another process", s->path);
	return -1;
}

int store_open_to_read(struct store **out, const char *path, struct err *err)
{
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s: does not exist yet", path);
	struct store *s = new_store(path);
	s->reads_only = true;
	if (open_to_read(s, err) < 0) {
		store_close(s);
		return -1;
	}
	*out = s;
	return 0;
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
