/* pattern.c - patterns for file names, and the order in which people list names */
#include "pattern.h"

#include <stddef.h>
#include <stdint.h>

#include "str.h"

/* ---- glob ---- */

/* Where a star may try again: the pattern behind it, and how far in the text it has come. Only the
 * last star within a folder and the last one across folders are remembered: whatever an earlier one
 * could reach by taking more, the later one reaches too. */
struct retry {
	const char *pattern, *text; /* text == NULL: there is none */
	bool folders;               /* takes whole folders */
};

struct state {
	const struct glob_kind *kind;
	const char *start, *pattern, *text;
	struct retry one, many;
};

/* Two stars of git's kind cross folders only as a whole part of the path; elsewhere they are as
 * good as one. Each star first takes nothing: what it may take besides is left to try_again(). */
static void take_stars(struct state *st)
{
	const char *p = st->pattern;
	bool after_slash = p == st->start || p[-1] == '/';

	while (*p == '*')
		p++;
	bool before_slash = *p == '/' || (p[0] == '\\' && p[1] == '/');
	bool crosses = p - st->pattern > 1;
	if (crosses && st->kind->whole_parts)
		crosses = after_slash && (before_slash || !*p);
	if (crosses) {
		bool folders = after_slash && *p == '/';
		p += folders; /* "**" and its '/' may stand for no folder at all */
		st->many = (struct retry){p, st->text, folders};
		st->one = (struct retry){0};
	} else {
		st->one = (struct retry){p, st->text, false};
	}
	st->pattern = p;
}

static const char *next_folder(const char *text)
{
	while (*text && *text != '/')
		text++;
	return *text ? text + 1 : NULL;
}

/* Lets the last star that still can take a little more. */
static bool try_again(struct state *st)
{
	struct retry *with = &st->one;

	if (with->text && *with->text && *with->text != '/') {
		st->kind->step(&with->text);
	} else {
		st->one.text = NULL;
		with = &st->many;
		if (!with->text || !*with->text)
			return false;
		if (!with->folders)
			st->kind->step(&with->text);
		else if (!(with->text = next_folder(with->text)))
			return false;
	}
	st->pattern = with->pattern;
	st->text = with->text;
	return true;
}

bool glob_match(const struct glob_kind *kind, const char *pattern, const char *text)
{
	struct state st = {.kind = kind, .start = pattern, .pattern = pattern, .text = text};

	while (*st.pattern || *st.text) {
		if (*st.pattern == '*')
			take_stars(&st);
		else if (!kind->one(&st.pattern, &st.text) && !try_again(&st))
			return false;
	}
	return true;
}

/* ---- pattern ---- */

