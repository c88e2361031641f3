/* espeak_words.c - makes the chunks of a WAV file that mark the words of its text */
#include "espeak_words.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/mem.h"

/* A word of the text, in bytes. */
struct mark {
	size_t from, to;
	int64_t begin, end;
};

static void add_le32(struct str *to, int64_t value)
{
	for (int i = 0; i < 4; i++)
		str_addc(to, (char)(value >> 8 * i & 0xff));
}

/* Returns whether this byte lies inside a token that has begun before: "50" in "45.50". */
static bool is_inside(const char *text, size_t at)
{
	unsigned char before = at ? (unsigned char)text[at - 1] : ' ';

	return isalnum(before) || (strchr(".,'", before) && isdigit((unsigned char)text[at]));
}

/* The library reports some words at the blank or the dash before them. */
static size_t skip_blanks(const char *text, size_t at)
{
	while (text[at] == ' ' || text[at] == '-')
		at++;
	return at;
}

/* The byte of a character. *chars and *bytes: a place before it, moved there. */
static size_t byte_of(const char *text, size_t character, size_t *chars, size_t *bytes)
{
	if (character < *chars)
		*chars = *bytes = 0;
	for (; *chars < character && text[*bytes]; ++*chars) {
		const char *next = text + *bytes;
		utf8_next(&next);
		*bytes = (size_t)(next - text);
	}
	return *bytes;
}

/* Fills list with the words in order of the text. Returns the count. */
static size_t list_marks(struct mark *list, const char *text, const struct espeak_word *words,
			 size_t count, int64_t frames)
{
	size_t n = 0, chars = 0, bytes = 0;

	for (size_t i = 0; i < count; i++) {
		size_t from = skip_blanks(text, byte_of(text, words[i].at, &chars, &bytes));
		int64_t begin = words[i].begin;
		if (!text[from] || begin < 0 || begin > frames || is_inside(text, from) ||
		    (n && (from <= list[n - 1].from || begin < list[n - 1].begin)))
			continue;
		if (n && list[n - 1].to > from)
			list[n - 1].to = from;
		size_t to = from + strcspn(text + from, " ");
		list[n++] = (struct mark){from, to, begin, MIN(MAX(words[i].end, begin), frames)};
	}
	return n;
}

void espeak_words_chunks(struct str *to, const char *text, const struct espeak_word *words,
			 size_t count, int64_t frames)
{
	struct mark *list = xcalloc(count + 1, sizeof(*list));
	struct str labels = STR_INIT;
	size_t n = list_marks(list, text, words, count, frames);

	str_add(&labels, "adtl");
	for (size_t i = 0; i < n; i++) {
		size_t len = list[i].to - list[i].from;
		str_add(&labels, "ltxt");
		add_le32(&labels, 20);
		add_le32(&labels, (int64_t)i + 1);
		add_le32(&labels, list[i].end - list[i].begin);
		str_add(&labels, "rgn "); /* a region; then country, language, dialect, code page */
		str_addn(&labels, "\0\0\0\0\0\0\0\0", 8);
		str_add(&labels, "labl");
		add_le32(&labels, (int64_t)len + 5);
		add_le32(&labels, (int64_t)i + 1);
		str_addn(&labels, text + list[i].from, len);
		str_addn(&labels, "\0\0", (len + 5) % 2 ? 2 : 1);
	}
	if (n) {
		str_add(to, "cue ");
		add_le32(to, (int64_t)n * 24 + 4);
		add_le32(to, (int64_t)n);
		for (size_t i = 0; i < n; i++) {
			add_le32(to, (int64_t)i + 1);
			add_le32(to, list[i].begin);
			str_add(to, "data");
			str_addn(to, "\0\0\0\0\0\0\0\0", 8);
			add_le32(to, list[i].begin);
		}
		str_add(to, "LIST");
		add_le32(to, (int64_t)labels.len);
		str_addn(to, labels.s, labels.len);
	}
	str_free(&labels);
	free(list);
}
