/* espeak_json.c - parses the JSON lines that the worker receives. */
#include "espeak_json.h"

#include <stdlib.h>
#include <string.h>

void *must_have(void *p)
{
	if (!p)
		abort();
	return p;
}

void cursor_blanks(struct cursor *c)
{
	while (c->p < c->end && strchr(" \t\r\n", *c->p))
		c->p++;
}

bool cursor_at(struct cursor *c, char what)
{
	cursor_blanks(c);
	if (c->p >= c->end || *c->p != what)
		return false;
	c->p++;
	return true;
}

static unsigned read_hex(struct cursor *c)
{
	unsigned value = 0;
	for (int i = 0; i < 4 && c->p < c->end; i++, c->p++) {
		int ch = *c->p | 32;
		value = value * 16 + (unsigned)(ch >= 'a' ? ch - 'a' + 10 : ch - '0') % 16;
	}
	return value;
}

static size_t put_utf8(char *to, unsigned code)
{
	int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
	static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
	to[0] = (char)(lead[more] | code >> 6 * more);
	for (int i = 1; i <= more; i++)
		to[i] = (char)(0x80 | (code >> 6 * (more - i) & 63));
	return (size_t)more + 1;
}

static size_t read_escape(struct cursor *c, char *to)
{
	static const char from[] = "bfnrt", into[] = "\b\f\n\r\t";
	char e = c->p < c->end ? *c->p++ : '\\';
	const char *known = strchr(from, e);
	if (e != 'u')
		return to[0] = known && e ? into[known - from] : e, 1;
	unsigned code = read_hex(c);
	if (code >= 0xd800 && code < 0xdc00 && c->end - c->p >= 6 && c->p[0] == '\\' &&
	    c->p[1] == 'u') {
		c->p += 2;
		code = 0x10000 + ((code - 0xd800) << 10) + ((read_hex(c) - 0xdc00) & 0x3ff);
	}
	return put_utf8(to, code);
}

char *cursor_text(struct cursor *c)
{
	if (!cursor_at(c, '"'))
		return NULL;
	char *text = must_have(malloc((size_t)(c->end - c->p) + 1));
	size_t len = 0;
	while (c->p < c->end && *c->p != '"') {
		char ch = *c->p++;
		if (ch == '\\')
			len += read_escape(c, text + len);
		else
			text[len++] = ch;
	}
	c->p += c->p < c->end;
	text[len] = 0;
	return text;
}

void cursor_skip(struct cursor *c)
{
	int depth = 0;
	do {
		cursor_blanks(c);
		if (c->p >= c->end)
			return;
		if (*c->p == '"')
			free(cursor_text(c));
		else if (*c->p == '{' || *c->p == '[')
			depth++, c->p++;
		else if (*c->p == '}' || *c->p == ']')
			depth--, c->p++;
		else if (*c->p == ',' || *c->p == ':')
			c->p++;
		else
			while (c->p < c->end && !strchr(",:]} \t\r\n", *c->p))
				c->p++;
	} while (depth > 0);
}

char *cursor_key(struct cursor *c)
{
	cursor_at(c, ',');
	if (cursor_at(c, '}'))
		return NULL;
	char *key = cursor_text(c);
	if (key && !cursor_at(c, ':')) {
		free(key);
		return NULL;
	}
	return key;
}

int cursor_int(struct cursor *c)
{
	cursor_blanks(c);
	char *text = c->p < c->end && *c->p == '"' ? cursor_text(c) : NULL;
	double value = strtod(text ? text : c->p, NULL);
	if (text)
		free(text);
	else
		cursor_skip(c);
	return value > -100000 && value < 100000 ? (int)value : 0;
}
