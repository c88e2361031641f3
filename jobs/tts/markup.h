/* markup.h - extracts the spoken text of a piece of HTML: no tags, comments, scripts or code. Pure.
 */
#ifndef BURST_JOBS_TTS_MARKUP_H
#define BURST_JOBS_TTS_MARKUP_H

#include <stddef.h>

#include "base/str.h"

struct markup_silent {
	size_t images, code_blocks;
};

/* Appends the text. White space becomes blanks; a newline separates blocks. *silent counts what is
 * left out. The input must be valid UTF-8. */
void markup_text(struct str *to, const char *html, size_t len, struct markup_silent *silent);

/* Appends the character named by "&auml;", "&#228;" or "&#xe4;", or the bytes themselves if HTML 4
 * has no such character. `len`: bytes of the whole reference. */
void markup_add_entity(struct str *to, const char *entity, size_t len);

#endif
