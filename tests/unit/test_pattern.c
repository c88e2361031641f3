/* test_pattern.c - output patterns against a table and a slow, plain matcher. */
#include "base/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/mem.h"
#include "pattern_cases.h"

static void the_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pattern_cases); i++) {
		const struct pattern_case *c = &pattern_cases[i];
		if (pattern_match(c->pattern, c->path) != c->fits)
			fail_msg("'%s' on '%s': got %d, want %d", c->pattern, c->path, !c->fits,
				 c->fits);
	}
}

/* The rule once more, as plainly as it can be said and without care for time: ASCII without sets.
 */
static bool slow_match(const char *p, const char *s, bool after_slash)
{
	if (!*p)
		return !*s;
	if (*p == '*' && p[1] == '*') {
		while (*p == '*')
			p++;
		if (after_slash && *p == '/') {
			for (;; s++) {
				if (slow_match(p + 1, s, true))
					return true;
				if (!(s = strchr(s, '/')))
					return false;
			}
		}
		for (;; s++) {
			if (slow_match(p, s, false))
				return true;
			if (!*s)
				return false;
		}
	}
	if (*p == '*')
		return slow_match(p + 1, s, false) ||
		       (*s && *s != '/' && slow_match(p, s + 1, false));
	if (!*s || (*p == '?' ? *s == '/' : *p != *s))
		return false;
	return slow_match(p + 1, s + 1, *p == '/');
}

static void as_the_plain_rule(void **state)
{
	static const char *const pieces[] = {"a", "b", "/", "*", "**", "?", "**/", "/**/", "a/"};
	(void)state;

	srand(7);
	for (int round = 0; round < 300000; round++) {
		char pattern[64] = "", path[16];
		for (int n = rand() % 7; n > 0; n--)
			strcat(pattern, pieces[(size_t)rand() % ARRAY_LEN(pieces)]);
		int len = rand() % 9;
		for (int i = 0; i < len; i++)
			path[i] = "ab/"[rand() % 3];
		path[len] = '\0';
		if (strstr(pattern,
			   "***")) /* one run of stars or two pieces: not what is tested here */
			continue;
		bool want = slow_match(pattern, path, true);
		if (pattern_match(pattern, path) != want)
			fail_msg("'%s' on '%s': got %d, want %d", pattern, path, !want, want);
	}
}

static void any_bytes(void **state)
{
	(void)state;
	srand(11);
	for (int round = 0; round < 100000; round++) {
		char pattern[12], path[12];
		for (size_t i = 0; i < sizeof(pattern); i++) {
			pattern[i] = (char)(rand() % 3 ? "[]!^-\\*?/a"[rand() % 10] : rand() % 256);
			path[i] = (char)(rand() % 2 ? rand() % 256 : 'a');
		}
		pattern[rand() % 12] = path[rand() % 12] = '\0';
		pattern[11] = path[11] = '\0';
		pattern_match(pattern, path); /* the sanitizers watch */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table),
		cmocka_unit_test(as_the_plain_rule),
		cmocka_unit_test(any_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
