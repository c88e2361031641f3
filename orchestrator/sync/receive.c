/* receive.c - writes one fetched output to NAME.part, verifies it, and renames it into place */
#include "receive.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/path.h"
#include "base/str.h"

struct receive {
	char *output_dir, *name; /* as the caller gave them */
	char *path, *part_path;  /* full: for messages, and for the job's check of the file */
	char *base, *part;       /* names inside the folder */
	char sha256[SHA256_HEX];
	int64_t bytes; /* as announced */
	bool resumed;  /* the part holds bytes of an earlier attempt */

	int64_t offset;      /* length of the prefix that is here */
	struct sha256 *hash; /* of that prefix */
	bool poisoned;       /* the bytes are wrong: no attempt may continue them */

	int dir, fd; /* -1: closed */
	bool verified, kept;
	bool closed_until_kept;    /* verified, and both descriptors are closed */
	struct stat verified_stat; /* while it is closed: the file that was verified */
};

/* ---- receive folder ----
 * Opens the folder of an output without following a link. */

/* Whether this errno is about a name: it is too long for this machine, or something else has it.
 * Then neither another pod nor the end of the run would help: only this output fails. */
static bool is_name_errno(int why)
{
	return why == ENAMETOOLONG || why == EILSEQ || why == EINVAL || why == ENOTDIR ||
	       why == EISDIR || why == ELOOP || why == ENOTEMPTY || why == EEXIST;
}

/* Reports errno of a call that used the final name: ERR_JOB if it is about the name, else
 * ERR_LOCAL. Returns -1. */
static int receive_name_error(const struct receive *r, const char *what, struct err *err)
{
	return err_set(err, is_name_errno(errno) ? ERR_JOB : ERR_LOCAL, "%s: %s: %s", r->path, what,
		       strerror(errno));
}

/* Opens the folder dir/name, and makes it if it is missing. ERR_JOB: something else has that name,
 * or a link has it. Returns a descriptor. */
static int enter_folder(int dir, const char *name, const char *shown, struct err *err)
{
	bool made = mkdirat(dir, name, 0777) == 0;

	if (!made && errno != EEXIST)
		return err_set(err, is_name_errno(errno) ? ERR_JOB : ERR_LOCAL,
			       "%s: cannot make folder: %s", shown, strerror(errno));
	if (made)
		/* Some file systems refuse to fsync a folder. The fsync that counts follows the
		 * rename. */
		(void)fsync(dir);
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return err_set(err, ERR_JOB, "%s: leads through something that is not a folder",
			       shown);
	if (fd < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", shown, strerror(errno));
	return fd;
}

/* Returns a descriptor of the folder that output_dir/name belongs into, the
 * caller's to close; it makes what is missing. -1: ERR_JOB if the name cannot exist here, else
 * ERR_LOCAL. */
static int receive_folder(const char *output_dir, const char *name, struct err *err)
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

/* ---- receive ----
 * Writes the bytes of one fetched output into its part. */

#define READ_ROOM (256u << 10)

/* Reports errno of a call that used the part: ERR_LOCAL. Returns -1. */
static int receive_local_error(const struct receive *r, const char *what, struct err *err)
{
	return err_set(err, ERR_LOCAL, "%s: %s: %s", r->part_path, what, strerror(errno));
}

int64_t receive_offset(const struct receive *r)
{
	return r->offset;
}

void receive_open_path(const struct receive *r, char to[32])
{
	/* On some systems that name shares our file position. We do not use it: we pread and
	 * pwrite. */
	(void)lseek(r->fd, 0, SEEK_SET);
	snprintf(to, 32, "/dev/fd/%d", r->fd);
}

const char *receive_part_path(const struct receive *r)
{
	return r->part_path;
}

static void restart_hash(struct receive *r)
{
	sha256_free(r->hash);
	r->hash = sha256_new();
}

/* Restarts r->hash with the first `bytes` of the file. ERR_LOCAL. */
static int receive_hash_prefix(struct receive *r, int64_t bytes, struct err *err)
{
	CLEANUP(free_text) char *room = xmalloc(READ_ROOM);

	restart_hash(r);
	for (int64_t at = 0; at < bytes;) {
		ssize_t n =
			pread(r->fd, room, (size_t)MIN((int64_t)READ_ROOM, bytes - at), (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return receive_local_error(r, "read", err);
		if (n == 0)
			return err_set(err, ERR_LOCAL, "%s: became shorter", r->part_path);
		sha256_add(r->hash, room, (size_t)n);
		at += n;
	}
	return 0;
}

/* Writes at offset. Returns the bytes that are written: len, or fewer with *err set. */
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
			receive_local_error(r, "write", err);
			break;
		}
		done += (size_t)n;
	}
	return done;
}

