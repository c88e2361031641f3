/* output.c - writes to terminals and pipes: log lines, the final error, tables, wrapped text, JSON.
 */
#include "output.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "cmd/cmd.h"

/* ---- tables ---- */

#define COLUMNS_MAX 20
#define READABLE    12 /* a column is cut no shorter while others can be left out */
#define NARROWEST   6
#define BETWEEN     2

struct column {
	const char *title;
	enum table_align align;
	int spare;
	int width;
	bool left_out;
};

struct table {
	struct column columns[COLUMNS_MAX];
	int column_count;
	char **cells;
	const char **colors; /* of the cells; NULL: none */
	size_t cell_count, cell_cap, color_cap;
};

struct table *table_new(void)
{
	return xcalloc(1, sizeof(struct table));
}

void table_free(struct table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->cell_count; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t->colors);
	free(t);
}

void table_column(struct table *t, const char *title, enum table_align align, int spare)
{
	if (t->column_count < COLUMNS_MAX)
		t->columns[t->column_count++] = (struct column){
			.title = title, .align = align, .spare = spare, .width = text_width(title)};
}

void table_cell(struct table *t, const char *fmt, ...)
{
	char raw[1024];
	struct str cell = STR_INIT;
	va_list ap;

	va_start(ap, fmt);
	vformat_text(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	str_add_printable(&cell, raw, strlen(raw), 0);
	struct column *column = &t->columns[t->cell_count % (size_t)t->column_count];
	column->width = MAX(column->width, text_width(str_text(&cell)));
	GROW(t->cells, t->cell_count, t->cell_cap);
	GROW(t->colors, t->cell_count, t->color_cap);
	t->colors[t->cell_count] = NULL;
	t->cells[t->cell_count++] = str_detach(&cell);
}

void table_cell_color(struct table *t, const char *color)
{
	t->colors[t->cell_count - 1] = color;
}

/* ---- widths ---- */

/* Of a valid UTF-8 sequence of len bytes. */
static unsigned code_point(const unsigned char *p, size_t len)
{
	static const unsigned char lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	unsigned c = p[0] & lead[len];

	for (size_t i = 1; i < len; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

static bool is_between(unsigned c, unsigned from, unsigned to)
{
	return c >= from && c <= to;
}

static int columns_of_char(unsigned c)
{
	bool mark = is_between(c, 0x300, 0x36f) || is_between(c, 0x200b, 0x200f) ||
		    is_between(c, 0x20d0, 0x20ff) || is_between(c, 0xfe00, 0xfe0f) || c == 0xfeff;
	bool wide = is_between(c, 0x1100, 0x115f) || is_between(c, 0x2e80, 0xa4cf) ||
		    is_between(c, 0xac00, 0xd7a3) || is_between(c, 0xf900, 0xfaff) ||
		    is_between(c, 0xfe30, 0xfe6f) || is_between(c, 0xff00, 0xff60) ||
		    is_between(c, 0xffe0, 0xffe6) || is_between(c, 0x1f300, 0x1faff) ||
		    is_between(c, 0x20000, 0x3fffd);

	return mark ? 0 : wide ? 2 : 1;
}

/* Returns the length of the first character in bytes (1 for an invalid byte), and its width. */
static size_t next_char(const char *text, int *columns)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len = utf8_sequence(p, strlen(text));

	*columns = len ? columns_of_char(code_point(p, len)) : 1;
	return len ? len : 1;
}

int text_width(const char *text)
{
	int width = 0, columns;

	while (*text) {
		text += next_char(text, &columns);
		width += columns;
	}
	return width;
}

void text_fit(struct str *to, const char *text, int most)
{
	int used = 0, columns;

	if (text_width(text) <= most) {
		str_add(to, text);
		return;
	}
	while (*text) {
		size_t len = next_char(text, &columns);
		if (used + columns > most - 1)
			break;
		str_addn(to, text, len);
		used += columns;
		text += len;
	}
	if (most > 0)
		str_add(to, "\xe2\x80\xa6");
}

int terminal_width(FILE *stream)
{
	struct winsize size;

	if (!isatty(fileno(stream)))
		return 0;
	if (ioctl(fileno(stream), TIOCGWINSZ, &size) < 0 || !size.ws_col)
		return 80;
	return size.ws_col;
}

/* ---- drawing ---- */

static int total_width(const struct column *columns, int count)
{
	int total = 0;

	for (int i = 0; i < count; i++)
		if (!columns[i].left_out)
			total += columns[i].width + (total ? BETWEEN : 0);
	return total;
}

/* The widest column that may shrink; NULL: none. least: width to keep; 0: readable. */
static struct column *widest_column(struct column *columns, int count, int least)
{
	struct column *best = NULL;

	for (int i = 0; i < count; i++)
		if (columns[i].spare && !columns[i].left_out &&
		    columns[i].width > (least ? least : READABLE) &&
		    (!best || columns[i].width > best->width))
			best = &columns[i];
	return best;
}

/* Shrinks columns, down to `least` (0: readable). Returns false if they still do not fit. */
static bool shrink_columns(struct column *columns, int count, int width, int least)
{
	struct column *c;

	while (total_width(columns, count) > width) {
		if (!(c = widest_column(columns, count, least)))
			return false;
		c->width--;
	}
	return true;
}

/* The column that is left out next; NULL: none may be. */
static struct column *most_spare_column(struct column *columns, int count)
{
	struct column *best = NULL;

	for (int i = 0; i < count; i++)
		if (columns[i].spare > 0 && !columns[i].left_out &&
		    (!best || columns[i].spare > best->spare))
			best = &columns[i];
	return best;
}

/* Copies the columns, narrower or left out as the width demands. width 0: unlimited. */
static void fit_columns(const struct table *t, struct column *columns, int width)
{
	struct column *c;

	memcpy(columns, t->columns, sizeof(t->columns));
	while (width && !shrink_columns(columns, t->column_count, width, 0)) {
		if (!(c = most_spare_column(columns, t->column_count))) {
			shrink_columns(columns, t->column_count, width, NARROWEST);
			return;
		}
		c->left_out = true;
		for (int i = 0; i < t->column_count; i++)
			columns[i].width = t->columns[i].width;
	}
}

static void add_cell(struct str *line, const struct column *c, const char *text, const char *color)
{
	int blanks = c->width - text_width(text);

	str_addf(line, "%*s%s%s%s%*s", c->align == TABLE_RIGHT ? blanks : 0, "", color ? color : "",
		 text, color ? COLOR_OFF : "", c->align == TABLE_RIGHT ? 0 : blanks, "");
}

/* Appends as much of a cell as fits on a line, up to a blank if possible. *rest: the remainder. */
static void take_piece(struct str *to, const char **rest, int most)
{
	const char *text = *rest, *end = text, *blank = NULL;
	int used = 0, columns;

	while (*end) {
		size_t len = next_char(end, &columns);
		if (used + columns > MAX(most, 2)) /* 2: the width of a wide letter */
			break;
		used += columns;
		blank = *end == ' ' ? end : blank;
		end += len;
	}
	if (*end && *end != ' ' && blank && blank > text)
		end = blank;
	str_addn(to, text, (size_t)(end - text));
	*rest = end + strspn(end, " ");
}

/* Appends the line without blanks at its end. */
static void add_trimmed_line(struct str *to, const struct str *line)
{
	size_t len = line->len;

	while (len && line->s[len - 1] == ' ')
		len--;
	str_addn(to, str_text(line), len);
	str_addc(to, '\n');
}

enum { WITH_TITLES = 1, WRAP_CELLS = 2 };

/* Adds one line or, with WRAP_CELLS, as many as the longest cell needs. cells NULL: the titles. */
static void add_row(struct str *to, const struct column *columns, int count, char *const *cells,
		    const char *const *colors, unsigned how)
{
	const char *rest[COLUMNS_MAX];
	bool more = true;

	for (int i = 0; i < count; i++)
		rest[i] = cells ? cells[i] : columns[i].title;
	while (more) {
		CLEANUP(str_free) struct str line = STR_INIT;
		more = false;
		for (int i = 0; i < count; i++) {
			CLEANUP(str_free) struct str piece = STR_INIT;
			if (columns[i].left_out)
				continue;
			if (how & WRAP_CELLS)
				take_piece(&piece, &rest[i], columns[i].width);
			else
				text_fit(&piece, rest[i], columns[i].width);
			if (line.len)
				str_addf(&line, "%*s", BETWEEN, "");
			add_cell(&line, &columns[i], str_text(&piece), cells ? colors[i] : NULL);
			more = more || ((how & WRAP_CELLS) && *rest[i]);
		}
		add_trimmed_line(to, &line);
	}
}

static void add_rows(const struct table *t, struct str *to, const struct column *columns,
		     unsigned how)
{
	size_t count = (size_t)t->column_count;

	if (how & WITH_TITLES)
		add_row(to, columns, t->column_count, NULL, NULL, how);
	for (size_t i = 0; i + count <= t->cell_count; i += count)
		add_row(to, columns, t->column_count, t->cells + i, t->colors + i, how);
}

void table_add(const struct table *t, struct str *to, int width, bool titles)
{
	struct column columns[COLUMNS_MAX];

	if (!t->cell_count)
		return;
	fit_columns(t, columns, width);
	add_rows(t, to, columns, titles ? WITH_TITLES : 0);
}

static void add_names_left_out(const struct table *t, struct str *to, const struct column *columns)
{
	const char *before = "(no room for ";

	for (int i = 0; i < t->column_count; i++)
		if (columns[i].left_out) {
			str_addf(to, "%s%s", before, columns[i].title);
			before = ", ";
		}
	if (before[0] == ',')
		str_add(to, ": widen the terminal)\n");
}

void table_print(const struct table *t, FILE *to, int width)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct column columns[COLUMNS_MAX];

	if (!t->cell_count)
		return;
	fit_columns(t, columns, width);
	add_rows(t, &text, columns, WITH_TITLES | WRAP_CELLS);
	add_names_left_out(t, &text, columns);
	fwrite(str_text(&text), 1, text.len, to);
}

/* ---- help, wrapped to a width ---- */

void text_wrap(FILE *to, const char *text, int at, int indent, int width)
{
	bool fresh = true; /* nothing is on this line yet */

	while (*text) {
		if (*text == '\n') {
			fputc('\n', to);
			text++;
			at = *text && *text != '\n' ? fprintf(to, "%*s", indent, "") : 0;
			fresh = true;
			continue;
		}
		if (*text == ' ') {
			text++;
			continue;
		}
		int len = (int)strcspn(text, " \n");
		if (!fresh && at + 1 + len > width) {
			fprintf(to, "\n%*s", indent, "");
			at = indent;
			fresh = true;
		}
		at += fprintf(to, "%s%.*s", fresh ? "" : " ", len, text);
		fresh = false;
		text += len;
	}
	fputc('\n', to);
}

void output_wrapped(FILE *to, int indent, const char *fmt, ...)
{
	int width = terminal_width(to);
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (width)
		text_wrap(to, line, 0, indent, width);
	else
		fprintf(to, "%s\n", line);
}

/* ---- lines and errors, without secrets or control characters ---- */

static const char *color_of_level(enum log_level level)
{
	switch (level) {
	case LOG_ERROR: return COLOR_RED;
	case LOG_WARN: return COLOR_YELLOW;
	case LOG_NOTE: return "";
	case LOG_INFO:
	case LOG_DEBUG:
	case LOG_TRACE: return COLOR_DIM;
	}
	return "";
}

static void (*before_line)(void), (*after_line)(void);
static bool stamped;

void output_around_lines(void (*before)(void), void (*after)(void))
{
	before_line = before;
	after_line = after;
}

void output_stamp(bool on)
{
	stamped = on;
}

static void add_stamp(struct str *to)
{
	char when[32];

	str_addf(to, "%s ", clock_rfc3339(when, sizeof(when), clock_wall_ms()));
}

/* Writes the line in one call, since other processes may write there too. */
static void put_line(FILE *to, const struct str *line)
{
	if (to == stderr && before_line)
		before_line();
	fwrite(str_text(line), 1, line->len, to);
	if (to == stderr && after_line)
		after_line();
}

static void print_message(const struct cmd_context *ctx, enum log_level level, const char *front,
			  const char *text)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	const char *colour = ctx->color ? color_of_level(level) : "";

	if (stamped)
		add_stamp(&line);
	str_add(&line, colour);
	str_add(&line, front);
	str_add_printable(&line, text, strlen(text), 0);
	str_add(&line, *colour ? COLOR_OFF "\n" : "\n");
	put_line(stderr, &line);
}

