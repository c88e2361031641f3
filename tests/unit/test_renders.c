/* test_renders.c - the render cache: what it gives back, what it refuses, what goes when it is
 * full, and many users at once. */
#include "tts_helpers.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <utime.h>

#include "jobs/renders.h"

static char *key_of(int n)
{
	CLEANUP(free_text) char *name = xasprintf("segment %d", n);
	char *key = xmalloc(SHA256_HEX);

	sha256_hex(name, strlen(name), key);
	return key;
}

/* A file of so many bytes whose contents follow from n. */
static int file_of(int n, size_t bytes, char sha256[SHA256_HEX])
{
	CLEANUP(free_text) char *path = in_folder("file");
	char *text = xcalloc(1, bytes);

	memset(text, 'a' + n % 26, bytes);
	snprintf(text, bytes, "%d", n);
	put("file", text, bytes);
	sha256_hex(text, bytes, sha256);
	free(text);
	return open(path, O_RDONLY);
}

static void keep(struct renders *r, int n, size_t bytes, bool anew)
{
	CLEANUP(free_text) char *key = key_of(n);
	char sha256[SHA256_HEX];
	CLEANUP(fd_close) int fd = file_of(n, bytes, sha256);

	renders_put(r, key, fd, sha256, anew);
}

/* "" when there is none; else the path. */
static char *path_of(struct renders *r, int n)
{
	CLEANUP(free_text) char *key = key_of(n);
	char sha256[SHA256_HEX], *path = NULL;

	fd_close(renders_find(r, key, sha256, &path));
	return path ? path : xstrdup("");
}

static bool has(struct renders *r, int n)
{
	CLEANUP(free_text) char *path = path_of(r, n);

	return *path;
}

static void age(struct renders *r, int n, int64_t s)
{
	CLEANUP(free_text) char *path = path_of(r, n);
	struct utimbuf when = {.actime = time(NULL) - s, .modtime = time(NULL) - s};

	assert_int_equal(utime(path, &when), 0);
}

static char *told(struct renders *r)
{
	struct str notes = STR_INIT;

	renders_report(r, &notes);
	return str_detach(&notes);
}

static void kept_and_found(void **state)
{
	CLEANUP(free_text) char *dir = in_folder("cache/renders");
	CLEANUP(renders_free)
	struct renders *r = renders_new(dir, 10 << 20), *other = renders_new(dir, 10 << 20);
	char sha256[SHA256_HEX], found[SHA256_HEX], *path = NULL;
	struct stat st;

	(void)state;
	clear_folder();
	assert_false(has(r, 1));
	assert_false(is_there("cache")); /* looking makes nothing */
	keep(r, 1, 1000, false);
	assert_true(has(r, 1) && has(other, 1) && !has(r, 2));
	CLEANUP(free_text) char *key = key_of(1);
	CLEANUP(fd_close) int fd = file_of(1, 1000, sha256);
	CLEANUP(fd_close) int copy = renders_find(r, key, found, &path);
	assert_string_equal(sha256, found);
	assert_true(fstat(copy, &st) == 0 && st.st_size == 1000 && (st.st_mode & 0777) == 0600 &&
		    st.st_nlink == 1);
	assert_true(stat(dir, &st) == 0 && (st.st_mode & 0777) == 0700);
	free(path);
	assert_null(renders_new(NULL, 1));
	assert_null(renders_new(dir, 0));
	CLEANUP(free_text) char *said = told(r);
	assert_string_equal(said, "");
}

static void damage_is_found(void **state)
{
	CLEANUP(free_text) char *dir = in_folder("cache/renders");
	CLEANUP(renders_free) struct renders *r = renders_new(dir, 10 << 20);

	(void)state;
	clear_folder();
	for (int n = 0; n < 3; n++)
		keep(r, n, 1000, false);
	CLEANUP(free_text) char *changed = path_of(r, 0);
	CLEANUP(free_text) char *cut = path_of(r, 1);
	CLEANUP(free_text) char *linked = path_of(r, 2);
	CLEANUP(fd_close) int fd = open(changed, O_WRONLY);
	assert_int_equal(pwrite(fd, "x", 1, 500), 1);
	assert_int_equal(truncate(cut, 999), 0);
	assert_int_equal(unlink(linked), 0);
	CLEANUP(free_text) char *elsewhere = in_folder("file");
	assert_int_equal(symlink(elsewhere, linked), 0);
	assert_true(!has(r, 0) && !has(r, 1) && !has(r, 2));
	assert_false(path_exists(changed) || path_exists(cut));
	CLEANUP(free_text) char *said = told(r), *again = told(r);
	assert_non_null(strstr(said, ": 2 damaged files removed and not used\n"));
	assert_string_equal(again, "");
	keep(r, 0, 1000, false);
	assert_true(has(r, 0));
}

static void rendered_anew(void **state)
{
	CLEANUP(free_text) char *dir = in_folder("cache/renders");
	CLEANUP(renders_free) struct renders *r = renders_new(dir, 10 << 20);
	char sha256[SHA256_HEX];

	(void)state;
	clear_folder();
	keep(r, 1, 1000, false);
	CLEANUP(free_text) char *before = path_of(r, 1), *key = key_of(1);
	CLEANUP(fd_close) int fd = file_of(2, 1000, sha256); /* another result of the same */
	renders_put(r, key, fd, sha256, false);
	CLEANUP(free_text) char *same = path_of(r, 1);
	assert_string_equal(before, same);
	renders_put(r, key, fd, sha256, true);
	CLEANUP(free_text) char *after = path_of(r, 1);
	assert_non_null(strstr(after, sha256));
	assert_false(path_exists(before));
}

