/* words.c - finds the words of the shown text that an engine marked, and lists all with their times
 */
#include "join.h"

#include <ctype.h>
#include <jansson.h>
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

/* ---- joined.words.json ---- */

/* Returns whether a word of its own begins here inside a text without blanks: where the engine
 * marked one. *mark: the first mark that may, moved on. */
static bool begins_marked(const struct cue *cue, size_t at, size_t *mark)
{
	while (*mark < cue->word_count && cue->words[*mark].from < at)
		++*mark;
	return *mark < cue->word_count && cue->words[*mark].from == at &&
	       (unsigned char)cue->text[at] >= 0x80 && (unsigned char)cue->text[at - 1] >= 0x80;
}

/* The end of the word that begins at this byte of the cue's text. */
static size_t end_of_word(const struct cue *cue, size_t at, size_t *mark)
{
	const char *text = cue->text, *p = text + at;

	utf8_next(&p);
	while (*p && (*p != ' ' || split_glues(text, p)) &&
	       !begins_marked(cue, (size_t)(p - text), mark) &&
	       (*p == ' ' || split_end_at(text, p, cue->language) == SPLIT_WORD))
		utf8_next(&p);
	return (size_t)(p - text);
}

/* Returns whether the engine marked a part of this word. *mark: as in begins_marked(). */
static bool is_marked(const struct cue *cue, size_t from, size_t to, size_t *mark)
{
	while (*mark < cue->word_count && cue->words[*mark].to <= from)
		++*mark;
	return *mark < cue->word_count && cue->words[*mark].from < to;
}

static void add_line(struct str *to, const struct cue *cue, const char *segment, size_t from,
		     size_t end, struct span at, bool measured)
{
	CLEANUP(free_text) char *shown = xstrndup(cue->text + from, end - from);
	json_t *line = json_pack("{s:s}", "word", shown);
	CLEANUP(free_text) char *word = json_dumps(line, JSON_COMPACT);

	str_addf(to, "%s%.*s,\"start\":%.3f,\"end\":%.3f", to->len > 2 ? ",\n" : "",
		 (int)strlen(word) - 1, word, (double)at.begin / cue->rate,
		 (double)at.end / cue->rate);
	json_decref(line);
	line = json_pack("{s:s}", "segment", segment);
	CLEANUP(free_text) char *rest = json_dumps(line, JSON_COMPACT);
	str_addf(to, ",%.*s%s}", (int)strlen(rest) - 2, rest + 1,
		 measured ? "" : ",\"estimated\":true");
	json_decref(line);
}

static void add_words(struct str *to, const struct cue *cue, const char *segment)
{
	struct timeline *timeline = timeline_make(cue);
	int64_t last = cue->begin;
	size_t in_word = 0, seen = 0;

	for (size_t at = 0; cue->text[at];) {
		size_t end = end_of_word(cue, at, &in_word);
		struct span heard = {timeline_begin(timeline, at), timeline_end(timeline, end)};
		heard.begin = MIN(MAX(heard.begin, last), cue->end);
		heard.end = last = MIN(MAX(heard.end, heard.begin), cue->end);
		add_line(to, cue, segment, at, end, heard, is_marked(cue, at, end, &seen));
		at = end + (cue->text[end] == ' ');
	}
	timeline_free(timeline);
}

void words_json(struct str *to, const struct cue *cues, const struct join_piece *pieces,
		size_t count)
{
	str_add(to, "[\n");
	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(pieces[i].file);
		bool wav = len > 4 && !strcmp(pieces[i].file + len - 4, ".wav");
		CLEANUP(free_text) char *segment = xstrndup(pieces[i].file, wav ? len - 4 : len);
		add_words(to, &cues[i], segment);
	}
	str_add(to, "\n]\n");
}
