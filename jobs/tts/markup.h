/* markup.h - the text of a piece of HTML for a voice: without tags, comments, scripts and code.
 * Pure. */
#ifndef BURST_JOBS_TTS_MARKUP_H
#define BURST_JOBS_TTS_MARKUP_H

#include <stddef.h>

#include "base/str.h"

struct markup_silent {
	size_t images, code_blocks;
};

/* Appends the text. White space becomes blanks; a newline stands between blocks. *silent counts
 * what is left out. The input must be valid UTF-8. */
void markup_text(struct str *to, const char *html, size_t len, struct markup_silent *silent);

/* Appends the character that "&auml;", "&#228;" or "&#xe4;" names, or the bytes themselves if HTML
 * 4 has no such character. `len` is the length of the whole reference. */
void markup_add_entity(struct str *to, const char *entity, size_t len);

#endif
