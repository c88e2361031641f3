/* toml.c - reads the simple TOML that the vendors' own tools write. */
#include "toml.h"

#include "base/str.h"

struct toml {
	const char *at;
	const char *shown;
	int line;
	struct str table;
	struct err *err;
};

static int complain(const struct toml *t, const char *what)
{
	return err_set(t->err, ERR_CREDENTIALS, "%s:%d: %s", t->shown, t->line, what);
}

static void skip_blanks(struct toml *t)
{
	t->at += strspn(t->at, " \t");
}

static bool at_line_end(const struct toml *t)
{
	return !*t->at || *t->at == '#' || *t->at == '\n' || (*t->at == '\r' && t->at[1] == '\n');
}

static int end_line(struct toml *t)
{
	skip_blanks(t);
	if (!at_line_end(t))
		return complain(t, "unexpected text after the value");
	t->at += strcspn(t->at, "\n");
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads the digits after "\u" or "\U". */
static int read_code_point(struct toml *t, struct str *to, int digits)
{
	unsigned c = 0;

	for (; digits; digits--) {
		int digit = hex_digit(*t->at);
		if (digit < 0)
			return complain(t, "a \\u that is not followed by hex digits");
		c = c << 4 | (unsigned)digit;
		t->at++;
	}
	if (!c || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return complain(t, "a \\u that is not a character");
	str_add_utf8(to, c);
	return 0;
}

static int read_escape(struct toml *t, struct str *to)
{
	static const char from[] = "btnfre\"\\", into[] = "\b\t\n\f\r\033\"\\";
	char c = *t->at;
	const char *found = c ? strchr(from, c) : NULL;

	if (!c)
		return complain(t, "a string without its closing quote");
	t->at++;
	if (c == 'u' || c == 'U')
		return read_code_point(t, to, c == 'u' ? 4 : 8);
	if (!found)
		return complain(t, "an unknown \\ sequence");
	str_addc(to, into[found - from]);
	return 0;
}

static int read_quoted(struct toml *t, struct str *to)
{
	char quote = *t->at++;

	if (t->at[0] == quote && t->at[1] == quote)
		return complain(t, "multi-line strings are not supported");
	while (*t->at != quote) {
		if (!*t->at || *t->at == '\n')
			return complain(t, "a string without its closing quote");
		if (*t->at == '\\' && quote == '"') {
			t->at++;
			if (read_escape(t, to) < 0)
				return -1;
			continue;
		}
		str_addc(to, *t->at++);
	}
	t->at++;
	return 0;
}

static int read_bare(struct toml *t, struct str *to)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	size_t n = strspn(t->at, allowed);

	if (!n)
		return complain(t, "a name is missing");
	str_addn(to, t->at, n);
	t->at += n;
	return 0;
}

/* a, "a b" or a.b */
static int read_name(struct toml *t, struct str *to)
{
	for (;;) {
		skip_blanks(t);
		if ((*t->at == '"' || *t->at == '\'' ? read_quoted(t, to) : read_bare(t, to)) < 0)
			return -1;
		skip_blanks(t);
		if (*t->at != '.')
			return 0;
		str_addc(to, *t->at++);
	}
}

static int read_header(struct toml *t)
{
	t->at++;
	if (*t->at == '[')
		return complain(t, "arrays of tables are not supported");
	str_reset(&t->table);
	if (read_name(t, &t->table) < 0)
		return -1;
	if (*t->at++ != ']')
		return complain(t, "a table's name must end with ]");
	return end_line(t);
}

/* Reads true, a number or a date. *known is false for a list or an inline table, which must end on
 * its line. */
static int read_plain(struct toml *t, struct str *to, bool *known)
{
	size_t n = strcspn(t->at, "#\r\n");

	*known = *t->at != '[' && *t->at != '{';
	while (n && (t->at[n - 1] == ' ' || t->at[n - 1] == '\t'))
		n--;
	if (!n)
		return complain(t, "a value is missing");
	if (!*known && t->at[n - 1] != (*t->at == '[' ? ']' : '}'))
		return complain(t, "multi-line values are not supported");
	str_addn(to, t->at, n);
	t->at += n;
	return 0;
}

static int read_pair(struct toml *t, toml_each *each, void *ctx, bool *go_on)
{
	CLEANUP(str_free) struct str key = STR_INIT;
	CLEANUP(str_free) struct str value = STR_INIT;
	bool known = true;

	if (read_name(t, &key) < 0)
		return -1;
	if (*t->at++ != '=')
		return complain(t, "= is missing");
	skip_blanks(t);
	bool quoted = *t->at == '"' || *t->at == '\'';
	if ((quoted ? read_quoted(t, &value) : read_plain(t, &value, &known)) < 0 ||
	    end_line(t) < 0)
		return -1;
	if (known)
		*go_on = each(ctx, str_text(&t->table), str_text(&key), str_text(&value));
	return 0;
}

static int read_line(struct toml *t, toml_each *each, void *ctx, bool *go_on)
{
	skip_blanks(t);
	if (at_line_end(t))
		return end_line(t);
	return *t->at == '[' ? read_header(t) : read_pair(t, each, ctx, go_on);
}

static int read_lines(struct toml *t, toml_each *each, void *ctx)
{
	for (bool go_on = true; *t->at && go_on; t->line++) {
		if (read_line(t, each, ctx, &go_on) < 0)
			return -1;
		t->at += *t->at == '\n';
	}
	return 0;
}

int toml_read(const char *text, size_t len, const char *shown, toml_each *each, void *ctx,
	      struct err *err)
{
	struct toml t = {.at = text, .shown = shown, .line = 1, .err = err};

	if (memchr(text, '\0', len) || !utf8_valid(text, len))
		return complain(&t, "not a text file");
	int result = read_lines(&t, each, ctx);
	str_free(&t.table);
	return result;
}
