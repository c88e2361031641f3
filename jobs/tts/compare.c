/* compare.c - compares a text with the transcript of its file: brings both to plain words, aligns
 * them, and finds the longest run of words that differ
 *
 * Transcribers spell names, compounds and numbers in their own way, so single words differ in good
 * files. A model that repeats, skips or babbles gets several words in a row wrong. */
#include "compare.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

/* ---- words ----
 * A text as plain words: lower case, no punctuation, digits as tokens of their own. */

enum {
	WORDS_MOST = 40000,
	WORD_MOST = 64, /* bytes; the rest of a longer word is dropped */
};

struct words {
	char **list;
	size_t count, cap;
	struct str now; /* the word that is being read */
};

static void words_free(struct words *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->list[i]);
	free(w->list);
	str_free(&w->now);
}

static inline void words_free_cleanup(struct words *w)
{
	words_free(w);
}

static void add_word(struct words *to, const char *word)
{
	if (to->count >= WORDS_MOST)
		return;
	GROW(to->list, to->count, to->cap);
	to->list[to->count++] = xstrdup(word);
}

static void end_word(struct words *to)
{
	if (to->now.len)
		add_word(to, str_text(&to->now));
	str_reset(&to->now);
}

static bool is_digit(uint32_t c)
{
	return c >= '0' && c <= '9';
}

static bool is_apostrophe(uint32_t c)
{
	return c == '\'' || c == 0x2019 || c == 0x2bc || c == 0x2018;
}

/* Letters and marks of any script; signs and punctuation are none. */
static bool is_letter(uint32_t c)
{
	if (c < 0x80)
		return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
	return c == 0xaa || c == 0xb5 || c == 0xba ||
	       (c >= 0xc0 && c != 0xd7 && c != 0xf7 && !(c >= 0x2000 && c <= 0x2bff) &&
		!(c >= 0x3000 && c <= 0x303f) && !(c >= 0xfe00 && c <= 0xfe6f) && c < 0xff00 &&
		c != 0x37e && c != 0x387 && c != 0x589 && c != 0x60c && c != 0x61b && c != 0x61f &&
		c != 0x66a && c != 0x6d4 && c != 0x964 && c != 0x965);
}

static bool is_accent(uint32_t c)
{
	return c >= 0x300 && c <= 0x36f;
}

/* Latin, Greek and Cyrillic. */
static uint32_t lower(uint32_t c)
{
	if (c < 0x80)
		return c >= 'A' && c <= 'Z' ? c + 32 : c;
	if ((c >= 0xc0 && c <= 0xde && c != 0xd7) || (c >= 0x391 && c <= 0x3a9) ||
	    (c >= 0x410 && c <= 0x42f))
		return c + 32;
	if (c >= 0x400 && c <= 0x40f)
		return c + 80;
	if ((c >= 0x100 && c <= 0x137) || (c >= 0x14a && c <= 0x177) || (c >= 0x460 && c <= 0x481))
		return c | 1;
	if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e))
		return c + (c & 1);
	return c;
}

static const char *name_of_sign(uint32_t c, bool english)
{
	switch (english ? c : 0) {
	case '&': return "and";
	case '@': return "at";
	case '+': return "plus";
	case '=': return "equals";
	case '%': return "percent";
	case '$': return "dollars";
	case 0xa3: return "pounds";
	case 0x20ac: return "euros";
	case 0xb0: return "degrees";
	default: return NULL;
	}
}

/* Skips the phonemes of kokoro, which stand behind a word in brackets: "[Kyiv](/kˈiv/)". */
static bool skip_phonemes(const char **at)
{
	const char *end = starts_with(*at, "](/") ? strstr(*at, "/)") : NULL;

	if (end)
		*at = end + 2;
	return end != NULL;
}

/* Whether a full stop or comma between digits makes a decimal: "3.5", not "1,000" and not "1.". */
static bool is_decimal_point(const char *at)
{
	return at[0] == '.' && is_digit((unsigned char)at[1]);
}

static bool last_is_digit(const struct str *word)
{
	return word->len && is_digit((unsigned char)word->s[word->len - 1]);
}

static void split_words(struct words *to, const char *text, bool english)
{
	while (*text) {
		if (skip_phonemes(&text))
			continue;
		const char *here = text;
		uint32_t c = utf8_next(&text);
		const char *sign = name_of_sign(c, english);
		if (sign) {
			end_word(to);
			add_word(to, sign);
		} else if (is_digit(c) || is_letter(c)) {
			if (to->now.len && is_digit(c) != last_is_digit(&to->now) &&
			    to->now.s[to->now.len - 1] != '.')
				end_word(to);
			if (to->now.len < WORD_MOST && !is_accent(c))
				str_add_utf8(&to->now, lower(c));
		} else if (last_is_digit(&to->now) && c == ',' && is_digit((unsigned char)*text)) {
			continue; /* "1,000" */
		} else if (english && last_is_digit(&to->now) && is_decimal_point(here)) {
			str_addc(&to->now, '.');
		} else if (!is_apostrophe(c)) {
			end_word(to);
		}
	}
	end_word(to);
}

