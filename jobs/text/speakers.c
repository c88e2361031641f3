/* speakers.c - finds who speaks a text, by the labels in it and the map of job.speakers */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "script.h"

enum { NAME_MOST_BYTES = 60, GUESS_MOST_WORDS = 4 };

#define WIDE_COLON "\xef\xbc\x9a"

void speakers_free(struct speakers *s)
{
	for (size_t i = 0; i < s->count; i++) {
		free(s->list[i].name);
		free(s->list[i].voice);
	}
	free(s->list);
	*s = (struct speakers){0};
}

const struct speaker *speakers_find(const struct speakers *s, const char *name, size_t len)
{
	for (size_t i = 0; s && i < s->count; i++)
		if (strlen(s->list[i].name) == len && !strncasecmp(s->list[i].name, name, len))
			return &s->list[i];
	return NULL;
}

/* A copy without the blanks at the ends. The caller frees it. */
static char *trimmed(const char *text, size_t len)
{
	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	return xstrndup(text, len);
}

int speakers_add(struct speakers *s, const char *pair, struct err *err)
{
	const char *equals = strchr(pair, '=');
	struct speaker new = {
		.name = trimmed(pair, equals ? (size_t)(equals - pair) : strlen(pair)),
		.voice = equals ? trimmed(equals + 1, strlen(equals + 1)) : NULL,
	};
	size_t len = strlen(new.name);
	bool again = speakers_find(s, new.name, len) != NULL;

	GROW(s->list, s->count, s->cap);
	s->list[s->count++] = new;
	if (!len || len > NAME_MOST_BYTES || (new.voice && !*new.voice) ||
	    strpbrk(new.name, ":[]\n"))
		return err_set(err, ERR_CONFIG,
			       "speakers: \"%.*s\" must be written as in \"Alice=VOICE\", or "
			       "\"Alice\" for a label that is spoken",
			       utf8_fit(pair, 60), pair);
	return again ? err_set(err, ERR_CONFIG, "speakers: \"%.*s\" is there twice",
			       utf8_fit(new.name, 60), new.name)
		     : 0;
}

/* The length of the colon at p, and of the blank that must follow an ASCII one; 0: none. */
static size_t colon_length(const char *p, const char *end)
{
	size_t wide = strlen(WIDE_COLON);

	if ((size_t)(end - p) >= wide && !memcmp(p, WIDE_COLON, wide))
		return wide;
	if (p < end && *p == ':' && (p + 1 == end || isspace((unsigned char)p[1])))
		return 1;
	return 0;
}

/* The length of "Alice:" or "[Alice]" at the start of a text, with a colon and blanks behind it; 0:
 * there is none. */
static size_t label_length(const char *text, size_t len, const char **name, size_t *name_len)
{
	const char *end = text + len, *p = text,
		   *stop = text + MIN(len, (size_t)NAME_MOST_BYTES + 2);

	if (p < end && *p == '[') {
		const char *close = memchr(p, ']', (size_t)(stop - p));
		if (!close || close == p + 1)
			return 0;
		*name = p + 1;
		*name_len = (size_t)(close - p) - 1;
		p = close + 1;
		p += colon_length(p, end);
	} else {
		while (p < stop && !colon_length(p, end) && *p != '\n')
			p++;
		size_t colon = p < stop ? colon_length(p, end) : 0;
		if (!colon || p == text)
			return 0;
		*name = text;
		*name_len = (size_t)(p - text);
		p += colon;
	}
	while (p < end && isspace((unsigned char)*p))
		p++;
	return (size_t)(p - text);
}

size_t speakers_label(const struct speakers *s, const char *text, size_t len,
		      const struct speaker **who)
{
	const char *name;
	size_t name_len, label = s && s->count ? label_length(text, len, &name, &name_len) : 0;
	const struct speaker *found = label ? speakers_find(s, name, name_len) : NULL;
	const char *aside =
		label && !found && name[name_len - 1] == ')' ? memchr(name, '(', name_len) : NULL;

	if (aside) { /* "Toby (off): ..." */
		while (aside > name && aside[-1] == ' ')
			aside--;
		found = speakers_find(s, name, (size_t)(aside - name));
	}
	*who = found;
	return found ? label : 0;
}

/* Returns whether these are a few words that begin like names: "Alice", "Mr. Smith", "SPEAKER 2".
 */
static bool looks_like_name(const char *name, size_t len)
{
	size_t words = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)name[i];
		bool begins = i == 0 || name[i - 1] == ' ';
		if (c < 0x80 && !isalnum(c) && !strchr(" .'-_&()#", c))
			return false;
		if (begins && c != ' ') {
			words++;
			if (!isupper(c) && c < 0x80 && (i == 0 || !strchr("0123456789&(#", c)))
				return false;
		}
	}
	return words > 0 && words <= GUESS_MOST_WORDS;
}

size_t speakers_guess(const char *text, size_t len, const char **name, size_t *name_len)
{
	size_t label = label_length(text, len, name, name_len);

	return label && label < len && looks_like_name(*name, *name_len) ? label : 0;
}

const char *speakers_next(const struct speakers *s, const char *text, size_t len)
{
	const char *end = text + len, *line = text, *name;
	const struct speaker *who;
	size_t name_len;

	while (s && s->count && (line = memchr(line, '\n', (size_t)(end - line)))) {
		line++;
		while (line < end && (*line == ' ' || *line == '\t'))
			line++;
		if (speakers_label(s, line, (size_t)(end - line), &who) ||
		    speakers_guess(line, (size_t)(end - line), &name, &name_len))
			return line;
	}
	return NULL;
}
