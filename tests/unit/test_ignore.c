/* test_ignore.c - ignore rules against a table and against git itself. */
#include "sync/ignore.h"

#include "sync_help.h"

#include <time.h>

/* Walks a list of paths as a scan would: is this file dropped, or a folder above it? */
static bool dropped(const char *root, const char *path)
{
	struct ignore *open = NULL;
	bool result = false;

	MUST(ignore_open(&open, root, err));
	CLEANUP(ignore_free) struct ignore *ig = open;
	for (const char *p = strchr(path, '/'); p && !result; p = strchr(p + 1, '/')) {
		CLEANUP(free_text) char *folder = xstrndup(path, (size_t)(p - path));
		result = ignore_drops(ig, folder, true);
		if (!result)
			MUST(ignore_enter(ig, folder, err));
	}
	return result || ignore_drops(ig, path, false);
}

static const struct {
	const char *name, *rules, *path;
	bool dropped;
} cases[] = {
	{"no rules", "", "a", false},
	{"a comment", "# a\n#b\n", "#b", false},
	{"not a comment", "\\#b\n", "#b", true},
	{"a name at any depth", "a.o\n", "x/y/a.o", true},
	{"anchored", "/a.o\n", "x/a.o", false},
	{"anchored by a slash inside", "x/a.o\n", "y/x/a.o", false},
	{"only folders", "a/\n", "a", false},
	{"what is in a folder", "a/\n", "x/a/b", true},
	{"taken back", "*.o\n!a.o\n", "a.o", false},
	{"the last rule decides", "!a.o\n*.o\n", "a.o", true},
	{"not out of a dropped folder", "x/\n!x/a\n", "x/a", true},
	{"out of a folder's content", "x/*\n!x/a\n", "x/a", false},
	{"an exclamation mark", "\\!a\n", "!a", true},
	{"spaces at the end", "a  \n", "a", true},
	{"a kept space", "a\\ \n", "a ", true},
	{"DOS line ends", "a.o\r\n", "a.o", true},
	{"no line end", "a.o", "a.o", true},
	{"a byte order mark",
	 "\xef\xbb\xbf"
	 "a.o\n",
	 "a.o", true},
	{"a set", "[!a-c].o\n", "d.o", true},
	{"a class", "[[:digit:]].o\n", "7.o", true},
	{"a set that does not end", "[a\n", "[a", false},
	{"two stars before", "**/x/a\n", "p/q/x/a", true},
	{"two stars before, at the top", "**/x/a\n", "x/a", true},
	{"two stars between", "x/**/a\n", "x/a", true},
	{"two stars after", "x/**\n", "x/p/a", true},
	{"two stars in a name", "x/a**b\n", "x/a/b", false},
	{"git's own folder", "", ".git/config", true},
	{"git's own file", "", "sub/.git", true},
	{"git's own folder cannot be taken back", "!.git\n", ".git/config", true},
	{"names that begin alike", "", ".gitattributes", false},
};

static void the_table(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		put_text(*state, ".gitignore", cases[i].rules);
		if (dropped(*state, cases[i].path) != cases[i].dropped)
			fail_msg("%s: '%s': got %d, want %d", cases[i].name, cases[i].path,
				 !cases[i].dropped, cases[i].dropped);
	}
}

static void burstignore_alone_counts(void **state)
{
	put_text(*state, ".gitignore", "a\n");
	put_text(*state, "sub/.gitignore", "b\n");
	assert_true(dropped(*state, "a"));
	assert_true(dropped(*state, "sub/b"));
	assert_false(dropped(*state, "c"));
	put_text(*state, ".burstignore", "c\n");
	put_text(*state, "sub/.burstignore", "d\n");
	assert_false(dropped(*state, "a"));
	assert_false(dropped(*state, "sub/b"));
	assert_false(dropped(*state, "sub/d"));
	assert_true(dropped(*state, "c"));
}

static void unreadable_rules_are_an_error(void **state)
{
	struct ignore *ig = NULL;
	CLEANUP(free_text) char *big = xcalloc(1, (1u << 20) + 1);

	put(*state, ".gitignore", big, (1u << 20) + 1);
	MUST_FAIL(ignore_open(&ig, *state, err), ERR_CONFIG);
	CLEANUP(free_text) char *path = path_join(*state, ".burstignore");
	assert_int_equal(mkdir(path, 0777), 0);
	MUST_FAIL(ignore_open(&ig, *state, err), ERR_CONFIG);
	assert_null(ig);
	/* what it leads to may be anybody's, and a pipe is never at its end */
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	MUST_FAIL(ignore_open(&ig, *state, err), ERR_CONFIG);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	MUST_FAIL(ignore_open(&ig, *state, err), ERR_CONFIG);
}