/* Returns -1 with ERR_UNTRUSTED. */
static int reject_surplus(struct receive *r, struct err *err)
{
	r->poisoned = true;
	return err_set(err, ERR_UNTRUSTED,
		       "%s: the pod sends more than the %" PRId64 " bytes it announced", r->path,
		       r->bytes);
}

int receive_add(struct receive *r, const void *bytes, size_t len, struct err *err)
{
	if (len > (uint64_t)(r->bytes - r->offset))
		return reject_surplus(r, err);
	if (!len)
		return 0;
	size_t done = write_at(r, r->offset, bytes, len, err);
	sha256_add(r->hash, bytes, done);
	r->offset += (int64_t)done;
	return done < len ? -1 : 0;
}

/* ---- receive end ----
 * Verifies a fetched output and renames it into place, or drops it. */

static int sync_file(const struct receive *r, struct err *err)
{
#ifdef F_FULLFSYNC
	if (fcntl(r->fd, F_FULLFSYNC) == 0)
		return 0;
#endif
	return fsync(r->fd) == 0 ? 0 : receive_local_error(r, "fsync", err);
}

/* Returns -1 with ERR_TRANSIENT if an earlier attempt may be to blame, else with ERR_UNTRUSTED. */
static int reject_wrong_hash(struct receive *r, struct err *err)
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
	if (r->offset < r->bytes)
		return err_set(err, ERR_TRANSIENT, "%s: got %" PRId64 " of %" PRId64 " bytes",
			       r->path, r->offset, r->bytes);
	sha256_finish(TAKE(r->hash), hex);
	if (strcmp(hex, r->sha256))
		return reject_wrong_hash(r, err);
	if (sync_file(r, err) < 0) {
		/* The system may have dropped what it could not write. */
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

void receive_close_until_kept(struct receive *r)
{
	if (r->closed_until_kept || !r->verified || r->kept || fstat(r->fd, &r->verified_stat) < 0)
		return;
	r->closed_until_kept = true;
	close_both(r);
}

/* Also compares times, since a new file soon gets the inode number of a removed one. */
static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtime == b->st_mtime && a->st_ctime == b->st_ctime;
}

/* Opens the folder again after receive_close_until_kept(). ERR_LOCAL: the part is not the file that
 * was verified. */
