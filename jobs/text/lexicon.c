/* lexicon.c - replaces words and patterns of a text by what is said for them */
#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "script.h"

#define ENTRIES_MOST 100000

/* A pattern is tried on a window of text at a time, so that no pattern takes more than a moment on
 * a long one: POSIX does not bound its time. Back references are refused for the same reason. */
enum {
	PATTERNS_MOST = 1000,
	PATTERN_MOST_BYTES = 200,
	REPEATS_MOST = 50, /* in "x{1,50}" */
	WINDOW_BYTES = 512,
	MATCH_MOST_BYTES = 256,
};

struct entry {
	char *word, *spoken;
	size_t len; /* length of the word */
	size_t line;
	bool any_case;
};

struct pattern {
	regex_t regex;
	char *spoken;
};

struct lexicon {
	struct entry *entries; /* sorted by first byte, the longest first */
	size_t count, cap;
	size_t first[257];        /* start of the entries of each first byte */
	struct pattern *patterns; /* in the order of the file */
	size_t pattern_count, pattern_cap;
};

void lexicon_free(struct lexicon *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->count; i++) {
		free(l->entries[i].word);
		free(l->entries[i].spoken);
	}
	for (size_t i = 0; i < l->pattern_count; i++) {
		regfree(&l->patterns[i].regex);
		free(l->patterns[i].spoken);
	}
	free(l->entries);
	free(l->patterns);
	free(l);
}

static char *normalised_copy(const char *bytes, size_t len)
{
	struct str text = STR_INIT;

	split_normalise(&text, bytes, len);
	return text.len ? str_detach(&text) : xstrdup("");
}

/* What the third column of a line says. */
struct marks {
	bool any_case, pattern, ipa;
};

static int read_marks(struct marks *to, const char *name, size_t number, const char *bytes,
		      size_t len, struct err *err)
{
	CLEANUP(free_text) char *words = xstrndup(bytes, len);
	char *rest = NULL;

	for (char *word = strtok_r(words, ", \t", &rest); word;
	     word = strtok_r(NULL, ", \t", &rest)) {
		if (!strcmp(word, "any-case"))
			to->any_case = true;
		else if (!strcmp(word, "pattern"))
			to->pattern = true;
		else if (!strcmp(word, "ipa"))
			to->ipa = true;
		else
			return err_set(err, ERR_CONFIG,
				       "%s:%zu: \"%.*s\" behind the second tab must be any-case, "
				       "pattern or ipa",
				       name, number, utf8_fit(word, 40), word);
	}
	return to->pattern && to->ipa
		       ? err_set(err, ERR_CONFIG, "%s:%zu: a pattern cannot be ipa", name, number)
		       : 0;
}

/* Appends a text whose blanks and brackets are dashes: no cut may fall into it. */
static void add_dashed(struct str *to, const char *text)
{
	for (; *text; text++)
		str_addc(to, strchr(" []()", *text) ? '-' : *text);
}

/* Makes what the engine gets of an entry that is spoken by its phonemes: those of a dictionary, as
 * in /ˈælɪs/, lose their slashes. */
static int mark_phonemes(struct entry *e, const char *name, const struct phoneme_marks *ipa,
			 struct err *err)
{
	char *from = e->spoken, last = *from ? from[strlen(from) - 1] : '\0';
	bool enclosed = from[0] && from[1] &&
			((*from == '/' && last == '/') || (*from == '[' && last == ']'));
	CLEANUP(str_free) struct str marked = STR_INIT;

	if (!ipa->after)
		return err_set(err, ERR_CONFIG,
			       "%s:%zu: ipa: %s takes no phonemes: write how \"%.*s\" is spoken in "
			       "letters, or choose kokoro or piper",
			       name, e->line, ipa->engine, utf8_fit(e->word, 60), e->word);
	if (enclosed) {
		from[strlen(from) - 1] = '\0';
		from++;
	}
	if (!*from || strpbrk(from, " /[]()"))
		return err_set(err, ERR_CONFIG,
			       "%s:%zu: ipa: \"%.*s\" must be phonemes without blanks, as in ˈælɪs",
			       name, e->line, utf8_fit(e->spoken, 60), e->spoken);
	if (ipa->word) {
		str_add(&marked, ipa->word);
		add_dashed(&marked, e->word);
	}
	str_addf(&marked, "%s%s%s", ipa->before, from, ipa->after);
	free(e->spoken);
	e->spoken = str_detach(&marked);
	return 0;
}

/* Returns what is wrong with a pattern, or NULL. */
static const char *pattern_fault(const char *pattern)
{
	if (strlen(pattern) > PATTERN_MOST_BYTES)
		return "it is longer than 200 bytes";
	for (const char *p = pattern; *p; p++) {
		if (p[0] == '\\' && isdigit((unsigned char)p[1]))
			return "it refers back to a group";
		if (p[0] == '\\' && p[1]) {
			p++;
			continue;
		}
		const char *comma = p[0] == '{' ? p + 1 + strspn(p + 1, "0123456789") : NULL;
		if (p[0] == '{' && (strtol(p + 1, NULL, 10) > REPEATS_MOST ||
				    (*comma == ',' && strtol(comma + 1, NULL, 10) > REPEATS_MOST)))
			return "it repeats more than 50 times";
	}
	return NULL;
}

