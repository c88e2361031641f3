/* split.h - one text cut into pieces that an engine can speak in one go. Pure. Lengths are counted
 * in code points; a cut never falls inside a UTF-8 sequence or before a combining mark. */
#ifndef BURST_JOBS_TTS_SPLIT_H
#define BURST_JOBS_TTS_SPLIT_H

#include <stddef.h>

#include "base/str.h"

struct split_limits {
	size_t max_chars; /* of a piece; at least 2 x min_chars */
	size_t min_chars; /* no piece is shorter unless the whole text is */
};

struct piece {
	const char *text; /* into the text; not terminated */
	size_t len;       /* bytes */
};

/* White space becomes single blanks, control and zero-width characters go. The text must be valid
 * UTF-8. */
void split_normalise(struct str *to, const char *text, size_t len);
/* Whether it holds anything that can be spoken: a letter, a digit, a symbol with a name. */
bool split_has_words(const char *text);
/* What a valid text ends with, quotes and brackets aside. */
enum split_end { SPLIT_WORD, SPLIT_COMMA, SPLIT_STOP };
enum split_end split_end(const char *text, size_t len);
size_t split_chars(const char *text, size_t len);

/* Cuts a normalised text: at the last end of a sentence that fits, else at the last comma or its
 * like, else between words, else within one. *out is to be freed; the count is at least 1 for a
 * text that is not empty. */
size_t split_text(const char *text, const struct split_limits *limits, struct piece **out);

#endif