static int reopen_if_closed(struct receive *r, struct err *err)
{
	struct stat st;

	if (!r->closed_until_kept)
		return 0;
	r->dir = receive_folder(r->output_dir, r->name, err);
	if (r->dir < 0)
		return -1;
	r->closed_until_kept = false;
	if (fstatat(r->dir, r->part, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    same_file(&st, &r->verified_stat))
		return 0;
	r->verified = false;
	r->kept = true; /* another file has its name now: do not remove it */
	return err_set(err, ERR_LOCAL, "%s: was removed after it was verified", r->part_path);
}

int receive_set_aside(struct receive *r, struct err *err)
{
	char hash[SHA256_HEX];

	if (reopen_if_closed(r, err) < 0)
		return -1;
	sha256_hex(r->base, strlen(r->base), hash);
	CLEANUP(free_text) char *aside = xasprintf(".%s.aside%s", hash, PATH_PART);
	if (renameat(r->dir, r->part, r->dir, aside) < 0)
		return receive_local_error(r, "cannot be set aside", err);
	free(r->part);
	r->part = TAKE(aside);
	free(r->part_path);
	r->part_path =
		xasprintf("%.*s%s", (int)(strlen(r->path) - strlen(r->base)), r->path, r->part);
	receive_close_until_kept(r);
	return 0;
}

static int rename_into_place(struct receive *r, struct err *err)
{
	if (!r->verified)
		return err_set(err, ERR_BUG, "%s: is kept before it was verified", r->path);
	if (reopen_if_closed(r, err) < 0)
		return -1;
	if (!r->kept && renameat(r->dir, r->part, r->dir, r->base) < 0)
		return receive_name_error(r, "cannot be put there", err);
	r->kept = true;
	return 0;
}

static bool same_folder(const struct receive *a, const struct receive *b)
{
	struct stat x, y;

	return fstat(a->dir, &x) == 0 && fstat(b->dir, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* Fsyncs the file's folder, then closes both descriptors, since thousands of outputs of one command
 * are kept in a row and dropped only afterwards. */
static int sync_folder(struct receive *r, struct err *err)
{
	/* EINVAL: this file system has no fsync for folders. */
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
			continue; /* kept earlier */
		if (last && same_folder(last, r))
			close_both(last);
		else if (last && sync_folder(last, err) < 0)
			return -1;
		last = r;
	}
	return last ? sync_folder(last, err) : 0;
}

static void remove_part_unless_useful(struct receive *r, bool keep_part)
{
	if (!keep_part || r->poisoned || r->offset == 0)
		unlinkat(r->dir, r->part, 0);
}

void receive_drop(struct receive *r, bool keep_part)
{
	if (!r)
		return;
	if (!r->kept && reopen_if_closed(r, NULL) == 0)
		remove_part_unless_useful(r, keep_part);
	fd_close(r->fd);
	fd_close(r->dir);
	sha256_free(r->hash);
	free(r->output_dir);
	free(r->name);
	free(r->path);
	free(r->part_path);
	free(r->base);
	free(r->part);
	free(r);
}

/* ---- receive open ----
 * Opens the part of an output, and continues what an earlier attempt left. */

#define OPEN_TRIES 8 /* because another process may rename or remove the part meanwhile */

/* ERR_UNTRUSTED: what the pod announces of an output is invalid. */
static int check_announced(const char *name, int64_t bytes, const char *sha256, struct err *err)
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

/* Removes a part that is not a plain file with one name (a link, a pipe, a hard link): writing to
 * it would change another file. */
static int clear_odd_part(const struct receive *r, struct err *err)
{
	struct stat st;

	if (fstatat(r->dir, r->part, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : receive_local_error(r, "stat", err);
	if (S_ISREG(st.st_mode) && st.st_nlink == 1)
		return 0;
	if (unlinkat(r->dir, r->part, 0) < 0 && errno != ENOENT)
		return receive_local_error(r, "is in the way", err);
	return 0;
}

/* Whether the open file is still the one named r->part: the lock's previous holder may have moved
 * it. */
static bool still_has_its_name(const struct receive *r)
{
	struct stat open_one, named;

	return fstat(r->fd, &open_one) == 0 &&
	       fstatat(r->dir, r->part, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

/* Opens and locks the part, or makes it. ERR_BUSY: another process receives the same output. */
static int open_part(struct receive *r, struct err *err)
{
	for (int i = 0; i < OPEN_TRIES; i++) {
		if (clear_odd_part(r, err) < 0)
			return -1;
		r->fd = openat(r->dir, r->part,
			       O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
		if (r->fd < 0)
			return receive_name_error(r, "open", err);
		if (flock(r->fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK
				       ? err_set(err, ERR_BUSY, "%s: is being received already",
						 r->path)
				       : receive_local_error(r, "lock", err);
		if (still_has_its_name(r))
			return 0;
		close(r->fd);
		r->fd = -1;
	}
	return err_set(err, ERR_BUSY, "%s: is being received already", r->path);
}

/* Continues what an earlier attempt left, unless that is longer than the whole file. */
static int resume_part(struct receive *r, struct err *err)
{
	struct stat st;

	if (fstat(r->fd, &st) < 0)
		return receive_local_error(r, "stat", err);
	r->offset = (int64_t)st.st_size <= r->bytes ? (int64_t)st.st_size : 0;
	r->resumed = r->offset > 0;
	if (r->offset != (int64_t)st.st_size && ftruncate(r->fd, 0) < 0)
		return receive_local_error(r, "truncate", err);
	return receive_hash_prefix(r, r->offset, err);
}

/* base with the suffix of an incomplete file or, if that is too long for a name, its hash with it.
 * The caller frees it. */
static char *part_name(const char *base)
{
	char hash[SHA256_HEX];

	if (strlen(base) + strlen(PATH_PART) <= NAME_MAX)
		return xasprintf("%s%s", base, PATH_PART);
	sha256_hex(base, strlen(base), hash);
	return xasprintf(".%s%s", hash, PATH_PART);
}

int receive_open(struct receive **out, const char *output_dir, const char *name, int64_t bytes,
		 const char *sha256, struct err *err)
{
	if (check_announced(name, bytes, sha256, err) < 0)
		return -1;
	struct receive *r = xcalloc(1, sizeof(*r));
	r->output_dir = xstrdup(output_dir);
	r->name = xstrdup(name);
	r->path = path_join(output_dir, name);
	r->base = xstrdup(path_base(name));
	r->part = part_name(r->base);
	r->part_path =
		xasprintf("%.*s%s", (int)(strlen(r->path) - strlen(r->base)), r->path, r->part);
	COPY_TEXT(r->sha256, sha256);
	r->bytes = bytes;
	r->fd = -1;
	r->dir = receive_folder(output_dir, name, err);
	if (r->dir < 0 || open_part(r, err) < 0 || resume_part(r, err) < 0) {
		r->kept = true; /* there is no part of ours to remove */
		receive_drop(r, true);
		return -1;
	}
	*out = r;
	return 0;
}
