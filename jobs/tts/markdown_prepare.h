/* markdown_prepare.h - rewrites Markdown before md4c parses it. Pure. */
#ifndef BURST_JOBS_TTS_MARKDOWN_PREPARE_H
#define BURST_JOBS_TTS_MARKDOWN_PREPARE_H

#include <stddef.h>

#include "base/str.h"

/* Two bytes that the text cannot contain; they are removed from it first and never spoken.
 * NOTE_MARK replaces the colon of "[^name]:", because md4c has no footnotes and would drop the
 * line. A paragraph of END_MARK follows the text: if a block swallows it, that block was not
 * closed. */
#define NOTE_MARK '\x02'
#define END_MARK  '\x03'

/* Appends the text for md4c. Keeps the lines of `text`, counted by LF: a blank line that only md4c
 * needs ends with CR. Changes `text`. */
void markdown_prepare(struct str *to, char *text);

/* The length of "[^name]" at p, or 0. */
size_t markdown_note(const char *p, const char *end);

#endif
