/* html.h - pieces of a self-contained HTML page: text that is escaped, and charts as inline SVG. */
#ifndef BURST_CMD_SHOW_HTML_H
#define BURST_CMD_SHOW_HTML_H

#include "base/mem.h"
#include "base/str.h"

/* Foreign text, so that it can be no markup: in elements and in quoted attributes. What is not
 * UTF-8 becomes visible escapes. */
void html_text(struct str *to, const char *text);

/* The page's head with its style, up to and with <body>, <main> and its heading; and its end, after
 * </main>. served: the server's own words say what the page may load and run; a file says it
 * itself. */
void html_begin(struct str *to, const char *title, const char *subtitle, bool served);
void html_end(struct str *to);
void html_section(struct str *to, const char *id, const char *title);
void html_section_end(struct str *to);
void html_note(struct str *to, const char *fmt, ...) PRINTF(2, 3);

/* Bars from left to right, one a row; values are in the unit of the label. A row may be split into
 * parts of several colours. */
enum { HTML_PARTS = 10 };
struct html_bar {
	char label[96];
	char value[64];
	double start;            /* where it begins, for charts of time */
	double part[HTML_PARTS]; /* lengths, in the order of the legend */
	double mark;             /* a tick at this place; 0: none */
};
struct html_chart {
	const char *id, *title;
	const char *const *legend; /* names of the parts, NULL-terminated, or NULL */
	const int *colors;         /* of the parts, 0 to 9; NULL: 0, 1, 2, ... */
	double most;               /* the scale; 0: the longest bar */
	bool seconds;              /* an axis of time below */
};
void html_bars(struct str *to, const struct html_chart *chart, const struct html_bar *bars,
	       size_t count);

/* Points, and lines through them where `line`; the upward axis is in dollars. */
struct html_point {
	double x, y;
	char label[96];
};
struct html_series {
	const char *name;
	bool line;
	int color;
	const struct html_point *points;
	size_t count;
};
void html_plot(struct str *to, const char *id, const char *title, const char *x_name,
	       const char *y_name, const struct html_series *series, size_t count);

/* A table: `heads` NULL-terminated; cells are given row by row. */
void html_table_begin(struct str *to, const char *id, const char *const *heads);
void html_row_begin(struct str *to);
void html_cell(struct str *to, const char *fmt, ...) PRINTF(2, 3);
void html_row_end(struct str *to);
void html_table_end(struct str *to);

#endif
