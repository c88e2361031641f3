/* output.h - what goes to the terminal: log lines and the one error at the end, redacted and made
 * printable. */
#ifndef BURST_CMD_SHOW_OUTPUT_H
#define BURST_CMD_SHOW_OUTPUT_H

#include <jansson.h>

#include "base/err.h"
#include "cmd/cmd.h"

/* Points the log at stderr, as the flags of ctx say. ctx must outlive it. */
void output_setup(struct cmd_context *ctx);
/* "burst: ..." on stderr. */
void output_error(const struct cmd_context *ctx, const struct err *err);
/* The same of each mistake in ctx, then of *err unless it is one of them. */
void output_mistakes(const struct cmd_context *ctx, const struct err *err);
/* Called before and after each line that goes to stderr: a live display takes itself away, and
 * comes back. NULL: nothing. */
void output_around_lines(void (*before)(void), void (*after)(void));
/* From now on log lines have the time in front, as output_event() has: "2026-11-21T00:41:07Z pod
 * ...". */
void output_stamp(bool on);
/* A line of progress on stderr, with the time in front. */
void output_event(const char *fmt, ...) PRINTF(1, 2);
/* Text from outside as one safe line. */
void output_safe_line(FILE *to, const char *text, size_t len);
/* What may hold such text (names, paths, vendors' words), as one safe line; no newline at its end.
 */
void output_line(FILE *to, const char *fmt, ...) PRINTF(2, 3);
/* Each line of it as a safe one. */
void output_lines(FILE *to, const char *text);
/* One line without newline, numbers with no more digits than they were given (0.1, not
 * 0.10000000000000001), and nothing in it that a terminal would obey; to be freed. */
char *output_json_line(const json_t *value);
/* Writes that line to stdout; takes the reference. */
void output_json(json_t *value);

#endif
