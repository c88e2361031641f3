/* mem.h - allocation that cannot fail, and variables that free themselves.
 *
 * If memory runs out, burst aborts. The ledger has every pod before it is paid for, so `burst reap`
 * finds what a crash leaves behind. CLEANUP(fn) frees a variable when it goes out of scope; TAKE(x)
 * marks the one line where ownership moves. */
#ifndef BURST_BASE_MEM_H
#define BURST_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define ARRAY_LEN(a)       (sizeof(a) / sizeof((a)[0]))
#define PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
/* The smaller and the larger of two. Each argument is evaluated once; the macros nest. */
#define MIN(a, b)             PICK_ONE(<, a, b, __COUNTER__)
#define MAX(a, b)             PICK_ONE(>, a, b, __COUNTER__)
#define PICK_ONE(op, a, b, n) PICK_NAMED(op, a, b, n)
#define PICK_NAMED(op, a, b, n)                                                                    \
	({                                                                                         \
		__typeof__((a) + (b)) pick_a_##n = (a), pick_b_##n = (b);                          \
		pick_a_##n op pick_b_##n ? pick_a_##n : pick_b_##n;                                \
	})

/* Use: DEFINE_CLEANUP(file_close, FILE *) once beside the function, then CLEANUP(file_close) FILE
 * *f = ...; */
#define CLEANUP(fn) __attribute__((cleanup(fn##_cleanup)))
#define DEFINE_CLEANUP(fn, type)                                                                   \
	static inline void fn##_cleanup(type *variable)                                            \
	{                                                                                          \
		fn(*variable);                                                                     \
	}
/* Gives the value away and leaves NULL behind. */
#define TAKE(pointer)                                                                              \
	({                                                                                         \
		__typeof__(pointer) taken_ = (pointer);                                            \
		(pointer) = NULL;                                                                  \
		taken_;                                                                            \
	})

/* All of these abort when there is no memory; the caller frees with free(). */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *old, size_t size);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t len);
char *xasprintf(const char *fmt, ...) PRINTF(1, 2);
/* Frees a NULL-terminated list and its texts. Accepts NULL. */
void texts_free(char **texts);
/* The words of two NULL-terminated lists as one, which borrows their texts. */
const char **words_join(const char *const *first, const char *const *rest);

/* Makes room for one more element in a growing array; doubles. Use: GROW(list, count, cap);
 * list[count++] = x; */
void *grow_array(void *list, size_t count, size_t *cap, size_t element);
#define GROW(list, count, cap) ((list) = grow_array((list), (count), &(cap), sizeof(*(list))))

/* Copies text into a fixed field, cut between two UTF-8 characters if too long, always terminated.
 */
void copy_text(char *to, size_t room, const char *from);
#define COPY_TEXT(field, from) copy_text((field), sizeof(field), (from))
/* The same; a text that is too long ends at a word, with "...". room: 8 at least. */
void copy_words(char *to, size_t room, const char *from);
#define COPY_WORDS(field, from) copy_words((field), sizeof(field), (from))

/* The length of text[0..len) without an incomplete UTF-8 character at its end. */
size_t utf8_whole(const char *text, size_t len);
/* How many bytes of text fit into `most` without cutting a UTF-8 character in two. For "%.*s". */
int utf8_fit(const char *text, size_t most);
/* snprintf() and vsnprintf(), cut between two UTF-8 characters. */
void format_text(char *to, size_t room, const char *fmt, ...) PRINTF(3, 4);
void vformat_text(char *to, size_t room, const char *fmt, va_list ap) PRINTF(3, 0);

/* For CLEANUP(). They accept NULL, and -1 as fd. */
void free_text(char *text);
void free_words(const char **words); /* the list, not its texts */
void file_close(FILE *f);
void fd_close(int fd);

DEFINE_CLEANUP(free_text, char *)
DEFINE_CLEANUP(free_words, const char **)
DEFINE_CLEANUP(file_close, FILE *)
DEFINE_CLEANUP(fd_close, int)

#endif
