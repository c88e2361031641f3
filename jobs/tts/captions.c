/* captions.c - cuts the spoken text into captions, and writes SRT, WebVTT and chapters */
#include "join.h"

#include <math.h>
#include <stdlib.h>

/* ---- captions ---- */

#define SHORTEST_MS 1000
#define APART_MS    500 /* cues further apart share a caption only if one would be too short */
#define ROOM        (CAPTION_WIDTH * CAPTION_LINES)

/* Costs of a caption. The cheapest way to cut the words wins. */
#define COST_SHORT   1e6    /* times the missing part of the shortest time on screen */
#define COST_PHRASE  1000.0 /* it ends inside a phrase */
#define COST_INSIDE  80.0   /* a sentence ends inside: more than a caption of its own costs */
#define COST_SHARED  60.0   /* two cues share the caption */
#define COST_APART   120.0
#define COST_CAPTION 30.0
#define COST_UNEVEN  20.0 /* times the square of the empty share of its room */

/* A part of a text that is never cut. */
struct word {
	const char *text;
	size_t len;
	int width;  /* in columns */
	bool blank; /* a caption may end before it */
	bool stop;  /* a sentence ends here */
	double cut; /* cost of a caption that ends here */
	int64_t begin,
		end; /* times at which a caption with this first or last word begins or ends */
	int64_t gap; /* silence before a cue's first word; -1: not a first word */
	const char *language;
};

struct words {
	struct word *list;
	size_t count, cap;
};

/* ---- words ---- */

