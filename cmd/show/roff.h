/* roff.h - writes text as a man page: nothing in it is taken for a request of roff's. */
#ifndef BURST_CMD_SHOW_ROFF_H
#define BURST_CMD_SHOW_ROFF_H

#include <stdio.h>

void roff_text(FILE *to, const char *text);
/* ".SH" or ".SS", with a title. */
void roff_heading(FILE *to, const char *macro, const char *title);
/* Lines of text; an empty one begins a paragraph, any other line break stays. */
void roff_paragraph(FILE *to, const char *text);
/* A name in bold, and indented below it a text. */
void roff_item(FILE *to, const char *name, const char *text);
/* Indented lines as they are, each ended by a newline. */
void roff_example(FILE *to, const char *text);

#endif
