/* text.h - lines of help within a width. */
#ifndef BURST_CMD_SHOW_TEXT_H
#define BURST_CMD_SHOW_TEXT_H

#include <stdio.h>

/* Writes words with `indent` blanks in front of each line but the first, which begins at column
 * `at`; breaks at `width`. A newline in the text is a newline. Ends the last line. */
void text_wrap(FILE *to, const char *text, int at, int indent, int width);
/* "  -p, --provider NAME": how a flag is written in help; name NULL: "  -p". Returns `out`. */
struct opt;
char *text_flag(char *out, size_t room, const struct opt *opt);
/* The next of the words that an args text wants ("POD [COMMAND...]" gives POD, then COMMAND),
 * without its signs; NULL when there is none. *more is set for "...". The rest goes on from *at. */
char *text_arg(char *out, size_t room, const char **at, int *more);

#endif
