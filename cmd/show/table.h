/* table.h - prints tables: columns as wide as needed, numbers aligned right, no wider than the
 * terminal. */
#ifndef BURST_CMD_SHOW_TABLE_H
#define BURST_CMD_SHOW_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"

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
/* Sets the least width of the last column, and the width below which it is not cut while another
 * column can be left out. */
void table_readable(struct table *t, int width);
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

#endif