static void print_log_line(void *ctx, enum log_level level, const char *line)
{
	const char *front = level == LOG_ERROR ? "error: " : level == LOG_WARN ? "warning: " : "";

	print_message(ctx, level, front, line);
}

static enum log_level level_of_flags(const struct cmd_context *ctx)
{
	if (ctx->trace)
		return LOG_TRACE;
	if (ctx->quiet)
		return LOG_WARN;
	return ctx->verbose > 1 ? LOG_DEBUG : ctx->verbose ? LOG_INFO : LOG_NOTE;
}

void output_setup(struct cmd_context *ctx)
{
	log_setup(level_of_flags(ctx), print_log_line, ctx);
}

void output_error(const struct cmd_context *ctx, const struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	str_add(&text, err->msg);
	log_redact(&text);
	print_message(ctx, LOG_ERROR, "burst: ", str_text(&text));
}

void output_mistakes(const struct cmd_context *ctx, const struct err *err)
{
	const struct mistakes *m = &ctx->mistakes;
	bool printed = false;

	for (size_t i = 0; i < m->count; i++) {
		output_error(ctx, &m->list[i].err);
		printed = printed || !strcmp(m->list[i].err.msg, err->msg);
	}
	if (m->more)
		log_line(LOG_ERROR, "and %zu more mistakes", m->more);
	if (!printed)
		output_error(ctx, err);
}

