/* output.h - writes to terminals and pipes: log lines, the final error, tables, wrapped text, JSON.
 */
#ifndef BURST_CMD_SHOW_OUTPUT_H
#define BURST_CMD_SHOW_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/cmd.h"

/* ---- tables ---- */

#define COLOR_RED    "\033[31m"
#define COLOR_GREEN  "\033[32m"
#define COLOR_YELLOW "\033[33m"
#define COLOR_CYAN   "\033[36m"
#define COLOR_BOLD   "\033[1m"
#define COLOR_DIM    "\033[2m"
#define COLOR_OFF    "\033[0m"

struct table;

enum table_align { TABLE_LEFT, TABLE_RIGHT };

struct table *table_new(void);
void table_free(struct table *t); /* Accepts NULL. */
/* Call before the first cell. spare: what happens to the column on a narrow terminal. TABLE_WHOLE:
 * nothing; TABLE_SHRINKS: it gets narrower; 1 and more: it is left out, the largest number first.
 */
enum { TABLE_WHOLE = 0, TABLE_SHRINKS = -1 };
void table_column(struct table *t, const char *title, enum table_align align, int spare);
/* Adds the next cell, row by row. Makes untrusted text printable. */
void table_cell(struct table *t, const char *fmt, ...) PRINTF(2, 3);
/* Colours the last cell on terminals with colours: one of COLOR_*. */
void table_cell_color(struct table *t, const char *color);
/* Appends the rows to *to, one line each; cuts cells with an ellipsis if necessary. For a display
 * that is redrawn. */
void table_add(const struct table *t, struct str *to, int width, bool titles);
/* Prints without cutting: long cells continue on the next line, and columns without room are named
 * below. width 0: unlimited. Prints nothing without rows. */
void table_print(const struct table *t, FILE *to, int width);

/* Columns of the stream's terminal; 0: not a terminal. */
int terminal_width(FILE *stream);
/* Approximate columns of UTF-8 text on a terminal: East Asian wide letters and emoji take two,
 * marks none. */
int text_width(const char *text);
/* Cuts printable text to this many columns, with an ellipsis if it was cut. */
void text_fit(struct str *to, const char *text, int columns);

DEFINE_CLEANUP(table_free, struct table *)

/* ---- help, wrapped to a width ---- */

/* Writes words with `indent` blanks in front of each line but the first, which begins at column
 * `at`. Wraps at `width`; keeps newlines. Ends the last line. */
void text_wrap(FILE *to, const char *text, int at, int indent, int width);
/* Prints a line of at most 1023 bytes. On a terminal, wraps it at its width and indents the
 * following lines by `indent` columns. */
void output_wrapped(FILE *to, int indent, const char *fmt, ...) PRINTF(3, 4);

/* ---- lines and errors, redacted and made printable ---- */

/* Sends the log to stderr, as the flags of ctx say. ctx must outlive it. */
void output_setup(struct cmd_context *ctx);
/* Prints "burst: ..." on stderr. */
void output_error(const struct cmd_context *ctx, const struct err *err);
/* Prints each mistake of ctx as output_error() does, then *err unless it is one of them. */
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
/* Prints text with untrusted parts (names, paths, vendors' words) as one printable line. */
void output_line(FILE *to, const char *fmt, ...) PRINTF(2, 3);
/* Prints each line of the text as output_safe_line() does. */
void output_lines(FILE *to, const char *text);
/* The value as one line without newline. Numbers have no more digits than they were given (0.1, not
 * 0.10000000000000001), and no terminal would obey anything in it. The caller frees it. */
char *output_json_line(const json_t *value);
/* Prints the value as such a line on stdout; takes the reference. */
void output_json(json_t *value);

#endif
