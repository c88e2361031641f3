/* test_agent_files.c - the agent's rules about names, links, folders and listings. */
#include "agent_help.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "jobs/agent/agent.h"
#include "jobs/agent/files.h"
#include "jobs/agent/trees.h"

/* In place of the C library's: the one that comes after so many fails. 0: none. */
static int readdir_fails_in;

static int readdir_errno;

struct dirent *readdir(DIR *d)
{
	if (readdir_fails_in && --readdir_fails_in == 0) {
		errno = readdir_errno;
		return NULL;
	}
	return (struct dirent *)readdir64(d);
}

static void paths(void **state)
{
	(void)state;
	static const struct {
		const char *path;
		bool safe;
	} cases[] = {
		{"a", true},     {"a/b.wav", true}, {"\xc3\xa4/b", true}, {"..a/b", true},
		{"", false},     {"/a", false},     {"a//b", false},      {"a/", false},
		{".", false},    {"a/./b", false},  {"..", false},        {"a/../b", false},
		{"a/..", false}, {"a\nb", false},   {"a\x1b[31m", false}, {"a\xff", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (path_is_safe(cases[i].path) != cases[i].safe)
			fail_msg("path_is_safe(\"%s\")", cases[i].path);
}

static void links_stay_inside(void **state)
{
	(void)state;
	static const struct {
		const char *path, *target;
		bool inside;
	} cases[] = {
		{"a", "b", true},
		{"a/b", "../c", true},
		{"a/b/c", "../../d/e", true},
		{"a", "./b/../c", true},
		{"a", "../b", false},
		{"a/b", "../../c", false},
		{"a", "/etc/passwd", false},
		{"a", "", false},
		{"a/b", "../x/../../c", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (link_inside(cases[i].path, cases[i].target) != cases[i].inside)
			fail_msg("link_inside(\"%s\", \"%s\")", cases[i].path, cases[i].target);
}

static void folders_worth_watching(void **state)
{
	(void)state;
	static const struct {
		const char *pattern, *folder;
		bool may;
	} cases[] = {
		{"out/**.mp4", "", true},
		{"out/**.mp4", "out", true},
		{"out/**.mp4", "out/a/b", true},
		{"out/**.mp4", "outside", false},
		{"out/**.mp4", "ou", false},
		{"a/b/*.x", "a", true},
		{"a/b/*.x", "a/b", true},
		{"a/b/*.x", "a/c", false},
		{"*.x", "any", true},
		{"a/b.txt", "a", true},
		{"a/b.txt", "b", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *outputs[] = {(char *)cases[i].pattern, NULL};
		struct agent a = {.outputs = outputs};
		if (may_hold_output(&a, cases[i].folder) != cases[i].may)
			fail_msg("\"%s\" in \"%s\"", cases[i].pattern, cases[i].folder);
	}
}

static void environment_as_shells_quote_it(void **state)
{
	(void)state;
	struct env env = {0};
	env_parse(&env, "MODAL_TOKEN_ID='t'\nA='plain'\nBURST_HIDE='MODAL_TOKEN_ID "
			"RUNPOD_API_KEY'\nB='it'\\''s'\nC='two\nlines'\nD=\"x \\\"y\\\" "
			"\\$z\"\nE=\nRUNPOD_API_KEY='k'\nBURST_HOST_KEY_B64='k'\nnot a line\nF=a\\ "
			"b'c'\nG='open");
	assert_string_equal(env_get(&env, "A", "?"), "plain");
	assert_string_equal(env_get(&env, "B", "?"), "it's");
	assert_string_equal(env_get(&env, "C", "?"), "two\nlines");
	assert_string_equal(env_get(&env, "D", "?"), "x \"y\" $z");
	assert_string_equal(env_get(&env, "E", "?"), "");
	assert_string_equal(env_get(&env, "F", "?"), "a bc");
	assert_string_equal(env_get(&env, "RUNPOD_API_KEY", "none"), "none");
	assert_string_equal(env_get(&env, "MODAL_TOKEN_ID", "none"), "none");
	assert_string_equal(env_get(&env, "BURST_HOST_KEY_B64", "none"), "none");
	env_free(&env);
}

static void make_folder_with_a_file(int root, const char *folder)
{
	char file[80];
	snprintf(file, sizeof(file), "%s/file", folder);
	assert_int_equal(mkdirat(root, folder, 0755), 0);
	int fd = openat(root, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
}

/* As a network's file system may: what is not listed would be missing from the copy for good. */
static void copied_from_a_list_that_fails(void **state)
{
	(void)state;
	char from_path[FOLDER_MAX], to_path[FOLDER_MAX];
	int from = make_root(from_path);
	make_folder_with_a_file(from, "d");
	make_folder_with_a_file(from, "d/e");
	for (int at = 1; at < 40; at++) {
		int to = make_root(to_path);
		readdir_fails_in = at;
		readdir_errno = EIO;
		int result = copy_tree(from, to);
		/* there are not so many */
		assert_int_equal(result, readdir_fails_in ? 0 : -1);
		readdir_fails_in = 0;
		close(to);
		remove_at(AT_FDCWD, to_path);
	}
	close(from);
	remove_at(AT_FDCWD, from_path);
}

enum { LEVELS = 1500, FEW_FILES = 64 };

/* The folder below so many others; makes them if `make`. */
static int deepest(int root, bool make)
{
	int at = dup(root);
	for (int i = 0; i < LEVELS && at >= 0; i++) {
		if (make)
			assert_int_equal(mkdirat(at, "d", 0755), 0);
		int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = next;
	}
	return at;
}

static void make_deep(int root, const char *file)
{
	int at = deepest(root, true);
	close(openat(at, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	close(at);
}

static bool is_deep(int root, const char *file)
{
	int at = deepest(root, false);
	bool there = at >= 0 && faccessat(at, file, F_OK, 0) == 0;
	close_fd(&at);
	return there;
}

/* A command can nest folders deeper than a process has descriptors. */
static void trees_deeper_than_descriptors(void **state)
{
	(void)state;
	char path[4][FOLDER_MAX], id[65], bad[PATH_BYTES_MAX];
	int root[4];
	struct rlimit was, few;
	for (int i = 0; i < 4; i++)
		root[i] = make_root(path[i]);
	make_deep(root[0], "a");
	make_deep(root[2], "b");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = (struct rlimit){FEW_FILES, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(copy_tree(root[0], root[1]), 0);
	assert_true(is_deep(root[1], "a"));
	assert_int_equal(tree_keep(root[0], 0, root[3], "env", "e", id, bad, NULL), 0);
	assert_int_equal(tree_compare(root[3], "env/e", id), TAKEN);
	assert_int_equal(move_over(root[1], root[2]), 0);
	assert_true(is_deep(root[2], "a") && is_deep(root[2], "b"));
	/* its paths are too long: that is the reason, not the descriptors */
	struct snapshot s = {.from = root[0], .most = INT64_MAX, .known = ""};
	assert_int_equal(snapshot_take(&s, root[3]), SNAPSHOT_UNFIT);
	for (int i = 0; i < 4; i++) {
		close(root[i]);
		assert_int_equal(remove_at(AT_FDCWD, path[i]), 0);
		assert_int_equal(access(path[i], F_OK), -1);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

static void listing_lines(void **state)
{
	(void)state;
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	static const struct {
		const char *text;
		int entries; /* -1: it is none */
	} cases[] = {
		{"burst-tree 1\n", 0},
		{"burst-tree 1\nf " HASH " a\nd b\nx " HASH " b/c d\nl e\tb/c d\n", 4},
		{"burst-tree 1\nl e\t/absolute\n", 1},
		{"", -1},
		{"burst-tree 1", -1},
		{"burst-tree 2\n", -1},
		{"burst-tree 1\nd b", -1}, /* cut */
		{"burst-tree 1\n\n", -1},
		{"burst-tree 1\nf " HASH "\n", -1},
		{"burst-tree 1\nf " HASH "0 a\n", -1},
		{"burst-tree 1\nf 0123 a\n", -1},
		{"burst-tree 1\nF " HASH " a\n", -1},
		{"burst-tree 1\nd a\nd a\n", -1}, /* twice */
		{"burst-tree 1\nd b\nd a\n", -1}, /* in no order */
		{"burst-tree 1\nd ../a\n", -1},
		{"burst-tree 1\nd /a\n", -1},
		{"burst-tree 1\nd a//b\n", -1},
		{"burst-tree 1\nl a\n", -1},
		{"burst-tree 1\nl a\t\n", -1},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *copy = xstrdup(cases[i].text);
		struct listing l;
		struct str again = {0};
		int got = listing_parse(&l, copy, strlen(cases[i].text)) < 0 ? -1 : (int)l.count;
		if (got != cases[i].entries)
			fail_msg("%d entries, not %d: %s", got, cases[i].entries, cases[i].text);
		if (got >= 0) {
			listing_text(&l, &again);
			assert_string_equal(again.s, cases[i].text);
			listing_free(&l);
		}
		str_free(&again);
		free(copy);
	}
}

static void listing_changes(void **state)
{
	(void)state;
	struct listing l = {0};
	struct str text = {0};
	listing_add(&l, 'd', "d", NULL, NULL);
	listing_add(&l, 'f', "d/a", HASH, NULL);
	listing_add(&l, 'f', "d-x", HASH, NULL);
	listing_add(&l, 'f', "e", HASH, NULL);
	listing_sort(&l);
	listing_remove(&l, "d");
	listing_remove(&l, "nothing");
	listing_add(&l, 'l', "e", NULL, "d-x");
	listing_sort(&l);
	listing_text(&l, &text);
	assert_string_equal(text.s, "burst-tree 1\nf " HASH " d-x\nl e\td-x\n");
	str_free(&text);
	listing_free(&l);
}

/* A folder whose list ends early is not kept as if it were whole, nor taken for what it should be.
 */
static void listing_of_a_folder_that_fails(void **state)
{
	(void)state;
	char from_path[FOLDER_MAX], to_path[FOLDER_MAX], id[65], bad[PATH_BYTES_MAX];
	int from = make_root(from_path), to = make_root(to_path);
	make_folder_with_a_file(from, "one");
	make_folder_with_a_file(from, "two");
	assert_int_equal(tree_keep(from, 0, to, "env", "e", id, bad, NULL), 0);
	/* somebody else's */
	assert_int_equal(tree_keep(from, geteuid() + 1, to, "env", "s", id, bad, NULL), -1);
	assert_int_equal(tree_compare(to, "env/e", id), TAKEN);
	assert_int_equal(tree_take(to, "env/e", id, from, "copy"), TAKEN);
	for (int n = 1; n < 8; n++) {
		readdir_errno = EIO;
		readdir_fails_in = n;
		int kept = tree_keep(from, 0, to, "env", "f", id, bad, NULL);
		bool failed = !readdir_fails_in;
		readdir_fails_in = 0;
		assert_int_equal(kept, failed ? -1 : 0);
	}
	remove_at(AT_FDCWD, from_path);
	remove_at(AT_FDCWD, to_path);
	close(from);
	close(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths),
		cmocka_unit_test(links_stay_inside),
		cmocka_unit_test(folders_worth_watching),
		cmocka_unit_test(environment_as_shells_quote_it),
		cmocka_unit_test(copied_from_a_list_that_fails),
		cmocka_unit_test(trees_deeper_than_descriptors),
		cmocka_unit_test(listing_lines),
		cmocka_unit_test(listing_changes),
		cmocka_unit_test(listing_of_a_folder_that_fails),
	};

	return cmocka_run_group_tests_name("agent files", tests, NULL, NULL);
}
