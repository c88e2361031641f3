/* pattern.c - matches output patterns against file names. */
#include "pattern.h"

#include <stddef.h>
#include <stdint.h>

#include "str.h"
#include "glob.h"

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