/* ---- English numbers ----
 * "nineteen eighty-four" and "1984", "$5.50" and "five dollars and fifty cents" become the same
 * digits. All numbers in a row become one word. */

enum kind { OTHER, UNIT, TEEN, TENS, HUNDRED, SCALE, DIGITS, GLUE, MONEY };

struct number_word {
	const char *word;
	enum kind kind;
	uint64_t value;
};

/* clang-format off */
static const struct number_word number_words[] = {
	{"zero", UNIT, 0}, {"nought", UNIT, 0}, {"one", UNIT, 1}, {"two", UNIT, 2}, {"three", UNIT, 3}, {"four", UNIT, 4},
	{"five", UNIT, 5}, {"six", UNIT, 6}, {"seven", UNIT, 7}, {"eight", UNIT, 8}, {"nine", UNIT, 9},
	{"first", UNIT, 1}, {"second", UNIT, 2}, {"third", UNIT, 3}, {"fourth", UNIT, 4}, {"fifth", UNIT, 5},
	{"sixth", UNIT, 6}, {"seventh", UNIT, 7}, {"eighth", UNIT, 8}, {"ninth", UNIT, 9},
	{"ten", TEEN, 10}, {"eleven", TEEN, 11}, {"twelve", TEEN, 12}, {"thirteen", TEEN, 13}, {"fourteen", TEEN, 14},
	{"fifteen", TEEN, 15}, {"sixteen", TEEN, 16}, {"seventeen", TEEN, 17}, {"eighteen", TEEN, 18}, {"nineteen", TEEN, 19},
	{"tenth", TEEN, 10}, {"eleventh", TEEN, 11}, {"twelfth", TEEN, 12}, {"thirteenth", TEEN, 13}, {"fourteenth", TEEN, 14},
	{"fifteenth", TEEN, 15}, {"sixteenth", TEEN, 16}, {"seventeenth", TEEN, 17}, {"eighteenth", TEEN, 18},
	{"nineteenth", TEEN, 19}, {"twenty", TENS, 20}, {"thirty", TENS, 30}, {"forty", TENS, 40}, {"fifty", TENS, 50},
	{"sixty", TENS, 60}, {"seventy", TENS, 70}, {"eighty", TENS, 80}, {"ninety", TENS, 90}, {"twentieth", TENS, 20},
	{"thirtieth", TENS, 30}, {"fortieth", TENS, 40}, {"fiftieth", TENS, 50}, {"sixtieth", TENS, 60},
	{"seventieth", TENS, 70}, {"eightieth", TENS, 80}, {"ninetieth", TENS, 90},
	{"hundred", HUNDRED, 100}, {"hundredth", HUNDRED, 100},
	{"thousand", SCALE, 1000}, {"thousandth", SCALE, 1000}, {"million", SCALE, 1000000}, {"millionth", SCALE, 1000000},
	{"billion", SCALE, 1000000000}, {"trillion", SCALE, 1000000000000},
	{"and", GLUE, 0}, {"point", GLUE, '.'}, {"oh", GLUE, '0'}, {"o", GLUE, '0'},
	{"dollar", MONEY, 0}, {"dollars", MONEY, 0}, {"cent", MONEY, 0}, {"cents", MONEY, 0}, {"euro", MONEY, 0},
	{"euros", MONEY, 0}, {"pound", MONEY, 0}, {"pounds", MONEY, 0}, {"pence", MONEY, 0}, {"percent", MONEY, 0},
	{0},
};

static const char *const same_words[][2] = {
	{"mr", "mister"}, {"mrs", "missus"}, {"dr", "doctor"}, {"prof", "professor"}, {"vs", "versus"}, {"ok", "okay"},
};
/* clang-format on */

static struct number_word class_of(const char *word)
{
	if (is_digit((unsigned char)word[0]))
		return (struct number_word){word, DIGITS, 0};
	for (const struct number_word *n = number_words; n->word; n++)
		if (!strcmp(n->word, word))
			return *n;
	return (struct number_word){word, OTHER, 0};
}

/* One spoken number while its words are read: 1984 is TEEN 19, then another group, TENS 80, UNIT 4.
 */
