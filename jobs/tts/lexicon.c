/* lexicon.c - reads a lexicon and replaces words by their spoken form. */
#include "lexicon.h"

#include <ctype.h>
#include <stdlib.h>

#include "script.h"

#define ENTRIES_MOST 100000

struct entry {
	char *word, *spoken;
	size_t len; /* length of the word */
	size_t line;
};

struct lexicon {
	struct entry *entries; /* sorted by first byte, the longest first */
	size_t count, cap;
	size_t first[257]; /* start of the entries of each first byte */
};

void lexicon_free(struct lexicon *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->count; i++) {
		free(l->entries[i].word);
		free(l->entries[i].spoken);
	}
	free(l->entries);
	free(l);
}

static char *cleaned(const char *bytes, size_t len)
{
	struct str text = STR_INIT;

	split_normalise(&text, bytes, len);
	return text.len ? str_detach(&text) : xstrdup("");
}

static int read_entry(struct lexicon *l, const char *name, size_t number, const char *line,
		      size_t len, struct err *err)
{
	const char *tab = memchr(line, '\t', len);

	if (!len || *line == '#')
		return 0;
	if (!utf8_valid(line, len))
		return err_set(err, ERR_CONFIG, "%s:%zu: not valid UTF-8; save the file as UTF-8",
			       name, number);
	if (!tab)
		return err_set(err, ERR_CONFIG,
			       "%s:%zu: no tab; write the word, a tab, and how to speak it", name,
			       number);
	struct entry e = {.word = cleaned(line, (size_t)(tab - line)), .line = number};
	e.spoken = cleaned(tab + 1, len - (size_t)(tab + 1 - line));
	e.len = strlen(e.word);
	GROW(l->entries, l->count, l->cap);
	l->entries[l->count++] = e;
	if (!e.len)
		return err_set(err, ERR_CONFIG, "%s:%zu: no word before the tab", name, number);
	if (!*e.spoken)
		return err_set(err, ERR_CONFIG,
			       "%s:%zu: nothing after the tab: how is \"%.*s\" spoken?", name,
			       number, utf8_fit(e.word, 60), e.word);
	return l->count <= ENTRIES_MOST
		       ? 0
		       : err_set(err, ERR_CONFIG, "%s: more than %d words", name, ENTRIES_MOST);
}

static int by_byte_then_length(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int byte = (unsigned char)x->word[0] - (unsigned char)y->word[0];

	if (byte)
		return byte;
	if (x->len != y->len)
		return x->len < y->len ? 1 : -1;
	int order = memcmp(x->word, y->word, x->len);
	return order ? order : x->line < y->line ? -1 : 1;
}

static int index_entries(struct lexicon *l, const char *name, struct err *err)
{
	if (l->count)
		qsort(l->entries, l->count, sizeof(*l->entries), by_byte_then_length);
	for (size_t i = 1; i < l->count; i++)
		if (!strcmp(l->entries[i].word, l->entries[i - 1].word))
			return err_set(err, ERR_CONFIG, "%s:%zu: \"%.*s\" is in line %zu already",
				       name, l->entries[i].line, utf8_fit(l->entries[i].word, 60),
				       l->entries[i].word, l->entries[i - 1].line);
	for (size_t byte = 0, i = 0; byte <= 256; byte++) {
		while (i < l->count && (unsigned char)l->entries[i].word[0] < byte)
			i++;
		l->first[byte] = i;
	}
	return 0;
}

int lexicon_read(struct lexicon **out, const char *name, const char *bytes, size_t len,
		 struct err *err)
{
	struct lexicon *l = xcalloc(1, sizeof(*l));
	const char *at = bytes, *line;
	size_t line_len, number = 0;
	int result = 0;

	if (len >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3))
		at += 3;
	while (result == 0 && next_line(&at, bytes + len, &line, &line_len))
		result = read_entry(l, name, ++number, line, line_len, err);
	if (result == 0)
		result = index_entries(l, name, err);
	if (result < 0) {
		lexicon_free(l);
		return -1;
	}
	*out = l;
	return 0;
}

/* Every character outside ASCII counts as a letter: most are letters, and signs beside a word are
 * rare. */
static bool is_wordy(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

static bool stands_alone(const struct entry *e, const char *text, size_t at, size_t len)
{
	size_t end = at + e->len;

	return !(at > 0 && is_wordy(text[at - 1]) && is_wordy(e->word[0])) &&
	       !(end < len && is_wordy(text[end]) && is_wordy(e->word[e->len - 1]));
}

static const struct entry *entry_at(const struct lexicon *l, const char *text, size_t at,
				    size_t len)
{
	unsigned char byte = (unsigned char)text[at];

	for (size_t i = l->first[byte]; i < l->first[byte + 1]; i++) {
		const struct entry *e = &l->entries[i];
		if (e->len <= len - at && !memcmp(e->word, text + at, e->len) &&
		    stands_alone(e, text, at, len))
			return e;
	}
	return NULL;
}

void lexicon_apply(const struct lexicon *l, const char *text, size_t len, struct lexicon_text *out)
{
	struct str spoken = STR_INIT;

	*out = (struct lexicon_text){0};
	for (size_t at = 0; at < len;) {
		const struct entry *e = l ? entry_at(l, text, at, len) : NULL;
		if (!e) {
			str_addc(&spoken, text[at++]);
			continue;
		}
		GROW(out->swaps, out->count, out->cap);
		out->swaps[out->count++] =
			(struct lexicon_swap){spoken.len, strlen(e->spoken), at, e->len};
		str_add(&spoken, e->spoken);
		at += e->len;
	}
	out->spoken = spoken.len ? str_detach(&spoken) : xstrdup("");
}

char *lexicon_shown(const struct lexicon_text *t, const char *text, size_t from, size_t to)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	size_t i = 0;

	while (i < t->count && t->swaps[i].spoken + t->swaps[i].spoken_len <= from)
		i++;
	for (size_t at = from; at < to;) {
		const struct lexicon_swap *s =
			i < t->count && t->swaps[i].spoken <= at ? &t->swaps[i++] : NULL;
		if (!s) {
			str_addc(&shown, t->spoken[at++]);
			continue;
		}
		if (s->spoken >= from) /* otherwise the word belongs to the piece before */
			str_addn(&shown, text + s->shown, s->shown_len);
		at = s->spoken + s->spoken_len;
	}
	const char *first = str_text(&shown), *end = first + shown.len;
	while (first < end && *first == ' ')
		first++;
	while (end > first && end[-1] == ' ')
		end--;
	/* a piece of a replacement shows the whole word */
	return first < end ? xstrndup(first, (size_t)(end - first))
			   : xstrndup(t->spoken + from, to - from);
}

void lexicon_text_free(struct lexicon_text *t)
{
	free(t->spoken);
	free(t->swaps);
	*t = (struct lexicon_text){0};
}
