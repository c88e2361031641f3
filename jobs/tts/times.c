/* times.c - when each place of a spoken text is heard: by the words that the engine marked, else by
 * the pauses in the sound */
#include "join.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

/* A place of the text and a time at which the voice is there. */
struct anchor {
	double chars; /* spoken length of the text before the place */
	int64_t time;
};

struct timeline {
	double *chars; /* for each byte, and the end */
	size_t len;
	struct anchor *anchors; /* in order of both */
	size_t count, cap;
};

/* ---- spoken length ---- */

/* The spoken length of a character, in letters. Signs and blanks are not heard. */
static double length_of(uint32_t c)
{
	if (!split_is_spoken(c))
		return 0;
	return c >= 0x2e80 && c <= 0xd7a3 ? 3 : 1;
}

/* Letters of the words for numbers: one digit, two, "hundred" and "thousand". pairs: 1921 is read
 * as "nineteen twenty-one", with that many letters between them; negative: it is not. */
static const struct number_words {
	const char *language;
	double unit, two, hundred, thousand, pairs;
} all_number_words[] = {
	{"en", 4, 8, 10, 8, 0},  {"de", 4, 11, 7, 7, 7},  {"fr", 4, 9, 4, 5, -1},
	{"es", 4, 11, 7, 3, -1}, {"it", 4, 9, 5, 5, -1},  {"pt", 4, 11, 8, 3, -1},
	{"nl", 4, 11, 7, 7, 7},  {"pl", 5, 14, 6, 6, -1}, {"", 4, 9, 6, 6, -1},
};

static const struct number_words *number_words_of(const char *language)
{
	size_t i = 0;

	while (all_number_words[i].language[0] &&
	       (!language || strncmp(language, all_number_words[i].language, 2)))
		i++;
	return &all_number_words[i];
}

/* The letters of the words of a number below a million. */
static double number_length(const struct number_words *w, unsigned n)
{
	if (n < 10)
		return n ? w->unit : 0;
	if (n < 100)
		return n % 10 || n == 10 ? w->two : 6;
	if (n < 1000)
		return (n < 200 ? 0 : w->unit) + w->hundred + number_length(w, n % 100);
	if (w->pairs >= 0 && n >= 1100 && n < 2000)
		return w->two + w->pairs + number_length(w, n % 100);
	return (n < 2000 ? 0 : number_length(w, n / 1000)) + w->thousand +
	       number_length(w, n % 1000);
}

/* The length of each of `count` digits. */
static double length_of_digit(const struct number_words *w, const char *digits, size_t count)
{
	unsigned n = 0;

	if (count > 6 || *digits == '0')
		return w->unit;
	for (size_t i = 0; i < count; i++)
		n = n * 10 + (unsigned)(digits[i] - '0');
	return number_length(w, n) / (double)count;
}

/* Adds up the letters before each byte of the text, and at its end. chars NULL: only the sum is
 * wanted. Returns it. */
static double measure_text(const char *text, const char *language, double *chars)
{
	const struct number_words *words = number_words_of(language);
	double sum = 0, digit = 0;
	size_t digits = 0;

	for (const char *p = text; *p;) {
		const char *from = p;
		if (!digits) {
			digits = strspn(p, "0123456789");
			digit = digits ? length_of_digit(words, p, digits) : 0;
		}
		uint32_t c = utf8_next(&p);
		for (; chars && from < p; from++)
			chars[from - text] = sum;
		sum += digits ? digit : length_of(c);
		digits -= digits > 0;
	}
	return sum;
}

double times_letters(const char *text, const char *language)
{
	return measure_text(text, language, NULL);
}

static void add_anchor(struct timeline *t, size_t at, int64_t time)
{
	GROW(t->anchors, t->count, t->cap);
	t->anchors[t->count++] = (struct anchor){t->chars[at], time};
}

/* ---- by pauses ----
 * Matches the ends of sentences and clauses with the pauses of the voice, by dynamic programming: a
 * stretch between two matches should take the time of its letters. */

