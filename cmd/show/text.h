/* text.h - wraps lines of help to a width. */
#ifndef BURST_CMD_SHOW_TEXT_H
#define BURST_CMD_SHOW_TEXT_H

#include <stdio.h>

/* Writes words with `indent` blanks in front of each line but the first, which begins at column
 * `at`. Wraps at `width`; keeps newlines. Ends the last line. */
void text_wrap(FILE *to, const char *text, int at, int indent, int width);
/* "  -p, --provider NAME": a flag in help; name NULL: "  -p". Returns `out`. */
struct opt;
char *text_flag(char *out, size_t room, const struct opt *opt);
/* The next word of an args text ("POD [COMMAND...]" gives POD, then COMMAND) without its signs;
 * NULL at the end. Sets *more for "...", and moves *at. */
char *text_arg(char *out, size_t room, const char **at, int *more);

#endif
