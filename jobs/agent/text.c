/* text.c - memory that cannot fail, and growing bytes. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *xalloc(size_t size)
{
	void *p = calloc(1, size ? size : 1);
	if (!p)
		abort();
	return p;
}

void *xresize(void *old, size_t size)
{
	void *p = realloc(old, size);
	if (!p)
		abort();
	return p;
}

char *xcopy(const char *text, size_t len)
{
	char *p = xalloc(len + 1);
	memcpy(p, text, len);
	return p;
}

char *xprintf(const char *fmt, ...)
{
	char *p = NULL;
	va_list args;
	va_start(args, fmt);
	if (vasprintf(&p, fmt, args) < 0)
		abort();
	va_end(args);
	return p;
}

void buf_room(struct buf *b, size_t more)
{
	if (b->len + more + 1 <= b->cap)
		return;
	b->cap = MAX(b->cap * 2, b->len + more + 1);
	b->p = xresize(b->p, b->cap);
}

void buf_add(struct buf *b, const void *bytes, size_t len)
{
	buf_room(b, len);
	if (len)
		memcpy(b->p + b->len, bytes, len);
	b->len += len;
	b->p[b->len] = 0;
}

void buf_text(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

void buf_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	char *text = NULL;
	if (vasprintf(&text, fmt, args) < 0)
		abort();
	va_end(args);
	buf_text(b, text);
	free(text);
}

void buf_drop(struct buf *b, size_t n)
{
	if (!n)
		return;
	memmove(b->p, b->p + n, b->len - n);
	b->len -= n;
	b->p[b->len] = 0;
}

void buf_free(struct buf *b)
{
	free(b->p);
	*b = (struct buf){0};
}

const char *buf_str(const struct buf *b)
{
	return b->p ? b->p : "";
}

size_t utf8_at(const unsigned char *p, size_t left)
{
	if (p[0] < 0x80)
		return 1;
	size_t n = p[0] >= 0xc2 && p[0] <= 0xdf   ? 2
		   : (p[0] & 0xf0) == 0xe0        ? 3
		   : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
						  : 0;
	if (!n || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))
		return 0;
	if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}