#define PAIRS_MOST  4000000 /* larger texts are spread by their letters alone */
#define LOOK_BACK   10      /* ends or pauses that may lie between two matches */
#define UNSURE      0.15    /* spread of the speed of speech */
#define UNSURE_S    0.25
#define COST_STOP   6.0 /* a sentence ends without a pause */
#define COST_CLAUSE 2.0
#define COST_POINT                                                                                 \
	0.5              /* the same behind an abbreviation or an ordinal, where some voices pause \
			  */
#define COST_PAUSE   1.0 /* nothing ends at a pause */
#define COST_PAUSE_S 8.0 /* and for each second of it */

/* A place of the text that may have a pause. */
struct stop {
	size_t at, next; /* the end of a clause, and the start of the next */
	double cost;     /* if it has none */
};

struct match {
	const struct cue *cue;
	const struct timeline *timeline;
	struct stop *stops;
	size_t count, cap;
	double letter; /* time of a letter, in samples */
	double *least; /* of stop i and pause k; 0 of both: the start */
	size_t *from;  /* its index in least[] */
};

static void find_stops(struct match *m, const char *text)
{
	for (const char *p = text; *p;) {
		utf8_next(&p);
		enum split_end end = *p ? split_end_at(text, p, m->cue->language) : SPLIT_WORD;
		bool point = end == SPLIT_WORD && p[-1] == '.' && *p == ' ';
		if (end == SPLIT_WORD && !point)
			continue;
		size_t at = (size_t)(p - text);
		GROW(m->stops, m->count, m->cap);
		m->stops[m->count++] = (struct stop){at, at + (*p == ' '),
						     end == SPLIT_STOP ? COST_STOP
						     : point           ? COST_POINT
								       : COST_CLAUSE};
	}
}

/* The place in text and sound behind stop i and pause k; 0: the start, count + 1: the end. */
static double chars_behind(const struct match *m, size_t i)
{
	return i == 0 ? 0
		      : m->timeline->chars[i > m->count ? m->timeline->len : m->stops[i - 1].next];
}

static int64_t time_behind(const struct match *m, size_t k)
{
	return k == 0                    ? m->cue->sound.begin
	       : k > m->cue->pause_count ? m->cue->sound.end
					 : m->cue->pauses[k - 1].end;
}

/* Cost of the stretch from match (i, k) to (to_i, to_k), both in their order. */
static double cost_between(const struct match *m, size_t i, size_t k, size_t to_i, size_t to_k)
{
	double rate = m->cue->rate, cost = 0, silent = 0;
	int64_t end =
		to_k > m->cue->pause_count ? m->cue->sound.end : m->cue->pauses[to_k - 1].begin;

	for (size_t p = k + 1; p < to_k; p++) {
		double pause = (double)(m->cue->pauses[p - 1].end - m->cue->pauses[p - 1].begin);
		silent += pause;
		cost += COST_PAUSE + COST_PAUSE_S * pause / rate;
	}
	for (size_t s = i + 1; s < to_i; s++)
		cost += m->stops[s - 1].cost;
	double want = (chars_behind(m, to_i) - chars_behind(m, i)) * m->letter / rate,
	       took = ((double)(end - time_behind(m, k)) - silent) / rate,
	       off = (took - want) / (UNSURE * want + UNSURE_S);
	return cost + off * off;
}

static size_t pair_of(const struct match *m, size_t i, size_t k)
{
	return i * (m->cue->pause_count + 2) + k;
}

/* Finds the cheapest match before (i, k). */
static void reach_pair(struct match *m, size_t i, size_t k)
{
	size_t own = pair_of(m, i, k);
	bool end = i > m->count;

	m->least[own] = INFINITY;
	for (size_t a = i > LOOK_BACK ? i - LOOK_BACK : 0; a < i; a++)
		for (size_t b = k > LOOK_BACK ? k - LOOK_BACK : 0; b < k; b++) {
			double cost = m->least[pair_of(m, a, b)];
			if ((a == 0) != (b == 0) || cost == INFINITY)
				continue;
			cost += cost_between(m, a, b, i, k);
			if (cost < m->least[own]) {
				m->least[own] = cost;
				m->from[own] = pair_of(m, a, b);
			}
		}
	if (end && m->least[own] == INFINITY) { /* too much lies between: no match at all */
		m->least[own] = 0;
		m->from[own] = 0;
	}
}

