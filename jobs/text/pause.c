/* pause.c - finds the pauses that a text asks for: tags such as "[pause 1s]", and scene breaks */
#include "script.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"

/* ---- tags ----
 * People write pauses as other programs read them: [pause:1s], {pause=1s}, (long pause), <break
 * time="1s"/>, [[slnc 500]], <#1.5#>. A tag is read as words and numbers; only its first words, and
 * the kind of its brackets, decide whether it is a tag at all. */

#define USUAL_S  1.0
#define SHORT_S  0.5
#define LONG_S   2.0
#define TAG_MOST 64 /* bytes between its brackets */

/* A word or a number of a tag. */
struct token {
	const char *text;
	size_t len;
	double number; /* negative: it is a word */
};

#define TOKENS_MOST 8

struct tag {
	struct token tokens[TOKENS_MOST];
	size_t count;
	char behind_first; /* what follows the first word; '\0': nothing */
};

static bool is_word(const struct token *t, const char *word)
{
	return t->number < 0 && t->len == strlen(word) && !strncasecmp(t->text, word, t->len);
}

static bool is_one_of(const struct token *t, const char *const *words)
{
	for (; *words; words++)
		if (is_word(t, *words))
			return true;
	return false;
}

static bool is_name(const struct token *t)
{
	static const char *const names[] = {"pause", "break", "silence", "sil", "slnc", NULL};

	return is_one_of(t, names);
}

/* Reads "1", "1.5" or "1,5". Returns its length; 0: it is no number. */
static size_t read_number(const char *p, const char *end, double *out)
{
	char digits[16];
	size_t len = 0;
	bool point = false;

	while (p + len < end && len + 1 < sizeof(digits)) {
		char c = p[len] == ',' ? '.' : p[len];
		if (!isdigit((unsigned char)c) && (c != '.' || point))
			break;
		point |= c == '.';
		digits[len++] = c;
	}
	digits[len] = '\0';
	char *rest;
	*out = strtod(digits, &rest);
	return len && rest != digits && !*rest ? len : 0;
}

static bool separates(const char *p, const char *end)
{
	/* "long-pause" and "x-strong", but not "-1s" */
	return strchr(" :=\"'/_\t", *p) ||
	       (*p == '-' && p + 1 < end && isalpha((unsigned char)p[1]));
}

/* Reads the words and numbers between two brackets. Returns false if something else is there. */
static bool read_tokens(struct tag *tag, const char *p, const char *end)
{
	*tag = (struct tag){0};
	while (p < end) {
		if (separates(p, end)) {
			p++;
			continue;
		}
		if (tag->count == TOKENS_MOST)
			return false;
		struct token *t = &tag->tokens[tag->count];
		*t = (struct token){.text = p, .number = -1};
		t->len = read_number(p, end, &t->number);
		if (!t->len) {
			t->number = -1;
			while (p + t->len < end && isalpha((unsigned char)p[t->len]))
				t->len++;
		}
		if (!t->len)
			return false;
		p += t->len;
		if (++tag->count == 1)
			tag->behind_first = p < end ? *p : '\0';
	}
	return tag->count > 0;
}

/* Seconds of one of a unit; 0: it is none. */
static double seconds_of_unit(const struct token *t)
{
	static const char *const seconds[] = {"s", "sec", "secs", "second", "seconds", NULL};
	static const char *const thousandths[] = {"ms",          "msec",         "msecs",
						  "millisecond", "milliseconds", NULL};

	return is_one_of(t, seconds) ? 1 : is_one_of(t, thousandths) ? 0.001 : 0;
}

/* The strengths of SSML's <break>, with the times that Azure gives them, and plain sizes. */
static bool read_size(const struct tag *tag, size_t *at, double *out)
{
	static const struct {
		const char *word, *next;
		double seconds;
	} sizes[] = {{"x", "weak", 0.25},      {"x", "strong", 1.25}, {"weak", NULL, 0.5},
		     {"strong", NULL, 1},      {"none", NULL, 0},     {"medium", NULL, 0.75},
		     {"short", NULL, SHORT_S}, {"long", NULL, LONG_S}};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		size_t words = sizes[i].next ? 2 : 1;
		if (*at + words > tag->count || !is_word(&tag->tokens[*at], sizes[i].word) ||
		    (sizes[i].next && !is_word(&tag->tokens[*at + 1], sizes[i].next)))
			continue;
		*at += words;
		*out = sizes[i].seconds;
		return true;
	}
	return false;
}

/* Reads "1 s", "msec 500", and behind "slnc" the milliseconds alone. */
static bool read_time(const struct tag *tag, size_t *at, double *out)
{
	const struct token *t = &tag->tokens[*at], *next = *at + 1 < tag->count ? t + 1 : NULL;

	if (t->number >= 0 && next && seconds_of_unit(next) > 0) {
		*out = t->number * seconds_of_unit(next);
		*at += 2;
		return true;
	}
	if (next && next->number >= 0 && seconds_of_unit(t) == 0.001) {
		*out = next->number * 0.001;
		*at += 2;
		return true;
	}
	if (t->number >= 0 && is_word(&tag->tokens[0], "slnc")) {
		*out = t->number * 0.001;
		*at += 1;
		return true;
	}
	return false;
}

/* Seconds of a tag that names a pause, at most one time or size, and nothing else; negative if it
 * is not that. usual: of a tag without a time. */
