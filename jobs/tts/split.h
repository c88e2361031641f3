/* split.h - cuts a text into pieces that an engine can speak at once. Pure. Lengths are in code
 * points; a cut never falls inside a UTF-8 sequence or before a combining mark. */
#ifndef BURST_JOBS_TTS_SPLIT_H
#define BURST_JOBS_TTS_SPLIT_H

#include <stddef.h>

#include "base/str.h"

struct split_limits {
	size_t max_chars; /* of a piece; at least 2 x min_chars */
	size_t min_chars; /* of a piece, unless the whole text is shorter */
};

struct piece {
	const char *text; /* points into the text; not terminated */
	size_t len;       /* in bytes */
};

/* Appends the text with white space as single blanks, without control and zero-width characters.
 * The text must be valid UTF-8. */
void split_normalise(struct str *to, const char *text, size_t len);
/* Returns whether the text has anything to speak: a letter, a digit, a symbol with a name. */
bool split_has_words(const char *text);
/* How a valid text ends, quotes and brackets aside. */
enum split_end { SPLIT_WORD, SPLIT_COMMA, SPLIT_STOP };
enum split_end split_end(const char *text, size_t len);
size_t split_chars(const char *text, size_t len);

/* Cuts a normalised text at the last sentence end that fits, else at the last comma or its like,
 * else between words, else inside a word. The caller frees *out. Returns the count, at least 1
 * unless the text is empty. */
size_t split_text(const char *text, const struct split_limits *limits, struct piece **out);

#endif