/* East Asian letters and emoji take two columns; a line may break between any two of them. */
static bool is_wide(uint32_t c)
{
	return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
	       (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
	       (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
	       (c >= 0xffe0 && c <= 0xffe6) || (c >= 0x1f300 && c <= 0x1faff) ||
	       (c >= 0x20000 && c <= 0x3fffd);
}

static int width_of(uint32_t c)
{
	return split_is_mark(c) ? 0 : is_wide(c) ? 2 : 1;
}

/* Returns true if no line may begin with this character, whose bytes are at[len]. */
static bool cannot_begin_line(uint32_t c, const char *at, size_t len)
{
	return split_is_mark(c) || split_end(at, len) != SPLIT_WORD ||
	       strchr(")]}\xbb", c < 0x100 ? (int)c : 'x') || c == 0x300d || c == 0x300f ||
	       c == 0xff09 || c == 0x201d || c == 0x2019;
}

/* Returns whether a line may break here without a blank. at[len]: the bytes of `after`. */
static bool can_break_between(uint32_t before, uint32_t after, const char *at, size_t len)
{
	return (is_wide(before) || is_wide(after)) && before != 0x200d &&
	       !cannot_begin_line(after, at, len);
}

/* Sets what a caption costs that ends behind the word. */
static void set_cut(struct word *w, const char *text, const char *language)
{
	enum split_end end = split_end_at(text, w->text + w->len, language);

	w->stop = end == SPLIT_STOP;
	switch (end) {
	case SPLIT_STOP: w->cut = 2; return;
	case SPLIT_COMMA: w->cut = 6; return;
	case SPLIT_WORD: break;
	}
	/* keep an article or a preposition with the next word */
	w->cut = COST_PHRASE + (w->width <= 3 ? 30 : 20);
}

/* Reads the word at *at of the text and moves *at behind it. Returns false at the end of the text.
 */
static bool next_word(const char *text, const char **at, const char *language, struct word *w)
{
	uint32_t before = 0;

	*w = (struct word){.blank = **at == ' ', .gap = -1, .language = language};
	*at += w->blank;
	w->text = *at;
	while (**at && (**at != ' ' || (w->len && split_glues(text, *at)))) {
		const char *next = *at;
		uint32_t c = utf8_next(&next);
		if (w->len && (w->width + width_of(c) > CAPTION_WIDTH ||
			       can_break_between(before, c, *at, (size_t)(next - *at))))
			break;
		w->width += width_of(c);
		w->len += (size_t)(next - *at);
		*at = next;
		before = c;
	}
	set_cut(w, text, language);
	return w->len > 0;
}

static void add_word(struct words *to, const struct word *w)
{
	GROW(to->list, to->count, to->cap);
	to->list[to->count++] = *w;
}

/* ---- lines ---- */

/* The lines of a text, filled word by word. */
struct lines {
	size_t count;
	int width; /* of the last line */
};

static void lines_add(struct lines *l, const struct word *w)
{
	int width = l->width + (w->blank && l->width) + w->width;

	if (!l->count || width > CAPTION_WIDTH) {
		l->count++;
		width = w->width;
	}
	l->width = width;
}

/* The width of one line with the words in [from, to). */
static int width_between(const struct words *words, size_t from, size_t to)
{
	int width = 0;

	for (size_t i = from; i < to; i++)
		width += words->list[i].width + (i > from && words->list[i].blank);
	return width;
}

/* The index of the word that begins the second of two lines; 0: two are too few. */
static size_t find_best_break(const struct words *words)
{
	size_t best = 0;
	double least = 0;

	for (size_t i = 1; i < words->count; i++) {
		int first = width_between(words, 0, i),
		    second = width_between(words, i, words->count);
		double cost = abs(first - second) + words->list[i - 1].cut;
		if (first > CAPTION_WIDTH || second > CAPTION_WIDTH || (best && cost >= least))
			continue;
		best = i;
		least = cost;
	}
	return best;
}

static struct piece line_of(const struct words *words, size_t from, size_t to)
{
	const struct word *first = &words->list[from], *last = &words->list[to - 1];

	return (struct piece){first->text, (size_t)(last->text + last->len - first->text)};
}

size_t captions_wrap(const char *text, const char *language, struct piece **out)
{
	struct words words = {0};
	struct word w;
	struct piece *pieces = NULL;
	size_t count = 0, cap = 0, from = 0;
	struct lines lines = {0};

	for (const char *at = text; next_word(text, &at, language, &w);)
		add_word(&words, &w);
	int all = width_between(&words, 0, words.count);
	size_t second = all > CAPTION_WIDTH && all <= ROOM + 1 ? find_best_break(&words) : 0;
	for (size_t i = 0; i < words.count; i++) {
		size_t before = lines.count;
		lines_add(&lines, &words.list[i]);
		if (i == 0 || (second ? i != second : lines.count == before))
			continue;
		GROW(pieces, count, cap);
		pieces[count++] = line_of(&words, from, i);
		from = i;
	}
	if (words.count) {
		GROW(pieces, count, cap);
		pieces[count++] = line_of(&words, from, words.count);
	}
	free(words.list);
	*out = pieces;
	return count;
}

/* ---- times ---- */

static void set_times(struct word *words, size_t count, const struct cue *cue)
{
	struct timeline *timeline = timeline_make(cue);
	int64_t last = cue->begin;

	for (size_t i = 0; i < count; i++) {
		size_t at = (size_t)(words[i].text - cue->text);
		int64_t begin = timeline_begin(timeline, at),
			end = timeline_end(timeline, at + words[i].len);
		words[i].begin = MIN(MAX(begin, last), cue->end);
		words[i].end = last = MIN(MAX(end, words[i].begin), cue->end);
	}
	timeline_free(timeline);
}

/* Appends the words of a cue, with their times. gap: the silence before the cue. */
static void add_cue(struct words *to, const struct cue *cue, int64_t gap)
{
	const char *at = cue->text;
	size_t first = to->count;
	struct word w;

	while (next_word(cue->text, &at, cue->language, &w))
		add_word(to, &w);
	if (to->count == first)
		return;
	set_times(&to->list[first], to->count - first, cue);
	to->list[first].blank = true;
	to->list[first].gap = gap;
	to->list[to->count - 1].cut = 0;
	to->list[to->count - 1].stop = false; /* sharing with another cue has its own cost */
}

/* ---- the cheapest cut ---- */

/* Neighbouring cues that may share captions. */
struct group {
	struct words words;
	int64_t next;     /* start of the next sound; INT64_MAX: none */
	int64_t shortest; /* a second and APART_MS, in samples */
	int64_t apart;
};

/* The end of a caption whose last word is list[to - 1], if it need not stay longer: up to the next
 * word of its cue, unless the voice pauses. */
static int64_t end_of_caption(const struct group *g, size_t to)
{
	int64_t end = g->words.list[to - 1].end;
	const struct word *next = to < g->words.count ? &g->words.list[to] : NULL;

	return next && next->gap < 0 && next->begin - end < g->apart ? next->begin : end;
}

/* Cost of a caption of the words in [from, to); inside: cost of what lies within. */
static double cost_of_caption(const struct group *g, size_t from, size_t to, int width,
			      double inside)
{
	const struct word *first = &g->words.list[from], *last = &g->words.list[to - 1];
	int64_t next = to < g->words.count ? g->words.list[to].begin
		       : g->next == INT64_MAX
			       ? last->end /* prefer a joined caption to a remainder */
			       : g->next;
	int64_t end = end_of_caption(g, to),
		shown = MIN(MAX(end, first->begin + g->shortest), next) - first->begin;
	double empty = 1 - MIN((double)width / ROOM, 1);
	double cost = COST_CAPTION + COST_UNEVEN * empty * empty + last->cut + inside;

	if (shown < g->shortest)
		cost += COST_SHORT * (double)(g->shortest - shown) / (double)g->shortest;
	return cost;
}

/* Fills in, for each word, the first word of the cheapest caption that ends with it. */
static void cut_cheaply(const struct group *g, size_t *begins)
{
	size_t count = g->words.count;
	double *least = xcalloc(count + 1, sizeof(*least));

	for (size_t i = 1; i <= count; i++)
		least[i] = INFINITY;
	for (size_t from = 0; from < count; from++) {
		struct lines lines = {0};
		double inside = 0;
		int width = 0;
		for (size_t i = from; i < count; i++) {
			const struct word *w = &g->words.list[i];
			lines_add(&lines, w);
			if (lines.count > CAPTION_LINES)
				break;
			width += w->width + w->blank;
			if (i > from && w->gap >= 0)
				inside += w->gap > g->apart ? COST_APART : COST_SHARED;
			double cost = least[from] + cost_of_caption(g, from, i + 1, width, inside);
			inside += w->stop ? COST_INSIDE : 0;
			if (cost >= least[i + 1])
				continue;
			least[i + 1] = cost;
			begins[i] = from;
		}
	}
	free(least);
}

struct caption_list {
	struct caption *items;
	size_t count, cap;
};

static void add_caption(struct caption_list *to, const struct group *g, size_t from, size_t stop)
{
	const struct word *words = g->words.list;
	struct str text = STR_INIT;

	for (size_t i = from; i < stop; i++) {
		str_add(&text, i > from && words[i].blank ? " " : "");
		str_addn(&text, words[i].text, words[i].len);
	}
	int64_t next = stop < g->words.count ? words[stop].begin : g->next;
	int64_t begin = words[from].begin,
		end = MAX(end_of_caption(g, stop), MIN(begin + g->shortest, next));
	GROW(to->items, to->count, to->cap);
	to->items[to->count++] =
		(struct caption){str_detach(&text), begin, end, words[from].language};
}

/* Appends the captions of a group in order, and empties the group. */
static void add_captions_of_group(struct caption_list *to, struct group *g)
{
	size_t count = g->words.count, first = to->count;
	size_t *begins = xcalloc(count + 1, sizeof(*begins));

	cut_cheaply(g, begins);
	for (size_t stop = count; stop > 0; stop = begins[stop - 1])
		add_caption(to, g, begins[stop - 1], stop);
	for (size_t a = first, b = to->count; a + 1 < b;
	     a++, b--) { /* captions were added from last to first */
		struct caption swapped = to->items[a];
		to->items[a] = to->items[b - 1];
		to->items[b - 1] = swapped;
	}
	free(begins);
	g->words.count = 0;
}

/* Returns whether cue i is too short for a caption of its own. */
static bool is_short_cue(const struct cue *cues, size_t count, size_t i, int64_t shortest)
{
	return (i + 1 < count ? cues[i + 1].begin : cues[i].end) - cues[i].begin < shortest;
}

size_t captions_make(struct caption **out, const struct cue *cues, size_t count, int rate)
{
	struct group g = {.shortest = (int64_t)rate * SHORTEST_MS / 1000,
			  .apart = (int64_t)rate * APART_MS / 1000};
	struct caption_list list = {0};

	for (size_t i = 0; i < count; i++) {
		int64_t gap = i ? cues[i].begin - cues[i - 1].end : 0;
		bool shares = i && gap < g.shortest &&
			      (is_short_cue(cues, count, i - 1, g.shortest) ||
			       is_short_cue(cues, count, i, g.shortest));
		g.next = cues[i].begin;
		if (!shares)
			add_captions_of_group(&list, &g);
		add_cue(&g.words, &cues[i], gap);
	}
	g.next = INT64_MAX;
	add_captions_of_group(&list, &g);
	free(g.words.list);
	*out = list.items;
	return list.count;
}

void captions_free(struct caption *captions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(captions[i].text);
	free(captions);
}

/* ---- subtitles: SRT, WebVTT and FFMETADATA chapters ---- */

enum style { STYLE_SRT, STYLE_VTT };

static void add_time(struct str *to, int64_t frames, int rate, char decimal)
{
	int64_t ms = (frames * 1000 + rate / 2) / rate;

	str_addf(to, "%02lld:%02lld:%02lld%c%03lld", (long long)(ms / 3600000),
		 (long long)(ms / 60000 % 60), (long long)(ms / 1000 % 60), decimal,
		 (long long)(ms % 1000));
}

/* VTT has escapes. SRT has none, so its arrow, which players read as a time, is shortened. */
static void add_escaped(struct str *to, const char *text, size_t len, enum style style)
{
	for (size_t i = 0; i < len; i++) {
		if (style == STYLE_VTT && text[i] == '&')
			str_add(to, "&amp;");
		else if (style == STYLE_VTT && text[i] == '<')
			str_add(to, "&lt;");
		else if (style == STYLE_VTT && text[i] == '>')
			str_add(to, "&gt;");
		else if (style == STYLE_SRT && len - i >= 3 && !memcmp(text + i, "-->", 3)) {
			str_add(to, "->");
			i += 2;
		} else
			str_addc(to, text[i]);
	}
}

static void subtitles_add_caption(struct str *to, const struct caption *c, size_t number, int rate,
				  enum style style)
{
	char decimal = style == STYLE_SRT ? ',' : '.';
	struct piece *lines;
	size_t count = captions_wrap(c->text, c->language, &lines);

	if (style == STYLE_SRT)
		str_addf(to, "%zu\n", number);
	add_time(to, c->begin, rate, decimal);
	str_add(to, " --> ");
	add_time(to, c->end, rate, decimal);
	str_addc(to, '\n');
	for (size_t i = 0; i < count; i++) {
		add_escaped(to, lines[i].text, lines[i].len, style);
		str_addc(to, '\n');
	}
	str_addc(to, '\n');
	free(lines);
}

static void add_all_captions(struct str *to, const struct cue *cues, size_t count, int64_t zero,
			     int rate, enum style style)
{
	struct caption *captions;
	size_t made = captions_make(&captions, cues, count, rate);

	for (size_t i = 0; i < made; i++) {
		captions[i].begin -= zero;
		captions[i].end -= zero;
		subtitles_add_caption(to, &captions[i], i + 1, rate, style);
	}
	captions_free(captions, made);
}

void subtitles_srt(struct str *to, const struct cue *cues, size_t count, int64_t zero, int rate)
{
	add_all_captions(to, cues, count, zero, rate, STYLE_SRT);
}

void subtitles_vtt(struct str *to, const struct cue *cues, size_t count, int64_t zero, int rate)
{
	str_add(to, "WEBVTT\n\n");
	add_all_captions(to, cues, count, zero, rate, STYLE_VTT);
}

void subtitles_add_value(struct str *to, const char *value)
{
	for (const char *p = value; *p; p++) {
		if (strchr("=;#\\\n", *p))
			str_addc(to, '\\');
		str_addc(to, *p);
	}
	str_addc(to, '\n');
}

void subtitles_chapters(struct str *to, const struct cue *chapters, size_t count, int rate)
{
	str_add(to, ";FFMETADATA1\n");
	for (size_t i = 0; i < count; i++) {
		if (chapters[i].begin == chapters[i].end)
			continue;
		str_addf(to, "[CHAPTER]\nTIMEBASE=1/%d\nSTART=%lld\nEND=%lld\ntitle=", rate,
			 (long long)chapters[i].begin, (long long)chapters[i].end);
		subtitles_add_value(to, chapters[i].text);
	}
}

void subtitles_chapter_tags(struct str *to, const struct cue *chapters, size_t count, int rate)
{
	size_t number = 0;

	str_add(to, ";FFMETADATA1\n");
	for (size_t i = 0; i < count; i++) {
		if (chapters[i].begin == chapters[i].end)
			continue;
		str_addf(to, "CHAPTER%03zu=", number);
		add_time(to, chapters[i].begin, rate, '.');
		str_addf(to, "\nCHAPTER%03zuNAME=", number++);
		subtitles_add_value(to, chapters[i].text);
	}
}
