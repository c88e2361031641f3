/* sqlite.c - the ledger on disk: all of SQLite. A put is one upsert under synchronous=FULL in WAL
 * mode, so it has reached the disk when it returns; statements are made from the tables in rows.c,
 * once. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
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

/* schema.sql is version 3: what was older was written before burst had users. Each step brings a
 * ledger one version further. Steps are added, never changed. */
#define FIRST_VERSION 3
static const char schema[] =
#include "schema.sql.h"
	;
static const char *const migrations[] = {
	/* what batches took, what was planned, and how busy GPUs were */
	"CREATE TABLE batch (seq INTEGER PRIMARY KEY, attempt TEXT NOT NULL, id TEXT NOT NULL, run "
	"TEXT NOT NULL, speed TEXT NOT NULL,"
	" segments INTEGER NOT NULL, longest REAL NOT NULL, sum REAL NOT NULL, took_ms INTEGER NOT "
	"NULL, done_ms INTEGER NOT NULL,"
	" UNIQUE (attempt, id));"
	"CREATE INDEX batch_of_run ON batch (run);"
	"CREATE TABLE speed (seq INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, n REAL NOT NULL, "
	"longest REAL NOT NULL, sum REAL NOT NULL,"
	" longest2 REAL NOT NULL, longest_sum REAL NOT NULL, sum2 REAL NOT NULL, t REAL NOT NULL, "
	"longest_t REAL NOT NULL,"
	" sum_t REAL NOT NULL, batches INTEGER NOT NULL, updated_ms INTEGER NOT NULL);"
	"ALTER TABLE run ADD COLUMN planned_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE run ADD COLUMN planned_microusd INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN gpu_samples INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN gpu_busy_p50 INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN gpu_busy_p95 INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN gpu_memory_peak_mib INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE pod ADD COLUMN preempted INTEGER NOT NULL DEFAULT 0;",
	/* how pods were prepared, and how large batches may be */
	"ALTER TABLE pod ADD COLUMN image TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE pod ADD COLUMN setup TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE pod ADD COLUMN setup_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN synced_bytes INTEGER NOT NULL DEFAULT -1;"
	"ALTER TABLE batch ADD COLUMN most INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE batch ADD COLUMN batching TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE speed ADD COLUMN most INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE speed ADD COLUMN batching TEXT NOT NULL DEFAULT '';",
	/* what was planned anew while it ran */
	"ALTER TABLE run ADD COLUMN replans INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE run ADD COLUMN replanned TEXT NOT NULL DEFAULT '';",
	/* how workers spent the time before hello */
	"ALTER TABLE pod ADD COLUMN import_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN read_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN build_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN warm_up_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN probe_ms INTEGER NOT NULL DEFAULT 0;",
	/* what waits to be rendered, and of which commit runs are */
	"CREATE TABLE request (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, config TEXT NOT "
	"NULL, state TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL, quiet_ms INTEGER NOT NULL, max_wait_ms INTEGER NOT NULL, "
	"by_ms INTEGER NOT NULL,"
	" below_microusd_h INTEGER NOT NULL, min_segments INTEGER NOT NULL, commit_id TEXT NOT "
	"NULL, repo TEXT NOT NULL, path TEXT NOT NULL,"
	" run TEXT NOT NULL, tries INTEGER NOT NULL, first_try_ms INTEGER NOT NULL, not_before_ms "
	"INTEGER NOT NULL, deaths INTEGER NOT NULL, ended_ms INTEGER NOT NULL,"
	" exit_status INTEGER NOT NULL, error TEXT NOT NULL);"
	"CREATE INDEX request_of_config ON request (config);"
	"CREATE INDEX request_open ON request (config) WHERE state IN ('pending','running');"
	"ALTER TABLE run ADD COLUMN commit_id TEXT NOT NULL DEFAULT '';",
	/* schedules and their firings */
	"CREATE TABLE schedule (seq INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, rule TEXT NOT "
	"NULL, config TEXT NOT NULL,"
	" backend TEXT NOT NULL, environment TEXT NOT NULL, overlap TEXT NOT NULL, catch_up_ms "
	"INTEGER NOT NULL, jitter_ms INTEGER NOT NULL,"
	" retries INTEGER NOT NULL, retry_after_ms INTEGER NOT NULL, window_ms INTEGER NOT NULL, "
	"made_ms INTEGER NOT NULL);"
	"CREATE TABLE firing (seq INTEGER PRIMARY KEY, schedule TEXT NOT NULL, due TEXT NOT NULL, "
	"state TEXT NOT NULL,"
	" started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, tries INTEGER NOT NULL, missed "
	"INTEGER NOT NULL, run TEXT NOT NULL,"
	" exit_status INTEGER NOT NULL, said TEXT NOT NULL, UNIQUE (schedule, due));",
	/* environments unpacked to the pod's disk */
	"ALTER TABLE pod ADD COLUMN unpack_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN unpack_bytes INTEGER NOT NULL DEFAULT 0;",
	/* pods that are kept, and handed from run to run */
	"ALTER TABLE pod ADD COLUMN kept_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN kept_until_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN pool TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE pod ADD COLUMN env TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE pod ADD COLUMN cold_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN holds INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN handed_from TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE pod ADD COLUMN handed_to TEXT NOT NULL DEFAULT '';",
	"ALTER TABLE request ADD COLUMN fills_pod INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE run ADD COLUMN wants TEXT NOT NULL DEFAULT '';",
	/* no burst read them */
	"ALTER TABLE pod DROP COLUMN slot; ALTER TABLE volume DROP COLUMN tree;",
};
#define NEWEST_VERSION (FIRST_VERSION + (int)ARRAY_LEN(migrations))

