/* receive.c - writes the bytes of one fetched output into its part. */
#include "receive.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "receive_impl.h"

#define READ_ROOM   (256u << 10)
#define RANGE_ALIGN (INT64_C(1) << 20)

int receive_local_error(const struct receive *r, const char *what, struct err *err)
{
	return err_set(err, ERR_LOCAL, "%s: %s: %s", r->part_path, what, strerror(errno));
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
	/* On some systems that name shares our file position. We do not use it: we pread and
	 * pwrite. */
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

/* Keeps the list sorted, and joins spans that touch. */
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

/* From the first range on the file has holes. Its name says so, because after a crash the next
 * attempt takes a NAME.part for a prefix. */
static int begin_split(struct receive *r, struct err *err)
{
	if (r->is_split)
		return 0;
	if (renameat(r->dir, r->part, r->dir, r->split) < 0)
		return receive_local_error(r, "rename", err);
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

int receive_end_split(struct receive *r, struct err *err)
{
	if (!r->is_split)
		return 0;
	int64_t whole = r->span_count && r->spans[0].from == 0 ? r->spans[0].to : 0;
	if (ftruncate(r->fd, (off_t)whole) < 0)
		return receive_local_error(r, "truncate", err);
	if (renameat(r->dir, r->split, r->dir, r->part) < 0)
		return receive_local_error(r, "rename", err);
	r->is_split = false;
	r->span_count = 0;
	r->offset = whole;
	return receive_hash_prefix(r, whole, err);
}