/* One character of a pattern or a path; bytes that are not UTF-8 stand for themselves. */
static uint32_t character(const char **at)
{
	static const unsigned char first[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	const unsigned char *p = (const unsigned char *)*at;
	size_t left = 1;

	while (left < 4 && p[left - 1] && p[left])
		left++;
	size_t len = utf8_sequence(p, left);
	if (!len) {
		*at += 1;
		return 0x110000u + p[0];
	}
	uint32_t value = p[0] & first[len];
	for (size_t i = 1; i < len; i++)
		value = value << 6 | (p[i] & 0x3f);
	*at += len;
	return value;
}

/* The ']' that closes the set whose '[' is at p, or NULL. */
static const char *set_end(const char *p)
{
	p++;
	if (*p == '!' || *p == '^')
		p++;
	for (bool begun = false; *p; p++, begun = true) {
		if (*p == ']' && begun)
			return p;
		if (*p == '\\' && p[1])
			p++;
	}
	return NULL;
}

static uint32_t set_member(const char **p)
{
	if (**p == '\\')
		(*p)++;
	return character(p);
}

/* Is c in the set between '[' at p and ']' at end? */
static bool set_has(const char *p, const char *end, uint32_t c)
{
	bool negated = p[1] == '!' || p[1] == '^';
	bool found = false;

	p += negated ? 2 : 1;
	while (p < end) {
		uint32_t low = set_member(&p), high = low;
		if (*p == '-' && p + 1 < end) {
			p++;
			high = set_member(&p);
		}
		found |= low <= c && c <= high;
	}
	return found != negated;
}

/* Takes one character of the path with one element of the pattern that is no star. */
static bool one_fits(const char **pattern, const char **path)
{
	const char *p = *pattern, *close = *p == '[' ? set_end(p) : NULL;

	if (!*p || !**path)
		return false;
	if (*p == '?' || close) {
		if (**path == '/')
			return false;
		uint32_t c = character(path);
		*pattern = close ? close + 1 : p + 1;
		return !close || set_has(p, close, c);
	}
	if (*p == '\\')
		p++;
	if (!*p || *p != **path)
		return false;
	*pattern = p + 1;
	(*path)++;
	return true;
}

static void step(const char **path)
{
	character(path);
}

bool pattern_match(const char *pattern, const char *path)
{
	static const struct glob_kind kind = {.one = one_fits, .step = step};

	return glob_match(&kind, pattern, path);
}

bool pattern_match_any(const char *const *patterns, const char *path)
{
	for (; patterns && *patterns; patterns++)
		if (pattern_match(*patterns, path))
			return true;
	return false;
}

/* ---- natural ---- */

struct name {
	const unsigned char *at, *end;
};

/* Letters from U+00C0 on without their accents; '?': it is its own letter. */
static const char bare[] =
	/* U+00C0 */ "aaaaaaaceeeeiiiidnooooo?ouuuuytsaaaaaaaceeeeiiiidnooooo?ouuuuyty"
		     /* U+0100 */ "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkklllllll"
		     /* U+0140 */ "lllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzz"
		     "s";
enum { BARE_FROM = 0xc0, MARKS_FROM = 0x300, MARKS_TO = 0x36f, BYTES_FROM = 0x110000 };

static uint32_t fold(uint32_t c)
{
	if (c >= 'A' && c <= 'Z')
		return c + ('a' - 'A');
	if (c >= BARE_FROM && c - BARE_FROM < sizeof(bare) - 1)
		return bare[c - BARE_FROM] == '?' ? c : (uint32_t)bare[c - BARE_FROM];
	/* Greek and Cyrillic capitals */
	if ((c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f))
		return c + 0x20;
	return c;
}

static uint32_t letter_at(const struct name *n, size_t *len)
{
	const char *text = (const char *)n->at;

	*len = utf8_sequence(n->at, (size_t)(n->end - n->at));
	if (*len)
		return utf8_next(&text);
	*len = 1;
	return BYTES_FROM + *n->at;
}

/* Moves behind accents that stand alone: "a" and U+0308 are the letter "ä". */
static void skip_marks(struct name *n)
{
	size_t len;

	while (n->at < n->end) {
		uint32_t c = letter_at(n, &len);
		if (c < MARKS_FROM || c > MARKS_TO)
			return;
		n->at += len;
	}
}

static bool is_digit(const struct name *n)
{
	return n->at < n->end && *n->at >= '0' && *n->at <= '9';
}

/* The digits at the start of the name, which moves behind them, without leading zeros. */
static struct name take_number(struct name *n)
{
	struct name number;

	while (n->at < n->end && *n->at == '0')
		n->at++;
	number.at = n->at;
	while (is_digit(n))
		n->at++;
	number.end = n->at;
	return number;
}

static int by_bytes(struct name a, struct name b)
{
	size_t a_len = (size_t)(a.end - a.at), b_len = (size_t)(b.end - b.at);
	int order = memcmp(a.at, b.at, MIN(a_len, b_len));

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int by_value(struct name a, struct name b)
{
	ptrdiff_t longer = (a.end - a.at) - (b.end - b.at);

	return longer ? (longer > 0 ? 1 : -1) : by_bytes(a, b);
}

/* The letter that the name moves behind, or '0' for a number, which it stays at; 0: its end. */
static uint32_t next_letter(struct name *n)
{
	size_t len;

	if (n->at == n->end)
		return 0;
	if (is_digit(n))
		return '0';
	uint32_t c = letter_at(n, &len);
	n->at += len;
	return fold(c);
}

int natural_order_n(const char *a, size_t a_len, const char *b, size_t b_len)
{
	const struct name whole_a = {(const unsigned char *)a, (const unsigned char *)a + a_len},
			  whole_b = {(const unsigned char *)b, (const unsigned char *)b + b_len};
	struct name x = whole_a, y = whole_b;

	for (;;) {
		skip_marks(&x);
		skip_marks(&y);
		if (is_digit(&x) && is_digit(&y)) {
			int order = by_value(take_number(&x), take_number(&y));
			if (order)
				return order;
			continue;
		}
		uint32_t c = next_letter(&x), d = next_letter(&y);
		if (c != d)
			return c < d ? -1 : 1;
		if (!c)
			return by_bytes(whole_a, whole_b);
	}
}

int natural_order(const char *a, const char *b)
{
	return natural_order_n(a, strlen(a), b, strlen(b));
}
