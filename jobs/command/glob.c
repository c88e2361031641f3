#include "glob.h"

#include <stddef.h>
#include <string.h>

/* Matches one character against the set at p ("[a-z]", "[!x]"); *end is behind it. An unclosed one
 * is a plain '['. */
static bool match_set(const char *p, char c, const char **end)
{
	const char *q = p + 1;
	bool not = *q == '!' || *q == '^', hit = false;

	q += not ;
	for (const char *first = q; *q && (*q != ']' || q == first); q++) {
		if (q[1] == '-' && q[2] && q[2] != ']') {
			hit |= (unsigned char)c >= (unsigned char)q[0] &&
			       (unsigned char)c <= (unsigned char)q[2];
			q += 2;
		} else {
			hit |= c == *q;
		}
	}
	*end = *q ? q + 1 : p + 1;
	return *q ? hit != not &&c != '/' : c == '[';
}

/* The one step from the pattern at p for the character c; NULL when it does not fit. */
static const char *match_one(const char *p, char c)
{
	const char *end;

	if (*p == '?')
		return c != '/' ? p + 1 : NULL;
	if (*p == '[')
		return match_set(p, c, &end) ? end : NULL;
	if (*p == '\\' && p[1])
		p++;
	return *p == c ? p + 1 : NULL;
}

/* Where to go on after a mismatch: behind the last star, one character later, or one folder later
 * where "**" and a slash stand for whole folders. Only the last "*" and the last "**" matter: what
 * an earlier one could take, a later one can. */
struct retry {
	const char *pattern, *path;
	bool folders;
};

static bool advance(struct retry *r)
{
	const char *slash = r->folders && r->path ? strchr(r->path, '/') : NULL;

	if (!r->pattern || !*r->path || (r->folders && !slash))
		return false;
	r->path = r->folders ? slash + 1 : r->path + 1;
	return true;
}

bool output_glob_match(const char *pattern, const char *path)
{
	struct retry star = {0}, deep = {0};
	const char *p = pattern, *s = path;

	for (;;) {
		if (p[0] == '*' && p[1] == '*') {
			bool folders = p[2] == '/' && (p == pattern || p[-1] == '/');
			p += folders ? 3 : 2;
			deep = (struct retry){p, s, folders};
			star = (struct retry){0};
			continue;
		}
		if (*p == '*') {
			star = (struct retry){++p, s, false};
			continue;
		}
		if (!*s && !*p)
			return true;
		const char *next = *s && *p ? match_one(p, *s) : NULL;
		if (next) {
			p = next;
			s++;
		} else if (star.pattern && *star.path != '/' && advance(&star)) {
			p = star.pattern;
			s = star.path;
		} else if (advance(&deep)) {
			p = deep.pattern;
			s = deep.path;
			star = (struct retry){0};
		} else {
			return false;
		}
	}
}