struct group {
	bool any, decimal;
	enum kind last;
	uint64_t total, part, scale;
};

static void end_group(struct group *g, struct str *digits)
{
	if (g->any)
		str_addf(digits, "%llu", (unsigned long long)(g->total + g->part));
	*g = (struct group){.decimal = g->decimal};
}

/* Whether a word of this kind continues the group: "forty" "two", not "two" "forty". */
static bool continues(const struct group *g, const struct number_word *n)
{
	switch (n->kind) {
	case UNIT: return n->value && (g->last == TENS || g->last == HUNDRED || g->last == SCALE);
	case TEEN:
	case TENS: return g->last == HUNDRED || g->last == SCALE;
	case HUNDRED: return g->part > 0 && g->part < 100;
	case SCALE:
		return g->last != SCALE && g->part > 0 && g->part < 1000 &&
		       (!g->scale || n->value < g->scale);
	default: return false;
	}
}

static void add_spoken(struct group *g, const struct number_word *n, struct str *digits)
{
	if (g->decimal && n->kind == SCALE) { /* "3.5 million" */
		end_group(g, digits);
		str_addc(digits, n->word[0]);
		g->decimal = false;
		return;
	}
	if (g->any && !continues(g, n))
		end_group(g, digits);
	if (n->kind == HUNDRED)
		g->part = g->any ? g->part * 100 : 100;
	else if (n->kind == SCALE) {
		g->total += (g->any ? g->part : 1) * n->value;
		g->part = 0;
		g->scale = n->value;
	} else
		g->part += n->value;
	g->any = true;
	g->last = n->kind;
}

static void add_digits(struct group *g, const char *word, struct str *digits)
{
	size_t len = strlen(word);

	end_group(g, digits);
	g->decimal = strchr(word, '.') != NULL;
	if (!g->decimal && word[0] != '0' && len <= 3) { /* "3 million" */
		g->any = true;
		g->part = strtoull(word, NULL, 10);
		g->last = DIGITS;
		return;
	}
	for (; *word; word++)
		if (*word != '.')
			str_addc(digits, *word);
}

/* Reads the numbers that begin at this word; returns how many words they have. */
static size_t read_numbers(const struct words *w, size_t at, struct str *digits)
{
	struct group g = {0};
	size_t end = at;

	while (end < w->count) {
		struct number_word n = class_of(w->list[end]);
		struct number_word next = class_of(end + 1 < w->count ? w->list[end + 1] : "");
		bool more = next.kind != OTHER && next.kind != GLUE && next.kind != MONEY;
		if (n.kind == OTHER || (n.kind == GLUE && !more))
			break;
		if (n.kind == DIGITS)
			add_digits(&g, n.word, digits);
		else if (n.kind == GLUE && n.value == '0')
			add_spoken(&g, &(struct number_word){"zero", UNIT, 0}, digits);
		else if (n.kind == GLUE && n.value == '.')
			g.decimal = true;
		else if (n.kind == MONEY)
			end_group(&g, digits);
		else if (n.kind != GLUE)
			add_spoken(&g, &n, digits);
		end++;
	}
	end_group(&g, digits);
	return end - at;
}

/* "21st": its ending is a word of its own by now. */
static bool is_ordinal_ending(const struct words *w, size_t at)
{
	static const char *const endings[] = {"st", "nd", "rd", "th"};

	for (size_t i = 0; at && i < ARRAY_LEN(endings); i++)
		if (!strcmp(w->list[at], endings[i]))
			return is_digit((unsigned char)w->list[at - 1][0]);
	return false;
}

static const char *usual_word(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(same_words); i++)
		if (!strcmp(word, same_words[i][0]))
			return same_words[i][1];
	return word;
}

/* A sign of money counts as part of a number that follows: "$5". */
static bool begins_number(const struct words *w, size_t at)
{
	enum kind kind = class_of(w->list[at]).kind;

	if (kind == MONEY && at + 1 < w->count)
		return class_of(w->list[at + 1]).kind == DIGITS;
	return kind != OTHER && kind != GLUE && kind != MONEY;
}

static void fold_english(struct words *to, struct words *from)
{
	size_t kept = 0;

	for (size_t i = 0; i < from->count; i++) { /* or "21st" and "March" would be apart */
		if (is_ordinal_ending(from, i))
			free(from->list[i]);
		else
			from->list[kept++] = from->list[i];
	}
	from->count = kept;
	for (size_t i = 0; i < from->count;) {
		CLEANUP(str_free) struct str digits = STR_INIT;
		if (!begins_number(from, i)) {
			add_word(to, usual_word(from->list[i++]));
			continue;
		}
		i += read_numbers(from, i, &digits);
		add_word(to, str_text(&digits));
	}
}

