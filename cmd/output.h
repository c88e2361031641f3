/* output.h - what goes to the terminal: log lines and the one error at the end, redacted and made
 * printable. */
#ifndef BURST_CMD_OUTPUT_H
#define BURST_CMD_OUTPUT_H

#include <jansson.h>

#include "base/err.h"
#include "cmd.h"

/* Points the log at stderr, as the flags of ctx say. ctx must outlive it. */
void output_setup(struct cmd_context *ctx);
/* "burst: ..." on stderr. */
void output_error(const struct cmd_context *ctx, const struct err *err);
/* The same of each mistake in ctx, then of *err unless it is one of them. */
void output_mistakes(const struct cmd_context *ctx, const struct err *err);
/* Called before each line that goes to stderr: a live display takes itself away. NULL: nobody. */
void output_before_line(void (*fn)(void));
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
