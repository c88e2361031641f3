/* pattern.c - patterns for file names, and the order in which people list names */
#include "pattern.h"

#include <stddef.h>
#include <stdint.h>

#include "str.h"

/* ---- glob ---- */

/* Where a star may take more: the pattern behind the star, and the end of the text that it has
 * taken so far. Only the last star within a folder and the last one across folders are remembered:
 * what an earlier one could reach by taking more, the later one reaches too. */
struct retry {
	const char *pattern, *text; /* text NULL: there is no such star */
	bool folders;               /* the star takes whole folders */
};

struct state {
	const struct glob_kind *kind;
	const char *start, *pattern, *text;
	struct retry one, many; /* the last star within a folder, the last one across folders */
};

/* Moves the pattern behind its stars and remembers them for try_again(); they take nothing yet. Two
 * stars of git's kind count as one unless they are a whole part of the path. */
static void pass_stars(struct state *st)
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

/* The text behind the next '/'; NULL: there is none. */
static const char *next_folder(const char *text)
{
	while (*text && *text != '/')
		text++;
	return *text ? text + 1 : NULL;
}

/* Continues behind the last star that can take a little more. Returns false if none can. */
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
			pass_stars(&st);
		else if (!kind->one(&st.pattern, &st.text) && !try_again(&st))
			return false;
	}
	return true;
}

/* ---- pattern ---- */

/* Moves behind one character. A byte that is not UTF-8 counts as one, above all code points. */
static uint32_t take_character(const char **at)
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

/* The ']' that closes the set whose '[' is at p; NULL: nothing does. */
static const char *find_set_end(const char *p)
{
	p++;
	if (*p == '!' || *p == '^')
		p++;
	for (bool is_first = true; *p; p++, is_first = false) {
		if (*p == ']' && !is_first)
			return p;
		if (*p == '\\' && p[1])
			p++;
	}
	return NULL;
}

static uint32_t take_set_member(const char **p)
{
	if (**p == '\\')
		(*p)++;
	return take_character(p);
}

/* Whether c is in the set between '[' at p and ']' at end. */
static bool is_in_set(const char *p, const char *end, uint32_t c)
{
	bool negated = p[1] == '!' || p[1] == '^';
	bool listed = false;

	p += negated ? 2 : 1;
	while (p < end) {
		uint32_t low = take_set_member(&p), high = low;
		if (*p == '-' && p + 1 < end) {
			p++;
			high = take_set_member(&p);
		}
		listed |= low <= c && c <= high;
	}
	return listed != negated;
}

/* glob_kind.one: matches one character of the path. */
static bool match_one(const char **pattern, const char **path)
{
	const char *p = *pattern, *close = *p == '[' ? find_set_end(p) : NULL;

	if (!*p || !**path)
		return false;
	if (*p == '?' || close) {
		if (**path == '/')
			return false;
		uint32_t c = take_character(path);
		*pattern = close ? close + 1 : p + 1;
		return !close || is_in_set(p, close, c);
	}
	if (*p == '\\')
		p++;
	if (!*p || *p != **path)
		return false;
	*pattern = p + 1;
	(*path)++;
	return true;
}

/* glob_kind.step */
static void skip_character(const char **path)
{
	take_character(path);
}

bool pattern_match(const char *pattern, const char *path)
{
	static const struct glob_kind kind = {.one = match_one, .step = skip_character};

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

struct name { /* the rest of a name that is being read */
	const unsigned char *at, *end;
};

/* The letters from U+00C0 on without their accents; '?': a letter without a plain form. */
static const char bare[] =
	/* U+00C0 */ "aaaaaaaceeeeiiiidnooooo?ouuuuytsaaaaaaaceeeeiiiidnooooo?ouuuuyty"
		     /* U+0100 */ "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkklllllll"
		     /* U+0140 */ "lllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzz"
		     "s";
enum { BARE_FROM = 0xc0, MARKS_FROM = 0x300, MARKS_TO = 0x36f, BYTES_FROM = 0x110000 };

/* The character without its case and accent. */
static uint32_t fold_letter(uint32_t c)
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

/* The first character of a name that is not empty, read in the same way, and its length. */
static uint32_t character_at(const struct name *n, size_t *len)
{
	const char *text = (const char *)n->at;

	*len = utf8_sequence(n->at, (size_t)(n->end - n->at));
	if (*len)
		return utf8_next(&text);
	*len = 1;
	return BYTES_FROM + *n->at;
}

/* Moves behind combining accents: "a" and U+0308 are the letter "ä". */
static void skip_marks(struct name *n)
{
	size_t len;

	while (n->at < n->end) {
		uint32_t c = character_at(n, &len);
		if (c < MARKS_FROM || c > MARKS_TO)
			return;
		n->at += len;
	}
}

static bool is_at_digit(const struct name *n)
{
	return n->at < n->end && *n->at >= '0' && *n->at <= '9';
}

/* Moves behind the digits at the start of the name and returns them without leading zeros. */
static struct name take_number(struct name *n)
{
	struct name number;

	while (n->at < n->end && *n->at == '0')
		n->at++;
	number.at = n->at;
	while (is_at_digit(n))
		n->at++;
	number.end = n->at;
	return number;
}

static int compare_bytes(struct name a, struct name b)
{
	size_t a_len = (size_t)(a.end - a.at), b_len = (size_t)(b.end - b.at);
	int order = memcmp(a.at, b.at, MIN(a_len, b_len));

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

/* Compares numbers without leading zeros: the longer one is larger. */
static int compare_numbers(struct name a, struct name b)
{
	ptrdiff_t longer = (a.end - a.at) - (b.end - b.at);

	return longer ? (longer > 0 ? 1 : -1) : compare_bytes(a, b);
}

/* Moves behind one character and returns it folded. Returns '0' before a number, which it does not
 * move behind, and 0 at the end. */
static uint32_t take_letter(struct name *n)
{
	size_t len;

	if (n->at == n->end)
		return 0;
	if (is_at_digit(n))
		return '0';
	uint32_t c = character_at(n, &len);
	n->at += len;
	return fold_letter(c);
}

int natural_order_n(const char *a, size_t a_len, const char *b, size_t b_len)
{
	const struct name whole_a = {(const unsigned char *)a, (const unsigned char *)a + a_len},
			  whole_b = {(const unsigned char *)b, (const unsigned char *)b + b_len};
	struct name x = whole_a, y = whole_b;

	for (;;) {
		skip_marks(&x);
		skip_marks(&y);
		if (is_at_digit(&x) && is_at_digit(&y)) {
			int order = compare_numbers(take_number(&x), take_number(&y));
			if (order)
				return order;
			continue;
		}
		uint32_t c = take_letter(&x), d = take_letter(&y);
		if (c != d)
			return c < d ? -1 : 1;
		if (!c)
			return compare_bytes(whole_a, whole_b);
	}
}

int natural_order(const char *a, const char *b)
{
	return natural_order_n(a, strlen(a), b, strlen(b));
}
