/* screen.c - redraws lines on a terminal, each erased by itself, so that nothing flickers and the
 * scrollback stays. */
#include "screen.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/path.h"
#include "base/str.h"
#include "table.h"

enum { COLUMNS_GUESS = 80, ROWS_GUESS = 24 };

#define ERASE_LINE "\r\033[2K"
#define ERASE_REST "\033[J"
#define LINES_UP   "\033[%dA"

struct screen {
	struct str shown; /* the lines drawn last */
	bool hidden;      /* they are hidden now */
};

static void terminal_size(int *columns, int *rows)
{
	struct winsize size = {0};

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0)
		size = (struct winsize){0};
	*columns = size.ws_col ? size.ws_col : COLUMNS_GUESS;
	*rows = size.ws_row ? size.ws_row : ROWS_GUESS;
}

void screen_size(int *columns, int *rows)
{
	terminal_size(columns, rows);
	*columns = MAX(*columns - 1, 1);
	*rows = MAX(*rows - 1, 1);
}

struct screen *screen_new(void)
{
	struct screen *s = xcalloc(1, sizeof(*s));

	s->hidden = true;
	return s;
}

void screen_free(struct screen *s)
{
	if (!s)
		return;
	str_free(&s->shown);
	free(s);
}

/* Width without colour codes, which take no columns. */
static int width_of(const char *line, size_t len)
{
	CLEANUP(str_free) struct str plain = STR_INIT;

	for (size_t i = 0; i < len; i++) {
		if (line[i] == '\033')
			i += strcspn(line + i, "m");
		else
			str_addc(&plain, line[i]);
	}
	return text_width(str_text(&plain));
}

/* How many rows the lines take now. If the terminal became narrower, it has wrapped the long ones.
 */
static int rows_of(const char *lines, int columns)
{
	const char *line;
	size_t len;
	int rows = 0;

	while ((line = str_next_line(&lines, &len)))
		rows += 1 + MAX(width_of(line, len) - 1, 0) / columns;
	return rows;
}

/* Moves to the first of the lines. Returns their number of rows. */
static int add_way_up(struct screen *s, struct str *out)
{
	int columns, rows, up;

	terminal_size(&columns, &rows);
	up = s->hidden ? 0 : MIN(rows_of(str_text(&s->shown), columns), rows - 1);
	if (up)
		str_addf(out, "\r" LINES_UP, up);
	return up;
}

/* Not by output.c, whose lines hold no cursor movements: this is a part of the screen. It is
 * written in one piece, so that no half of it is seen. */
static void put(const struct str *out)
{
	fflush(stderr);
	(void)fd_write_all(STDERR_FILENO, str_text(out), out->len);
}

void screen_draw(struct screen *s, const char *lines)
{
	CLEANUP(str_free) struct str out = STR_INIT;
	size_t len;

	add_way_up(s, &out);
	for (const char *at = lines, *line; (line = str_next_line(&at, &len));) {
		str_add(&out, ERASE_LINE);
		str_addn(&out, line, len);
		str_add(&out, "\r\n");
	}
	str_add(&out, ERASE_REST);
	put(&out);
	if (lines != str_text(&s->shown)) {
		str_reset(&s->shown);
		str_add(&s->shown, lines);
	}
	s->hidden = false;
}

/* Erases row by row: tmux keeps a copy of what is erased at once from the first row on. */
void screen_clear(struct screen *s)
{
	CLEANUP(str_free) struct str out = STR_INIT;

	if (s->hidden)
		return;
	int rows = add_way_up(s, &out);
	for (int i = 0; i < rows; i++)
		str_add(&out, ERASE_LINE "\n");
	str_add(&out, ERASE_LINE);
	if (rows)
		str_addf(&out, LINES_UP, rows);
	put(&out);
	s->hidden = true;
}

void screen_restore(struct screen *s)
{
	if (s->hidden && s->shown.len)
		screen_draw(s, str_text(&s->shown));
}