static bool is_english(const char *language)
{
	return language && starts_with(language, "en") &&
	       !((language[2] >= 'a' && language[2] <= 'z'));
}

static void normalise(struct words *to, const char *text, const char *language)
{
	CLEANUP(words_free) struct words plain = {0};
	bool english = is_english(language);

	split_words(english ? &plain : to, text, english);
	if (english)
		fold_english(to, &plain);
}

static void join_words(struct str *to, const struct words *w, size_t from, size_t end,
		       const char *between)
{
	for (size_t i = from; i < end; i++)
		str_addf(to, "%s%s", i > from ? between : "", w->list[i]);
}

/* ---- alignment ---- */

enum {
	CELLS_MOST = 16000000,
	SPELLED_MOST = 240, /* letters of a run that may be another spelling */
	RUN_SUSPECT = 3,
	RUN_SHORT = 2, /* in a text of which it is more than half */
};

/* Steps of the cheapest way, two bits each would do; bytes are simpler. */
enum step { SAME, OTHER_WORD, ONLY_TEXT, ONLY_HEARD };

static void fill_row(const struct words *a, const struct words *b, size_t i, uint32_t *row,
		     unsigned char *steps)
{
	uint32_t diagonal = row[0];

	row[0] = (uint32_t)i + 1;
	steps[0] = ONLY_TEXT;
	for (size_t k = 0; k < b->count; k++) {
		uint32_t above = row[k + 1];
		bool same = !strcmp(a->list[i], b->list[k]);
		uint32_t best = diagonal + !same;
		unsigned char step = same ? SAME : OTHER_WORD;
		if (above + 1 < best) {
			best = above + 1;
			step = ONLY_TEXT;
		}
		if (row[k] + 1 < best) {
			best = row[k] + 1;
			step = ONLY_HEARD;
		}
		diagonal = above;
		row[k + 1] = best;
		steps[k + 1] = step;
	}
}

static void align_rest(const struct words *a, const struct words *b, bool *in_a, bool *in_b)
{
	size_t wide = b->count + 1, i = a->count, k = b->count;
	uint32_t *row = xcalloc(wide, sizeof(*row));
	unsigned char *steps = xcalloc(a->count + 1, wide);

	for (size_t j = 0; j < wide; j++)
		row[j] = (uint32_t)j;
	memset(steps, ONLY_HEARD, wide);
	for (size_t j = 0; j < a->count; j++)
		fill_row(a, b, j, row, steps + (j + 1) * wide);
	while (i || k) {
		enum step step = !i ? ONLY_HEARD : steps[i * wide + k];
		if (step == SAME)
			in_a[i - 1] = in_b[k - 1] = true;
		i -= step != ONLY_HEARD;
		k -= step != ONLY_TEXT;
	}
	free(row);
	free(steps);
}

/* Marks which words of both have a twin in the other: first those that both begin and end with.
 * Returns false if the rest is too long to compare. */
static bool align(const struct words *a, const struct words *b, bool *in_a, bool *in_b)
{
	size_t least = MIN(a->count, b->count), front = 0, back = 0;

	while (front < least && !strcmp(a->list[front], b->list[front])) {
		in_a[front] = in_b[front] = true;
		front++;
	}
	while (back < least - front &&
	       !strcmp(a->list[a->count - 1 - back], b->list[b->count - 1 - back])) {
		back++;
		in_a[a->count - back] = in_b[b->count - back] = true;
	}
	struct words rest_a = {a->list + front, a->count - front - back};
	struct words rest_b = {b->list + front, b->count - front - back};
	if (rest_a.count + 1 > CELLS_MOST / (rest_b.count + 1))
		return false;
	align_rest(&rest_a, &rest_b, in_a + front, in_b + front);
	return true;
}

/* The edit distance of two short texts, in bytes. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t row[SPELLED_MOST + 1];

	for (size_t k = 0; k <= b_len; k++)
		row[k] = k;
	for (size_t i = 0; i < a_len; i++) {
		size_t diagonal = row[0];
		row[0] = i + 1;
		for (size_t k = 0; k < b_len; k++) {
			size_t best = MIN(MIN(row[k], row[k + 1]) + 1, diagonal + (a[i] != b[k]));
			diagonal = row[k + 1];
			row[k + 1] = best;
		}
	}
	return row[b_len];
}

/* Whether both are nearly the same letters: "light house", "Dostoevsky" heard as "Dostoyevski". */
static bool are_alike(const struct str *a, const struct str *b)
{
	if (!a->len || !b->len || a->len > SPELLED_MOST || b->len > SPELLED_MOST)
		return false;
	return distance(a->s, a->len, b->s, b->len) * 5 <= MAX(a->len, b->len) * 2;
}