struct sqlite {
	struct store base;
	sqlite3 *db;
	char *path;
	dev_t device; /* of the file that was opened */
	ino_t file;
	bool impatient; /* another process held it for longer than PATIENCE_MS, and may still */
	sqlite3_stmt *put[TABLE_COUNT], *remove[TABLE_COUNT], *find[QUERY_COUNT];
};

static struct sqlite *sqlite_of(struct store *s)
{
	return (struct sqlite *)s;
}

/* ---- what a failure means to a person ---- */

static bool disk_is_full(sqlite3 *db, int rc)
{
	int why = db ? sqlite3_system_errno(db) : 0;

	return rc == SQLITE_FULL || (rc == SQLITE_IOERR && (why == ENOSPC || why == EDQUOT));
}

static const char *advice(sqlite3 *db, int rc)
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

static void set_patience(struct sqlite *q, bool impatient)
{
	if (q->impatient == impatient)
		return;
	q->impatient = impatient;
	sqlite3_busy_timeout(q->db, impatient ? IMPATIENCE_MS : PATIENCE_MS);
}

static int fail(struct sqlite *q, struct err *err)
{
	int rc = q->db ? sqlite3_errcode(q->db) : SQLITE_NOMEM;

	if ((rc & 0xff) == SQLITE_BUSY)
		set_patience(q, true);

	/* SQLite says many things of it, according to what it tried first */
	if ((rc & 0xff) != SQLITE_NOMEM && access(q->path, W_OK) < 0 && errno == EROFS)
		return err_set(err, ERR_LOCAL,
			       "%s: the file system is read-only: burst rents nothing that it "
			       "cannot record",
			       q->path);

	return err_set(err, ERR_LOCAL, "%s: %s (%s)", q->path, advice(q->db, rc & 0xff),
		       q->db ? sqlite3_errmsg(q->db) : "no memory");
}

