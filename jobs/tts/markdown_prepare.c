/* markdown_prepare.c - rewrites Markdown so that md4c reads it as GitHub does: footnotes, and
 * tables directly below a paragraph. */
#include "markdown_prepare.h"

#include <string.h>

size_t markdown_note(const char *p, const char *end)
{
	size_t n = 2;

	if (end - p < 4 || p[0] != '[' || p[1] != '^')
		return 0;
	while (p + n < end && !strchr(" \t\r\n[]", p[n]))
		n++;
	return n > 2 && p + n < end && p[n] == ']' ? n + 1 : 0;
}

/* Skips the markers of quotes and list items at the start of a line. */
static const char *skip_containers(const char *p)
{
	for (;;) {
		const char *from = p;
		p += strspn(p, " \t>");
		if (*p && strchr("-+*", *p) && p[1] == ' ')
			p += 2;
		size_t digits = strspn(p, "0123456789");
		if (digits && (p[digits] == '.' || p[digits] == ')') && p[digits + 1] == ' ')
			p += digits + 2;
		if (p == from)
			return p;
	}
}

/* The colon behind the name of a footnote that begins in this line, or NULL. */
static const char *colon_of_note(const char *line, const char *end)
{
	const char *p = skip_containers(line);
	size_t len = p < end ? markdown_note(p, end) : 0;

	return len && p[len] == ':' ? p + len : NULL;
}

/* "|---|:-:|" */
static bool is_rule_of_table(const char *line, const char *end)
{
	size_t len = (size_t)(end - line);

	return strspn(line, " |:-\t\r") >= len && memchr(line, '-', len) &&
	       memchr(line, '|', len) && !starts_with(line, "- "); /* an item of a list */
}

/* Writes a table rule with three dashes a column: md4c requires them, GitHub one. */
static void add_rule_of_table(struct str *to, const char *line, const char *end)
{
	for (const char *p = line; p < end; p++)
		str_add(to, *p != '-'                  ? (char[]){*p, '\0'}
			    : p > line && p[-1] == '-' ? "-"
						       : "---");
}

/* State of the lines since the last blank one. */
struct lines {
	bool blank;     /* the previous line was blank */
	bool paragraph; /* in the text itself: not in a quote, list, HTML or footnote */
	bool html;
	bool comment;      /* inside a comment */
	bool comment_over; /* it ended in the previous line */
	bool in_note;      /* no other text since the footnote began */
	bool note_code;    /* indented lines of a footnote, which md4c would read as code */
};

/* Returns whether a block begins here that needs a blank line above it in md4c but not on GitHub: a
 * footnote, a table, or indented code below a comment. */
static bool needs_blank_line(const struct lines *above, const char *line, const char *end)
{
	const char *next = end + (*end == '\n');

	if (above->comment_over && !above->blank)
		return true;
	if (above->blank || above->html)
		return false;
	if (*line == '[')
		return colon_of_note(line, end) != NULL;
	return above->paragraph && memchr(line, '|', (size_t)(end - line)) &&
	       is_rule_of_table(next, strchrnul(next, '\n'));
}

/* Returns whether this line may continue a paragraph. Also refuses some lines that only look like a
 * block's start. */
static bool may_go_on(const char *line)
{
	return !strchr("#>-+*`~|<[=:_0123456789 \t\r\n", *line);
}

static void note_comment(struct lines *l, const char *from, const char *end)
{
	l->comment |= starts_with(from, "<!--");
	l->comment_over = l->comment && memmem(from, (size_t)(end - from), "-->", 3);
	l->comment &= !l->comment_over;
}

static void note_line(struct lines *l, const char *line, const char *end)
{
	size_t indent = strspn(line, " "), len = (size_t)(end - line);
	bool begins = l->blank;

	l->blank = strspn(line, " \t\r") >= len;
	note_comment(l, line + MIN(indent, len), end);
	if (l->blank) {
		l->paragraph = l->html = l->note_code = false;
		return;
	}
	bool indented = indent >= 4 || line[indent] == '\t',
	     note = colon_of_note(line, end) != NULL;
	bool plain = line[indent] != '<' && skip_containers(line) == line + indent;
	l->html |= begins && line[indent] == '<';
	l->paragraph = plain && !note && (begins ? !indented : l->paragraph);
	l->in_note = note || (l->in_note && (!begins || indented));
	l->note_code =
		begins ? l->in_note && indented : l->note_code && (indented || may_go_on(line));
}

void markdown_prepare(struct str *to, char *text)
{
	struct lines above = {.blank = true};
	size_t len;

	for (char *p = text; (p = strpbrk(p, (char[]){NOTE_MARK, END_MARK, '\0'})); p++)
		*p = ' ';
	for (const char *at = text, *line; (line = str_next_line(&at, &len));) {
		const char *end = line + len;
		const char *colon = colon_of_note(line, end);
		if (needs_blank_line(&above, line, end))
			str_addc(to, '\r');
		else if (above.note_code && may_go_on(line))
			str_add(to, "    "); /* the footnote's paragraph continues */
		note_line(&above, line, end);
		size_t begin = to->len;
		if (is_rule_of_table(line, end))
			add_rule_of_table(to, line, end);
		else
			str_addn(to, line, (size_t)(end - line));
		if (colon)
			to->s[begin + (size_t)(colon - line)] = NOTE_MARK;
		str_addc(to, '\n');
	}
	str_addf(to, "\n\n%c\n", END_MARK);
}