static bool has_digits(const struct words *w, size_t from, size_t end)
{
	for (size_t i = from; i < end; i++)
		if (is_digit((unsigned char)w->list[i][0]))
			return true;
	return false;
}

/* In other languages than English, one side may have digits where the other has words: as many as
 * two for each digit are no difference of their own. */
static size_t words_of_digits(const struct words *w, size_t from, size_t end)
{
	size_t digits = 0;

	for (size_t i = from; i < end; i++)
		for (const char *p = w->list[i]; *p; p++)
			digits += is_digit((unsigned char)*p);
	return 2 * digits;
}

static size_t run_length(const struct words *a, size_t a_from, size_t a_end, const struct words *b,
			 size_t b_from, size_t b_end, bool english)
{
	size_t in_a = a_end - a_from, in_b = b_end - b_from, run = MAX(in_a, in_b);

	if (english || has_digits(a, a_from, a_end) == has_digits(b, b_from, b_end))
		return run;
	size_t spoken = words_of_digits(a, a_from, a_end) + words_of_digits(b, b_from, b_end);
	return MAX(run - MIN(run, spoken), (size_t)1);
}

/* Copies the words of a run, cut at a character. */
static void show_run(char to[80], const struct words *w, size_t from, size_t end)
{
	CLEANUP(str_free) struct str s = STR_INIT;

	join_words(&s, w, from, MIN(end, from + 12), " ");
	if (s.len < 80) {
		memcpy(to, str_text(&s), s.len + 1);
		return;
	}
	size_t fit = (size_t)utf8_fit(s.s, 76);
	memcpy(to, s.s, fit);
	memcpy(to + fit, "...", 4);
}

struct run {
	size_t a_from, a_end, b_from, b_end;
};

static void judge_run(const struct words *a, const struct words *b, const struct run *r,
		      bool english, struct comparison *out)
{
	CLEANUP(str_free) struct str said = STR_INIT;
	CLEANUP(str_free) struct str got = STR_INIT;

	if (r->a_end - r->a_from + r->b_end - r->b_from <= SPELLED_MOST &&
	    !has_digits(a, r->a_from, r->a_end)) {
		join_words(&said, a, r->a_from, r->a_end, "");
		join_words(&got, b, r->b_from, r->b_end, "");
		if (are_alike(&said, &got))
			return;
	}
	size_t run = run_length(a, r->a_from, r->a_end, b, r->b_from, r->b_end, english);
	out->differing += run;
	if (run <= out->run)
		return;
	out->run = run;
	show_run(out->said, a, r->a_from, r->a_end);
	show_run(out->got, b, r->b_from, r->b_end);
}

/* Goes through the runs between words that both have. */
static void judge_runs(const struct words *a, const struct words *b, const bool *in_a,
		       const bool *in_b, bool english, struct comparison *out)
{
	for (size_t i = 0, k = 0; i < a->count || k < b->count;) {
		struct run r = {i, i, k, k};
		while (r.a_end < a->count && !in_a[r.a_end])
			r.a_end++;
		while (r.b_end < b->count && !in_b[r.b_end])
			r.b_end++;
		if (r.a_end > i || r.b_end > k)
			judge_run(a, b, &r, english, out);
		i = r.a_end + (r.a_end < a->count);
		k = r.b_end + (r.b_end < b->count);
	}
}

void compare_texts(const char *text, const char *transcript, const char *language,
		   struct comparison *out)
{
	CLEANUP(words_free) struct words a = {0}, b = {0};

	*out = (struct comparison){0};
	normalise(&a, text, language);
	normalise(&b, transcript, language);
	out->words = a.count;
	out->heard = b.count;
	if (!a.count) /* signs alone: a voice may name them */
		return;
	bool *in_a = xcalloc(a.count + 1, sizeof(*in_a)),
	     *in_b = xcalloc(b.count + 1, sizeof(*in_b));
	if (align(&a, &b, in_a, in_b))
		judge_runs(&a, &b, in_a, in_b, is_english(language), out);
	else /* by their lengths alone */
		out->run = out->differing =
			MAX(a.count, b.count) - MIN(a.count, b.count) > a.count / 8
				? MAX(a.count, b.count) - MIN(a.count, b.count)
				: 0;
	free(in_a);
	free(in_b);
	out->suspect = out->run >= RUN_SUSPECT ||
		       (out->run >= RUN_SHORT && 2 * out->run > out->words) || (!b.count);
}
