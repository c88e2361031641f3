/* markdown_prepare.h - rewrites Markdown before md4c parses it. Pure. */
#ifndef BURST_JOBS_TTS_MARKDOWN_PREPARE_H
#define BURST_JOBS_TTS_MARKDOWN_PREPARE_H

#include <stddef.h>

#include "base/str.h"

/* md4c knows no footnotes. NOTE_MARK takes the place of the colon of "[^name]:", so that the line
 * stays text. A paragraph with END_MARK follows the whole text: a block that swallows it was never
 * closed. Neither byte is spoken, and both are removed from the text itself. */
#define NOTE_MARK '\x02'
#define END_MARK  '\x03'

/* Appends the text for md4c. It has the lines of `text`, counted by LF: a blank line that md4c
 * needs and GitHub does not ends with CR alone. `text` is changed. */
void markdown_prepare(struct str *to, char *text);

/* The length of "[^name]" at p; 0: there is none. */
size_t markdown_note(const char *p, const char *end);

#endif
