/* test_held_folder.c - folders that outlive no process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/folders.h"
#include "base/mem.h"
#include "base/path.h"
#include "checks.h"
#include "scratch.h"

static void what_died_is_removed(void **state)
{
	char *top = new_folder();
	CLEANUP(free_text) char *dir = path_join(top, "made/for/it");
	CLEANUP(free_text) char *hidden = path_join(dir, ".kept/file");
	struct err err = {0};
	int dead = -1, living = -1, last = -1;

	(void)state;
	CLEANUP(free_text) char *first = held_folder_new(dir, &dead, &err);
	CLEANUP(free_text) char *second = held_folder_new(dir, &living, &err);
	assert_non_null(first);
	assert_non_null(second);
	assert_string_not_equal(first, second);
	CLEANUP(free_text) char *file = path_join(first, "below/file");
	write_text(file, "x");
	write_text(hidden, "x");
	close(dead); /* as when its process ends */
	CLEANUP(free_text) char *third = held_folder_new(dir, &last, &err);
	assert_non_null(third);
	assert_false(path_exists(first));
	assert_true(path_exists(second));
	assert_true(path_exists(third));
	assert_true(path_exists(hidden));
	close(living);
	close(last);
	remove_folder(top);
}

static void failure_names_the_folder(void **state)
{
	char *top = new_folder();
	CLEANUP(free_text) char *file = path_join(top, "file");
	CLEANUP(free_text) char *below = path_join(file, "below");
	struct err err = {0};
	int lock = -7;

	(void)state;
	write_text(file, "x");
	assert_null(held_folder_new(below, &lock, &err));
	assert_int_equal(err.kind, ERR_LOCAL);
	assert_non_null(strstr(err.msg, file));
	assert_int_equal(lock, -7);
	remove_folder(top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_died_is_removed),
		cmocka_unit_test(failure_names_the_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