static double read_tag(const struct tag *tag, double usual)
{
	static const char *const fillers[] = {"time",  "duration", "length", "strength",
					      "value", "for",      "of",     NULL};
	double seconds = -1;
	size_t names = 0;

	for (size_t at = 0; at < tag->count;) {
		double said;
		if (is_name(&tag->tokens[at]) && names++ == 0)
			at++;
		else if (is_one_of(&tag->tokens[at], fillers) && at + 1 < tag->count)
			at++;
		else if (seconds < 0 && (read_size(tag, &at, &said) || read_time(tag, &at, &said)))
			seconds = said;
		else
			return -1;
	}
	return names != 1 ? -1 : seconds < 0 ? usual : seconds;
}

/* Returns whether it is meant as a tag, though it cannot be read. "[break a leg]" is text. */
static bool is_meant_as_tag(const struct tag *tag, char bracket)
{
	bool assigns = tag->behind_first && strchr(":=", tag->behind_first);

	if (!tag->count || !is_name(&tag->tokens[0]))
		return false;
	if (bracket == '<' || assigns)
		return true;
	return bracket != '(' && (is_word(&tag->tokens[0], "pause") ||
				  (tag->count > 1 && tag->tokens[1].number >= 0));
}

/* "<#1.5#>": seconds. Returns its length; 0: it is none. */
static size_t read_hash_tag(const char *p, double *out)
{
	const char *close = strchr(p, '>');

	if (p[1] != '#' || !close || close - p < 4 || close[-1] != '#')
		return 0;
	size_t len = read_number(p + 2, close - 1, out);
	return len && p + 2 + len == close - 1 ? (size_t)(close + 1 - p) : 0;
}

size_t pause_tag(const char *p, double *seconds)
{
	static const char opens[] = "[{(<", closes[] = "]})>";
	const char *which = strchr(opens, *p);
	struct tag tag;

	if (!*p || !which)
		return 0;
	if (*p == '<' && p[1] == '#') {
		size_t len = read_hash_tag(p, seconds);
		*seconds = *seconds <= PAUSE_MOST_S ? *seconds : -1;
		return len;
	}
	const char close = closes[which - opens], *from = p + 1 + (p[1] == *p && *p == '[');
	size_t len = strcspn(from, "[]{}()<>");
	if (from[len] != close || len > TAG_MOST)
		return 0;
	bool known = read_tokens(&tag, from, from + len);
	*seconds = known ? read_tag(&tag, *p == '<' ? 0.75 : USUAL_S) : -1;
	if (*seconds < 0 && !is_meant_as_tag(&tag, *p))
		return 0;
	if (*p == '<' && from[0] == '/')
		*seconds = 0; /* "</break>" only ends one */
	if (*seconds > PAUSE_MOST_S)
		*seconds = -1;
	const char *end = from + len + 1;
	return (size_t)(end + (from > p + 1 && *end == close) - p);
}

/* Finds the next tag at or after p, or NULL. */
static const char *find_tag(const char *p, size_t *len, double *seconds)
{
	for (; (p = strpbrk(p, "[{(<")); p++)
		if ((*len = pause_tag(p, seconds)))
			return p;
	return NULL;
}

static struct pause_part trimmed_part(const char *from, const char *to, double before_s)
{
	while (from < to && *from == ' ')
		from++;
	while (to > from && to[-1] == ' ')
		to--;
	return (struct pause_part){from, (size_t)(to - from), before_s};
}

size_t pause_parts(const char *text, struct pause_part **out, const char **bad, size_t *bad_len)
{
	struct pause_part *list = NULL;
	size_t count = 0, cap = 0, len;
	const char *tag;
	double before_s = 0, seconds;

	*bad = NULL;
	while ((tag = find_tag(text, &len, &seconds))) {
		if (seconds < 0 && !*bad) {
			*bad = tag;
			*bad_len = len;
		}
		GROW(list, count, cap);
		list[count++] = trimmed_part(text, tag, before_s);
		before_s = MAX(seconds, 0);
		text = tag + len;
	}
	GROW(list, count, cap);
	list[count++] = trimmed_part(text, text + strlen(text), before_s);
	*out = list;
	return count;
}

/* ---- scene breaks ---- */

/* Signs that typesetters put between scenes: asterisks, dashes, bullets, fleurons. */
static bool is_ornament(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0xa7, 0xa7},     {0xb6, 0xb7},     {0x2010, 0x2015}, {0x2020, 0x2023},
		{0x203b, 0x203b}, {0x2042, 0x2043}, {0x204a, 0x2051}, {0x2055, 0x205e},
		{0x2212, 0x2212}, {0x2217, 0x2219}, {0x223c, 0x223c}, {0x22c4, 0x22c6},
		{0x2500, 0x25ff}, {0x2605, 0x2606}, {0x2619, 0x2619}, {0x2660, 0x2667},
		{0x2719, 0x2757}, {0x2761, 0x2767}, {0x27e1, 0x27e1}, {0x2e3a, 0x2e3b},
		{0x301c, 0x301c}, {0x30fb, 0x30fb}, {0xff0a, 0xff0a}, {0xff5e, 0xff5e},
	};

	if (c < 0x80)
		return c && strchr("*-_#~=+^|<>:", (int)c);
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

/* The length of "oOo" or "o0o" at p, an ornament made of letters; 0: there is none. */
static size_t letter_ornament(const char *p)
{
	return p[0] == 'o' && (p[1] == 'O' || p[1] == '0') && p[2] == 'o' ? 3 : 0;
}

bool pause_is_scene_break(const char *text)
{
	bool any = false;

	for (const char *p = text; *p;) {
		size_t letters = letter_ornament(p);
		if (letters) {
			p += letters;
			any = true;
			continue;
		}
		uint32_t c = utf8_next(&p);
		if (c == ' ' || split_is_mark(c))
			continue;
		if (!is_ornament(c))
			return false;
		any = true;
	}
	return any;
}
