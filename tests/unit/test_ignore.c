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

/* ---- below the top of a repository ---- */

static const char *const names[] = {"a", "b", "ab", "A", "c.o", "x.C", ".env", "data"};

static void put_some_rules(const char *root, const char *name)
{
	static const char *const pieces[] = {
		"a",    "b",  "ab", "*.o", "A*",   ".env",  "data/", "/a/b",   "a/b/a", "!ab",
		"!*.o", "!a", "/b", "b/*", "**/b", "[A-B]", "!.env", "a/**/b", "*.C"};
	CLEANUP(str_free) struct str rules = STR_INIT;

	for (int n = rand() % 4; n > 0; n--)
		str_addf(&rules, "%s\n", pieces[(size_t)rand() % ARRAY_LEN(pieces)]);
	put(root, name, str_text(&rules), rules.len);
}

static void compare_subfolder(const char *root, int round)
{
	CLEANUP(free_text) char *job = path_join(root, "a/b");
	CLEANUP(free_text) char *find = xasprintf("cd '%s' && find . ! -type d -print0", job);
	static const char *const rules[] = {".gitignore",        "a/.gitignore",
					    "a/b/.gitignore",    "a/b/a/.gitignore",
					    ".git/info/exclude", "../users"};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		put_some_rules(root, rules[i]);
	CLEANUP(free_text) char *taken = git_keeps(root, "a/b");
	CLEANUP(free_text) char *all = said(find, NULL);
	for (const char *p = all; taken && *p; p += strlen(p) + 1) {
		bool git_drops = true;
		for (const char *t = taken; *t && git_drops; t += strlen(t) + 1)
			git_drops = strcmp(t, p + 2) != 0;
		if (dropped(job, p + 2) != git_drops)
			fail_msg("round %d: a/b/%s: git says %s", round, p + 2,
				 git_drops ? "drop" : "keep");
	}
}

static void a_subfolder_as_git_does(void **state)
{
	if (!have_program("git"))
		skip();
	for (int folds = 0; folds < 2; folds++) {
		CLEANUP(free_text) char *scratch = path_join(*state, folds ? "folds" : "plain");
		CLEANUP(free_text) char *root = make_repository(scratch, folds);
		srand(5);
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			for (size_t k = 0; k < ARRAY_LEN(names); k++) {
				CLEANUP(free_text)
				char *path = xasprintf("a/b/%s/f-%s", names[i], names[k]);
				CLEANUP(free_text)
				char *deep = xasprintf("a/b/a/%s/b/%s", names[i], names[k]);
				put_text(root, path, "");
				put_text(root, deep, "");
			}
		for (int round = 0; round < 60; round++)
			compare_subfolder(root, round);
	}
}

static const struct {
	const char *name, *file, *rules, *path;
	bool dropped;
} places[] = {
	{"the top's rules", ".gitignore", ".env\n", ".env", true},
	{"a folder's between", "a/.gitignore", "*.ckpt\n", "x/w.ckpt", true},
	{"git's own folder's", ".git/info/exclude", "excl\n", "excl", true},
	{"the user's", "../users", "*~\n", "x~", true},
	{"anchored at the top", ".gitignore", "/a/b/x\n", "x", true},
	{"anchored elsewhere", ".gitignore", "/x\n", "x", false},
	{"the nearer one decides", ".gitignore", ".env\n", "keep/.env", false},
	{"what drops the tree itself", ".gitignore", "b/\n", "x", false},
	{"beside what drops the tree itself", ".gitignore", "b/\n.env\n", ".env", true},
	{"a repository in the tree has its own", "a/b/in/.git/info/exclude", "own\n", "in/own",
	 true},
	{"and those around it", ".gitignore", ".env\n", "in/.env", true},
};

static void rules_of_all_places(void **state)
{
	if (!have_program("git"))
		skip();
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		CLEANUP(free_text) char *scratch = xasprintf("%s/%zu", (char *)*state, i);
		CLEANUP(free_text) char *root = make_repository(scratch, false);
		CLEANUP(free_text) char *job = path_join(root, "a/b");
		CLEANUP(free_text) char *in = xasprintf("git init -q '%s/in'", job);
		put_text(root, "a/b/keep/.gitignore", "!.env\n");
		free(said(in, NULL));
		put_text(root, places[i].file, places[i].rules);
		if (dropped(job, places[i].path) != places[i].dropped)
			fail_msg("%s: dropped or not", places[i].name);
	}
}

/* Nothing of a project leads its rules elsewhere. */
static void links_and_pipes_above(void **state)
{
	CLEANUP(free_text) char *root = make_repository(*state, false);
	CLEANUP(free_text) char *job = path_join(root, "a");
	CLEANUP(free_text) char *rules = path_join(root, ".gitignore");
	CLEANUP(free_text) char *exclude = path_join(root, ".git/info/exclude");
	CLEANUP(free_text) char *info = path_join(root, ".git/info");
	struct ignore *ig = NULL;

	put_text(root, "a/x", "");
	put_text(root, "other", "x\n");
	for (int pipe = 0; pipe < 2; pipe++) {
		assert_int_equal(pipe ? mkfifo(rules, 0600) : symlink("other", rules), 0);
		MUST_FAIL(ignore_open(&ig, job, err), ERR_CONFIG);
		assert_int_equal(unlink(rules), 0);
		unlink(exclude);
		assert_int_equal(pipe ? mkfifo(exclude, 0600) : symlink("../other", exclude), 0);
		MUST_FAIL(ignore_open(&ig, job, err), ERR_CONFIG);
		assert_int_equal(unlink(exclude), 0);
	}
	MUST(path_remove_tree(info, err));
	assert_int_equal(symlink("..", info), 0);
	MUST_FAIL(ignore_open(&ig, job, err), ERR_CONFIG);
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
		cmocka_unit_test_setup_teardown(a_subfolder_as_git_does, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(rules_of_all_places, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(links_and_pipes_above, scratch_make,
						scratch_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
