/* table.h - rows for people: columns as wide as they must be, numbers to the right, and on a
 * terminal no wider than it is. */
#ifndef BURST_CMD_TABLE_H
#define BURST_CMD_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/mem.h"

struct table;

enum table_align { TABLE_LEFT, TABLE_RIGHT };

struct table *table_new(void);
void table_free(struct table *t); /* NULL is fine */
/* Before the first cell. spare: what becomes of the column when the terminal is too narrow:
 * TABLE_WHOLE stays as it is, TABLE_SHRINKS is cut (with an ellipsis), 1 and more is left out, the
 * largest number first. */
enum { TABLE_WHOLE = 0, TABLE_SHRINKS = -1 };
void table_column(struct table *t, const char *title, enum table_align align, int spare);
/* The next cell, row by row. What comes from outside is made printable. */
void table_cell(struct table *t, const char *fmt, ...) PRINTF(2, 3);
/* width 0: as wide as it likes. Nothing at all when there is no row. */
void table_print(const struct table *t, FILE *to, int width);

/* Columns of the terminal behind this stream, 0 when it is none. */
int terminal_width(FILE *stream);
/* How many columns these bytes of UTF-8 take on a terminal, roughly: East Asian wide ones and emoji
 * two, marks none. */
int text_width(const char *text);
/* Cuts printable text to this many columns, with an ellipsis at the end when something was cut. */
struct str;
void text_fit(struct str *to, const char *text, int columns);

DEFINE_CLEANUP(table_free, struct table *)

#endif