void output_safe_line(FILE *to, const char *text, size_t len)
{
	CLEANUP(str_free) struct str line = STR_INIT;

	str_add_printable(&line, text, len, 0);
	str_addc(&line, '\n');
	put_line(to, &line);
}

void output_line(FILE *to, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	int len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len >= 0)
		output_safe_line(to, text, (size_t)len);
	free(text);
}

void output_event(const char *fmt, ...)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	int len = vasprintf(&text, fmt, ap);
	va_end(ap);
	add_stamp(&line);
	if (len >= 0)
		str_add(&line, text);
	free(text);
	output_safe_line(stderr, str_text(&line), line.len);
}

void output_lines(FILE *to, const char *text)
{
	const char *line;
	size_t len;

	while ((line = str_next_line(&text, &len)))
		output_safe_line(to, line, len);
}

/* Escapes what jansson leaves: DEL, C1 controls and direction marks. In a line of JSON, they can
 * only be inside a text. The caller frees it. */
static char *escape_controls(const char *line)
{
	struct str out = STR_INIT;
	size_t left = strlen(line);

	while (left) {
		const unsigned char *p = (const unsigned char *)line;
		size_t len = MAX(utf8_sequence(p, left), (size_t)1);
		if (utf8_hostile(p, len))
			str_addf(&out, "\\u%04x", code_point(p, len));
		else
			str_addn(&out, p, len);
		line += len;
		left -= len;
	}
	return str_detach(&out);
}

char *output_json_line(const json_t *value)
{
	CLEANUP(free_text)
	char *line = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

	if (!line) /* out of memory: nothing else can fail here */
		abort();
	return escape_controls(line);
}

void output_json(json_t *value)
{
	CLEANUP(free_text) char *line = output_json_line(value);

	puts(line);
	json_decref(value);
}
