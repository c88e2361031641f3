/* fuzz_match.c - any bytes as patterns and as git's rules. A path whose every character is escaped
 * fits itself; the star that tries again must find what a search through all ways finds, in few
 * steps; the last rule of a file decides.
 *
 * Input: a byte that chooses, then
 *   0: a pattern, a newline, a path             1: the same; the first bit of the pattern: git's
 * way with two stars 2: a path, a newline, a file of rules */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pattern.h"
#include "base/path.h"
#include "base/str.h"
#include "sync/ignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* ---- outputs ---- */

static void outputs(const char *pattern, const char *path)
{
	CLEANUP(str_free) struct str escaped = STR_INIT;

	pattern_match(pattern, path);
	for (const char *p = path; *p; p++)
		str_addf(&escaped, *p == '/' || *p & 0x80 ? "%c" : "\\%c", *p);
	assert(pattern_match(str_text(&escaped), path));
}

/* ---- stars ---- */

static size_t steps;

static bool take_one(const char **pattern, const char **text)
{
	steps++;
	if (!**pattern || !**text || (**pattern == '?' ? **text == '/' : **pattern != **text))
		return false;
	++*pattern;
	++*text;
	return true;
}

static void take_least(const char **text)
{
	++*text;
}

struct search {
	const char *pattern, *text;
	size_t pattern_len, text_len;
	char *known; /* 0: not tried, 1: no, 2: yes */
	bool whole_parts;
};

static bool try_all(struct search *s, size_t p, size_t t);

/* From p, behind stars; each place of the text at which they may end is tried. */
static bool try_stars(struct search *s, size_t p, size_t t)
{
	size_t end = p + strspn(s->pattern + p, "*");
	bool begins = !p || s->pattern[p - 1] == '/', crosses = end - p > 1;

	if (crosses && s->whole_parts)
		crosses = begins && (s->pattern[end] == '/' || !s->pattern[end]);
	bool folders = crosses && begins && s->pattern[end] == '/';
	for (size_t at = t; at <= s->text_len; at++) {
		if (!folders || at == t || s->text[at - 1] == '/')
			if (try_all(s, end + folders, at))
				return true;
		if (!crosses && s->text[at] == '/')
			return false;
	}
	return false;
}

static bool try_all(struct search *s, size_t p, size_t t)
{
	char *known = &s->known[p * (s->text_len + 1) + t];
	const char *pattern = s->pattern + p, *text = s->text + t;

	if (*known)
		return *known == 2;
	bool fits = *pattern == '*' ? try_stars(s, p, t)
		    : !*pattern     ? !*text
				    : take_one(&pattern, &text) && try_all(s, p + 1, t + 1);
	*known = fits ? 2 : 1;
	return fits;
}

static void stars(const char *pattern, const char *text)
{
	struct search s = {.whole_parts = *pattern & 1,
			   .pattern = pattern + 1,
			   .text = text,
			   .pattern_len = strlen(pattern + 1),
			   .text_len = strlen(text)};
	struct glob_kind kind = {.one = take_one, .step = take_least, .whole_parts = s.whole_parts};

	if (s.pattern_len > 40 || s.text_len > 200)
		return;
	steps = 0;
	bool fits = glob_match(&kind, s.pattern, s.text);
	assert(steps <= (s.pattern_len + 1) * (s.text_len + 1) * (s.text_len + 1));
	s.known = xcalloc((s.pattern_len + 1) * (s.text_len + 1), 1);
	assert(fits == try_all(&s, 0, 0));
	free(s.known);
}

/* ---- git's rules ---- */

static char rules_root[64];

static void remove_rules(void)
{
	path_remove_tree(rules_root, NULL);
}

static void put_rules(const char *name, const char *text, size_t len)
{
	static bool made;
	char path[128];

	if (!made) {
		snprintf(rules_root, sizeof(rules_root), "%s/burst-fuzz.XXXXXX",
			 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
		if (!mkdtemp(rules_root) || atexit(remove_rules) != 0)
			abort();
	}
	made = true;
	snprintf(path, sizeof(path), "%s/%s", rules_root, name);
	FILE *f = fopen(path, "we");
	if (!f || fwrite(text, 1, len, f) != len || fclose(f) != 0)
		abort();
}

static bool dropped(const char *path)
{
	struct ignore *ig;
	struct err err;

	if (ignore_open(&ig, rules_root, &err) < 0)
		abort();
	bool drops = ignore_drops(ig, path, false);
	ignore_drops(ig, path, true);
	ignore_free(ig);
	return drops;
}

/* The path as a rule of its own: every character with a backslash. */
static void add_path_rule(struct str *rules, const char *path, bool keep)
{
	str_add(rules, keep ? "\n!/" : "\n/");
	for (; *path; path++)
		str_addf(rules, *path == '/' ? "%c" : "\\%c", *path);
	str_addc(rules, '\n');
}

static void last_rule_decides(const char *path, const char *text)
{
	CLEANUP(str_free) struct str rules = STR_INIT;

	put_rules(".gitignore", text, strlen(text));
	dropped(path);
	if (!path_is_safe(path) || !strcmp(path_base(path), ".git"))
		return;
	for (int keep = 0; keep < 2; keep++) {
		str_reset(&rules);
		str_add(&rules, text);
		add_path_rule(&rules, path, keep);
		put_rules(".gitignore", rules.s, rules.len);
		assert(dropped(path) == !keep);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static void (*const readers[])(const char *, const char *) = {outputs, stars,
								      last_rule_decides};

	if (len < 3)
		return 0;
	CLEANUP(free_text) char *text = xstrndup((const char *)data + 1, len - 1);
	char *second = strchr(text, '\n');
	if (!second || second == text)
		return 0;
	*second++ = '\0';
	readers[data[0] % 3](text, second);
	return 0;
}