/* Adds an entry that is an extended regular expression of POSIX. Takes over *e. */
static int add_pattern(struct lexicon *l, const char *name, struct entry *e, struct err *err)
{
	struct pattern new = {.spoken = TAKE(e->spoken)};
	CLEANUP(free_text) char *word = TAKE(e->word);
	const char *fault = pattern_fault(word);
	char why[80];
	regmatch_t match;

	int status =
		fault ? 0 : regcomp(&new.regex, word, REG_EXTENDED | (e->any_case ? REG_ICASE : 0));
	if (!fault && !status && l->pattern_count < PATTERNS_MOST &&
	    regexec(&new.regex, "", 1, &match, 0) != 0) {
		GROW(l->patterns, l->pattern_count, l->pattern_cap);
		l->patterns[l->pattern_count++] = new;
		return 0;
	}
	if (status) {
		regerror(status, &new.regex, why, sizeof(why));
		fault = why;
	} else if (!fault) {
		fault = l->pattern_count < PATTERNS_MOST ? "it matches an empty text"
							 : "there are more than 1000 patterns";
		regfree(&new.regex);
	}
	free(new.spoken);
	return err_set(err, ERR_CONFIG, "%s:%zu: pattern \"%.*s\": %s", name, e->line,
		       utf8_fit(word, 60), word, fault);
}

/* Adds the entry of a line; nothing for an empty line or a comment. */
static int read_entry(struct lexicon *l, const char *name, size_t number, const char *line,
		      size_t len, const struct phoneme_marks *ipa, struct err *err)
{
	const char *tab = memchr(line, '\t', len), *end = line + len;
	struct marks marks = {0};

	if (!len || *line == '#')
		return 0;
	if (!utf8_valid(line, len))
		return err_set(err, ERR_CONFIG, "%s:%zu: not valid UTF-8; save the file as UTF-8",
			       name, number);
	if (!tab)
		return err_set(err, ERR_CONFIG,
			       "%s:%zu: no tab; write the word, a tab, and how to speak it", name,
			       number);
	const char *second = memchr(tab + 1, '\t', (size_t)(end - tab) - 1);
	if (second && read_marks(&marks, name, number, second, (size_t)(end - second), err) < 0)
		return -1;
	struct entry e = {.line = number, .any_case = marks.any_case};
	e.word = marks.pattern ? xstrndup(line, (size_t)(tab - line))
			       : normalised_copy(line, (size_t)(tab - line));
	e.spoken = normalised_copy(tab + 1, (size_t)((second ? second : end) - tab) - 1);
	e.len = strlen(e.word);
	if (marks.pattern && e.len && *e.spoken)
		return add_pattern(l, name, &e, err);
	GROW(l->entries, l->count, l->cap);
	l->entries[l->count++] = e;
	if (!e.len)
		return err_set(err, ERR_CONFIG, "%s:%zu: no word before the tab", name, number);
	if (!*e.spoken)
		return err_set(err, ERR_CONFIG,
			       "%s:%zu: nothing after the tab: how is \"%.*s\" spoken?", name,
			       number, utf8_fit(e.word, 60), e.word);
	if (marks.ipa && mark_phonemes(&l->entries[l->count - 1], name, ipa, err) < 0)
		return -1;
	return l->count <= ENTRIES_MOST
		       ? 0
		       : err_set(err, ERR_CONFIG, "%s: more than %d words", name, ENTRIES_MOST);
}

/* Words of any case are sorted by the small letter, but those of one case by their own: a search
 * looks at both. */
static unsigned char first_byte(const struct entry *e)
{
	unsigned char byte = (unsigned char)e->word[0];

	return (unsigned char)(e->any_case ? tolower(byte) : byte);
}

static int by_byte_then_length(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int byte = first_byte(x) - first_byte(y);

	if (byte)
		return byte;
	if (x->len != y->len)
		return x->len < y->len ? 1 : -1;
	int order = memcmp(x->word, y->word, x->len);
	return order ? order : x->line < y->line ? -1 : 1;
}

/* Sorts the entries and fills first[]. ERR_CONFIG: a word is there twice. */
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
		while (i < l->count && first_byte(&l->entries[i]) < byte)
			i++;
		l->first[byte] = i;
	}
	return 0;
}

