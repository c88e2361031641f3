/* text.c - from what is written to what is spoken: scripts of letters, and pieces */
#include "script.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

/* ---- letters ----
 * Finds which scripts a text is written in. */

/* Ranges of letters, by script. Signs and digits in blocks of their own are left out. */
static const struct {
	uint32_t first, last;
	enum letters letters;
} ranges[] = {
	{'A', 'Z', LETTERS_LATIN},          {'a', 'z', LETTERS_LATIN},
	{0xc0, 0x24f, LETTERS_LATIN},       {0x370, 0x3ff, LETTERS_GREEK},
	{0x400, 0x52f, LETTERS_CYRILLIC},   {0x531, 0x587, LETTERS_ARMENIAN},
	{0x5d0, 0x5f2, LETTERS_HEBREW},     {0x620, 0x64a, LETTERS_ARABIC},
	{0x66e, 0x6d3, LETTERS_ARABIC},     {0x750, 0x77f, LETTERS_ARABIC},
	{0x904, 0x963, LETTERS_DEVANAGARI}, {0x971, 0x97f, LETTERS_DEVANAGARI},
	{0x980, 0xdf3, LETTERS_INDIC},      {0xe01, 0xe4e, LETTERS_THAI},
	{0x10a0, 0x10ff, LETTERS_GEORGIAN}, {0x1100, 0x11ff, LETTERS_HANGUL},
	{0x1e00, 0x1eff, LETTERS_LATIN},    {0x1f00, 0x1fff, LETTERS_GREEK},
	{0x3041, 0x30ff, LETTERS_KANA},     {0x3131, 0x318e, LETTERS_HANGUL},
	{0x3400, 0x4dbf, LETTERS_HAN},      {0x4e00, 0x9fff, LETTERS_HAN},
	{0xac00, 0xd7a3, LETTERS_HANGUL},   {0xff21, 0xff5a, LETTERS_LATIN},
	{0x20000, 0x323af, LETTERS_HAN},
};

static const char *const names[] = {"Latin",  "Greek",      "Cyrillic", "Armenian", "Hebrew",
				    "Arabic", "Devanagari", "Indic",    "Thai",     "Georgian",
				    "Hangul", "kana",       "Chinese"};

/* The script of a letter (one bit of enum letters); 0: no letter of a known script. */
static unsigned script_of(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return ranges[i].letters;
	return 0;
}

const char *letters_foreign(const char *text, unsigned known)
{
	size_t counts[ARRAY_LEN(names)] = {0}, read = 0, foreign = 0, most = 0;

	for (const char *p = text; known && *p;) {
		unsigned script = script_of(utf8_next(&p));
		if (!script)
			continue;
		read += (script & known) != 0;
		foreign += !(script & known);
		counts[__builtin_ctz(script)]++;
	}
	if (foreign <= read)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!(known & 1u << i) && (counts[i] > counts[most] || known & 1u << most))
			most = i;
	return names[most];
}

/* ---- split ----
 * Cuts a text into pieces that an engine can speak at once. */

static bool is_space(uint32_t c)
{
	return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
	       (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
	       c == 0x205f || c == 0x3000;
}

static bool is_invisible(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x200b || c == 0xfeff ||
	       (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e ||
	       c == 0x200f;
}

bool split_is_mark(uint32_t c)
{
	return (c >= 0x300 && c <= 0x36f) || c == 0x200d || (c >= 0xfe00 && c <= 0xfe0f) ||
	       (c >= 0x20d0 && c <= 0x20ff) || (c >= 0x1f3fb && c <= 0x1f3ff) || c == 0xe31 ||
	       (c >= 0xe34 && c <= 0xe3a) || (c >= 0xe47 && c <= 0xe4e);
}

void split_normalise(struct str *to, const char *text, size_t len)
{
	bool blank = false;
	size_t begin = to->len;

	for (const char *p = text, *end = text + len; p < end;) {
		const char *from = p;
		uint32_t c = utf8_next(&p);
		if (is_space(c)) {
			blank = true;
			continue;
		}
		if (is_invisible(c))
			continue;
		if (blank && to->len > begin)
			str_addc(to, ' ');
		blank = false;
		str_addn(to, from, (size_t)(p - from));
	}
}

bool split_is_spoken(uint32_t c)
{
	if (c < 0x80)
		return isalnum((int)c) || (c && strchr("%&+=@$#", (int)c));
	return c >= 0xa2 && !is_space(c) && !is_invisible(c) && !split_is_mark(c) &&
	       !split_is_stop(c) && !split_is_comma(c) && !split_is_closing(c) &&
	       !(c >= 0x2010 && c <= 0x205e) && !(c >= 0x3000 && c <= 0x3020) && c != 0xab &&
	       c != 0xbf;
}

bool split_has_words(const char *text)
{
	while (*text)
		if (split_is_spoken(utf8_next(&text)))
			return true;
	return false;
}

size_t split_chars(const char *text, size_t len)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	return count;
}

/* The best places to cut within a window, as byte pointers; NULL: none. A piece ends there. */
struct cuts {
	const char *sentence, *clause, *word, *hard;
};

/* Finds the last cut of each kind within `window` characters, none before `min`. */
static struct cuts find_cuts(const char *text, size_t window, size_t min, const char *language)
{
	struct cuts cuts = {0};
	const char *p = text;

	for (size_t n = 0; n < window && *p; n++) {
		uint32_t c = utf8_next(&p);
		const char *ahead = p;
		if (n + 1 < min || !*p || split_is_mark(utf8_next(&ahead)) || c == 0x200d)
			continue;
		cuts.hard = p;
		if (*p == ' ' && !split_glues(text, p))
			cuts.word = p;
		switch (split_end_at(text, p, language)) {
		case SPLIT_STOP: cuts.sentence = p; break;
		case SPLIT_COMMA: cuts.clause = p; break;
		case SPLIT_WORD: break;
		}
	}
	if (!cuts.hard) /* only combining marks */
		cuts.hard = p;
	return cuts;
}

static void add_piece(struct piece **list, size_t *count, size_t *cap, const char *from,
		      const char *to)
{
	while (to > from && to[-1] == ' ')
		to--;
	GROW(*list, *count, *cap);
	(*list)[(*count)++] = (struct piece){from, (size_t)(to - from)};
}

size_t split_text(const char *text, const struct split_limits *limits, const char *language,
		  struct piece **out)
{
	struct piece *list = NULL;
	size_t count = 0, cap = 0, left = split_chars(text, strlen(text));

	assert(limits->max_chars >= 2 && limits->max_chars >= 2 * limits->min_chars);
	while (left > limits->max_chars) {
		/* the rest behind the cut and its blank must not be too short */
		size_t window =
			MIN(limits->max_chars, left - limits->min_chars - (limits->min_chars > 0));
		struct cuts cuts =
			find_cuts(text, MAX(window, (size_t)1), limits->min_chars, language);
		const char *at = cuts.sentence ? cuts.sentence
				 : cuts.clause ? cuts.clause
				 : cuts.word   ? cuts.word
					       : cuts.hard;
		add_piece(&list, &count, &cap, text, at);
		const char *next = at + (*at == ' ');
		left -= split_chars(text, (size_t)(next - text));
		text = next;
	}
	if (*text)
		add_piece(&list, &count, &cap, text, text + strlen(text));
	*out = list;
	return count;
}
