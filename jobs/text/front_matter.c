/* front_matter.c - reads the lines above a text that say what it is called and who wrote it */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "script.h"

/* Removes the blanks and a pair of quotes around a value. The caller frees it; NULL: it is empty.
 */
static char *plain_value(const char *from, const char *end)
{
	struct str text = STR_INIT;

	while (from < end && isspace((unsigned char)*from))
		from++;
	while (end > from && isspace((unsigned char)end[-1]))
		end--;
	if (end - from >= 2 && (*from == '"' || *from == '\'') && end[-1] == *from) {
		from++;
		end--;
	}
	split_normalise(&text, from, (size_t)(end - from));
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

/* Takes the year of a date like 1897-05-26. */
static char *year_of(char *date)
{
	char *year = date && strspn(date, "0123456789") == 4 ? xstrndup(date, 4) : NULL;

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

void book_read_line(struct script_book *book, const char *line, size_t len)
{
	const char *end = line + len;
	size_t key = 0;

	if (!utf8_valid(line, len))
		return;
	while (key < len && (isalnum((unsigned char)line[key]) || strchr("-_", line[key])))
		key++;
	const char *sign = line + key;
	while (sign < end && *sign == ' ')
		sign++;
	char **field =
		sign < end && (*sign == ':' || *sign == '=') ? field_of_key(book, line, key) : NULL;
	if (!field || *field)
		return;
	if (field == &book->author || field == &book->narrator)
		read_names(field, sign + 1, end);
	else
		*field = plain_value(sign + 1, end);
	if (field == &book->year)
		book->year = year_of(book->year);
}
