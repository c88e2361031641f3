/* front_matter.c - reads the lines above a text that say what it is called and who wrote it */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "script.h"

/* Appends what stands in quotes. Returns the place behind them; NULL: they are not closed. */
static const char *add_quoted(struct str *to, const char *from, const char *end)
{
	char quote = *from;

	for (const char *p = from + 1; p < end; p++) {
		bool twice = quote == '\'' && *p == quote && p + 1 < end && p[1] == quote,
		     escaped = quote == '"' && *p == '\\' && p + 1 < end && strchr("\"\\", p[1]);
		if (twice || escaped)
			p++;
		else if (*p == quote)
			return p + 1;
		str_addc(to, *p);
	}
	return NULL;
}

/* The value without blanks, quotes and the comment behind it. The caller frees it; NULL: it is
 * empty. */
static char *plain_value(const char *from, const char *end)
{
	struct str text = STR_INIT;
	CLEANUP(str_free) struct str quoted = STR_INIT;

	while (from < end && isspace((unsigned char)*from))
		from++;
	const char *behind =
		from < end && strchr("\"'", *from) ? add_quoted(&quoted, from, end) : NULL;
	while (behind && behind < end && isspace((unsigned char)*behind))
		behind++;
	if (behind && (behind == end || *behind == '#')) {
		split_normalise(&text, str_text(&quoted), quoted.len);
	} else {
		const char *comment = memmem(from, (size_t)(end - from), " #", 2);
		split_normalise(&text, from, (size_t)((comment ? comment : end) - from));
	}
	if (text.len)
		return str_detach(&text);
	str_free(&text);
	return NULL;
}

/* Appends a name to a list of them; takes `name`, which may be NULL. */
static void add_name(char **list, char *name)
{
	char *before = *list;

	if (name && before) {
		*list = xasprintf("%s, %s", before, name);
		free(before);
		free(name);
	} else if (name) {
		*list = name;
	}
}

/* Reads a value like "Ann", or a list like ["Ann", Ben]. */
static void read_names(char **to, const char *from, const char *end)
{
	while (from < end && isspace((unsigned char)*from))
		from++;
	const char *close =
		from < end && *from == '[' ? memchr(from, ']', (size_t)(end - from)) : NULL;
	if (!close) {
		add_name(to, plain_value(from, end));
		return;
	}
	for (const char *at = from + 1; at < close;) {
		const char *comma = memchr(at, ',', (size_t)(close - at));
		add_name(to, plain_value(at, comma ? comma : close));
		at = comma ? comma + 1 : close;
	}
}

/* Takes the year of a date like 1897-05-26 or "March 3, 2019". Calibre writes 0101 for none. */
static char *year_of(char *date)
{
	char *year = NULL;

	for (const char *p = date; p && *p && !year;) {
		size_t digits = strspn(p, "0123456789");
		if (digits == 4 && strncmp(p, "0101", 4))
			year = xstrndup(p, 4);
		p += digits ? digits : 1;
	}

	free(date);
	return year;
}

/* Returns where the key's value is kept; NULL: it is no key of a book. */
static char **field_of_key(struct script_book *book, const char *key, size_t len)
{
	const struct {
		const char *key;
		char **field;
	} keys[] = {
		{"title", &book->title},
		{"author", &book->author},
		{"authors", &book->author},
		{"creator", &book->author},
		{"narrator", &book->narrator},
		{"language", &book->language},
		{"lang", &book->language},
		{"date", &book->year},
		{"year", &book->year},
		{"publisher", &book->publisher},
		{"cover", &book->cover_name},
		{"cover-image", &book->cover_name},
		{"cover_image", &book->cover_name},
	};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (strlen(keys[i].key) == len && !strncasecmp(key, keys[i].key, len))
			return keys[i].field;
	return NULL;
}

/* The place behind the sign of "key: value" or TOML's "key = value"; NULL: the line is none. */
static const char *behind_key(const char *line, const char *end, size_t *key_len)
{
	size_t key = 0, len = (size_t)(end - line);

	while (key < len && (isalnum((unsigned char)line[key]) || strchr("-_", line[key])))
		key++;
	const char *sign = line + key;
	while (sign < end && *sign == ' ')
		sign++;
	*key_len = key;
	return key && sign < end && (*sign == ':' || *sign == '=') ? sign + 1 : NULL;
}

static void take_value(struct script_book *book, char **field, const char *from, const char *end)
{
	if (field == &book->author || field == &book->narrator)
		read_names(field, from, end);
	else if (!*field)
		*field = plain_value(from, end);
	if (field == &book->year)
		book->year = year_of(book->year);
}

void book_read_line(struct script_book *book, const char *line, size_t len)
{
	size_t key;
	const char *value = utf8_valid(line, len) ? behind_key(line, line + len, &key) : NULL;
	char **field = value ? field_of_key(book, line, key) : NULL;

	if (field && !*field)
		take_value(book, field, value, line + len);
}

