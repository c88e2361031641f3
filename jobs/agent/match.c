/* match.c - which names are outputs: the patterns of a job. */
#include "match.h"

#include <string.h>

#include "text.h"

/* One character of a pattern or a name; bytes that are not UTF-8 stand for themselves. */
static unsigned pattern_char(const char **at)
{
	static const unsigned char first[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	const unsigned char *p = (const unsigned char *)*at;
	size_t len = utf8_at(p, strnlen(*at, 4));
	unsigned value = len ? p[0] & first[len] : 0x110000u + p[0];
	for (size_t i = 1; i < len; i++)
		value = value << 6 | (p[i] & 63);
	*at += len ? len : 1;
	return value;
}

/* The ']' that closes the set ("[a-z]", "[!x]") at p; NULL: there is none, and the '[' is a plain
 * one. */
static const char *set_end(const char *p)
{
	p += 1 + (p[1] == '!' || p[1] == '^');
	for (bool begun = false; *p; p++, begun = true) {
		if (*p == ']' && begun)
			return p;
		p += *p == '\\' && p[1];
	}
	return NULL;
}

static unsigned set_member(const char **p)
{
	*p += **p == '\\';
	return pattern_char(p);
}

static bool set_has(const char *p, const char *end, unsigned c)
{
	bool not = p[1] == '!' || p[1] == '^', hit = false;
	for (p += 1 + not ; p < end;) {
		unsigned low = set_member(&p), high = low;
		if (*p == '-' && p + 1 < end) {
			p++;
			high = set_member(&p);
		}
		hit = hit || (low <= c && c <= high);
	}
	return hit != not ;
}

/* Moves both behind the next character of the name, where the pattern, which shows no star, takes
 * it. */
static bool pattern_step(const char **pattern, const char **name)
{
	const char *p = *pattern, *n = *name, *close = *p == '[' ? set_end(p) : NULL;
	if (!*p || !*n)
		return false;
	if (*p == '?' || close) {
		unsigned c = pattern_char(&n);
		if (c == '/' || (close && !set_has(p, close, c)))
			return false;
		p = close ? close : p;
	} else {
		p += *p == '\\';
		if (*p != *n++)
			return false;
	}
	*pattern = p + 1;
	*name = n;
	return true;
}

bool agent_pattern_match(const char *p, const char *name)
{
	const char *start = p, *star = NULL, *star_at = NULL, *deep = NULL, *deep_at = NULL;
	bool whole_folders = false;
	while (*p || *name) {
		if (*p == '*') {
			size_t stars = strspn(p, "*");
			bool begins = p == start || p[-1] == '/';
			p += stars;
			if (stars == 1) {
				star = p;
				star_at = name;
				continue;
			}
			whole_folders = begins && *p == '/';
			deep = p += whole_folders;
			deep_at = name;
			star = NULL;
		} else if (pattern_step(&p, &name)) {
			continue;
		} else if (star && *star_at && *star_at != '/') {
			pattern_char(&star_at);
			p = star;
			name = star_at;
		} else if (deep && *deep_at && (!whole_folders || strchr(deep_at, '/'))) {
			if (whole_folders)
				deep_at = strchr(deep_at, '/') + 1;
			else
				pattern_char(&deep_at);
			p = deep;
			name = deep_at;
			star = NULL;
		} else {
			return false;
		}
	}
	return true;
}
