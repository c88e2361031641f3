/* test_path.c - paths, folders, whole files, trees, locks. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/path.h"
#include "base/str.h"
#include "checks.h"
#include "folder.h"
#include "scratch.h"

static void paths_are_joined_and_split(void **state)
{
	static const struct {
		const char *dir, *name, *joined, *its_dir, *its_base;
	} cases[] = {
		{"a", "b", "a/b", "a", "b"}, {"a/", "b", "a/b", "a", "b"},
		{"a", "/b", "/b", "/", "b"}, {"", "b", "b", ".", "b"},
		{"/", "b", "/b", "/", "b"},  {"a/b", "c/d", "a/b/c/d", "a/b/c", "d"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(free_text) char *joined = path_join(cases[i].dir, cases[i].name);
		CLEANUP(free_text) char *dir = path_dir(joined);
		check_text("joined", joined, cases[i].joined);
		check_text("folder", dir, cases[i].its_dir);
		check_text("base", path_base(joined), cases[i].its_base);
	}
}

static const struct {
	const char *name, *path;
	bool safe;
} safes[] = {
	{"a file", "a.wav", true},
	{"in a folder", "a/b c/d.wav", true},
	{"hidden", ".a", true},
	{"three dots", "...", true},
	{"accents", "caf\xc3\xa9/\xe6\x97\xa5.wav", true},
	{"empty", "", false},
	{"absolute", "/etc/passwd", false},
	{"parent", "..", false},
	{"parent inside", "a/../b", false},
	{"parent last", "a/..", false},
	{"dot", "./a", false},
	{"dot last", "a/.", false},
	{"empty part", "a//b", false},
	{"slash last", "a/", false},
	{"backslash", "a\\b", false},
	{"newline", "a\nb", false},
	{"escape", "a\x1b[2J", false},
	{"DEL", "a\x7f", false},
	{"C1 control", "a\xc2\x9b", false},
	{"turns the text around", "a\xe2\x80\xaegpj.exe", false},
	{"not UTF-8", "a\xff", false},
	{"overlong parent", "\xc0\xae\xc0\xae/a", false},
};

static void only_safe_paths_pass(void **state)
{
	char long_part[300], long_path[1100];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(safes); i++)
		check_int(safes[i].name, path_is_safe(safes[i].path), safes[i].safe);

	memset(long_part, 'a', sizeof(long_part));
	long_part[255] = '\0';
	assert_true(path_is_safe(long_part));
	long_part[255] = 'a';
	long_part[256] = '\0';
	assert_false(path_is_safe(long_part));
	for (size_t i = 0; i < sizeof(long_path); i++)
		long_path[i] = i % 100 == 99 ? '/' : 'a';
	long_path[1024] = '\0';
	assert_true(path_is_safe(long_path));
	long_path[1024] = 'a';
	long_path[1025] = '\0';
	assert_false(path_is_safe(long_path));
}

static void folders_are_made(void **state)
{
	CLEANUP(free_text) char *deep = in_folder("made/a/b");
	CLEANUP(free_text) char *file = in_folder("made/file");
	CLEANUP(free_text) char *below = in_folder("made/file/x");
	struct stat st;
	struct err err = {0};

	(void)state;
	assert_int_equal(path_mkdirs(deep, 0700, &err), 0);
	assert_int_equal(path_mkdirs(deep, 0700, &err), 0);
	assert_int_equal(path_mkdirs("/", 0700, &err), 0);
	assert_int_equal(stat(deep, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(path_write(file, "x", 1, 0600, &err), 0);
	assert_int_equal(path_mkdirs(file, 0700, &err), -1);
	assert_int_equal(path_mkdirs(below, 0700, &err), -1);
	assert_int_equal(path_mkdirs("", 0700, &err), -1);
	assert_int_equal(err.kind, ERR_LOCAL);
}

static void files_are_written_whole(void **state)
{
	CLEANUP(free_text) char *dir = in_folder("written");
	CLEANUP(free_text) char *path = path_join(dir, "f");
	CLEANUP(str_free) struct str text = STR_INIT;
	struct stat st;
	struct err err = {0};

	(void)state;
	assert_int_equal(path_mkdirs(dir, 0700, &err), 0);
	assert_int_equal(path_write(path, "old", 3, 0600, &err), 0);
	assert_int_equal(path_write(path, "newer", 5, 0600, &err), 0);
	assert_int_equal(path_read(path, 5, &text, &err), 0);
	assert_string_equal(str_text(&text), "newer");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(path_read(path, 4, &text, &err), -1);
	assert_int_equal(err.kind, ERR_CONFIG);
	/* nothing is left beside it: the folder is empty once the file is gone */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(path_write(path, "x", 1, 0600, &err), -1);
	assert_int_equal(err.kind, ERR_LOCAL);
	assert_int_equal(path_read(path, 5, &text, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
}

static void a_failed_write_keeps_the_old(void **state)
{
	CLEANUP(free_text) char *path = in_folder("occupied");
	CLEANUP(free_text) char *inside = in_folder("occupied/inside");
	struct err err = {0};

	(void)state;
	assert_int_equal(path_mkdirs(inside, 0700, &err), 0);
	assert_int_equal(path_write(path, "x", 1, 0600, &err), -1); /* a folder stands there */
	assert_true(path_exists(inside));
	assert_int_equal(path_remove_tree(path, &err), 0);
}

static void trees_are_removed_but_not_what_they_point_at(void **state)
{
	CLEANUP(free_text) char *tree = in_folder("tree");
	CLEANUP(free_text) char *deep = in_folder("tree/a/b/c");
	CLEANUP(free_text) char *link_in = in_folder("tree/a/out");
	CLEANUP(free_text) char *kept = in_folder("kept");
	CLEANUP(free_text) char *kept_file = in_folder("kept/file");
	CLEANUP(free_text) char *link = in_folder("link");
	CLEANUP(free_text) char *link_slash = in_folder("link/");
	struct err err = {0};

	(void)state;
	assert_int_equal(path_mkdirs(deep, 0700, &err), 0);
	assert_int_equal(path_mkdirs(kept, 0700, &err), 0);
	assert_int_equal(path_write(kept_file, "x", 1, 0600, &err), 0);
	assert_int_equal(symlink(kept, link_in), 0);
	assert_int_equal(symlink(kept, link), 0);
	for (int i = 0; i < 300; i++) {
		CLEANUP(free_text) char *name = xasprintf("%s/%d", deep, i);
		FILE *f = fopen(name, "w");
		assert_non_null(f);
		fclose(f);
	}
	assert_int_equal(path_remove_tree(tree, &err), 0);
	assert_false(path_exists(tree));
	assert_true(path_exists(kept_file));
	assert_int_equal(path_remove_tree(link_slash, &err), 0);
	assert_false(path_exists(link));
	assert_true(path_exists(kept_file));
	assert_int_equal(path_remove_tree(kept, &err), 0);
	assert_int_equal(path_remove_tree(kept, &err), 0); /* absent is fine */
}

/* As a job may leave them: deeper than descriptors or a path reach, and closed to their owner. */
static void trees_are_removed_however_deep(void **state)
{
	enum { LEVELS = 3000, FILES = 100 };
	CLEANUP(free_text) char *tree = in_folder("tree");
	CLEANUP(free_text) char *taken = in_folder("tree/.burst-removal-0/x");
	struct rlimit was, few;
	struct err err = {0};

	(void)state;
	assert_int_equal(path_mkdirs(taken, 0700, &err), 0);
	int at = open(tree, O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < LEVELS; i++) {
		assert_int_equal(mkdirat(at, "d", 0700), 0);
		int next = openat(at, "d", O_RDONLY | O_DIRECTORY);
		if (i % 7 == 0 && i)
			assert_int_equal(fchmod(at, 0), 0);
		close(at);
		at = next;
		assert_true(at >= 0);
	}
	close(at);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = (struct rlimit){.rlim_cur = FILES, .rlim_max = was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(path_remove_closed_tree(tree, &err), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_false(path_exists(tree));
}

/* Runs in a child: does it get the lock? Exits 0 when it is held by somebody named want. */
static void child_finds_it_locked(const char *path, const char *want)
{
	struct err err = {0};
	int fd = -1;

	if (path_lock(path, "the child", &fd, &err) == 0)
		_exit(2);
	_exit(err.kind == ERR_BUSY && !strcmp(err.msg, want) && fd == -1 ? 0 : 3);
}

static void a_lock_holds_across_processes(void **state)
{
	CLEANUP(free_text) char *path = in_folder("lock");
	struct err err = {0};
	int fd = -1, again = -1, status = -1;

	(void)state;
	assert_int_equal(path_lock(path, "run 7 (a longer note)\n", &fd, &err), 0);
	assert_int_equal(path_lock(path, "us", &again, &err), -1);
	assert_int_equal(err.kind, ERR_BUSY);
	assert_string_equal(err.msg, "run 7 (a longer note)");
	pid_t child = fork();
	if (child == 0)
		child_finds_it_locked(path, "run 7 (a longer note)");
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(fd);

	assert_int_equal(path_lock(path, "short", &fd, &err), 0);
	assert_int_equal(path_lock(path, "us", &again, &err), -1);
	assert_string_equal(err.msg, "short");
	close(fd);
}

static void a_dead_process_leaves_no_lock(void **state)
{
	CLEANUP(free_text) char *path = in_folder("lock-dead");
	struct err err = {0};
	int ends[2], fd = -1;
	char byte;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		int held = -1;
		if (path_lock(path, "child", &held, NULL) == 0)
			(void)!write(ends[1], "l", 1);
		pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(path_lock(path, "us", &fd, &err), -1);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(path_lock(path, "us", &fd, &err), 0);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

/* A client that is killed while a child of it has not executed its program yet. */
static void a_child_keeps_no_lock(void **state)
{
	CLEANUP(free_text) char *path = in_folder("lock-child");
	CLEANUP(str_free) struct str note = STR_INIT;
	struct err err = {0};
	int ends[2], fd = -1;
	pid_t grandchild = 0;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		int held = -1;
		pid_t own = path_lock(path, "client 7\n", &held, NULL) == 0 ? fork() : -1;
		if (own != 0)
			(void)!write(ends[1], &own, sizeof(own));
		pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
	assert_true(grandchild > 0);
	assert_true(path_is_locked(path, &note));
	assert_string_equal(str_text(&note), "client 7");
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(path_is_locked(path, NULL));
	assert_int_equal(path_lock(path, "us", &fd, &err), 0);
	assert_int_equal(kill(grandchild, SIGKILL), 0);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

static void a_look_at_a_lock_does_not_end_it(void **state)
{
	CLEANUP(free_text) char *path = in_folder("lock-look");
	struct err err = {0};
	int fd = -1, again = -1, status = -1;

	(void)state;
	assert_false(path_is_locked(path, NULL));
	assert_int_equal(path_lock(path, "us", &fd, &err), 0);
	assert_true(path_is_locked(path, NULL));
	assert_int_equal(path_lock(path, "again", &again, &err), -1);
	pid_t child = fork();
	if (child == 0)
		child_finds_it_locked(path, "us");
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(fd);
	assert_false(path_is_locked(path, NULL));
}

static void free_room_is_known(void **state)
{
	(void)state;
	assert_true(path_free_bytes(folder) > 0);
	assert_int_equal(path_free_bytes("/does/not/exist"), -1);
}

static void only_plain_files_are_read(void **state)
{
	char *plain = new_folder();
	struct err err = {0};

	(void)state;
	int dir = open(plain, O_RDONLY | O_DIRECTORY);
	CLEANUP(free_text) char *file = path_join(plain, "file");
	CLEANUP(free_text) char *link = path_join(plain, "link");
	CLEANUP(free_text) char *fifo = path_join(plain, "fifo");
	CLEANUP(free_text) char *absent = path_join(plain, "absent");
	CLEANUP(str_free) struct str text = STR_INIT;
	assert_int_equal(path_write(file, "text", 4, 0600, &err), 0);
	assert_int_equal(symlink(file, link), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(path_read_plain(file, 100, &text, &err), 0);
	assert_string_equal(str_text(&text), "text");
	assert_int_equal(path_read_plain_at(dir, "file", "file", 3, &text, &err), -1);
	assert_int_equal(err.kind, ERR_CONFIG);
	assert_int_equal(path_read_plain(link, 100, &text, &err), -1);
	assert_int_equal(err.kind, ERR_CONFIG);
	assert_non_null(strstr(err.msg, "link: is a link"));
	/* at once: nobody writes to it */
	assert_int_equal(path_read_plain(fifo, 100, &text, &err), -1);
	assert_non_null(strstr(err.msg, "fifo: is not a regular file"));
	assert_int_equal(path_read_plain("/dev/null", 100, &text, &err), -1);
	assert_int_equal(path_read_plain(plain, 100, &text, &err), -1);
	assert_int_equal(path_read_plain(absent, 100, &text, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	close(dir);
	remove_folder(plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_joined_and_split),
		cmocka_unit_test(only_safe_paths_pass),
		cmocka_unit_test(folders_are_made),
		cmocka_unit_test(files_are_written_whole),
		cmocka_unit_test(a_failed_write_keeps_the_old),
		cmocka_unit_test(trees_are_removed_but_not_what_they_point_at),
		cmocka_unit_test(trees_are_removed_however_deep),
		cmocka_unit_test(a_lock_holds_across_processes),
		cmocka_unit_test(a_dead_process_leaves_no_lock),
		cmocka_unit_test(a_child_keeps_no_lock),
		cmocka_unit_test(a_look_at_a_lock_does_not_end_it),
		cmocka_unit_test(free_room_is_known),
		cmocka_unit_test(only_plain_files_are_read),
	};

	return cmocka_run_group_tests_name("path", tests, make_folder, drop_folder);
}
