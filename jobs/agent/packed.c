/* packed.c - the archive of a tree: its files in one file, stored beside its listing. */
#include "packed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/str.h"
#include "bounds.h"
#include "files.h"

#define ARCHIVE_MOST                                                                               \
	(INT64_C(8) << 30) /* a larger one is not an environment of programs, and would fill       \
			      volume and disk */

#define ARCHIVE_TITLE "burst-archive 1 %012lld\n"

/* Plans the archive of this folder. Returns -1 with errno set. */
static int archive_measure(const struct listing *l, int from, struct archive *ar)
{
	ar->list = xcalloc(1, (l->count + 1) * sizeof(*ar->list));
	for (size_t i = 0; i < l->count; i++) {
		struct packed *p = &ar->list[i];
		struct stat st;
		p->offset = -1;
		if (!is_file(&l->list[i]))
			continue;
		int fd = open_below(from, l->list[i].path, &st);
		if (fd < 0)
			return -1;
		close(fd);
		p->size = st.st_size;
		p->mtime_s = st.st_mtim.tv_sec;
		if (p->size <= ARCHIVE_FILE_MOST) {
			p->offset = ar->bytes;
			ar->bytes += p->size;
		}
	}
	return 0;
}

static void archive_head(const struct listing *l, const struct archive *ar, struct str *out)
{
	char title[40];
	int len = snprintf(title, sizeof(title), ARCHIVE_TITLE, 0LL);
	str_addn(out, title, (size_t)len);
	for (size_t i = 0; i < l->count; i++) {
		const struct packed *p = &ar->list[i];
		if (is_file(&l->list[i]) && p->offset < 0)
			str_add(out, "-\n");
		else if (is_file(&l->list[i]))
			str_addf(out, "%lld %lld\n", (long long)p->size, (long long)p->mtime_s);
	}
	snprintf(title, sizeof(title), ARCHIVE_TITLE, (long long)out->len);
	memcpy(out->s, title, (size_t)len);
}

static int archive_add(FILE *to, int from, const char *path, int64_t size, char *part)
{
	struct stat st;
	int64_t left = size;
	ssize_t n = 1;
	int fd = open_below(from, path, &st);
	if (fd < 0)
		return -1;
	while (left > 0 && (n = read(fd, part, (size_t)MIN(left, (int64_t)SLICE))) > 0 &&
	       fwrite(part, 1, (size_t)n, to) == (size_t)n)
		left -= n;
	int saved = n < 0 || left == 0 || ferror(to) ? errno : EBADMSG;
	close(fd);
	errno = saved;
	return left ? -1 : 0;
}

static int archive_fill(const struct listing *l, const struct archive *ar, int from, FILE *to)
{
	struct str head = {0};
	char *part = xcalloc(1, SLICE);
	archive_head(l, ar, &head);
	int failed = fwrite(head.s, 1, head.len, to) != head.len;
	for (size_t i = 0; i < l->count && !failed; i++)
		if (ar->list[i].offset >= 0)
			failed = archive_add(to, from, l->list[i].path, ar->list[i].size, part) < 0;
	failed = failed || fflush(to) == EOF || fsync(fileno(to)) < 0;
	int saved = errno;
	free(part);
	str_free(&head);
	errno = saved;
	return failed ? -1 : 0;
}

void archive_write(const struct listing *l, int from, int dir, char why[WHY_MAX])
{
	struct archive ar = {0};
	struct statvfs v;
	why[0] = 0;
	int failed = archive_measure(l, from, &ar);
	if (!failed && ar.bytes > ARCHIVE_MOST) {
		snprintf(why, WHY_MAX, "its small files are %lld MB",
			 (long long)(ar.bytes / 1000000));
	} else if (!failed && fstatvfs(dir, &v) == 0 &&
		   (int64_t)v.f_bavail * (int64_t)v.f_frsize < 2 * ar.bytes) {
		snprintf(why, WHY_MAX, "the volume has little room left");
	} else if (!failed) {
		int fd = openat(dir, ARCHIVE_NAME,
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
		if (to)
			setvbuf(to, NULL, _IOFBF, ARCHIVE_PIECE);
		failed = !to || archive_fill(l, &ar, from, to) < 0;
		int saved = errno;
		if (to && fclose(to) == EOF && !failed)
			failed = 1, saved = errno;
		if (failed)
			unlinkat(dir, ARCHIVE_NAME, 0);
		errno = saved;
	}
	if (failed)
		snprintf(why, WHY_MAX, "%s", strerror(errno));
	free(ar.list);
}

/* Reads a number in [least, most] and the byte that ends it. Returns -1 if it is invalid. */
static int archive_number(const char **at, char end, int64_t least, int64_t most, int64_t *out)
{
	char *after;
	errno = 0;
	long long n = strtoll(*at, &after, 10);
	if (after == *at || *after != end || errno || n < least || n > most || **at == ' ' ||
	    **at == '+')
		return -1;
	*at = after + 1;
	*out = n;
	return 0;
}

static int archive_lines(const struct listing *l, const char *at, struct archive *ar)
{
	for (size_t i = 0; i < l->count; i++) {
		struct packed *p = &ar->list[i];
		p->offset = -1;
		if (!is_file(&l->list[i]))
			continue;
		if (!strncmp(at, "-\n", 2)) {
			at += 2;
			continue;
		}
		if (archive_number(&at, ' ', 0, ARCHIVE_FILE_MOST, &p->size) < 0 ||
		    archive_number(&at, '\n', INT32_MIN, INT64_C(1) << 40, &p->mtime_s) < 0)
			return -1;
		p->offset = ar->head + ar->bytes;
		ar->bytes += p->size;
	}
	return *at ? -1 : 0;
}

/* Reads the head, which stands before the bytes. `st` is the archive's. */
static int archive_head_read(int fd, const struct stat *st, const struct listing *l,
			     struct archive *ar)
{
	char title[40], again[40];
	int len = snprintf(title, sizeof(title), ARCHIVE_TITLE, 0LL);
	long long head = 0;
	*ar = (struct archive){0};
	if (pread_all(fd, title, (size_t)len, 0) < 0)
		return -1;
	title[len] = 0;
	const char *digits = strrchr(title, ' ');
	head = digits ? atoll(digits) : 0;
	snprintf(again, sizeof(again), ARCHIVE_TITLE, head);
	if (strcmp(title, again) || head < len ||
	    head > MIN((int64_t)ARCHIVE_HEAD_MOST, (int64_t)st->st_size))
		return errno = EBADMSG, -1;
	char *text = xcalloc(1, (size_t)head - (size_t)len + 1);
	ar->head = head;
	ar->list = xcalloc(1, (l->count + 1) * sizeof(*ar->list));
	int failed = pread_all(fd, text, (size_t)(head - len), len) < 0;
	if (!failed && (archive_lines(l, text, ar) < 0 || ar->head + ar->bytes != st->st_size))
		errno = EBADMSG, failed = 1;
	int saved = errno;
	free(text);
	if (failed)
		free(ar->list);
	errno = saved;
	return failed ? -1 : 0;
}

int archive_open(int from, const struct listing *l, struct archive *ar)
{
	struct stat st;
	int fd = open_below(from, ARCHIVE_NAME, &st);
	if (fd >= 0 && archive_head_read(fd, &st, l, ar) < 0) {
		int saved = errno;
		close_fd(&fd);
		errno = saved;
	}
	return fd;
}
