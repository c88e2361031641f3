/* html.h - pieces of a self-contained HTML page: escaped text, and charts as inline SVG. */
#ifndef BURST_CMD_SHOW_HTML_H
#define BURST_CMD_SHOW_HTML_H

#include "base/mem.h"
#include "base/str.h"

/* Escapes untrusted text for elements and quoted attributes. Invalid UTF-8 becomes visible escapes.
 */
void html_text(struct str *to, const char *text);

/* Writes the page's head with its style, up to <body>, <main> and its heading; html_end() writes
 * the rest. served: the server sends the content policy; else the page has it. */
void html_begin(struct str *to, const char *title, const char *subtitle, bool served);
void html_end(struct str *to);
void html_section(struct str *to, const char *id, const char *title);
void html_section_end(struct str *to);
void html_note(struct str *to, const char *fmt, ...) PRINTF(2, 3);

/* Horizontal bars, one a row; values are in the label's unit. A row may have parts of several
 * colours. */
enum { HTML_PARTS = 10 };
struct html_bar {
	char label[96];
	char value[64];
	double start;            /* start, for charts of time */
	double part[HTML_PARTS]; /* lengths, in the legend's order */
	double mark;             /* a tick at this place; 0: none */
};
struct html_chart {
	const char *id, *title;
	const char *const *legend; /* names of the parts, NULL-terminated; or NULL */
	const int *colors;         /* of the parts, 0 to 9; NULL: 0, 1, 2, ... */
	double most;               /* end of the scale; 0: the longest bar */
	bool seconds;              /* draw an axis of time */
};
void html_bars(struct str *to, const struct html_chart *chart, const struct html_bar *bars,
	       size_t count);

/* Points, connected by lines if `line`; the vertical axis is in dollars. */
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

/* A table. `heads` is NULL-terminated; cells follow row by row. */
void html_table_begin(struct str *to, const char *id, const char *const *heads);
void html_row_begin(struct str *to);
void html_cell(struct str *to, const char *fmt, ...) PRINTF(2, 3);
void html_row_end(struct str *to);
void html_table_end(struct str *to);

#endif
