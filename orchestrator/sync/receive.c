/* receive.c - writes one fetched output: NAME.part, verified, synced, renamed. */
#include "receive.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/path.h"
#include "base/str.h"

#define READ_ROOM   (256u << 10)
#define RANGE_ALIGN (INT64_C(1) << 20)
#define OPEN_TRIES  8 /* of a part that another process renames or removes meanwhile */

/* Bytes [from, to) that came by receive_add_at(). */
struct span {
	int64_t from, to;
};

struct receive {
	char *output_dir, *name;   /* as given */
	char *path, *part_path;    /* full, for people and for checks */
	char *base, *part, *split; /* names inside the folder */
	char sha256[SHA256_HEX];
	int64_t bytes, offset; /* announced; the prefix that is here */
	bool resumed;          /* some of the prefix is from an earlier try */
	int dir, fd;
	bool rests; /* both are closed; then this is the file that was verified: */
	struct stat was;
	struct sha256 *hash; /* of the prefix */

	pthread_mutex_t lock; /* for what follows */
	bool is_split;        /* the file is called NAME.split, and has holes */
	struct span *spans;   /* sorted, apart from each other */
	size_t span_count, span_cap;

	bool poisoned; /* its bytes are wrong: never to be gone on from */
	bool verified, kept;
};

/* This machine has no place for such a name: it is too long here, or something else stands there.
 * Another pod would not help, nor would stopping. */
static bool is_about_name(int why)
{
	return why == ENAMETOOLONG || why == EILSEQ || why == EINVAL || why == ENOTDIR ||
	       why == EISDIR || why == ELOOP || why == ENOTEMPTY || why == EEXIST;
}

static int name_error(const struct receive *r, const char *what, struct err *err)
{
	return err_set(err, is_about_name(errno) ? ERR_JOB : ERR_LOCAL, "%s: %s: %s", r->path, what,
		       strerror(errno));
}

static int local_error(const struct receive *r, const char *what, struct err *err)
{
	return err_set(err, ERR_LOCAL, "%s: %s: %s", r->part_path, what, strerror(errno));
}

/* ---- opening ---- */

static int check_foreign(const char *name, int64_t bytes, const char *sha256, struct err *err)
{
	CLEANUP(str_free) struct str shown = STR_INIT;

	str_add_printable(&shown, name, strlen(name), 100);
	if (!path_may_be_output(name))
		return err_set(err, ERR_UNTRUSTED, "the pod names an output '%s'",
			       str_text(&shown));
	if (bytes < 0)
		return err_set(err, ERR_UNTRUSTED, "%s: %" PRId64 " bytes", str_text(&shown),
			       bytes);
	if (!sha256_is_hex(sha256))
		return err_set(err, ERR_UNTRUSTED, "%s: its hash is invalid", str_text(&shown));
	return 0;
}

/* Steps into one folder, making it if needed; what is there under its name must be a folder and no
 * link. */
