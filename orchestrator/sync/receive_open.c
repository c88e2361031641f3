/* receive_open.c - opens the part of an output, and continues what an earlier attempt left. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/str.h"
#include "receive_impl.h"

#define OPEN_TRIES 8 /* because another process may rename or remove the part meanwhile */

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

/* True if the open file still has this name. The previous holder of the lock may have moved it. */
static bool is_named(const struct receive *r)
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
			return receive_name_error(r, "open", err);
		if (flock(r->fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK
				       ? err_set(err, ERR_BUSY, "%s: is being received already",
						 r->path)
				       : receive_local_error(r, "lock", err);
		if (is_named(r))
			return 0;
		close(r->fd);
		r->fd = -1;
	}
	return err_set(err, ERR_BUSY, "%s: is being received already", r->path);
}

/* Continues what an earlier attempt left, unless that is longer than the whole file. */
static int resume(struct receive *r, struct err *err)
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

/* The name of an incomplete file, which the caller frees. The longest names leave no room for the
 * suffix. */
static char *part_of(const char *base)
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
	if (check_foreign(name, bytes, sha256, err) < 0)
		return -1;
	struct receive *r = xcalloc(1, sizeof(*r));
	r->output_dir = xstrdup(output_dir);
	r->name = xstrdup(name);
	r->path = path_join(output_dir, name);
	r->base = xstrdup(path_base(name));
	r->part = part_of(r->base);
	r->part_path =
		xasprintf("%.*s%s", (int)(strlen(r->path) - strlen(r->base)), r->path, r->part);
	COPY_TEXT(r->sha256, sha256);
	r->bytes = bytes;
	r->fd = -1;
	r->dir = receive_folder(output_dir, name, err);
	if (r->dir < 0 || open_part(r, err) < 0 || resume(r, err) < 0) {
		r->kept = true; /* there is no part of ours to remove */
		receive_drop(r, true);
		return -1;
	}
	*out = r;
	return 0;
}