/* ---- blocks ---- */

/* A key whose value stands in the lines below it, as a text or a list. */
struct open_key {
	char **field; /* NULL: none */
	bool skips;   /* the item of the list is no author, but an editor or the like */
};

/* Reads a line below an open key: "text", "- item", "- name: item", "  role: editor". */
static void read_nested(struct script_book *book, struct open_key *open, const char *line,
			const char *end)
{
	size_t key;

	while (line < end && isspace((unsigned char)*line))
		line++;
	if (line < end && *line == '-' && (line + 1 == end || line[1] == ' ')) {
		open->skips = false;
		for (line++; line < end && *line == ' ';)
			line++;
	}
	const char *value = behind_key(line, end, &key);
	if (!value) {
		take_value(book, open->field, line, end);
		return;
	}
	CLEANUP(free_text) char *name = xstrndup(line, key);
	CLEANUP(free_text) char *said = plain_value(value, end);
	if (!strcasecmp(name, "role") || !strcasecmp(name, "type"))
		open->skips = said && strcasecmp(said, "author") && strcasecmp(said, "aut") &&
			      strcasecmp(said, "main");
	else if (!open->skips && (!strcasecmp(name, "name") || !strcasecmp(name, "text")))
		take_value(book, open->field, value, end);
}

/* Returns whether nothing, or a sign of YAML for "in the lines below", stands here. */
static bool is_open_value(const char *from, const char *end)
{
	while (from < end && strchr(" \t>|+-", *from))
		from++;
	return from == end;
}

/* Reads the lines of front matter. Returns its end. */
static const char *read_block(struct script_book *book, const char *at, const char *end)
{
	struct open_key open = {0};
	const char *line;
	size_t len, key;

	while (next_line(&at, end, &line, &len)) {
		if (!len || !utf8_valid(line, len) || (len == 3 && !memcmp(line, "---", 3)))
			continue;
		if (*line == ' ' || *line == '\t' || *line == '-') {
			if (open.field)
				read_nested(book, &open, line, line + len);
			continue;
		}
		const char *value = behind_key(line, line + len, &key);
		bool below = value && is_open_value(value, line + len);
		open = (struct open_key){0};
		if (below)
			open.field = field_of_key(book, line, key);
		if (open.field && *open.field)
			open.field = NULL; /* what was said before is kept */
		if (!below)
			book_read_line(book, line, len);
	}
	return end;
}

/* Pandoc's title block: "% Title", "% Author; Author", "% Date". Returns its end. */
static const char *read_percent_lines(struct script_book *book, const char *bytes, const char *end)
{
	char **const fields[] = {&book->title, &book->author, &book->year};
	const char *at = bytes, *begin = bytes, *line;
	size_t len;

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (!next_line(&at, end, &line, &len) || len < 2 || memcmp(line, "% ", 2) != 0)
			break;
		const char *stop = line + len;
		for (const char *p = line + 2; p < stop && !(i != 1 && p > line + 2);) {
			const char *sign = i == 1 ? memchr(p, ';', (size_t)(stop - p)) : NULL;
			take_value(book, fields[i], p, sign ? sign : stop);
			p = sign ? sign + 1 : stop;
		}
		begin = at;
	}
	return begin;
}

/* Lines of "Key: value" up to a blank one, the first of them "Title: ...", as MultiMarkdown and
 * Fountain have them. Returns their end. */
static const char *read_title_lines(struct script_book *book, const char *bytes, const char *end)
{
	const char *at = bytes, *line;
	size_t len;

	while (next_line(&at, end, &line, &len)) {
		if (line_is_blank(line, len))
			return read_block(book, bytes, at);
		if (*line != ' ' && *line != '\t' && !memchr(line, ':', MIN(len, (size_t)30)))
			break;
	}
	return bytes;
}

const char *front_matter_read(struct script_book *book, const char *bytes, const char *end)
{
	const char *at = bytes, *line;
	char fence[4] = "";
	size_t len;

	if (!next_line(&at, end, &line, &len))
		return bytes;
	if (len > 2 && !memcmp(line, "% ", 2))
		return read_percent_lines(book, bytes, end);
	if (len > 6 && !strncasecmp(line, "title:", 6))
		return read_title_lines(book, bytes, end);
	if (len != 3 || (memcmp(line, "---", 3) != 0 && memcmp(line, "+++", 3) != 0))
		return bytes;
	memcpy(fence, line, 3);
	for (bool first = true; next_line(&at, end, &line, &len); first = false) {
		if (first && !len)
			return bytes; /* a rule; the text continues below it */
		if (len == 3 &&
		    (!memcmp(line, fence, 3) || (fence[0] == '-' && !memcmp(line, "...", 3))))
			return read_block(book, bytes, at);
	}
	return bytes;
}