static int enter_folder(int dir, const char *name, const char *shown, struct err *err)
{
	bool made = mkdirat(dir, name, 0777) == 0;

	if (!made && errno != EEXIST)
		return err_set(err, is_about_name(errno) ? ERR_JOB : ERR_LOCAL,
			       "%s: cannot make folder: %s", shown, strerror(errno));
	if (made)
		(void)fsync(dir); /* some file systems refuse; the rename is followed by one that
				     counts */
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return err_set(err, ERR_JOB, "%s: leads through something that is not a folder",
			       shown);
	if (fd < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", shown, strerror(errno));
	return fd;
}

/* The folder that the file goes to; -1 on error. */
static int open_folder(const char *output_dir, const char *name, struct err *err)
{
	int dir = path_open_dir(output_dir);

	if (dir < 0 && errno == ENOENT && path_mkdirs(output_dir, 0777, err) < 0)
		return -1;
	if (dir < 0)
		dir = path_open_dir(output_dir);
	if (dir < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", output_dir, strerror(errno));
	for (const char *slash; dir >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
		CLEANUP(free_text) char *part = xstrndup(name, (size_t)(slash - name));
		CLEANUP(free_text) char *shown = path_join(output_dir, part);
		int next = enter_folder(dir, part, shown, err);
		close(dir);
		dir = next;
	}
	return dir;
}

/* A part that is not a regular file of its own (a link, a pipe, one of several names of a file) is
 * not written to. */
static int clear_odd_part(const struct receive *r, struct err *err)
{
	struct stat st;

	if (fstatat(r->dir, r->part, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : local_error(r, "stat", err);
	if (S_ISREG(st.st_mode) && st.st_nlink == 1)
		return 0;
	if (unlinkat(r->dir, r->part, 0) < 0 && errno != ENOENT)
		return local_error(r, "is in the way", err);
	return 0;
}

/* Is the open file still the one under this name? The previous holder of the lock may have moved
 * it. */
static bool still_there(const struct receive *r)
{
	struct stat open_one, named;

	return fstat(r->fd, &open_one) == 0 &&
	       fstatat(r->dir, r->part, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

static int open_part(struct receive *r, struct err *err)
{
	for (int i = 0; i < OPEN_TRIES; i++) {
		if (clear_odd_part(r, err) < 0)
			return -1;
		r->fd = openat(r->dir, r->part,
			       O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
		if (r->fd < 0)
			return name_error(r, "open", err);
		if (flock(r->fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK
				       ? err_set(err, ERR_BUSY, "%s: is being received already",
						 r->path)
				       : local_error(r, "lock", err);
		if (still_there(r))
			return 0;
		close(r->fd);
		r->fd = -1;
	}
	return err_set(err, ERR_BUSY, "%s: is being received already", r->path);
}

/* What a try that died in the middle of its ranges left behind has holes; one that is alive is left
 * alone. */
static int clear_split(const struct receive *r, struct err *err)
{
	CLEANUP(fd_close)
	int fd = openat(r->dir, r->split, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return err_set(err, ERR_BUSY, "%s: is being received already", r->path);
	if (unlinkat(r->dir, r->split, 0) < 0 && errno != ENOENT)
		return err_set(err, ERR_LOCAL, "%s.split: is in the way: %s", r->path,
			       strerror(errno));
	return 0;
}

static void restart_hash(struct receive *r)
{
	sha256_free(r->hash);
	r->hash = sha256_new();
}

/* Hashes the first `bytes` of the file into r->hash, which is restarted. */
static int hash_prefix(struct receive *r, int64_t bytes, struct err *err)
{
	CLEANUP(free_text) char *room = xmalloc(READ_ROOM);

	restart_hash(r);
	for (int64_t at = 0; at < bytes;) {
		ssize_t n =
			pread(r->fd, room, (size_t)MIN((int64_t)READ_ROOM, bytes - at), (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return local_error(r, "read", err);
		if (n == 0)
			return err_set(err, ERR_LOCAL, "%s: became shorter", r->part_path);
		sha256_add(r->hash, room, (size_t)n);
		at += n;
	}
	return 0;
}

/* Goes on from what an earlier try left, unless that is more than the whole. */
static int take_up(struct receive *r, struct err *err)
{
	struct stat st;

	if (fstat(r->fd, &st) < 0)
		return local_error(r, "stat", err);
	r->offset = (int64_t)st.st_size <= r->bytes ? (int64_t)st.st_size : 0;
	r->resumed = r->offset > 0;
	if (r->offset != (int64_t)st.st_size && ftruncate(r->fd, 0) < 0)
		return local_error(r, "truncate", err);
	return hash_prefix(r, r->offset, err);
}

/* What a file is called until it is whole. The longest names leave no room behind them. */
static char *beside(const char *base, const char *suffix)
{
	char hash[SHA256_HEX];

	if (strlen(base) + strlen(suffix) <= NAME_MAX)
		return xasprintf("%s%s", base, suffix);
	sha256_hex(base, strlen(base), hash);
	return xasprintf(".%s%s", hash, suffix);
}

int receive_open(struct receive **out, const char *output_dir, const char *name, int64_t bytes,
		 const char *sha256, struct err *err)
{
	if (check_foreign(name, bytes, sha256, err) < 0)
		return -1;
	struct receive *r = xcalloc(1, sizeof(*r));
	r->output_dir = xstrdup(output_dir);
	r->name = xstrdup(name);
	r->path = path_join(output_dir, name);
	r->base = xstrdup(path_base(name));
	r->part = beside(r->base, PATH_PART);
	r->split = beside(r->base, PATH_SPLIT);
	r->part_path =
		xasprintf("%.*s%s", (int)(strlen(r->path) - strlen(r->base)), r->path, r->part);
	COPY_TEXT(r->sha256, sha256);
	r->bytes = bytes;
	r->fd = -1;
	pthread_mutex_init(&r->lock, NULL);
	r->dir = open_folder(output_dir, name, err);
	if (r->dir < 0 || open_part(r, err) < 0 || clear_split(r, err) < 0 || take_up(r, err) < 0) {
		r->kept = true; /* nothing of ours is there to be removed */
		receive_drop(r, true);
		return -1;
	}
	*out = r;
	return 0;
}

int64_t receive_offset(const struct receive *r)
{
	return r->offset;
}

int64_t receive_bytes(const struct receive *r)
{
	return r->bytes;
}

void receive_open_path(const struct receive *r, char to[32])
{
	/* where such a name is not opened anew, this is shared; we read and write at places */
	(void)lseek(r->fd, 0, SEEK_SET);
	snprintf(to, 32, "/dev/fd/%d", r->fd);
}

const char *receive_part_path(const struct receive *r)
{
	return r->part_path;
}

const char *receive_path(const struct receive *r)
{
	return r->path;
}

/* ---- bytes ---- */

/* Writes all of it at this place. Returns how many bytes are written, fewer than len only with *err
 * set. */
static size_t write_at(const struct receive *r, int64_t offset, const char *bytes, size_t len,
		       struct err *err)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n =
			pwrite(r->fd, bytes + done, len - done, (off_t)(offset + (int64_t)done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n == 0 ? ENOSPC : errno;
			local_error(r, "write", err);
			break;
		}
		done += (size_t)n;
	}
	return done;
}

static int too_many(struct receive *r, struct err *err)
{
	r->poisoned = true;
	return err_set(err, ERR_UNTRUSTED,
		       "%s: the pod sends more than the %" PRId64 " bytes it announced", r->path,
		       r->bytes);
}

int receive_add(struct receive *r, const void *bytes, size_t len, struct err *err)
{
	if (len > (uint64_t)(r->bytes - r->offset))
		return too_many(r, err);
	if (!len)
		return 0;
	size_t done = write_at(r, r->offset, bytes, len, err);
	sha256_add(r->hash, bytes, done);
	r->offset += (int64_t)done;
	return done < len ? -1 : 0;
}

/* Adds a span to the sorted list and joins those that touch. */
static void add_span(struct receive *r, struct span new)
{
	size_t at = 0, end;

	while (at < r->span_count && r->spans[at].to < new.from)
		at++;
	for (end = at; end < r->span_count && r->spans[end].from <= new.to; end++) {
		new.from = MIN(new.from, r->spans[end].from);
		new.to = MAX(new.to, r->spans[end].to);
	}
	if (end == at)
		GROW(r->spans, r->span_count, r->span_cap);
	memmove(&r->spans[at + 1], &r->spans[end], (r->span_count - end) * sizeof(*r->spans));
	r->span_count += at + 1 - end;
	r->spans[at] = new;
}

/* The first range: from now on the file has holes. After a crash, it must not be taken for a
 * prefix. */
static int begin_split(struct receive *r, struct err *err)
{
	if (r->is_split)
		return 0;
	if (renameat(r->dir, r->part, r->dir, r->split) < 0)
		return local_error(r, "rename", err);
	r->is_split = true;
	add_span(r, (struct span){0, r->offset});
	return 0;
}

int receive_add_at(struct receive *r, int64_t offset, const void *bytes, size_t len,
		   struct err *err)
{
	pthread_mutex_lock(&r->lock);
	bool fits =
		offset >= r->offset && offset <= r->bytes && len <= (uint64_t)(r->bytes - offset);
	int result = fits ? begin_split(r, err) : too_many(r, err);
	pthread_mutex_unlock(&r->lock);
	if (result < 0)
		return -1;

	size_t done = write_at(r, offset, bytes, len, err);
	pthread_mutex_lock(&r->lock);
	if (done)
		add_span(r, (struct span){offset, offset + (int64_t)done});
	pthread_mutex_unlock(&r->lock);
	return done < len ? -1 : 0;
}

void receive_range(const struct receive *r, int index, int parts, int64_t *offset, int64_t *length)
{
	int64_t missing = r->bytes - r->offset;
	int64_t each =
		((missing + parts - 1) / parts + RANGE_ALIGN - 1) / RANGE_ALIGN * RANGE_ALIGN;
	int64_t from = MIN(missing, each * index), to = MIN(missing, each * (index + 1));

	*offset = r->offset + from;
	*length = to - from;
}

/* ---- the end ---- */

/* After ranges: cuts the file to what it has without a hole, under the name that says so. */
static int end_split(struct receive *r, struct err *err)
{
	if (!r->is_split)
		return 0;
	int64_t whole = r->span_count && r->spans[0].from == 0 ? r->spans[0].to : 0;
	if (ftruncate(r->fd, (off_t)whole) < 0)
		return local_error(r, "truncate", err);
	if (renameat(r->dir, r->split, r->dir, r->part) < 0)
		return local_error(r, "rename", err);
	r->is_split = false;
	r->span_count = 0;
	r->offset = whole;
	return hash_prefix(r, whole, err);
}

static int sync_file(const struct receive *r, struct err *err)
{
#ifdef F_FULLFSYNC
	if (fcntl(r->fd, F_FULLFSYNC) == 0)
		return 0;
#endif
	return fsync(r->fd) == 0 ? 0 : local_error(r, "fsync", err);
}

static int wrong_hash(struct receive *r, struct err *err)
{
	r->poisoned = true;
	if (r->resumed)
		return err_set(err, ERR_TRANSIENT,
			       "%s: what was kept from an earlier attempt does not match", r->path);
	return err_set(err, ERR_UNTRUSTED,
		       "%s: what the pod sent is not what it announced (sha256)", r->path);
}

int receive_finish(struct receive *r, struct err *err)
{
	char hex[SHA256_HEX];

	if (r->verified)
		return 0;
	if (r->poisoned)
		return err_set(err, ERR_UNTRUSTED, "%s: its content is wrong", r->path);
	if (end_split(r, err) < 0)
		return -1;
	if (r->offset < r->bytes)
		return err_set(err, ERR_TRANSIENT, "%s: got %" PRId64 " of %" PRId64 " bytes",
			       r->path, r->offset, r->bytes);
	sha256_finish(TAKE(r->hash), hex);
	if (strcmp(hex, r->sha256))
		return wrong_hash(r, err);
	if (sync_file(r, err) < 0) {
		/* the system may have dropped what it could not write: it is not to be trusted any
		 * more */
		r->poisoned = true;
		return -1;
	}
	r->verified = true;
	return 0;
}

static void close_both(struct receive *r)
{
	fd_close(r->fd);
	fd_close(r->dir);
	r->fd = r->dir = -1;
}

void receive_rest(struct receive *r)
{
	if (r->rests || !r->verified || r->kept || fstat(r->fd, &r->was) < 0)
		return;
	r->rests = true;
	close_both(r);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtime == b->st_mtime &&
	       a->st_ctime ==
		       b->st_ctime; /* the number of a file that was removed is soon another's */
}

static int wake(struct receive *r, struct err *err)
{
	struct stat st;

	if (!r->rests)
		return 0;
	r->dir = open_folder(r->output_dir, r->name, err);
	if (r->dir < 0)
		return -1;
	r->rests = false;
	if (fstatat(r->dir, r->part, &st, AT_SYMLINK_NOFOLLOW) == 0 && same_file(&st, &r->was))
		return 0;
	r->verified = false;
	r->kept = true; /* what is there is not ours to remove */
	return err_set(err, ERR_LOCAL, "%s: was removed after it was verified", r->part_path);
}

static int rename_into_place(struct receive *r, struct err *err)
{
	if (!r->verified)
		return err_set(err, ERR_BUG, "%s: is kept before it was verified", r->path);
	if (wake(r, err) < 0)
		return -1;
	if (!r->kept && renameat(r->dir, r->part, r->dir, r->base) < 0)
		return name_error(r, "cannot be put there", err);
	r->kept = true;
	return 0;
}

static bool same_folder(const struct receive *a, const struct receive *b)
{
	struct stat x, y;

	return fstat(a->dir, &x) == 0 && fstat(b->dir, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* One command's thousands of outputs are kept in a row, and dropped afterwards: their descriptors
 * go now. */
static int sync_folder(struct receive *r, struct err *err)
{
	/* some file systems refuse fsync on folders (EINVAL): nothing more can be done there */
	int result = fsync(r->dir) < 0 && errno != EINVAL
			     ? err_set(err, ERR_LOCAL, "%s: fsync of its folder: %s", r->path,
				       strerror(errno))
			     : 0;

	if (result == 0)
		close_both(r);
	return result;
}

int receive_keep_all(struct receive *const *list, size_t count, struct err *err)
{
	struct receive *last = NULL; /* its folder is not synced yet */

	for (size_t i = 0; i < count; i++) {
		struct receive *r = list[i];
		if (rename_into_place(r, err) < 0)
			return -1;
		if (r->dir < 0)
			continue; /* a second time */
		if (last && same_folder(last, r))
			close_both(last);
		else if (last && sync_folder(last, err) < 0)
			return -1;
		last = r;
	}
	return last ? sync_folder(last, err) : 0;
}

int receive_keep(struct receive *r, struct err *err)
{
	return receive_keep_all(&r, 1, err);
}

static void leave_or_remove(struct receive *r, bool keep_part)
{
	bool useful = keep_part && !r->poisoned && end_split(r, NULL) == 0 && r->offset > 0;

	if (!useful)
		unlinkat(r->dir, r->is_split ? r->split : r->part, 0);
}

void receive_drop(struct receive *r, bool keep_part)
{
	if (!r)
		return;
	if (!r->kept && wake(r, NULL) == 0)
		leave_or_remove(r, keep_part);
	fd_close(r->fd);
	fd_close(r->dir);
	sha256_free(r->hash);
	pthread_mutex_destroy(&r->lock);
	free(r->spans);
	free(r->output_dir);
	free(r->name);
	free(r->path);
	free(r->part_path);
	free(r->base);
	free(r->part);
	free(r->split);
	free(r);
}