static int run_sql(struct sqlite *q, const char *sql, struct err *err)
{
	return sqlite3_exec(q->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(q, err);
}

/* ---- transactions ---- */

/* A deleted file takes all that is written to it, and the data is lost. */
static int check_name(const struct sqlite *q, struct err *err)
{
	struct stat st;

	if (stat(q->path, &st) == 0 && st.st_ino == q->file && st.st_dev == q->device)
		return 0;
	return err_set(err, ERR_LOCAL,
		       "%s: was removed or replaced while burst ran: what is written to it is "
		       "lost; \"burst reap\" finds "
		       "pods without it",
		       q->path);
}

static int sqlite_begin(struct store *s, struct err *err)
{
	/* the write lock now: what is read inside is still true when it is written */
	if (check_name(sqlite_of(s), err) < 0 || run_sql(sqlite_of(s), "BEGIN IMMEDIATE", err) < 0)
		return -1;
	set_patience(sqlite_of(s), false);
	return 0;
}

/* A full or failing disk makes SQLite undo the transaction by itself; what is put afterwards would
 * stand alone. */
static bool transaction_is_lost(const struct sqlite *q)
{
	return q->base.in_transaction && sqlite3_get_autocommit(q->db);
}

static int refuse_lost(const struct sqlite *q, struct err *err)
{
	return err_set(err, ERR_LOCAL, "%s: the transaction was undone after an earlier failure",
		       q->path);
}

static void sqlite_rollback(struct store *s)
{
	if (!sqlite3_get_autocommit(sqlite_of(s)->db))
		run_sql(sqlite_of(s), "ROLLBACK", NULL);
}

static int sqlite_commit(struct store *s, struct err *err)
{
	struct sqlite *q = sqlite_of(s);

	if (sqlite3_get_autocommit(q->db))
		return refuse_lost(q, err);
	if (run_sql(q, "COMMIT", err) == 0)
		return 0;
	sqlite_rollback(s);
	return -1;
}

/* ---- rows in and out ---- */

static int bind_column(sqlite3_stmt *stmt, int at, const struct column *c, const void *row)
{
	const char *field = (const char *)row + c->offset;

	switch (c->type) {
	case COLUMN_TEXT: return sqlite3_bind_text(stmt, at, field, -1, SQLITE_STATIC);
	case COLUMN_INT: return sqlite3_bind_int(stmt, at, *(const int *)field);
	case COLUMN_INT64: return sqlite3_bind_int64(stmt, at, *(const int64_t *)field);
	case COLUMN_BOOL: return sqlite3_bind_int(stmt, at, *(const bool *)field);
	case COLUMN_DOUBLE: return sqlite3_bind_double(stmt, at, *(const double *)field);
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
	case COLUMN_INT64: *(int64_t *)field = row_number(sqlite3_column_int64(stmt, at)); break;
	case COLUMN_BOOL: *(bool *)field = sqlite3_column_int(stmt, at) != 0; break;
	case COLUMN_DOUBLE: *(double *)field = row_fraction(sqlite3_column_double(stmt, at)); break;
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

/* Byte by byte, whatever the bytes are. */
#define HAS_PART(column) "instr(CAST(" column " AS BLOB),CAST(?1 AS BLOB))"

/* The indexes of schema.sql are made for these; pod_open and run_running need their very words.
 * "+seq": few pods are open, sorting them costs less than the walk through all pods in their order,
 * which the planner would prefer. */
static const struct {
	enum table_id table;
	const char *where;
} questions[QUERY_COUNT] = {
	[QUERY_RUN] = {TABLE_RUN, "WHERE id=?1"},
	[QUERY_RUNS] = {TABLE_RUN, "ORDER BY started_ms DESC, seq DESC"},
	[QUERY_RUNS_OF] = {TABLE_RUN, "WHERE config=?1 ORDER BY started_ms DESC, seq DESC"},
	[QUERY_RUNNING] = {TABLE_RUN, "WHERE status='running' ORDER BY started_ms DESC, seq DESC"},
	[QUERY_RUNNING_OF] =
		{TABLE_RUN,
		 "WHERE status='running' AND config=?1 ORDER BY started_ms DESC, seq DESC"},
	[QUERY_RUNS_NAMED] = {TABLE_RUN, "WHERE " HAS_PART("id") " ORDER BY seq"},
	[QUERY_POD] = {TABLE_POD, "WHERE attempt=?1"},
	[QUERY_POD_ID] = {TABLE_POD, "WHERE id=?1 AND handed_to='' ORDER BY seq DESC"},
	[QUERY_PODS] = {TABLE_POD, "ORDER BY seq"},
	[QUERY_PODS_OF] = {TABLE_POD, "WHERE run=?1 ORDER BY seq"},
	[QUERY_PODS_OPEN] = {TABLE_POD, "WHERE state NOT IN ('gone','failed') ORDER BY +seq"},
	[QUERY_PODS_OPEN_OF] = {TABLE_POD,
				"WHERE run=?1 AND state NOT IN ('gone','failed') ORDER BY +seq"},
	[QUERY_PODS_SINCE] =
		{TABLE_POD,
		 "WHERE state NOT IN ('gone','failed') OR create_ms+billed_ms>CAST(?1 AS INTEGER)"
		 " OR released_ms>CAST(?1 AS INTEGER) ORDER BY seq"},
	[QUERY_PODS_NAMED] = {TABLE_POD, "WHERE " HAS_PART("attempt") " OR " HAS_PART(
						 "id") " OR " HAS_PART("name") " ORDER BY seq"},
	[QUERY_PODS_UP] = {TABLE_POD, "WHERE provider=?1 AND connected_ms>0 ORDER BY seq DESC"},
	[QUERY_SEGMENTS] = {TABLE_SEGMENT, "WHERE run=?1 ORDER BY seq"},
	[QUERY_VOLUMES] = {TABLE_VOLUME, "ORDER BY seq"},
	[QUERY_FACT] = {TABLE_FACT, "WHERE name=?1"},
	[QUERY_BATCHES] = {TABLE_BATCH, "WHERE run=?1 ORDER BY seq"},
	[QUERY_SPEEDS] = {TABLE_SPEED, "WHERE key>=?1 AND key<?1||x'ff' ORDER BY seq"},
	[QUERY_REQUESTS] = {TABLE_REQUEST, "ORDER BY seq"},
	[QUERY_REQUESTS_OF] = {TABLE_REQUEST, "WHERE config=?1 ORDER BY seq"},
	[QUERY_REQUESTS_OPEN] = {TABLE_REQUEST,
				 "WHERE state IN ('pending','running') ORDER BY +seq"},
	[QUERY_REQUESTS_OPEN_OF] =
		{TABLE_REQUEST, "WHERE config=?1 AND state IN ('pending','running') ORDER BY +seq"},
	[QUERY_REQUESTS_NAMED] = {TABLE_REQUEST, "WHERE " HAS_PART("id") " ORDER BY seq"},
	[QUERY_SCHEDULE] = {TABLE_SCHEDULE, "WHERE name=?1"},
	[QUERY_SCHEDULES] = {TABLE_SCHEDULE, "ORDER BY seq"},
	[QUERY_FIRINGS] = {TABLE_FIRING, "WHERE schedule=?1 ORDER BY seq DESC"},
};

static void find_sql(struct str *sql, enum query query)
{
	const struct table *t = &store_tables[questions[query].table];

	str_add(sql, "SELECT ");
	add_names(sql, t, 0, t->count, "@", ",");
	str_addf(sql, " FROM %s %s LIMIT ?2", t->name, questions[query].where);
}

static int prepare(struct sqlite *q, const struct str *sql, sqlite3_stmt **out, struct err *err)
{
	if (sqlite3_prepare_v3(q->db, str_text(sql), -1, SQLITE_PREPARE_PERSISTENT, out, NULL) !=
	    SQLITE_OK)
		return fail(q, err);
	return 0;
}

/* Steps a statement that gives no rows, and makes it ready for the next time. */
static int finish(struct sqlite *q, sqlite3_stmt *stmt, struct err *err)
{
	int result = sqlite3_step(stmt) == SQLITE_DONE ? 0 : fail(q, err);

	if (result == 0)
		set_patience(q, false);
	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
	return result;
}

static int change(struct sqlite *q, sqlite3_stmt *stmt, const struct table *t, size_t columns,
		  const void *row, struct err *err)
{
	if (transaction_is_lost(q))
		return refuse_lost(q, err);
	if (!q->base.in_transaction && check_name(q, err) < 0)
		return -1;
	for (size_t i = 0; i < columns; i++)
		if (bind_column(stmt, (int)i + 1, &t->columns[i], row) != SQLITE_OK)
			return fail(q, err);
	return finish(q, stmt, err);
}

static int sqlite_put(struct store *s, enum table_id table, const void *row, struct err *err)
{
	struct sqlite *q = sqlite_of(s);

	if (!q->put[table])
		return err_set(err, ERR_BUG, "%s: was opened for reading", q->path);
	return change(q, q->put[table], &store_tables[table], store_tables[table].count, row, err);
}

static int sqlite_remove(struct store *s, enum table_id table, const void *row, struct err *err)
{
	struct sqlite *q = sqlite_of(s);

	if (!q->remove[table])
		return err_set(err, ERR_BUG, "%s: was opened for reading", q->path);
	return change(q, q->remove[table], &store_tables[table], store_tables[table].keys, row,
		      err);
}

static int collect(struct sqlite *q, sqlite3_stmt *stmt, const struct table *t, void **rows,
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
		return fail(q, err);
	}
	*rows = list;
	*count = n;
	return 0;
}

static int sqlite_find(struct store *s, enum query query, const char *text, size_t most,
		       void **rows, size_t *count, struct err *err)
{
	struct sqlite *q = sqlite_of(s);
	sqlite3_stmt *stmt = q->find[query];

	/* binding NULL where no text is asked for is fine: such a statement has no ?1 that matters
	 */
	if (sqlite3_bind_text(stmt, 1, text, -1, SQLITE_STATIC) != SQLITE_OK ||
	    sqlite3_bind_int64(stmt, 2, most ? (int64_t)most : -1) != SQLITE_OK)
		return fail(q, err);
	int result = collect(q, stmt, &store_tables[questions[query].table], rows, count, err);
	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
	return result;
}

/* ---- opening ---- */

/* The file is made by us, 0600 from its first moment whatever the umask; SQLite gives -wal and -shm
 * the same mode. It is not opened when it exists: closing any descriptor of a file drops this
 * process's locks on it. */
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

static int read_number(struct sqlite *q, const char *sql, int *out, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int result = 0;

	if (sqlite3_prepare_v2(q->db, sql, -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		*out = sqlite3_column_int(stmt, 0);
	else
		result = fail(q, err);
	sqlite3_finalize(stmt);
	return result;
}

static int read_version(struct sqlite *q, int *version, struct err *err)
{
	if (read_number(q, "PRAGMA user_version", version, err) < 0)
		return -1;
	if (*version < 0) /* its bytes are spoilt: SQLite hands out what they say */
		return err_set(err, ERR_LOCAL, "%s: %s", q->path, advice(q->db, SQLITE_CORRUPT));
	return 0;
}

struct identity {
	int application, version, objects;
};

/* In one transaction: between two looks another process may make an empty file a ledger. */
static int read_identity(struct sqlite *q, struct identity *out, struct err *err)
{
	if (run_sql(q, "BEGIN", err) < 0)
		return -1;
	int result = read_number(q, "PRAGMA application_id", &out->application, err);
	if (result == 0)
		result = read_version(q, &out->version, err);
	if (result == 0)
		result = read_number(q, "SELECT count(*) FROM sqlite_master", &out->objects, err);
	sqlite_rollback(&q->base); /* nothing was written */
	return result;
}

/* Looks before anything is written: a database that is not ours stays as it is. */
static int check_ours(struct sqlite *q, struct err *err)
{
	struct identity id = {0};

	if (read_identity(q, &id, err) < 0)
		return -1;
	bool fresh = id.application == 0 && id.version == 0 && id.objects == 0;
	if (id.application != APPLICATION_ID && !fresh)
		return err_set(err, ERR_LOCAL,
			       "%s: is a database of another program: move it away, or set "
			       "BURST_STATE_DIR",
			       q->path);
	if (id.version > NEWEST_VERSION)
		return err_set(err, ERR_LOCAL,
			       "%s: was written by a newer burst (version %d, this one knows %d): "
			       "update burst, "
			       "or set BURST_STATE_DIR",
			       q->path, id.version, NEWEST_VERSION);
	if (!fresh && id.version < FIRST_VERSION)
		return err_set(err, ERR_LOCAL,
			       "%s: was written by a burst that is too old (version %d, this one "
			       "reads %d to %d): move it away, or set BURST_STATE_DIR",
			       q->path, id.version, FIRST_VERSION, NEWEST_VERSION);
	if (sqlite3_db_readonly(q->db, "main") == 1)
		return err_set(err, ERR_LOCAL,
			       "%s: cannot be written: check who owns it and its folder", q->path);
	return 0;
}

/* Two processes that both turn a new file to WAL can meet in a way in which SQLite answers "busy"
 * without waiting. */
static int set_modes(struct sqlite *q, struct err *err)
{
	static const char sql[] =
		"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA fullfsync=1;"
		"PRAGMA checkpoint_fullfsync=1; PRAGMA trusted_schema=0; PRAGMA cell_size_check=1";
	int64_t give_up_ms = clock_boot_ms() + PATIENCE_MS;
	struct timespec moment = {.tv_nsec = 5 * 1000000};

	while (run_sql(q, sql, err) < 0) {
		if ((sqlite3_errcode(q->db) & 0xff) != SQLITE_BUSY || clock_boot_ms() >= give_up_ms)
			return -1;
		nanosleep(&moment, NULL);
	}
	set_patience(q, false);
	return 0;
}

static int migrate_steps(struct sqlite *q, struct err *err)
{
	int version = 0;

	if (read_version(q, &version, err) <
	    0) /* again: another process may have been here meanwhile */
		return -1;
	if (version >= NEWEST_VERSION)
		return 0;
	if (!version && run_sql(q, schema, err) < 0)
		return -1;
	for (int i = version ? version - FIRST_VERSION : 0; i < (int)ARRAY_LEN(migrations); i++)
		if (run_sql(q, migrations[i], err) < 0)
			return -1;
	CLEANUP(str_free) struct str mark = STR_INIT;
	str_addf(&mark, "PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION_ID,
		 NEWEST_VERSION);
	return run_sql(q, str_text(&mark), err);
}

static int migrate(struct sqlite *q, struct err *err)
{
	int version = 0;

	if (read_version(q, &version, err) < 0)
		return -1;
	if (version >= NEWEST_VERSION)
		return 0;
	if (sqlite_begin(&q->base, err) < 0)
		return -1;
	if (migrate_steps(q, err) < 0) {
		sqlite_rollback(&q->base);
		return -1;
	}
	return sqlite_commit(&q->base, err);
}

static int prepare_finds(struct sqlite *q, struct err *err)
{
	CLEANUP(str_free) struct str sql = STR_INIT;

	for (size_t i = 0; i < QUERY_COUNT; i++) {
		str_reset(&sql);
		find_sql(&sql, (enum query)i);
		if (prepare(q, &sql, &q->find[i], err) < 0)
			return -1;
	}
	return 0;
}

static int prepare_all(struct sqlite *q, struct err *err)
{
	CLEANUP(str_free) struct str sql = STR_INIT;

	for (size_t i = 0; i < TABLE_COUNT; i++) {
		str_reset(&sql);
		put_sql(&sql, &store_tables[i]);
		if (prepare(q, &sql, &q->put[i], err) < 0)
			return -1;
		str_reset(&sql);
		remove_sql(&sql, &store_tables[i]);
		if (prepare(q, &sql, &q->remove[i], err) < 0)
			return -1;
	}
	return prepare_finds(q, err);
}

static int open_database(struct sqlite *q, struct err *err)
{
	struct stat st;

	/* "./": SQLite gives ":memory:" and "file:" meanings of their own */
	CLEANUP(free_text) char *name = xasprintf("%s%s", q->path[0] == '/' ? "" : "./", q->path);

	if (sqlite3_open_v2(name, &q->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		return fail(q, err);
	if (stat(q->path, &st) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s; check who owns it", q->path,
			       strerror(errno));
	q->device = st.st_dev;
	q->file = st.st_ino;
	sqlite3_extended_result_codes(q->db, 1);
	sqlite3_busy_timeout(q->db, PATIENCE_MS);
	if (check_ours(q, err) < 0 || set_modes(q, err) < 0 || migrate(q, err) < 0)
		return -1;
	return prepare_all(q, err);
}

static void sqlite_close(struct store *s)
{
	struct sqlite *q = sqlite_of(s);

	for (size_t i = 0; i < TABLE_COUNT; i++) {
		sqlite3_finalize(q->put[i]);
		sqlite3_finalize(q->remove[i]);
	}
	for (size_t i = 0; i < QUERY_COUNT; i++)
		sqlite3_finalize(q->find[i]);
	sqlite3_close(q->db);
	free(q->path);
	free(q);
}

static const struct store_ops sqlite_ops = {
	.close = sqlite_close,
	.begin = sqlite_begin,
	.commit = sqlite_commit,
	.rollback = sqlite_rollback,
	.put = sqlite_put,
	.remove = sqlite_remove,
	.find = sqlite_find,
};

int store_open(struct store **out, const char *path, struct err *err)
{
	if (make_file(path, err) < 0 || check_file(path, err) < 0)
		return -1;
	struct sqlite *q = xcalloc(1, sizeof(*q));
	q->base.ops = &sqlite_ops;
	q->path = xstrdup(path);
	if (open_database(q, err) < 0) {
		sqlite_close(&q->base);
		return -1;
	}
	*out = &q->base;
	return 0;
}

/* ---- opening for reading ---- */

/* Ends with a transaction open, so that no later question meets a lock. */
static int begin_reading(struct sqlite *q, struct err *err)
{
	int application = 0, version = 0;

	if (run_sql(q, "BEGIN", err) < 0 ||
	    read_number(q, "PRAGMA application_id", &application, err) < 0 ||
	    read_version(q, &version, err) < 0)
		return -1;
	if (!application && !version)
		return err_set(err, ERR_NOT_FOUND, "%s: is empty", q->path);
	if (application != APPLICATION_ID || version > NEWEST_VERSION)
		return err_set(err, ERR_LOCAL,
			       "%s: was written by %s: update burst, or set BURST_STATE_DIR",
			       q->path,
			       application != APPLICATION_ID ? "another program" : "a newer burst");
	if (version < NEWEST_VERSION)
		return err_set(err, ERR_LOCAL,
			       "%s: was written by an older burst: `burst ps` updates it", q->path);
	return prepare_finds(q, err);
}

static int open_to_read(struct sqlite *q, struct err *err)
{
	CLEANUP(free_text) char *name = xasprintf("%s%s", q->path[0] == '/' ? "" : "./", q->path);

	if (sqlite3_open_v2(name, &q->db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		return fail(q, err);
	sqlite3_busy_timeout(q->db, GLANCE_MS);
	if (begin_reading(q, err) == 0)
		return 0;
	int rc = sqlite3_errcode(q->db) & 0xff;
	if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
		return err_set(err, ERR_BUSY, "%s: locked by another process", q->path);
	return -1;
}

int store_open_to_read(struct store **out, const char *path, struct err *err)
{
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s: does not exist yet", path);
	struct sqlite *q = xcalloc(1, sizeof(*q));
	q->base.ops = &sqlite_ops;
	q->path = xstrdup(path);
	if (open_to_read(q, err) < 0) {
		sqlite_close(&q->base);
		return -1;
	}
	*out = &q->base;
	return 0;
}
