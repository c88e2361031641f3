/* tar.c - reads a tar stream: ustar with pax headers and GNU's long names. */
#include "tar.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bounds.h"

enum {
	PAX_MAX = 1 << 20,
};

int tar_error(struct tar *t, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (!t->error[0])
		vsnprintf(t->error, sizeof(t->error), fmt, args);
	va_end(args);
	return -1;
}

static ssize_t tar_from_lanes(struct tar *t);

size_t tar_some(struct tar *t, size_t most, char **p)
{
	if (t->at == t->have) {
		ssize_t n;
		t->bytes = t->room;
		do
			n = t->lanes ? tar_from_lanes(t) : read(t->fd, t->room, SLICE / 4);
		while (n < 0 && errno == EINTR && !t->lanes);
		t->at = 0;
		t->have = n > 0 ? (size_t)n : 0;
	}
	size_t n = MIN(most, t->have - t->at);
	*p = t->bytes + t->at;
	t->at += n;
	return n;
}

static int tar_take(struct tar *t, void *to, size_t len)
{
	for (size_t done = 0; done < len;) {
		char *p;
		size_t n = tar_some(t, len - done, &p);
		if (!n)
			return tar_error(t, "the stream ended early");
		if (to)
			memcpy((char *)to + done, p, n);
		done += n;
	}
	return 0;
}

int tar_pad(struct tar *t, int64_t size)
{
	return tar_take(t, NULL, (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK));
}

int64_t tar_number(const unsigned char *p, size_t len)
{
	int64_t value = 0;
	if (p[0] & 0x80) {
		value = p[0] & 0x7f;
		for (size_t i = 1; i < len; i++) {
			if (value >> 54)
				return -1;
			value = value << 8 | p[i];
		}
		return value;
	}
	size_t i = 0;
	while (i < len && p[i] == ' ')
		i++;
	for (; i < len && p[i] >= '0' && p[i] <= '7'; i++)
		value = value << 3 | (p[i] - '0');
	return i == len || p[i] == ' ' || p[i] == 0 ? value : -1;
}

static bool tar_sum_fits(const unsigned char *h)
{
	int64_t sum = 0;
	for (int i = 0; i < TAR_BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : h[i];
	return sum == tar_number(h + 148, 8);
}

static void tar_keep(char **field, const char *text, size_t len)
{
	free(*field);
	*field = xstrndup(text, strnlen(text, len));
}

char *tar_content(struct tar *t, int64_t size, int64_t most)
{
	if (size < 0 || size > most) {
		tar_error(t, "a header of absurd size");
		return NULL;
	}
	char *text = xcalloc(1, (size_t)size + 1);
	if (tar_take(t, text, (size_t)size) < 0 || tar_pad(t, size) < 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int pax_record(struct tar *t, const char *key, const char *value, size_t len)
{
	if (!strcmp(key, "path"))
		tar_keep(&t->path, value, len);
	else if (!strcmp(key, "linkpath"))
		tar_keep(&t->link, value, len);
	else if (!strcmp(key, "mtime"))
		t->mtime = atoll(value);
	else if (!strncmp(key, "GNU.sparse", 10))
		return tar_error(t, "sparse files are not taken");
	else if (!strcmp(key, "size")) {
		char *end;
		t->size = strtoll(value, &end, 10);
		t->pax_size = true;
		if (t->size < 0 || end != value + len)
			return tar_error(t, "a bad size");
	}
	return 0;
}

/* Reads records "LEN key=value\n". */
static int pax_read(struct tar *t, char *text, size_t size)
{
	for (char *p = text, *end = text + size; p < end;) {
		char *space;
		long len = strtol(p, &space, 10);
		char *eq = len > 0 && len <= end - p && *space == ' '
				   ? memchr(space, '=', (size_t)(p + len - space))
				   : NULL;
		if (!eq || p[len - 1] != '\n')
			return tar_error(t, "a bad extended header");
		*eq = 0;
		p[len - 1] = 0;
		if (pax_record(t, space + 1, eq + 1, (size_t)(p + len - 1 - (eq + 1))) < 0)
			return -1;
		p += len;
	}
	return 0;
}

/* Reads a header that describes the next entry: pax (x), a long path (L) or link (K). Skips global
 * pax headers (g). */
static int tar_extended(struct tar *t, char type, int64_t size)
{
	char *text = tar_content(t, size, PAX_MAX);
	if (!text)
		return -1;
	int result = 0;
	if (type == 'x')
		result = pax_read(t, text, (size_t)size);
	else if (type == 'L')
		tar_keep(&t->path, text, (size_t)size);
	else if (type == 'K')
		tar_keep(&t->link, text, (size_t)size);
	free(text);
	return result;
}

static void tar_names(struct tar *t, const unsigned char *h)
{
	if (!t->path && h[345] && !memcmp(h + 257, "ustar", 6)) {
		t->path = xasprintf("%.155s/%.100s", (const char *)h + 345, (const char *)h);
	} else if (!t->path) {
		tar_keep(&t->path, (const char *)h, 100);
	}
	if (!t->link)
		tar_keep(&t->link, (const char *)h + 157, 100);
	char *p = t->path;
	size_t len = strlen(p);
	while (len && p[len - 1] == '/')
		p[--len] = 0;
	while (!strncmp(p, "./", 2)) {
		len -= 2;
		memmove(p, p + 2, len + 1);
	}
}

int tar_next(struct tar *t)
{
	unsigned char h[TAR_BLOCK];
	free(t->path);
	free(t->link);
	t->path = t->link = NULL;
	t->pax_size = false;
	t->mtime = -1;
	for (;;) {
		if (tar_take(t, h, TAR_BLOCK) < 0)
			return -1;
		if (!h[0] && !memcmp(h, h + 1, TAR_BLOCK - 1))
			return 0;
		int64_t size = tar_number(h + 124, 12);
		if (!tar_sum_fits(h) || size < 0)
			return tar_error(t, "not a tar stream");
		t->type = (char)h[156];
		if (!strchr("xgLK", t->type) || !t->type) {
			if (!t->pax_size)
				t->size = size;
			break;
		}
		if (tar_extended(t, t->type, size) < 0)
			return -1;
	}
	t->mode = (int)(tar_number(h + 100, 8) & 0777);
	if (t->mtime < 0)
		t->mtime = MAX(tar_number(h + 136, 12), (int64_t)0);
	tar_names(t, h);
	return 1;
}

static ssize_t tar_from_lanes(struct tar *t)
{
	char *p;
	ssize_t n = lanes_next(t->lanes, &p);
	t->bytes = p;
	if (n <= 0 || !t->lanes->packed)
		return n;
	t->merging = lanes_fork(t->lanes, p, n, &t->fd);
	lanes_close(t->lanes);
	t->lanes = NULL;
	t->bytes = t->room;
	if (t->merging < 0)
		return -1;
	do
		n = read(t->fd, t->room, SLICE / 4);
	while (n < 0 && errno == EINTR);
	return n;
}