/* Adds the matches before pair `own` as anchors, in order. */
static void add_matches(const struct match *m, struct timeline *to, size_t own)
{
	size_t wide = m->cue->pause_count + 2, before = to->count;

	for (size_t p = m->from[own]; p; p = m->from[p]) {
		const struct stop *s = &m->stops[p / wide - 1];
		add_anchor(to, s->next, m->cue->pauses[p % wide - 1].end);
		add_anchor(to, s->at, m->cue->pauses[p % wide - 1].begin);
	}
	for (size_t a = before, b = to->count; a + 1 < b; a++, b--) { /* last came first */
		struct anchor swapped = to->anchors[a];
		to->anchors[a] = to->anchors[b - 1];
		to->anchors[b - 1] = swapped;
	}
}

static void match_pauses(struct timeline *t, const struct cue *cue)
{
	struct match m = {.cue = cue, .timeline = t};
	double silent = 0;

	find_stops(&m, cue->text);
	size_t pairs = (m.count + 2) * (cue->pause_count + 2);
	if (!m.count || !cue->pause_count || pairs > PAIRS_MOST || !(t->chars[t->len] > 0)) {
		free(m.stops);
		return;
	}
	for (size_t k = 0; k < cue->pause_count; k++)
		silent += (double)(cue->pauses[k].end - cue->pauses[k].begin);
	m.letter = MAX((double)(cue->sound.end - cue->sound.begin) - silent, 1) / t->chars[t->len];
	m.least = xcalloc(pairs, sizeof(*m.least));
	m.from = xcalloc(pairs, sizeof(*m.from));
	for (size_t i = 1; i <= m.count; i++)
		for (size_t k = 1; k <= cue->pause_count; k++)
			reach_pair(&m, i, k);
	reach_pair(&m, m.count + 1, cue->pause_count + 1);
	add_matches(&m, t, pair_of(&m, m.count + 1, cue->pause_count + 1));
	free(m.least);
	free(m.from);
	free(m.stops);
}

/* ---- the timeline ---- */

struct timeline *timeline_make(const struct cue *cue)
{
	struct timeline *t = xcalloc(1, sizeof(*t));
	struct span sound = cue->sound.end > cue->sound.begin ? cue->sound
							      : (struct span){cue->begin, cue->end};

	t->len = strlen(cue->text);
	t->chars = xcalloc(t->len + 1, sizeof(*t->chars));
	t->chars[t->len] = measure_text(cue->text, cue->language, t->chars);
	if (!cue->word_count) {
		add_anchor(t, 0, sound.begin);
		match_pauses(t, cue);
		add_anchor(t, t->len, sound.end);
		return t;
	}
	if (cue->words[0].from > 0)
		add_anchor(t, 0, sound.begin);
	for (size_t i = 0; i < cue->word_count; i++) {
		add_anchor(t, cue->words[i].from, cue->words[i].at.begin);
		add_anchor(t, cue->words[i].to, cue->words[i].at.end);
	}
	if (cue->words[cue->word_count - 1].to < t->len)
		add_anchor(t, t->len, sound.end);
	return t;
}

void timeline_free(struct timeline *t)
{
	if (!t)
		return;
	free(t->chars);
	free(t->anchors);
	free(t);
}

/* The index of the first anchor whose place is at or, if `behind`, behind this place. */
static size_t first_anchor(const struct timeline *t, double chars, bool behind)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (behind ? t->anchors[mid].chars <= chars : t->anchors[mid].chars < chars)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The time at a place between the anchors before `next` and `next`. */
static int64_t time_between(const struct timeline *t, size_t next, double chars)
{
	if (next == 0)
		return t->anchors[0].time;
	const struct anchor *a = &t->anchors[next - 1];
	if (next == t->count)
		return a->time;
	const struct anchor *b = &t->anchors[next];
	double share = b->chars > a->chars ? (chars - a->chars) / (b->chars - a->chars) : 1;
	return a->time + (int64_t)((double)(b->time - a->time) * share);
}

int64_t timeline_begin(const struct timeline *t, size_t at)
{
	return time_between(t, first_anchor(t, t->chars[at], true), t->chars[at]);
}

int64_t timeline_end(const struct timeline *t, size_t at)
{
	return time_between(t, first_anchor(t, t->chars[at], false), t->chars[at]);
}