int lexicon_read(struct lexicon **out, const char *name, const char *bytes, size_t len,
		 const struct phoneme_marks *ipa, struct err *err)
{
	struct lexicon *l = xcalloc(1, sizeof(*l));
	const char *at = bytes, *line;
	size_t line_len, number = 0;
	int result = 0;

	if (len >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3))
		at += 3;
	while (result == 0 && next_line(&at, bytes + len, &line, &line_len))
		result = read_entry(l, name, ++number, line, line_len, ipa, err);
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
static bool is_word_byte(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* Returns whether a match touches no letter or digit beside its own. */
static bool stands_alone(const char *text, size_t at, size_t end, size_t len)
{
	return !(at > 0 && is_word_byte(text[at - 1]) && is_word_byte(text[at])) &&
	       !(end < len && is_word_byte(text[end]) && is_word_byte(text[end - 1]));
}

static bool is_entry_at(const struct entry *e, const char *text, size_t at, size_t len)
{
	return e->len <= len - at &&
	       (e->any_case ? !strncasecmp(e->word, text + at, e->len)
			    : !memcmp(e->word, text + at, e->len)) &&
	       stands_alone(text, at, at + e->len, len);
}

/* Returns the longest match among the entries of a first byte, or NULL. */
static const struct entry *find_entry_of(const struct lexicon *l, unsigned char byte,
					 const char *text, size_t at, size_t len)
{
	for (size_t i = l->first[byte]; i < l->first[byte + 1]; i++)
		if (is_entry_at(&l->entries[i], text, at, len))
			return &l->entries[i];
	return NULL;
}

/* Returns the longest match, or NULL. A word of this very case wins over one of any case. */
static const struct entry *find_entry_at(const struct lexicon *l, const char *text, size_t at,
					 size_t len)
{
	unsigned char byte = (unsigned char)text[at], small = (unsigned char)tolower(byte);
	const struct entry *own = find_entry_of(l, byte, text, at, len);
	const struct entry *any = small == byte ? NULL : find_entry_of(l, small, text, at, len);

	return !own || (any && any->len > own->len) ? any : own;
}

/* The next match of a pattern, kept until the text has passed it. */
struct found {
	size_t at, end; /* at SIZE_MAX: there is none in the rest of the text */
};

static bool cuts_character(const char *text, size_t at, size_t len)
{
	return at < len && ((unsigned char)text[at] & 0xc0) == 0x80;
}

/* Finds the pattern's first match that begins at `from` or later. */
static void find_match(struct found *f, const struct pattern *p, const char *text, size_t from,
		       size_t len)
{
	while (from < len) {
		size_t end = MIN(len, from + WINDOW_BYTES);
		regmatch_t m = {.rm_so = (regoff_t)from, .rm_eo = (regoff_t)end};
		int flags = REG_STARTEND | (from ? REG_NOTBOL : 0) | (end < len ? REG_NOTEOL : 0);
		if (regexec(&p->regex, text, 1, &m, flags) != 0) {
			from += MATCH_MOST_BYTES;
			continue;
		}
		size_t at = (size_t)m.rm_so, stop = (size_t)m.rm_eo;
		if (at - from >= MATCH_MOST_BYTES && end < len) {
			from = at; /* the window may have cut it */
			continue;
		}
		if (stop > at && !cuts_character(text, at, len) &&
		    !cuts_character(text, stop, len) && stands_alone(text, at, stop, len)) {
			*f = (struct found){at, stop};
			return;
		}
		from = at + 1;
	}
	f->at = SIZE_MAX;
}

/* The first pattern that matches at `at`, or NULL. */
static const struct pattern *find_pattern_at(const struct lexicon *l, struct found *found,
					     const char *text, size_t at, size_t len, size_t *end)
{
	for (size_t i = 0; i < l->pattern_count; i++) {
		struct found *f = &found[i];
		if (f->at < at)
			find_match(f, &l->patterns[i], text, at, len);
		if (f->at == at) {
			*end = f->end;
			return &l->patterns[i];
		}
	}
	return NULL;
}

void lexicon_apply(const struct lexicon *l, const char *text, size_t len, struct lexicon_text *out)
{
	struct str spoken = STR_INIT;
	struct found *found = xcalloc(l ? l->pattern_count + 1 : 1, sizeof(*found));
	CLEANUP(free_text) char *copy = xstrndup(text, len); /* a pattern reads to its NUL */

	*out = (struct lexicon_text){0};
	for (size_t i = 0; l && i < l->pattern_count; i++)
		find_match(&found[i], &l->patterns[i], copy, 0, len);
	for (size_t at = 0; at < len;) {
		const struct entry *e = l ? find_entry_at(l, copy, at, len) : NULL;
		size_t end = e ? at + e->len : at;
		const struct pattern *p =
			l && !e ? find_pattern_at(l, found, copy, at, len, &end) : NULL;
		if (!e && !p) {
			str_addc(&spoken, copy[at++]);
			continue;
		}
		const char *as = e ? e->spoken : p->spoken;
		GROW(out->swaps, out->count, out->cap);
		out->swaps[out->count++] =
			(struct lexicon_swap){spoken.len, strlen(as), at, end - at};
		str_add(&spoken, as);
		at = end;
	}
	free(found);
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
