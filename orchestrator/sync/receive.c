/* receive.c - writes the bytes of one fetched output into its part. */
#include "receive.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "receive_impl.h"

#define READ_ROOM (256u << 10)

int receive_local_error(const struct receive *r, const char *what, struct err *err)
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

int receive_hash_prefix(struct receive *r, int64_t bytes, struct err *err)
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
