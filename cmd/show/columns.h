/* columns.h - what burst says of a thing, from one description: as a table, JSON or CSV. */
#ifndef BURST_CMD_SHOW_COLUMNS_H
#define BURST_CMD_SHOW_COLUMNS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "output.h"

/* ---- values as JSON ---- */

json_t *report_seconds(int64_t ms);       /* a number with 3 decimals */
json_t *report_dollars(int64_t microusd); /* with 6 decimals */
json_t *report_text(const char *text);    /* accepts invalid UTF-8 */
json_t *report_time(int64_t wall_ms);     /* RFC 3339; null: not yet */

/* ---- columns ---- */

/* Of the field. Those from UNIT_TIME on are int64_t; below 0: unknown, null in JSON, "-" in tables.
 */
enum unit {
	UNIT_TEXT,         /* char [] */
	UNIT_TEXT_OR_NULL, /* the same; null in JSON if it is empty */
	UNIT_WORD,         /* const char *; NULL: unknown */
	UNIT_FLAG,         /* bool */
	UNIT_FIGURE,       /* char [], on the right of a column */
	UNIT_INT,          /* int */
	UNIT_REAL,         /* double; NAN: unknown */
	UNIT_TIME,         /* wall clock ms */
	UNIT_COUNT,
	UNIT_MS,
	UNIT_USD /* micro-dollars */
};
struct shown_column {
	unsigned sets;           /* in which tables and objects it is */
	const char *key, *title; /* in JSON and CSV; in tables */
	enum unit unit;
	size_t at;                       /* offset of the field */
	int spare;                       /* on a narrow terminal, as in table_column() */
	int digits;                      /* of a UNIT_REAL in a table: behind the point */
	json_t *(*json)(const void *of); /* instead of the field, as below */
	void (*text)(char *to, size_t room, const void *of);
};
struct columns {
	const struct shown_column *list;
	size_t count;
};
/* The functions below show the columns of these sets. Adds the columns to the table. */
void columns_titles(struct table *t, const struct columns *c, unsigned sets);
/* Adds a row for the struct `of`, which the offsets are of. */
void columns_cells(struct table *t, const struct columns *c, unsigned sets, const void *of);
/* Adds the values to the object, which it returns. */
json_t *columns_json(json_t *to, const struct columns *c, unsigned sets, const void *of);
/* Appends a line of CSV; of NULL: the keys. */
void columns_csv(struct str *to, const struct columns *c, unsigned sets, const void *of);

/* ---- rows: a table or, with --json, a list of objects ---- */

struct rows {
	const struct columns *columns;
	unsigned sets;
	struct table *table; /* one of both */
	json_t *list;
};
/* json: a list with json_sets, else a table with table_sets. */
struct rows rows_begin(bool json, const struct columns *c, unsigned table_sets, unsigned json_sets);
void rows_add(struct rows *r, const void *of);
/* Prints the table or list on stdout, and frees it. */
void rows_end(struct rows *r);

#endif
