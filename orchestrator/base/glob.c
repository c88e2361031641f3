/* glob.c - the backtracking that all patterns with stars share. */
#include "glob.h"

#include <stddef.h>

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
