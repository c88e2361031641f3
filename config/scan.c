/* scan.c - finds in a config's text what libconfig accepts without a warning. */
#include "scan.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/str.h"

struct scan {
	const char *at, *end; /* the text is NUL-terminated at end */
	const char *shown;
	int line;
	struct err *err;
};

static int complain(const struct scan *s, int line, const char *what)
{
	return err_set(s->err, ERR_CONFIG, "%s:%d: %s", s->shown, line, what);
}

static void step(struct scan *s, size_t n)
{
	for (; n && s->at < s->end; n--)
		if (*s->at++ == '\n')
			s->line++;
}

static int check_bytes(struct scan *s)
{
	while (s->at < s->end) {
		size_t n = utf8_sequence((const unsigned char *)s->at, (size_t)(s->end - s->at));
		if (!n)
			return complain(s, s->line, "a byte that is not UTF-8");
		if (!*s->at)
			return complain(s, s->line, "a NUL byte: not a text file");
		step(s, n);
	}
	return 0;
}

/* libconfig obeys @include only at the start of a line. */
static int check_include(struct scan *s)
{
	const char *start;
	size_t len;

	for (int line = 1; (start = bytes_next_line(&s->at, s->end, &len)); line++)
		if (starts_with(start + strspn(start, " \t"), "@include"))
			return complain(s, line,
					"@include is not supported: write the settings in this "
					"file");
	return 0;
}

static int skip_string(struct scan *s)
{
	int began = s->line;

	for (step(s, 1); s->at < s->end && *s->at != '"';)
		step(s, *s->at == '\\' ? 2 : 1);
	if (s->at == s->end)
		return complain(s, began, "this string has no closing quote");
	step(s, 1);
	return 0;
}

static int skip_long_comment(struct scan *s)
{
	int began = s->line;
	const char *close = strstr(s->at + 2, "*/");

	if (!close)
		return complain(s, began, "this comment is never closed");
	step(s, (size_t)(close + 2 - s->at));
	return 0;
}

/* Whether libconfig can hold the number; it would cut a larger one without an error. */
static bool fits(const char *number, size_t len)
{
	CLEANUP(free_text) char *text = xstrndup(number, len);
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	bool real = !hex && strpbrk(text, ".eE");
	size_t n = strlen(text);

	errno = 0;
	if (real)
		return isfinite(strtod(text, NULL));
	if (text[n - 1] == 'L') {
		strtoull(text, NULL, 0);
		return errno == 0;
	}
	unsigned long long value = hex ? strtoull(text, NULL, 16) : strtoull(text, NULL, 10);
	return errno == 0 && value <= (hex ? 0xffffffffULL : 0x7fffffffULL);
}

static int check_number(struct scan *s)
{
	const char *p = s->at;

	while (isalnum((unsigned char)*p) || *p == '.' ||
	       ((*p == '+' || *p == '-') && strchr("eE", p[-1])))
		p++;
	size_t len = (size_t)(p - s->at);
	if (!fits(s->at, len))
		return err_set(s->err, ERR_CONFIG, "%s:%d: the number %.*s is too large", s->shown,
			       s->line, (int)MIN(len, 40), s->at);
	step(s, len);
	return 0;
}

static int check_token(struct scan *s)
{
	unsigned char c = (unsigned char)*s->at;

	if (c == '"')
		return skip_string(s);
	if (starts_with(s->at, "/*"))
		return skip_long_comment(s);
	if (c == '#' || starts_with(s->at, "//"))
		step(s, strcspn(s->at, "\n"));
	else if (isalpha(c) || c == '*')
		step(s, MAX(strspn(s->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123"
					  "456789-_*"),
			    1));
	else if (isdigit(c))
		return check_number(s);
	else
		step(s, 1);
	return 0;
}

int scan_text(const char *text, size_t len, const char *shown, struct err *err)
{
	struct scan s = {.at = text, .end = text + len, .shown = shown, .line = 1, .err = err};

	if (check_bytes(&s) < 0)
		return -1;
	s.at = text;
	if (check_include(&s) < 0)
		return -1;
	s.at = text;
	s.line = 1;
	while (s.at < s.end)
		if (check_token(&s) < 0)
			return -1;
	return 0;
}
