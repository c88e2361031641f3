/* sqlite_open.c - opens a ledger: makes it, checks that it is one, brings it to this version; or
 * opens it to read alone. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "sqlite_impl.h"

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
	/* what was counted beside what vendors billed, and pods that outlive their release */
	"ALTER TABLE run ADD COLUMN counted_microusd INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE run ADD COLUMN cost_vendor_microusd INTEGER NOT NULL DEFAULT 0;"
	"UPDATE run SET counted_microusd=cost_microusd;"
	"ALTER TABLE pod ADD COLUMN accepted_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN outlived_ms INTEGER NOT NULL DEFAULT 0;",
	"CREATE TABLE choice (seq INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE,"
	" decided_ms INTEGER NOT NULL, goal TEXT NOT NULL, value_of_time_microusd INTEGER NOT NULL,"
	" deadline TEXT NOT NULL, deadline_ms INTEGER NOT NULL, pods INTEGER NOT NULL,"
	" pods_most INTEGER NOT NULL, at_once INTEGER NOT NULL, pods_open INTEGER NOT NULL,"
	" gpus_open INTEGER NOT NULL, gpus TEXT NOT NULL, batch INTEGER NOT NULL,"
	" cost_microusd INTEGER NOT NULL, why TEXT NOT NULL);"
	"CREATE TABLE forecast (seq INTEGER PRIMARY KEY, run TEXT NOT NULL, provider TEXT NOT NULL,"
	" gpu TEXT NOT NULL, once_s REAL NOT NULL, longest_s REAL NOT NULL, each_s REAL NOT NULL,"
	" host_share REAL NOT NULL, batch_max INTEGER NOT NULL, cold_p50_s REAL NOT NULL,"
	" cold_p90_s REAL NOT NULL, measured INTEGER NOT NULL, speed_from TEXT NOT NULL,"
	" UNIQUE (run, provider, gpu));",
};
#define NEWEST_VERSION (FIRST_VERSION + (int)ARRAY_LEN(migrations))

struct identity {
	int application, version, objects;
};

/* The file is made by us, 0600 from its first moment whatever the umask; SQLite gives -wal and
 * -shm the same mode. It is not opened when it exists: closing any descriptor of a file drops
 * this process's locks on it. */
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
		result = sqlite_fail(q, err);
	sqlite3_finalize(stmt);
	return result;
}

static int read_version(struct sqlite *q, int *version, struct err *err)
{
	if (read_number(q, "PRAGMA user_version", version, err) < 0)
		return -1;
	if (*version < 0) /* its bytes are spoilt: SQLite hands out what they say */
		return err_set(err, ERR_LOCAL, "%s: %s", q->path,
			       sqlite_advice(q->db, SQLITE_CORRUPT));
	return 0;
}

/* In one transaction, since another process may turn an empty file into a ledger between two reads.
 */
static int read_identity(struct sqlite *q, struct identity *out, struct err *err)
{
	if (sqlite_run(q, "BEGIN", err) < 0)
		return -1;
	int result = read_number(q, "PRAGMA application_id", &out->application, err);
	if (result == 0)
		result = read_version(q, &out->version, err);
	if (result == 0)
		result = read_number(q, "SELECT count(*) FROM sqlite_master", &out->objects, err);
	sqlite_rollback(&q->base); /* nothing was written */
	return result;
}

/* Checks before the first write: a database that is not ours stays unchanged. */
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

/* Two processes that both turn a new file to WAL can meet in a way in which SQLite answers
 * "busy" without waiting. */
static int set_modes(struct sqlite *q, struct err *err)
{
	static const char sql[] =
		"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA fullfsync=1;"
		"PRAGMA checkpoint_fullfsync=1; PRAGMA trusted_schema=0; PRAGMA cell_size_check=1";
	int64_t deadline_ms = clock_boot_ms() + PATIENCE_MS;
	struct timespec moment = {.tv_nsec = 5 * 1000000};

	while (sqlite_run(q, sql, err) < 0) {
		if ((sqlite3_errcode(q->db) & 0xff) != SQLITE_BUSY ||
		    clock_boot_ms() >= deadline_ms)
			return -1;
		nanosleep(&moment, NULL);
	}
	sqlite_set_patience(q, false);
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
	if (!version && sqlite_run(q, schema, err) < 0)
		return -1;
	for (int i = version ? version - FIRST_VERSION : 0; i < (int)ARRAY_LEN(migrations); i++)
		if (sqlite_run(q, migrations[i], err) < 0)
			return -1;
	CLEANUP(str_free) struct str mark = STR_INIT;
	str_addf(&mark, "PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION_ID,
		 NEWEST_VERSION);
	return sqlite_run(q, str_text(&mark), err);
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
		sqlite_find_sql(&sql, (enum query)i);
		if (sqlite_prepare(q, &sql, &q->find[i], err) < 0)
			return -1;
	}
	return 0;
}

static int prepare_all(struct sqlite *q, struct err *err)
{
	CLEANUP(str_free) struct str sql = STR_INIT;

	for (size_t i = 0; i < TABLE_COUNT; i++) {
		str_reset(&sql);
		sqlite_put_sql(&sql, &store_tables[i]);
		if (sqlite_prepare(q, &sql, &q->put[i], err) < 0)
			return -1;
		str_reset(&sql);
		sqlite_remove_sql(&sql, &store_tables[i]);
		if (sqlite_prepare(q, &sql, &q->remove[i], err) < 0)
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
		return sqlite_fail(q, err);
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

/* Ends with a transaction open, so that no later question meets a lock. */
static int begin_reading(struct sqlite *q, struct err *err)
{
	int application = 0, version = 0;

	if (sqlite_run(q, "BEGIN", err) < 0 ||
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
		return sqlite_fail(q, err);
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
