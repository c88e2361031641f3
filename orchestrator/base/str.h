/* str.h - the one kind of growing text (it may hold any bytes; always NUL-terminated once something
 * was added). */
#ifndef BURST_BASE_STR_H
#define BURST_BASE_STR_H

#include <stdbool.h>
#include <stdint.h>

#include "mem.h"

struct str {
	char *s;    /* NULL while empty; use str_text() where a string is needed */
	size_t len; /* bytes, without the NUL */
	size_t cap;
	size_t max; /* no more than this many bytes are kept; 0: no limit */
	bool over;  /* something was dropped because of max */
};
#define STR_INIT      ((struct str){0})
#define STR_MAX(most) ((struct str){.max = (most)})

void str_add(struct str *to, const char *text);
void str_addn(struct str *to, const void *bytes, size_t len);
void str_addc(struct str *to, char c);
/* One code point; c must be one: at most 0x10ffff and no surrogate. */
void str_add_utf8(struct str *to, uint32_t c);
void str_addf(struct str *to, const char *fmt, ...) PRINTF(2, 3);
/* Adds a word of a POSIX shell command, quoted so that the shell gets exactly these bytes. */
void str_add_shell(struct str *to, const char *word);
/* Adds a text from outside as one line that is safe for a terminal: control characters and bytes
 * that are not UTF-8 become \xNN. Uses at most `most` bytes of it (0: all) and then adds "...". */
void str_add_printable(struct str *to, const char *bytes, size_t len, size_t most);
/* Drops the first n bytes. */
void str_drop(struct str *from, size_t n);
void str_reset(struct str *s);             /* empties it, keeps its memory */
const char *str_text(const struct str *s); /* never NULL */
/* Returns the text, which the caller frees, and empties s. */
char *str_detach(struct str *s);
void str_free(struct str *s); /* leaves s empty, with its max */
/* str_free() and free() for secrets: overwrite the memory first. text may be NULL. */
void str_wipe(struct str *s);
void text_wipe(char *text);

static inline void str_free_cleanup(struct str *s)
{
	str_free(s);
}

static inline void str_wipe_cleanup(struct str *s)
{
	str_wipe(s);
}

/* Takes the next line off a text: returns its start, moves *text to the line below it, and sets
 * *len to its length in bytes without the newline. The last line may lack a newline. Returns NULL
 * when no text is left. The line points into the text. */
const char *str_next_line(const char **text, size_t *len);
/* The same for the bytes from *at to end, which may hold NUL bytes. Only a last line that lacks its
 * newline ends at end: line + *len == end. */
const char *bytes_next_line(const char **at, const char *end, size_t *len);
/* The last line of the text, without the blanks and empty lines at its end; *len gets its bytes. It
 * points into the text. "" if there are only blanks. */
const char *str_last_line(const struct str *text, size_t *len);
bool starts_with(const char *text, const char *prefix);
/* True if text begins with at least this many lower-case hex digits. */
bool starts_with_hex(const char *text, size_t digits);
/* True if text is a SHA-256 in lower-case hex digits and nothing else. NULL is not. */
bool sha256_is_hex(const char *text);
bool ends_with(const char *text, const char *suffix);
/* Length of the valid UTF-8 sequence at p (1-4), or 0 when there is none. Overlong forms and
 * surrogates are invalid. */
size_t utf8_sequence(const unsigned char *p, size_t left);
/* Reads a code point and moves *text behind it. The text must be valid UTF-8 and not at its end. */
uint32_t utf8_next(const char **text);
bool utf8_valid(const char *bytes, size_t len);
/* Whether the valid sequence of this length at p would drive a terminal or turn text around:
 * control characters (C0, DEL, C1), line separators, and the marks of writing direction. */
bool utf8_hostile(const unsigned char *p, size_t len);
/* The listed word nearest to a misspelled one, for "did you mean"; NULL: none is near. */
const char *nearest_word(const char *word, const char *const *words);

#endif
