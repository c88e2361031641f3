/* sqlite_open.c - opens a ledger: makes it, checks that it is one and of this version; or opens it
 * to read alone. */
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

/* The version of schema.sql. Another version is refused. */
#define SCHEMA_VERSION 19
static const char schema[] =
#include "schema.sql.h"
	;

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

static int read_number(struct store *s, const char *sql, int *out, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int result = 0;

	if (sqlite3_prepare_v2(s->db, sql, -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		*out = sqlite3_column_int(stmt, 0);
	else
		result = sqlite_fail(s, err);
	sqlite3_finalize(stmt);
	return result;
}

static int read_version(struct store *s, int *version, struct err *err)
{
	if (read_number(s, "PRAGMA user_version", version, err) < 0)
		return -1;
	if (*version < 0) /* its bytes are spoilt: SQLite hands out what they say */
		return err_set(err, ERR_LOCAL, "%s: %s", s->path,
			       sqlite_advice(s->db, SQLITE_CORRUPT));
	return 0;
}

/* In one transaction, since another process may turn an empty file into a ledger between two reads.
 */
static int read_identity(struct store *s, struct identity *out, struct err *err)
{
	if (sqlite_run(s, "BEGIN", err) < 0)
		return -1;
	int result = read_number(s, "PRAGMA application_id", &out->application, err);
	if (result == 0)
		result = read_version(s, &out->version, err);
	if (result == 0)
		result = read_number(s, "SELECT count(*) FROM sqlite_master", &out->objects, err);
	sqlite_undo(s); /* nothing was written */
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

/* Checks before the first write: a database that is not ours stays unchanged. *fresh: it is empty.
 */
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

/* Two processes that both turn a new file to WAL can meet in a way in which SQLite answers
 * "busy" without waiting. */
static int set_modes(struct store *s, struct err *err)
{
	static const char sql[] =
		"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA fullfsync=1;"
		"PRAGMA checkpoint_fullfsync=1; PRAGMA trusted_schema=0; PRAGMA cell_size_check=1";
	int64_t deadline_ms = clock_boot_ms() + PATIENCE_MS;
	struct timespec moment = {.tv_nsec = 5 * 1000000};

	while (sqlite_run(s, sql, err) < 0) {
		if ((sqlite3_errcode(s->db) & 0xff) != SQLITE_BUSY ||
		    clock_boot_ms() >= deadline_ms)
			return -1;
		nanosleep(&moment, NULL);
	}
	sqlite_set_patience(s, false);
	return 0;
}

static int make_tables(struct store *s, struct err *err)
{
	CLEANUP(str_free) struct str mark = STR_INIT;

	if (sqlite_run(s, schema, err) < 0)
		return -1;
	str_addf(&mark, "PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION_ID,
		 SCHEMA_VERSION);
	return sqlite_run(s, str_text(&mark), err);
}

static int make_ledger(struct store *s, struct err *err)
{
	int version = 0;

	if (store_begin(s, err) < 0)
		return -1;
	/* again: another process may have made it meanwhile */
	if (read_version(s, &version, err) < 0 || (!version && make_tables(s, err) < 0)) {
		sqlite_undo(s);
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
		return sqlite_fail(s, err);
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

	if (sqlite3_open(":memory:", &s->db) != SQLITE_OK || sqlite_run(s, schema, NULL) < 0)
		abort(); /* as without memory */
	return s;
}

/* Ends with a transaction open, so that no later question meets a lock. */
static int begin_reading(struct store *s, struct err *err)
{
	int application = 0, version = 0;

	if (sqlite_run(s, "BEGIN", err) < 0 ||
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
		return sqlite_fail(s, err);
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
