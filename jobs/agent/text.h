/* text.h - memory that cannot fail, and growing bytes. */
#ifndef BURST_JOBS_AGENT_TEXT_H
#define BURST_JOBS_AGENT_TEXT_H

#include <stddef.h>

#define PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define ARRAY_LEN(a)       (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)          ((a) < (b) ? (a) : (b))
#define MAX(a, b)          ((a) > (b) ? (a) : (b))

void *xalloc(size_t size);
void *xresize(void *old, size_t size);
char *xcopy(const char *text, size_t len);
char *xprintf(const char *fmt, ...) PRINTF(1, 2);

/* Growing bytes; always NUL-terminated once something was added. */
struct buf {
	char *p;
	size_t len, cap;
};

void buf_room(struct buf *b, size_t more);
void buf_add(struct buf *b, const void *bytes, size_t len);
void buf_text(struct buf *b, const char *text);
void buf_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
void buf_drop(struct buf *b, size_t n);
void buf_free(struct buf *b);
const char *buf_str(const struct buf *b);

/* Length of the valid UTF-8 sequence at p, 0 when there is none (overlong forms and surrogates are
 * none). */
size_t utf8_at(const unsigned char *p, size_t left);

#endif
