/* words.c - which words of the shown text an engine's marks stand for */
#include "join.h"

#include <ctype.h>
#include <stdlib.h>

#define LOOK_AHEAD 400 /* bytes of the text that marks may leave out */

/* Returns whether a word may begin or end between these characters. */
static bool is_border(unsigned char before, unsigned char after)
{
	bool letters = (isalnum(before) || before >= 0x80) && (isalnum(after) || after >= 0x80);

	return !letters || before >= 0x80 || after >= 0x80; /* Chinese has no blanks */
}

/* The next place where the word stands in the text; NULL: not near. */
static const char *find_word(const char *text, const char *from, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = from; (p = strstr(p, word)) && p - from <= LOOK_AHEAD; p++)
		if ((p == text || is_border((unsigned char)p[-1], (unsigned char)*p)) &&
		    (!p[len] || is_border((unsigned char)p[len - 1], (unsigned char)p[len])))
			return p;
	return NULL;
}

/* Sets from and to of a word of the spoken text to those of the text that is shown. */
static void show_word(const struct lexicon_text *t, struct cue_word *w)
{
	size_t from = w->from, to = w->to;
	long by = 0; /* shown less spoken, behind the swaps so far */

	w->from = w->to = SIZE_MAX;
	for (size_t i = 0; i < t->count; i++) {
		const struct lexicon_swap *s = &t->swaps[i];
		if (w->from == SIZE_MAX && from < s->spoken + s->spoken_len)
			w->from = from < s->spoken ? (size_t)((long)from + by) : s->shown;
		if (w->to == SIZE_MAX && to <= s->spoken + s->spoken_len)
			w->to = to <= s->spoken ? (size_t)((long)to + by) : s->shown + s->shown_len;
		by = (long)(s->shown + s->shown_len) - (long)(s->spoken + s->spoken_len);
	}
	w->from = w->from == SIZE_MAX ? (size_t)((long)from + by) : w->from;
	w->to = w->to == SIZE_MAX ? (size_t)((long)to + by) : w->to;
}

/* Adds a word behind the last one, or to it if a replacement made several words of one. */
static void add_word(struct cue_word *words, size_t *count, struct cue_word w)
{
	struct cue_word *last = *count ? &words[*count - 1] : NULL;

	if (last)
		w.at.begin = MAX(w.at.begin, last->at.begin);
	w.at.end = MAX(w.at.end, w.at.begin);
	if (last && w.from < last->to) {
		last->to = MAX(last->to, w.to);
		last->at.end = MAX(last->at.end, w.at.end);
		return;
	}
	if (last)
		last->at.end = MIN(last->at.end, w.at.begin);
	words[(*count)++] = w;
}

size_t words_match(const char *shown, const char *spoken, const struct lexicon *lexicon,
		   const struct wav_mark *marks, size_t count, struct cue_word **out)
{
	CLEANUP(lexicon_text_free) struct lexicon_text text = {0};
	struct cue_word *words = xcalloc(count + 1, sizeof(*words));
	size_t found = 0, matched = 0;

	lexicon_apply(lexicon, shown, strlen(shown), &text);
	if (strcmp(text.spoken, spoken) != 0) /* a cut lies inside a replacement */
		count = 0;
	for (size_t i = 0, at = 0; i < count; i++) {
		const char *p = find_word(spoken, spoken + at, marks[i].text);
		if (!p)
			continue;
		matched++;
		struct cue_word w = {(size_t)(p - spoken),
				     (size_t)(p - spoken) + strlen(marks[i].text),
				     {marks[i].begin, marks[i].end}};
		at = w.to;
		show_word(&text, &w);
		add_word(words, &found, w);
	}
	if (matched * 2 < count) /* marks of another text */
		found = 0;
	for (size_t i = 0; i + 1 < found; i++)
		if (words[i].at.end == words[i].at.begin) /* unknown */
			words[i].at.end = words[i + 1].at.begin;
	*out = words;
	return found;
}
