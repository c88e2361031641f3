/* table.h - rows for people: columns as wide as they must be, numbers to the right, and on a
 * terminal no wider than it is. */
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
void table_free(struct table *t); /* NULL is fine */
/* Before the first cell. spare: what becomes of the column when the terminal is too narrow:
 * TABLE_WHOLE stays as it is, TABLE_SHRINKS gets narrower, 1 and more is left out, the largest
 * number first. */
enum { TABLE_WHOLE = 0, TABLE_SHRINKS = -1 };
void table_column(struct table *t, const char *title, enum table_align align, int spare);
/* The last column is at least this wide, and cut no shorter while another one can be left out. */
void table_readable(struct table *t, int width);
/* The next cell, row by row. What comes from outside is made printable. */
void table_cell(struct table *t, const char *fmt, ...) PRINTF(2, 3);
/* The last cell, where the terminal has colours: one of COLOR_*. */
void table_cell_color(struct table *t, const char *color);
/* Appends the rows to *to, each on one line, with its cells cut (with an ellipsis) where they must
 * be. For a display that is redrawn. */
void table_add(const struct table *t, struct str *to, int width, bool titles);
/* Cuts nothing: what is too long goes on in the next line, and columns for which there is no room
 * are named below. width 0: as wide as it likes. Nothing at all when there is no row. */
void table_print(const struct table *t, FILE *to, int width);

/* Columns of the terminal behind this stream, 0 when it is none. */
int terminal_width(FILE *stream);
/* How many columns these bytes of UTF-8 take on a terminal, roughly: East Asian wide ones and emoji
 * two, marks none. */
int text_width(const char *text);
/* Cuts printable text to this many columns, with an ellipsis at the end when something was cut. */
void text_fit(struct str *to, const char *text, int columns);

DEFINE_CLEANUP(table_free, struct table *)

#endif
