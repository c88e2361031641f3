/* output.h - writes log lines and the one final error to the terminal, redacted and made printable.
 */
#ifndef BURST_CMD_SHOW_OUTPUT_H
#define BURST_CMD_SHOW_OUTPUT_H

#include <jansson.h>

#include "base/err.h"
#include "cmd/cmd.h"

/* Sends the log to stderr, as the flags of ctx say. ctx must outlive it. */
void output_setup(struct cmd_context *ctx);
/* Prints "burst: ..." on stderr. */
void output_error(const struct cmd_context *ctx, const struct err *err);
/* Prints each mistake of ctx like that, then *err unless it is one of them. */
void output_mistakes(const struct cmd_context *ctx, const struct err *err);
/* Sets callbacks around each line on stderr, so that a live display can hide and return. NULL:
 * none. */
void output_around_lines(void (*before)(void), void (*after)(void));
/* Prefixes later log lines with the time, like output_event(): "2026-11-21T00:41:07Z pod ...". */
void output_stamp(bool on);
/* Prints a line of progress on stderr, with the time. */
void output_event(const char *fmt, ...) PRINTF(1, 2);
/* Prints untrusted text as one printable line. */
void output_safe_line(FILE *to, const char *text, size_t len);
/* Prints a text that may hold such text (names, paths, vendors' words) as one printable line,
 * without a newline. */
void output_line(FILE *to, const char *fmt, ...) PRINTF(2, 3);
/* Prints each line of the text like that. */
void output_lines(FILE *to, const char *text);
/* One line without newline. Numbers have no more digits than they were given (0.1, not
 * 0.10000000000000001), and no terminal would obey anything in it. The caller frees it. */
char *output_json_line(const json_t *value);
/* Prints that line on stdout; takes the reference. */
void output_json(json_t *value);

#endif
