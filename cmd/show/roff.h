/* roff.h - writes text for man pages, escaped so that roff obeys nothing in it. */
#ifndef BURST_CMD_SHOW_ROFF_H
#define BURST_CMD_SHOW_ROFF_H

#include <stdio.h>

void roff_text(FILE *to, const char *text);
/* ".SH" or ".SS", with a title. */
void roff_heading(FILE *to, const char *macro, const char *title);
/* Lines of text. An empty line begins a paragraph; other line breaks stay. */
void roff_paragraph(FILE *to, const char *text);
/* A name in bold, and a text indented below it. */
void roff_item(FILE *to, const char *name, const char *text);
/* Indented lines without changes, each ended by a newline. */
void roff_example(FILE *to, const char *text);

#endif