static void least_recently_used_goes(void **state)
{
	CLEANUP(free_text) char *dir = in_folder("cache/renders");
	CLEANUP(renders_free) struct renders *r = renders_new(dir, 100000);
	struct renders_size size;
	struct err err = {0};

	(void)state;
	clear_folder();
	for (int n = 0; n < 9; n++) {
		keep(r, n, 10000, false);
		age(r, n, 1000 - n);
	}
	assert_true(has(r, 0)); /* used now */
	for (int n = 9; n < 12; n++)
		keep(r, n, 10000, false);
	renders_trim(r);
	assert_int_equal(renders_measure(dir, &size, &err), 0);
	assert_true(size.bytes <= 100000 && size.bytes > 70000);
	assert_true(has(r, 0) && !has(r, 1) && !has(r, 2) && has(r, 8) && has(r, 9) && has(r, 11));
	keep(r, 50, 20000, false); /* too large a share */
	assert_false(has(r, 50));
	CLEANUP(free_text) char *begun = in_folder("cache/renders/tmp-0123456789abcdef");
	put_text("cache/renders/tmp-0123456789abcdef", "half");
	put_text("cache/renders/mine.txt", "mine");
	keep(r, 60, 1000, false);
	renders_trim(r);
	assert_true(path_exists(begun)); /* another process may be at it */
	struct utimbuf when = {.actime = 1, .modtime = 1};
	assert_int_equal(utime(begun, &when), 0);
	keep(r, 61, 1000, false);
	renders_trim(r);
	assert_false(path_exists(begun));
	assert_int_equal(renders_clear(dir, &size, &err), 0);
	assert_true(size.count > 7);
	assert_int_equal(renders_measure(dir, &size, &err), 0);
	assert_true(size.count == 0 && size.bytes == 0);
	assert_true(is_there("cache/renders/mine.txt"));
	CLEANUP(free_text) char *none = in_folder("nothing");
	assert_int_equal(renders_measure(none, &size, &err), 0);
	assert_int_equal(renders_clear(none, &size, &err), 0);
}

static void trouble_is_said_once(void **state)
{
	CLEANUP(free_text) char *dir = in_folder("cache/renders");
	CLEANUP(renders_free) struct renders *r = renders_new(dir, 10 << 20), *open_one = NULL;

	(void)state;
	clear_folder();
	put_text("cache", "a file");
	keep(r, 1, 100, false);
	keep(r, 2, 100, false);
	assert_false(has(r, 1));
	CLEANUP(free_text) char *said = told(r), *again = told(r);
	assert_non_null(strstr(said, ": renders of this run are not kept there\n"));
	assert_string_equal(again, "");
	/* others may write there: nothing of it is believed */
	clear_folder();
	open_one = renders_new(dir, 10 << 20);
	keep(open_one, 1, 100, false);
	assert_true(has(open_one, 1));
	assert_int_equal(chmod(dir, 0777), 0);
	keep(open_one, 2, 100, false);
	assert_false(has(open_one, 1) || has(open_one, 2));
	CLEANUP(free_text) char *open_said = told(open_one);
	assert_non_null(strstr(open_said, "others may write there (chmod 700 makes it private)"));
}

static void one_of_many(const char *dir, int seed)
{
	struct renders *r = renders_new(dir, 200000);
	char sha256[SHA256_HEX];
	CLEANUP(free_text) char *own = xasprintf("own-%d", seed);

	for (int k = 0; k < 200; k++) {
		int n = (k * 7 + seed * 13) % 40;
		CLEANUP(free_text) char *key = key_of(n);
		CLEANUP(free_text)
		char *text = xasprintf("%d %08000d", n, 0), *path = in_folder(own);
		put(own, text, strlen(text));
		CLEANUP(fd_close) int fd = open(path, O_RDONLY);
		sha256_hex(text, strlen(text), sha256);
		renders_put(r, key, fd, sha256, k % 5 == 0);
		char found[SHA256_HEX], *at_path = NULL;
		int other = renders_find(r, key, found, &at_path);
		if (other >= 0 && strcmp(found, sha256))
			leave_child(1);
		fd_close(other);
		free(at_path);
	}
	CLEANUP(free_text) char *said = told(r);
	leave_child(*said ? 2 : 0);
}

static void many_at_once(void **state)
{
	CLEANUP(free_text) char *dir = in_folder("cache/renders");
	CLEANUP(renders_free) struct renders *r = renders_new(dir, 200000);
	struct renders_size size;
	struct err err = {0};
	pid_t pids[4];

	(void)state;
	clear_folder();
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			one_of_many(dir, i);
	}
	for (int i = 0; i < 4; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	keep(r, 1000, 100, false);
	renders_trim(r);
	assert_int_equal(renders_measure(dir, &size, &err), 0);
	assert_true(size.count > 0 && size.bytes <= 200000);
	CLEANUP(free_text) char *said = told(r);
	assert_string_equal(said, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_and_found),       cmocka_unit_test(damage_is_found),
		cmocka_unit_test(rendered_anew),        cmocka_unit_test(least_recently_used_goes),
		cmocka_unit_test(trouble_is_said_once), cmocka_unit_test(many_at_once),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