/* ---- against git ---- */

static const char *const parts[] = {"a",   "b",   "ab", "a b", "[a]",  "\xc3\xa4",
				    "c.o", "x.c", "#x", "!y",  "a\\b", "-"};

static void add_rule(struct str *rules)
{
	static const char *const pieces[] = {
		"a",       "b",  "ab", "*",     "**",    "*.o",   "c.o",    "?",   "[ab]",
		"a*",      "*b", "?b", "[!a]*", "[a-b]", "\\[a]", "a\\ b",  "a b", "[[:alpha:]]*",
		"#x",      "!y", "x*", "\\!y",  "**b",   "***",   "[\\]a]", "a[",  "[]a]*",
		"\xc3\xa4"};

	if (rand() % 3 == 0)
		str_add(rules, "!");
	if (rand() % 4 == 0)
		str_add(rules, "/");
	for (int n = 1 + rand() % 3; n > 0; n--)
		str_addf(rules, "%s%s", pieces[(size_t)rand() % ARRAY_LEN(pieces)],
			 n > 1 ? "/" : "");
	if (rand() % 4 == 0)
		str_add(rules, "/");
	str_add(rules, rand() % 12 ? "\n" : rand() % 2 ? "  \n" : "\r\n");
}

static void put_rules(const char *root, const char *folder)
{
	CLEANUP(free_text) char *name = xasprintf("%s.gitignore", folder);
	CLEANUP(str_free) struct str rules = STR_INIT;

	for (int n = rand() % 6; n > 0; n--)
		add_rule(&rules);
	put(root, name, str_text(&rules), rules.len);
}

static char *random_path(void)
{
	struct str path = STR_INIT;

	for (int n = rand() % 4; n > 0; n--)
		str_addf(&path, "%s/", parts[(size_t)rand() % 6]);
	str_add(&path, parts[(size_t)rand() % ARRAY_LEN(parts)]);
	return str_detach(&path);
}

/* A tree with nested rules; git and ignore.c must agree on every file of it. */
static void compare_one_tree(const char *root, int round)
{
	CLEANUP(free_text)
	char *command = xasprintf("cd '%s' && GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 "
				  "git ls-files -z --others --exclude-per-directory=.gitignore",
				  root);
	CLEANUP(free_text)
	char *find = xasprintf("cd '%s' && find . -name .git -prune -o ! -type d -print0", root);

	put_rules(root, "");
	put_rules(root, "a/");
	put_rules(root, "ab/b/");
	CLEANUP(free_text) char *taken = said(command, NULL);
	CLEANUP(free_text) char *all = said(find, NULL);
	for (const char *p = all; *p; p += strlen(p) + 1) {
		bool git_drops = true;
		for (const char *t = taken; *t && git_drops; t += strlen(t) + 1)
			git_drops = strcmp(t, p + 2) != 0;
		if (dropped(root, p + 2) != git_drops)
			fail_msg("round %d: %s: '%s': git says %s", round, root, p + 2,
				 git_drops ? "drop" : "keep");
	}
}

static void as_git_does(void **state)
{
	if (!have_program("git"))
		skip();
	CLEANUP(free_text) char *init = xasprintf("git init -q '%s' 2>/dev/null", (char *)*state);
	free(said(init, NULL));
	srand(3);
	for (int i = 0; i < 60; i++) {
		CLEANUP(free_text) char *path = random_path();
		CLEANUP(free_text) char *full = path_join(*state, path);
		struct stat st;
		char *slash = full + strlen(*state) + 1;
		bool blocked = stat(full, &st) ==
			       0; /* a folder of that name, or a file where a folder would be */
		while (!blocked && (slash = strchr(slash, '/'))) {
			*slash = '\0';
			blocked = stat(full, &st) == 0 && !S_ISDIR(st.st_mode);
			*slash++ = '/';
		}
		if (!blocked)
			put_text(*state, path, "");
	}
	for (int round = 0; round < 150; round++)
		compare_one_tree(*state, round);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_table, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(burstignore_alone_counts, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(unreadable_rules_are_an_error, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(as_git_does, scratch_make, scratch_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
