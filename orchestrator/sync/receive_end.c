/* receive_end.c - verifies a fetched output and renames it into place, or drops it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "receive_impl.h"

static int sync_file(const struct receive *r, struct err *err)
{
#ifdef F_FULLFSYNC
	if (fcntl(r->fd, F_FULLFSYNC) == 0)
		return 0;
#endif
	return fsync(r->fd) == 0 ? 0 : receive_local_error(r, "fsync", err);
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
	if (r->offset < r->bytes)
		return err_set(err, ERR_TRANSIENT, "%s: got %" PRId64 " of %" PRId64 " bytes",
			       r->path, r->offset, r->bytes);
	sha256_finish(TAKE(r->hash), hex);
	if (strcmp(hex, r->sha256))
		return wrong_hash(r, err);
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

void receive_rest(struct receive *r)
{
	if (r->rests || !r->verified || r->kept || fstat(r->fd, &r->was) < 0)
		return;
	r->rests = true;
	close_both(r);
}

/* The times too: a new file soon gets the inode number of a removed one. */
static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtime == b->st_mtime && a->st_ctime == b->st_ctime;
}

static int reopen(struct receive *r, struct err *err)
{
	struct stat st;

	if (!r->rests)
		return 0;
	r->dir = receive_folder(r->output_dir, r->name, err);
	if (r->dir < 0)
		return -1;
	r->rests = false;
	if (fstatat(r->dir, r->part, &st, AT_SYMLINK_NOFOLLOW) == 0 && same_file(&st, &r->was))
		return 0;
	r->verified = false;
	r->kept = true; /* another file has its name now: do not remove it */
	return err_set(err, ERR_LOCAL, "%s: was removed after it was verified", r->part_path);
}

static int rename_into_place(struct receive *r, struct err *err)
{
	if (!r->verified)
		return err_set(err, ERR_BUG, "%s: is kept before it was verified", r->path);
	if (reopen(r, err) < 0)
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

/* Also closes both descriptors: thousands of outputs of one command are kept in a row and dropped
 * only afterwards. */
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

static void leave_or_remove(struct receive *r, bool keep_part)
{
	if (!keep_part || r->poisoned || r->offset == 0)
		unlinkat(r->dir, r->part, 0);
}

void receive_drop(struct receive *r, bool keep_part)
{
	if (!r)
		return;
	if (!r->kept && reopen(r, NULL) == 0)
		leave_or_remove(r, keep_part);
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
